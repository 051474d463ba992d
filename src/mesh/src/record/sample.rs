//! The rows of one sample, from what a driver tells of its stations.
//!
//! A driver keeps the signal of a station's last frame for as long as it keeps the station. Here a signal holds for a
//! while after that frame. Later it is not known: the neighbour may be silent, or out of reach.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use hopwise_air::channel::recording::RecordedLink;
use hopwise_core::{Instant, LinkFacts, StationAddress};
use hopwise_host::nl80211::ChannelUse;
use hopwise_lab::plain::problem_of_name;
use hopwise_lab::record::quoted;
use serde::Serialize;

pub(super) struct Sampler {
    node: String,
    names: BTreeMap<StationAddress, String>,
    hold: Duration,
    known: BTreeMap<StationAddress, StationSample>,
    used: Option<ChannelUse>,
    counted: BTreeMap<StationAddress, NeighbourCounts>,
}

/// A station in the sample before.
struct StationSample {
    facts: LinkFacts,
    /// The time of its last frame; `None` if that was too long ago.
    heard: Option<Instant>,
}

/// A neighbour in the whole recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct NeighbourCounts {
    pub name: String,
    pub address: String,
    /// Samples with its signal.
    pub(super) signals: u64,
    pub(super) last_signal_dbm: Option<f64>,
}

impl Sampler {
    pub(super) fn new(node: &str, names: BTreeMap<StationAddress, String>, hold: Duration) -> Sampler {
        let (known, counted) = (BTreeMap::new(), BTreeMap::new());
        Sampler { node: node.to_owned(), names, hold, known, used: None, counted }
    }

    /// The number of stations in the last sample.
    pub(super) fn neighbours(&self) -> usize {
        self.known.len()
    }

    /// All neighbours so far.
    pub(super) fn counted(&self) -> Vec<NeighbourCounts> {
        self.counted.values().cloned().collect()
    }

    /// Tells the rows of a report: for each station what is heard of it, and what is sent to it.
    pub(super) fn sample(
        &mut self,
        at: Instant,
        report: &[LinkFacts],
        used: Option<ChannelUse>,
        sink: &mut dyn FnMut(RecordedLink),
    ) {
        let busy = busy(self.used, used);
        self.used = used;
        let mut known = BTreeMap::new();
        for facts in report {
            let before = self.known.get(&facts.station);
            let heard = heard(facts, before, at);
            let holds = heard.is_some_and(|heard| at.since(heard) <= self.hold);
            let signal = facts.signal_dbm.or(facts.signal_average_dbm).filter(|_| holds).map(f64::from);
            let name = self.names.get(&facts.station).cloned();
            let name = name.unwrap_or_else(|| facts.station.to_string());
            let from_it = RecordedLink {
                time_s: at.0 as f64 / 1e9,
                from: name.clone(),
                to: self.node.clone(),
                signal_dbm: signal,
                noise_dbm: used.and_then(|used| used.noise_dbm).map(f64::from),
                busy,
                ..RecordedLink::default()
            };
            let to_it = self.to_it(at, name.clone(), facts, before);
            let told = [from_it.signal_dbm, from_it.noise_dbm, from_it.busy];
            if told.iter().any(Option::is_some) {
                sink(from_it);
            }
            to_it.into_iter().for_each(&mut *sink);
            let counted = self.counted.entry(facts.station).or_default();
            (counted.name, counted.address) = (name, facts.station.to_string());
            counted.signals += u64::from(signal.is_some());
            counted.last_signal_dbm = signal.or(counted.last_signal_dbm);
            known.insert(facts.station, StationSample { facts: *facts, heard });
        }
        self.known = known;
    }

    /// The facts that the sender knows; `None` if there are none.
    fn to_it(
        &self,
        at: Instant,
        to: String,
        facts: &LinkFacts,
        before: Option<&StationSample>,
    ) -> Option<RecordedLink> {
        let change = before.and_then(|before| facts.since(&before.facts)).unwrap_or_default();
        let row = RecordedLink {
            rate_bps: facts.tx_bitrate_bps,
            expected_bps: facts.expected_throughput_bps,
            packets: change.tx_packets,
            retries: change.tx_retries,
            failed: change.tx_failed,
            airtime_s: change.tx_duration.map(|time| time.as_secs_f64()),
            ..RecordedLink::default()
        };
        (row != RecordedLink::default()).then(|| RecordedLink {
            time_s: at.0 as f64 / 1e9,
            from: self.node.clone(),
            to,
            ..row
        })
    }
}

