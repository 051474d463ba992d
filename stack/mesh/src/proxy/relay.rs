//! Flows that are cut in two: each end talks to a TCP of ours that has the other end's address.
//!
//! Data of one end is acknowledged before the other end has it. P2 and P3 do not hold here, and such a flow ends with
//! its proxy. The proxy limits its memory, since all flows share it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hopwise_core::agent::{AgentMaker, Side};
use hopwise_core::endpoint::{
    ConnId, ConnectOptions, Cookies, EndpointConfig, Event, EventKind, LinkConfig, ListenOptions, Memory,
    RecvError, Route,
};
use hopwise_core::ip::Prefix;
use hopwise_core::tcp::{BufferLimits, CloseReason, TcpConfig};
use hopwise_core::trace::StateName::{self, Closed, SynSent, TimeWait};
use hopwise_core::wire::{Checksums, Flags};
use hopwise_core::{Endpoint, Instant, LinkId, Machine, NextHop, Payload, Rx, Seq, Transmit};

use super::entries::ProxyEntry;
use super::read::{FlowKey, parse, without_data};

/// Each half has one link: the side that it faces.
const LINK: LinkId = LinkId(0);
const MTU: u16 = 1500;
/// A closing half may still exist when its successor opens.
const MOST_CONNECTIONS: usize = 4;

/// The parameters of both halves.
#[derive(Clone, Copy, Debug)]
pub(super) struct HalfParameters {
    /// The most that each half holds in each direction.
    pub(super) buffer_bytes: u32,
    pub(super) key: [u8; 32],
    pub(super) checksums: Checksums,
}

impl HalfParameters {
    fn tcp(&self) -> Arc<TcpConfig> {
        let limits = |limits: BufferLimits| {
            let max = self.buffer_bytes;
            BufferLimits { initial: limits.initial.min(max), max }
        };
        let tcp = TcpConfig::modern();
        Arc::new(TcpConfig {
            send_buffer: limits(tcp.send_buffer),
            recv_buffer: limits(tcp.recv_buffer),
            // Data that one end sent at once goes on at once.
            nagle: false,
            ..tcp
        })
    }
}

/// SYNs that the other end has yet to answer.
#[derive(Debug)]
struct Unanswered {
    /// The opener's, without its data.
    syn: Vec<u8>,
    /// The number of the other end's own SYN, whose relay gave way to this one. Either of both SYNs may be forged.
    displaced: Option<Seq>,
    /// The other end has answered as one that opens the connection itself.
    is_simultaneous: bool,
    /// Our newest one to the other end.
    far_syn: Option<(Transmit, Vec<u8>)>,
    /// The opener has sent a SYN since ours last left.
    owes_syn: bool,
}

#[derive(Debug)]
pub(super) struct Relay {
    opener: Side,
    opened: Seq,
    /// Until the other end has answered our SYN. Most connections are past it, and spare its room.
    unanswered: Option<Box<Unanswered>>,
    /// The last time that the opener spoke.
    spoke_at: Instant,
    halves: [Half; 2],
    /// Both ends have ended it, or it has ended for both.
    is_ending: bool,
    pub(super) seen_at: Instant,
    /// The last time that bytes went from one half to the other.
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

fn from_address(local: SocketAddr) -> ConnectOptions {
    let (local_ip, local_port) = (Some(local.ip()), Some(local.port()));
    ConnectOptions { local_ip, local_port, ..ConnectOptions::default() }
}

impl Relay {
    /// Opens a connection to the other end, after one end has sent a SYN. `None`: that end cannot be reached.
    pub(super) fn open(
        now: Instant,
        from: Side,
        (key, opened): (FlowKey, Seq),
        syn: &[u8],
        making: &HalfParameters,
        makers: [Box<dyn AgentMaker>; 2],
    ) -> Option<Relay> {
        let [one, other] = makers;
        let tcp = making.tcp();
        let facing_fixed = Half::new(key.mobile.ip(), making, Arc::clone(&tcp), one)?;
        let facing_mobile = Half::new(key.fixed.ip(), making, tcp, other)?;
        let halves = [facing_fixed, facing_mobile];
        let syn = without_data(syn)?;
        let (displaced, far_syn) = (None, None);
        let unanswered = Unanswered { syn, displaced, is_simultaneous: false, far_syn, owes_syn: true };
        let mut relay = Relay {
            opener: from,
            opened,
            unanswered: Some(Box::new(unanswered)),
            spoke_at: now,
            halves,
            is_ending: false,
            seen_at: now,
            moved_at: now,
        };
        let (opener, to) = (address(&key, from), address(&key, from.other()));
        let far = relay.half(from.other());
        far.conn = Some(far.endpoint.connect(now, to, &from_address(opener)).ok()?);
        Some(relay)
    }

