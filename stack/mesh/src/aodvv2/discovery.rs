//! Looking for a route: requests across the whole network, each with more patience, then a while without any.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use hopwise_core::Instant;

use super::messages::{RouteMessage, statement};
use super::{Aodvv2, Cx, Route, v4};
use crate::on_demand::rates::Rate;

/// Destinations that are looked for, or rest, at once.
const MOST_SEARCHES: usize = 1_024;

#[derive(Clone, Copy, Debug)]
struct Search {
    /// Whose packet waits: the node, or whom it serves.
    origin: Ipv4Addr,
    attempts: u8,
    /// When this request has failed, or may be sent.
    until: Instant,
    /// It could not be sent yet.
    is_held: bool,
}

#[derive(Debug)]
pub(super) struct Searches {
    by_dst: BTreeMap<Ipv4Addr, Search>,
    /// Those that were not found rest until then.
    rests: BTreeMap<Ipv4Addr, Instant>,
    rate: Rate,
}

impl Searches {
    pub(super) fn new(rate: u32) -> Searches {
        Searches { by_dst: BTreeMap::new(), rests: BTreeMap::new(), rate: Rate::new(rate) }
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.by_dst.values().map(|search| search.until).min()
    }

    pub(super) fn has(&self, dst: Ipv4Addr) -> bool {
        self.by_dst.contains_key(&dst)
    }

    pub(super) fn end(&mut self, dst: Ipv4Addr) {
        self.by_dst.remove(&dst);
        self.rests.remove(&dst);
    }

    pub(super) fn is_held_down(&self, now: Instant, dst: Ipv4Addr) -> bool {
        self.rests.get(&dst).is_some_and(|until| *until > now)
    }

    fn hold_down(&mut self, dst: Ipv4Addr, until: Instant) {
        self.by_dst.remove(&dst);
        if self.rests.len() < MOST_SEARCHES {
            self.rests.insert(dst, until);
        }
    }

    pub(super) fn forget(&mut self, now: Instant) {
        self.rests.retain(|_, until| *until > now);
    }
}

impl Aodvv2 {
    /// Begins to look for a destination, unless it is looked for already.
    pub(super) fn search(&mut self, cx: &Cx<'_>, src: IpAddr, dst: Ipv4Addr) {
        let searches = &self.searches.by_dst;
        if searches.contains_key(&dst) || searches.len() >= MOST_SEARCHES {
            return;
        }
        self.desk.discoveries += 1;
        let origin = v4(src).filter(|src| self.serves.contains(src)).unwrap_or(self.desk.own);
        self.request(cx, (origin, dst), 1);
    }

    /// Sends a request, or holds it until it may be sent.
    fn request(&mut self, cx: &Cx<'_>, (origin, dst): (Ipv4Addr, Ipv4Addr), attempts: u8) {
        let now = cx.now;
        let may = if self.is_asleep(now) { Err(self.wakes_at) } else { self.searches.rate.take(now) };
        let patience = self.settings.rreq_wait_time * 2_u32.pow(u32::from(attempts.clamp(1, 16) - 1));
        let search =
            Search { origin, attempts, until: may.err().unwrap_or(now + patience), is_held: may.is_err() };
        self.searches.by_dst.insert(dst, search);
        if search.is_held {
            return;
        }
        self.desk.note_asked(now, (origin, dst), true, self.settings.rtemsg_entry_time);
        let rreq = RouteMessage {
            hop_limit: self.settings.max_hopcount,
            to: origin,
            seq: self.next_seq(),
            metric: 0,
            validity: None,
            other: dst,
            other_seq: self.table.get(dst).and_then(Route::seq),
        };
        let mut message = rreq.rreq();
        message.tlvs.extend(self.desk.ack_seqs.write(cx, origin, dst).map(statement));
        self.tell_everyone(None, message);
    }

    /// Requests that were not answered in time.
    pub(super) fn go_on_searching(&mut self, cx: &Cx<'_>) {
        let due = |(dst, search): (&Ipv4Addr, &Search)| (search.until <= cx.now).then_some((*dst, *search));
        let due: Vec<_> = self.searches.by_dst.iter().filter_map(due).collect();
        for (dst, search) in due {
            if search.is_held {
                self.request(cx, (search.origin, dst), search.attempts);
            } else if search.attempts < self.settings.discovery_attempts_max {
                self.request(cx, (search.origin, dst), search.attempts + 1);
            } else {
                self.searches.hold_down(dst, cx.now + self.settings.rreq_holddown_time);
                self.desk.drop_waiting(dst);
            }
        }
    }
}
