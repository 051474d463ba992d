//! All programs of a run: opens due connections, accepts connections that come, hands out events, wakes programs with
//! an alarm.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use hopwise_core::endpoint::{ConnId, ConnectError, ConnectOptions, Event, ListenerId};
use hopwise_core::{Endpoint, Instant};

use super::{Failure, PORT, address};
use crate::memory::{End, TwoHosts};
use crate::swarm::application::{Outcome, Phase, Side};
use crate::swarm::mood::Moody;
use crate::swarm::scenario::{ConnectionPlan, Opening, Scenario};
use crate::swarm::stream::Stream;

/// The base of the ports of active openers; the connection's number is added.
const OWN_PORTS: u16 = 10_000;
/// The time until the next try for a port that is still in TIME-WAIT.
const ASK_AGAIN: Duration = Duration::from_secs(1);

pub(super) struct Programs {
    pub(super) connections: Vec<Pair>,
    listeners: [ListenerId; 2],
    /// The connection of an opener's port.
    by_port: BTreeMap<(End, u16), usize>,
    accepts_at: [Option<Instant>; 2],
    /// An old duplicate may make a cookie true again; the program aborts such a connection.
    ghosts: u64,
}

/// Both sides of a connection, the opener's first.
pub(super) struct Pair {
    pub(super) plan: ConnectionPlan,
    pub(super) sides: [Side; 2],
    opens_at: Option<Instant>,
    /// The next visit of each side, even if no event happens.
    alarms: [Option<Instant>; 2],
    is_dirty: [bool; 2],
    pub(super) port: u16,
    /// The time when the last of the sides was done.
    pub(super) done_at: Instant,
}

impl Pair {
    pub(super) fn end(&self, side: usize) -> End {
        if side == 0 { self.plan.opener } else { self.plan.opener.other() }
    }

    fn are_done(&self) -> bool {
        self.sides.iter().all(|side| side.outcome().is_some())
    }

    fn are_complete(&self) -> bool {
        self.sides.iter().all(|side| side.outcome() == Some(Outcome::Complete))
    }

    fn has_failed(&self) -> bool {
        self.sides.iter().any(|side| side.outcome().is_some_and(|outcome| outcome != Outcome::Complete))
    }

    /// True if the opener left before the other side knew of it.
    pub(super) fn was_never_accepted(&self) -> bool {
        self.sides[1].phase() == Phase::NotOpen
            && self.sides[0].outcome().is_some_and(|outcome| outcome != Outcome::Complete)
    }
}

impl Programs {
    pub(super) fn new(scenario: &Scenario, listeners: [ListenerId; 2]) -> Programs {
        let pair = |(number, plan): (usize, &ConnectionPlan)| {
            let streams = [0, 1].map(|direction| Stream::new(scenario.seed, number, direction));
            let [opener, accepter] = plan.sides.clone();
            Pair {
                sides: [
                    Side::new(opener, streams[0], streams[1]),
                    Side::new(accepter, streams[1], streams[0]),
                ],
                plan: plan.clone(),
                opens_at: Some(plan.opens_at),
                alarms: [None; 2],
                is_dirty: [false; 2],
                port: OWN_PORTS + number as u16,
                done_at: Instant::ZERO,
            }
        };
        Programs {
            connections: scenario.connections.iter().enumerate().map(pair).collect(),
            listeners,
            by_port: BTreeMap::new(),
            accepts_at: [None; 2],
            ghosts: 0,
        }
    }

    pub(super) fn are_done(&self) -> bool {
        self.connections.iter().all(Pair::are_done)
    }

    pub(super) fn next_at(&self, now: Instant) -> Option<Instant> {
        let pairs = self.connections.iter().flat_map(|pair| pair.alarms.into_iter().chain([pair.opens_at]));
        pairs.chain(self.accepts_at).flatten().filter(|at| *at > now).min()
    }

    /// Does all that programs want to do now.
    pub(super) fn act(&mut self, scenario: &Scenario, hosts: &mut TwoHosts<Moody>) -> Result<(), Failure> {
        for end in [End::A, End::B] {
            self.hear(scenario, hosts, end)?;
        }
        for number in 0..self.connections.len() {
            self.open_if_due(scenario, hosts, number)?;
            for side in [0, 1] {
                self.visit(hosts, number, side)?;
            }
        }
        Ok(())
    }

    fn hear(&mut self, scenario: &Scenario, hosts: &mut TwoHosts<Moody>, end: End) -> Result<(), Failure> {
        let now = hosts.now();
        while let Some(event) = hosts.machine(end).endpoint.poll_event() {
            match event {
                Event::Incoming(_) => {
                    let wait = scenario.hosts[end as usize].accept_every;
                    self.accepts_at[end as usize].get_or_insert(now + wait);
                }
                Event::Connection(id, kind) => {
                    let (number, side) = self.find(end, id).ok_or(Failure::UnknownEvent { end })?;
                    let pair = &mut self.connections[number];
                    pair.sides[side].hear(kind);
                    pair.is_dirty[side] = true;
                }
            }
        }
        if self.accepts_at[end as usize].is_some_and(|at| at <= now) {
            self.accepts_at[end as usize] = None;
            self.accept(scenario, now, &mut hosts.machine(end).endpoint, end)?;
        }
        Ok(())
    }

    fn find(&self, end: End, id: ConnId) -> Option<(usize, usize)> {
        let all = self.connections.iter().enumerate();
        all.flat_map(|(number, pair)| [(number, pair, 0), (number, pair, 1)])
            .find(|(_, pair, side)| pair.end(*side) == end && pair.sides[*side].phase() == Phase::Open(id))
            .map(|(number, _, side)| (number, side))
    }

