//! Route maintenance (RFC 4728 §8.3): a node that cannot pass a packet on reports it to the source, and salvages the
//! packet if it can. Overheard frames show new links and shortcuts.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use hopwise_core::narrow::as_u8;
use hopwise_core::trace::DropReason;
use hopwise_core::{Instant, NextHop, Rx};

use super::cache::RouteOrigin;
use super::options::{
    DsrOption, MOST_ADDRESSES, MOST_SALVAGES, RouteError, RouteErrorReason, RouteReply, SourceRoute,
};
use super::parcel::{Parcel, PathWalk};
use super::{Cx, Dsr, MOST, RoutedPacket, RoutingVerdict, is_host};
use crate::on_demand::rank::Wish;

/// The fate of a packet that could not be passed on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SalvageResult {
    Sent { via: Ipv4Addr, packet: Vec<u8> },
    Kept,
    Lost,
}

impl Dsr {
    /// Routes a packet that waited for a lost neighbour.
    pub(super) fn reroute(&mut self, cx: &Cx<'_>, id: u64, parcel: &Parcel<'_>) -> RoutingVerdict {
        match self.recover(cx, id, parcel) {
            SalvageResult::Sent { via, packet } => RoutingVerdict::Wrapped {
                link: self.link_of(via),
                via: NextHop::Neighbour(via.into()),
                packet,
            },
            SalvageResult::Kept => RoutingVerdict::Keep,
            SalvageResult::Lost => RoutingVerdict::Drop(DropReason::Undelivered),
        }
    }

    /// Recovers a packet for a lost neighbour. The cache has already removed the link.
    pub(super) fn recover(&mut self, cx: &Cx<'_>, id: u64, parcel: &Parcel<'_>) -> SalvageResult {
        let Ok(Some(walk)) = parcel.walk() else { return SalvageResult::Lost };
        if walk.sender() != self.desk.own {
            return SalvageResult::Lost;
        }
        if parcel.src == self.desk.own {
            return self.send_again(cx, id, parcel);
        }
        self.report(cx.now, &walk);
        self.salvage(cx.now, parcel, &walk)
    }

    /// A packet of our own takes another route, or waits for one. Replies to other nodes are not sent again.
    fn send_again(&mut self, cx: &Cx<'_>, id: u64, parcel: &Parcel<'_>) -> SalvageResult {
        let now = cx.now;
        let (false, Some(inner)) = (parcel.is_empty(), parcel.unwrapped()) else {
            return SalvageResult::Lost;
        };
        let dst = parcel.dst;
        if let Some((via, packet)) = self.wrap(now, dst, &inner) {
            return SalvageResult::Sent { via, packet };
        }
        let (src, hop_limit) = (parcel.src.into(), parcel.hop_limit);
        let routed = RoutedPacket { src, dst: dst.into(), from: None, hop_limit, id, packet: &inner };
        self.desk.keep(now, (dst, Wish::SURE), &routed);
        self.search(cx, dst);
        SalvageResult::Kept
    }

    /// Reports the lost link to the first node of the packet's route, once for each loss (§8.3.4).
    fn report(&mut self, now: Instant, walk: &PathWalk) {
        let (own, lost, source) = (self.desk.own, walk.receiver(), walk.nodes[0]);
        let problem = RouteErrorReason::Unreachable(lost);
        let error = RouteError { salvage: walk.salvage, src: own, dst: source, problem };
        if source == own {
            self.last_error = Some(error);
            return;
        }
        if self.losing.as_ref().is_none_or(|(at, of, _)| (*at, *of) != (now, lost)) {
            self.losing = Some((now, lost, BTreeSet::new()));
        }
        let is_told = self.losing.as_mut().is_some_and(|(.., told)| !told.insert(source));
        if is_told || self.errors.take(now).is_err() {
            return;
        }
        let back = walk.back_from(walk.to - 1);
        self.send_along(&back, vec![DsrOption::Error(error)]);
    }

    /// An unknown option may request an error, and may end the packet's route (§6, §8.3.5).
    pub(super) fn refuse_options(
        &mut self,
        now: Instant,
        parcel: &Parcel<'_>,
        walk: &PathWalk,
    ) -> Result<(), DropReason> {
        if let Some(option) = parcel.read.unsupported
            && self.errors.take(now).is_ok()
        {
            let (src, dst) = (self.desk.own, walk.nodes[0]);
            let problem = RouteErrorReason::NotSupported { option };
            let error = RouteError { salvage: walk.salvage, src, dst, problem };
            self.send_along(&walk.back_from(walk.to), vec![DsrOption::Error(error)]);
        }
        if parcel.read.is_to_be_dropped { Err(DropReason::RoutingRefused) } else { Ok(()) }
    }

