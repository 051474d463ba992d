//! Reacts to a packet that the link layer gave up (RFC 3561 §6.12). A route to a near destination is repaired here, and
//! a route to a far one is given up.

use std::net::Ipv4Addr;

use hopwise_core::{Instant, QueueClass};

use super::super::PORT;
use super::table::State;
use super::{Aodv, Cx, RoutedPacket, RoutingOrder, Undelivered, Via, v4};
use crate::on_demand::is_message;
use crate::on_demand::rank::Wish;

/// Hops added to the TTL of a local repair.
const LOCAL_ADD_TTL: u8 = 2;

impl Aodv {
    pub(super) fn take_failure(
        &mut self,
        cx: &Cx<'_>,
        via: Via,
        dst: Ipv4Addr,
        packet: &RoutedPacket<'_>,
    ) -> Undelivered {
        let now = cx.now;
        if dst == via.from && is_message(packet.packet, PORT) {
            // A lost RREP: frames of the neighbour arrive here, but ours do not arrive there (§6.8).
            self.links.blacklist(via.from, now + self.settings.blacklist_timeout());
            self.break_link(now, via, None);
            return Undelivered::Drop;
        }
        if let Some(route) = self.table.valid(now, dst)
            && route.next_hop != via.from
        {
            let way = (route.link, route.next_hop);
            self.desk.outbox.send(way, QueueClass::Data, packet.packet.to_vec());
            self.break_link(now, via, None);
            return Undelivered::Kept;
        }
        if packet.from.is_none() {
            self.table.want(now, dst);
            // There was a route.
            let wish = self.desk.wish(now, packet, true);
            self.desk.keep(now, (dst, wish), packet);
            self.break_link(now, via, None);
            self.note_own_use(now, packet);
            self.search(cx, packet.src, (dst, wish));
            return Undelivered::Kept;
        }
        let ttl = self.repair_ttl(now, dst, v4(packet.src));
        if let Some(ttl) = ttl {
            self.desk.keep(now, (dst, Wish::PASSED_ON), packet);
            self.break_link(now, via, Some(dst));
            self.search_to_repair(cx, dst, ttl);
            return Undelivered::Kept;
        }
        self.break_link(now, via, None);
        Undelivered::Drop
    }

    fn break_link(&mut self, now: Instant, via: Via, kept: Option<Ipv4Addr>) {
        if let Some(dst) = kept
            && let Some(route) = self.table.valid(now, dst)
        {
            route.give_up(now + self.settings.delete_period());
            route.state = State::InRepair;
        }
        self.lose_neighbour(now, via, kept);
        self.desk.outbox.push(RoutingOrder::Reroute { link: via.link, via: via.from.into() });
    }

    /// The TTL of a repair, if one is to be tried.
    fn repair_ttl(&mut self, now: Instant, dst: Ipv4Addr, src: Option<Ipv4Addr>) -> Option<u8> {
        let settings = &self.settings;
        let most = settings.max_repair_ttl();
        let may = settings.local_repair;
        let hops_back = src.and_then(|src| self.table.get(src)).map_or(0, |back| back.hops);
        let route = self.table.valid(now, dst)?;
        // MIN_REPAIR_TTL is the last known hop count.
        (may && route.hops <= most).then(|| route.hops.max(hops_back / 2).saturating_add(LOCAL_ADD_TTL))
    }

    /// A longer route after a repair is reported to its users, which keep it (N).
    pub(super) fn mended(&mut self, now: Instant, dst: Ipv4Addr, before: Option<(State, u8)>) {
        let hops = self.table.get(dst).map_or(0, |route| route.hops);
        if let Some((State::InRepair, hops_before)) = before
            && hops > hops_before
        {
            self.announce_mended(now, &[dst]);
        }
    }

    pub(super) fn repair_failed(&mut self, now: Instant, dst: Ipv4Addr) {
        if let Some(route) = self.table.get_mut(now, dst)
            && route.state == State::InRepair
        {
            route.state = State::Invalid;
            route.lives_until = now + self.settings.delete_period();
            self.announce(now, &[dst], false);
        }
    }
}