    /// The number of the opener's SYN, if the other end has not answered and now sends a SYN itself.
    pub(super) fn is_displaced_by(&self, from: Side) -> Option<Seq> {
        let unanswered = self.unanswered.as_ref().filter(|_| from != self.opener)?;
        unanswered.displaced.is_none().then_some(self.opened)
    }

    /// The relay of the other end's own SYN, which had this number, gave way to this one.
    pub(super) fn displaces(&mut self, displaced: Option<Seq>) {
        if let Some(unanswered) = &mut self.unanswered {
            unanswered.displaced = displaced;
        }
    }

    /// Returns whether this SYN begins another connection with the flow's ports. Any host can forge one, so that it
    /// ends no connection that an end may still need. A half with a connection challenges it (RFC 5961 §4). An honest
    /// end sends it again, and then finds the ports free.
    pub(super) fn gives_way(&mut self, now: Instant, from: Side, (seq, syn): (Seq, &[u8])) -> bool {
        if let Some(unanswered) = &mut self.unanswered {
            if from == self.opener {
                unanswered.owes_syn = true;
                (self.seen_at, self.spoke_at) = (now, now);
            }
            return self.is_displaced_by(from).is_some();
        }
        if self.is_in(from, |state| state == SynSent) {
            // The end that opens the connection too will answer our SYN. A forged one would spoil ours.
            return false;
        }
        if self.opened == seq || self.is_in(from, |state| !matches!(state, Closed | TimeWait)) {
            self.take(now, from, syn);
            return false;
        }
        if !self.is_ending || self.is_between_ends() {
            return false;
        }
        // In TIME-WAIT only a SYN that is not old ends the connection (RFC 6191 §2).
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
        if from == self.opener {
            self.spoke_at = now;
        }
        if from != self.opener && self.is_half_open() {
            self.take_early(now, packet);
        } else if self.unanswered.is_none() || from != self.opener {
            // The opener repeats its SYN until it is answered; before that there is no half to answer it.
            self.half(from).endpoint.handle_packet(now, &Rx::new(LINK, packet));
        }
        self.work(now);
    }

    /// Returns whether the opener has yet to acknowledge our answer. Until then its SYN may be forged. The other end
    /// gets no ACK of its SYN-ACK, so that it sends nothing, as without a proxy.
    fn is_half_open(&self) -> bool {
        !self.is_ending && self.halves[place(self.opener)].conn.is_none()
    }

    /// Takes a packet of the other end while the connection is half-open, without data. Data that comes all the same
    /// is sent again, and would fill the memory for an opener that may not exist.
    fn take_early(&mut self, now: Instant, packet: &[u8]) {
        let Some((_, tcp)) = parse(packet) else { return };
        if !tcp.payload.is_empty() && !tcp.flags.intersects(Flags::SYN | Flags::RST) {
            return;
        }
        let Some(bare) = without_data(packet) else { return };
        if let Some(unanswered) = &mut self.unanswered {
            let is_syn = tcp.flags.contains(Flags::SYN);
            unanswered.is_simultaneous = is_syn && unanswered.displaced == Some(tcp.seq);
        }
        self.half(self.opener.other()).endpoint.handle_packet(now, &Rx::new(LINK, &bare));
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        for half in &mut self.halves {
            half.endpoint.handle_timeout(now);
        }
        self.work(now);
    }

    /// Processes all events and moves bytes between the halves.
    fn work(&mut self, now: Instant) {
        for side in [Side::Fixed, Side::Mobile] {
            while let Some(event) = self.half(side).endpoint.poll_event() {
                self.hear(now, side, event);
            }
        }
        if self.has_lost_its_opener() {
            self.abort(now);
        }
        while self.carry(now, Side::Fixed) | self.carry(now, Side::Mobile) {}
        if self.halves.iter().all(|half| half.has_ended) {
            self.is_ending = true;
            self.halves.iter_mut().for_each(|half| half.let_go(now));
        }
    }

