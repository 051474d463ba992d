//! Route discovery (RFC 4728 §8.2). The first request goes to neighbours only, later ones to all nodes, each with a
//! longer timeout. The target replies, and so does a node that knows a route. Requests that were seen are remembered.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::narrow::as_u32;
use hopwise_core::trace::DropReason;
use hopwise_core::{Instant, NextHop, QueueClass, Rx};

use super::Settings;
use super::cache::RouteOrigin;
use super::options::{DsrOption, MOST_ADDRESSES, RouteReply, RouteRequest, has_repeats};
use super::parcel::Parcel;
use super::{Cx, Dsr, MOST, RELAY_RATELIMIT, RoutingOrder, is_host};
use crate::on_demand::rates::EventRate;

/// The constant H of RFC 4728: a reply from the cache waits H * (h - 1 + r), with h hops and a random r from 0 to 1.
const REPLY_DELAY: Duration = Duration::from_millis(1);
/// The largest number of waiting replies from the cache.
const MOST_PENDING: usize = 64;

#[derive(Clone, Copy, Debug)]
struct RouteSearch {
    /// Requests that were sent, including the one to neighbours only.
    requests: u8,
    /// The time at which the last request has failed, or the next may be sent.
    until: Instant,
}

#[derive(Debug)]
pub(super) struct RouteSearches {
    by_dst: BTreeMap<Ipv4Addr, RouteSearch>,
    rate: EventRate,
}

/// A reply from the cache that waits for its turn.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) at: Instant,
    pub(super) origin: Ipv4Addr,
    pub(super) target: Ipv4Addr,
    /// Length of the route in the reply.
    pub(super) hops: usize,
    /// The reply, and the request's arrivals, handed on to its target.
    orders: Vec<RoutingOrder>,
}

impl RouteSearches {
    pub(super) fn new(rate: u32) -> RouteSearches {
        RouteSearches { by_dst: BTreeMap::new(), rate: EventRate::new(rate) }
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.by_dst.values().map(|search| search.until).min()
    }

    pub(super) fn wanted(&self) -> Vec<Ipv4Addr> {
        self.by_dst.keys().copied().collect()
    }

    pub(super) fn end(&mut self, dst: Ipv4Addr) {
        self.by_dst.remove(&dst);
    }
}

/// The timeout of the next request after this many.
fn patience(requests: u8, settings: &Settings) -> Duration {
    let before = u8::from(settings.nonprop_request);
    if requests < before {
        return settings.nonprop_request_timeout;
    }
    let doubled = settings.request_period * 2_u32.pow(u32::from((requests - before).min(16)));
    doubled.min(settings.max_request_period)
}

impl Dsr {
    /// Starts a search for a node, unless one is under way.
    pub(super) fn search(&mut self, cx: &Cx<'_>, dst: Ipv4Addr) {
        if !self.searches.by_dst.contains_key(&dst) && self.searches.by_dst.len() < MOST {
            self.desk.discoveries += 1;
            self.ask(cx, dst, 0);
        }
    }

    fn ask(&mut self, cx: &Cx<'_>, dst: Ipv4Addr, requests: u8) {
        let now = cx.now;
        if let Err(until) = self.searches.rate.take(now) {
            self.searches.by_dst.insert(dst, RouteSearch { requests, until });
            return;
        }
        let until = now + patience(requests, &self.settings);
        self.searches.by_dst.insert(dst, RouteSearch { requests: requests.saturating_add(1), until });
        let is_for_neighbours = requests == 0 && self.settings.nonprop_request;
        let ttl = if is_for_neighbours { 1 } else { self.settings.discovery_hop_limit };
        self.request_id = self.request_id.wrapping_add(1);
        let request = RouteRequest { id: self.request_id, target: dst, addresses: Vec::new() };
        let mut options = vec![DsrOption::Request(request)];
        // The last error goes on with the next request (§3.4.4).
        options.extend(self.last_error.take().map(DsrOption::Error));
        options.extend(self.arrivals_for(cx, dst));
        let packet = self.packet(Ipv4Addr::BROADCAST, ttl, options);
        self.tell_everyone(now, &packet);
    }

