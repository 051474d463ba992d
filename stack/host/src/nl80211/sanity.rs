//! Drops what a driver cannot mean. Each rule has a name ([`SanityCheck`]), and judges the reports of one interface.
//!
//! A rule drops facts and makes up none. One exception: without a time of the last frame, a station was last heard when
//! its received bytes or packets moved.

use std::collections::BTreeMap;
use std::time::Duration;

use hopwise_core::{Instant, LinkFacts, StationAddress};

use super::Counter;

/// The most stations of an interface; a kernel's own bounds are lower.
const MOST_STATIONS: usize = 4_096;
/// More frames a second than any radio sends, and more bytes than they have.
const MOST_PACKETS: u64 = 1_000_000;
const MOST_BYTES: u64 = MOST_PACKETS << 14;
/// Thermal noise in 5 MHz is -107 dBm.
const NOISE_DBM: i8 = -110;
/// The fastest link of IEEE 802.11be is at 46 Gbit/s.
const MOST_BPS: u64 = 50_000_000_000;
/// The time and the number of packets after which a constant signal is not believed.
const SAME_SIGNAL: (Duration, u64) = (Duration::from_secs(60), 1_000);
/// The time after which a constant inactive time is not believed.
const SAME_INACTIVE: Duration = Duration::from_secs(3);
/// Some drivers give whole seconds.
const INACTIVE_GRAIN: Duration = Duration::from_millis(1_100);
/// Packets after which a link without any repetition counts as unknown.
const FLAWLESS: u64 = 1_000;
/// Packets to a station that was silent for that long; a driver's queue holds fewer.
const UNANSWERED: (Duration, u64) = (Duration::from_secs(2), 64);
/// Failures that are enough to compare counters.
const FAILURES: u64 = 32;
/// Packets that have taken some time.
const UNTIMED: u64 = 32;
/// Packets that a driver may have counted on one side only.
const SLACK: u64 = 64;
/// The most tries of a packet that an 8-bit number counts.
const MOST_TRIES: u64 = 256;
const STAYS: Duration = Duration::from_secs(600);

/// The reporter's standing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReporterTrust {
    /// A driver, which has to be plausible.
    Judged,
    /// A simulated radio, which knows.
    Known,
}

/// Judges the stations of an interface.
#[derive(Debug)]
pub(super) struct Sanity {
    trust: ReporterTrust,
    known: BTreeMap<StationAddress, JudgedLink>,
    /// The broken rules, each with the first station that showed it.
    broken: BTreeMap<SanityCheck, StationAddress>,
}

impl Sanity {
    pub(super) fn new(trust: ReporterTrust) -> Sanity {
        Sanity { trust, known: BTreeMap::new(), broken: BTreeMap::new() }
    }

    /// The facts of a report that are believed. `sink` gets each rule once, when it is first broken.
    pub(super) fn judge(
        &mut self,
        report: &[LinkFacts],
        mut sink: impl FnMut(SanityCheck, StationAddress),
    ) -> Vec<LinkFacts> {
        self.known.retain(|address, _| report.iter().any(|said| said.station == *address));
        let mut believed = Vec::with_capacity(report.len());
        for said in report.iter().take(MOST_STATIONS) {
            let known = self.known.entry(said.station).or_insert_with(|| JudgedLink::new(said));
            let broken = &mut self.broken;
            believed.extend(known.judge(self.trust, said, &mut |rule| {
                broken.entry(rule).or_insert_with(|| {
                    sink(rule, said.station);
                    said.station
                });
            }));
        }
        believed
    }

    /// A station came anew: its counters begin anew.
    pub(super) fn forget(&mut self, station: StationAddress) {
        self.known.remove(&station);
    }

    pub(super) fn broken(&self) -> impl Iterator<Item = (SanityCheck, StationAddress)> {
        self.broken.iter().map(|(rule, station)| (*rule, *station))
    }
}