    fn accept(
        &mut self,
        scenario: &Scenario,
        now: Instant,
        endpoint: &mut Endpoint,
        end: End,
    ) -> Result<(), Failure> {
        while let Some(id) = endpoint.accept(now, self.listeners[end as usize]) {
            let remote = endpoint.info(now, id).map(|info| info.flow.remote.port()).unwrap_or_default();
            let number = self.by_port.get(&(end.other(), remote)).copied();
            let expected =
                number.filter(|number| self.connections[*number].sides[1].phase() == Phase::NotOpen);
            let Some(number) = expected else {
                if !scenario.may_use_cookies(end) {
                    return Err(Failure::Ghost { end });
                }
                self.ghosts += 1;
                let _ = endpoint.abort(now, id);
                continue;
            };
            let pair = &mut self.connections[number];
            pair.sides[1].is_accepted(id);
            pair.is_dirty[1] = true;
        }
        Ok(())
    }

    fn open_if_due(
        &mut self,
        scenario: &Scenario,
        hosts: &mut TwoHosts<Moody>,
        number: usize,
    ) -> Result<(), Failure> {
        let now = hosts.now();
        if self.connections[number].opens_at.is_none_or(|at| at > now) {
            return Ok(());
        }
        let mut port = None;
        if let Opening::AfterTheEndOf(earlier) = self.connections[number].plan.opening {
            let before = &self.connections[earlier];
            // The other side of that connection may never know of it.
            if before.has_failed() {
                self.skip(number);
                return Ok(());
            }
            if !before.are_done() {
                self.connections[number].opens_at = Some(now + ASK_AGAIN);
                return Ok(());
            }
            port = Some(before.port);
        }
        self.open(scenario, hosts, number, port)
    }

    fn skip(&mut self, number: usize) {
        let pair = &mut self.connections[number];
        pair.opens_at = None;
        for side in &mut pair.sides {
            side.end(Outcome::Skipped);
        }
    }

    fn open(
        &mut self,
        scenario: &Scenario,
        hosts: &mut TwoHosts<Moody>,
        number: usize,
        port: Option<u16>,
    ) -> Result<(), Failure> {
        let now = hosts.now();
        let pair = &mut self.connections[number];
        let is_simultaneous = pair.plan.opening == Opening::Simultaneous;
        let own = port.unwrap_or(pair.port);
        for side in if is_simultaneous { 0..2 } else { 0..1 } {
            let end = pair.end(side);
            let to = if is_simultaneous { own } else { PORT };
            let remote = SocketAddr::new(address(scenario.family, end.other()), to);
            let options = ConnectOptions { local_port: Some(own), ..ConnectOptions::default() };
            match hosts.machine(end).endpoint.connect(now, remote, &options) {
                Ok(id) => pair.sides[side].opens(id),
                Err(ConnectError::InUse(_)) if port.is_some() => {
                    pair.opens_at = Some(now + ASK_AGAIN);
                    return Ok(());
                }
                Err(error) => {
                    return Err(Failure::NoConnection { connection: number, what: error.to_string() });
                }
            }
            pair.is_dirty[side] = true;
        }
        pair.port = own;
        pair.opens_at = None;
        if !is_simultaneous {
            self.by_port.insert((pair.plan.opener, own), number);
        }
        Ok(())
    }

    fn visit(&mut self, hosts: &mut TwoHosts<Moody>, number: usize, side: usize) -> Result<(), Failure> {
        let now = hosts.now();
        let pair = &mut self.connections[number];
        let is_woken = pair.alarms[side].is_some_and(|at| at <= now);
        if !pair.is_dirty[side] && !is_woken {
            return Ok(());
        }
        let end = pair.end(side);
        pair.is_dirty[side] = false;
        let visited = pair.sides[side].visit(now, &mut hosts.machine(end).endpoint);
        visited.map_err(|what| Failure::Violated { connection: number, end, what })?;
        pair.alarms[side] = pair.sides[side].alarm(now);
        pair.done_at = now;
        let (this, other) = (&pair.sides[side], &pair.sides[1 - side]);
        let is_wrong = this.received > other.sent || (this.has_end && this.received != other.sent);
        if is_wrong || (this.has_end && !other.has_made_an_end()) {
            let (received, sent) = (this.received, other.sent);
            return Err(Failure::WrongEnd { connection: number, end, received, sent });
        }
        Ok(())
    }

    /// Ends the wait for a side that has gone. A program that lets go in good order has not gone yet. A side that was
    /// not reached yet will be, unless the endpoints are impatient.
    pub(super) fn give_up_orphans(&mut self, scenario: &Scenario, hosts: &mut TwoHosts<Moody>) {
        let now = hosts.now();
        let is_patient = scenario.is_patient();
        let has_gone = |side: &Side| match side.phase() {
            Phase::NotOpen => !is_patient,
            Phase::Open(_) => false,
            Phase::Done(outcome) => outcome != Outcome::Complete || !is_patient,
        };
        for number in 0..self.connections.len() {
            if let Opening::AfterTheEndOf(earlier) = self.connections[number].plan.opening
                && self.connections[number].opens_at.is_some()
                && !self.connections[earlier].are_complete()
            {
                self.skip(number);
            }
            let pair = &mut self.connections[number];
            for side in [0, 1] {
                let is_orphan = has_gone(&pair.sides[1 - side]);
                if let (Phase::Open(id), true) = (pair.sides[side].phase(), is_orphan) {
                    pair.sides[side].end(Outcome::GaveUp);
                    let _ = hosts.machine(pair.end(side)).endpoint.abort(now, id);
                }
            }
        }
    }
}
