//! The state of `hopwise thin`, for `hopwise status`.

use serde::{Deserialize, Serialize};

use crate::table::MetricsPage;

/// Output of `hopwise status` for a daemon that thins ACKs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThinSnapshot {
    pub pid: u32,
    pub version: String,
    pub interfaces: Vec<String>,
    pub receiver: String,
    pub queue: u16,
    pub flows: usize,
    /// ACKs that wait now.
    pub held: usize,
    /// Pure ACKs of followed flows, and how many of them were dropped for a newer ACK or for data.
    pub acks: u64,
    pub replaced: u64,
    pub ridden: u64,
    /// Pure ACKs that passed at once: duplicates, new SACK blocks, marks, windows at zero, the first of a flow.
    pub news: u64,
    /// Packets that were not understood, and ACKs of flows for which there was no room.
    pub untouched: u64,
    pub no_room: u64,
}

impl ThinSnapshot {
    /// Pure ACKs of followed flows that left.
    fn left(&self) -> u64 {
        self.acks.saturating_sub(self.replaced + self.ridden)
    }

    /// The counters in Prometheus' text format.
    pub fn metrics(&self) -> String {
        let mut page = MetricsPage::default();
        let fates = [("left", self.left()), ("replaced", self.replaced), ("ridden", self.ridden)];
        let help = "Pure ACKs of followed flows, by fate; ridden: dropped as data left with a newer number.";
        page.by(["hopwise_thin_acks_total", "counter", help], "fate", fates);
        let passed = [("news", self.news), ("not-understood", self.untouched), ("no-room", self.no_room)];
        let help = "Packets that passed at once, by cause.";
        page.by(["hopwise_thin_passed_total", "counter", help], "cause", passed);
        page.alone("hopwise_thin_flows", "gauge", "Flows that are followed.", self.flows);
        page.alone("hopwise_thin_held", "gauge", "ACKs that wait.", self.held);
        page.text()
    }

    /// Lines for people.
    pub fn page(&self) -> String {
        let ThinSnapshot { pid, version, interfaces, receiver, queue, flows, held, .. } = self;
        let ThinSnapshot { acks, replaced, ridden, news, untouched, no_room, .. } = self;
        let left = self.left();
        format!(
            "thin on {}, receiver {receiver}, queue {queue}, pid {pid}, hopwise {version}\n\
             flows {flows}, ACKs that wait {held}\n\
             ACKs {acks}, left {left}, replaced {replaced}, gone with data {ridden}, passed at once {news}\n\
             packets not understood {untouched}, ACKs of flows without room {no_room}\n",
            interfaces.join(" ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_the_acks_that_left() {
        let snapshot = ThinSnapshot { acks: 10, replaced: 6, ridden: 1, ..ThinSnapshot::default() };
        assert!(snapshot.page().contains("ACKs 10, left 3, replaced 6, gone with data 1"));
        assert!(snapshot.metrics().contains("hopwise_thin_acks_total{fate=\"left\"} 3\n"));
    }
}
