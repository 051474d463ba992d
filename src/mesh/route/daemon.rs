//! The daemon's loop: messages, waiting packets, timers, and the kernel's table after each of them.

mod packets;

use std::io;
use std::net::{IpAddr, SocketAddrV4};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use caps::Capability;
use hopwise_core::ip::Prefix;
use hopwise_core::trace::DropReason;
use hopwise_core::wire::{IpView, UdpView};
use hopwise_core::{Cast, Instant, NextHop, QueueClass};
use hopwise_host::confine::Paths;
use hopwise_host::netlink::{self, NetlinkError};
use hopwise_host::own_file::folder_of;
use hopwise_host::routing::{KernelRoutes, forget_gone, has_route};
use hopwise_host::{Clock, Link, Tun, TunConfig, random_key, wait_for};
use hopwise_mesh::aodv::Interface;
use hopwise_mesh::{Control, Cx, Keys, OnDemand, Order, Trust, first_stamp};
use rustix::event::{PollFd, PollFlags};

use super::config::Config;
use super::drops::Drops;
use super::kernel::Installed;
use super::neighbours::Port;
use super::nodes::Nodes;
use super::speaks::Birth;
use super::state::{Kept, State};
use super::switches::Forwarding;
use crate::daemon::confine::{Needs, confine, folders_of};
use crate::daemon::notify;
use crate::daemon::privileges::Privileges;
use crate::daemon::reader::Reader;
use crate::failure::Failure;
use crate::signals::Caught;
use packets::Turn;

/// The kernel's switches, and its table as text.
const SWITCHES: &str = "/proc/sys/net";
const ROUTES: &str = "/proc/thread-self/net";
/// The interval at which the addresses of passing packets are read: routes live for seconds.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const LOOK_AT_STATIONS_EVERY: Duration = Duration::from_millis(200);
const LARGEST: usize = 65_535;
/// Messages of one interface, or packets, between two checks of timers: a flood must not delay these.
const MOST_AT_ONCE: usize = 256;

#[derive(Debug)]
struct Daemon {
    config: Config,
    state: State,
    hangups: OwnedFd,
    /// Reads the keys anew.
    reader: Option<Reader>,
    clock: Clock,
    router: Box<dyn OnDemand>,
    /// The nodes that are polled for arrivals. The kernel's own connections are unknown here.
    nodes: Nodes,
    ports: Vec<Port>,
    tun: Tun,
    tun_index: u32,
    installed: Installed,
    drops: Drops,
    look_at: Instant,
    next_mark: Instant,
    stations_at: Instant,
    buffer: Vec<u8>,
    // Last, so that routes are gone before the kernel stops forwarding.
    forwarding: Forwarding,
}

pub(super) fn run(config: Config, keys: Option<Keys>) -> Result<(), Failure> {
    let system = |error| Failure::failed("watch for signals", error);
    // From now on signals do not end the daemon by themselves. They are reported once there may be threads.
    let caught = (Caught::endings().map_err(system)?, Caught::hangups().map_err(system)?);
    let ends = caught.0.descriptor().map_err(system)?;
    let privileges = Privileges::find(config.user.as_deref());
    let privileges = privileges.map_err(|error| Failure::refused("user", error))?;
    let reader =
        config.keys.as_ref().map(|keys| Reader::new(&keys.path, &privileges, config.confine)).transpose();
    let reader = reader.map_err(|error| Failure::failed("start what reads the keys anew", error))?;
    privileges.make_folder(&config.state);
    // Only root sees which namespaces still exist.
    let forgotten = forget_gone(folder_of(&config.state));
    if forgotten > 0 {
        tracing::info!(forgotten, "removed files of old switches: their network namespaces are gone");
    }
    privileges.begin().map_err(|error| Failure::failed("become the user", error))?;
    if keys.is_none() {
        tracing::warn!("messages are not signed: this network has to be trusted, or be given `keys:`");
    }
    let hangups = caught.1.descriptor().map_err(system)?;
    let mut daemon = Daemon::open(config, keys, hangups, reader)?;
    let _confined = confine(daemon.config.confine, &privileges, &daemon.needs())?;
    caught.0.tell().and_then(|()| caught.1.tell()).map_err(system)?;
    daemon.nodes.begin()?;
    let service = notify::ready();
    tracing::info!(address = %daemon.config.address, "ready");
    let ended = daemon.serve(&ends);
    drop(service);
    daemon.mark();
    ended
}

