//! The table of a fleet: a row for each host, and one for each further neighbour of it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hopwise_lab::plain;
use hopwise_lab::units::Size;

use super::report::{HostReport, NeighbourReport, Reports};
use hopwise_daemon::table::{self, MetricsPage, known};

/// The columns with the turns in which they go where the terminal is narrow. Names of hosts and neighbours stay.
pub(super) const COLUMNS: [(&str, Option<u8>); 13] = [
    ("host", None),
    ("neighbour", None),
    ("signal", Some(10)),
    ("Mbit/s", Some(6)),
    ("heard ms", Some(2)),
    ("retries", Some(5)),
    ("routes", Some(3)),
    ("queue", Some(9)),
    ("airtime", Some(8)),
    ("conns", Some(7)),
    ("agents", Some(4)),
    ("clock ms", Some(1)),
    ("version", Some(0)),
];
/// The columns of a neighbour, from the second on.
const OF_NEIGHBOUR: usize = 5;
/// The neighbours of a host that have a row: a host may tell any number.
const MOST_NEIGHBOURS: usize = 16;
/// The longest remark, in letters.
const LONGEST_REMARK: usize = 512;

/// The order of the hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HostOrder {
    /// As the inventory has them.
    #[default]
    Inventory,
    /// The weakest signal first.
    Signal,
    /// The fullest queue first.
    Queue,
    /// The busiest channel first.
    Airtime,
    /// The most connections first.
    Connections,
}

/// The rows of all hosts. `before` are the reports of the last look.
pub(crate) fn rows(reports: &Reports, before: Option<&Reports>, order: HostOrder) -> Vec<Vec<String>> {
    let names = names(reports);
    let mut hosts: Vec<_> = reports.hosts.iter().collect();
    // Sorting is stable: hosts that are alike keep the inventory's order. Those that told nothing come last.
    match order {
        HostOrder::Inventory => {}
        HostOrder::Signal => hosts.sort_by_key(|host| host.weakest_dbm().unwrap_or(i8::MAX)),
        HostOrder::Queue => {
            hosts.sort_by_key(|host| std::cmp::Reverse(host.queue.map(|queue| queue.packets)));
        }
        HostOrder::Airtime => hosts.sort_by(|a, b| share(b, before).total_cmp(&share(a, before))),
        HostOrder::Connections => hosts.sort_by_key(|host| std::cmp::Reverse(host.connections)),
    }
    hosts.into_iter().flat_map(|host| rows_of(host, of(before, host), &names)).collect()
}

/// The table and its remarks.
pub fn page(reports: &Reports) -> String {
    let mut lines = table::lines(&COLUMNS.map(|(head, _)| head), &rows(reports, None, HostOrder::Inventory));
    lines.extend(remarks(reports).iter().map(|line| plain::line(line)));
    lines.join("\n") + "\n"
}

/// The lines of what a table has no room for: hosts that gave no report, and why.
pub(crate) fn remarks(reports: &Reports) -> Vec<String> {
    let of = |host: &HostReport| {
        let remark = format!("{}: {}", host.host, host.problem.as_ref()?);
        Some(plain::cut(&remark, LONGEST_REMARK))
    };
    reports.hosts.iter().filter_map(of).collect()
}

fn of<'a>(before: Option<&'a Reports>, host: &HostReport) -> Option<&'a HostReport> {
    before?.hosts.iter().find(|known| known.host == host.host)
}

fn busy_share(host: &HostReport, before: Option<&HostReport>) -> Option<f64> {
    host.airtime.as_ref()?.busy_share(before.and_then(|before| before.airtime.as_ref()))
}

fn share(host: &HostReport, before: Option<&Reports>) -> f64 {
    busy_share(host, of(before, host)).unwrap_or(-1.0)
}

/// The names of the hosts by their addresses in the mesh.
fn names(reports: &Reports) -> BTreeMap<IpAddr, &str> {
    let of = |host: &'_ HostReport| Some(IpAddr::V4(host.address?));
    reports.hosts.iter().filter_map(|host| Some((of(host)?, host.host.as_str()))).collect()
}