/// The time of the last frame. An acknowledgement ends a station's silence too, and brings no signal; counts of what
/// was received therefore say more than the time of silence, where a driver has them.
fn heard(facts: &LinkFacts, before: Option<&StationSample>, at: Instant) -> Option<Instant> {
    let received = |facts: &LinkFacts| (facts.rx_bytes, facts.rx_packets);
    match before {
        Some(before) if received(facts) != received(&before.facts) => Some(at),
        Some(before) if received(facts) != (None, None) => before.heard,
        // Without any clue the driver is believed.
        _ => Some(facts.heard_at().unwrap_or(at)),
    }
}

/// The share of time in which the channel was busy between two reports.
fn busy(before: Option<ChannelUse>, now: Option<ChannelUse>) -> Option<f64> {
    let (before, now) = (before?, now?);
    if before.frequency_mhz != now.frequency_mhz {
        return None;
    }
    let active = now.active?.checked_sub(before.active?)?.as_secs_f64();
    let busy = now.busy?.checked_sub(before.busy?)?.as_secs_f64();
    (active > 0.0).then(|| (busy / active).min(1.0))
}

/// The name of the radio with an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeName(pub(crate) StationAddress, pub(crate) String);

impl FromStr for NodeName {
    type Err = String;

    fn from_str(text: &str) -> Result<NodeName, String> {
        let wrong = || format!("`{text}`, expected ADDRESS=NAME, such as 02:00:00:00:00:01=roof");
        let (address, called) = text.split_once('=').ok_or_else(wrong)?;
        Ok(NodeName(address.parse().map_err(|_| wrong())?, name(called)?))
    }
}

