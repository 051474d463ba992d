//! Draws a scenario from a seed.
//!
//! The ranges keep a run within milliseconds: if one of bytes, delays and pauses is large, the others are small. Each
//! part draws from a stream of its own.

mod agents;
mod host;
mod path;
mod plan;

use std::time::Duration;

use hopwise_core::Instant;

use super::scenario::{Family, Scenario};
use crate::memory::{PathConfig, Random};

/// The purposes of the random streams that a seed feeds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Scenario = 11,
    Host,
    Agents,
    Path,
    Plan,
    MoodA,
    MoodB,
    World,
    /// The treatment of several segments in one packet, by links and paths.
    Bundles,
}

impl Purpose {
    pub(super) fn stream(self, seed: u64) -> Random {
        Random::new(seed, self as u64)
    }
}

impl Scenario {
    pub fn draw(seed: u64) -> Scenario {
        let mut random = Purpose::Scenario.stream(seed);
        let family = if random.one_in(3) { Family::V6 } else { Family::V4 };
        let temper = if random.one_in(4) { Temper::Impatient } else { Temper::Patient };
        let mut hosts = host::draw(seed, family, temper);
        let path::Drawn { paths, changes, heal_at, mtu_stays } = path::draw(seed, family, &hosts);
        let lifetime = path::lifetime(&paths, &changes);
        for host in &mut hosts {
            // TCP is only safe where no packet outlives the MSL (RFC 9293 §3.4.3).
            host.tcp.msl = host.tcp.msl.max(lifetime);
        }
        let mut scenario =
            Scenario { seed, family, hosts, paths, changes, heal_at, mtu_stays, connections: Vec::new() };
        scenario.connections = plan::draw(&scenario);
        scenario
    }

    /// The deadline by which everything must be delivered, or ended in an error that the plan allows.
    pub(super) fn delivered_by(&self) -> Instant {
        let rounds: u64 = self.connections.iter().map(|plan| plan::rounds(self, plan)).sum();
        let each = 2 * path::lifetime(&self.paths, &self.changes) + Duration::from_secs(1);
        let bytes: u64 = self.sides().map(|side| side.send_bytes).sum();
        let slowest = self.paths.iter().map(|path| path.healed(false).bits()).min().unwrap_or(u64::MAX);
        let on_the_wire = Duration::from_secs(bytes * 8 * 4 / slowest.max(1));
        let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
        self.may_go_on_at() + SETTLE + each * rounds + on_the_wire
    }

    /// The time from which nothing holds connections up: the path has healed, the programs have had their pauses.
    pub(super) fn may_go_on_at(&self) -> Instant {
        let opened = self.connections.iter().map(|plan| plan.opens_at).max().unwrap_or_default();
        let idle: Duration = self.sides().map(super::scenario::SidePlan::idle_time).sum();
        self.heal_at.max(opened) + idle
    }

    fn sides(&self) -> impl Iterator<Item = &super::scenario::SidePlan> {
        self.connections.iter().flat_map(|plan| &plan.sides)
    }
}

/// Timers that had backed off to a minute, and a few more of them after small queues overflowed.
const SETTLE: Duration = Duration::from_secs(20 * 60);

/// The patience of both hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Temper {
    /// Longer than any fault lasts: every transfer has to succeed.
    Patient,
    Impatient,
}

impl PathConfig {
    fn bits(&self) -> u64 {
        match self.impairment.bits_per_second {
            0 => u64::MAX,
            rate => rate,
        }
    }
}

fn seconds(s: u64) -> Duration {
    Duration::from_secs(s)
}
