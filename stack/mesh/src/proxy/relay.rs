//! Flows that are cut in two: either end speaks to a TCP of ours that bears the other end's name.
//!
//! What comes from one end is acknowledged before the other has it. P2 and P3 do not hold here, and such a flow ends
//! with its proxy. The proxy says how much it may hold, since all flows share one memory.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use hopwise_core::agent::{AgentMaker, Side};
use hopwise_core::endpoint::{
    ConnId, ConnectOptions, Cookies, EndpointConfig, Event, EventKind, LinkConfig, ListenOptions, Memory,
    RecvError, Route,
};
use hopwise_core::ip::Prefix;
use hopwise_core::tcp::{BufferLimits, CloseReason, TcpConfig};
use hopwise_core::trace::StateName::{self, Closed, TimeWait};
use hopwise_core::wire::Checksums;
use hopwise_core::{Endpoint, Instant, LinkId, Machine, NextHop, Payload, Rx, Seq, Transmit};

use super::read::{FlowKey, parse, without_data};
use super::seats::Seat;

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

impl Making {
    fn tcp(&self) -> Arc<TcpConfig> {
        let limits = |limits: BufferLimits| {
            let max = self.buffer_bytes;
            BufferLimits { initial: limits.initial.min(max), max }
        };
        let tcp = TcpConfig::modern();
        Arc::new(TcpConfig {
            send_buffer: limits(tcp.send_buffer),
            recv_buffer: limits(tcp.recv_buffer),
            // What one end sent at once goes on at once.
            nagle: false,
            ..tcp
        })
    }
}

/// A TCP that faces one side and is the other for it.
#[derive(Debug)]
struct Half {
    endpoint: Endpoint,
    conn: Option<ConnId>,
    /// All that came is with the other half, and so is the end of it.
    has_ended: bool,
}

#[derive(Debug)]
pub(super) struct Relay {
    opener: Side,
    opened: Seq,
    /// The opener's SYN without its data, until the other end has answered ours.
    syn: Option<Vec<u8>>,
    halves: [Half; 2],
    /// Both ends have ended it, or it has ended for both.
    is_ending: bool,
    pub(super) seen_at: Instant,
    /// When bytes went from one half to the other last.
    pub(super) moved_at: Instant,
}

