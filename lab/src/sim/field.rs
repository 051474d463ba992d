//! A recording of a simulated field, in the format of one from real nodes.
//!
//! Powers and losses are the world's own at the instant of the sample, also on links that are too weak to decode. A
//! station's driver could know all counts. A sample changes nothing: a run with a recording equals the run without it.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use hopwise_air::channel::recording::{RecordedLink, head};
use hopwise_air::channel::{MOST_ROWS, Powers};
use hopwise_air::medium::dbm;
use hopwise_core::narrow::as_u32;
use hopwise_core::{Instant, LinkFacts};

use super::Simulation;

/// Runs a simulation to its end, with a sample in each interval. Call it before anything has happened.
pub fn record(
    simulation: &mut Simulation,
    names: &[String],
    every: Duration,
    out: &mut dyn Write,
) -> io::Result<()> {
    simulation.world().keep_facts();
    out.write_all(head(every.as_secs_f64(), names).as_bytes())?;
    let plan = simulation.plan;
    let powers = Powers::new(&plan.radio, &plan.channel, &plan.positions, &plan.tracks, plan.seed);
    let noise_dbm = plan.channel.noise_w.map(dbm);
    let mut recorder = FieldRecorder { names, powers, noise_dbm, before: BTreeMap::new(), rows: 0 };
    let (mut at, end) = (Instant::ZERO, plan.end());
    loop {
        simulation.run_until(at);
        recorder.sample(simulation, at, out)?;
        if at >= end {
            return out.flush();
        }
        at = (at + every).min(end);
    }
}

struct FieldRecorder<'n> {
    names: &'n [String],
    powers: Powers,
    noise_dbm: Option<f64>,
    /// The facts of the last sample, by sender and receiver.
    before: BTreeMap<(u32, u32), LinkFacts>,
    rows: usize,
}

impl FieldRecorder<'_> {
    fn sample(&mut self, simulation: &mut Simulation, at: Instant, out: &mut dyn Write) -> io::Result<()> {
        let mut heard = Vec::new();
        self.powers.at(at.0, &mut |link| heard.push(link));
        self.rows += heard.len();
        if self.rows > MOST_ROWS {
            let problem = format!("more rows than {MOST_ROWS}: choose a longer interval");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
        }
        let mut facts = BTreeMap::new();
        for from in 0..as_u32(self.names.len()) {
            let of = |facts: LinkFacts| ((from, station(&facts)), facts);
            facts.extend(simulation.world().facts(from).into_iter().map(of));
        }
        for link in heard {
            let now = facts.get(&(link.from, link.to));
            let change = now.and_then(|now| now.since(self.before.get(&(link.from, link.to))?));
            let change = change.unwrap_or_default();
            let row = RecordedLink {
                time_s: at.since(Instant::ZERO).as_secs_f64(),
                from: self.name(link.from),
                to: self.name(link.to),
                signal_dbm: Some(dbm(link.power_w)),
                noise_dbm: self.noise_dbm,
                loss: Some(f64::from(link.loss_ppm) / 1e6),
                rate_bps: now.and_then(|facts| facts.tx_bitrate_bps),
                expected_bps: now.and_then(|facts| facts.expected_throughput_bps),
                packets: change.tx_packets,
                retries: change.tx_retries,
                failed: change.tx_failed,
                airtime_s: change.tx_duration.map(|time| time.as_secs_f64()),
                busy: None,
            };
            writeln!(out, "{row}")?;
        }
        self.before = facts;
        Ok(())
    }

    fn name(&self, node: u32) -> String {
        self.names.get(node as usize).cloned().unwrap_or_default()
    }
}

/// The station of a fact, by its number in the world.
fn station(facts: &LinkFacts) -> u32 {
    let [_, _, number @ ..] = facts.station.0;
    u32::from_be_bytes(number)
}

#[cfg(test)]
mod tests;
