//! Judges a finished run.

use std::time::Duration;

use hopwise_core::trace::Scarce;
use hopwise_core::{Instant, Machine};

use super::programs::Pair;
use super::{Failure, Run, Summary};
use crate::swarm::application::{Outcome, Phase};
use crate::swarm::scenario::{Host, Opening, Scenario};

/// The size of a connection's fixed parts, its timers and ranges.
const FIXED_BYTES: usize = 8 << 10;
/// The size of a scoreboard entry, with its growth by doubling.
const ENTRY_BYTES: usize = 2 * 64;

impl Run<'_> {
    /// The time after which both ends have forgotten everything: TIME-WAIT, FIN-WAIT-2, and answers that come late.
    pub(super) fn lingering(&self) -> Duration {
        let each = |host: &Host| 4 * host.tcp.msl + host.tcp.fin_wait_2;
        let hosts: Duration = self.scenario.hosts.iter().map(each).sum();
        hosts + Duration::from_secs(30 * 60)
    }

    pub(super) fn judge_stalls(&mut self) -> Result<(), Failure> {
        let now = self.hosts.now();
        for (connection, pair) in self.programs.connections.iter().enumerate() {
            for side in [0, 1] {
                let (this, other) = (&pair.sides[side], &pair.sides[1 - side]);
                if this.outcome().is_some() || (side == 1 && pair.was_never_accepted()) {
                    continue;
                }
                let info = match this.phase() {
                    Phase::Open(id) => self.hosts.machine(pair.end(side)).endpoint.info(now, id).ok(),
                    _ => None,
                };
                let state = info.map(|info| info.state);
                let what = format!(
                    "at {now} {:?} is in {state:?}, sent {} of {}, received {} of {} that were sent, end {}",
                    pair.end(side),
                    this.sent,
                    pair.plan.sides[side].send_bytes,
                    this.received,
                    other.sent,
                    this.has_end
                );
                return Err(Failure::Stalled { connection, what });
            }
        }
        Ok(())
    }

    pub(super) fn judge_outcomes(&self) -> Result<(), Failure> {
        for (connection, pair) in self.programs.connections.iter().enumerate() {
            let outcomes = [0, 1].map(|side: usize| pair.sides[side].outcome());
            let is_well =
                outcomes.iter().all(|outcome| matches!(outcome, Some(Outcome::Complete | Outcome::Left)))
                    && !pair.is_rude();
            let may_fail = may_fail(self.scenario, pair) || self.gave_way_to_a_handshake(pair);
            let is_wrong = if is_well { !pair.is_delivered() } else { !may_fail };
            if is_wrong {
                return Err(Failure::Failed { connection, outcomes });
            }
        }
        Ok(())
    }

    /// Without cookies a listener with few places forgets the oldest handshake for a new one. Its opener may have had a
    /// SYN-ACK already, and gets a RST for its first data.
    fn gave_way_to_a_handshake(&self, pair: &Pair) -> bool {
        let ends = [&self.hosts.a, &self.hosts.b];
        let accepter = ends[pair.plan.opener.other() as usize];
        accepter.endpoint.gave_way(Scarce::Handshakes) > 0 && pair.was_never_accepted()
    }

    pub(super) fn judge_remains(&self) -> Result<(), Failure> {
        let ends = [&self.hosts.a, &self.hosts.b];
        let connections = ends.map(|end| end.endpoint.connections());
        let deadlines = ends.map(Machine::poll_timeout);
        if connections != [0; 2] || deadlines != [None; 2] {
            return Err(Failure::NotForgotten { connections, deadlines });
        }
        Ok(())
    }

    pub(super) fn judge_memory(&mut self) -> Result<(), Failure> {
        for (connection, pair) in self.programs.connections.iter().enumerate() {
            for side in [0, 1] {
                let end = pair.end(side);
                let Phase::Open(id) = pair.sides[side].phase() else { continue };
                let bytes = self.hosts.machine(end).endpoint.allocated(id).unwrap_or(0);
                let most = most_bytes(&self.scenario.hosts[end as usize], pair.plan.sides[side].send_bytes);
                if bytes > most {
                    return Err(Failure::TooMuchMemory { connection, end, bytes, most });
                }
            }
        }
        Ok(())
    }

    pub(super) fn summary(&self, delivered_by: Instant) -> Summary {
        let mut summary = Summary {
            steps: self.hosts.events(),
            ended_at_us: self.hosts.now().0 / 1000,
            ..Summary::default()
        };
        let from = self.scenario.may_go_on_at();
        let given = delivered_by.since(from).as_millis().max(1) as u64;
        for pair in &self.programs.connections {
            summary.connections += 1;
            let is_complete = pair.is_delivered();
            summary.complete += u64::from(is_complete);
            summary.cut_short += u64::from(!is_complete);
            if is_complete {
                let took = pair.done_at.since(from).as_millis() as u64;
                summary.slowness_milli = summary.slowness_milli.max(took * 1000 / given);
            }
            summary.bytes += pair.sides.iter().map(|side| side.received).sum::<u64>();
        }
        summary
    }
}

fn most_bytes(host: &Host, send_bytes: u64) -> usize {
    let (send, recv) = (host.tcp.send_buffer.max, host.tcp.recv_buffer.max);
    // Every byte in flight may be a segment of its own.
    let entries = send_bytes.min(send.into()) as usize;
    FIXED_BYTES + send as usize + recv as usize + entries * ENTRY_BYTES
}

impl Pair {
    fn is_rude(&self) -> bool {
        self.plan.sides.iter().any(|side| side.ending.is_rude())
    }

    fn is_delivered(&self) -> bool {
        let plans = &self.plan.sides;
        let is_sent = [0, 1].into_iter().all(|side| self.sides[side].sent == plans[side].send_bytes);
        is_sent && [0, 1].into_iter().all(|side| self.sides[side].received == plans[1 - side].send_bytes)
    }
}

/// Returns whether the plan allows a clean error.
fn may_fail(scenario: &Scenario, pair: &Pair) -> bool {
    let accepter = pair.plan.opener.other();
    // The segment that brings the cookie back may come late or meet a full queue. The next segment then gets a RST.
    let by_cookie = pair.plan.opening != Opening::Simultaneous
        && scenario.may_use_cookies(accepter)
        && (!scenario.is_faultless()
            || scenario.hosts[accepter as usize].backlog <= scenario.connections.len());
    let is_skipped = pair.sides[0].outcome() == Some(Outcome::Skipped);
    // Only the last segment was lost: a side that waits for it gets a RST from a peer that has forgotten the
    // connection.
    let only_the_end = pair.is_delivered() && !scenario.is_faultless();
    pair.is_rude() || !scenario.is_patient() || by_cookie || is_skipped || only_the_end
}