fn rows_of(
    host: &HostReport,
    before: Option<&HostReport>,
    names: &BTreeMap<IpAddr, &str>,
) -> Vec<Vec<String>> {
    let neighbours = host.neighbours.as_deref().unwrap_or_default();
    let mut rows: Vec<Vec<String>> = neighbours
        .iter()
        .take(MOST_NEIGHBOURS)
        .map(|neighbour| {
            let mut row = vec![String::new(); COLUMNS.len()];
            row[1..=OF_NEIGHBOUR].clone_from_slice(&cells_of(neighbour, names));
            row
        })
        .collect();
    if rows.is_empty() {
        let mut row = vec![String::new(); COLUMNS.len()];
        let neighbour = match (&host.problem, &host.neighbours) {
            (Some(_), _) => "no answer",
            (None, Some(_)) => "none",
            (None, None) => "-",
        };
        row[1..=OF_NEIGHBOUR].fill("-".to_owned());
        neighbour.clone_into(&mut row[1]);
        rows.push(row);
    }
    let more = neighbours.len().saturating_sub(MOST_NEIGHBOURS);
    if more > 0 {
        let mut row = vec![String::new(); COLUMNS.len()];
        row[1] = format!("and {more} more");
        rows.push(row);
    }
    rows[0][0].clone_from(&host.host);
    let queue = host.queue.map(|queue| format!("{} ({})", queue.packets, Size(queue.bytes)));
    let agents = host.agents.as_ref().map(|agents| {
        let all: Vec<_> = agents.iter().map(|(names, count)| format!("{count}x {names}")).collect();
        if all.is_empty() { "none".to_owned() } else { all.join(", ") }
    });
    let clock = host.clock.map(|clock| format!("{:+.0} ±{:.0}", clock.ahead_ms, clock.within_ms));
    let last = [
        known(host.routes_valid),
        known(queue),
        known(busy_share(host, before).map(|share| format!("{:.0}%", share * 100.0))),
        known(host.connections),
        known(agents),
        known(clock),
        known(host.version.as_ref()),
    ];
    rows[0][OF_NEIGHBOUR + 1..].clone_from_slice(&last);
    rows
}

fn cells_of(neighbour: &NeighbourReport, names: &BTreeMap<IpAddr, &str>) -> [String; OF_NEIGHBOUR] {
    let name = neighbour.address.and_then(|address| names.get(&address).map(|name| (*name).to_owned()));
    let address = || neighbour.address.map(|address| address.to_string());
    let retries = neighbour.tx_retries.map(|retries| format!("{retries}/{}", known(neighbour.tx_packets)));
    [
        known(name.or_else(address).or_else(|| neighbour.station.clone())),
        known(neighbour.signal_dbm),
        known(neighbour.tx_bitrate_bps.map(|bps| format!("{:.1}", bps as f64 / 1e6))),
        known(neighbour.heard_ms),
        known(retries),
    ]
}

/// The reports in Prometheus' text format. Hosts are the only labels: the inventory gives their names.
pub fn metrics(reports: &Reports) -> String {
    type Value = fn(&HostReport) -> Option<f64>;
    let families: [(&str, &str, Value); 9] = [
        ("hopwise_mesh_up", "Whether the host gave a report.", |host| {
            Some(f64::from(u8::from(host.problem.is_none())))
        }),
        ("hopwise_mesh_neighbours", "Neighbours that the host hears.", |host| {
            host.neighbours.as_ref().map(|all| all.len() as f64)
        }),
        ("hopwise_mesh_weakest_signal_dbm", "The weakest signal of a neighbour.", |host| {
            host.weakest_dbm().map(f64::from)
        }),
        ("hopwise_mesh_routes", "Valid routes.", |host| host.routes_valid.map(|all| all as f64)),
        ("hopwise_mesh_queue_packets", "Packets that wait in the queues of the mesh's interfaces.", |host| {
            host.queue.map(|queue| queue.packets as f64)
        }),
        ("hopwise_mesh_queue_bytes", "Bytes that wait in the queues of the mesh's interfaces.", |host| {
            host.queue.map(|queue| queue.bytes as f64)
        }),
        ("hopwise_mesh_connections", "Connections of the host's nodes.", |host| {
            host.connections.map(|all| all as f64)
        }),
        ("hopwise_mesh_airtime_busy_ratio", "Share of the time in which the channel was busy.", |host| {
            busy_share(host, None)
        }),
        (
            "hopwise_mesh_clock_ahead_seconds",
            "Difference of the host's clock to that of the asking machine.",
            |host| host.clock.map(|clock| clock.ahead_ms / 1e3),
        ),
    ];
    let mut page = MetricsPage::default();
    for (name, help, value) in families {
        let hosts = reports.hosts.iter().filter_map(|host| Some((&host.host, value(host)?)));
        page.by([name, "gauge", help], "host", hosts);
    }
    page.text()
}

#[cfg(test)]
mod tests {
    use super::super::report::{AirtimeReport, ClockReport, QueueReport};
    use super::*;

    fn neighbour(address: [u8; 4], signal_dbm: Option<i8>) -> NeighbourReport {
        NeighbourReport {
            address: Some(address.into()),
            signal_dbm,
            heard_ms: Some(40),
            ..NeighbourReport::default()
        }
    }

