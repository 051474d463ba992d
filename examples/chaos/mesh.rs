//! A mesh of four stations: routing daemons at three of them, nodes at both ends, and a liar between.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use hopwise_testing::memory::Random;

use crate::daemon::{Daemon, Kind};
use crate::flow::{Plan, Route};
use crate::forge::Liar;
use crate::place::Namespace;
use crate::site::{Site, air, folders, write};

/// Each station is in range of the stations one and two places further on.
const SPACING_M: u32 = 110;
const FIRST: usize = 0;
const LIAR: usize = 1;
const LAST: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    Aodv,
    Dymo,
}

/// A neighbour is lost in about a second, and its routes are forgotten some seconds later.
const AODV: &str = "{ protocol: aodv, ttl_start: 35, hello_interval: 500ms, active_route_timeout: 1500ms, \
                    node_traversal_time: 20ms, ack_seq: true }";
const DYMO: &str = "{ protocol: dymo, dymo: { hello_interval: 500ms, max_seqnum_lifetime: 5s, \
                    max_idletime: 3s, rreq_wait_time: 500ms, rreq_holddown_time: 500ms, ack_seq: true } }";

pub(crate) const RECEIVERS: [&str; 8] =
    ["delayed", "immediate", "dca", "tda", "train", "tack", "altman-jimenez", "dup-count(delayed)"];
pub(crate) const SENDERS: [&str; 7] = [
    "newreno",
    "cubic",
    "westwood",
    "newreno, elfn, pgy",
    "cubic, paced",
    "newreno, tell-cwnd",
    "newreno, \"limit:20\"",
];

fn station(nth: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, nth as u8 + 1)
}

/// A node at the station of the routing daemon.
fn inner(nth: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, nth as u8 + 101)
}

pub(crate) fn mesh(
    name: &'static str,
    speaks: Speaks,
    (random, folder): (&mut Random, &Path),
) -> Result<Site, String> {
    let folder = folders(name, folder)?;
    let stations: Vec<_> = (0..4).map(|nth| Namespace::named(&format!("{name}-n{nth}"))).collect();
    let keys = random.one_in(2).then(|| folder.join("keys"));
    if let Some(keys) = &keys {
        write(keys, &format!("1 {}\n", "5a".repeat(32)))?;
        let private = fs::Permissions::from_mode(0o600);
        fs::set_permissions(keys, private).map_err(|error| format!("{}: {error}", keys.display()))?;
    }
    let mut daemons = Vec::new();
    for nth in [FIRST, 2, LAST] {
        daemons.push(route(name, nth, (speaks, keys.as_deref()), &stations, &folder)?);
    }
    for nth in [FIRST, LAST] {
        daemons.push(node(name, nth, random, &stations, &folder)?);
    }
    let others = [FIRST, 2, LAST].map(|nth| format!("route replace {} dev air0", station(nth)));
    let beyond =
        [FIRST, LAST].map(|nth| format!("route replace {} via {} dev air0 onlink", inner(nth), station(nth)));
    let roads: Vec<_> = others.into_iter().chain(beyond).map(|words| (LIAR, words)).collect();
    Ok(Site {
        name,
        air: air(name, 3, SPACING_M, &folder)?,
        daemons,
        furniture: furniture(name),
        roads,
        devices: (0..4).map(|nth| (nth, "air0")).collect(),
        serves: vec![
            (FIRST, SocketAddr::from(([127, 0, 0, 1], 7000))),
            (LAST, SocketAddr::from(([127, 0, 0, 1], 7000))),
            (LAST, SocketAddr::from(([0, 0, 0, 0], 7003))),
        ],
        plans: plans(name, &stations),
        liar: liar(&stations, speaks),
        made: Vec::new(),
        stations,
        folder,
        kills: Arc::new(AtomicU64::new(0)),
        disk_is_full: false,
        servers: Vec::new(),
        flows: Vec::new(),
        before: Vec::new(),
    })
}

/// The liar forwards nothing, and kernels filter until a daemon changes that.
fn furniture(name: &str) -> Vec<String> {
    let silence = format!("ip -n {name}-n{LIAR} rule add from 10.0.0.0/24 iif air0 blackhole");
    let redirects =
        |nth| format!("ip netns exec {name}-n{nth} sysctl -qw net.ipv4.conf.all.send_redirects=1");
    std::iter::once(silence).chain((0..4).map(redirects)).collect()
}

