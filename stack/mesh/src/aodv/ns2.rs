//! AODV as in ns-2 2.35, which the papers' figures used: its constants, and its differences from RFC 3561.
//!
//! - One kind of number: an unknown route has 0, and one that is down keeps its number raised by one. Numbers do not
//!   wrap.
//! - The rule of the first request: the last known hop count begins at "infinite". The first request therefore crosses
//!   the whole network, and no ring ever begins with 5.
//! - The rule of the defective repair: see `ns2/errors.rs`.
//! - The rule of the purge: a MAC that gives a data packet up takes all others for that next hop out of the queue.
//! - The rule of jitter: a broadcast that is passed on waits up to 10 ms, a node's own leaves at once.
//! - The rule of the ARP gap: packets of the buffer leave 10 ms apart, on the route that was known when it was found.
//! - The rule of data alone: a lost RREP or broadcast says nothing of a link. No hello, no RREP-ACK, no blacklist.

mod discovery;
mod errors;
mod requests;
mod table;

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use hopwise_core::agent::Path;
use hopwise_core::trace::DropReason;
use hopwise_core::{Instant, LinkId, NextHop};

use super::SeenRequest;
use super::messages::{AodvMessage, Extensions, MOST_HOPS, Rrep, Rreq};
use super::settings::Settings;
use super::{PORT, ack_seq, desk};
use crate::on_demand::rank::Wish;
use crate::on_demand::{Desk, path_of, v4};
use crate::protocol::RoutingSetup;
use crate::routing::{
    ControlMessage, Cx, Hop, RoutedPacket, Routing, RoutingOrder, RoutingVerdict, Undelivered,
};
use table::{Flag, Ns2Entry, Ns2Table};

/// The time between two packets that leave the buffer once their route is found.
const BUFFER_GAP: Duration = Duration::from_millis(10);
/// The time after a failed route discovery before the next one for the same destination.
const REST: Duration = Duration::from_secs(10);
/// The lifetime of a reverse route to the originator of a request.
const REVERSE_ROUTE_LIFE: Duration = Duration::from_secs(6);
/// The time between two removals of expired routes.
const SWEEP_INTERVAL: Duration = Duration::from_millis(500);

/// A node that routes as ns-2 does.
#[derive(Debug)]
pub(crate) struct Ns2Aodv {
    settings: Settings,
    desk: Desk,
    seq: u32,
    request_id: u32,
    table: Ns2Table,
    seen: SeenRequest,
    next_sweep: Instant,
}

impl Ns2Aodv {
    pub(super) fn new(settings: Settings, mut setup: RoutingSetup) -> Ns2Aodv {
        // The rules of ns-2 have no signatures.
        setup.trust.keys = None;
        let mut desk = desk(&settings, setup);
        let next_sweep = Instant::ZERO + desk.outbox.chance.up_to(SWEEP_INTERVAL);
        Ns2Aodv {
            desk,
            seq: 0,
            request_id: 1,
            table: Ns2Table::default(),
            seen: SeenRequest::default(),
            next_sweep,
            settings,
        }
    }

    /// Releases the packets that wait for a route, each later than the one before by `apart`.
    fn release(&mut self, now: Instant, dst: Ipv4Addr, apart: Duration) {
        if self.desk.buffer.has(dst)
            && let Some(entry) = self.table.get_mut(dst)
        {
            entry.expires = now + self.settings.active_route_timeout;
            if entry.own_use_until > Instant::ZERO {
                // Own packets that waited use it now.
                entry.own_use_until = entry.expires;
            }
            self.desk.release(now, dst, (entry.link, entry.next_hop), apart);
        }
    }

    /// The rule of jitter.
    fn jittered(&mut self, now: Instant) -> Option<Instant> {
        Some(now + self.desk.outbox.chance.up_to(self.settings.jitter))
    }

    fn tell_neighbour(&mut self, link: LinkId, to: Ipv4Addr, message: &[u8]) {
        self.desk.tell_neighbour(link, to, self.settings.net_diameter, message);
    }

    fn believe(&mut self, peer: Ipv4Addr, extensions: &Extensions<'_>) {
        let said = ack_seq::read(&mut self.desk.ack_seqs, self.desk.own, peer, extensions);
        let hops = self.table.get(peer).and_then(Ns2Entry::usable_hops);
        self.desk.tell_arrivals(peer, said, hops);
    }

    /// Informs connections to a peer when its route comes, goes or gets longer.
    fn report_route(&mut self, dst: Ipv4Addr) {
        if let Some(entry) = self.table.get_mut(dst).filter(|entry| entry.is_ours) {
            let hops = entry.usable_hops();
            self.desk.outbox.report_route(dst, &mut entry.reported_hops, hops);
        }
    }

