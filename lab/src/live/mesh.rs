//! The hosts of the world `mesh`: what they are told before a run, what they see during it, and what the record keeps.
//!
//! A host looks at its radio and at its kernel's routes once a second, and tells all looks at the end: no message of a
//! trial crosses the air during a run. Facts that no driver or kernel tells are absent.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

/// The words that a host gets about the mesh.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnMesh {
    /// The host's own name, which its capture bears.
    pub name: String,
    /// The hosts' addresses in the mesh, in the order of nodes.
    pub addresses: Vec<Ipv4Addr>,
    /// The host hands the capture of its endpoint over at the end.
    pub capture: bool,
}

/// The observations of a host during a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostObservations {
    /// The interface that has its address in the mesh.
    pub interface: String,
    /// The address of its radio.
    pub station: Option<String>,
    /// The release of its kernel.
    pub kernel: Option<String>,
    /// Its looks, in their order.
    pub looks: Vec<Look>,
}

/// One look of a host at its radio and at its routes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Milliseconds since the run began; less than 0 before it.
    pub at_ms: i64,
    /// The stations that its radio hears.
    pub stations: Vec<StationLook>,
    /// The first hop to each node, in their order; none where the kernel has no route.
    pub hops: Vec<Option<Ipv4Addr>>,
    /// The use of its channel.
    pub channel: Option<ChannelLook>,
}

/// A station as a driver reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StationLook {
    /// Its Ethernet address.
    pub station: String,
    /// The signal of its frames.
    pub signal_dbm: Option<i8>,
    /// The rate of frames to it.
    pub tx_bitrate_bps: Option<u64>,
    /// Packets to it since the radio knows it.
    pub tx_packets: Option<u64>,
    /// Frames to it that were repeated.
    pub tx_retries: Option<u64>,
    /// Packets to it that were given up.
    pub tx_failed: Option<u64>,
}

/// The use of a channel since the radio came to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelLook {
    /// The channel's frequency.
    pub frequency_mhz: u32,
    /// The time that the radio listened.
    pub active_ms: u64,
    /// The part of it in which the channel was busy.
    pub busy_ms: u64,
    /// The noise.
    pub noise_dbm: Option<i8>,
}

/// The mesh of a run, as its record has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeshRun {
    /// The hosts in the order of nodes.
    pub hosts: Vec<HostRow>,
    /// The reasons why earlier tries of this run do not count, such as a host that was lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub again: Vec<String>,
}

/// A host during one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostRow {
    /// The scenario's name for it.
    pub node: String,
    /// The inventory's name for it.
    pub host: String,
    /// Its address in the mesh.
    pub address: String,
    /// The interface with this address.
    pub interface: String,
    /// Its place in the scenario, in metres.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_m: Option<[f64; 2]>,
    /// The release of its kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Its clock against the trial's; absent for the trial's own machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockRow>,
    /// Its channel; absent where no driver tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<ChannelRow>,
    /// The stations that its radio heard; none where no driver tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<StationLink>,
    /// Its first hops to the other nodes, and each change of one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<RouteRow>,
    /// The changes of its neighbours and first hops in words, since the end of the run before on these hosts. Those of
    /// the first run are since its first look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

/// A clock against the trial's, by messages there and back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockRow {
    /// Milliseconds by which it was ahead before the run.
    pub ahead_ms: f64,
    /// The largest error of this.
    pub within_ms: f64,
    /// The milliseconds after the run.
    pub ahead_after_ms: f64,
    /// The largest error of this.
    pub within_after_ms: f64,
    /// Its drift over the run in millionths; it gains if this is more than 0.
    pub drift_ppm: f64,
    /// The largest error of the drift.
    pub drift_within_ppm: f64,
}

/// The use of a host's channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChannelRow {
    /// The channel's frequency.
    pub frequency_mhz: u32,
    /// The share of the time in which the channel was busy before the run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_before: Option<f64>,
    /// The share during the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_beside: Option<f64>,
    /// The noise at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_dbm: Option<i8>,
}

/// The link to a station, over all looks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StationLink {
    /// The node, or the Ethernet address of a station that is no node.
    pub to: String,
    /// The mean of the signal, its lowest value and its highest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal_dbm: Option<f64>,
    /// The lowest signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weakest_dbm: Option<i8>,
    /// The highest signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strongest_dbm: Option<i8>,
    /// The rate of frames to it at the end, in Mbit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_mbps: Option<f64>,
    /// Packets to it between the first look and the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_packets: Option<u64>,
    /// Repeated frames to it in this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_retries: Option<u64>,
    /// Packets to it that were given up in this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_failed: Option<u64>,
}

