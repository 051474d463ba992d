//! Two transparent nodes on a radio, and a host behind each. Each node is the first one of its own host's connections,
//! and the last one of the other's.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use hopwise_testing::memory::Random;

use crate::daemon::{Daemon, Kind};
use crate::flow::{Plan, Route};
use crate::forge::Liar;
use crate::mesh::{RECEIVERS, SENDERS};
use crate::place::Namespace;
use crate::site::{Site, air, folders, write};

const PORT: u16 = 7000;
/// Hosts have the stations after the radio's stations.
const HOSTS: [usize; 2] = [2, 3];

fn host(end: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 8, end as u8, 1)
}

/// A node's address over Hopwise.
fn inner(end: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 7, end as u8, 2)
}

pub(crate) fn pair(name: &'static str, (random, folder): (&mut Random, &Path)) -> Result<Site, String> {
    let folder = folders(name, folder)?;
    let stations: Vec<_> =
        ["n0", "n1", "host0", "host1"].iter().map(|of| Namespace::named(&format!("{name}-{of}"))).collect();
    let mut daemons = Vec::new();
    for end in 0..2 {
        daemons.push(node(name, end, random, &stations, &folder)?);
    }
    Ok(Site {
        name,
        air: air(name, 1, 100, &folder)?,
        daemons,
        furniture: (0..2).flat_map(|end| furniture(name, end)).collect(),
        roads: (0..2).flat_map(roads).collect(),
        devices: (0..2).flat_map(|end| [(end, "air0"), (end, "wire")]).collect(),
        serves: HOSTS.map(|station| (station, SocketAddr::from(([0, 0, 0, 0], PORT)))).into(),
        plans: (0..2).map(|end| plan(name, end, &stations)).collect(),
        liar: Liar {
            place: stations[HOSTS[0]].clone(),
            own: host(0),
            honest: vec![host(0), host(1), inner(0), inner(1)],
            flows: vec![(host(0), host(1), PORT), (host(1), host(0), PORT)],
            speaks: None,
            device: None,
        },
        made: HOSTS.map(|station| stations[station].clone()).into(),
        stations,
        folder,
        kills: Arc::new(AtomicU64::new(0)),
        disk_is_full: false,
        servers: Vec::new(),
        flows: Vec::new(),
        before: Vec::new(),
    })
}

/// A wire between a station and its host. The first rule of iptables makes tables, which stay when the rule goes.
fn furniture(name: &str, end: usize) -> Vec<String> {
    let (station, host) = (format!("{name}-n{end}"), format!("{name}-host{end}"));
    let tables = ["iptables", "ip6tables"];
    let tables =
        tables.map(|program| format!("-ip netns exec {station} {program} -t mangle -P PREROUTING ACCEPT"));
    let wires = vec![
        format!("-ip netns add {host}"),
        format!("-ip -n {host} link del wire"),
        format!("ip link add wire netns {station} type veth peer name wire netns {host}"),
        format!("ip netns exec {station} sysctl -qw net.ipv4.ip_forward=1"),
    ];
    wires.into_iter().chain(tables).collect()
}

fn roads(end: usize) -> Vec<(usize, String)> {
    let (at_host, other) = (HOSTS[end], 1 - end);
    let via = format!("via 10.0.0.{} dev air0 onlink", other + 1);
    vec![
        (end, format!("addr replace 10.8.{end}.2/24 dev wire")),
        (end, "link set wire up".to_owned()),
        (end, format!("route replace 10.8.{other}.0/24 {via}")),
        (end, format!("route replace 10.7.{other}.0/24 {via}")),
        (at_host, format!("addr replace {}/24 dev wire", host(end))),
        (at_host, "link set wire up".to_owned()),
        (at_host, "link set lo up".to_owned()),
        (at_host, format!("route replace default via 10.8.{end}.2")),
    ]
}

fn node(
    name: &str,
    end: usize,
    random: &mut Random,
    stations: &[Namespace],
    folder: &Path,
) -> Result<Daemon, String> {
    let other = 1 - end;
    let text = format!(
        "node: {{ name: n{end}, address: {own}/24 }}\n\
         links: [{{ kind: tun, name: hw0, kernel: 10.7.{end}.1/24 }}]\n\
         routes: [{{ to: 0.0.0.0/0, link: hw0 }}]\ncontrol: {folder}/node{end}.sock\nstop_within: 1s\n\
         transparent: {{ interfaces: [wire], ports: [{PORT}], from: [{there}], connections: 100, \
         to: [{{ network: 10.8.{other}.0/24, node: {there} }}] }}\n\
         rules: [{{ receiver: \"{receiver}\", sender: [{sender}] }}]\n\
         capture: {{ file: {folder}/disk/node{end}.pcapng, rotate: 512KiB, files: 2 }}\n\
         bounds: {{ memory: 32MiB }}\n",
        own = inner(end),
        there = inner(other),
        folder = folder.display(),
        receiver = random.pick(&RECEIVERS),
        sender = random.pick(&SENDERS),
    );
    let config = folder.join(format!("node{end}.yaml"));
    write(&config, &text)?;
    let words = ["node", &config.to_string_lossy()];
    let place = Some(stations[end].clone());
    Ok(Daemon::new(Kind::Node, &format!("{name}/node{end}"), place, &words, folder))
}

fn plan(name: &str, end: usize, stations: &[Namespace]) -> Plan {
    Plan {
        name: format!("{name}/from-host{end}"),
        place: stations[HOSTS[end]].clone(),
        route: Route { to: SocketAddr::from((host(1 - end), PORT)), through: None },
        most: 400_000,
        leaves_one_in: 20,
        is_unbroken: false,
    }
}
