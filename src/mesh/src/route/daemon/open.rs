//! The beginning of the daemon: it becomes its user, and opens its devices, its sockets and the kernel's table.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use hopwise_core::ip::Prefix;
use hopwise_core::narrow::as_u16;
use hopwise_core::{Instant, LinkId};
use hopwise_host::netlink;
use hopwise_host::own_file::folder_of;
use hopwise_host::routing::{ControlSocket, KernelRoutes, forget_gone};
use hopwise_host::{Answers, Clock, Driver, Link, Tun, TunConfig, random_key};
use hopwise_mesh::aodv::Interface;
use hopwise_mesh::{DaemonProtocol, Keys, OnDemand, Router, RouterConfig, RoutingSetup, Trust, first_stamp};

use super::{RoutingDaemon, wall};
use crate::route::config::RoutingConfiguration;
use crate::route::kernel::Installed;
use crate::route::nodes::RoutedNodes;
use crate::route::state::{SavedState, StateFile};
use crate::route::stations::MeshPort;
use crate::route::status::StatusBoard;
use crate::route::switches::UnfencedForwarding;
use hopwise_daemon::failure::Failure;
use hopwise_daemon::privileges::Privileges;

impl RoutingDaemon {
    pub(super) fn open(
        config: RoutingConfiguration,
        keys: Option<Keys>,
        hangups: OwnedFd,
    ) -> Result<RoutingDaemon, Failure> {
        let clock = Clock::start();
        let (ports, mut links) = open_interfaces(&config)?;
        let kernel =
            KernelRoutes::open(config.address).map_err(Failure::during("open the kernel's table"))?;
        let mtu = least_mtu(&kernel, &ports)?;
        let (tun, tun_index) = open_tun(&config, mtu)?;
        let forwarding = UnfencedForwarding::begin(&config)?;
        let seed = draw_seed()?;
        let state = StateFile::open(&config.state);
        let SavedState { number: kept, stamps, heard, numbers } = state.read();
        let rest = state.rest_left((config.protocol.rest)(&config.constants), clock.wall_offset());
        let rest = if kept.is_some() { Duration::ZERO } else { rest };
        let interface = |port: &MeshPort| Interface { link: port.link, address: config.address };
        let trust = Trust { network: Some(config.network), mtu, keys };
        let setup = RoutingSetup {
            serves: config.serves.clone(),
            seq: kept.unwrap_or(0),
            counter: first_stamp(wall(), &stamps),
            wakes_at: Instant::ZERO + rest,
            trust: trust.clone(),
            ..RoutingSetup::new(ports.iter().map(interface).collect(), seed)
        };
        let mut protocol = (config.protocol.make)(&config.constants, setup);
        protocol.remember_stamps(&stamps, &heard);
        say_rest(kept, protocol.go_on_from(Instant::ZERO, &numbers), rest);
        links.push(Box::new(tun));
        let driver = drive(&config, protocol, links)?.with_clock(clock);
        Ok(RoutingDaemon {
            hangups,
            state,
            clock,
            poller: driver.poller(),
            driver,
            ready: Vec::new(),
            ports,
            tun_index,
            installed: Installed::new(kernel, trust),
            told: StatusBoard::default(),
            look_at: Instant::ZERO,
            is_watching: false,
            next_mark: Instant::ZERO,
            late: Duration::ZERO,
            forwarding,
            config,
        })
    }
}

/// Becomes the user, once all is done that only root may do.
pub(super) fn take_privileges(config: &RoutingConfiguration) -> Result<Privileges, Failure> {
    let privileges = Privileges::find(config.user.as_deref());
    let privileges = privileges.map_err(|error| Failure::refused("user", error))?;
    privileges.make_folder(&config.state);
    config.control.iter().for_each(|control| privileges.make_folder(control));
    forget_switches(&config.state);
    privileges.begin().map_err(Failure::during("become the user"))?;
    Ok(privileges)
}

/// Removes files of network namespaces that are gone. Only root sees which ones still exist.
fn forget_switches(state: &Path) {
    let forgotten = forget_gone(folder_of(state));
    if forgotten > 0 {
        tracing::info!(forgotten, "removed files of old switches: their network namespaces are gone");
    }
}

/// Interfaces of the mesh, and a link for messages on each.
type Interfaces = (Vec<MeshPort>, Vec<Box<dyn Link>>);

fn open_interfaces(config: &RoutingConfiguration) -> Result<Interfaces, Failure> {
    let opened = config.interfaces.iter().enumerate().map(|(nth, name)| MeshPort::open(nth, name));
    let ports = opened.collect::<Result<Vec<_>, _>>()?;
    let listening = config.interfaces.iter().map(|name| listen(name, config.protocol));
    Ok((ports, listening.collect::<Result<Vec<_>, _>>()?))
}

/// The TUN device, and its index.
fn open_tun(config: &RoutingConfiguration, mtu: u16) -> Result<(Tun, u32), Failure> {
    let tun = Tun::open(&TunConfig {
        mtu,
        kernel_addresses: vec![Prefix::host(config.address.into())],
        routes: vec![config.network],
        loan_beside: Some(config.state.clone()),
        // SYNs on this device go to other hosts.
        ..TunConfig::new(&config.tun)
    });
    let tun = tun.map_err(Failure::during("open a TUN device"))?;
    let index = netlink::index_of(&config.tun);
    Ok((tun, index.map_err(Failure::during("find the TUN device"))?))
}

fn draw_seed() -> Result<u64, Failure> {
    let key = random_key().map_err(Failure::during("draw a seed"))?;
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
    config: &RoutingConfiguration,
    protocol: Box<dyn OnDemand>,
    links: Vec<Box<dyn Link>>,
) -> Result<Driver<Router<RoutedNodes>>, Failure> {
    let of_router = RouterConfig {
        address: config.address,
        serves: config.serves.clone(),
        network: config.network,
        unrouted: LinkId(as_u16(config.interfaces.len())),
    };
    let nodes = RoutedNodes::new(&config.nodes, config.constants.is_on("ack_seq"));
    let driver = Driver::new(Router::new(of_router, protocol, nodes), links, Vec::new());
    let driver = driver.map_err(Failure::during("drive the devices"))?;
    // Messages wait for the kernel's table in any case.
    Ok(driver.with_answers(Answers::EachIteration))
}

/// The link for messages on an interface.
fn listen(name: &str, protocol: DaemonProtocol) -> Result<Box<dyn Link>, Failure> {
    let socket = ControlSocket::open(name, protocol.port, protocol.everyone)
        .map_err(|error| Failure::failed("open a socket for messages", format_args!("{name}: {error}")))?;
    Ok(Box::new(socket))
}

/// The largest packet that all interfaces carry.
fn least_mtu(kernel: &KernelRoutes, ports: &[MeshPort]) -> Result<u16, Failure> {
    let mtus = ports.iter().map(|port| kernel.mtu(port.index)).collect::<Result<Vec<_>, _>>();
    let mtus = mtus.map_err(Failure::during("ask for an interface's MTU"))?;
    Ok(mtus.into_iter().min().unwrap_or(u16::MAX))
}