/// A first hop from a look on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RouteRow {
    /// Seconds since the run began.
    pub at_s: f64,
    /// The node at the end.
    pub to: String,
    /// The node, or the address of the host, that gets the packets first; absent where there was no route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
}

/// The names by which records call the hosts.
#[derive(Clone, Debug, Default)]
pub struct HostNames {
    nodes: Vec<String>,
    by_address: BTreeMap<Ipv4Addr, String>,
    by_station: BTreeMap<String, String>,
}

impl HostNames {
    /// `nodes` and `seen` are in the order of nodes, as `addresses` is.
    pub fn new(nodes: &[String], addresses: &[Ipv4Addr], seen: &[HostObservations]) -> HostNames {
        let by_address = addresses.iter().copied().zip(nodes.iter().cloned()).collect();
        let stations = seen.iter().map(|seen| seen.station.clone()).zip(nodes.iter().cloned());
        let by_station = stations.filter_map(|(station, node)| Some((station?, node))).collect();
        HostNames { nodes: nodes.to_vec(), by_address, by_station }
    }

    fn of_hop(&self, hop: Ipv4Addr) -> String {
        self.by_address.get(&hop).cloned().unwrap_or_else(|| hop.to_string())
    }

    fn of_station(&self, station: &str) -> String {
        self.by_station.get(station).cloned().unwrap_or_else(|| station.to_owned())
    }
}

impl HostObservations {
    /// Adds what was seen to the row of the node of that number. `before` is the last look of the run before.
    pub fn add_to(&self, row: &mut HostRow, node: usize, names: &HostNames, before: Option<&Look>) {
        row.interface.clone_from(&self.interface);
        row.kernel.clone_from(&self.kernel);
        row.channel = channel(&self.looks);
        row.links = links(&self.looks, names);
        row.routes = routes(&self.looks, node, names);
        let ends = before.or(self.looks.first()).zip(self.looks.last());
        row.changed = ends.map(|(was, is)| changes(was, is, node, names)).unwrap_or_default();
    }
}

/// The changes from one look to another.
fn changes(was: &Look, is: &Look, node: usize, names: &HostNames) -> Vec<String> {
    let heard = |look: &Look| -> BTreeSet<_> {
        look.stations.iter().map(|look| names.of_station(&look.station)).collect()
    };
    let (heard_before, heard_now) = (heard(was), heard(is));
    let came = heard_now.difference(&heard_before).map(|name| format!("{name} is a new neighbour"));
    let went = heard_before.difference(&heard_now).map(|name| format!("{name} is no neighbour any more"));
    let hops = names.nodes.iter().zip(was.hops.iter().zip(&is.hops)).enumerate();
    let moved = hops.filter(|(to, (_, (was, is)))| *to != node && was != is).map(|(_, (to, (was, is)))| {
        let name =
            |hop: &Option<Ipv4Addr>| hop.map_or_else(|| "no route".to_owned(), |hop| names.of_hop(hop));
        format!("the way to {to} is by {}, and was by {}", name(is), name(was))
    });
    came.chain(went).chain(moved).collect()
}

/// The shares of the time before the run, and during it.
fn channel(looks: &[Look]) -> Option<ChannelRow> {
    let all: Vec<_> = looks.iter().filter_map(|look| Some((look.at_ms, look.channel?))).collect();
    let (_, last) = *all.last()?;
    let first_beside = all.iter().position(|(at_ms, _)| *at_ms >= 0).unwrap_or(all.len());
    // The time of the run counts from the last look before it.
    let from = first_beside.saturating_sub(1);
    Some(ChannelRow {
        frequency_mhz: last.frequency_mhz,
        busy_before: share(&all[..first_beside]),
        busy_beside: share(&all[from..]).filter(|_| first_beside < all.len()),
        noise_dbm: last.noise_dbm,
    })
}

/// The share of busy time between the first look and the last, if the radio stayed on its channel.
fn share(looks: &[(i64, ChannelLook)]) -> Option<f64> {
    let ((_, first), (_, last)) = (looks.first()?, looks.last()?);
    let stayed = looks.iter().all(|(_, look)| look.frequency_mhz == first.frequency_mhz);
    let active_ms = last.active_ms.checked_sub(first.active_ms).filter(|ms| *ms > 0 && stayed)?;
    let busy_ms = last.busy_ms.checked_sub(first.busy_ms)?;
    Some((busy_ms as f64 / active_ms as f64).min(1.0))
}

