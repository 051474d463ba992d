//! A base station with a proxy, a mobile on its radio, and a fixed host on its wire.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use hopwise_testing::memory::Random;

use crate::daemon::{Daemon, Kind};
use crate::flow::{Plan, Route};
use crate::forge::Liar;
use crate::inside;
use crate::place::Namespace;
use crate::site::{Site, air, folders, write};

const BASE: usize = 0;
const MOBILE: usize = 1;
const FIXED: usize = 2;

const HOST: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 1);
const MOBILES: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const PORT: u16 = 7000;

const AGENTS: [&str; 6] = ["ack-hold", "split", "snoop", "freeze", "delayed-dupacks", "ack-filter"];

/// Commands of `ip` at each station.
const ROADS: [(usize, &str); 9] = [
    (BASE, "addr replace 10.8.0.2/24 dev wire"),
    (BASE, "link set wire up"),
    (BASE, "route replace 10.0.0.2 dev air0"),
    (MOBILE, "route replace 10.0.0.1 dev air0"),
    (MOBILE, "route replace default via 10.0.0.1 dev air0"),
    (FIXED, "addr replace 10.8.0.1/24 dev wire"),
    (FIXED, "link set wire up"),
    (FIXED, "link set lo up"),
    (FIXED, "route replace default via 10.8.0.2"),
];

pub(crate) fn cell(name: &'static str, (random, folder): (&mut Random, &Path)) -> Result<Site, String> {
    let folder = folders(name, folder)?;
    let stations = vec![
        Namespace::named(&format!("{name}-n0")),
        Namespace::named(&format!("{name}-n1")),
        Namespace::named(&format!("{name}-fixed")),
    ];
    let by = if random.one_in(2) && has_queues() { "nfqueue" } else { "tun" };
    let text = format!(
        "fixed: {{ name: hopf }}\nmobile: {{ name: hopm }}\n\
         steer: {{ wire: wire, radio: air0, mobiles: [{MOBILES}/32], by: {by} }}\n\
         agent: {agent}\ncontrol: {folder}/proxy.sock\n\
         carriers: [{{ interface: air0, mobiles: [\"{MOBILES}\"] }}]\n\
         limits: {{ flows: 1000, kept: 8MiB, kept_a_flow: 1MiB }}\nwatchdog: 60s\n",
        agent = random.pick(&AGENTS),
        folder = folder.display(),
    );
    let config = folder.join("proxy.yaml");
    write(&config, &text)?;
    let words = ["proxy", &config.to_string_lossy()];
    let base = Some(stations[BASE].clone());
    let proxy = Daemon::new(Kind::Proxy, &format!("{name}/proxy"), base, &words, &folder);
    let fixed = stations[FIXED].name();
    Ok(Site {
        name,
        air: air(name, 1, 100, &folder)?,
        daemons: vec![proxy],
        furniture: vec![
            format!("-ip netns add {fixed}"),
            format!("-ip -n {fixed} link del wire"),
            format!("ip link add wire netns {name}-n0 type veth peer name wire netns {fixed}"),
            // The first rule of iptables makes tables and chains. They stay when the rule goes.
            format!("-ip netns exec {name}-n0 iptables -t security -P FORWARD ACCEPT"),
            format!("-ip netns exec {name}-n0 iptables -t mangle -P FORWARD ACCEPT"),
        ],
        roads: ROADS.map(|(station, words)| (station, words.to_owned())).into(),
        devices: vec![(BASE, "air0"), (MOBILE, "air0"), (BASE, "wire")],
        serves: vec![
            (MOBILE, SocketAddr::from(([0, 0, 0, 0], PORT))),
            (FIXED, SocketAddr::from(([0, 0, 0, 0], PORT))),
        ],
        plans: plans(name, &stations),
        liar: Liar {
            place: stations[FIXED].clone(),
            own: HOST,
            honest: vec![HOST, MOBILES, Ipv4Addr::new(10, 8, 0, 2)],
            flows: vec![(HOST, MOBILES, PORT), (MOBILES, HOST, PORT)],
            speaks: None,
            device: None,
        },
        made: vec![stations[FIXED].clone()],
        stations,
        folder,
        kills: Arc::new(AtomicU64::new(0)),
        disk_is_full: false,
        servers: Vec::new(),
        flows: Vec::new(),
        before: Vec::new(),
    })
}

fn has_queues() -> bool {
    Path::new("/proc/net/netfilter/nfnetlink_queue").exists() && inside::has("iptables")
}

fn plans(name: &str, stations: &[Namespace]) -> Vec<Plan> {
    let plan = |what: &str, nth: usize, to: Ipv4Addr| Plan {
        name: format!("{name}/{what}"),
        place: stations[nth].clone(),
        route: Route { to: SocketAddr::from((to, PORT)), through: None },
        most: 400_000,
        leaves_one_in: 20,
        is_unbroken: false,
    };
    vec![plan("to-mobile", FIXED, MOBILES), plan("from-mobile", MOBILE, HOST)]
}
