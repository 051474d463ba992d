//! The users of a route, which hear of its loss: neighbours (`rerr_to_source`), and this node (`search_at_once`).

use std::net::Ipv4Addr;

use hopwise_core::Instant;

use super::{Aodv, Cx, OwnUse, Routed, v4};

impl Aodv {
    /// Notes a packet of this node for a search once its route is lost.
    pub(super) fn note_own_use(&mut self, now: Instant, packet: &Routed<'_>) {
        let (src, Some(dst)) = (packet.src, v4(packet.dst)) else { return };
        if self.settings.search_at_once && v4(src).is_some_and(|src| self.is_mine(src)) {
            let until = now + self.settings.active_route_timeout;
            let wish = self.desk.wish(now, packet, true);
            let route = self.table.get_mut(now, dst);
            route.into_iter().for_each(|route| route.own_use = Some(OwnUse { src, wish, until }));
        }
    }

    /// The neighbour that sent a packet gets errors about its route. A packet that was routed anew names its source.
    pub(super) fn note_user(&mut self, now: Instant, packet: &Routed<'_>, dst: Ipv4Addr) {
        let from = packet.from.and_then(v4);
        let from = from.filter(|from| self.table.get(*from).is_some_and(|near| near.next_hop == *from));
        if let (Some(from), Some(route)) = (from, self.table.valid(now, dst)) {
            route.add_precursor(from);
        }
    }

    /// Starts searches for lost routes that packets of this node used lately. Another one needs another packet.
    pub(super) fn search_at_once(&mut self, now: Instant, lost: &[Ipv4Addr]) {
        for dst in lost {
            let own_use = self.table.peek_mut(*dst).and_then(|route| route.own_use.take());
            let Some(OwnUse { src, wish, .. }) = own_use.filter(|used| used.until >= now) else { continue };
            if !self.searches.rests(now, *dst, wish.rank) {
                let _ = self.begin_search(now, src, (*dst, wish));
            }
        }
    }
    /// Sends the first requests of such searches.
    pub(super) fn ask_for_lost(&mut self, cx: &Cx<'_>) {
        // Other searches send theirs where they begin.
        if self.settings.search_at_once {
            self.take_turns(cx);
        }
    }
}
