//! Looking for a route (RFC 3561 §6.3, §6.4): rings that grow, then the whole network, each time with more patience.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use hopwise_core::Instant;

use super::super::ack_seq;
use super::super::messages::{Message, Rreq, bytes_of};
use super::super::settings::Settings;
use super::{Aodv, Cx, v4};
use crate::on_demand::rates::Rate;

/// Destinations that are looked for at once.
const MOST_SEARCHES: usize = 1_024;

#[derive(Clone, Copy, Debug)]
struct Search {
    /// Whose packet waits: the node, or whom it serves.
    origin: Ipv4Addr,
    ttl: u8,
    /// Requests across the whole network that came to nothing.
    retries: u8,
    /// When this request has failed, or may be sent.
    until: Instant,
    /// It could not be sent yet.
    is_held: bool,
    is_repair: bool,
}

#[derive(Debug)]
pub(super) struct Searches {
    by_dst: BTreeMap<Ipv4Addr, Search>,
    rate: Rate,
}

impl Searches {
    pub(super) fn new(rate: u32) -> Searches {
        Searches { by_dst: BTreeMap::new(), rate: Rate::new(rate) }
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.by_dst.values().map(|search| search.until).min()
    }

    pub(super) fn has(&self, dst: Ipv4Addr) -> bool {
        self.by_dst.contains_key(&dst)
    }

    pub(super) fn end(&mut self, dst: Ipv4Addr) {
        self.by_dst.remove(&dst);
    }
}

impl Search {
    /// What comes after this request has failed; nothing after the last.
    fn next(self, settings: &Settings) -> Option<Search> {
        if self.is_repair {
            return None;
        }
        if self.ttl < settings.net_diameter {
            return Some(Search {
                ttl: ring(self.ttl.saturating_add(settings.ttl_increment), settings),
                ..self
            });
        }
        (self.retries < settings.rreq_retries).then_some(Search { retries: self.retries + 1, ..self })
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

impl Aodv {
    /// Begins to look for a destination, unless it is looked for already.
    pub(super) fn search(&mut self, cx: &Cx<'_>, src: IpAddr, dst: Ipv4Addr) {
        let last_hops = self.table.get(dst).map_or(0, |route| route.hops);
        let settings = &self.settings;
        let first =
            if last_hops > 0 { last_hops.saturating_add(settings.ttl_increment) } else { settings.ttl_start };
        let ttl = ring(first, settings);
        // What has arrived here is known by the address that it came to.
        let origin = v4(src).filter(|src| self.serves.contains(src)).unwrap_or(self.desk.own);
        let until = cx.now;
        self.begin(cx, dst, Search { origin, ttl, retries: 0, until, is_held: false, is_repair: false });
    }

    /// One request within `ttl`, for a link that broke here.
    pub(super) fn search_to_repair(&mut self, cx: &Cx<'_>, dst: Ipv4Addr, ttl: u8) {
        let ttl = ttl.min(self.settings.net_diameter);
        let (origin, until) = (self.desk.own, cx.now);
        self.begin(cx, dst, Search { origin, ttl, retries: 0, until, is_held: false, is_repair: true });
    }

    fn begin(&mut self, cx: &Cx<'_>, dst: Ipv4Addr, search: Search) {
        if self.searches.by_dst.contains_key(&dst) || self.searches.by_dst.len() >= MOST_SEARCHES {
            return;
        }
        self.desk.discoveries += 1;
        self.request(cx, dst, search);
    }

    /// Sends a request, or holds it until it may be sent.
    fn request(&mut self, cx: &Cx<'_>, dst: Ipv4Addr, mut search: Search) {
        let now = cx.now;
        let may = if self.is_asleep(now) { Err(self.wakes_at) } else { self.searches.rate.take(now) };
        search.is_held = may.is_err();
        search.until = may.err().unwrap_or(now + search.patience(&self.settings));
        self.searches.by_dst.insert(dst, search);
        if search.is_held {
            return;
        }
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
            origin: search.origin,
            origin_seq: self.seq,
        };
        self.desk.note_asked(now, (search.origin, dst), true, self.settings.path_discovery_time());
        let extension = ack_seq::write(&mut self.desk.ack_seqs, cx, search.origin, dst);
        self.links.spoke(now);
        self.desk.tell_everyone(None, search.ttl, &bytes_of(&Message::Rreq(rreq), &extension));
    }

    /// Requests that were not answered in time.
    pub(super) fn go_on_searching(&mut self, cx: &Cx<'_>) {
        let due = |(dst, search): (&Ipv4Addr, &Search)| (search.until <= cx.now).then_some((*dst, *search));
        let due: Vec<_> = self.searches.by_dst.iter().filter_map(due).collect();
        for (dst, search) in due {
            let next = if search.is_held { Some(search) } else { search.next(&self.settings) };
            match next {
                Some(next) => self.request(cx, dst, next),
                None => {
                    self.searches.end(dst);
                    self.desk.drop_waiting(dst);
                    if search.is_repair {
                        self.repair_failed(cx.now, dst);
                    }
                }
            }
        }
    }
}
