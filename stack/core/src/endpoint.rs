//! A host: connections, listeners, UDP sockets and ICMP over one or more links, as one [`Machine`].
//!
//! Invariants
//! - E1: the timer heap holds each connection's own deadline, or an earlier instant at which it is looked at.
//! - E2: a connection that may have a segment to send is in its link's queue.
//! - E3: everything that grows with received packets is bounded.

mod api;
mod bounds;
mod config;
mod cookie_rate;
mod data;
mod ensemble;
mod errors;
mod events;
mod icmp;
mod input;
mod links;
mod listen;
mod options;
mod path_seam;
mod rules;
mod swept;
mod table;
mod udp;
mod withheld;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::net::IpAddr;

pub use bounds::{Bounds, Held, Memory};
pub use config::{AnswersFor, EndpointConfig, LinkConfig, Neighbours, Offload, Route, SourceRoutes};
pub use errors::{AbortError, ConnectError, ListenError, RecvError, SendError};
pub use events::{Event, EventKind};
pub use options::{ConnectOptions, Cookies, ListenOptions, SynAck};
pub use path_seam::PathSeam;
pub use rules::{AgentChoice, Direction, Match, Rule};
pub use udp::UdpSendError;

use crate::agent::AgentMaker;
use crate::ip::{PathMtuCache, Reassembler, TokenBucket, UdpSockets};
use crate::secrets::{PortPicker, Secrets};
use crate::tcp::AckMerge;
use crate::tcp::connection::Left;
use crate::tcp::cx::Cx;
use crate::timer_heap::TimerHeap;
use crate::trace::{DropReason, Totals, TraceEvent, TraceKind, TraceRing};
use crate::{Instant, LinkEvent, LinkId, Machine, Payload, Rx, Seq, Transmit};

use cookie_rate::CookieRate;
use links::Links;
use listen::Listener;
use rules::Rules;
use swept::Swept;
use table::{Owner, Table};

/// Echo requests that are answered in a second.
const ECHO_PER_SECOND: u32 = 100;

/// A host. A driver feeds it packets and time; after each call of a program, the driver polls it for packets.
pub struct Endpoint {
    config: EndpointConfig,
    ack_merge: AckMerge,
    rules: Rules,
    maker: Box<dyn AgentMaker>,
    secrets: Secrets,
    ports: PortPicker,
    table: Table,
    account: bounds::Account,
    /// Listeners by port, and by address if one is given.
    listeners: BTreeMap<(u16, Option<IpAddr>), Listener>,
    next_listener: u32,
    links: Links,
    timers: TimerHeap,
    ensembles: ensemble::Ensembles,
    news: Swept<events::News>,
    udp: UdpSockets,
    fragments: Reassembler,
    path_mtus: PathMtuCache,
    icmp_errors: TokenBucket,
    echoes: TokenBucket,
    cookies: CookieRate,
    trace: TraceRing,
    /// The slot, start and length of the payload that the last polled packet left in the send buffer.
    lent: Option<(u32, Seq, u32)>,
    packets_in: u64,
    packets_out: u64,
    connections: u32,
}

impl Endpoint {
    /// Fails on rules whose specs the maker does not know.
    pub fn new(
        config: EndpointConfig,
        maker: Box<dyn AgentMaker>,
    ) -> Result<Endpoint, Box<dyn Error + Send + Sync>> {
        let rules = Rules::new(&config.rules, &config.agents, &*maker)?;
        let secrets = Secrets::new(config.key);
        Ok(Endpoint {
            ack_merge: config.ack_merge(),
            rules,
            maker,
            ports: PortPicker::new(config.ports),
            table: Table::new(secrets.keyed_state()),
            account: bounds::Account::new(config.bounds, secrets.keyed_state()),
            secrets,
            listeners: BTreeMap::new(),
            next_listener: 0,
            links: Links::new(&config),
            timers: TimerHeap::new(),
            ensembles: ensemble::Ensembles::new(),
            news: Swept::new(),
            udp: UdpSockets::new(config.udp),
            fragments: Reassembler::new(config.fragments),
            path_mtus: PathMtuCache::default(),
            icmp_errors: TokenBucket::for_icmp_errors(),
            echoes: TokenBucket::new(ECHO_PER_SECOND, ECHO_PER_SECOND),
            cookies: CookieRate::new(config.cookies_per_second),
            trace: TraceRing::new(config.trace_events),
            lent: None,
            packets_in: 0,
            packets_out: 0,
            connections: 0,
            // The links hold these.
            config: EndpointConfig { links: Vec::new(), routes: Vec::new(), ..config },
        })
    }