/// The time of day, in nanoseconds since 1970.
fn wall() -> u64 {
    u64::try_from(Clock::wall().as_nanos()).unwrap_or(u64::MAX)
}

impl Daemon {
    fn open(
        config: Config,
        keys: Option<Keys>,
        hangups: OwnedFd,
        reader: Option<Reader>,
    ) -> Result<Daemon, Failure> {
        let clock = Clock::start();
        let opened =
            config.interfaces.iter().enumerate().map(|(nth, name)| Port::open(nth, name, &config.speaks));
        let ports = opened.collect::<Result<Vec<_>, _>>()?;
        let kernel = KernelRoutes::open(config.address)
            .map_err(|error| Failure::failed("open the kernel's table", error))?;
        let mtu = least_mtu(&kernel, &ports)?;
        let tun = Tun::open(&TunConfig {
            mtu,
            kernel_addresses: vec![Prefix::host(config.address.into())],
            routes: vec![config.network],
            ..TunConfig::new(&config.tun)
        })
        .map_err(|error| Failure::failed("open a TUN device", error))?;
        let tun_index = netlink::index_of(&config.tun);
        let tun_index = tun_index.map_err(|error| Failure::failed("find the TUN device", error))?;
        let forwarding = Forwarding::begin(&config)?;
        let key = random_key().map_err(|error| Failure::failed("draw a seed", error))?;
        let state = State::open(&config.state);
        let Kept { number: kept, stamp } = state.read();
        let rest = state.rest_left(config.speaks.rest(), clock.wall_offset());
        let wakes_at = Instant::ZERO + if kept.is_some() { Duration::ZERO } else { rest };
        if let Some(seq) = kept {
            tracing::info!(seq, "this node has routed before, and goes on from that number");
        } else if wakes_at > Instant::ZERO {
            tracing::info!(at = %wakes_at, "this node has routed before: it asks and answers from then on");
        }
        let interface = |port: &Port| Interface { link: port.link, address: config.address };
        let trust = Trust { network: Some(config.network), mtu, keys };
        let router = config.speaks.router(Birth {
            interfaces: ports.iter().map(interface).collect(),
            serves: config.serves.clone(),
            seq: kept.unwrap_or(0),
            seed: u64::from_ne_bytes([key[0], key[1], key[2], key[3], key[4], key[5], key[6], key[7]]),
            counter: first_stamp(wall(), stamp),
            wakes_at,
            trust: trust.clone(),
        });
        Ok(Daemon {
            hangups,
            reader,
            state,
            clock,
            router,
            nodes: Nodes::new(&config.nodes, config.speaks.says_arrivals()),
            ports,
            tun,
            tun_index,
            installed: Installed::new(kernel, trust),
            drops: Drops::default(),
            look_at: Instant::ZERO,
            next_mark: Instant::ZERO,
            stations_at: Instant::ZERO,
            buffer: vec![0; LARGEST],
            forwarding,
            config,
        })
    }

    /// By name it opens only the kernel's switches, its state, its keys and the kernel's routes from now on.
    fn needs(&self) -> Needs {
        let mut paths = Paths { reads: Vec::new(), writes: vec![SWITCHES.into()] };
        paths.writes.extend(folders_of(&self.config.state));
        paths.reads.extend(self.reader.iter().flat_map(Reader::folders));
        paths.reads.push(ROUTES.into());
        Needs {
            capabilities: vec![Capability::CAP_NET_ADMIN],
            paths,
            families: vec![libc::AF_UNIX, libc::AF_INET, libc::AF_NETLINK],
        }
    }

