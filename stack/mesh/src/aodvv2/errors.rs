//! RERRs: a link broke, a packet came for which there is no route, or a neighbour reports either.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::trace::DropReason;
use hopwise_core::{Instant, QueueClass};

use super::messages::{MessageResult, Rerr};
use super::table::is_newer;
use super::{Aodvv2, Cx, PORT, RoutedPacket, RoutingOrder, Undelivered, Via};
use crate::on_demand::is_message;
use crate::on_demand::rates::Cause;
use crate::rfc5444::Rfc5444Message;

/// The largest number of remembered errors.
const MOST_LATEST: usize = 4_096;

/// The latest errors: the destination, and the source of the packet. They are not repeated so soon.
#[derive(Debug, Default)]
pub(super) struct LatestErrors(BTreeMap<(Ipv4Addr, Option<Ipv4Addr>), Instant>);

impl LatestErrors {
    fn is_new(&mut self, now: Instant, what: (Ipv4Addr, Option<Ipv4Addr>), rest: Duration) -> bool {
        let is_new = self.0.get(&what).is_none_or(|until| *until <= now);
        if is_new && (self.0.len() < MOST_LATEST || self.0.contains_key(&what)) {
            self.0.insert(what, now + rest);
        }
        is_new
    }

    pub(super) fn forget(&mut self, now: Instant) {
        self.0.retain(|_, until| *until > now);
    }
}

impl Aodvv2 {
    /// The link layer gave up a packet.
    pub(super) fn take_failure(
        &mut self,
        cx: &Cx<'_>,
        via: Via,
        dst: Ipv4Addr,
        packet: &RoutedPacket<'_>,
    ) -> Undelivered {
        let now = cx.now;
        // A reply is sent again, and its receiver is blacklisted in the end; other routes over it are lost now.
        if dst == via.from && is_message(packet.packet, PORT) {
            self.break_link(now, via);
            return Undelivered::Drop;
        }
        let other = self.table.valid(now, dst).filter(|route| route.next_hop != via.from);
        if let Some(route) = other {
            let way = (route.link, route.next_hop);
            self.desk.outbox.send(way, QueueClass::Data, packet.packet.to_vec());
            self.break_link(now, via);
            return Undelivered::Kept;
        }
        if packet.from.is_some() {
            self.break_link(now, via);
            return Undelivered::Drop;
        }
        if let Some(route) = self.table.entry(now, dst) {
            route.is_ours = true;
        }
        // There was a route.
        let wish = self.desk.wish(now, packet, true);
        self.desk.keep(now, (dst, wish), packet);
        self.break_link(now, via);
        self.search(cx, packet.src, (dst, wish));
        Undelivered::Kept
    }

    fn break_link(&mut self, now: Instant, via: Via) {
        self.lose_neighbour(now, via);
        self.desk.outbox.push(RoutingOrder::Reroute { link: via.link, via: via.from.into() });
    }

    /// Gives up all routes over a neighbour, and reports the routes in use to all neighbours.
    pub(super) fn lose_neighbour(&mut self, now: Instant, via: Via) {
        self.neighbours.lost(via.from);
        let gone = self.table.over(via.from);
        self.desk.failures += u64::from(!gone.is_empty());
        let active = self.give_up(now, &gone);
        self.tell_of((now, Cause::Break), None, None, &active);
    }

    /// Returns the routes that were in use, with their numbers.
    fn give_up(&mut self, now: Instant, gone: &[Ipv4Addr]) -> Vec<(Ipv4Addr, Option<u16>)> {
        let mut active = Vec::new();
        for dst in gone {
            let Some(route) = self.table.get(*dst) else { continue };
            if route.is_active(now, self.settings.active_interval) {
                active.push((*dst, route.seq()));
            }
            self.table.give_up(now, *dst);
            self.report_route(*dst);
        }
        active
    }

    /// Reacts to data that cannot be forwarded.
    pub(super) fn refuse_data(&mut self, now: Instant, src: Option<Ipv4Addr>, dst: Ipv4Addr) {
        let until = now + self.settings.max_seqnum_lifetime;
        let mut seq = None;
        if let Some(route) = self.table.get_mut(now, dst) {
            route.lives_at_least(until);
            seq = route.seq();
        }
        let back = src.and_then(|src| self.table.valid(now, src));
        let to = back.map(|route| Via { from: route.next_hop, link: route.link });
        self.tell_of((now, Cause::Data), src, to, &[(dst, seq)]);
    }

    /// A neighbour's error: routes over it are given up.
    pub(super) fn take_error(&mut self, now: Instant, via: Via, message: &Rfc5444Message) -> MessageResult {
        let rerr = Rerr::parse(message)?;
        let mut gone = Vec::new();
        let trust = self.desk.trust.clone();
        if rerr.pkt_source.is_some_and(|src| !trust.covers(src)) {
            self.desk.dropped(DropReason::RoutingRefused, 0);
            return Ok(());
        }
        for (dst, seq) in rerr.unreachable.iter().filter(|(dst, _)| trust.covers(*dst)) {
            let Some(route) = self.table.valid(now, *dst) else { continue };
            let is_old = seq.is_some_and(|seq| is_newer(route.seq, seq));
            if route.next_hop == via.from && !is_old && *dst != via.from {
                gone.push(*dst);
            }
        }
        let active = self.give_up(now, &gone);
        if rerr.hop_limit <= 1 || rerr.pkt_source.is_some_and(|src| self.desk.is_mine(src)) {
            return Ok(());
        }
        let back = rerr.pkt_source.and_then(|src| self.table.valid(now, src));
        let to = back.map(|route| Via { from: route.next_hop, link: route.link });
        self.tell_of((now, Cause::Break), rerr.pkt_source, to, &active);
        Ok(())
    }

    /// Reports unreachable destinations: to one neighbour towards the packet's source, else to all.
    fn tell_of(
        &mut self,
        (now, cause): (Instant, Cause),
        pkt_source: Option<Ipv4Addr>,
        to: Option<Via>,
        unreachable: &[(Ipv4Addr, Option<u16>)],
    ) {
        let rest = self.settings.rerr_timeout;
        let latest = &mut self.latest;
        let is_new = |(dst, _): &&(Ipv4Addr, Option<u16>)| latest.is_new(now, (*dst, pkt_source), rest);
        let unreachable: Vec<_> = unreachable.iter().filter(is_new).copied().collect();
        let room = Rerr::room(self.desk.most_bytes());
        for part in unreachable.chunks(room) {
            if !self.desk.may_report(now, cause) {
                return;
            }
            let hop_limit = self.settings.max_hopcount;
            let message = Rerr { hop_limit, pkt_source, unreachable: part.to_vec() }.message();
            match to {
                Some(via) => self.tell_neighbour(via, vec![message]),
                None => self.tell_everyone(None, message),
            }
        }
    }
}