fn liar(stations: &[Namespace], speaks: Speaks) -> Liar {
    Liar {
        place: stations[LIAR].clone(),
        own: station(LIAR),
        honest: vec![station(FIRST), station(2), station(LAST), inner(FIRST), inner(LAST)],
        flows: vec![(inner(FIRST), inner(LAST), 7002), (inner(LAST), inner(FIRST), 7002)],
        speaks: Some(speaks),
        device: Some(LIAR),
    }
}

fn route(
    name: &str,
    nth: usize,
    (speaks, keys): (Speaks, Option<&Path>),
    stations: &[Namespace],
    folder: &Path,
) -> Result<Daemon, String> {
    let routing = if speaks == Speaks::Aodv { AODV } else { DYMO };
    let mut text = format!(
        "address: {}\nnetwork: 10.0.0.0/24\ninterfaces: [air0]\nstate: {}\nrouting: {routing}\n",
        station(nth),
        folder.join(format!("disk/state{nth}")).display()
    );
    if nth != 2 {
        let socket = folder.join(format!("node{nth}.sock"));
        text += &format!("serves: [{}]\nnodes: [{}]\n", inner(nth), socket.display());
    }
    if let Some(keys) = keys {
        text += &format!("keys: {}\n", keys.display());
    }
    let config = folder.join(format!("route{nth}.yaml"));
    write(&config, &text)?;
    let words = ["route", &config.to_string_lossy()];
    let place = Some(stations[nth].clone());
    Ok(Daemon::new(Kind::Route, &format!("{name}/route{nth}"), place, &words, folder))
}

fn node(
    name: &str,
    nth: usize,
    random: &mut Random,
    stations: &[Namespace],
    folder: &Path,
) -> Result<Daemon, String> {
    let other = if nth == FIRST { LAST } else { FIRST };
    let text = format!(
        "node: {{ name: n{nth}, address: [{own}/32] }}\n\
         links: [{{ kind: {kind}, name: hw0, kernel: [10.99.0.1/32] }}]\n\
         routes: [{{ to: 0.0.0.0/0, link: hw0 }}]\ncontrol: {folder}/node{nth}.sock\n\
         metrics: {{ listen: 127.0.0.1:9100 }}\nsocks5: {{ listen: 127.0.0.1:1080 }}\n\
         rules: [{{ receiver: \"{receiver}\", sender: [{sender}] }}]\n\
         forwards: [{{ listen: 127.0.0.1:7001, to: mesh:{there}:7002 }}, \
         {{ listen: mesh:7002, to: 127.0.0.1:7000 }}]\n\
         capture: {{ file: {folder}/disk/node{nth}.pcapng, rotate: 512KiB, files: 2 }}\n\
         bounds: {{ memory: 32MiB }}\n",
        own = inner(nth),
        there = inner(other),
        folder = folder.display(),
        kind = random.pick(&["tun", "tun-fast"]),
        receiver = random.pick(&RECEIVERS),
        sender = random.pick(&SENDERS),
    );
    let config = folder.join(format!("node{nth}.yaml"));
    write(&config, &text)?;
    let words = ["node", &config.to_string_lossy()];
    let daemon =
        Daemon::new(Kind::Node, &format!("{name}/node{nth}"), Some(stations[nth].clone()), &words, folder);
    Ok(daemon.then(&format!("route replace {} dev hw0", inner(nth))))
}

fn plans(name: &str, stations: &[Namespace]) -> Vec<Plan> {
    let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let plan = |what: &str, nth: usize, route, most| Plan {
        name: format!("{name}/{what}"),
        place: stations[nth].clone(),
        route,
        most,
        leaves_one_in: 20,
        is_unbroken: false,
    };
    let through = Some(SocketAddr::from((inner(LAST), 7002)));
    let kernel = SocketAddr::from((station(LAST), 7003));
    vec![
        plan("socks", FIRST, Route { to: local(1080), through }, 200_000),
        plan("forward", LAST, Route { to: local(7001), through: None }, 200_000),
        plan("kernel", FIRST, Route { to: kernel, through: None }, 100_000),
    ]
}