    fn serve(&mut self, ends: &OwnedFd) -> Result<(), Failure> {
        loop {
            let now = self.clock.now();
            self.router.set_clock(now, wall());
            if self.next_mark <= now {
                self.check_devices()?;
                self.mark();
                self.forwarding.follow(&self.config.serves);
                notify::alive();
                for (reason, count) in self.drops.news() {
                    tracing::info!(reason, count, "dropped so far");
                }
                self.next_mark = now + Duration::from_secs(1);
            }
            self.router.handle_timeout(&Cx { now, endpoint: &self.nodes });
            self.obey(now);
            if self.wait(ends).map_err(|error| Failure::failed("wait for packets", error))? {
                tracing::info!("ends");
                return Ok(());
            }
            self.take_hangups();
            self.take_messages();
            self.look_at_stations();
            self.take_packets();
            self.look();
        }
    }

    fn mark(&self) {
        self.state.mark(self.router.number(), self.router.last_stamp());
    }

    /// A device with the name of a lost one has none of its sockets, routes and switches.
    fn check_devices(&self) -> Result<(), Failure> {
        let ports = self.ports.iter().map(|port| (port.name.as_str(), port.index));
        for (name, index) in ports.chain([(self.config.tun.as_str(), self.tun_index)]) {
            let is_gone = match netlink::index_of(name) {
                Ok(found) => found != index,
                Err(error) => matches!(error, NetlinkError::NoDevice(_)),
            };
            if is_gone {
                let problem =
                    format_args!("the device `{name}` was removed or made anew: start again with it");
                return Err(Failure::failed("go on", problem));
            }
        }
        // A device that is down has no routes, and gets none back when it is up again.
        let Config { network, tun, .. } = &self.config;
        if has_route(network, tun).is_ok_and(|has_route| !has_route) {
            let problem = format_args!("the route to {network} over the device `{tun}` is gone: start again");
            return Err(Failure::failed("go on", problem));
        }
        Ok(())
    }