    /// Sends another node's packet along another route, if one is known and the packet was not salvaged too often
    /// (§8.3.6).
    fn salvage(&mut self, now: Instant, parcel: &Parcel<'_>, walk: &PathWalk) -> SalvageResult {
        let most = self.settings.max_salvage_count.min(MOST_SALVAGES);
        let is_worth_it = !parcel.is_empty() || parcel.has_reply();
        if walk.salvage >= most || !is_worth_it || parcel.has_error() {
            return SalvageResult::Lost;
        }
        let Some(way) = self.cache.take(now, parcel.dst) else { return SalvageResult::Lost };
        let via = way[0];
        let addresses: Vec<_> = std::iter::once(walk.sender()).chain(way.iter().copied()).collect();
        if addresses.len() > MOST_ADDRESSES {
            return SalvageResult::Lost;
        }
        let route = SourceRoute {
            is_first_external: false,
            is_last_external: false,
            salvage: walk.salvage + 1,
            // Our own address stands first in it, and was visited.
            segments_left: as_u8(addresses.len()) - 2,
            addresses: addresses[..addresses.len() - 1].to_vec(),
        };
        match parcel.with_route(route) {
            Some(packet) => SalvageResult::Sent { via, packet },
            None => SalvageResult::Lost,
        }
    }

    /// Takes routes and lost links from a packet, for whichever node it is.
    pub(super) fn heed(&mut self, now: Instant, parcel: &Parcel<'_>) {
        for option in parcel.options() {
            match option {
                DsrOption::Reply(reply) => self.heed_reply(now, parcel.dst, reply),
                DsrOption::Error(error) => self.heed_error(error),
                _ => {}
            }
        }
    }

    fn heed_reply(&mut self, now: Instant, origin: Ipv4Addr, reply: &RouteReply) {
        if reply.addresses.contains(&origin) || reply.is_last_external {
            return;
        }
        if origin == self.desk.own {
            self.cache.add(now, &reply.addresses, RouteOrigin::Asked);
        } else if let Some(at) = reply.addresses.iter().position(|node| *node == self.desk.own) {
            self.cache.add(now, &reply.addresses[at + 1..], RouteOrigin::Overheard);
            let back: Vec<_> = reply.addresses[..at].iter().rev().copied().chain([origin]).collect();
            self.cache.add(now, &back, RouteOrigin::Overheard);
        }
    }

    fn heed_error(&mut self, error: &RouteError) {
        let RouteErrorReason::Unreachable(node) = error.problem else { return };
        self.cache.lose_link(error.src, node);
        if error.dst == self.desk.own {
            self.last_error = Some(*error);
        }
    }

    /// Answers an Acknowledgement Request (§8.3.3) of the node before us. Returns whether there was one.
    pub(super) fn acknowledge(&mut self, parcel: &Parcel<'_>) -> bool {
        let asked = parcel.options().iter().find_map(|option| match option {
            DsrOption::AckRequest { id } => Some(*id),
            _ => None,
        });
        let Some(id) = asked else { return false };
        let to = parcel.walk().ok().flatten().map_or(parcel.src, |walk| walk.sender());
        let ack = DsrOption::Ack { id, src: self.desk.own, dst: to };
        self.send_along(&[to], vec![ack]);
        true
    }
}

/// Learns from frames between other nodes (RFC 4728 §3.3.1), and reports the shortcuts that they show (§3.4.3).
impl Dsr {
    pub(super) fn overhear(&mut self, now: Instant, rx: &Rx<'_>) {
        let Ok(Some(parcel)) = Parcel::read(rx.packet) else { return };
        let Ok(Some(walk)) = parcel.walk() else { return };
        // A packet that names another sender than its frame is not believed.
        let is_heard = rx.from == Some(IpAddr::V4(walk.sender()));
        if !is_heard || !walk.nodes.iter().all(|node| is_host(*node)) {
            return;
        }
        self.note_link(walk.sender(), rx.link);
        self.drop_needless_answers(&walk);
        self.heed(now, &parcel);
        let from = walk.to - 1;
        let back = walk.back_from(walk.to);
        match walk.nodes.iter().position(|node| *node == self.desk.own) {
            None => {
                self.cache.add(now, &walk.nodes[from..], RouteOrigin::Overheard);
                self.cache.add(now, &back, RouteOrigin::Overheard);
            }
            Some(at) if at > walk.to => {
                self.cache.add(now, &walk.nodes[at + 1..], RouteOrigin::Overheard);
                self.cache.add(now, &back, RouteOrigin::Overheard);
                self.tell_of_shortcut(now, &walk, at);
            }
            // We have passed it on ourselves.
            Some(_) => {}
        }
    }

    /// The packet comes here by more hops than it needs. Its source learns of that, once in a while (§3.4.3).
    fn tell_of_shortcut(&mut self, now: Instant, walk: &PathWalk, at: usize) {
        if walk.salvage > 0 {
            return; // The route begins at the salvaging node, not at the source.
        }
        let key = (walk.nodes[0], walk.sender());
        self.shortcuts.retain(|_, until| *until > now);
        if self.shortcuts.contains_key(&key) || self.shortcuts.len() >= MOST {
            return;
        }
        self.shortcuts.insert(key, now + self.settings.grat_reply_holdoff);
        let addresses = walk.nodes[1..walk.to].iter().chain(&walk.nodes[at..]).copied().collect();
        let reply = DsrOption::Reply(RouteReply { is_last_external: false, addresses });
        self.send_along(&walk.back_from(walk.to), vec![reply]);
    }

    /// Drops replies to an origin that already uses a route no longer than ours (§8.2.5).
    fn drop_needless_answers(&mut self, walk: &PathWalk) {
        let (Some(origin), Some(target)) = (walk.nodes.first(), walk.nodes.last()) else { return };
        let hops = walk.nodes.len() - 1;
        self.pending
            .retain(|pending| (pending.origin, pending.target) != (*origin, *target) || pending.hops < hops);
    }
}