/// The state of a link whose report was first judged at `first`.
#[derive(Debug)]
struct JudgedLink {
    first: Instant,
    at: Instant,
    counters: [Option<Counter>; 7],
    /// Airtime that was counted before.
    airtime: [u64; 2],
    rx_moved: Option<Instant>,
    moved: Instant,
    /// An inactive time that stands, and since when.
    stands: (Option<Duration>, Instant),
    heard: Option<Instant>,
    runs_back: bool,
    /// The packets and failures when the station was last heard.
    at_last_heard: (Option<u64>, Option<u64>),
    failed_never_counts: bool,
    /// A signal, and the time and the packets since its last change.
    signal: (Option<i8>, Instant, Option<u64>),
}

const TX_PACKETS: usize = 0;
const RX_PACKETS: usize = 3;
const RX_BYTES: usize = 4;
const TX_DURATION: usize = 5;
const RX_DURATION: usize = 6;

/// The counters of a report, durations in microseconds.
fn numbers(said: &LinkFacts) -> [Option<u64>; 7] {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let LinkFacts { tx_packets, tx_retries, tx_failed, rx_packets, rx_bytes, .. } = *said;
    let durations = [said.tx_duration.map(micros), said.rx_duration.map(micros)];
    [tx_packets, tx_retries, tx_failed, rx_packets, rx_bytes, durations[0], durations[1]]
}

impl JudgedLink {
    fn new(said: &LinkFacts) -> JudgedLink {
        let numbers = numbers(said);
        JudgedLink {
            first: said.at,
            at: said.at,
            counters: numbers.map(|number| number.map(Counter::new)),
            airtime: [TX_DURATION, RX_DURATION].map(|nth| numbers[nth].unwrap_or(0)),
            rx_moved: None,
            moved: said.at,
            stands: (said.inactive, said.at),
            heard: None,
            runs_back: false,
            at_last_heard: (said.tx_packets, said.tx_failed),
            failed_never_counts: false,
            signal: (said.signal_dbm, said.at, said.rx_packets),
        }
    }

    fn judge(
        &mut self,
        trust: ReporterTrust,
        said: &LinkFacts,
        broken: &mut dyn FnMut(SanityCheck),
    ) -> Option<LinkFacts> {
        let mut facts = self.count(trust, said, broken);
        if trust == ReporterTrust::Known {
            return Some(facts);
        }
        let is_unknown = self.judge_failures(&mut facts, broken);
        self.judge_inactive(&mut facts, is_unknown, broken);
        self.judge_signal(&mut facts, broken);
        self.judge_airtime(&mut facts, broken);
        judge_rates(&mut facts, broken);
        let is_counted = facts.rx_packets.is_some() || facts.rx_bytes.is_some();
        let quiet = is_counted.then(|| facts.at.since(self.rx_moved.unwrap_or(self.first)));
        if facts.inactive.or(quiet).is_some_and(|age| age >= STAYS) {
            broken(SanityCheck::StationStays);
            return None;
        }
        Some(facts)
    }

    /// Counts on, and notes the counters that have moved.
    fn count(
        &mut self,
        trust: ReporterTrust,
        said: &LinkFacts,
        broken: &mut dyn FnMut(SanityCheck),
    ) -> LinkFacts {
        let numbers = numbers(said);
        let fell = |nth: usize| {
            self.counters[nth].zip(numbers[nth]).is_some_and(|(counter, number)| counter.falls(number))
        };
        let is_anew = fell(TX_PACKETS) && (fell(RX_PACKETS) || fell(RX_BYTES));
        let seconds = said.at.since(self.at).as_secs() + 1;
        let mut totals = [None; 7];
        for (nth, (counter, number)) in self.counters.iter_mut().zip(numbers).enumerate() {
            let Some(number) = number else { continue };
            let counter = counter.get_or_insert_with(|| Counter::new(number));
            let before = counter.total();
            let most = if nth < RX_BYTES { MOST_PACKETS } else { MOST_BYTES }.saturating_mul(seconds);
            let most = if trust == ReporterTrust::Known { u64::MAX } else { most };
            counter
                .follow(number, most, is_anew || trust == ReporterTrust::Known)
                .unwrap_or_else(&mut *broken);
            totals[nth] = counter.total();
            if totals[nth] > before {
                self.moved = said.at;
                if matches!(nth, RX_PACKETS | RX_BYTES) {
                    self.rx_moved = Some(said.at);
                }
            }
        }
        self.at = said.at;
        let [tx_packets, tx_retries, tx_failed, rx_packets, rx_bytes, tx_us, rx_us] = totals;
        let (tx_duration, rx_duration) = (tx_us.map(Duration::from_micros), rx_us.map(Duration::from_micros));
        LinkFacts {
            tx_packets,
            tx_retries,
            tx_failed,
            rx_packets,
            rx_bytes,
            tx_duration,
            rx_duration,
            ..*said
        }
    }

