//! Route discovery: requests across the whole network, each with a longer timeout, then a rest. The requests
//! of other nodes are remembered.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use hopwise_core::Instant;

use super::messages::{RouteMessage, statement};
use super::table::is_newer;
use super::{Aodvv2, Cx, Route};
use crate::on_demand::rank::Wish;
use crate::on_demand::rates::{Origins, RequestNews};
use crate::on_demand::searches::SearchStart;

impl Aodvv2 {
    /// Starts a search for a destination, unless one is under way.
    pub(super) fn search(&mut self, cx: &Cx<'_>, src: IpAddr, (dst, wish): (Ipv4Addr, Wish)) {
        let origin = self.desk.origin(src);
        match self.searches.begin(dst, origin, wish, 1) {
            SearchStart::Already => return,
            SearchStart::Refused => self.give_search_up(dst),
            SearchStart::New(gone) => {
                self.desk.discoveries += 1;
                if let Some((gone, _)) = gone {
                    self.give_search_up(gone);
                }
            }
        }
        self.take_turns(cx);
    }

    /// Sends the requests that may leave now.
    fn take_turns(&mut self, cx: &Cx<'_>) {
        let wait = self.settings.rreq_wait_time;
        while !self.desk.is_asleep(cx.now) {
            let patience = |attempts: &u8| wait * 2_u32.pow(u32::from((*attempts).clamp(1, 16) - 1));
            let Some((dst, origin, _)) = self.searches.next_request(cx.now, patience) else { return };
            self.request(cx, (origin, dst));
        }
    }

    /// A message with a number of ours, which offers a route to `to`.
    pub(super) fn route_message(
        &mut self,
        to: Ipv4Addr,
        (other, other_seq): (Ipv4Addr, Option<u16>),
    ) -> RouteMessage {
        let (hop_limit, seq) = (self.settings.max_hopcount, self.next_seq());
        RouteMessage { hop_limit, to, seq, metric: 0, validity: None, other, other_seq }
    }

    fn request(&mut self, cx: &Cx<'_>, (origin, dst): (Ipv4Addr, Ipv4Addr)) {
        self.desk.note_asked(cx.now, (origin, dst), true, self.settings.rtemsg_entry_time);
        let other_seq = self.table.get(dst).and_then(Route::seq);
        let rreq = self.route_message(origin, (dst, other_seq));
        let mut message = rreq.rreq();
        message.tlvs.extend(self.desk.ack_seqs.write(cx, origin, dst).map(statement));
        self.tell_everyone(None, message);
    }

    /// Retries or gives up requests that were not answered in time.
    pub(super) fn go_on_searching(&mut self, cx: &Cx<'_>) {
        for (dst, attempts) in self.searches.unanswered(cx.now) {
            if attempts < self.settings.discovery_attempts_max {
                self.searches.go_on(dst, attempts + 1);
            } else {
                let rest = self.settings.rreq_holddown_time;
                self.searches.fail(cx.now, dst, |_, _| rest);
                self.give_search_up(dst);
            }
        }
        self.take_turns(cx);
    }

    /// Ends a search and drops its waiting packets.
    fn give_search_up(&mut self, dst: Ipv4Addr) {
        self.table.forget_wish(dst);
        self.desk.drop_waiting(dst);
    }
}

/// The largest number of remembered requests; beyond it the oldest are forgotten.
const MOST: usize = 8_192;

/// The origin and the target of a request.
type OriginAndTarget = (Ipv4Addr, Ipv4Addr);

/// Requests that a node has processed. One is redundant after one that was as new and as near. Their number is bounded.
#[derive(Debug, Default)]
pub(super) struct ProcessedRequests {
    /// With number and metric, and the time until which it is remembered.
    known: BTreeMap<OriginAndTarget, (u16, u8, Instant)>,
    /// In the order of their time.
    until: VecDeque<(Instant, OriginAndTarget)>,
    origins: Origins,
}

impl ProcessedRequests {
    pub(super) fn note(
        &mut self,
        now: Instant,
        pair: OriginAndTarget,
        (seq, metric): (u16, u8),
        memory: Duration,
        rate: u32,
    ) -> RequestNews {
        while let Some((until, oldest)) = self.until.front().copied()
            && (until <= now || self.until.len() >= MOST)
        {
            self.until.pop_front();
            // It may have been renewed since.
            if self.known.get(&oldest).is_some_and(|(.., known_until)| *known_until == until) {
                self.known.remove(&oldest);
            }
        }
        if let Some((known, best, _)) = self.known.get(&pair) {
            let is_redundant = is_newer(*known, seq) || (*known == seq && *best <= metric);
            if is_redundant {
                return RequestNews::Redundant;
            }
        }
        self.known.insert(pair, (seq, metric, now + memory));
        self.until.push_back((now + memory, pair));
        self.origins.news(now, pair.0, rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: Duration = Duration::from_secs(12);
    const PAIR: OriginAndTarget = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 9));

    #[test]
    fn a_request_is_redundant_unless_it_is_newer_or_nearer() {
        let mut seen = ProcessedRequests::default();
        let mut note = |s, what| seen.note(Instant::from_secs(s), PAIR, what, MEMORY, 0);
        for (s, what, expected) in [
            (0, (7, 3), RequestNews::New),
            (1, (7, 3), RequestNews::Redundant),
            (1, (7, 4), RequestNews::Redundant),
            (2, (7, 2), RequestNews::New),
            (3, (6, 1), RequestNews::Redundant),
            (13, (7, 2), RequestNews::Redundant),
            (14, (7, 2), RequestNews::New),
            (14, (8, 9), RequestNews::New),
        ] {
            assert_eq!(note(s, what), expected, "{what:?} after {s} s");
        }
    }

    #[test]
    fn a_flood_of_requests_is_told_and_takes_bounded_memory() {
        let mut seen = ProcessedRequests::default();
        let mut note = |dst: u32, seq| {
            let pair = (PAIR.0, Ipv4Addr::from_bits(dst));
            seen.note(Instant::ZERO, pair, (seq, 1), MEMORY, 20)
        };
        assert_eq!((0..100).filter(|seq| note(1, *seq) == RequestNews::New).count(), 20);
        for dst in 0..50_000 {
            let _ = note(dst, 200);
        }
        assert!(seen.known.len() <= MOST && seen.until.len() <= MOST);
    }
}
