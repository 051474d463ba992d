//! The table of ns-2: routes that are up, in repair, or down. No entry is ever removed.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::narrow::as_u32;
use hopwise_core::{Instant, LinkId};

/// The hop count of a route that is down.
pub(super) const INFINITE: u8 = 255;
/// The number of discoveries whose times are remembered.
const HISTORY: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flag {
    Down,
    Up,
    InRepair,
}

#[derive(Clone, Debug)]
pub(super) struct Ns2Entry {
    pub(super) flag: Flag,
    pub(super) seq: u32,
    pub(super) hops: u8,
    /// The hop count before it went down.
    pub(super) last_hops: u8,
    pub(super) link: LinkId,
    pub(super) next_hop: Ipv4Addr,
    pub(super) precursors: Vec<Ipv4Addr>,
    pub(super) expires: Instant,
    /// No request leaves before this time.
    pub(super) rests_until: Instant,
    /// Requests across the whole network so far.
    pub(super) wide_requests: u8,
    pub(super) last_ttl: u8,
    pub(super) asked_at: Instant,
    pub(super) is_asking: bool,
    /// Times of discoveries, per hop.
    latencies: [Duration; HISTORY],
    latency_index: usize,
    /// Packets of this node itself have used it.
    pub(super) is_ours: bool,
    /// Until then the last of them counts, with `search_at_once`.
    pub(super) own_use_until: Instant,
    /// It is requested again although no packet waits.
    pub(super) is_wanted: bool,
    /// The hop count that connections last got.
    pub(super) reported_hops: Option<u8>,
}

impl Ns2Entry {
    fn new() -> Ns2Entry {
        Ns2Entry {
            flag: Flag::Down,
            seq: 0,
            hops: INFINITE,
            last_hops: INFINITE,
            link: LinkId(0),
            next_hop: Ipv4Addr::UNSPECIFIED,
            precursors: Vec::new(),
            expires: Instant::ZERO,
            rests_until: Instant::ZERO,
            wide_requests: 0,
            last_ttl: 0,
            asked_at: Instant::ZERO,
            is_asking: false,
            latencies: [Duration::ZERO; HISTORY],
            latency_index: 0,
            is_ours: false,
            own_use_until: Instant::ZERO,
            is_wanted: false,
            reported_hops: None,
        }
    }

    pub(super) fn usable_hops(&self) -> Option<u8> {
        (self.flag == Flag::Up).then_some(self.hops)
    }

    /// Returns whether the offer has a newer number, or an equal one and fewer hops.
    pub(super) fn is_worse_than(&self, seq: u32, hops: u8) -> bool {
        seq > self.seq || (seq == self.seq && hops < self.hops)
    }

    pub(super) fn take_down(&mut self) {
        if self.flag == Flag::Down {
            return;
        }
        self.last_hops = self.hops;
        self.hops = INFINITE;
        self.flag = Flag::Down;
        self.expires = Instant::ZERO;
    }

    /// A request was answered.
    pub(super) fn found(&mut self, hops: u8) {
        (self.wide_requests, self.rests_until, self.last_ttl) = (0, Instant::ZERO, hops);
        (self.is_asking, self.is_wanted) = (false, false);
    }

    pub(super) fn learn_latency(&mut self, per_hop: Duration) {
        self.latencies[self.latency_index] = per_hop;
        self.latency_index = (self.latency_index + 1) % HISTORY;
    }

    pub(super) fn time_per_hop(&self, before_any: Duration) -> Duration {
        let known = || self.latencies.iter().filter(|latency| !latency.is_zero());
        match known().count() {
            0 => before_any,
            n => known().sum::<Duration>() / as_u32(n),
        }
    }

    pub(super) fn add_precursor(&mut self, neighbour: Ipv4Addr) {
        if let Err(at) = self.precursors.binary_search(&neighbour) {
            self.precursors.insert(at, neighbour);
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Ns2Table(BTreeMap<Ipv4Addr, Ns2Entry>);

impl Ns2Table {
    pub(super) fn get(&self, dst: Ipv4Addr) -> Option<&Ns2Entry> {
        self.0.get(&dst)
    }

    pub(super) fn get_mut(&mut self, dst: Ipv4Addr) -> Option<&mut Ns2Entry> {
        self.0.get_mut(&dst)
    }

    pub(super) fn entry(&mut self, dst: Ipv4Addr) -> &mut Ns2Entry {
        self.0.entry(dst).or_insert_with(Ns2Entry::new)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (Ipv4Addr, &mut Ns2Entry)> {
        self.0.iter_mut().map(|(dst, entry)| (*dst, entry))
    }

    pub(super) fn destinations(&self) -> Vec<Ipv4Addr> {
        self.0.keys().copied().collect()
    }
}
