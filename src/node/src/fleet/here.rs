//! The report of this machine: what its daemons answer, and what the kernel counts of their interfaces.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_host::netlink::{self, QueuedPackets};
use hopwise_host::nl80211::{ChannelUse, EVERY, Nl80211, Polled, StationSource};
use hopwise_host::{Clock, wait_for};
use hopwise_lab::version;

use super::report::{AirtimeReport, HostReport, NeighbourReport, QueueReport};
use crate::control::client::sockets;
use crate::control::{Request, Response};
use crate::snapshot::Snapshot;
use hopwise_daemon::control::ask_within;
use hopwise_daemon::stations::{self, InterfaceSnapshot, RoutingSnapshot};

/// The time for a daemon's answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// The longest wait for the first report of an interface.
const FIRST_REPORT: Instant = Instant::from_millis(150);
const NAME: &str = "/proc/sys/kernel/hostname";
/// The interfaces of this thread's network namespace.
const INTERFACES: &str = "/proc/thread-self/net/dev";

/// The answers of the daemons.
#[derive(Debug, Default)]
struct DaemonAnswers {
    nodes: Vec<Snapshot>,
    routing: Vec<RoutingSnapshot>,
    /// Daemons that gave no answer, with the reasons.
    problems: Vec<String>,
}

/// Asks the daemons at these sockets, or all that have the usual folder.
pub fn report(control: &[PathBuf]) -> HostReport {
    let usual = sockets();
    let answers = asked(if control.is_empty() { &usual } else { control });
    let mut report = HostReport { host: name(), version: Some(versions(&answers)), ..HostReport::default() };
    add_neighbours(&mut report, &answers);
    let interfaces = interfaces(&report, &answers);
    add_radio(&mut report, &interfaces);
    add_connections(&mut report, &answers);
    if !answers.problems.is_empty() {
        report.lacks("daemons", answers.problems.join("; "));
    }
    report.told_at_s = Some(Clock::wall().as_secs_f64());
    report
}

/// The name of this machine.
pub fn name() -> String {
    let name = fs::read_to_string(NAME).unwrap_or_default();
    if name.trim().is_empty() { "this machine".to_owned() } else { name.trim().to_owned() }
}

