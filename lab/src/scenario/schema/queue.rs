//! `radio.queue`, the queue between a node and its radio.

use std::time::Duration;

use hopwise_core::queue::{AirtimeLimits, FqCodelConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Time;
use crate::words::{Word, words};

/// The kind of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::scenario) enum QueueKind {
    #[default]
    DropTail,
    FqCodel,
}

/// Queue between a node and its radio. All keys but `kind` are those of fq-codel.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::scenario) struct QueueKeys {
    /// Kind of the queue (default drop-tail). In world hwsim the kernels have fq-codel above it in any case.
    pub(in crate::scenario) kind: Word<QueueKind>,
    /// Time that packets of a flow may wait for longer than `interval` before CoDel drops one or marks it (default
    /// 20ms).
    #[schemars(extend("x-range" = "1us or more"))]
    pub(in crate::scenario) target: Time,
    /// Time for which packets must wait too long (default 100ms).
    #[schemars(extend("x-range" = "1ms or more"))]
    pub(in crate::scenario) interval: Time,
    /// CoDel marks packets of flows with ECN and does not drop them (default true).
    pub(in crate::scenario) ecn: bool,
    /// Bytes of a flow's turn (default 300).
    #[schemars(extend("x-range" = "1 to 65536", "x-unit" = "bytes"))]
    pub(in crate::scenario) quantum: u32,
    /// Places in the table of flows, which all stations share (default 4096).
    #[schemars(extend("x-range" = "1 to 65536", "x-unit" = "flows"))]
    pub(in crate::scenario) flows: u32,
    /// Largest number of packets above the device. Beyond it the longest flow loses its first one (default 8192).
    #[schemars(extend("x-range" = "1 to 1000000", "x-unit" = "packets"))]
    pub(in crate::scenario) packets: u32,
    /// Largest amount of memory above the device, with 576 bytes beside each packet (default 4096).
    #[schemars(extend("x-range" = "1 to 1000000", "x-unit" = "KiB"))]
    pub(in crate::scenario) memory_kib: u32,
    /// Limit of the airtime that packets in the device may take: Linux's airtime queue limits (default true).
    pub(in crate::scenario) aql: bool,
    /// Airtime of a station in the device below which it gets further packets in any case (default 5ms).
    #[schemars(extend("x-range" = "1us or more"))]
    pub(in crate::scenario) aql_low: Time,
    /// Airtime of a station in the device below which it gets further packets while all stations have less than
    /// `aql_total` (default 12ms).
    #[schemars(extend("x-range" = "1us or more"))]
    pub(in crate::scenario) aql_high: Time,
    /// Airtime of all stations in the device from which `aql_low` holds (default 24ms).
    #[schemars(extend("x-range" = "1us or more"))]
    pub(in crate::scenario) aql_total: Time,
    /// Stations take turns by the airtime of what they get and send, not by packets (default true).
    pub(in crate::scenario) airtime_fairness: bool,
    /// Largest number of packets that the device has and did not begin to send (default 128).
    #[schemars(extend("x-range" = "1 to 65536"))]
    pub(in crate::scenario) device_packets: u32,
}

impl Default for QueueKeys {
    fn default() -> QueueKeys {
        let FqCodelConfig { target, interval, ecn, quantum, flows, packets, memory, is_fair, .. } =
            FqCodelConfig::LINUX;
        let AirtimeLimits { low, high, total } = AirtimeLimits::LINUX;
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        QueueKeys {
            kind: Word(QueueKind::DropTail),
            target: Time(target),
            interval: Time(interval),
            ecn,
            quantum,
            flows,
            packets: number(packets),
            memory_kib: number(memory / 1_024),
            aql: true,
            aql_low: Time(low),
            aql_high: Time(high),
            aql_total: Time(total),
            airtime_fairness: is_fair,
            device_packets: number(FqCodelConfig::LINUX.device_packets),
        }
    }
}

impl QueueKeys {
    /// True for the papers' queue, of which settings tell nothing.
    pub(in crate::scenario) fn is_drop_tail(&self) -> bool {
        self.kind.0 == QueueKind::DropTail
    }

    /// The keys of the limits of airtime.
    pub(in crate::scenario) fn limits(&self) -> [(&'static str, Duration); 3] {
        [("aql_low", self.aql_low.0), ("aql_high", self.aql_high.0), ("aql_total", self.aql_total.0)]
    }
}

words! {
    /// Kind of a queue.
    QueueKind as "QueueName" {
        /// One queue of `radio.queue_packets`. The packet that finds it full is lost, as in the papers.
        "drop-tail" => DropTail,
        /// The queue of Linux's mac80211: flows of each station take turns, CoDel drops from those that wait too long,
        /// and the device holds little.
        "fq-codel" => FqCodel,
    }
}
