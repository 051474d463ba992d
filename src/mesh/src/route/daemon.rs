//! The daemon's loop: messages, waiting packets, timers, and the kernel's table after each of them.

mod open;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use caps::Capability;
use hopwise_core::trace::DropReason;
use hopwise_core::{Instant, LinkEvent, LinkId, Machine};
use hopwise_host::confine::Paths;
use hopwise_host::netlink::{self, NetlinkError};
use hopwise_host::routing::{KernelTable, is_link_lost};
use hopwise_host::{Clock, Driver, Interest, Poller};
use hopwise_lab::live::part::{PartMessage, RoutingCounts};
use hopwise_mesh::{Forward, Keys, Router};
use rustix::io::Errno;

use self::open::take_privileges;
use super::config::RoutingConfiguration;
use super::kernel::Installed;
use super::nodes::RoutedNodes;
use super::state::StateFile;
use super::stations::{LossWatch, MeshPort};
use super::status::{self, RouteFacts, StatusBoard, StatusSource};
use super::switches::UnfencedForwarding;
use hopwise_daemon::confine::{AccessNeeds, confine, folders_of};
use hopwise_daemon::control::BoundSocket;
use hopwise_daemon::failure::Failure;
use hopwise_daemon::live_by_the_clock;
use hopwise_daemon::notify;
use hopwise_daemon::signals::SignalWatch;
use hopwise_daemon::stations::{MOST_SHOWN, RouteSnapshot};
use hopwise_daemon::talk;

/// The kernel's switches, and its table as text.
const SWITCHES: &str = "/proc/sys/net";
const ROUTES: &str = "/proc/thread-self/net";
/// The interval at which the addresses of passing packets are read: routes live for seconds.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The poller's indexes for descriptors that are no links.
const ENDS: usize = usize::MAX >> 1;
const HANGUPS: usize = ENDS - 1;
const WATCHES: usize = ENDS - 2;

#[derive(Debug)]
struct RoutingDaemon {
    config: RoutingConfiguration,
    state: StateFile,
    hangups: OwnedFd,
    clock: Clock,
    /// Its nodes are polled for arrivals. The kernel's own connections are unknown here.
    driver: Driver<Router<RoutedNodes>>,
    poller: Arc<Poller>,
    /// The descriptors that have something to read.
    ready: Vec<usize>,
    ports: Vec<MeshPort>,
    tun_index: u32,
    installed: Installed,
    told: StatusBoard,
    /// Passing packets are looked at no sooner; until then nothing watches for them.
    look_at: Instant,
    is_watching: bool,
    next_mark: Instant,
    /// The longest time by which a timer was late.
    late: Duration,
    // Behind the routes, so that they are gone before the kernel stops forwarding.
    forwarding: UnfencedForwarding,
}

/// Runs until it is told to end; with a trial, from its word until its pipe ends.
pub(super) fn run(config: RoutingConfiguration, keys: Option<Keys>, has_trial: bool) -> Result<(), Failure> {
    let system = Failure::during("watch for signals");
    // From now on signals do not end the daemon by themselves. They are reported once there may be threads.
    let caught = (SignalWatch::endings().map_err(system)?, SignalWatch::hangups().map_err(system)?);
    let ends = caught.0.descriptor().map_err(system)?;
    if has_trial {
        live_by_the_clock();
    }
    let privileges = take_privileges(&config)?;
    if keys.is_none() {
        tracing::warn!("messages are not signed: this network has to be trusted, or be given `keys:`");
    }
    let hangups = caught.1.descriptor().map_err(system)?;
    let mut daemon = RoutingDaemon::open(config, keys, hangups)?;
    daemon.poller.add(ends.as_fd(), ENDS, Interest::Read).map_err(system)?;
    daemon.poller.add(daemon.hangups.as_fd(), HANGUPS, Interest::Read).map_err(system)?;
    let bound = daemon.config.control.as_deref().map(BoundSocket::bind).transpose()?;
    let _confined = confine(daemon.config.confine, &privileges, &daemon.needs())?;
    if let Some(bound) = &bound {
        status::serve(bound, daemon.known())?;
    }
    caught.0.tell().and_then(|()| caught.1.tell()).map_err(system)?;
    daemon.driver.machine_mut().seam().begin()?;
    let service = notify::ready();
    tracing::info!(address = %daemon.config.address, "ready");
    if has_trial {
        daemon.begin_with_trial()?;
    }
    let ended = daemon.serve();
    drop(service);
    daemon.mark(true);
    if has_trial && ended.is_ok() {
        talk::say(&PartMessage::Routed(daemon.counts()))?;
    }
    ended
}

/// The time of day, in nanoseconds since 1970.
fn wall() -> u64 {
    u64::try_from(Clock::wall().as_nanos()).unwrap_or(u64::MAX)
}