    fn tell_everyone(&mut self, at: Instant, packet: &[u8]) {
        for interface in &self.desk.interfaces {
            let (link, to, packet) = (interface.link, NextHop::All, packet.to_vec());
            self.desk.outbox.push_at(at, RoutingOrder::Send { link, to, class: QueueClass::Routing, packet });
        }
    }

    /// Repeats requests that were not answered in time. The search ends when no packet waits for the node.
    pub(super) fn go_on_searching(&mut self, cx: &Cx<'_>) {
        let now = cx.now;
        let due = |(dst, search): (&Ipv4Addr, &RouteSearch)| (search.until <= now).then_some((*dst, *search));
        let due: Vec<_> = self.searches.by_dst.iter().filter_map(due).collect();
        for (dst, search) in due {
            let has_tries = search.requests <= self.settings.max_request_rexmt;
            if self.desk.buffer.has(dst) && has_tries {
                self.ask(cx, dst, search.requests);
            } else {
                self.searches.end(dst);
                self.desk.drop_waiting(dst);
            }
        }
    }

    pub(super) fn take_request(
        &mut self,
        cx: &Cx<'_>,
        rx: &Rx<'_>,
        parcel: &Parcel<'_>,
    ) -> Result<(), DropReason> {
        let now = cx.now;
        let request = parcel.options().iter().find_map(|option| match option {
            DsrOption::Request(request) => Some(request),
            _ => None,
        });
        let Some(request) = request else { return Err(DropReason::RoutingMalformed) };
        if parcel.read.is_to_be_dropped {
            return Err(DropReason::RoutingRefused);
        }
        let own = self.desk.own;
        if parcel.src == own || request.addresses.contains(&own) {
            return Ok(()); // Our own requests come back from all neighbours.
        }
        let nodes: Vec<_> = std::iter::once(parcel.src).chain(request.addresses.iter().copied()).collect();
        let from = nodes[nodes.len() - 1];
        if has_repeats(&nodes) || !nodes.iter().all(|node| is_host(*node)) {
            return Err(DropReason::RoutingMalformed);
        }
        if rx.from.is_some_and(|neighbour| neighbour != from) {
            return Err(DropReason::RoutingRefused);
        }
        self.blacklist.retain(|_, until| *until > now);
        if self.blacklist.contains_key(&from) {
            return Ok(());
        }
        self.note_link(from, rx.link);
        let back: Vec<_> = nodes.iter().rev().copied().collect();
        self.cache.add(now, &back, RouteOrigin::Overheard);
        self.heed(now, parcel);
        if request.target == own {
            let addresses = request.addresses.iter().copied().chain([own]).collect();
            self.believe(now, parcel);
            self.reply(cx, &back, addresses);
        } else if self.requests.is_new(parcel.src, request.id, request.target) {
            self.answer_or_pass_on(now, parcel, request, &back)?;
        }
        self.use_news(now);
        Ok(())
    }

    fn reply(&mut self, cx: &Cx<'_>, back: &[Ipv4Addr], addresses: Vec<Ipv4Addr>) {
        let Some(origin) = back.last() else { return };
        let reply = DsrOption::Reply(RouteReply { is_last_external: false, addresses });
        let arrivals = if self.settings.ack_seq_in_replies { self.arrivals_for(cx, *origin) } else { None };
        let options = std::iter::once(reply).chain(arrivals).collect();
        self.send_along(back, options);
    }

    fn answer_or_pass_on(
        &mut self,
        now: Instant,
        parcel: &Parcel<'_>,
        request: &RouteRequest,
        back: &[Ipv4Addr],
    ) -> Result<(), DropReason> {
        if self.relays.count(now, parcel.src) > RELAY_RATELIMIT {
            return Err(DropReason::RoutingRateLimited);
        }
        if self.settings.reply_from_cache && self.answer_from_cache(now, parcel, request, back) {
            return Ok(());
        }
        // The target's address has to fit in as well when it replies.
        if parcel.hop_limit <= 1 || request.addresses.len() + 2 > MOST_ADDRESSES {
            return Ok(());
        }
        let mut passed = request.clone();
        passed.addresses.push(self.desk.own);
        let is_other = |option: &&DsrOption| !matches!(option, DsrOption::Request(_));
        let others = parcel.options().iter().filter(is_other).cloned();
        let options = std::iter::once(DsrOption::Request(passed)).chain(others).collect();
        if let Some(mut packet) = parcel.with_options(options) {
            crate::shim::take_one_hop(&mut packet);
            let at = now + self.desk.outbox.chance.up_to(self.settings.broadcast_jitter);
            self.tell_everyone(at, &packet);
        }
        Ok(())
    }

