//! The report of a host of a fleet, as it goes over ssh and as `--json` prints it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use hopwise_daemon::failure::Failure;
use hopwise_daemon::stations::RouteSnapshot;
use hopwise_daemon::stations::StationSnapshot;

/// All hosts that were asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reports {
    pub hosts: Vec<HostReport>,
}

/// A host. A fact that is not known is absent, and `unknown` says why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostReport {
    pub host: String,
    /// Why the host gave no report.
    pub problem: Option<String>,
    pub version: Option<String>,
    /// The host's time of day at the end of its report, in seconds since 1970.
    pub(crate) told_at_s: Option<f64>,
    /// Its address in the mesh.
    pub address: Option<Ipv4Addr>,
    pub(crate) neighbours: Option<Vec<NeighbourReport>>,
    /// The number of valid routes, and the first of them.
    pub routes_valid: Option<usize>,
    #[serde(default)]
    pub routes: Vec<RouteSnapshot>,
    pub(crate) queue: Option<QueueReport>,
    pub(crate) airtime: Option<AirtimeReport>,
    pub(crate) connections: Option<usize>,
    /// Connections by their agents.
    pub(crate) agents: Option<BTreeMap<String, usize>>,
    /// The difference between the host's clock and that of the asking machine.
    pub(crate) clock: Option<ClockReport>,
    /// The reasons of absent facts, by their names.
    #[serde(default)]
    pub(crate) unknown: BTreeMap<String, String>,
}

/// A neighbour, and what is known of the link to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeighbourReport {
    pub address: Option<IpAddr>,
    pub station: Option<String>,
    pub interface: String,
    pub signal_dbm: Option<i8>,
    pub tx_bitrate_bps: Option<u64>,
    pub tx_packets: Option<u64>,
    pub tx_retries: Option<u64>,
    pub tx_failed: Option<u64>,
    /// The age of its last frame.
    pub heard_ms: Option<u64>,
    /// Valid routes over it.
    pub routes: usize,
}

/// Packets that wait in the queues of the interfaces of the mesh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct QueueReport {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) drops: u64,
}

/// The use of a radio's channel, since the radio came to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AirtimeReport {
    pub interface: String,
    pub frequency_mhz: u32,
    pub active_ms: u64,
    pub busy_ms: u64,
    pub(crate) receiving_ms: Option<u64>,
    pub(crate) sending_ms: Option<u64>,
    pub noise_dbm: Option<i8>,
}

/// The host's clock is ahead by this, with the largest error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockReport {
    pub ahead_ms: f64,
    pub within_ms: f64,
}

impl Reports {
    /// The end of a command that asked all hosts: a failure if some gave no answer, unless that does not count.
    pub fn ended(&self, asking: &'static str, exit_zero: bool) -> Result<(), Failure> {
        let silent = self.hosts.iter().filter(|host| host.problem.is_some()).count();
        if silent == 0 || exit_zero {
            return Ok(());
        }
        let all = self.hosts.len();
        Err(Failure::failed(asking, format_args!("{silent} of {all} hosts gave no answer")))
    }
}

impl HostReport {
    /// The report of a host that gave none.
    pub(crate) fn none(host: &str, problem: String) -> HostReport {
        HostReport { host: host.to_owned(), problem: Some(problem), ..HostReport::default() }
    }

    /// Notes why a fact is absent.
    pub(crate) fn lacks(&mut self, fact: &str, reason: impl Into<String>) {
        self.unknown.insert(fact.to_owned(), reason.into());
    }

    /// The weakest signal of a neighbour.
    pub(crate) fn weakest_dbm(&self) -> Option<i8> {
        self.neighbours.iter().flatten().filter_map(|neighbour| neighbour.signal_dbm).min()
    }
}

impl NeighbourReport {
    pub(crate) fn of_station(interface: &str, station: &StationSnapshot) -> NeighbourReport {
        NeighbourReport {
            address: station.neighbour,
            station: Some(station.station.clone()),
            interface: interface.to_owned(),
            signal_dbm: station.signal_average_dbm.or(station.signal_dbm),
            tx_bitrate_bps: station.tx_bitrate_bps,
            tx_packets: station.tx_packets,
            tx_retries: station.tx_retries,
            tx_failed: station.tx_failed,
            heard_ms: station.inactive_ms,
            routes: 0,
        }
    }
}

impl AirtimeReport {
    /// The share of the time in which the channel was busy, since an earlier report of the channel if there is one.
    pub(crate) fn busy_share(&self, before: Option<&AirtimeReport>) -> Option<f64> {
        let is_same = |before: &&AirtimeReport| {
            let is_of_it = before.interface == self.interface && before.frequency_mhz == self.frequency_mhz;
            is_of_it && before.active_ms < self.active_ms && before.busy_ms <= self.busy_ms
        };
        let (active, busy) =
            before.filter(is_same).map_or((0, 0), |before| (before.active_ms, before.busy_ms));
        let millis = |ms: u64| Duration::from_millis(ms).as_secs_f64();
        (self.active_ms > active).then(|| millis(self.busy_ms - busy) / millis(self.active_ms - active))
    }
}

impl ClockReport {
    /// A host told its time at an instant between two of ours, all in seconds.
    pub fn between(asked: f64, told: f64, heard: f64) -> ClockReport {
        ClockReport { ahead_ms: (told - (asked + heard) / 2.0) * 1e3, within_ms: (heard - asked) / 2.0 * 1e3 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_busy_airtime_is_that_since_the_last_look_at_the_same_channel() {
        let at = |active_ms, busy_ms| AirtimeReport { active_ms, busy_ms, ..AirtimeReport::default() };
        assert_eq!(at(1000, 250).busy_share(None), Some(0.25));
        assert_eq!(at(2000, 1050).busy_share(Some(&at(1000, 250))), Some(0.8));
        // The radio has come to the channel anew.
        assert_eq!(at(800, 100).busy_share(Some(&at(1000, 250))), Some(0.125));
        let elsewhere = AirtimeReport { frequency_mhz: 5180, ..at(1000, 250) };
        assert_eq!(at(2000, 1000).busy_share(Some(&elsewhere)), Some(0.5));
        assert_eq!(at(0, 0).busy_share(None), None);
    }

    #[test]
    fn a_clock_is_ahead_by_what_it_told_between_question_and_answer() {
        assert_eq!(
            ClockReport::between(10.0, 12.5, 11.0),
            ClockReport { ahead_ms: 2000.0, within_ms: 500.0 }
        );
    }

    /// Hosts of a fleet may run another version.
    #[test]
    fn a_report_of_another_version_is_read_as_far_as_it_goes() {
        let text = r#"{"hosts": [{"host": "n1", "version": "9.9.9", "weather": "fair"}]}"#;
        let Reports { hosts } = serde_json::from_str(text).expect("it is read");
        assert_eq!((hosts[0].version.as_deref(), hosts[0].neighbours.as_ref()), (Some("9.9.9"), None));
    }
}
