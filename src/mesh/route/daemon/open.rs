//! The beginning of the daemon: it opens its devices, its sockets and the kernel's table.

use std::os::fd::OwnedFd;
use std::time::Duration;

use hopwise_core::ip::Prefix;
use hopwise_core::narrow::as_u16;
use hopwise_core::{Instant, LinkId};
use hopwise_host::netlink;
use hopwise_host::routing::{ControlSocket, KernelRoutes};
use hopwise_host::{Answers, Clock, Driver, Link, Tun, TunConfig, random_key};
use hopwise_mesh::aodv::Interface;
use hopwise_mesh::{Keys, OnDemand, Router, RouterConfig, Trust, first_stamp};

use super::{Daemon, wall};
use crate::daemon::reader::Reader;
use crate::failure::Failure;
use crate::mesh::route::config::Config;
use crate::mesh::route::kernel::Installed;
use crate::mesh::route::neighbours::Port;
use crate::mesh::route::nodes::Nodes;
use crate::mesh::route::speaks::{Birth, Speaks};
use crate::mesh::route::state::{Kept, State};
use crate::mesh::route::status::Told;
use crate::mesh::route::switches::Forwarding;

impl Daemon {
    pub(super) fn open(
        config: Config,
        keys: Option<Keys>,
        hangups: OwnedFd,
        reader: Option<Reader>,
    ) -> Result<Daemon, Failure> {
        let clock = Clock::start();
        let (ports, mut links) = open_interfaces(&config)?;
        let kernel = KernelRoutes::open(config.address)
            .map_err(|error| Failure::failed("open the kernel's table", error))?;
        let mtu = least_mtu(&kernel, &ports)?;
        let (tun, tun_index) = open_tun(&config, mtu)?;
        let forwarding = Forwarding::begin(&config)?;
        let seed = draw_seed()?;
        let state = State::open(&config.state);
        let Kept { number: kept, stamps, heard, numbers } = state.read();
        let rest = state.rest_left(config.speaks.rest(), clock.wall_offset());
        let rest = if kept.is_some() { Duration::ZERO } else { rest };
        let interface = |port: &Port| Interface { link: port.link, address: config.address };
        let trust = Trust { network: Some(config.network), mtu, keys };
        let mut protocol = config.speaks.router(Birth {
            interfaces: ports.iter().map(interface).collect(),
            serves: config.serves.clone(),
            seq: kept.unwrap_or(0),
            seed,
            counter: first_stamp(wall(), &stamps),
            wakes_at: Instant::ZERO + rest,
            trust: trust.clone(),
        });
        protocol.remember_stamps(&stamps, &heard);
        say_rest(kept, protocol.go_on_from(Instant::ZERO, &numbers), rest);
        links.push(Box::new(tun));
        let driver = drive(&config, protocol, links)?.with_clock(clock);
        Ok(Daemon {
            hangups,
            state,
            clock,
            poller: driver.poller(),
            driver,
            ready: Vec::new(),
            ports,
            tun_index,
            installed: Installed::new(kernel, trust),
            told: Told::default(),
            look_at: Instant::ZERO,
            is_watching: false,
            next_mark: Instant::ZERO,
            late: Duration::ZERO,
            forwarding,
            reader,
            config,
        })
    }
}

/// Interfaces of the mesh, and a link for messages on each.
type Interfaces = (Vec<Port>, Vec<Box<dyn Link>>);

fn open_interfaces(config: &Config) -> Result<Interfaces, Failure> {
    let opened = config.interfaces.iter().enumerate().map(|(nth, name)| Port::open(nth, name));
    let ports = opened.collect::<Result<Vec<_>, _>>()?;
    let listening = config.interfaces.iter().map(|name| listen(name, &config.speaks));
    Ok((ports, listening.collect::<Result<Vec<_>, _>>()?))
}

/// The TUN device, and its index.
fn open_tun(config: &Config, mtu: u16) -> Result<(Tun, u32), Failure> {
    let tun = Tun::open(&TunConfig {
        mtu,
        kernel_addresses: vec![Prefix::host(config.address.into())],
        routes: vec![config.network],
        loan_beside: Some(config.state.clone()),
        // SYNs here are for others.
        ..TunConfig::new(&config.tun)
    });
    let tun = tun.map_err(|error| Failure::failed("open a TUN device", error))?;
    let index = netlink::index_of(&config.tun);
    Ok((tun, index.map_err(|error| Failure::failed("find the TUN device", error))?))
}

fn draw_seed() -> Result<u64, Failure> {
    let key = random_key().map_err(|error| Failure::failed("draw a seed", error))?;
    Ok(u64::from_ne_bytes([key[0], key[1], key[2], key[3], key[4], key[5], key[6], key[7]]))
}

fn say_rest(kept: Option<u16>, has_numbers: bool, rest: Duration) {
    if let Some(seq) = kept {
        tracing::info!(seq, "this node has routed before, and goes on from that number");
    } else if has_numbers {
        tracing::info!("this node has routed before, ended in order, and goes on from its numbers");
    } else if !rest.is_zero() {
        let at = Instant::ZERO + rest;
        tracing::info!(%at, "this node has routed before: it asks and answers from then on");
    }
}

/// A driver of the protocol over its interfaces, and the TUN device as the last link.
fn drive(
    config: &Config,
    protocol: Box<dyn OnDemand>,
    links: Vec<Box<dyn Link>>,
) -> Result<Driver<Router<Nodes>>, Failure> {
    let of_router = RouterConfig {
        address: config.address,
        serves: config.serves.clone(),
        network: config.network,
        unrouted: LinkId(as_u16(config.interfaces.len())),
    };
    let nodes = Nodes::new(&config.nodes, config.speaks.says_arrivals());
    let driver = Driver::new(Router::new(of_router, protocol, nodes), links, Vec::new());
    let driver = driver.map_err(|error| Failure::failed("drive the devices", error))?;
    // Messages wait for the kernel's table in any case.
    Ok(driver.with_answers(Answers::EachIteration))
}

/// The link for messages on an interface.
fn listen(name: &str, speaks: &Speaks) -> Result<Box<dyn Link>, Failure> {
    let socket = ControlSocket::open(name, speaks.port(), speaks.everyone())
        .map_err(|error| Failure::failed("open a socket for messages", format_args!("{name}: {error}")))?;
    Ok(Box::new(socket))
}

/// The largest packet that all interfaces carry.
fn least_mtu(kernel: &KernelRoutes, ports: &[Port]) -> Result<u16, Failure> {
    let mtus = ports.iter().map(|port| kernel.mtu(port.index));
    let mtus = mtus.collect::<Result<Vec<_>, _>>();
    let mtus = mtus.map_err(|error| Failure::failed("ask for an interface's MTU", error))?;
    Ok(mtus.into_iter().min().unwrap_or(u16::MAX))
}