    /// Returns whether the opener refused the answer to its SYN, or never acknowledged it. The half that faces it
    /// forgets such a handshake without an event.
    fn has_lost_its_opener(&self) -> bool {
        let near = &self.halves[place(self.opener)];
        !self.is_ending
            && self.unanswered.is_none()
            && near.conn.is_none()
            && !self.is_in(self.opener, |_| true)
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
                self.unanswered = None;
                self.is_ending = true;
                self.half(side).let_go(now);
                self.half(side.other()).abort(now);
            }
            Event::Connection(..) => {}
        }
    }

    /// The other end has accepted the connection or refused it: the opener gets that answer.
    fn answer(&mut self, now: Instant, is_open: bool) {
        let Some(unanswered) = self.unanswered.take() else { return };
        let Unanswered { syn, is_simultaneous, .. } = *unanswered;
        let near = self.half(self.opener);
        if let Some((ip, tcp)) = parse(&syn).filter(|_| is_open) {
            if is_simultaneous {
                // The other end's SYN was not forged, and the one at hand may be.
                let opener = SocketAddr::new(ip.src, tcp.src_port);
                let options = from_address(SocketAddr::new(ip.dst, tcp.dst_port));
                near.conn = near.endpoint.connect(now, opener, &options).ok();
                return;
            }
            let options = ListenOptions { cookies: Cookies::Never, ..ListenOptions::default() };
            // A port without a listener answers by a RST, which is right then.
            let _ = near.endpoint.listen(Some(ip.dst), tcp.dst_port, options);
        }
        near.endpoint.handle_packet(now, &Rx::new(LINK, &syn));
    }

    /// Moves received bytes from one half to the other; returns whether any moved.
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

    /// Passes on the state of the shared memory.
    pub(super) fn live_by(&mut self, left: Memory) {
        self.halves.iter_mut().for_each(|half| half.endpoint.set_shared_memory(left));
    }

    /// The bytes in its buffers.
    pub(super) fn held(&self) -> usize {
        let buffers: u64 = self.halves.iter().map(|half| half.endpoint.holds().buffer_bytes).sum();
        usize::try_from(buffers).unwrap_or(usize::MAX)
    }

    /// The entry that this relay deserves, given its present one.
    pub(super) fn entry(&self, now: Instant, has: ProxyEntry) -> ProxyEntry {
        let is_open = self.halves.iter().all(|half| half.conn.is_some());
        match has {
            ProxyEntry::Over(_) => has,
            _ if self.is_ending && !self.is_between_ends() => ProxyEntry::Over(now),
            ProxyEntry::Brief(_) if is_open => ProxyEntry::Lasting,
            ProxyEntry::Brief(_) | ProxyEntry::Lasting => has,
        }
    }

    /// Returns whether at least one end may still need the connection.
    fn is_between_ends(&self) -> bool {
        let is_under_way = |state: StateName| state.is_synchronized() && state != TimeWait;
        [Side::Fixed, Side::Mobile].into_iter().any(|side| self.is_in(side, is_under_way))
    }

    pub(super) fn poll_transmit(&mut self, now: Instant, to: Side, packet: &mut Vec<u8>) -> Option<Transmit> {
        let is_answered = self.unanswered.is_none();
        if to != self.opener && !is_answered {
            return self.poll_syn(now, packet);
        }
        if to != self.opener && self.is_half_open() {
            return None;
        }
        self.half(to).endpoint.poll_transmit(now, LINK, Payload::Inline, packet)
    }

    /// Our SYN leaves as often as the opener's comes, as without a proxy: that may be forged.
    fn poll_syn(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Transmit> {
        let mut syn = Vec::new();
        let (unanswered, far) = (self.unanswered.as_mut()?, &mut self.halves[place(self.opener.other())]);
        while let Some(transmit) = far.endpoint.poll_transmit(now, LINK, Payload::Inline, &mut syn) {
            unanswered.far_syn = Some((transmit, std::mem::take(&mut syn)));
        }
        let (transmit, syn) = unanswered.far_syn.as_ref().filter(|_| unanswered.owes_syn)?;
        packet.extend_from_slice(syn);
        unanswered.owes_syn = false;
        Some(*transmit)
    }

    /// Returns whether the opener has begun the connection and then said nothing for so long.
    pub(super) fn has_no_opener(&self, now: Instant, silence: Duration) -> bool {
        let is_begun = self.unanswered.is_some() || self.is_half_open();
        is_begun && now.since(self.spoke_at) >= silence
    }

    /// Drops its data, and resets both ends.
    pub(super) fn abort(&mut self, now: Instant) {
        self.halves.iter_mut().for_each(|half| half.abort(now));
        self.unanswered = None;
        self.is_ending = true;
    }

    /// Returns whether it has ended. Packets may still leave then.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.unanswered.is_none() && self.halves.iter().all(|half| half.is_over(now))
    }
}

#[cfg(test)]
mod tests;

// One TCP of a flow that is cut in two.

/// A TCP that faces one side and stands for the other.
#[derive(Debug)]
struct Half {
    endpoint: Endpoint,
    conn: Option<ConnId>,
    /// The other half has all received data, and the end of it.
    has_ended: bool,
}

impl Half {
    /// A half with the address of `of`.
    fn new(
        of: IpAddr,
        making: &HalfParameters,
        tcp: Arc<TcpConfig>,
        maker: Box<dyn AgentMaker>,
    ) -> Option<Half> {
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
            // It may have ended already.
            let _ = self.endpoint.abort(now, conn);
        }
    }

    /// Closes this half: it continues by itself until all its data has arrived.
    fn let_go(&mut self, now: Instant) {
        if let Some(conn) = self.conn {
            // It may have been closed before.
            let _ = self.endpoint.close(now, conn);
        }
    }

    /// Returns whether its connection is gone.
    fn is_over(&self, now: Instant) -> bool {
        self.conn.is_none_or(|conn| self.endpoint.info(now, conn).is_err())
    }
}