impl RoutingDaemon {
    /// By name it opens only the kernel's switches, its state, its keys and the kernel's routes from now on.
    fn needs(&self) -> AccessNeeds {
        let mut paths = Paths { writes: vec![SWITCHES.into()], ..Paths::default() };
        paths.writes.extend(folders_of(&self.config.state));
        paths.writes.extend(self.config.control.iter().flat_map(|control| folders_of(control)));
        paths.reads.extend(self.config.keys.iter().flat_map(|keys| folders_of(&keys.path)));
        paths.reads.push(ROUTES.into());
        AccessNeeds {
            capabilities: vec![Capability::CAP_NET_ADMIN],
            paths,
            families: vec![libc::AF_UNIX, libc::AF_INET, libc::AF_NETLINK],
        }
    }

    /// The knowledge behind the control socket.
    fn known(&self) -> StatusSource {
        let reports = self.ports.iter().filter_map(|port| port.stations.as_ref());
        StatusSource {
            address: self.config.address,
            clock: self.clock,
            boards: reports.map(LossWatch::board).collect(),
            interfaces: self.config.interfaces.clone(),
            told: self.told.clone(),
        }
    }

    /// All nodes of a trial begin their clocks together. The end of the trial's pipe ends this as a signal does.
    fn begin_with_trial(&mut self) -> Result<(), Failure> {
        talk::wait_for_beginning()?;
        self.clock = Clock::start();
        self.driver.set_clock(self.clock);
        let watched = self.poller.add(io::stdin().as_fd(), ENDS, Interest::Read);
        watched.map_err(Failure::during("hear the trial"))
    }

    fn counts(&mut self) -> RoutingCounts {
        let (discoveries, route_failures) = self.driver.machine_mut().protocol().counts();
        let late_us = u64::try_from(self.late.as_micros()).unwrap_or(u64::MAX);
        RoutingCounts { discoveries, route_failures, late_us }
    }

    fn serve(&mut self) -> Result<(), Failure> {
        let system = Failure::during("wait for packets");
        loop {
            let now = self.clock.now();
            if self.next_mark <= now {
                self.check_devices()?;
                self.forwarding.check_fence();
                if let Ok(table) = KernelTable::read() {
                    self.check_route(&table)?;
                    self.forwarding.follow(&self.config.serves, &table);
                }
                self.driver.machine_mut().protocol().set_clock(now, wall());
                self.mark(false);
                self.tell(now);
                notify::alive();
                for (reason, count) in self.driver.machine_mut().drops().news() {
                    tracing::info!(reason, count, "dropped so far");
                }
                self.next_mark = now + Duration::from_secs(1);
            }
            // Routes that packets use do not expire.
            if self.look_at <= now {
                self.look(now).map_err(system)?;
            }
            self.look_at_stations(now);
            self.driver.listen(|link| self.ready.contains(&link));
            if self.driver.machine().has_unrouted() {
                // Packets of strangers that have caused these came before them.
                self.look(self.clock.now()).map_err(system)?;
            }
            self.obey();
            self.wait().map_err(system)?;
            if self.ready.contains(&ENDS) {
                tracing::info!("ends");
                return Ok(());
            }
            if self.ready.contains(&HANGUPS) {
                self.take_hangup();
            }
        }
    }

    fn mark(&mut self, is_end: bool) {
        self.state.mark(self.driver.machine_mut().protocol(), is_end);
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
        Ok(())
    }

    /// A device that is down has no routes, and gets none back when it is up again.
    fn check_route(&self, table: &KernelTable) -> Result<(), Failure> {
        let RoutingConfiguration { network, tun, .. } = &self.config;
        if table.has_route(network, tun) {
            return Ok(());
        }
        let problem = format_args!("the route to {network} over the device `{tun}` is gone: start again");
        Err(Failure::failed("go on", problem))
    }

    /// Waits for an event or a timer.
    fn wait(&mut self) -> io::Result<()> {
        let look = Some(self.look_at).filter(|_| !self.is_watching);
        let reports = self.ports.iter().filter_map(|port| port.stations.as_ref());
        let stations = reports.map(LossWatch::poll_timeout).min();
        let due = [self.driver.poll_timeout(), look, stations, Some(self.next_mark)];
        let due = due.into_iter().flatten().min();
        self.driver.rest();
        self.poller.wait(&self.clock, due, &mut self.ready)?;
        if let Some(due) = due {
            self.late = self.late.max(self.clock.now().since(due));
        }
        Ok(())
    }

    /// Reads the keys again. They stay unchanged if that fails.
    fn take_hangup(&mut self) {
        let _ = rustix::io::read(&self.hangups, &mut [0; 8]);
        let Some(file) = &self.config.keys else {
            tracing::info!("there are no keys to read anew");
            return;
        };
        match file.read() {
            Ok(keys) => {
                self.driver.machine_mut().protocol().change_keys(keys);
                tracing::info!("the keys were read anew");
            }
            Err(error) => tracing::warn!(%error, "the keys stay as they are"),
        }
    }

