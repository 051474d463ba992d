//! The counters of a proxy.

use hopwise_core::trace::DropReason;

use super::Proxy;
use super::flow::Flow;

/// The counters of a proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxyCounts {
    /// All packets that came in on the two links.
    pub packets: u64,
    /// Flows in the table.
    pub flows: usize,
    /// Those of them without a lasting entry. Only one side was seen, they lack something that their agent needs, or
    /// they are cut in two and over.
    pub brief: usize,
    /// Those of them that are cut in two.
    pub cut: usize,
    /// Flows that were forgotten because another one needed the room.
    pub gave_way: u64,
    /// Packets of no followed flow: no TCP, fragments, damaged, beyond `most_flows`, or without a rule.
    pub untouched: u64,
    /// Packets of flows in the table with numbers that neither end can have sent. They pass without further effect.
    pub unfit: u64,
    /// Flows that pass because they lack something that their agent needs.
    pub unserved: usize,
    /// Flows whose packets went on because memory was short, once for each fade.
    pub overflows: u64,
    /// Waiting packets that went on, and copies that were dropped, because other mobiles needed the memory.
    pub pushed_out: u64,
    /// Packets that found too many others waiting for their link, and were dropped.
    pub no_room: u64,
    /// Packets that wait now, and their memory, with the buffers of flows that are cut in two.
    pub kept_packets: usize,
    /// The bytes of memory that waiting packets and buffers take.
    pub kept_bytes: usize,
    /// The memory of these buffers.
    pub cut_bytes: usize,
}

impl Proxy {
    /// The counters as of now.
    pub fn counts(&self) -> ProxyCounts {
        let (all, kept): (_, usize) = (self.entries.bytes(), self.flows.values().map(Flow::kept_bytes).sum());
        ProxyCounts {
            packets: self.packets,
            flows: self.flows.len() + self.relays.len(),
            brief: self.entries.brief(),
            cut: self.relays.len(),
            gave_way: self.gave_way,
            untouched: self.untouched,
            unfit: self.out.unfit,
            unserved: self.flows.values().filter(|flow| flow.is_unserved()).count(),
            overflows: self.out.overflows,
            pushed_out: self.out.pushed_out,
            no_room: self.drops(DropReason::QueueFull),
            kept_packets: self.flows.values().map(Flow::kept_packets).sum(),
            kept_bytes: all,
            cut_bytes: all.saturating_sub(kept),
        }
    }
}