fn asked(sockets: &[PathBuf]) -> DaemonAnswers {
    let ask = |socket: &PathBuf| ask_within::<_, Response>(socket, &Request::Status, ANSWER_WITHIN);
    let all: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = sockets.iter().map(|socket| scope.spawn(move || ask(socket))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let mut answers = DaemonAnswers::default();
    for (socket, answered) in sockets.iter().zip(all) {
        let place = |problem: &dyn std::fmt::Display| format!("{}: {problem}", socket.display());
        match answered {
            Ok(Response::Status(node)) => answers.nodes.push(*node),
            Ok(Response::Routing(routing)) => answers.routing.push(*routing),
            // It has no facts about neighbours or connections of ours.
            Ok(Response::Thin(_)) => {}
            Ok(Response::Refused { problem }) => answers.problems.push(place(&problem)),
            Ok(_) => answers.problems.push(place(&"it is neither a node nor a routing daemon")),
            Err(error) => answers.problems.push(place(&error)),
        }
    }
    answers
}

/// The versions of the daemons, or of this command.
fn versions(answers: &DaemonAnswers) -> String {
    let nodes = answers.nodes.iter().map(|node| node.version.as_str());
    let mut all: Vec<_> =
        nodes.chain(answers.routing.iter().map(|routing| routing.version.as_str())).collect();
    all.sort_unstable();
    all.dedup();
    if all.is_empty() { version::with_commit().to_owned() } else { all.join(", ") }
}

fn add_neighbours(report: &mut HostReport, answers: &DaemonAnswers) {
    let Some(routing) = answers.routing.first() else {
        let interfaces: Vec<_> = names_of_interfaces().iter().filter_map(|name| stations_of(name)).collect();
        let of = |interface: &InterfaceSnapshot| neighbours_of(interface);
        report.lacks("routes_valid", without(answers, "routing daemon"));
        if interfaces.is_empty() {
            report.lacks("neighbours", "no routing daemon answers, and no interface reports stations");
        } else {
            report.neighbours = Some(interfaces.iter().flat_map(of).collect());
        }
        return;
    };
    report.address = Some(routing.address);
    report.routes_valid = Some(routing.routes_valid);
    report.routes.clone_from(&routing.routes);
    let mut found: Vec<_> = routing.stations.iter().flat_map(neighbours_of).collect();
    // Those that a radio does not report are known by their messages.
    for address in stations::neighbours(&routing.routes).into_iter().map(IpAddr::V4) {
        let over = |route: &&stations::RouteSnapshot| IpAddr::V4(route.via) == address;
        let through = routing.routes.iter().filter(over).count();
        if let Some(known) = found.iter_mut().find(|known| known.address == Some(address)) {
            known.routes = through;
            continue;
        }
        let interface = routing.routes.iter().find(over).map(|route| route.interface.clone());
        found.push(NeighbourReport {
            address: Some(address),
            interface: interface.unwrap_or_default(),
            routes: through,
            ..NeighbourReport::default()
        });
    }
    report.neighbours = Some(found);
}

/// Why a kind of daemon tells nothing.
fn without(answers: &DaemonAnswers, what: &str) -> String {
    match answers.problems.first() {
        Some(problem) => format!("no {what} answers here; {problem}"),
        None => format!("no {what} answers here: it needs `control:` in its file"),
    }
}

fn neighbours_of(interface: &InterfaceSnapshot) -> Vec<NeighbourReport> {
    let of = |station| NeighbourReport::of_station(&interface.interface, station);
    interface.stations.iter().map(of).collect()
}

/// The stations of a source now.
pub fn stations_by(source: &mut StationSource, now: Instant) -> Vec<NeighbourReport> {
    source.poll(now, &mut |_| {});
    neighbours_of(&InterfaceSnapshot::of(&source.board().read(), now, |_| None))
}

/// The use of an interface's channel now, as far as its driver tells.
pub fn channel_at(name: &str) -> Option<AirtimeReport> {
    let used = Nl80211::open().ok()?.channel_use(netlink::index_of(name).ok()?).ok()?;
    airtime(name, &used?)
}

/// The stations of an interface now; `None` if it has none.
fn stations_of(name: &str) -> Option<InterfaceSnapshot> {
    let mut source = StationSource::open(name).ok()?;
    let clock = Clock::start();
    // The kernel answers at once. A program that makes the radio tells its next report.
    while source.poll(clock.now(), &mut |_| {}) == Polled::Same && clock.now() < FIRST_REPORT {
        let _ = wait_for(&mut [], EVERY);
    }
    Some(InterfaceSnapshot::of(&source.board().read(), clock.now(), |_| None))
}

/// The interfaces of this thread's network namespace but for its loopback.
pub fn names_of_interfaces() -> Vec<String> {
    let text = fs::read_to_string(Path::new(INTERFACES)).unwrap_or_default();
    let names = text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()));
    names.filter(|name| name != "lo").collect()
}

/// The interfaces that have stations.
pub fn with_stations() -> Vec<String> {
    names_of_interfaces().into_iter().filter(|name| StationSource::open(name).is_ok()).collect()
}

