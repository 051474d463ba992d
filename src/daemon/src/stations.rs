//! The stations and the routes of a daemon in its status.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use hopwise_core::agent::Path;
use hopwise_core::{Instant, LinkFacts, StationAddress, micros, millis};
use hopwise_host::nl80211::StationReport;
use serde::{Deserialize, Serialize};

use crate::table::{self, known};

/// Output of `hopwise status` for a routing daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutingSnapshot {
    pub address: Ipv4Addr,
    pub pid: u32,
    pub version: String,
    /// The interfaces of the mesh.
    #[serde(default)]
    pub interfaces: Vec<String>,
    /// The interfaces that report stations.
    pub stations: Vec<InterfaceSnapshot>,
    /// Valid routes; a bounded number is listed.
    #[serde(default)]
    pub routes_valid: usize,
    #[serde(default)]
    pub routes: Vec<RouteSnapshot>,
}

impl RoutingSnapshot {
    pub fn page(&self) -> String {
        let RoutingSnapshot { address, pid, version, stations, routes_valid, routes, .. } = self;
        let mut lines = vec![format!("route at {address}, pid {pid}, hopwise {version}")];
        if stations.is_empty() {
            lines.push("no interface reports stations: hellos alone find lost neighbours".to_owned());
        }
        lines.extend(stations.iter().flat_map(InterfaceSnapshot::lines));
        lines.push(match routes_valid.saturating_sub(routes.len()) {
            0 => format!("{routes_valid} routes"),
            more => format!("{routes_valid} routes, {more} of them not shown"),
        });
        lines.extend(table_of_routes(routes));
        lines.join("\n") + "\n"
    }
}

/// The largest number of routes that a status lists; of more it has the number.
pub const MOST_SHOWN: usize = 1000;

/// A valid route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteSnapshot {
    pub to: Ipv4Addr,
    /// The next hop: a neighbour.
    pub via: Ipv4Addr,
    pub interface: String,
    pub hops: u8,
}

const ROUTE_COLUMNS: [&str; 4] = ["route to", "via", "interface", "hops"];

/// The routes for people.
fn table_of_routes(routes: &[RouteSnapshot]) -> Vec<String> {
    let cells = |RouteSnapshot { to, via, interface, hops }: &RouteSnapshot| {
        vec![to.to_string(), via.to_string(), interface.clone(), hops.to_string()]
    };
    if routes.is_empty() {
        return Vec::new();
    }
    table::lines(&ROUTE_COLUMNS, &routes.iter().map(cells).collect::<Vec<_>>())
}

/// The neighbours that routes lead over.
pub fn neighbours(routes: &[RouteSnapshot]) -> BTreeSet<Ipv4Addr> {
    routes.iter().map(|route| route.via).collect()
}

/// An interface and its stations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceSnapshot {
    pub interface: String,
    pub stations: Vec<StationSnapshot>,
    /// The sanity rules that its driver broke.
    pub not_believed: Vec<BrokenRule>,
}

/// A station, and what is believed of the link to it. The fields have their names from nl80211.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StationSnapshot {
    pub station: String,
    /// Its IP address, if it is known.
    pub neighbour: Option<IpAddr>,
    /// The age of the report.
    pub reported_ms: u64,
    /// The age of its last frame or acknowledgement.
    pub inactive_ms: Option<u64>,
    pub signal_dbm: Option<i8>,
    pub signal_average_dbm: Option<i8>,
    pub tx_packets: Option<u64>,
    pub tx_retries: Option<u64>,
    pub tx_failed: Option<u64>,
    pub rx_packets: Option<u64>,
    pub rx_bytes: Option<u64>,
    pub tx_bitrate_bps: Option<u64>,
    pub expected_throughput_bps: Option<u64>,
    pub tx_duration_us: Option<u64>,
    pub rx_duration_us: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenRule {
    pub(crate) rule: String,
    /// The facts that are dropped.
    pub(crate) drops: String,
    /// The first station that showed it.
    pub station: String,
}

impl InterfaceSnapshot {
    pub fn of(
        report: &StationReport,
        now: Instant,
        who_has: impl Fn(StationAddress) -> Option<IpAddr>,
    ) -> InterfaceSnapshot {
        let broken = report.broken.iter().map(|(rule, station)| BrokenRule {
            rule: rule.name().to_owned(),
            drops: rule.drops().to_owned(),
            station: station.to_string(),
        });
        let stations =
            report.facts.iter().map(|facts| StationSnapshot::of(facts, now, who_has(facts.station)));
        InterfaceSnapshot {
            interface: report.interface.clone(),
            stations: stations.collect(),
            not_believed: broken.collect(),
        }
    }

