//! The results of a run for programs and for people.

use std::io::{self, Write};
use std::path::Path;

use hopwise::scenario::Prepared;
use hopwise::sim::Results;
use serde::Serialize;

use super::cost::Cost;
use super::name_of;

/// Its shape is fixed: programs outside this project read it.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    scenario: String,
    world: &'static str,
    arm: String,
    seed: u64,
    counted_s: f64,
    flows: Vec<Flow>,
    total: Total,
    air: Air,
    routing: Routing,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
}

#[derive(Debug, Serialize)]
struct Flow {
    id: String,
    from: String,
    to: String,
    hops: Option<u8>,
    receiver: String,
    sender: Vec<String>,
    goodput_kbps: f64,
    bytes_delivered: u64,
    segments_sent: u64,
    segments_retransmitted: u64,
    timeouts: u32,
    fast_retransmits: u32,
    acks_sent: u64,
    acks_repeated: u64,
}

#[derive(Debug, Serialize)]
struct Total {
    goodput_kbps: f64,
    jain: f64,
}

#[derive(Debug, Serialize)]
struct Air {
    frames_sent: u64,
    collisions: u64,
    retry_drops: u64,
    queue_drops: u64,
    airtime_s: f64,
}

#[derive(Debug, Serialize)]
struct Routing {
    discoveries: u64,
    route_failures: u64,
}

impl Report {
    pub(crate) fn new(scenario: &str, world: &'static str, prepared: &Prepared, results: &Results) -> Report {
        let plan = &prepared.plan;
        let flows = results.flows.iter().enumerate().map(|(index, flow)| Flow {
            id: format!("f{index}"),
            from: name_of(prepared, flow.from).to_owned(),
            to: name_of(prepared, flow.to).to_owned(),
            hops: flow.hops,
            receiver: plan.arm.receiver.clone(),
            sender: prepared.senders.clone(),
            goodput_kbps: flow.goodput_kbps,
            bytes_delivered: flow.counted_bytes,
            segments_sent: flow.sender.segments_sent,
            segments_retransmitted: flow.sender.segments_retransmitted,
            timeouts: flow.sender.timeouts,
            fast_retransmits: flow.sender.fast_retransmits,
            acks_sent: flow.receiver.acks_sent,
            acks_repeated: flow.receiver.acks_repeated,
        });
        let air = &results.air;
        Report {
            scenario: scenario.to_owned(),
            world,
            arm: plan.arm.name.clone(),
            seed: plan.seed,
            counted_s: results.counted_s,
            flows: flows.collect(),
            total: Total { goodput_kbps: results.total_kbps(), jain: results.jain() },
            air: Air {
                frames_sent: air.frames_sent,
                collisions: air.collisions,
                retry_drops: air.retry_drops,
                queue_drops: air.queue_drops,
                airtime_s: air.airtime_s,
            },
            routing: Routing { discoveries: results.discoveries, route_failures: results.route_failures },
            cost: None,
        }
    }

    /// Without what it cost, so that two runs of one seed are the same to the byte.
    pub(crate) fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *to, self)?;
        writeln!(to)
    }

    pub(crate) fn print_json(mut self, cost: &Cost) -> io::Result<()> {
        self.cost = Some(*cost);
        let mut out = io::stdout().lock();
        serde_json::to_writer(&mut out, &self)?;
        writeln!(out)
    }

    pub(crate) fn print_text(&self, cost: &Cost, folder: &Path) -> io::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(
            out,
            "{} in {}, arm {}, seed {}: {:.1} s counted",
            self.scenario, self.world, self.arm, self.seed, self.counted_s
        )?;
        writeln!(
            out,
            "\nflow  way           hops  goodput kbit/s  segments  sent again  timeouts      ACKs"
        )?;
        for flow in &self.flows {
            let hops = flow.hops.map_or("?".to_owned(), |hops| hops.to_string());
            writeln!(
                out,
                "{:<5} {:<13} {hops:>4}  {:>14.1}  {:>8}  {:>10}  {:>8}  {:>8}",
                flow.id,
                format!("{} → {}", flow.from, flow.to),
                flow.goodput_kbps,
                flow.segments_sent,
                flow.segments_retransmitted,
                flow.timeouts,
                flow.acks_sent
            )?;
        }
        let (total, air) = (&self.total, &self.air);
        writeln!(out, "\ntotal {:.1} kbit/s, Jain {:.3}", total.goodput_kbps, total.jain)?;
        writeln!(
            out,
            "air   {} frames, {} collisions, {} packets given up, {} lost to full queues, {:.1} s of airtime",
            air.frames_sent, air.collisions, air.retry_drops, air.queue_drops, air.airtime_s
        )?;
        writeln!(out, "cost  {:.2} s of CPU; files are in {}", cost.cpu_s(), folder.display())
    }
}
