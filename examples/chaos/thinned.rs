//! Two stations on a radio, each with a daemon that thins the ACKs of its kernel. The kernels' own connections have to
//! outlive whatever happens to the daemons.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use hopwise_testing::memory::Random;

use crate::daemon::{Daemon, Kind};
use crate::flow::{Plan, Route};
use crate::forge::Liar;
use crate::place::Namespace;
use crate::site::{Site, air, folders};

const PORT: u16 = 7000;
const AGENTS: [&str; 6] = ["delayed:d=8", "delayed:d=60", "aad", "dca", "tda", "immediate"];

fn station(end: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, end as u8 + 1)
}

pub(crate) fn thinned(name: &'static str, (random, folder): (&mut Random, &Path)) -> Result<Site, String> {
    let folder = folders(name, folder)?;
    let stations: Vec<_> = (0..2).map(|end| Namespace::named(&format!("{name}-n{end}"))).collect();
    let daemon = |end: usize| {
        let control = folder.join(format!("thin{end}.sock"));
        let words =
            ["thin", "air0", "--receiver", random.pick(&AGENTS), "--control", &control.to_string_lossy()];
        let place = Some(stations[end].clone());
        Daemon::new(Kind::Thin, &format!("{name}/thin{end}"), place, &words, &folder)
    };
    let daemons = [0, 1].map(daemon).into();
    let plan = |(end, nth): (usize, u32)| Plan {
        name: format!("{name}/from-n{end}-{nth}"),
        place: stations[end].clone(),
        route: Route { to: SocketAddr::from((station(1 - end), PORT)), through: None },
        most: 1_000_000,
        leaves_one_in: 20,
        is_unbroken: true,
    };
    Ok(Site {
        name,
        air: air(name, 1, 100, &folder)?,
        daemons,
        furniture: Vec::new(),
        roads: (0..2).map(|end| (end, format!("route replace {} dev air0", station(1 - end)))).collect(),
        devices: Vec::new(),
        serves: (0..2).map(|end| (end, SocketAddr::from(([0, 0, 0, 0], PORT)))).collect(),
        plans: [(0, 0), (1, 0), (0, 1)].map(plan).into(),
        liar: Liar {
            place: stations[0].clone(),
            own: station(0),
            honest: Vec::new(),
            flows: Vec::new(),
            speaks: None,
            device: None,
        },
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