    /// Replies from the cache if that makes no loop with the route of the request (§8.2.3), and returns whether it did.
    /// A longer route waits longer, so that the best reply comes first (§8.2.5).
    fn answer_from_cache(
        &mut self,
        now: Instant,
        parcel: &Parcel<'_>,
        request: &RouteRequest,
        back: &[Ipv4Addr],
    ) -> bool {
        let Some(way) = self.cache.find(now, request.target).map(<[_]>::to_vec) else { return false };
        let own = [self.desk.own];
        let addresses: Vec<_> = request.addresses.iter().chain(&own).chain(&way).copied().collect();
        let is_in_circle = has_repeats(&addresses) || addresses.contains(&parcel.src);
        if is_in_circle || addresses.len() > MOST_ADDRESSES {
            return false;
        }
        let hops = addresses.len();
        let reply = RouteReply { is_last_external: false, addresses };
        let Some(order) = self.control(back, vec![DsrOption::Reply(reply)]) else { return false };
        let orders = std::iter::once(order).chain(self.hand_on(parcel, &way)).collect();
        let at = now + REPLY_DELAY * (as_u32(hops) - 1) + self.desk.outbox.chance.up_to(REPLY_DELAY);
        if self.pending.len() < MOST_PENDING {
            self.pending.push(Pending { at, origin: parcel.src, target: request.target, hops, orders });
        }
        true
    }

    pub(super) fn send_pending(&mut self, now: Instant) {
        let (mut due, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pending).into_iter().partition(|pending| pending.at <= now);
        self.pending = kept;
        due.sort_by_key(|pending| pending.at);
        due.into_iter().flat_map(|pending| pending.orders).for_each(|order| self.desk.outbox.push(order));
    }
}

/// Requests that were seen (RFC 4728 §4.3): the last few of each of the latest origins.
#[derive(Debug)]
pub(super) struct SeenRequests {
    /// The origin whose last request is the oldest comes first.
    by_origin: VecDeque<(Ipv4Addr, VecDeque<(u16, Ipv4Addr)>)>,
    most_origins: usize,
    most_ids: usize,
}

impl SeenRequests {
    pub(super) fn new(most_origins: u32, most_ids: u32) -> SeenRequests {
        let (most_origins, most_ids) = (most_origins.max(1) as usize, most_ids.max(1) as usize);
        SeenRequests { by_origin: VecDeque::new(), most_origins, most_ids }
    }

    /// Returns whether this request is new, and remembers it.
    pub(super) fn is_new(&mut self, origin: Ipv4Addr, id: u16, target: Ipv4Addr) -> bool {
        let known = self.by_origin.iter().position(|(known, _)| *known == origin);
        let mut ids = known.and_then(|n| self.by_origin.remove(n)).map_or_else(VecDeque::new, |(_, ids)| ids);
        let is_new = !ids.contains(&(id, target));
        if is_new {
            if ids.len() >= self.most_ids {
                ids.pop_front();
            }
            ids.push_back((id, target));
        }
        if self.by_origin.len() >= self.most_origins {
            self.by_origin.pop_front();
        }
        self.by_origin.push_back((origin, ids));
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_new_once_and_memory_is_bounded() {
        let mut requests = SeenRequests::new(4, 3);
        let (node, target) = (Ipv4Addr::from_bits, Ipv4Addr::new(10, 0, 0, 9));
        assert!(requests.is_new(node(1), 7, target));
        assert!(!requests.is_new(node(1), 7, target));
        assert!(requests.is_new(node(1), 7, node(8)), "another target is another request");
        (0..10).for_each(|id| assert!(requests.is_new(node(1), 100 + id, target)));
        assert!(requests.is_new(node(1), 7, target), "long ago");
        for origin in 2..1_000 {
            assert!(requests.is_new(node(origin), 7, target));
        }
        assert!(requests.by_origin.len() <= 4 && requests.by_origin.iter().all(|(_, ids)| ids.len() <= 3));
        assert!(requests.is_new(node(1), 109, target));
    }
}