    /// Sets the rules by which new connections get their agents; existing ones keep theirs. Rules with a spec that the
    /// maker does not know change nothing.
    pub fn set_rules(&mut self, rules: Vec<Rule>) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.rules = Rules::new(&rules, &self.config.agents, &*self.maker)?;
        self.config.rules = rules;
        Ok(())
    }

    /// The number of packets dropped for this reason.
    pub fn drops(&self, reason: DropReason) -> u64 {
        self.trace.drops(reason)
    }

    /// Counts of segments sent and lost since the start, connections that are gone included.
    pub fn totals(&self) -> &Totals {
        self.trace.totals()
    }

    /// Trace events that were overwritten before they were drained.
    pub fn forgotten_events(&self) -> u64 {
        self.trace.forgotten()
    }

    /// The size of the table: half-open connections count, and those that their program has left.
    pub fn connections(&self) -> usize {
        self.table.len()
    }

    /// Bytes of heap and state of one connection, without its agents.
    pub fn allocated(&self, id: ConnId) -> Option<usize> {
        self.table.named(id).map(|entry| entry.conn.allocated() + size_of::<table::Entry>())
    }

    fn dropped(&mut self, now: Instant, reason: DropReason) {
        self.trace.push(now, 0, self.packets_in, TraceKind::Dropped(reason));
    }

    /// Must follow every change of a connection. Files its deadline, queues its segments and events, and forgets it
    /// when it is over.
    fn touch(&mut self, now: Instant, slot: u32) {
        self.file_and_queue(now, slot);
        self.make_room(now);
    }

    fn file_and_queue(&mut self, now: Instant, slot: u32) {
        let Some(mut entry) = self.table.get_mut(slot) else { return };
        if let Some(turn) = entry.conn.turn() {
            self.take_turn_of_member(now, slot, turn);
            let Some(again) = self.table.get_mut(slot) else { return };
            entry = again;
        }
        if let Some((class, bytes)) = entry.changed_footprint(now) {
            self.account.change(&mut self.table, slot, class, bytes);
            let Some(again) = self.table.get_mut(slot) else { return };
            entry = again;
        }
        let has_something_to_say = !entry.conn.falls_silent(now) && !entry.is_silenced();
        self.timers.move_forward(slot, entry.conn.deadline());
        let (link, id) = (entry.link as usize, entry.id);
        let (hands_over, is_spent) = (entry.has_shaken_hands(), entry.conn.is_spent());
        let opens = entry.conn.state().is_opening();
        let joins_queue = has_something_to_say && !std::mem::replace(&mut entry.is_queued, true);
        let has_news = entry.begins_to_report();
        if joins_queue {
            self.links.queue(link, id, opens, |id| self.table.named(*id).is_some());
        }
        if has_news {
            self.push_news(events::News::Connection(id));
        }
        if hands_over {
            self.offer(slot);
        }
        if is_spent {
            self.forget_if_spent(now, slot);
        }
    }

    /// Files a TIME-WAIT whose ACK has left; now it counts, and may be forgotten.
    fn file_last_ack(&mut self, now: Instant, slot: u32) {
        let Some(entry) = self.table.get_mut(slot).filter(|entry| entry.footprint.owes_last_ack()) else {
            return;
        };
        if let Some((class, bytes)) = entry.changed_footprint(now) {
            self.account.change(&mut self.table, slot, class, bytes);
            self.make_room(now);
        }
    }

    /// Handles a connection that is over: its sockets are free, but the application may still read its data.
    fn forget_if_spent(&mut self, now: Instant, slot: u32) {
        match self.table.get(slot).filter(|entry| entry.conn.is_spent()).map(|entry| entry.owner) {
            None => {}
            // Unread data stays readable; for the peer the connection is gone.
            Some(Owner::Application) => self.table.detach(slot),
            Some(Owner::Listener | Owner::Nobody) => self.forget(now, slot),
        }
    }

    fn forget(&mut self, now: Instant, slot: u32) {
        self.leave_ensemble(now, slot);
        self.timers.set(slot, Instant::FAR);
        self.leave_listener(slot);
        self.account.strike(&mut self.table, slot);
        self.table.remove(slot);
    }

    fn on_connection_timeout(&mut self, now: Instant, slot: u32) {
        let Some(entry) = self.table.get_mut(slot) else { return };
        let mut cx = Cx::new(now, entry.conn.number, 0, self.account.memory, &mut self.trace);
        let was_due = entry.conn.handle_timeout(&mut cx);
        assert!(entry.conn.deadline() > now, "E1: a deadline that stays due never ends");
        self.timers.set(slot, entry.conn.deadline());
        if was_due {
            self.touch(now, slot);
        }
    }

    /// Writes one segment, or a bundle, of the next connection in the link's queue.
    fn transmit_segment(
        &mut self,
        now: Instant,
        link: usize,
        payload: Payload,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        while let Some(id) = self.links.next_queued(link) {
            let slot = id.slot;
            let named = self.table.get_mut(slot).filter(|entry| entry.id == id);
            let Some(entry) = named else { continue };
            let help = match payload {
                Payload::Lent => self.links.lending(link),
                Payload::Inline => *self.links.help(link),
            };
            let packet = self.packets_out + 1;
            let mut cx = Cx::new(now, entry.conn.number, packet, self.account.memory, &mut self.trace);
            let left = entry.conn.poll_transmit(&mut cx, &help, out);
            entry.is_queued = matches!(left, Left::Packet { is_last: false, .. });
            self.timers.move_forward(slot, entry.conn.deadline());
            let (is_queued, remote) = (entry.is_queued, entry.conn.ends().remote.ip);
            let turn = entry.conn.turn();
            if is_queued {
                self.links.queue_again(link, id);
            } else {
                let is_spent = entry.conn.is_spent();
                // The segments that left may have made room.
                if entry.begins_to_report() {
                    self.push_news(events::News::Connection(id));
                }
                if is_spent {
                    self.forget_if_spent(now, slot);
                }
            }
            if let Left::Packet { lent, segment_bytes, .. } = left {
                self.lent = lent.map(|(seq, len)| (slot, seq, len));
                if let Some(turn) = turn {
                    self.take_turn_of_member(now, slot, turn);
                }
                self.file_last_ack(now, slot);
                self.packets_out += 1;
                return Some(self.links.transmit(link, remote, segment_bytes, self.packets_out));
            }
        }
        None
    }
}