    /// Compares the counters of packets, retries and failures. Returns whether acknowledgements are unknown.
    fn judge_failures(&mut self, facts: &mut LinkFacts, broken: &mut dyn FnMut(SanityCheck)) -> bool {
        let LinkFacts { tx_packets, tx_retries, tx_failed, .. } = *facts;
        if let (Some(sent), Some(retries)) = (tx_packets, tx_retries)
            && retries > MOST_TRIES.saturating_mul(sent + SLACK)
        {
            broken(SanityCheck::CounterLeaps);
            facts.tx_retries = None;
            if let [_, Some(counter), ..] = &mut self.counters {
                counter.distrust();
            }
        }
        if self.never_counts(facts) {
            broken(SanityCheck::FailedNeverCounts);
            facts.tx_failed = None;
        }
        let Some(failed) = tx_failed else { return false };
        if tx_packets.is_some_and(|sent| failed > sent + SLACK) {
            broken(SanityCheck::FailedExceedsSent);
            facts.tx_failed = None;
        }
        let Some(retries) = facts.tx_retries else { return false };
        if failed >= FAILURES && retries == 0 {
            broken(SanityCheck::RetriesNeverCount);
            facts.tx_retries = None;
        } else if failed >= FAILURES && failed > retries {
            broken(SanityCheck::FailedExceedsRetries);
            (facts.tx_retries, facts.tx_failed) = (None, None);
        }
        let is_unknown = failed == 0 && retries == 0 && tx_packets.is_some_and(|sent| sent >= FLAWLESS);
        if is_unknown {
            broken(SanityCheck::NoTxStatus);
            (facts.tx_retries, facts.tx_failed) = (None, None);
        }
        is_unknown
    }

    /// Returns whether packets to a silent station do not count as failed. A counter that moves is believed again.
    fn never_counts(&mut self, facts: &LinkFacts) -> bool {
        let LinkFacts { tx_packets, tx_failed, inactive, .. } = *facts;
        let (sent, failed) = self.at_last_heard;
        let is_newer = match (facts.heard_at(), self.heard) {
            (Some(now), Some(before)) => now.since(before) > Duration::from_millis(20),
            (Some(_), None) => true,
            (None, _) => false,
        };
        let has_moved = tx_failed != failed;
        self.failed_never_counts &= !has_moved;
        if is_newer || has_moved {
            self.at_last_heard = (tx_packets, tx_failed);
        } else if let (Some(now), Some(before)) = (tx_packets, sent) {
            let is_silent = inactive.is_some_and(|inactive| inactive >= UNANSWERED.0);
            self.failed_never_counts |= is_silent && now.saturating_sub(before) >= UNANSWERED.1;
        }
        self.failed_never_counts && tx_failed.is_some()
    }