pub(super) fn place(side: Side) -> usize {
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
    fn new(of: IpAddr, making: &Making, tcp: Arc<TcpConfig>, maker: Box<dyn AgentMaker>) -> Option<Half> {
        let nowhere = match of {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let link = LinkConfig::wire(LINK.0, MTU, vec![Prefix::host(of)]);
        let config = EndpointConfig {
            routes: vec![Route { to: Prefix::new(nowhere, 0).ok()?, link: LINK, via: NextHop::Link }],
            tcp,
            trace_events: 0,
            most_connections: MOST_CONNECTIONS,
            checksums: making.checksums,
            ..EndpointConfig::new(link, making.key)
        };
        let endpoint = Endpoint::new(config, maker).ok()?;
        Some(Half { endpoint, conn: None, has_ended: false })
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
    pub(super) fn open(
        now: Instant,
        from: Side,
        (key, opened): (FlowKey, Seq),
        syn: &[u8],
        making: &Making,
        makers: [Box<dyn AgentMaker>; 2],
    ) -> Option<Relay> {
        let [one, other] = makers;
        let tcp = making.tcp();
        let facing_fixed = Half::new(key.mobile.ip(), making, Arc::clone(&tcp), one)?;
        let facing_mobile = Half::new(key.fixed.ip(), making, tcp, other)?;
        let halves = [facing_fixed, facing_mobile];
        let syn = Some(without_data(syn)?);
        let is_ending = false;
        let mut relay = Relay { opener: from, opened, syn, halves, is_ending, seen_at: now, moved_at: now };
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

    /// Returns whether this SYN begins another connection with the same ports. Anybody can make one up, so that it ends
    /// nothing for which an end may still wait. A half that has a connection there challenges it (RFC 5961 §4). An
    /// honest end sends it again, and then finds the ports free.
    pub(super) fn gives_way(&mut self, now: Instant, from: Side, (seq, syn): (Seq, &[u8])) -> bool {
        if self.syn.is_some() {
            return false;
        }
        if self.opened == seq || self.is_in(from, |state| !matches!(state, Closed | TimeWait)) {
            self.take(now, from, syn);
            return false;
        }
        if !self.is_ending || self.is_between_ends() {
            return false;
        }
        // In TIME-WAIT only a SYN that is no old one ends the connection (RFC 6191 §2).
        self.half(from).endpoint.handle_packet(now, &Rx::new(LINK, syn));
        !self.is_in(from, |state| state == TimeWait)
    }

    /// Returns whether the half that faces this side has a connection in such a state.
    fn is_in(&self, facing: Side, is_such: impl FnMut(StateName) -> bool) -> bool {
        self.halves[place(facing)].endpoint.states().any(is_such)
    }

    fn half(&mut self, facing: Side) -> &mut Half {
        &mut self.halves[place(facing)]
    }

    pub(super) fn take(&mut self, now: Instant, from: Side, packet: &[u8]) {
        self.seen_at = now;
        // Who opens says so again until he is answered; nobody is there yet to answer.
        if self.syn.is_none() || from != self.opener {
            self.half(from).endpoint.handle_packet(now, &Rx::new(LINK, packet));
        }
        self.work(now);
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
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
            self.is_ending = true;
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
                self.is_ending = true;
                self.half(side).let_go(now);
                self.half(side.other()).abort(now);
            }
            Event::Connection(..) => {}
        }
    }

    /// The other end has taken the connection, or has not: the opener hears of it.
    fn answer(&mut self, now: Instant, is_open: bool) {
        let Some(syn) = self.syn.take() else { return };
        let near = self.half(self.opener);
        if let Some((ip, tcp)) = parse(&syn).filter(|_| is_open) {
            let options = ListenOptions { cookies: Cookies::Never, ..ListenOptions::default() };
            // A port without a listener answers by a RST, which is as true as anything.
            let _ = near.endpoint.listen(Some(ip.dst), tcp.dst_port, options);
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
            self.moved_at = now;
            let _ = source.endpoint.consume(now, inward, u32::try_from(moved).unwrap_or(u32::MAX));
        }
        if !source.has_ended && source.is_at_end(now) {
            source.has_ended = true;
            let _ = sink.endpoint.shutdown(now, outward);
            return true;
        }
        moved > 0
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.halves.iter().filter_map(|half| half.endpoint.poll_timeout()).min()
    }

    /// What is left of the memory for what it holds.
    pub(super) fn live_by(&mut self, left: Memory) {
        self.halves.iter_mut().for_each(|half| half.endpoint.set_shared_memory(left));
    }

    /// What its buffers take.
    pub(super) fn held(&self) -> usize {
        let buffers: u64 = self.halves.iter().map(|half| half.endpoint.holds().buffer_bytes).sum();
        usize::try_from(buffers).unwrap_or(usize::MAX)
    }

    /// Which seat it deserves that has this one.
    pub(super) fn seat(&self, now: Instant, has: Seat) -> Seat {
        let is_open = self.halves.iter().all(|half| half.conn.is_some());
        match has {
            Seat::Over(_) => has,
            _ if self.is_ending && !self.is_between_ends() => Seat::Over(now),
            Seat::Brief(_) if is_open => Seat::Lasting,
            Seat::Brief(_) | Seat::Lasting => has,
        }
    }

    /// At least one end may still wait for something.
    fn is_between_ends(&self) -> bool {
        let is_under_way = |state: StateName| state.is_synchronized() && state != TimeWait;
        [Side::Fixed, Side::Mobile].into_iter().any(|side| self.is_in(side, is_under_way))
    }

    pub(super) fn poll_transmit(&mut self, now: Instant, to: Side, packet: &mut Vec<u8>) -> Option<Transmit> {
        self.half(to).endpoint.poll_transmit(now, LINK, Payload::Inline, packet)
    }

    /// What it holds is lost, and both ends hear of it.
    pub(super) fn abort(&mut self, now: Instant) {
        self.halves.iter_mut().for_each(|half| half.abort(now));
        self.syn = None;
        self.is_ending = true;
    }

    /// Something may still leave of one that is over.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.syn.is_none() && self.halves.iter().all(|half| half.is_over(now))
    }
}

#[cfg(test)]
mod tests;
