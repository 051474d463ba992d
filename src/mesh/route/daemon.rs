//! The daemon's loop: messages, waiting packets, timers, and the kernel's table after each of them.

mod open;
mod tell;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use caps::Capability;
use hopwise_core::trace::DropReason;
use hopwise_core::{Instant, LinkEvent, Machine};
use hopwise_host::confine::Paths;
use hopwise_host::netlink::{self, NetlinkError};
use hopwise_host::own_file::folder_of;
use hopwise_host::routing::{Table, forget_gone, is_link_lost};
use hopwise_host::{Clock, Driver, Interest, Poller, live_by_the_clock};
use hopwise_lab::live::part::{Routed, Says};
use hopwise_mesh::{Forward, Keys, Router};
use rustix::io::Errno;

use super::config::Config;
use super::kernel::Installed;
use super::neighbours::Port;
use super::nodes::Nodes;
use super::state::State;
use super::stations::Stations;
use super::status::{self, Known, Told};
use super::switches::Forwarding;
use crate::daemon::confine::{Needs, confine, folders_of};
use crate::daemon::notify;
use crate::daemon::privileges::Privileges;
use crate::daemon::reader::Reader;
use crate::failure::Failure;
use crate::lab::live::talk;
use crate::signals::Caught;

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
struct Daemon {
    config: Config,
    state: State,
    hangups: OwnedFd,
    clock: Clock,
    /// Its nodes are polled for arrivals. The kernel's own connections are unknown here.
    driver: Driver<Router<Nodes>>,
    poller: Arc<Poller>,
    /// The descriptors that have something to read.
    ready: Vec<usize>,
    ports: Vec<Port>,
    tun_index: u32,
    installed: Installed,
    told: Told,
    /// Passing packets are looked at no sooner; until then nothing watches for them.
    look_at: Instant,
    is_watching: bool,
    next_mark: Instant,
    /// The longest time by which a timer was late.
    late: Duration,
    // Behind the routes, so that they are gone before the kernel stops forwarding.
    forwarding: Forwarding,
    /// Reads the keys anew. Last: its process may take its time to end.
    reader: Option<Reader>,
}

/// Runs until it is told to end; with a trial, from its word until its pipe ends.
pub(super) fn run(config: Config, keys: Option<Keys>, has_trial: bool) -> Result<(), Failure> {
    let system = |error| Failure::failed("watch for signals", error);
    // From now on signals do not end the daemon by themselves. They are reported once there may be threads.
    let caught = (Caught::endings().map_err(system)?, Caught::hangups().map_err(system)?);
    let ends = caught.0.descriptor().map_err(system)?;
    if has_trial && let Err(error) = live_by_the_clock() {
        tracing::warn!(%error, "no real-time priority: on a busy machine routing falls behind");
    }
    let (privileges, reader) = take_privileges(&config)?;
    if keys.is_none() {
        tracing::warn!("messages are not signed: this network has to be trusted, or be given `keys:`");
    }
    let hangups = caught.1.descriptor().map_err(system)?;
    let mut daemon = Daemon::open(config, keys, hangups, reader)?;
    daemon.poller.add(ends.as_fd(), ENDS, Interest::Read).map_err(system)?;
    daemon.poller.add(daemon.hangups.as_fd(), HANGUPS, Interest::Read).map_err(system)?;
    let bound = daemon.config.control.as_deref().map(status::bind).transpose()?;
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
        talk::say(&Says::Routed(daemon.counts()))?;
    }
    ended
}

/// Becomes the user, once all is done that only root may do. The keys are read anew by a process of their own.
fn take_privileges(config: &Config) -> Result<(Privileges, Option<Reader>), Failure> {
    let privileges = Privileges::find(config.user.as_deref());
    let privileges = privileges.map_err(|error| Failure::refused("user", error))?;
    let keys = config.keys.as_ref();
    let reader = keys.map(|keys| Reader::new(&keys.path, &privileges, config.confine)).transpose();
    let reader = reader.map_err(|error| Failure::failed("start what reads the keys anew", error))?;
    privileges.make_folder(&config.state);
    config.control.iter().for_each(|control| privileges.make_folder(control));
    forget_switches(&config.state);
    privileges.begin().map_err(|error| Failure::failed("become the user", error))?;
    Ok((privileges, reader))
}

/// Removes files of network namespaces that are gone. Only root sees which ones still exist.
fn forget_switches(state: &Path) {
    let forgotten = forget_gone(folder_of(state));
    if forgotten > 0 {
        tracing::info!(forgotten, "removed files of old switches: their network namespaces are gone");
    }
}

/// The time of day, in nanoseconds since 1970.
fn wall() -> u64 {
    u64::try_from(Clock::wall().as_nanos()).unwrap_or(u64::MAX)
}

impl Daemon {
    /// By name it opens only the kernel's switches, its state, its keys and the kernel's routes from now on.
    fn needs(&self) -> Needs {
        let mut paths = Paths { writes: vec![SWITCHES.into()], ..Paths::default() };
        paths.writes.extend(folders_of(&self.config.state));
        paths.writes.extend(self.config.control.iter().flat_map(|control| folders_of(control)));
        paths.reads.extend(self.reader.iter().flat_map(Reader::folders));
        paths.reads.push(ROUTES.into());
        Needs {
            capabilities: vec![Capability::CAP_NET_ADMIN],
            paths,
            families: vec![libc::AF_UNIX, libc::AF_INET, libc::AF_NETLINK],
        }
    }

    /// The knowledge behind the control socket.
    fn known(&self) -> Known {
        let reports = self.ports.iter().filter_map(|port| port.stations.as_ref());
        Known {
            address: self.config.address,
            clock: self.clock,
            boards: reports.map(Stations::board).collect(),
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
        watched.map_err(|error| Failure::failed("hear the trial", error))
    }

    fn counts(&mut self) -> Routed {
        let (discoveries, route_failures) = self.driver.machine_mut().protocol().counts();
        let late_us = u64::try_from(self.late.as_micros()).unwrap_or(u64::MAX);
        Routed { discoveries, route_failures, late_us }
    }

    fn serve(&mut self) -> Result<(), Failure> {
        let system = |error| Failure::failed("wait for packets", error);
        loop {
            let now = self.clock.now();
            if self.next_mark <= now {
                self.check_devices()?;
                self.forwarding.check_fence();
                if let Ok(table) = Table::read() {
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
    fn check_route(&self, table: &Table) -> Result<(), Failure> {
        let Config { network, tun, .. } = &self.config;
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
        let stations = reports.map(Stations::poll_timeout).min();
        let due = [self.driver.poll_timeout(), look, stations, Some(self.next_mark)];
        let due = due.into_iter().flatten().min();
        self.driver.rest();
        self.poller.wait(&self.clock, due, &mut self.ready)?;
        if let Some(due) = due {
            self.late = self.late.max(self.clock.now().since(due));
        }
        Ok(())
    }

    /// Reads the keys anew. They stay unchanged if that fails.
    fn take_hangup(&mut self) {
        let _ = rustix::io::read(&self.hangups, &mut [0; 8]);
        let (Some(reader), Some(file)) = (&mut self.reader, &self.config.keys) else {
            tracing::info!("there are no keys to read anew");
            return;
        };
        let found = reader.read().map_err(|error| error.to_string());
        match found.and_then(|found| file.take(&found)) {
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

    /// Keeps routes alive that packets use, those of other programs and forwarded ones. It also notes the ends that
    /// strangers name.
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