    fn judge_inactive(
        &mut self,
        facts: &mut LinkFacts,
        is_unknown: bool,
        broken: &mut dyn FnMut(SanityCheck),
    ) {
        let is_counted = facts.rx_packets.is_some() || facts.rx_bytes.is_some();
        if let (Some(inactive), Some(heard)) = (facts.inactive, facts.heard_at()) {
            let (value, since) = self.stands;
            if value != Some(inactive) || self.moved > since || !is_counted {
                self.stands = (Some(inactive), facts.at);
            } else if facts.at.since(since) >= SAME_INACTIVE {
                broken(SanityCheck::InactiveStands);
                facts.inactive = None;
            }
            self.runs_back |= self.heard.is_some_and(|before| before.since(heard) > INACTIVE_GRAIN);
            self.heard = self.heard.max(Some(heard));
            if self.runs_back {
                broken(SanityCheck::InactiveRunsBack);
                facts.inactive = None;
            }
        }
        if is_counted && (is_unknown || facts.inactive.is_none()) {
            facts.inactive = self.rx_moved.map(|moved| facts.at.since(moved));
        }
    }

    fn judge_signal(&mut self, facts: &mut LinkFacts, broken: &mut dyn FnMut(SanityCheck)) {
        // mac80211 reports 0 dBm until the first frame is received. The signal is unknown then, and no driver lies.
        if facts.rx_packets == Some(0) {
            (facts.signal_dbm, facts.signal_average_dbm) = (None, None);
        }
        for signal in [&mut facts.signal_dbm, &mut facts.signal_average_dbm] {
            let rule = match *signal {
                Some(0) => SanityCheck::SignalZero,
                Some(1..) => SanityCheck::SignalPercent,
                Some(..NOISE_DBM) => SanityCheck::SignalBelowNoise,
                _ => continue,
            };
            broken(rule);
            *signal = None;
        }
        let (value, since, packets) = self.signal;
        if value != facts.signal_dbm || packets.is_none() {
            self.signal = (facts.signal_dbm, facts.at, facts.rx_packets);
        } else if let (Some(before), Some(now), Some(_)) = (packets, facts.rx_packets, value)
            && facts.at.since(since) >= SAME_SIGNAL.0
            && now.saturating_sub(before) >= SAME_SIGNAL.1
        {
            broken(SanityCheck::SignalStands);
            (facts.signal_dbm, facts.signal_average_dbm) = (None, None);
        }
    }

    fn judge_airtime(&self, facts: &mut LinkFacts, broken: &mut dyn FnMut(SanityCheck)) {
        let most = facts.at.since(self.first) * 2 + Duration::from_secs(1);
        let packets = [facts.tx_packets, facts.rx_packets];
        let airtimes = [&mut facts.tx_duration, &mut facts.rx_duration].into_iter().zip(self.airtime);
        for ((airtime, before), packets) in airtimes.zip(packets) {
            if *airtime == Some(Duration::ZERO) && packets.is_some_and(|packets| packets >= UNTIMED) {
                broken(SanityCheck::AirtimeNeverCounts);
                *airtime = None;
            }
            if airtime.is_some_and(|airtime| airtime > most + Duration::from_micros(before)) {
                broken(SanityCheck::AirtimeOverruns);
                *airtime = None;
            }
        }
    }
}

fn judge_rates(facts: &mut LinkFacts, broken: &mut dyn FnMut(SanityCheck)) {
    if facts.tx_bitrate_bps.is_some_and(|bps| bps == 0 || bps > MOST_BPS) {
        broken(SanityCheck::BitrateAbsurd);
        facts.tx_bitrate_bps = None;
    }
    if let (Some(throughput), Some(bitrate)) = (facts.expected_throughput_bps, facts.tx_bitrate_bps)
        && throughput > bitrate
    {
        broken(SanityCheck::ThroughputAboveBitrate);
        facts.expected_throughput_bps = None;
    }
}

hopwise_core::named! {
    /// A rule of sanity that a report broke.
    pub enum SanityCheck {
        /// The signal is 0 dBm, as of drivers that know none.
        SignalZero = "signal-zero",
        /// The signal is above 0 dBm: a percentage, or a number without a unit.
        SignalPercent = "signal-percent",
        /// The signal is below the noise of any receiver, which stands for none.
        SignalBelowNoise = "signal-below-noise",
        /// The signal did not change for a minute and a thousand packets.
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

#[cfg(test)]
mod tests;