    /// On Wi-Fi the driver knows first which stations frames do not reach.
    fn look_at_stations(&mut self, now: Instant) {
        for nth in 0..self.ports.len() {
            let port = &mut self.ports[nth];
            let Some(stations) = &mut port.stations else { continue };
            let lost = stations.lost(now);
            if lost.is_empty() {
                continue;
            }
            let (link, neighbours) = (port.link, self.installed.neighbours(port.index));
            for station in lost {
                let Some(neighbour) = neighbours.get(&station) else { continue };
                tracing::info!(%neighbour, %station, "does not hear us");
                let gone = LinkEvent::Gone { peer: (*neighbour).into() };
                self.driver.machine_mut().handle_link_event(now, link, &gone);
            }
        }
    }

    /// Tells the control socket the neighbours and the routes, and the nodes the bit rates of links to next hops.
    fn tell(&mut self, now: Instant) {
        let has_stations = self.ports.iter().any(|port| port.stations.is_some());
        if !has_stations && self.config.control.is_none() {
            return;
        }
        let mut neighbours = BTreeMap::new();
        let mut rates = BTreeMap::new();
        for port in &self.ports {
            let Some(stations) = &port.stations else { continue };
            let of_port = self.installed.neighbours(port.index);
            for facts in stations.facts() {
                if let (Some(neighbour), Some(bps)) = (of_port.get(&facts.station), facts.tx_bitrate_bps) {
                    rates.insert((port.link, *neighbour), bps);
                }
            }
            neighbours.extend(of_port);
        }
        let router = self.driver.machine_mut();
        let valid = router.protocol().routes(now);
        if has_stations {
            let rated = valid
                .iter()
                .filter_map(|(dst, via, link, _)| Some(((*dst).into(), *rates.get(&(*link, *via))?)));
            router.seam().set_rates(&rated.collect());
        }
        let name =
            |link: LinkId| self.ports.iter().find(|port| port.link == link).map(|port| port.name.clone());
        let shown = valid.iter().take(MOST_SHOWN).map(|(to, via, link, hops)| RouteSnapshot {
            to: *to,
            via: *via,
            interface: name(*link).unwrap_or_default(),
            hops: *hops,
        });
        self.told.set(RouteFacts { neighbours, routes_valid: valid.len(), routes: shown.collect() });
    }

    /// Does the kernel's part of what the router has decided. Packets and messages find its table up to date.
    fn obey(&mut self) {
        loop {
            let now = self.clock.now();
            let router = self.driver.machine_mut();
            let forward = router.poll_forward(now);
            self.installed.follow(now, router.protocol(), &self.ports);
            let Some(forward) = forward else { break };
            self.send_on(now, &forward);
        }
        self.driver.answer();
    }

    /// Sends by the kernel's route. A device that no longer sends is a lost link. Other errors cost one packet.
    fn send_on(&mut self, now: Instant, forward: &Forward) {
        let Forward { link, via, dst, has_waited, ref packet } = *forward;
        let Some(port) = self.ports.get(usize::from(link.0)) else { return };
        let router = self.driver.machine_mut();
        // The kernel did not take the route, or the protocol has given it up since.
        if !self.installed.has(dst) {
            return router.drops().count(DropReason::NoRoute);
        }
        let is_there = if has_waited { Ok(()) } else { self.installed.restore(now, dst) };
        let Err(error) = is_there.and_then(|()| port.resender.send(dst, packet)) else { return };
        if !is_link_lost(&error) {
            return router.drops().count(reason(&error));
        }
        tracing::info!(%dst, %via, device = port.name, %error, "link gone");
        self.installed.lose(dst);
        router.lose(now, forward);
    }

    /// Keeps routes alive that packets use, be they packets of other programs or forwarded packets. It also notes the
    /// ends that strangers name.
    fn look(&mut self, now: Instant) -> io::Result<()> {
        let (protocol, network) = (self.driver.machine_mut().protocol(), &self.config.network);
        let mut has_seen = false;
        for port in &self.ports {
            port.watch.look(&mut |passing| {
                has_seen = true;
                let is_mesh = [passing.src, passing.dst].iter().all(|end| network.contains((*end).into()));
                if is_mesh {
                    protocol.note_use(now, passing.src, passing.dst);
                    if passing.came_in {
                        protocol.note_came(now, passing.src, passing.dst);
                    }
                }
            });
        }
        // A watched packet ends the next wait, and would end each one until it is looked at.
        self.look_at = if has_seen { now + LOOK_EVERY } else { now };
        self.watch(!has_seen)
    }

    /// Sets whether passing packets end a wait.
    fn watch(&mut self, is_watching: bool) -> io::Result<()> {
        if std::mem::replace(&mut self.is_watching, is_watching) == is_watching {
            return Ok(());
        }
        self.ports.iter().map(|port| port.watch.as_fd()).try_for_each(|fd| {
            if is_watching { self.poller.add(fd, WATCHES, Interest::Read) } else { self.poller.remove(fd) }
        })
    }
}

/// The reason why a device did not take a packet.
fn reason(error: &io::Error) -> DropReason {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MSGSIZE) => DropReason::TooBig,
        Some(Errno::NOBUFS | Errno::AGAIN) => DropReason::QueueFull,
        _ => DropReason::Undelivered,
    }
}
