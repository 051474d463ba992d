//! Carries out the orders of a node's routing protocol.

use std::net::IpAddr;

use hopwise_core::endpoint::PathSeam;
use hopwise_core::queue::Queued;
use hopwise_core::trace::DropReason;
use hopwise_core::wire::IpView;
use hopwise_core::{Instant, LinkId};

use super::{FORWARDED, Node, PacketEnds};
use crate::routing::{Purged, RoutingOrder};

impl Node {
    /// Carries out routing's orders, and queues what the endpoint sends in response.
    pub(super) fn obey_routing(&mut self, now: Instant) {
        loop {
            let mut has_told = false;
            while let Some(order) = self.routing.poll_order(now) {
                has_told |= matches!(order, RoutingOrder::Tell { .. });
                self.obey(now, order);
            }
            if !has_told {
                return;
            }
            self.pull(now);
        }
    }

    fn obey(&mut self, now: Instant, order: RoutingOrder) {
        match order {
            RoutingOrder::Send { link, to, class, packet } => {
                self.forwarded += 1;
                let id = FORWARDED | self.forwarded;
                self.enqueue(now, link, Queued { to, class, id, at: now, packet });
            }
            RoutingOrder::Purge { link, via, what } => {
                for gone in self.take_out(link, via, what) {
                    self.dropped(now, gone.id, DropReason::Purged);
                    self.spare.keep(gone.packet);
                }
            }
            RoutingOrder::Reroute { link, via } => self.reroute(now, link, via),
            RoutingOrder::Tell { peer, ports, event, path } => {
                self.endpoint.handle_path(now, peer, ports, &event, &path);
            }
            RoutingOrder::Dropped { reason, id } => self.dropped(now, id, reason),
        }
    }

    fn take_out(&mut self, link: LinkId, via: IpAddr, what: Purged) -> Vec<Queued> {
        let Some((_, queue)) = self.interfaces.iter_mut().find(|(interface, _)| interface.link == link)
        else {
            return Vec::new();
        };
        let own = &self.addresses;
        let is_meant = |packet: &[u8]| match what {
            Purged::PassedOn(dst) => {
                IpView::parse(packet).is_ok_and(|view| view.dst == dst && !own.contains(&view.src))
            }
            Purged::Data | Purged::All => true,
        };
        queue.purge(via, what, is_meant)
    }

    fn reroute(&mut self, now: Instant, link: LinkId, via: IpAddr) {
        for Queued { id, packet, .. } in self.take_out(link, via, Purged::Data) {
            let Ok(view) = IpView::parse(&packet) else { continue };
            let from = (!self.is_ours(view.src)).then_some(view.src);
            let way = PacketEnds { src: view.src, dst: view.dst, from, hop_limit: view.hop_limit };
            self.send_on(now, way, id, packet);
        }
    }
}