    /// Lines for people.
    pub fn lines(&self) -> Vec<String> {
        let InterfaceSnapshot { interface, stations, not_believed } = self;
        let mut lines = vec![match stations.len() {
            0 => format!("{interface}: no stations"),
            1 => format!("{interface}: 1 station"),
            count => format!("{interface}: {count} stations"),
        }];
        if !stations.is_empty() {
            lines.extend(table_of(stations.iter()));
        }
        let told = not_believed.iter();
        lines.extend(told.map(|BrokenRule { rule, drops, station }| {
            format!("not believed: {drops} ({rule}, first at {station})")
        }));
        lines
    }
}

pub fn table_of<'a>(stations: impl Iterator<Item = &'a StationSnapshot>) -> Vec<String> {
    table::lines(&COLUMNS, &stations.map(StationSnapshot::cells).collect::<Vec<_>>())
}

const COLUMNS: [&str; 11] = [
    "neighbour",
    "station",
    "heard ms",
    "signal",
    "average",
    "sent",
    "retries",
    "failed",
    "received",
    "Mbit/s",
    "airtime ms",
];

impl StationSnapshot {
    pub fn of(facts: &LinkFacts, now: Instant, neighbour: Option<IpAddr>) -> StationSnapshot {
        let reported = now.since(facts.at);
        StationSnapshot {
            station: facts.station.to_string(),
            neighbour,
            reported_ms: millis(reported),
            inactive_ms: facts.inactive.map(|inactive| millis(inactive + reported)),
            signal_dbm: facts.signal_dbm,
            signal_average_dbm: facts.signal_average_dbm,
            tx_packets: facts.tx_packets,
            tx_retries: facts.tx_retries,
            tx_failed: facts.tx_failed,
            rx_packets: facts.rx_packets,
            rx_bytes: facts.rx_bytes,
            tx_bitrate_bps: facts.tx_bitrate_bps,
            expected_throughput_bps: facts.expected_throughput_bps,
            tx_duration_us: facts.tx_duration.map(micros),
            rx_duration_us: facts.rx_duration.map(micros),
        }
    }

    /// The first link of a path, if a driver tells of it.
    pub fn of_path(path: &Path, now: Instant) -> Option<StationSnapshot> {
        path.link.as_deref().map(|facts| StationSnapshot::of(facts, now, None))
    }

    fn cells(&self) -> Vec<String> {
        let airtime = match (self.tx_duration_us, self.rx_duration_us) {
            (None, None) => None,
            (tx, rx) => {
                Some(format!("{}/{}", known(tx.map(|us| us / 1_000)), known(rx.map(|us| us / 1_000))))
            }
        };
        vec![
            known(self.neighbour),
            self.station.clone(),
            known(self.inactive_ms),
            known(self.signal_dbm),
            known(self.signal_average_dbm),
            known(self.tx_packets),
            known(self.tx_retries),
            known(self.tx_failed),
            known(self.rx_packets),
            known(self.tx_bitrate_bps.map(|bps| format!("{:.1}", bps as f64 / 1e6))),
            known(airtime),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hopwise_host::nl80211::SanityCheck;

    use super::*;

    const STATION: StationAddress = StationAddress([2, 0, 0, 0, 0, 1]);

    fn shown() -> InterfaceSnapshot {
        let facts = LinkFacts {
            inactive: Some(Duration::from_millis(7)),
            signal_dbm: Some(-61),
            tx_packets: Some(40),
            tx_failed: Some(0),
            tx_bitrate_bps: Some(5_500_000),
            ..LinkFacts::new(STATION, Instant::from_millis(1_000))
        };
        let broken = vec![(SanityCheck::RetriesNeverCount, STATION)];
        let report =
            StationReport { interface: "wlan0".to_owned(), at: facts.at, facts: vec![facts], broken };
        InterfaceSnapshot::of(&report, Instant::from_millis(1_030), |station| {
            (station == STATION).then_some(IpAddr::from([10, 0, 0, 2]))
        })
    }

    #[test]
    fn ages_are_those_of_now_and_what_is_absent_is_no_zero() {
        let lines = shown().lines().join("\n");
        let cells: Vec<_> = lines.lines().nth(2).expect("a station").split_whitespace().collect();
        let wanted = ["10.0.0.2", "02:00:00:00:00:01", "37", "-61", "-", "40", "-", "0", "-", "5.5", "-"];
        assert_eq!(cells, wanted, "{lines}");
        assert!(lines.starts_with("wlan0: 1 station\n"), "{lines}");
        let said = "not believed: retries (retries-never-count, first at 02:00:00:00:00:01)";
        assert!(lines.ends_with(said), "{lines}");
    }

    #[test]
    fn a_snapshot_is_read_as_it_is_written() {
        let text = serde_json::to_string(&shown()).expect("JSON");
        assert_eq!(serde_json::from_str::<InterfaceSnapshot>(&text).expect("a snapshot"), shown());
        assert!(text.contains("\"tx_retries\":null,\"tx_failed\":0"), "{text}");
    }
}
