//! Runs a scenario: the programs act, the path misbehaves and heals, and the outcome is judged.

mod judge;
mod programs;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use hopwise_core::Instant;
use hopwise_core::endpoint::{EndpointConfig, LinkConfig, ListenError, ListenOptions, ListenerId};
use hopwise_core::ip::Prefix;

use super::application::{Outcome, Violation};
use super::draw::Purpose;
use super::mood::Moody;
use super::scenario::{ChangeKind, Family, Scenario};
use super::show::Watcher;
use crate::make;
use crate::memory::{End, Tap, TwoHosts};
use programs::Programs;

/// The port of the listeners at both ends.
const PORT: u16 = 80;
/// A run of the swarm takes some thousand steps; this many are a storm.
const MOST_STEPS: u64 = 1_000_000;
/// Steps from one check of memory to the next.
const LOOK_EVERY: u64 = 64;
const TRACE_EVENTS: usize = 8192;

/// The figures of a run without failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub connections: u64,
    /// Connections that ended in good order, both directions delivered.
    pub complete: u64,
    /// Connections that ended early, as the plan wanted or allowed.
    pub cut_short: u64,
    pub bytes: u64,
    pub steps: u64,
    /// The time that the slowest connection took to complete, after its path had healed and its programs had had their
    /// pauses. It is in thousandths of the time allowed.
    pub slowness_milli: u64,
    pub ended_at_us: u64,
}

/// Faults that must not happen.
#[derive(Clone, Debug)]
pub enum Failure {
    Panicked(String),
    Violated {
        connection: usize,
        end: End,
        what: Violation,
    },
    /// A side read to an end that the peer did not make, or other bytes than the peer sent.
    WrongEnd {
        connection: usize,
        end: End,
        received: u64,
        sent: u64,
    },
    /// The path has healed and the connection does not go on.
    Stalled {
        connection: usize,
        what: String,
    },
    /// The connection failed although nothing in the plan allows that.
    Failed {
        connection: usize,
        outcomes: [Option<Outcome>; 2],
    },
    NoConnection {
        connection: usize,
        what: String,
    },
    /// A connection came in that no program had opened.
    Ghost {
        end: End,
    },
    UnknownEvent {
        end: End,
    },
    /// Everything is over, and an endpoint still holds connections or wants to be called.
    NotForgotten {
        connections: [usize; 2],
        deadlines: [Option<Instant>; 2],
    },
    TooMuchMemory {
        connection: usize,
        end: End,
        bytes: usize,
        most: usize,
    },
    Storm {
        at: Instant,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Panicked(message) => write!(f, "panic: {message}"),
            Failure::Violated { connection, end, what } => {
                write!(f, "connection {connection} at {end:?}: {what}")
            }
            Failure::WrongEnd { connection, end, received, sent } => write!(
                f,
                "connection {connection} at {end:?}: the end came after {received} bytes, {sent} were sent"
            ),
            Failure::Stalled { connection, what } => write!(f, "connection {connection} stalled: {what}"),
            Failure::Failed { connection, outcomes } => {
                write!(f, "connection {connection} ended as {outcomes:?}")
            }
            Failure::NoConnection { connection, what } => write!(f, "connection {connection}: {what}"),
            Failure::Ghost { end } => write!(f, "{end:?} accepted a connection that nobody had opened"),
            Failure::UnknownEvent { end } => write!(f, "an event at {end:?} for a connection that is closed"),
            Failure::NotForgotten { connections, deadlines } => {
                write!(f, "not forgotten: {connections:?} connections, deadlines {deadlines:?}")
            }
            Failure::TooMuchMemory { connection, end, bytes, most } => {
                write!(f, "connection {connection} at {end:?} holds {bytes} bytes, {most} were configured")
            }
            Failure::Storm { at } => write!(f, "no end of packets and timeouts at {at}"),
        }
    }
}

pub(super) struct Run<'a> {
    scenario: &'a Scenario,
    hosts: TwoHosts<Moody>,
    programs: Programs,
    /// The number of the scenario's changes that have happened.
    changed: usize,
    has_healed: bool,
    watcher: Option<Watcher<'a>>,
    steps: u64,
}

/// Runs a scenario; a sink receives everything that happens.
pub(super) fn run<'a>(
    scenario: &'a Scenario,
    sink: Option<&'a mut (dyn FnMut(&str) + 'a)>,
) -> Result<Summary, Failure> {
    Run::new(scenario, sink).all()
}

/// Runs a scenario; a tap receives each packet that leaves.
pub(super) fn run_tapped(scenario: &Scenario, tap: Tap) -> Result<Summary, Failure> {
    let mut run = Run::new(scenario, None);
    run.hosts.set_tap(tap);
    run.all()
}

/// Reports the last events even after a panic.
impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.watch();
    }
}