/// A name that stands in a cell as it is, and that is no address.
pub(super) fn name(text: &str) -> Result<String, String> {
    let parts = |letter: char| letter.is_whitespace() || letter == '#';
    let is_cell = quoted(text) == text && problem_of_name(text).is_none();
    if text.is_empty() || text.contains(parts) || !is_cell || text.parse::<StationAddress>().is_ok() {
        return Err(format!(
            "`{text}`, expected a name such as roof, without space, `,`, `;`, quote, # or formula"
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GATE: StationAddress = StationAddress([2, 0, 0, 0, 0, 1]);
    const SHED: StationAddress = StationAddress([2, 0, 0, 0, 0, 2]);

    fn sampler() -> Sampler {
        Sampler::new("roof", BTreeMap::from([(GATE, "gate".to_owned())]), Duration::from_secs(1))
    }

    fn rows(sampler: &mut Sampler, ms: u64, facts: &[LinkFacts], used: Option<ChannelUse>) -> Vec<String> {
        let (at, mut rows) = (Instant::from_millis(ms), Vec::new());
        let facts: Vec<_> = facts.iter().map(|facts| LinkFacts { at, ..*facts }).collect();
        sampler.sample(at, &facts, used, &mut |row| rows.push(row.to_string()));
        rows
    }

    fn heard(station: StationAddress, signal_dbm: i8, rx_bytes: u64) -> LinkFacts {
        let (signal_dbm, rx_bytes) = (Some(signal_dbm), Some(rx_bytes));
        LinkFacts { signal_dbm, rx_bytes, ..LinkFacts::new(station, Instant::ZERO) }
    }

    #[test]
    fn the_receiver_tells_its_signal_and_the_sender_the_change_of_its_counts() {
        let mut sampler = sampler();
        let used = |ms: u64, busy: u64| ChannelUse {
            frequency_mhz: 2_412,
            active: Some(Duration::from_millis(ms)),
            busy: Some(Duration::from_millis(busy)),
            noise_dbm: Some(-95),
            ..ChannelUse::default()
        };
        let sent = |packets: u64, rx_bytes: u64| LinkFacts {
            tx_packets: Some(packets),
            tx_retries: Some(packets / 2),
            tx_bitrate_bps: Some(6_000_000),
            tx_duration: Some(Duration::from_millis(packets)),
            ..heard(GATE, -61, rx_bytes)
        };
        assert_eq!(
            rows(&mut sampler, 0, &[sent(10, 5)], Some(used(500, 100))),
            ["0.000,gate,roof,-61.000,-95.0,,,,,,,,", "0.000,roof,gate,,,,6000000,,,,,,"]
        );
        assert_eq!(
            rows(&mut sampler, 100, &[sent(16, 6), heard(SHED, -80, 1)], Some(used(600, 125))),
            [
                "0.100,gate,roof,-61.000,-95.0,,,,,,,,0.2500",
                "0.100,roof,gate,,,,6000000,,6,3,,0.006000,",
                "0.100,02:00:00:00:00:02,roof,-80.000,-95.0,,,,,,,,0.2500"
            ]
        );
        // A channel of which nothing is told, and one that the radio left.
        assert_eq!(
            rows(&mut sampler, 200, &[heard(GATE, -62, 7)], None),
            ["0.200,gate,roof,-62.000,,,,,,,,,"]
        );
        let counted = sampler.counted();
        let told: Vec<_> =
            counted.iter().map(|of| (of.name.as_str(), of.signals, of.last_signal_dbm)).collect();
        assert_eq!(told, [("gate", 3, Some(-62.0)), ("02:00:00:00:00:02", 1, Some(-80.0))]);
        assert_eq!(sampler.neighbours(), 1);
        let elsewhere = Some(ChannelUse { frequency_mhz: 5_180, ..used(700, 125) });
        assert_eq!((busy(None, elsewhere), busy(Some(used(600, 125)), elsewhere)), (None, None));
    }

    #[test]
    fn a_signal_holds_for_a_while_after_the_last_frame_and_is_not_known_then() {
        let mut sampler = sampler();
        let has_signal = |rows: &[String]| rows.iter().any(|row| row.contains(",-61.000,"));
        let mut seen = Vec::new();
        for (ms, bytes) in [(0, 5), (500, 6), (1_000, 6), (1_500, 6), (1_600, 6), (9_000, 6), (9_100, 7)] {
            seen.push(has_signal(&rows(&mut sampler, ms, &[heard(GATE, -61, bytes)], None)));
        }
        assert_eq!(seen, [true, true, true, true, false, false, true]);
        // A station that is there already and has been silent for long.
        let silent = LinkFacts { inactive: Some(Duration::from_secs(2)), ..heard(SHED, -61, 9) };
        assert!(!has_signal(&rows(&mut sampler, 9_200, &[silent], None)));
        assert!(!has_signal(&rows(&mut sampler, 9_300, &[silent], None)));
    }

    #[test]
    fn a_driver_that_counts_nothing_is_believed_and_one_without_signal_has_no_row() {
        let mut sampler = sampler();
        let signal_dbm = Some(-61);
        let mute = LinkFacts { signal_dbm, ..LinkFacts::new(GATE, Instant::ZERO) };
        for ms in [0, 5_000] {
            assert_eq!(rows(&mut sampler, ms, &[mute], None).len(), 1);
        }
        let average = LinkFacts { signal_dbm: None, signal_average_dbm: Some(-70), ..mute };
        assert_eq!(rows(&mut sampler, 5_100, &[average], None), ["5.100,gate,roof,-70.000,,,,,,,,,"]);
        assert_eq!(rows(&mut sampler, 5_200, &[LinkFacts { signal_dbm: None, ..mute }], None), [""; 0]);
    }

    #[test]
    fn a_name_has_an_address_and_fits_into_a_cell() {
        let roof = NodeName(StationAddress([2, 0, 0, 0, 0, 10]), "roof".to_owned());
        assert_eq!("02:00:00:00:00:0A=roof".parse(), Ok(roof));
        for wrong in
            ["roof", "02:00=roof", "02:00:00:00:00:01=", "02:00:00:00:00:01=a b", "02:00:00:00:00:01=a,b"]
        {
            let error = wrong.parse::<NodeName>().expect_err(wrong);
            assert!(error.contains("expected"), "{wrong}: {error}");
        }
        assert!(name("02:00:00:00:00:01").is_err(), "it would be taken for an address");
        for wrong in ["=1", "-x", "a;b", "a\u{202e}", "a\u{9b}"] {
            assert!(name(wrong).is_err(), "a spreadsheet or a terminal takes {wrong:?} for more than a name");
        }
    }
}