    /// Every half second: unused routes go down, and destinations of waiting packets are requested again.
    fn sweep(&mut self, cx: &Cx<'_>) {
        let now = cx.now;
        for dst in self.table.destinations() {
            let Some(entry) = self.table.get_mut(dst) else { continue };
            if entry.flag == Flag::Up && entry.expires < now {
                entry.seq = entry.seq.wrapping_add(1);
                entry.take_down();
                self.desk.drop_waiting(dst);
                self.report_route(dst);
            } else if entry.flag == Flag::Up {
                self.release(now, dst, BUFFER_GAP);
            } else if entry.is_wanted || self.desk.buffer.has(dst) {
                self.ask(cx, dst);
            }
        }
    }
}

impl Routing for Ns2Aodv {
    fn port(&self) -> Option<u16> {
        Some(PORT)
    }

    fn route(&mut self, cx: &Cx<'_>, packet: &RoutedPacket<'_>) -> RoutingVerdict {
        let Some(dst) = v4(packet.dst) else { return RoutingVerdict::Drop(DropReason::NoRoute) };
        let is_own = packet.from.is_none();
        let entry = self.table.entry(dst);
        let is_first = is_own && !entry.is_ours;
        entry.is_ours |= is_own;
        if is_own && self.settings.search_at_once {
            entry.own_use_until = cx.now + self.settings.active_route_timeout;
        }
        match entry.flag {
            Flag::Up => {
                entry.expires = cx.now + self.settings.active_route_timeout;
                if let Some(from) = packet.from.and_then(v4).filter(|_| self.settings.rerr_to_source) {
                    entry.add_precursor(from);
                }
                let (link, via) = (entry.link, NextHop::Neighbour(entry.next_hop.into()));
                if is_first {
                    self.report_route(dst);
                }
                RoutingVerdict::Forward { link, via }
            }
            _ if is_own => {
                self.desk.keep(cx.now, (dst, Wish::SURE), packet);
                self.ask(cx, dst);
                RoutingVerdict::Keep
            }
            Flag::InRepair => {
                self.desk.keep(cx.now, (dst, Wish::SURE), packet);
                RoutingVerdict::Keep
            }
            Flag::Down => {
                let unreachable = vec![(dst, entry.seq)];
                self.send_error(None, unreachable);
                RoutingVerdict::Drop(DropReason::NoRoute)
            }
        }
    }

    fn handle_control(&mut self, cx: &Cx<'_>, control: &ControlMessage<'_>) {
        let (Some(from), Ok((message, extensions))) = (v4(control.src), AodvMessage::parse(control.message))
        else {
            self.desk.dropped(DropReason::RoutingMalformed, 0);
            return;
        };
        if control.from.is_some_and(|neighbour| neighbour != control.src) {
            self.desk.dropped(DropReason::RoutingRefused, 0);
            return;
        }
        match message {
            AodvMessage::Rreq(Rreq { hop_count, .. }) | AodvMessage::Rrep(Rrep { hop_count, .. })
                if hop_count >= MOST_HOPS =>
            {
                self.desk.dropped(DropReason::RoutingMalformed, 0);
            }
            AodvMessage::Rreq(rreq) => self.take_request(cx, from, control, &rreq, &extensions),
            AodvMessage::Rrep(rrep) => self.take_reply(cx, from, control.link, &rrep, &extensions),
            AodvMessage::Rerr(rerr) => self.take_error(cx, from, control.link, &rerr),
            AodvMessage::RrepAck => {}
        }
    }

    fn on_undelivered(&mut self, cx: &Cx<'_>, (link, to): Hop, packet: &RoutedPacket<'_>) -> Undelivered {
        let (Some(to), Some(dst)) = (v4(to), v4(packet.dst)) else { return Undelivered::Drop };
        self.take_failure(cx, link, (to, dst), packet)
    }

    fn handle_timeout(&mut self, cx: &Cx<'_>) {
        self.desk.drop_late(cx.now);
        if self.next_sweep <= cx.now {
            self.next_sweep = cx.now + SWEEP_INTERVAL;
            self.sweep(cx);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.desk.next([Some(self.next_sweep)])
    }

    fn poll_order(&mut self, now: Instant) -> Option<RoutingOrder> {
        self.desk.outbox.pop(now)
    }

    fn next_hop(&self, _now: Instant, dst: IpAddr) -> Option<(LinkId, IpAddr)> {
        let entry = self.table.get(v4(dst)?)?;
        (entry.flag == Flag::Up).then(|| (entry.link, entry.next_hop.into()))
    }

    fn path(&self, peer: IpAddr) -> Path {
        path_of(v4(peer).and_then(|peer| self.table.get(peer)).and_then(Ns2Entry::usable_hops))
    }

    fn counts(&self) -> (u64, u64) {
        (self.desk.discoveries, self.desk.failures)
    }
}

#[cfg(test)]
mod tests;
