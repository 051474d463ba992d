//! The load that each rate carried.

use hopwise_air::dcf::RateUse;
use serde::{Deserialize, Serialize};

use crate::scenario::Prepared;

/// The load that a rate carried from a node to another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateRow {
    /// The name of the node.
    pub node: String,
    /// The name of the receiver.
    pub to: String,
    /// The rate.
    pub rate: String,
    /// The bits of the rate in Mbit/s.
    pub mbps: f64,
    /// Data frames at this rate.
    pub frames: u64,
    /// Packets in them.
    pub packets: u64,
    /// Those of them that were acknowledged.
    pub acknowledged: u64,
    /// The airtime of the frames, in seconds.
    pub airtime_s: f64,
}

impl RateRow {
    /// The rows of a node, by receiver, the fastest rates first.
    pub(super) fn of(prepared: &Prepared, node: u32, rates: &[RateUse]) -> Vec<RateRow> {
        let mut rates = rates.to_vec();
        rates.sort_by_key(|used| (used.to, std::cmp::Reverse(used.rate.bits_per_second)));
        let row = |used: RateUse| RateRow {
            node: prepared.name_of(node).to_owned(),
            to: prepared.name_of(used.to).to_owned(),
            rate: used.rate.to_string(),
            mbps: used.rate.bits_per_second as f64 / 1e6,
            frames: used.frames,
            packets: used.packets,
            acknowledged: used.came,
            airtime_s: used.airtime_ns as f64 / 1e9,
        };
        rates.into_iter().map(row).collect()
    }
}
