//! Flows that are cut in two: either end speaks to a TCP of ours that bears the other end's name.
//!
//! What comes from one end is acknowledged before the other has it. P2 and P3 do not hold here, and such a flow ends
//! with its proxy.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use hopwise_core::agent::{AgentMaker, Side};
use hopwise_core::endpoint::{
    ConnId, ConnectOptions, Cookies, EndpointConfig, Event, EventKind, LinkConfig, ListenOptions, RecvError,
    Route,
};
use hopwise_core::ip::Prefix;
use hopwise_core::tcp::{BufferLimits, CloseReason, TcpConfig};
use hopwise_core::trace::StateName;
use hopwise_core::wire::Checksums;
use hopwise_core::{Endpoint, Instant, LinkId, Machine, NextHop, Payload, Rx, Seq, Transmit};

use super::read::FlowKey;

/// Each half has one link: the side that it faces.
const LINK: LinkId = LinkId(0);
const MTU: u16 = 1500;
/// A half that is closing may still be there when its successor opens.
const MOST_CONNECTIONS: usize = 4;

/// What both halves are made with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Making {
    /// The most that each half holds in each direction.
    pub(super) buffer_bytes: u32,
    pub(super) key: [u8; 32],
    pub(super) checksums: Checksums,
}

/// A TCP that faces one side and is the other for it.
#[derive(Debug)]
struct Half {
    endpoint: Endpoint,
    conn: Option<ConnId>,
    /// All that came is with the other half, and so is the end of it.
    has_ended: bool,
    /// Stands among those that may have something to send.
    is_waiting: bool,
}

#[derive(Debug)]
pub(super) struct Relay {
    key: FlowKey,
    opener: Side,
    pub(super) opened: Seq,
    made_at: Instant,
    /// The opener's SYN, until the other end has answered ours.
    syn: Option<Vec<u8>>,
    halves: [Half; 2],
    due: Option<Instant>,
    seen_at: Instant,
}

fn place(side: Side) -> usize {
    usize::from(side == Side::Mobile)
}

fn address(key: &FlowKey, side: Side) -> SocketAddr {
    match side {
        Side::Fixed => key.fixed,
        Side::Mobile => key.mobile,
    }
}

impl Half {
    /// Bears the name of `of`.
    fn new(of: IpAddr, making: &Making, maker: Box<dyn AgentMaker>) -> Option<Half> {
        let limits = |limits: BufferLimits| {
            let max = making.buffer_bytes;
            BufferLimits { initial: limits.initial.min(max), max }
        };
        let tcp = TcpConfig::modern();
        let tcp = TcpConfig {
            send_buffer: limits(tcp.send_buffer),
            recv_buffer: limits(tcp.recv_buffer),
            // What one end sent at once goes on at once.
            nagle: false,
            ..tcp
        };
        let nowhere = match of {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let link = LinkConfig::wire(LINK.0, MTU, vec![Prefix::host(of)]);
        let config = EndpointConfig {
            routes: vec![Route { to: Prefix::new(nowhere, 0).ok()?, link: LINK, via: NextHop::Link }],
            tcp: Arc::new(tcp),
            trace_events: 0,
            most_connections: MOST_CONNECTIONS,
            checksums: making.checksums,
            ..EndpointConfig::new(link, making.key)
        };
        let endpoint = Endpoint::new(config, maker).ok()?;
        Some(Half { endpoint, conn: None, has_ended: false, is_waiting: false })
    }

    fn is_at_end(&mut self, now: Instant) -> bool {
        let Some(conn) = self.conn else { return false };
        matches!(self.endpoint.recv(now, conn, &mut []), Err(RecvError::Finished))
    }

    fn abort(&mut self, now: Instant) {
        if let Some(conn) = self.conn {
            // One that is over cannot be ended once more.
            let _ = self.endpoint.abort(now, conn);
        }
    }

    /// It goes on by itself until what was sent has arrived.
    fn let_go(&mut self, now: Instant) {
        if let Some(conn) = self.conn {
            // What was let go is let go.
            let _ = self.endpoint.close(now, conn);
        }
    }

    /// No connection is left of it.
    fn is_over(&self, now: Instant) -> bool {
        self.conn.is_none_or(|conn| self.endpoint.info(now, conn).is_err())
    }
}

impl Relay {
    /// An end has sent a SYN: the other is asked first. `None`: that end cannot be connected to.
    fn open(
        now: Instant,
        from: Side,
        (key, opened): (FlowKey, Seq),
        syn: &[u8],
        making: &Making,
        makers: [Box<dyn AgentMaker>; 2],
    ) -> Option<Relay> {
        let [one, other] = makers;
        let facing_fixed = Half::new(key.mobile.ip(), making, one)?;
        let facing_mobile = Half::new(key.fixed.ip(), making, other)?;
        let halves = [facing_fixed, facing_mobile];
        let syn = Some(syn.to_vec());
        let mut relay =
            Relay { key, opener: from, opened, made_at: now, syn, halves, due: None, seen_at: now };
        let (opener, to) = (address(&key, from), address(&key, from.other()));
        let options = ConnectOptions {
            local_ip: Some(opener.ip()),
            local_port: Some(opener.port()),
            ..ConnectOptions::default()
        };
        let far = relay.half(from.other());
        far.conn = Some(far.endpoint.connect(now, to, &options).ok()?);
        Some(relay)
    }

