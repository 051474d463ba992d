//! The airtime of packets in a device: how much a station may have there (AQL), and whose turn it is.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::Category;
use crate::{NextHop, nanos};

/// A station, and the category of its packets.
type Share = (NextHop, Category);

/// The airtime that a station's turn is worth.
const TURN_NS: i64 = 256_000;
/// The payload of the packet that tells how many packets share an aggregate.
const USUAL_BYTES: u64 = 1_024;
/// With more stations than this, those are forgotten that have no packet anywhere.
const MOST_STATIONS: usize = 1_024;

/// The most airtime of packets in the device: Linux's airtime queue limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AirtimeLimits {
    /// A station gets further packets below this much airtime of its own.
    pub low: Duration,
    /// Below this much, if that of all stations is below `total`.
    pub high: Duration,
    /// The airtime of all stations from which `low` holds.
    pub total: Duration,
}

impl AirtimeLimits {
    /// Linux's own.
    pub const LINUX: AirtimeLimits = AirtimeLimits {
        low: Duration::from_millis(5),
        high: Duration::from_millis(12),
        total: Duration::from_millis(24),
    };
}

/// The airtime of packets at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AirtimeEstimate {
    /// The part that a frame has whatever it carries: its preamble.
    pub frame_ns: u64,
    /// The airtime of 1,024 bytes of payload with their header.
    pub usual_ns: u64,
    /// Several packets share a frame.
    pub is_aggregated: bool,
}

impl AirtimeEstimate {
    /// Packets take no time.
    pub const NONE: AirtimeEstimate = AirtimeEstimate { frame_ns: 0, usual_ns: 0, is_aggregated: false };

    /// The expected airtime of a packet. Packets of an aggregate share the part of the frame: mac80211 expects 2 to 32
    /// of them, by the rate.
    pub fn of(&self, bytes: usize) -> u64 {
        let shift = match self.usual_ns / 1_000 {
            _ if !self.is_aggregated => 0,
            401.. => 1,
            251..=400 => 2,
            151..=250 => 3,
            71..=150 => 4,
            _ => 5,
        };
        (self.frame_ns >> shift) + self.usual_ns * bytes as u64 / USUAL_BYTES
    }
}

/// The radio's report of a packet when its fate is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    /// The packet's id.
    pub id: u64,
    /// The frames that carried it; 0 for a packet that was lost before, of which no fate follows.
    pub tries: u32,
    /// The airtime of packets at the rate of the last of them.
    pub estimate: AirtimeEstimate,
}

/// A packet in the device.
#[derive(Clone, Copy, Debug)]
struct Lent {
    id: u64,
    to: Share,
    bytes: usize,
    airtime_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Station {
    estimate: AirtimeEstimate,
    pending_ns: u64,
    /// The rest of its turn. Below zero it waits for the others.
    credit_ns: i64,
}

/// The stations' airtime, by category.
#[derive(Debug)]
pub(super) struct Airtime {
    limits: Option<AirtimeLimits>,
    first: AirtimeEstimate,
    stations: BTreeMap<Share, Station>,
    lent: VecDeque<Lent>,
    pending_ns: u64,
}

impl Airtime {
    pub(super) fn new(limits: Option<AirtimeLimits>, first: AirtimeEstimate) -> Airtime {
        Airtime { limits, first, stations: BTreeMap::new(), lent: VecDeque::new(), pending_ns: 0 }
    }

    fn station(&mut self, to: Share) -> &mut Station {
        if self.stations.len() >= MOST_STATIONS && !self.stations.contains_key(&to) {
            self.stations.retain(|_, station| station.pending_ns > 0);
        }
        let estimate = self.first;
        self.stations.entry(to).or_insert(Station { estimate, pending_ns: 0, credit_ns: 0 })
    }

    /// Returns whether the device takes a further packet for this station. Broadcasts have no limit.
    pub(super) fn may_lend(&self, to: Share) -> bool {
        let (Some(limits), (NextHop::Neighbour(_), _)) = (self.limits, to) else { return true };
        let own = self.stations.get(&to).map_or(0, |station| station.pending_ns);
        own < nanos(limits.low) || (self.pending_ns < nanos(limits.total) && own < nanos(limits.high))
    }

    /// The device takes a packet.
    pub(super) fn lend(&mut self, id: u64, to: Share, bytes: usize) {
        let station = self.station(to);
        let airtime_ns = station.estimate.of(bytes);
        station.pending_ns += airtime_ns;
        self.pending_ns += airtime_ns;
        self.lent.push_back(Lent { id, to, bytes, airtime_ns });
    }

    /// The device has a packet no longer.
    pub(super) fn give_back(&mut self, id: u64) {
        let Some(lent) = self.place_of(id).and_then(|place| self.lent.remove(place)) else { return };
        self.pending_ns = self.pending_ns.saturating_sub(lent.airtime_ns);
        let station = self.station(lent.to);
        station.pending_ns = station.pending_ns.saturating_sub(lent.airtime_ns);
    }

    fn place_of(&self, id: u64) -> Option<usize> {
        self.lent.iter().position(|lent| lent.id == id)
    }

    /// A packet in the device has taken so much time.
    pub(super) fn spend(&mut self, spent: &Spent) {
        let Some(lent) = self.place_of(spent.id).map(|place| self.lent[place]) else { return };
        self.station(lent.to).estimate = spent.estimate;
        let airtime_ns = spent.estimate.of(lent.bytes).saturating_mul(spent.tries.into());
        self.charge(lent.to, airtime_ns);
    }

    /// A packet of the station has come, and has taken time as well.
    pub(super) fn hear(&mut self, from: Share, bytes: usize) {
        let airtime_ns = self.station(from).estimate.of(bytes);
        self.charge(from, airtime_ns);
    }

    fn charge(&mut self, to: Share, airtime_ns: u64) {
        let station = self.station(to);
        station.credit_ns = station.credit_ns.saturating_sub_unsigned(airtime_ns);
    }

    /// Returns whether the station's turn is over; it then gets the credit for a further one.
    pub(super) fn ends_turn(&mut self, to: Share) -> bool {
        let station = self.station(to);
        let is_over = matches!(to, (NextHop::Neighbour(_), _)) && station.credit_ns < 0;
        if is_over {
            station.credit_ns += TURN_NS;
        }
        is_over
    }
}