impl<'a> Run<'a> {
    fn new(scenario: &'a Scenario, sink: Option<&'a mut (dyn FnMut(&str) + 'a)>) -> Run<'a> {
        let trace_events = if sink.is_some() { TRACE_EVENTS } else { 0 };
        let mut listeners = Vec::new();
        let [a, b] = [End::A, End::B].map(|end| {
            let (machine, listener) = host(scenario, end, trace_events);
            listeners.push(listener);
            machine
        });
        let mut world_seed = Purpose::World.stream(scenario.seed);
        let [to_b, to_a] = scenario.paths;
        let mut hosts = TwoHosts::new(a, b, to_b, to_a, world_seed.next_u64());
        let watcher = sink.map(Watcher::new);
        if let Some(watcher) = &watcher {
            hosts = hosts.with_tap(watcher.tap());
        }
        let programs = Programs::new(scenario, [listeners[0], listeners[1]]);
        Run { scenario, hosts, programs, changed: 0, has_healed: false, watcher, steps: 0 }
    }

    fn all(&mut self) -> Result<Summary, Failure> {
        let delivered_by = self.scenario.delivered_by();
        self.go_on(delivered_by, Programs::are_done)?;
        self.programs.give_up_orphans(self.scenario, &mut self.hosts);
        self.judge_stalls()?;
        self.go_on(self.hosts.now() + self.lingering(), |_| false)?;
        // A connection that was accepted only now, after its opener had left, is one more.
        self.programs.give_up_orphans(self.scenario, &mut self.hosts);
        self.go_on(self.hosts.now() + self.lingering(), |_| false)?;
        self.judge_outcomes()?;
        self.judge_remains()?;
        Ok(self.summary(delivered_by))
    }

    /// Goes on until `is_done`, until no event is left, or until then.
    fn go_on(&mut self, until: Instant, is_done: impl Fn(&Programs) -> bool) -> Result<(), Failure> {
        loop {
            self.change_path();
            self.programs.act(self.scenario, &mut self.hosts)?;
            let next = self.next_action().unwrap_or(Instant::FAR).min(until);
            if is_done(&self.programs) || self.hosts.now() >= until {
                return Ok(());
            }
            self.hosts.flush();
            let is_quiet = self.hosts.next_at().is_none() && next >= until;
            if is_quiet && self.programs.are_done() {
                return Ok(());
            }
            self.hosts.step(next);
            self.steps += 1;
            self.watch();
            if self.steps > MOST_STEPS {
                return Err(Failure::Storm { at: self.hosts.now() });
            }
            if self.steps.is_multiple_of(LOOK_EVERY) {
                self.judge_memory()?;
            }
        }
    }

    fn next_action(&self) -> Option<Instant> {
        let change = self.scenario.changes.get(self.changed).map(|change| change.at);
        let heal = (!self.has_healed).then_some(self.scenario.heal_at);
        let programs = self.programs.next_at(self.hosts.now());
        [change, heal, programs].into_iter().flatten().min()
    }

    fn change_path(&mut self) {
        let now = self.hosts.now();
        while let Some(change) = self.scenario.changes.get(self.changed).filter(|change| change.at <= now) {
            let path = self.hosts.path_from(change.from);
            match change.what {
                ChangeKind::Down => path.is_down = true,
                ChangeKind::Up => path.is_down = false,
                ChangeKind::Delay(delay) => path.impairment.delay = delay,
                ChangeKind::Mtu(mtu) => path.mtu = mtu,
            }
            self.changed += 1;
        }
        if !self.has_healed && self.scenario.heal_at <= now {
            self.has_healed = true;
            for end in [End::A, End::B] {
                let path = self.hosts.path_from(end);
                *path = path.healed(self.scenario.mtu_stays[end as usize]);
                self.hosts.machine(end).calm_down();
            }
        }
    }

    fn watch(&mut self) {
        if let Some(watcher) = &mut self.watcher {
            for end in [End::A, End::B] {
                self.hosts.drain_trace(end, &mut |event| watcher.take(end, event));
            }
            watcher.show();
        }
    }
}

fn host(scenario: &Scenario, end: End, trace_events: usize) -> (Moody, ListenerId) {
    let host = &scenario.hosts[end as usize];
    let mut keys = Purpose::Host.stream(!scenario.seed);
    let key = [0; 32].map(|_: u8| keys.next_u64() as u8 ^ end as u8);
    let link = LinkConfig {
        offload: host.offload,
        ..LinkConfig::wire(0, host.link_mtu, vec![subnet(scenario.family, end)])
    };
    let config = EndpointConfig {
        tcp: Arc::new(host.tcp.clone()),
        agents: host.agents.clone().into(),
        trace_events,
        ..EndpointConfig::new(link, key)
    };
    let mut endpoint = make::endpoint(config);
    let options = ListenOptions {
        backlog: host.backlog,
        half_open: host.half_open,
        cookies: host.cookies,
        ..ListenOptions::default()
    };
    let listening: Result<ListenerId, ListenError> = endpoint.listen(None, PORT, options);
    let listener = listening.unwrap_or_else(|error| panic!("cannot listen: {error}"));
    let purpose = if end == End::A { Purpose::MoodA } else { Purpose::MoodB };
    let random = purpose.stream(scenario.seed);
    // The observer has not seen the beginning of a connection that a cookie brought back.
    let observes = !scenario.may_use_cookies(end);
    (Moody::new(endpoint, host, random, observes), listener)
}

fn address(family: Family, end: End) -> IpAddr {
    let last = 1 + end as u8;
    match family {
        Family::V4 => Ipv4Addr::new(10, 0, 0, last).into(),
        Family::V6 => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last.into()).into(),
    }
}

fn subnet(family: Family, end: End) -> Prefix {
    let bits = if family == Family::V4 { 24 } else { 64 };
    Prefix::new(address(family, end), bits).expect("an address has more bits than that")
}