impl Machine for Endpoint {
    fn handle_packet(&mut self, now: Instant, rx: &Rx<'_>) {
        self.packets_in += 1;
        if let Err(reason) = self.take_packet(now, rx) {
            self.dropped(now, reason);
        }
    }

    fn handle_link_event(&mut self, now: Instant, _link: LinkId, event: &LinkEvent<'_>) {
        self.on_link_event(now, event);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some((due, slot)) = self.timers.peek()
            && due <= now
        {
            self.on_connection_timeout(now, slot);
        }
        self.end_overdue_turns(now);
        self.expire_fragments(now);
    }

    fn poll_transmit(
        &mut self,
        now: Instant,
        link: LinkId,
        payload: Payload,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        self.lent = None;
        let link = self.links.index(link)?;
        if let Some(transmit) = self.links.next_control(link, &mut self.packets_out, out) {
            return Some(transmit);
        }
        if self.udp.is_sending()
            && let Some(transmit) = self.transmit_datagram(link, out)
        {
            return Some(transmit);
        }
        self.transmit_segment(now, link, payload, out)
    }

    fn lent(&self) -> (&[u8], &[u8]) {
        let lent =
            self.lent.and_then(|(slot, seq, len)| Some(self.table.get(slot)?.conn.payload_at(seq, len)));
        lent.unwrap_or_default()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let connections = self.timers.peek().map_or(Instant::FAR, |(at, _)| at);
        let turns = self.ensembles.next_deadline().unwrap_or(Instant::FAR);
        let fragments = self.fragments.next_deadline().unwrap_or(Instant::FAR);
        Some(connections.min(turns).min(fragments)).filter(|at| *at != Instant::FAR)
    }

    fn drain_trace(&mut self, sink: &mut dyn FnMut(&TraceEvent)) {
        self.trace.drain(sink);
    }

    fn keep_trace(&mut self, is_kept: bool) {
        self.trace.keep(is_kept);
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("connections", &self.table.len())
            .field("listeners", &self.listeners.len())
            .finish_non_exhaustive()
    }
}

// Names of connections and listeners.

/// Names a connection. Once the application has released it, the name only serves queries, until the connection has
/// ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId {
    slot: u32,
    generation: u32,
}

impl ConnId {
    /// A small number that only one connection of an endpoint has at a time.
    pub fn slot(self) -> usize {
        self.slot as usize
    }
}

/// Names a listener; numbers are not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(u32);