fn links(looks: &[Look], names: &HostNames) -> Vec<StationLink> {
    let mut by_station: BTreeMap<&str, Vec<&StationLook>> = BTreeMap::new();
    for station in looks.iter().flat_map(|look| &look.stations) {
        by_station.entry(&station.station).or_default().push(station);
    }
    let row = |(station, all): (&str, Vec<&StationLook>)| {
        let signals: Vec<i8> = all.iter().filter_map(|look| look.signal_dbm).collect();
        let sum: f64 = signals.iter().map(|dbm| f64::from(*dbm)).sum();
        let grown = |of: fn(&StationLook) -> Option<u64>| {
            let (first, last) = (all.iter().find_map(|look| of(look))?, of(all.last()?)?);
            // A counter that began anew tells nothing.
            last.checked_sub(first)
        };
        StationLink {
            to: names.of_station(station),
            signal_dbm: (!signals.is_empty()).then(|| sum / signals.len() as f64),
            weakest_dbm: signals.iter().min().copied(),
            strongest_dbm: signals.iter().max().copied(),
            tx_mbps: all.last().and_then(|look| look.tx_bitrate_bps).map(|bps| bps as f64 / 1e6),
            tx_packets: grown(|look| look.tx_packets),
            tx_retries: grown(|look| look.tx_retries),
            tx_failed: grown(|look| look.tx_failed),
        }
    };
    by_station.into_iter().map(row).collect()
}

/// The first hop to each other node at the first look, and each change after it.
fn routes(looks: &[Look], node: usize, names: &HostNames) -> Vec<RouteRow> {
    let mut rows = Vec::new();
    let mut known: BTreeMap<usize, Option<Ipv4Addr>> = BTreeMap::new();
    for look in looks {
        for (to, via) in look.hops.iter().enumerate().filter(|(to, _)| *to != node) {
            if known.insert(to, *via) == Some(*via) {
                continue;
            }
            rows.push(RouteRow {
                at_s: look.at_ms as f64 / 1e3,
                to: names.nodes.get(to).cloned().unwrap_or_default(),
                via: via.map(|hop| names.of_hop(hop)),
            });
        }
    }
    rows
}

impl ClockRow {
    /// From the difference before a run and that after it, each with its largest error, in milliseconds.
    pub fn of(before: (f64, f64), after: (f64, f64), seconds_between: f64) -> ClockRow {
        let ppm = |ms: f64| if seconds_between > 0.0 { ms / seconds_between * 1e3 } else { 0.0 };
        ClockRow {
            ahead_ms: before.0,
            within_ms: before.1,
            ahead_after_ms: after.0,
            within_after_ms: after.1,
            drift_ppm: ppm(after.0 - before.0),
            drift_within_ppm: ppm(before.1 + after.1),
        }
    }

