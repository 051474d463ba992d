//! The rules by which a driver's report is not believed. `docs/mesh.md` has them in a table.

hopwise_core::named! {
    /// A rule of sanity that a report broke.
    pub enum SanityCheck {
        /// The signal is 0 dBm, as of drivers that know none.
        SignalZero = "signal-zero",
        /// The signal is above 0 dBm: a percentage, or a number without a unit.
        SignalPercent = "signal-percent",
        /// The signal is below the noise of any receiver, which stands for none.
        SignalBelowNoise = "signal-below-noise",
        /// The signal was the same for a minute and a thousand packets.
        SignalStands = "signal-stands",
        /// The time since the last frame does not grow, though nothing is sent or received.
        InactiveStands = "inactive-stands",
        /// The last frame is said to be older than it was.
        InactiveRunsBack = "inactive-runs-back",
        /// After a thousand packets none was repeated and none failed: nothing is known of acknowledgements.
        NoTxStatus = "no-tx-status",
        /// Packets failed, and none was ever repeated.
        RetriesNeverCount = "retries-never-count",
        /// Packets went to a silent station for seconds, and none of them failed.
        FailedNeverCounts = "failed-never-counts",
        /// More packets failed than were sent.
        FailedExceedsSent = "failed-exceeds-sent",
        /// More packets failed than were repeated: each would have been given up at its first try.
        FailedExceedsRetries = "failed-exceeds-retries",
        /// A counter fell alone, and was not at its end.
        CounterFalls = "counter-falls",
        /// A counter rose by more than a radio sends.
        CounterLeaps = "counter-leaps",
        /// Frames took more airtime than there was time.
        AirtimeOverruns = "airtime-overruns",
        /// Frames took no airtime, as mac80211 has it for drivers that do not count it.
        AirtimeNeverCounts = "airtime-never-counts",
        /// No radio has this bit rate.
        BitrateAbsurd = "bitrate-absurd",
        /// The link should carry more than its bit rate.
        ThroughputAboveBitrate = "throughput-above-bitrate",
        /// The station is still listed ten minutes after its last frame.
        StationStays = "station-stays",
    }
}

impl SanityCheck {
    /// The facts that are dropped.
    pub const fn drops(self) -> &'static str {
        match self {
            SanityCheck::SignalZero
            | SanityCheck::SignalPercent
            | SanityCheck::SignalBelowNoise
            | SanityCheck::SignalStands => "signal",
            SanityCheck::InactiveStands | SanityCheck::InactiveRunsBack => "inactive time",
            SanityCheck::NoTxStatus => "retries, failures and an inactive time that acknowledgements end",
            SanityCheck::RetriesNeverCount => "retries",
            SanityCheck::FailedNeverCounts | SanityCheck::FailedExceedsSent => "failures",
            SanityCheck::FailedExceedsRetries => "retries and failures",
            SanityCheck::CounterFalls | SanityCheck::CounterLeaps => "that counter",
            SanityCheck::AirtimeOverruns | SanityCheck::AirtimeNeverCounts => "airtime",
            SanityCheck::BitrateAbsurd => "bit rate",
            SanityCheck::ThroughputAboveBitrate => "expected throughput",
            SanityCheck::StationStays => "the station",
        }
    }
}