    fn fleet() -> Reports {
        let n1 = HostReport {
            host: "n1".to_owned(),
            version: Some("1.0".to_owned()),
            address: Some([10, 0, 0, 1].into()),
            neighbours: Some(vec![neighbour([10, 0, 0, 2], Some(-61)), neighbour([10, 0, 0, 9], None)]),
            routes_valid: Some(3),
            queue: Some(QueueReport { packets: 2, bytes: 3000, drops: 0 }),
            airtime: Some(AirtimeReport { active_ms: 1000, busy_ms: 250, ..AirtimeReport::default() }),
            connections: Some(1),
            agents: Some([("dca / newreno".to_owned(), 1)].into()),
            clock: Some(ClockReport { ahead_ms: -3.4, within_ms: 20.0 }),
            ..HostReport::default()
        };
        let n2 = HostReport {
            host: "n2".to_owned(),
            address: Some([10, 0, 0, 2].into()),
            neighbours: Some(vec![neighbour([10, 0, 0, 1], Some(-70))]),
            ..HostReport::default()
        };
        Reports { hosts: vec![n1, HostReport::none("n3", "ssh: no route".to_owned()), n2] }
    }

    #[test]
    fn a_host_is_a_row_with_a_further_one_for_each_further_neighbour() {
        let rows = rows(&fleet(), None, HostOrder::Inventory);
        let wanted = [
            [
                "n1",
                "n2",
                "-61",
                "-",
                "40",
                "-",
                "3",
                "2 (2.9 KiB)",
                "25%",
                "1",
                "1x dca / newreno",
                "-3 ±20",
                "1.0",
            ],
            ["", "10.0.0.9", "-", "-", "40", "-", "", "", "", "", "", "", ""],
            ["n3", "no answer", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-"],
            ["n2", "n1", "-70", "-", "40", "-", "-", "-", "-", "-", "-", "-", "-"],
        ];
        assert_eq!(rows, wanted);
        assert_eq!(remarks(&fleet()), ["n3: ssh: no route"]);
    }

    #[test]
    fn a_host_that_tells_of_too_many_neighbours_does_not_fill_the_screen() {
        let of = |count: usize| {
            let all = (0..count).map(|nth| neighbour((nth as u32).to_be_bytes(), None)).collect();
            let host = HostReport { neighbours: Some(all), ..HostReport::none("n1", "x".repeat(100_000)) };
            Reports { hosts: vec![host] }
        };
        let rows = rows(&of(60_010), None, HostOrder::Inventory);
        assert_eq!((rows.len(), rows[16][1].as_str()), (17, "and 59994 more"));
        assert_eq!(super::rows(&of(16), None, HostOrder::Inventory).len(), 16);
        assert_eq!(remarks(&of(1))[0].chars().count(), LONGEST_REMARK);
    }

    #[test]
    fn hosts_that_gave_no_answer_are_a_failure_of_the_command() {
        let failure = fleet().ended("mesh status", false).expect_err("n3 is silent");
        assert_eq!(failure.to_string(), "mesh status: 1 of 3 hosts gave no answer");
        assert!(fleet().ended("mesh status", true).is_ok());
        let answered = Reports { hosts: vec![fleet().hosts.remove(0)] };
        assert!(answered.ended("mesh status", false).is_ok());
    }

    #[test]
    fn orders_put_the_host_in_trouble_first_and_the_silent_one_last() {
        let first = |order| {
            let rows = rows(&fleet(), None, order);
            let hosts: Vec<_> =
                rows.iter().map(|row| row[0].clone()).filter(|name| !name.is_empty()).collect();
            hosts.join(" ")
        };
        assert_eq!(first(HostOrder::Signal), "n2 n1 n3");
        assert_eq!(
            [HostOrder::Queue, HostOrder::Airtime, HostOrder::Connections].map(first),
            ["n1 n3 n2"; 3]
        );
    }

    #[test]
    fn metrics_have_hosts_as_their_only_labels_and_no_line_for_what_is_not_known() {
        let text = metrics(&fleet());
        for line in [
            "hopwise_mesh_up{host=\"n1\"} 1",
            "hopwise_mesh_up{host=\"n3\"} 0",
            "hopwise_mesh_neighbours{host=\"n1\"} 2",
            "hopwise_mesh_weakest_signal_dbm{host=\"n2\"} -70",
            "hopwise_mesh_airtime_busy_ratio{host=\"n1\"} 0.25",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
        }
        assert!(!text.contains("hopwise_mesh_queue_packets{host=\"n2\"}"), "{text}");
    }
}
