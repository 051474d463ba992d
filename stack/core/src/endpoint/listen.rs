//! Passive opens: listeners with bounded queues, and SYN cookies (RFC 4987 §3.6) when a queue is full.

use std::net::SocketAddr;
use std::sync::Arc;

use super::events::News;
use super::options::{Cookies, ListenOptions, SynAck};
use super::rules::{Choice, Direction};
use super::swept::Swept;
use super::table::Table;
use super::{ConnId, ListenerId};
use super::{Endpoint, input::Incoming};
use crate::ip::Taken;
use crate::secrets::{COOKIE_LIFE, CookieFlow, CookieOptions, cookie_timestamp};
use crate::tcp::connection::{Connection, CookieOpening, open_passive, own_shift};
use crate::tcp::cx::Cx;
use crate::tcp::{Flow, TcpConfig};
use crate::trace::{DropReason, Scarce};
use crate::wire::{Flags, TcpOptions, TcpView, Timestamps};
use crate::{Instant, Moment, Seq};

/// The least distance by which a new connection's numbers lie above those of the connection that it follows.
const BEYOND: u32 = 1 << 17;

/// By then the SYN-ACK has been sent twice, and the answer has had two seconds.
const MAY_BE_ANSWERED_MS: u32 = 3000;

/// Stands for all ports that have no listener of their own.
pub(super) const EVERY_PORT: u16 = 0;

pub(super) struct Listener {
    pub(super) id: ListenerId,
    choice: Choice,
    options: ListenOptions,
    half_open: usize,
    /// The half-open connections, the oldest first.
    opening: Swept<ConnId>,
    /// The number of entries of `queue` that can still be accepted.
    waiting: usize,
    queue: Swept<ConnId>,
    /// Queued announcements; never more than connections that waited at once.
    announced: usize,
    /// The time of the last cookie. Cookies that come long after it are guesses, and are ignored.
    cookie_sent_at: Moment,
}

impl Listener {
    pub(super) fn new(id: ListenerId, choice: Choice, options: ListenOptions) -> Listener {
        Listener {
            id,
            choice,
            options,
            half_open: 0,
            opening: Swept::new(),
            waiting: 0,
            queue: Swept::new(),
            announced: 0,
            cookie_sent_at: Moment::NEVER,
        }
    }

    /// The oldest handshake, unless it may still be answered.
    fn overdue_handshake(&mut self, now: Instant, table: &Table) -> Option<u32> {
        loop {
            let oldest = self.opening.pop_front()?;
            let entry = table.get(oldest.slot).filter(|_| table.is_half_open(oldest));
            let Some(entry) = entry else { continue };
            self.opening.put_first(oldest);
            return (entry.footprint.age_ms(now) >= MAY_BE_ANSWERED_MS).then_some(oldest.slot);
        }
    }

    /// Returns whether a cookie of the listener may still come back.
    fn expects_cookies(&self, now: Instant) -> bool {
        self.cookie_sent_at.get().is_some_and(|at| now.since(at) <= COOKIE_LIFE)
    }
}

impl Endpoint {
    /// The listener for a segment: a listener at that address comes before one at all addresses.
    pub(super) fn listener_for(&self, local: SocketAddr) -> Option<&Listener> {
        let at_address = self.listeners.get(&(local.port(), Some(local.ip())));
        let at_port = at_address.or_else(|| self.listeners.get(&(local.port(), None)));
        at_port.or_else(|| self.listeners.get(&(EVERY_PORT, None)))
    }

    /// The handshakes of each listener, and the most that it may have.
    pub(super) fn handshakes(&self) -> impl Iterator<Item = (usize, usize)> {
        self.listeners.values().map(|listener| (listener.half_open, listener.options.half_open))
    }

    fn listener_mut(&mut self, id: ListenerId) -> Option<&mut Listener> {
        self.listeners.values_mut().find(|listener| listener.id == id)
    }

    /// Takes one announcement. Returns whether it is still true.
    pub(super) fn hear_of_waiting(&mut self, id: ListenerId) -> bool {
        let Some(listener) = self.listener_mut(id) else { return false };
        listener.announced = listener.announced.saturating_sub(1);
        listener.waiting > 0
    }