    /// Waits for an event or a timer. Returns whether the daemon is to end.
    fn wait(&self, ends: &OwnedFd) -> io::Result<bool> {
        let now = self.clock.now();
        let mut fds = vec![PollFd::new(ends, PollFlags::IN), PollFd::new(&self.hangups, PollFlags::IN)];
        fds.extend(self.tun.descriptor().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        for port in &self.ports {
            fds.push(PollFd::from_borrowed_fd(port.control.as_fd(), PollFlags::IN));
            if self.look_at <= now {
                fds.push(PollFd::from_borrowed_fd(port.watch.as_fd(), PollFlags::IN));
            }
        }
        let look = Some(self.look_at).filter(|at| *at > now);
        let has_stations = self.ports.iter().any(|port| port.stations.is_some());
        let stations = has_stations.then_some(self.stations_at);
        let due =
            [self.router.poll_timeout(), look, stations, Some(self.next_mark)].into_iter().flatten().min();
        let rest = due.unwrap_or(self.next_mark).since(now);
        match wait_for(&mut fds, rest) {
            Ok(_) => Ok(fds[0].revents().contains(PollFlags::IN)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads the keys anew. They stay unchanged if that fails.
    fn take_hangups(&mut self) {
        if rustix::io::read(&self.hangups, &mut [0; 8]).is_err() {
            return;
        }
        let (Some(reader), Some(file)) = (&mut self.reader, &self.config.keys) else {
            tracing::info!("there are no keys to read anew");
            return;
        };
        let found = reader.read().map_err(|error| error.to_string());
        match found.and_then(|found| file.take(&found)) {
            Ok(keys) => {
                self.router.change_keys(keys);
                tracing::info!("the keys were read anew");
            }
            Err(error) => tracing::warn!(%error, "the keys stay as they are"),
        }
    }

    fn take_messages(&mut self) {
        for nth in 0..self.ports.len() {
            for _ in 0..MOST_AT_ONCE {
                let port = &self.ports[nth];
                let heard = match port.control.receive(&mut self.buffer) {
                    Ok(Some(heard)) => heard,
                    Ok(None) => break,
                    Err(error) => {
                        tracing::debug!(device = port.name, %error, "nothing was received");
                        break;
                    }
                };
                // A broadcast message comes back to its sender.
                if heard.from == self.config.address {
                    continue;
                }
                // Routers send from the port that they listen on, which a user of their machine cannot use.
                if heard.port != self.config.speaks.port() {
                    self.drops.count(DropReason::RoutingRefused);
                    continue;
                }
                let now = self.clock.now();
                let cast = if heard.to == self.config.speaks.everyone() { Cast::ToAll } else { Cast::ToUs };
                let control = Control {
                    link: port.link,
                    from: None,
                    cast,
                    src: heard.from.into(),
                    dst: heard.to.into(),
                    hop_limit: heard.ttl,
                    message: &self.buffer[..heard.bytes],
                };
                if !self.config.network.contains(heard.from.into()) {
                    self.drops.count(DropReason::RoutingRefused);
                } else {
                    self.router.handle_control(&Cx { now, endpoint: &self.nodes }, &control);
                    self.obey(now);
                }
            }
        }
    }

    /// On Wi-Fi the driver knows first which stations frames do not reach.
    fn look_at_stations(&mut self) {
        let now = self.clock.now();
        if self.stations_at > now {
            return;
        }
        self.stations_at = now + LOOK_AT_STATIONS_EVERY;
        for nth in 0..self.ports.len() {
            let port = &mut self.ports[nth];
            let Some(stations) = &mut port.stations else { continue };
            let lost = match stations.lost() {
                Ok(lost) => lost,
                Err(error) => {
                    tracing::debug!(device = port.name, %error, "stations are not told of");
                    continue;
                }
            };
            let (link, device) = (port.link, port.index);
            for station in lost {
                let Some(neighbour) = self.installed.who_has(device, station.0) else { continue };
                tracing::info!(%neighbour, %station, "does not hear us");
                self.router.lose(now, link, neighbour);
                self.obey(now);
            }
        }
    }

    /// Carries out the protocol's orders. The kernel's table is updated first, so that packets find their routes in it.
    fn obey(&mut self, now: Instant) {
        self.follow(now);
        while let Some(order) = self.router.poll_order(now) {
            match order {
                Order::Send { link, to, class: QueueClass::Routing, packet } => {
                    self.say(usize::from(link.0), to, &packet);
                }
                Order::Send { link, to: NextHop::Neighbour(via), packet, .. } => {
                    self.send_on(now, (link, via), Turn::Last, &packet);
                }
                Order::Dropped { reason, .. } => self.drops.count(reason),
                Order::Tell { peer, ports, event, path } => self.nodes.tell(peer, ports, event, &path),
                Order::Send { .. } | Order::Purge { .. } | Order::Reroute { .. } => {}
            }
            self.follow(now);
        }
    }

    fn follow(&mut self, now: Instant) {
        self.installed.follow(now, &mut *self.router, &self.ports);
    }

    /// Sends a message, which the protocol has made a whole packet.
    fn say(&self, port: usize, to: NextHop, packet: &[u8]) {
        let Some(port) = self.ports.get(port) else { return };
        let Ok(view) = IpView::parse(packet) else { return };
        let Ok(udp) = UdpView::parse(view.src, view.dst, view.payload) else { return };
        let to = match to {
            NextHop::Neighbour(IpAddr::V4(address)) => address,
            _ => self.config.speaks.everyone(),
        };
        let to = SocketAddrV4::new(to, self.config.speaks.port());
        if let Err(error) = port.control.send(self.config.address, to, view.hop_limit, udp.payload) {
            tracing::debug!(device = port.name, %to, %error, "message not sent");
        }
    }

    /// Keeps routes alive that packets use, those of other programs and forwarded ones.
    fn look(&mut self) {
        let now = self.clock.now();
        if self.look_at > now {
            return;
        }
        let (router, network, look_at) = (&mut self.router, &self.config.network, &mut self.look_at);
        for port in &self.ports {
            port.watch.look(&mut |passing| {
                *look_at = now + LOOK_EVERY;
                let is_mesh = [passing.src, passing.dst].iter().all(|end| network.contains((*end).into()));
                if is_mesh {
                    router.note_use(now, passing.src, passing.dst);
                }
            });
        }
    }
}

/// The largest packet that all interfaces carry.
fn least_mtu(kernel: &KernelRoutes, ports: &[Port]) -> Result<u16, Failure> {
    let mtus = ports.iter().map(|port| kernel.mtu(port.index));
    let mtus = mtus.collect::<Result<Vec<_>, _>>();
    let mtus = mtus.map_err(|error| Failure::failed("ask for an interface's MTU", error))?;
    Ok(mtus.into_iter().min().unwrap_or(u16::MAX))
}