    /// Whether the half that faces this side has a connection there, so that no successor can begin.
    pub(super) fn is_under_way(&self, facing: Side) -> bool {
        let mut states = self.halves[place(facing)].endpoint.states();
        states.any(|state| state.is_synchronized() && state != StateName::TimeWait)
    }

    fn half(&mut self, facing: Side) -> &mut Half {
        &mut self.halves[place(facing)]
    }

    fn take(&mut self, now: Instant, from: Side, packet: &[u8]) {
        self.seen_at = now;
        // Who opens says so again until he is answered; nobody is there yet to answer.
        if self.syn.is_none() || from != self.opener {
            self.half(from).endpoint.handle_packet(now, &Rx::new(LINK, packet));
        }
        self.work(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        for half in &mut self.halves {
            half.endpoint.handle_timeout(now);
        }
        self.work(now);
    }

    /// All that follows from what has happened.
    fn work(&mut self, now: Instant) {
        for side in [Side::Fixed, Side::Mobile] {
            while let Some(event) = self.half(side).endpoint.poll_event() {
                self.hear(now, side, event);
            }
        }
        while self.carry(now, Side::Fixed) | self.carry(now, Side::Mobile) {}
        if self.halves.iter().all(|half| half.has_ended) {
            self.halves.iter_mut().for_each(|half| half.let_go(now));
        }
    }

    fn hear(&mut self, now: Instant, side: Side, event: Event) {
        match event {
            Event::Incoming(listener) => {
                let half = self.half(side);
                half.conn = half.endpoint.accept(now, listener);
                half.endpoint.stop_listening(now, listener);
            }
            Event::Connection(_, EventKind::Connected) if side != self.opener => self.answer(now, true),
            Event::Connection(_, EventKind::Closed(CloseReason::Finished)) => {}
            Event::Connection(_, EventKind::Closed(reason)) => {
                if reason == CloseReason::Refused {
                    self.answer(now, false);
                }
                self.syn = None;
                self.half(side).let_go(now);
                self.half(side.other()).abort(now);
            }
            Event::Connection(..) => {}
        }
    }

    /// The other end has taken the connection, or has not: the opener hears of it.
    fn answer(&mut self, now: Instant, is_open: bool) {
        let Some(syn) = self.syn.take() else { return };
        let (opener, name) = (self.opener, address(&self.key, self.opener.other()));
        let near = self.half(opener);
        if is_open {
            let options = ListenOptions { cookies: Cookies::Never, ..ListenOptions::default() };
            // A port without a listener answers by a RST, which is as true as anything.
            let _ = near.endpoint.listen(Some(name.ip()), name.port(), options);
        }
        near.endpoint.handle_packet(now, &Rx::new(LINK, &syn));
    }

    /// Hands on what came from one side; whether anything did.
    fn carry(&mut self, now: Instant, from: Side) -> bool {
        let [fixed, mobile] = &mut self.halves;
        let (source, sink) = if from == Side::Fixed { (fixed, mobile) } else { (mobile, fixed) };
        let (Some(inward), Some(outward)) = (source.conn, sink.conn) else { return false };
        let (first, second) = source.endpoint.peek(inward);
        let mut moved = 0;
        for chunk in [first, second] {
            let Ok(taken) = sink.endpoint.send(now, outward, chunk) else { break };
            moved += taken;
            if taken < chunk.len() {
                break;
            }
        }
        if moved > 0 {
            let _ = source.endpoint.consume(now, inward, u32::try_from(moved).unwrap_or(u32::MAX));
        }
        if !source.has_ended && source.is_at_end(now) {
            source.has_ended = true;
            let _ = sink.endpoint.shutdown(now, outward);
            return true;
        }
        moved > 0
    }

    fn deadline(&self) -> Option<Instant> {
        self.halves.iter().filter_map(|half| half.endpoint.poll_timeout()).min()
    }

    fn is_over(&self, now: Instant) -> bool {
        self.syn.is_none() && self.halves.iter().all(|half| half.is_over(now) && !half.is_waiting)
    }
}

/// All of a proxy's, with their deadlines and those that have something to send.
#[derive(Debug, Default)]
pub(super) struct Relays {
    /// In boxes: the map keeps room for twice as many values as there are, and these are large.
    all: BTreeMap<FlowKey, Box<Relay>>,
    deadlines: BTreeSet<(Instant, FlowKey)>,
    /// Those whose other end has not answered yet, by when they were made.
    unanswered: BTreeSet<(Instant, FlowKey)>,
    waiting: [VecDeque<FlowKey>; 2],
}

impl Relays {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get(&self, key: &FlowKey) -> Option<&Relay> {
        self.all.get(key).map(Box::as_ref)
    }