    pub(super) fn take_waiting(&mut self, id: ListenerId) -> Option<ConnId> {
        loop {
            let next = self.listener_mut(id)?.queue.pop_front()?;
            if self.table.resolve(next).is_some() {
                let listener = self.listener_mut(id)?;
                listener.waiting = listener.waiting.saturating_sub(1);
                return Some(next);
            }
        }
    }

    /// RFC 9293 §3.10.7.2.
    pub(super) fn handle_in_listen(
        &mut self,
        incoming: &Incoming<'_>,
        id: ListenerId,
    ) -> Result<(), DropReason> {
        let now = incoming.now;
        let segment = &incoming.arrived.segment;
        if segment.flags.contains(Flags::RST) {
            return Err(DropReason::TcpNoConnection);
        }
        if segment.flags.contains(Flags::ACK) {
            return self.take_cookie_ack(incoming, id);
        }
        if !segment.flags.contains(Flags::SYN) {
            return Err(DropReason::NoAck);
        }
        let Some(listener) = self.listener_mut(id) else { return Err(DropReason::TcpNoConnection) };
        if listener.waiting >= listener.options.backlog {
            return Err(DropReason::AcceptQueueFull);
        }
        let on_demand = listener.options.syn_ack == SynAck::OnDemand;
        let cookies = if on_demand { Cookies::Never } else { listener.options.cookies };
        let has_no_place = listener.half_open >= listener.options.half_open;
        let peer = incoming.flow.remote.ip();
        if self.account.is_overdrawn() {
            if cookies == Cookies::Never || !self.will_have_memory_for(now, peer) {
                return Err(DropReason::NoMemory);
            }
            return self.answer_with_cookie(incoming, id);
        }
        let is_full = has_no_place && !self.oldest_handshake_gives_way(now, id);
        let gets_cookie = match cookies {
            Cookies::Always => true,
            Cookies::WhenFull => is_full || !self.has_place(now) && self.will_have_place_for(now, peer),
            Cookies::Never if is_full => return Err(DropReason::SynQueueFull),
            Cookies::Never => false,
        };
        if gets_cookie { self.answer_with_cookie(incoming, id) } else { self.open_half(incoming, id) }
    }

    /// The initial number. It lies above all numbers of a connection that it follows: a fast connection outruns the
    /// clock of initial numbers (RFC 9293 §3.6.1).
    pub(super) fn first_number(&self, now: Instant, flow: &Flow, above: Option<Seq>) -> Seq {
        let by_clock = self.secrets.isn(now, flow.local, flow.remote);
        above.map_or(by_clock, |above| by_clock.max(above + BEYOND))
    }

    fn open_half(&mut self, incoming: &Incoming<'_>, id: ListenerId) -> Result<(), DropReason> {
        let now = incoming.now;
        let iss = self.first_number(now, &incoming.flow, incoming.above);
        let slot = self.insert_incoming(incoming, id, iss, |cx, conn| {
            open_passive(cx, conn, incoming.arrived.segment);
        })?;
        let waits =
            self.listener_mut(id).is_some_and(|listener| listener.options.syn_ack == SynAck::OnDemand);
        if waits {
            self.withhold(slot);
        }
        self.touch(now, slot);
        Ok(())
    }