    /// Milliseconds by which it was ahead during the run. The largest error of this is for a clock that gained or lost
    /// throughout.
    pub fn during(&self) -> (f64, f64) {
        let moved_ms = self.ahead_after_ms - self.ahead_ms;
        (self.ahead_ms + moved_ms / 2.0, self.within_ms.max(self.within_after_ms) + moved_ms.abs() / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> HostNames {
        let nodes = ["n0", "n1", "n2"].map(str::to_owned);
        let addresses = [1, 2, 3].map(|last| Ipv4Addr::new(10, 66, 0, last));
        let seen = ["aa", "bb", "cc"]
            .map(|mac| HostObservations { station: Some(mac.to_owned()), ..HostObservations::default() });
        HostNames::new(&nodes, &addresses, &seen)
    }

    fn row_of(looks: Vec<Look>) -> HostRow {
        let mut row = HostRow::default();
        HostObservations { looks, ..HostObservations::default() }.add_to(&mut row, 0, &names(), None);
        row
    }

    #[test]
    fn a_route_is_told_at_first_and_at_each_change() {
        let [direct, over, unknown] = [3, 2, 9].map(|last| Some(Ipv4Addr::new(10, 66, 0, last)));
        let look = |at_ms, via| Look { at_ms, hops: vec![None, over, via], ..Look::default() };
        let looks = [(-1000, direct), (0, direct), (1000, None), (2000, over), (3000, over), (4000, unknown)];
        let row = row_of(looks.map(|(at_ms, via)| look(at_ms, via)).into());
        let told: Vec<_> =
            row.routes.iter().map(|row| (row.at_s, row.to.as_str(), row.via.as_deref())).collect();
        let wanted = [
            (-1.0, "n1", Some("n1")),
            (-1.0, "n2", Some("n2")),
            (1.0, "n2", None),
            (2.0, "n2", Some("n1")),
            (4.0, "n2", Some("10.66.0.9")),
        ];
        assert_eq!(told, wanted);
    }

    #[test]
    fn neighbours_and_first_hops_are_compared_with_the_end_of_the_run_before_or_else_with_the_first_look() {
        let [direct, over] = [3, 2].map(|last| Some(Ipv4Addr::new(10, 66, 0, last)));
        let look = |station: &str, via| Look {
            stations: vec![StationLook { station: station.to_owned(), ..StationLook::default() }],
            hops: vec![None, over, via],
            ..Look::default()
        };
        let looks = vec![look("bb", direct), look("zz", None), look("cc", over)];
        let seen = HostObservations { looks, ..HostObservations::default() };
        let told = |before: Option<&Look>| {
            let mut row = HostRow::default();
            seen.add_to(&mut row, 0, &names(), before);
            row.changed
        };
        let since_the_first =
            ["n2 is a new neighbour", "n1 is no neighbour any more", "the way to n2 is by n1, and was by n2"];
        assert_eq!(told(None), since_the_first);
        assert_eq!(told(Some(&look("cc", None))), ["the way to n2 is by n1, and was by no route"]);
        assert_eq!(told(Some(&look("cc", over))), [""; 0]);
    }

    #[test]
    fn a_channel_is_busy_for_a_share_of_the_time_before_the_run_and_of_that_beside_it() {
        let look = |at_ms, active_ms, busy_ms| Look {
            at_ms,
            channel: Some(ChannelLook { frequency_mhz: 2412, active_ms, busy_ms, noise_dbm: Some(-92) }),
            ..Look::default()
        };
        let row = row_of(vec![look(-1000, 500, 100), look(-10, 1500, 200), look(990, 2500, 700)]);
        let channel = row.channel.expect("the driver tells");
        assert_eq!((channel.busy_before, channel.busy_beside), (Some(0.1), Some(0.5)));
        assert_eq!((channel.frequency_mhz, channel.noise_dbm), (2412, Some(-92)));
        // The radio came to the channel anew, or there was one look alone.
        let again = row_of(vec![look(-1000, 500, 100), look(-10, 20, 1), look(990, 1020, 2)]);
        let channel = again.channel.expect("the driver tells");
        assert_eq!((channel.busy_before, channel.busy_beside), (None, Some(0.001)));
        assert_eq!(row_of(vec![Look::default()]).channel, None);
    }

    #[test]
    fn a_link_has_the_name_of_its_node_the_range_of_its_signal_and_what_its_counters_grew() {
        let look = |station: &str, signal_dbm, packets| StationLook {
            station: station.to_owned(),
            signal_dbm,
            tx_bitrate_bps: Some(5_500_000),
            tx_packets: Some(packets),
            ..StationLook::default()
        };
        let first = vec![look("bb", Some(-60), 10), look("zz", None, 9)];
        let looks = [first, vec![look("bb", Some(-66), 25)], vec![look("zz", None, 1)]];
        let row = row_of(looks.map(|stations| Look { stations, ..Look::default() }).into());
        let [n1, other] = &row.links[..] else { panic!("{:?}", row.links) };
        assert_eq!((n1.to.as_str(), n1.signal_dbm, n1.tx_mbps), ("n1", Some(-63.0), Some(5.5)));
        assert_eq!((n1.weakest_dbm, n1.strongest_dbm, n1.tx_packets), (Some(-66), Some(-60), Some(15)));
        assert_eq!((other.to.as_str(), other.signal_dbm, other.tx_packets), ("zz", None, None));
        assert_eq!(n1.tx_retries, None);
    }

    #[test]
    fn a_clock_was_during_a_run_between_what_it_was_before_and_after() {
        let during = |before, after| ClockRow::of(before, after, 10.0).during();
        assert_eq!(during((5.0, 0.5), (6.0, 0.25)), (5.5, 1.0));
        assert_eq!(during((-3.0, 0.25), (-7.0, 0.5)), (-5.0, 2.5));
    }

    #[test]
    fn a_clock_that_gains_a_millisecond_in_ten_seconds_drifts_by_a_hundred_millionths() {
        let row = ClockRow::of((5.0, 0.5), (6.0, 0.25), 10.0);
        assert!(
            (row.drift_ppm - 100.0).abs() < 1e-9 && (row.drift_within_ppm - 75.0).abs() < 1e-9,
            "{row:?}"
        );
    }
}