    /// Cuts a flow whose opener's SYN this is; whether it could be.
    pub(super) fn open(
        &mut self,
        now: Instant,
        from: Side,
        flow: (FlowKey, Seq),
        syn: &[u8],
        making: &Making,
        makers: [Box<dyn AgentMaker>; 2],
    ) -> bool {
        let Some(relay) = Relay::open(now, from, flow, syn, making, makers) else { return false };
        self.forget(&flow.0);
        self.unanswered.insert((relay.made_at, flow.0));
        self.all.insert(flow.0, Box::new(relay));
        self.settle(now, flow.0);
        true
    }

    /// Whether the flow is cut, and has the packet.
    pub(super) fn take(&mut self, now: Instant, from: Side, key: &FlowKey, packet: &[u8]) -> bool {
        let Some(relay) = self.all.get_mut(key) else { return false };
        relay.take(now, from, packet);
        self.settle(now, *key);
        true
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|(due, _)| *due)
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        let due: Vec<_> = self.deadlines.range(..=(now, LAST)).map(|(_, key)| *key).collect();
        for key in due {
            if let Some(relay) = self.all.get_mut(&key) {
                relay.handle_timeout(now);
            }
            self.settle(now, key);
        }
    }

    /// One packet; whoever has sent comes after the others.
    pub(super) fn poll_transmit(&mut self, now: Instant, to: Side, out: &mut Vec<u8>) -> Option<Transmit> {
        while let Some(key) = self.waiting[place(to)].pop_front() {
            let Some(relay) = self.all.get_mut(&key) else { continue };
            let half = relay.half(to);
            let transmit = half.endpoint.poll_transmit(now, LINK, Payload::Inline, out);
            half.is_waiting = transmit.is_some();
            if transmit.is_some() {
                self.waiting[place(to)].push_back(key);
            }
            self.file(now, key);
            if transmit.is_some() {
                return transmit;
            }
        }
        None
    }

    /// Ends all of them: what they hold is lost, and both ends hear of it.
    pub(super) fn abort(&mut self, now: Instant) {
        let keys: Vec<_> = self.all.keys().copied().collect();
        for key in keys {
            if let Some(relay) = self.all.get_mut(&key) {
                relay.halves.iter_mut().for_each(|half| half.abort(now));
                relay.syn = None;
            }
            self.settle(now, key);
        }
    }

    /// Forgets those that nothing was heard of since then.
    pub(super) fn sweep(&mut self, now: Instant, since: Instant) {
        let silent: Vec<_> =
            self.all.iter().filter(|(_, relay)| relay.seen_at < since).map(|(key, _)| *key).collect();
        for key in silent {
            self.forget(&key);
        }
        let over: Vec<_> =
            self.all.iter().filter(|(_, relay)| relay.is_over(now)).map(|(key, _)| *key).collect();
        for key in over {
            self.forget(&key);
        }
    }

    fn forget(&mut self, key: &FlowKey) {
        let Some(relay) = self.all.remove(key) else { return };
        self.unanswered.remove(&(relay.made_at, *key));
        if let Some(due) = relay.due {
            self.deadlines.remove(&(due, *key));
        }
    }

    /// Gives up the oldest that nobody has answered, where there is one. Its opener asks again.
    pub(super) fn give_up_one(&mut self) -> bool {
        let oldest = self.unanswered.first().copied();
        oldest.is_some_and(|(_, key)| {
            self.forget(&key);
            true
        })
    }

    /// After a change: both sides may have something to send.
    fn settle(&mut self, now: Instant, key: FlowKey) {
        let Some(relay) = self.all.get_mut(&key) else { return };
        for (half, waiting) in relay.halves.iter_mut().zip(&mut self.waiting) {
            if !std::mem::replace(&mut half.is_waiting, true) {
                waiting.push_back(key);
            }
        }
        self.file(now, key);
    }

    fn file(&mut self, now: Instant, key: FlowKey) {
        let Some(relay) = self.all.get_mut(&key) else { return };
        if relay.is_over(now) {
            return self.forget(&key);
        }
        if relay.syn.is_none() {
            self.unanswered.remove(&(relay.made_at, key));
        }
        let due = relay.deadline();
        if due == relay.due {
            return;
        }
        if let Some(old) = relay.due {
            self.deadlines.remove(&(old, key));
        }
        relay.due = due;
        self.deadlines.extend(due.map(|due| (due, key)));
    }
}

/// After every flow of one instant.
const LAST: FlowKey = FlowKey { mobile: LAST_SOCKET, fixed: LAST_SOCKET };
const LAST_SOCKET: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::from_bits(u128::MAX)), u16::MAX);

#[cfg(test)]
mod tests;