    fn insert_incoming(
        &mut self,
        incoming: &Incoming<'_>,
        id: ListenerId,
        iss: Seq,
        open: impl FnOnce(&mut Cx<'_>, &mut Connection),
    ) -> Result<u32, DropReason> {
        let now = incoming.now;
        if !self.has_place(now) {
            return Err(DropReason::TableFull);
        }
        let flow = incoming.flow;
        let link = self.links.towards(flow.remote.ip()).unwrap_or(incoming.link);
        let (choice, tcp) = match self.listener_mut(id) {
            Some(listener) => (listener.choice.clone(), listener.options.tcp.clone()),
            None => return Err(DropReason::TcpNoConnection),
        };
        let chosen = self.rules.resolve(&flow, Direction::Incoming, &choice);
        let mut opening = self.opening(now, flow, link, &chosen, iss, tcp);
        opening.source_route = incoming.arrived.source_route.cloned().map(Box::new);
        let slot = self.insert(now, opening, (chosen, link), Some(id), open);
        let conn = self.id_of(slot);
        let Endpoint { listeners, table, .. } = self;
        if let Some(listener) = listeners.values_mut().find(|listener| listener.id == id) {
            listener.half_open += 1;
            listener.opening.push_back(conn, |id| table.is_half_open(*id));
        }
        Ok(slot)
    }

    /// Frees a place for a handshake: the oldest one gives way, unless it may still be answered. Forged addresses never
    /// answer; they would fill the queue for as long as a SYN-ACK is retransmitted.
    fn oldest_handshake_gives_way(&mut self, now: Instant, id: ListenerId) -> bool {
        let Endpoint { listeners, table, .. } = self;
        let listener = listeners.values_mut().find(|listener| listener.id == id);
        let overdue = listener.and_then(|listener| listener.overdue_handshake(now, table));
        if let Some(slot) = overdue {
            self.give_way(now, slot, Scarce::Handshakes);
        }
        overdue.is_some()
    }

    /// A handshake of any listener that no longer may be answered.
    pub(super) fn overdue_handshake(&mut self, now: Instant) -> Option<u32> {
        let Endpoint { listeners, table, .. } = self;
        listeners.values_mut().find_map(|listener| listener.overdue_handshake(now, table))
    }

    /// Moves a connection to those that wait for `accept`.
    pub(super) fn offer(&mut self, slot: u32) {
        let Some(entry) = self.table.get_mut(slot) else { return };
        entry.is_half_open = false;
        let Some(id) = entry.listener else { return };
        let conn = entry.id;
        let Endpoint { listeners, table, .. } = self;
        if let Some(listener) = listeners.values_mut().find(|listener| listener.id == id) {
            listener.half_open = listener.half_open.saturating_sub(1);
            listener.waiting += 1;
            listener.queue.push_back(conn, |id| table.resolve(*id).is_some());
            if listener.announced < listener.waiting {
                listener.announced += 1;
                self.push_news(News::Listener(id));
            }
        }
    }

    /// Frees the place of a connection that was forgotten before it was accepted.
    pub(super) fn leave_listener(&mut self, slot: u32) {
        let Some(entry) = self.table.get(slot) else { return };
        let (is_half_open, id) = (entry.is_half_open, entry.listener);
        let Some(listener) = id.and_then(|id| self.listener_mut(id)) else { return };
        if is_half_open {
            listener.half_open = listener.half_open.saturating_sub(1);
        } else {
            listener.waiting = listener.waiting.saturating_sub(1);
        }
    }

    /// Answers a SYN and keeps nothing: our initial number contains the state.
    fn answer_with_cookie(&mut self, incoming: &Incoming<'_>, id: ListenerId) -> Result<(), DropReason> {
        let (now, flow, syn) = (incoming.now, incoming.flow, &incoming.arrived.segment);
        let cookie = cookie_flow(&flow, syn.seq);
        if self.cookies.take(now, &self.secrets, &cookie) == Taken::Refused {
            return Err(DropReason::SynRateLimited);
        }
        if let Some(listener) = self.listener_mut(id) {
            listener.cookie_sent_at = Moment::at(now);
        }
        let config = Arc::clone(&self.config.tcp);
        let link = self.links.towards(flow.remote.ip()).unwrap_or(incoming.link);
        let headers = if flow.remote.is_ipv4() { 40 } else { 60 };
        let own_mss = self.links.config(link).mtu.saturating_sub(headers);
        let default_mss = if flow.remote.is_ipv4() { 536 } else { 1220 };
        let seq = cookie.encode(&self.secrets, now, syn.options.mss.unwrap_or(default_mss));
        let offered = cookie_options(&config, syn);
        let options = TcpOptions {
            mss: Some(own_mss),
            window_scale: offered.and_then(|offered| offered.wscale).map(|_| own_shift(&config)),
            sack_permitted: offered.is_some_and(|offered| offered.sack),
            timestamps: syn.options.timestamps.zip(offered).map(|(theirs, offered)| Timestamps {
                value: cookie_timestamp(self.ts_clock(now, &flow), offered),
                echo: theirs.value,
            }),
            ..TcpOptions::default()
        };
        let mut flags = Flags::SYN | Flags::ACK;
        if offered.is_some_and(|offered| offered.ecn) {
            flags |= Flags::ECE;
        }
        let window = u16::try_from(config.recv_buffer.initial).unwrap_or(u16::MAX);
        self.send_bare(&flow, link, (seq, syn.seq + 1), (flags, window), &options)
    }

    fn ts_clock(&self, now: Instant, flow: &Flow) -> u32 {
        now.millis_u32().wrapping_add(self.secrets.ts_offset(flow.local, flow.remote))
    }

    /// Returns whether an ACK answers a cookie although its connection is half open. The first copy of the SYN got the
    /// cookie, the second one a place. The peer may go on from either answer.
    pub(super) fn is_cookie_of_half_open(&self, slot: u32, incoming: &Incoming<'_>) -> bool {
        let is_half_open = self.table.get(slot).is_some_and(|entry| entry.is_half_open);
        is_half_open && self.cookie_of(incoming).is_some()
    }

    /// The MSS in the cookie of an ACK, if the listener may have sent one.
    fn cookie_of(&self, incoming: &Incoming<'_>) -> Option<u16> {
        let (now, flow, ack) = (incoming.now, incoming.flow, &incoming.arrived.segment);
        let listener = self.listener_for(flow.local)?;
        let is_answer = ack.flags.contains(Flags::ACK) && !ack.flags.intersects(Flags::SYN | Flags::RST);
        let expects = listener.expects_cookies(now) && is_answer;
        let cookie = cookie_flow(&flow, ack.seq - 1);
        expects.then(|| cookie.decode(&self.secrets, now, ack.ack - 1)).flatten()
    }

    /// Handles an ACK without a connection: it may contain a cookie.
    fn take_cookie_ack(&mut self, incoming: &Incoming<'_>, id: ListenerId) -> Result<(), DropReason> {
        let (now, ack) = (incoming.now, &incoming.arrived.segment);
        let cookie = ack.ack - 1;
        let Some(mss) = self.cookie_of(incoming) else {
            self.refuse(incoming)?;
            return Err(DropReason::BadCookie);
        };
        if self.listener_mut(id).is_none_or(|l| l.waiting >= l.options.backlog) {
            return Err(DropReason::AcceptQueueFull);
        }
        // Another connection may give its memory or its place now: the cookie proves the address.
        let peer = incoming.flow.remote.ip();
        if !self.has_memory_for(now, peer) {
            return Err(DropReason::NoMemory);
        }
        let echoed = ack.options.timestamps.map(|ts| CookieOptions::decode(ts.echo));
        let opening = CookieOpening {
            mss,
            window_scale: echoed.and_then(|options| options.wscale),
            sack: echoed.is_some_and(|options| options.sack),
            ecn: echoed.is_some_and(|options| options.ecn),
        };
        if !self.has_place_for(now, peer) {
            return Err(DropReason::TableFull);
        }
        let slot = self.insert_incoming(incoming, id, cookie, |cx, conn| opening.open(cx, conn, ack))?;
        self.deliver_segment(now, slot, incoming.link, incoming.arrived);
        Ok(())
    }
}

fn cookie_flow(flow: &Flow, peer_isn: Seq) -> CookieFlow {
    CookieFlow { local: flow.local, remote: flow.remote, peer_isn }
}

/// The part of the SYN's offer that a cookie can carry: none without timestamps.
fn cookie_options(config: &TcpConfig, syn: &TcpView<'_>) -> Option<CookieOptions> {
    syn.options.timestamps.filter(|_| config.timestamps).map(|_| CookieOptions {
        wscale: syn.options.window_scale.filter(|_| config.window_scale),
        sack: config.sack && syn.options.sack_permitted,
        ecn: config.ecn && syn.flags.contains(Flags::ECE | Flags::CWR),
    })
}