/// The interfaces of the mesh: the routing daemons' interfaces, or all interfaces with stations.
fn interfaces(report: &HostReport, answers: &DaemonAnswers) -> Vec<String> {
    let routing = answers.routing.iter().flat_map(|routing| routing.interfaces.clone());
    let heard = report.neighbours.iter().flatten().map(|neighbour| neighbour.interface.clone());
    let mut all: Vec<_> = routing.chain(heard).filter(|name| !name.is_empty()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn add_radio(report: &mut HostReport, interfaces: &[String]) {
    if interfaces.is_empty() {
        report.lacks("queue", "no interface of a mesh is known");
        report.lacks("airtime", "no interface of a mesh is known");
        return;
    }
    let mut wifi = Nl80211::open().ok();
    let mut queue = None;
    for name in interfaces {
        let Ok(index) = netlink::index_of(name) else { continue };
        let of_radio = wifi.as_mut().and_then(|wifi| wifi.queued(index).ok().flatten());
        let waiting = of_radio.or_else(|| netlink::queued(index).ok().flatten());
        if let Some(QueuedPackets { packets, bytes, drops }) = waiting {
            let sum: &mut QueueReport = queue.get_or_insert_default();
            (sum.packets, sum.bytes, sum.drops) =
                (sum.packets + packets, sum.bytes + bytes, sum.drops + drops);
        }
        let used = wifi.as_mut().and_then(|wifi| wifi.channel_use(index).ok().flatten());
        report.airtime = report.airtime.take().or_else(|| airtime(name, &used?));
    }
    report.queue = queue;
    if report.queue.is_none() {
        report.lacks("queue", "the kernel counts no queue of the interfaces");
    }
    if report.airtime.is_none() {
        let reason = if wifi.is_some() { "no driver counts the use of its channel" } else { "no Wi-Fi here" };
        report.lacks("airtime", reason);
    }
}

fn airtime(interface: &str, used: &ChannelUse) -> Option<AirtimeReport> {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    Some(AirtimeReport {
        interface: interface.to_owned(),
        frequency_mhz: used.frequency_mhz,
        active_ms: used.active.map(millis)?,
        busy_ms: used.busy.map(millis)?,
        receiving_ms: used.receiving.map(millis),
        sending_ms: used.sending.map(millis),
        noise_dbm: used.noise_dbm,
    })
}

fn add_connections(report: &mut HostReport, answers: &DaemonAnswers) {
    if answers.nodes.is_empty() {
        let reason = without(answers, "node");
        report.lacks("connections", reason.clone());
        report.lacks("agents", reason);
        return;
    }
    report.connections = Some(answers.nodes.iter().map(|node| node.connections_open).sum());
    let mut agents = BTreeMap::new();
    for conn in answers.nodes.iter().flat_map(|node| &node.connections) {
        *agents.entry(format!("{} / {}", conn.receiver, conn.sender)).or_default() += 1;
    }
    report.agents = Some(agents);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::ConnSnapshot;
    use hopwise_daemon::stations::StationSnapshot;

    fn routed() -> RoutingSnapshot {
        let route = |to: [u8; 4], via: [u8; 4], hops| stations::RouteSnapshot {
            to: to.into(),
            via: via.into(),
            interface: "wlan0".to_owned(),
            hops,
        };
        let station = StationSnapshot {
            station: "02:00:00:00:00:02".to_owned(),
            neighbour: Some(IpAddr::from([10, 0, 0, 2])),
            signal_dbm: Some(-61),
            ..StationSnapshot::default()
        };
        RoutingSnapshot {
            address: [10, 0, 0, 1].into(),
            pid: 1,
            version: "1".to_owned(),
            interfaces: vec!["wlan0".to_owned()],
            stations: vec![InterfaceSnapshot {
                interface: "wlan0".to_owned(),
                stations: vec![station],
                not_believed: Vec::new(),
            }],
            routes_valid: 3,
            routes: vec![
                route([10, 0, 0, 2], [10, 0, 0, 2], 1),
                route([10, 0, 0, 3], [10, 0, 0, 2], 2),
                route([10, 0, 0, 9], [10, 0, 0, 9], 1),
            ],
        }
    }

    #[test]
    fn neighbours_are_stations_and_those_that_only_routes_show() {
        let answers = DaemonAnswers { routing: vec![routed()], ..DaemonAnswers::default() };
        let mut report = HostReport::default();
        add_neighbours(&mut report, &answers);
        let found = report.neighbours.clone().expect("a daemon told them");
        let told: Vec<_> =
            found.iter().map(|one| (one.signal_dbm, one.routes, one.interface.as_str())).collect();
        assert_eq!(told, [(Some(-61), 2, "wlan0"), (None, 1, "wlan0")]);
        assert_eq!((report.routes_valid, report.weakest_dbm()), (Some(3), Some(-61)));
        assert_eq!(interfaces(&report, &answers), ["wlan0"]);
    }

    #[test]
    fn what_no_daemon_tells_is_absent_with_its_reason() {
        let mut report = HostReport::default();
        let silent = DaemonAnswers {
            problems: vec!["a.sock: it did not answer".to_owned()],
            ..DaemonAnswers::default()
        };
        add_connections(&mut report, &silent);
        add_radio(&mut report, &[]);
        assert_eq!((report.connections, report.queue), (None, None));
        assert_eq!(report.unknown["agents"], "no node answers here; a.sock: it did not answer");
        assert_eq!(report.unknown["airtime"], "no interface of a mesh is known");
    }

    #[test]
    fn connections_are_counted_by_their_agents() {
        let conn = |receiver: &str| ConnSnapshot {
            receiver: receiver.to_owned(),
            sender: "newreno".to_owned(),
            ..ConnSnapshot::default()
        };
        let connections = vec![conn("dca"), conn("immediate"), conn("dca")];
        let node = Snapshot { connections_open: 4, connections, ..Snapshot::default() };
        let mut report = HostReport::default();
        add_connections(&mut report, &DaemonAnswers { nodes: vec![node], ..DaemonAnswers::default() });
        assert_eq!(report.connections, Some(4));
        assert_eq!(report.agents.expect("a node told them")["dca / newreno"], 2);
    }
}
