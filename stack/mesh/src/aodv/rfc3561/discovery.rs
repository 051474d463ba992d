//! Route discovery (RFC 3561 §6.3, §6.4): rings that grow, then the whole network, each time with a longer timeout.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use hopwise_core::Instant;

use super::super::ack_seq;
use super::super::messages::{AodvMessage, Rreq, bytes_of};
use super::super::settings::Settings;
use super::{Aodv, Cx};
use crate::on_demand::rank::{Rank, Wish};
use crate::on_demand::searches::SearchStart;

/// The rest after a search doubles so often from one search to the next.
const MOST_DOUBLINGS: u32 = 2;

/// The next request for a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    ttl: u8,
    /// Requests across the whole network without a reply.
    retries: u8,
    is_repair: bool,
}

impl Plan {
    /// The plan after this request has failed; `None` after the last.
    fn next(self, settings: &Settings) -> Option<Plan> {
        if self.is_repair {
            return None;
        }
        if self.ttl < settings.net_diameter {
            return Some(Plan {
                ttl: ring(self.ttl.saturating_add(settings.ttl_increment), settings),
                ..self
            });
        }
        (self.retries < settings.rreq_retries).then_some(Plan { retries: self.retries + 1, ..self })
    }

    fn patience(&self, settings: &Settings) -> Duration {
        if self.is_repair || self.ttl < settings.net_diameter {
            settings.ring_traversal_time(self.ttl)
        } else {
            settings.net_traversal_time() * 2_u32.pow(u32::from(self.retries.min(16)))
        }
    }
}

/// Beyond the threshold a ring is the whole network.
fn ring(ttl: u8, settings: &Settings) -> u8 {
    if ttl > settings.ttl_threshold { settings.net_diameter } else { ttl.min(settings.net_diameter) }
}

/// §6.3: attempts for one destination back off exponentially. For destinations of answers the rest doubles from search
/// to search, up to a bound, unless the destination has answered before.
fn hold_down(failures: u32, rank: Rank, settings: &Settings) -> Duration {
    if failures == 0 || rank > Rank::Answer {
        return Duration::ZERO;
    }
    let doublings = failures.min(MOST_DOUBLINGS) + u32::from(settings.rreq_retries);
    settings.net_traversal_time() * 2_u32.pow(doublings)
}

impl Aodv {
    /// Starts a search for a destination, unless one is under way.
    pub(super) fn search(&mut self, cx: &Cx<'_>, src: IpAddr, wanted: (Ipv4Addr, Wish)) {
        if self.begin_search(cx.now, src, wanted) {
            self.take_turns(cx);
        }
    }

    /// The same without the request. Returns whether one may be due.
    pub(super) fn begin_search(&mut self, now: Instant, src: IpAddr, (dst, wish): (Ipv4Addr, Wish)) -> bool {
        let last_hops = self.table.get(dst).map_or(0, |route| route.hops);
        let settings = &self.settings;
        let first =
            if last_hops > 0 { last_hops.saturating_add(settings.ttl_increment) } else { settings.ttl_start };
        let ttl = ring(first, settings);
        // Arrivals are known by the address that they came to.
        let origin = self.desk.origin(src);
        self.begin(now, (origin, dst), wish, Plan { ttl, retries: 0, is_repair: false })
    }

    /// Sends one request within `ttl`, for a link that broke here.
    pub(super) fn search_to_repair(&mut self, cx: &Cx<'_>, dst: Ipv4Addr, ttl: u8) {
        let ttl = ttl.min(self.settings.net_diameter);
        let plan = Plan { ttl, retries: 0, is_repair: true };
        if self.begin(cx.now, (self.desk.own, dst), Wish::SURE, plan) {
            self.take_turns(cx);
        }
    }

    fn begin(&mut self, now: Instant, (origin, dst): (Ipv4Addr, Ipv4Addr), wish: Wish, plan: Plan) -> bool {
        match self.searches.begin(dst, origin, wish, plan) {
            SearchStart::Already => return false,
            SearchStart::Refused => self.give_search_up(now, dst, plan),
            SearchStart::New(gone) => {
                self.desk.discoveries += 1;
                if let Some((gone, plan)) = gone {
                    self.give_search_up(now, gone, plan);
                }
            }
        }
        true
    }

    /// Sends the requests that may leave now.
    pub(super) fn take_turns(&mut self, cx: &Cx<'_>) {
        while !self.desk.is_asleep(cx.now) {
            let settings = &self.settings;
            let next = self.searches.next_request(cx.now, |plan| plan.patience(settings));
            let Some((dst, origin, plan)) = next else { return };
            self.request(cx, (origin, dst), plan.ttl);
        }
    }

    fn request(&mut self, cx: &Cx<'_>, (origin, dst): (Ipv4Addr, Ipv4Addr), ttl: u8) {
        let now = cx.now;
        self.seq = self.seq.wrapping_add(1);
        self.request_id = self.request_id.wrapping_add(1);
        let dst_seq = self.table.get(dst).and_then(|route| route.seq);
        let rreq = Rreq {
            is_join: false,
            is_repair: false,
            is_gratuitous: self.settings.gratuitous,
            is_destination_only: self.settings.destination_only,
            hop_count: 0,
            id: self.request_id,
            dst,
            dst_seq,
            origin,
            origin_seq: self.seq,
        };
        self.desk.note_asked(now, (origin, dst), true, self.settings.path_discovery_time());
        let extension = ack_seq::write(&mut self.desk.ack_seqs, cx, origin, dst);
        self.links.spoke(now);
        self.desk.tell_everyone(None, ttl, &bytes_of(&AodvMessage::Rreq(rreq), &extension));
    }

    /// Retries or gives up requests that were not answered in time.
    pub(super) fn go_on_searching(&mut self, cx: &Cx<'_>) {
        let now = cx.now;
        for (dst, plan) in self.searches.unanswered(now) {
            match plan.next(&self.settings) {
                Some(next) => self.searches.go_on(dst, next),
                None => {
                    let settings = &self.settings;
                    self.searches.fail(now, dst, |failures, rank| hold_down(failures, rank, settings));
                    self.give_search_up(now, dst, plan);
                }
            }
        }
        self.take_turns(cx);
    }

    /// Ends a search and drops its waiting packets.
    fn give_search_up(&mut self, now: Instant, dst: Ipv4Addr, plan: Plan) {
        self.table.forget_wish(dst);
        self.desk.drop_waiting(dst);
        if plan.is_repair {
            self.repair_failed(now, dst);
        }
    }
}
