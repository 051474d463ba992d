//! Samples of one run over time: windows, sequence numbers, queues, places, and each radio's sent and lost frames so
//! far. A series also holds every frame of a few stretches.
//!
//! A sample changes nothing: a run with a series equals the run without it. Frames are watched in short stretches
//! alone, since watching costs time. The size of a series is bounded whatever the run's length.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::rc::Rc;
use std::time::Duration;

use hopwise_air::airtime::AirtimeUse;
use hopwise_air::dcf::EVERYONE;
use hopwise_air::frames::{FrameEffect, FrameEvent};
use hopwise_air::medium::Position;
use hopwise_air::motion::Walker;
use hopwise_core::Instant;
use hopwise_core::narrow::{as_u16, as_u32};

use super::RADIO;
use super::Simulation;
use super::plan::{Directions, FlowPlan, TrafficPlan};

/// The columns: the quantity, the flow, node or link, the time, and the value.
pub const CSV_HEADER: &str = "what,who,at_s,value";

const SAMPLES: u32 = 400;
/// The most flows and nodes with samples.
const MOST_FLOWS: usize = 16;
const MOST_NODES: usize = 64;
/// The samples between two counts of the radios' sent and lost frames.
const SAMPLES_A_COUNT: u32 = 4;
/// Stretches whose frames are kept, from the run's beginning to its end, and the most frames of each.
const STRETCHES: u32 = 8;
const STRETCH: Duration = Duration::from_millis(150);
const MOST_FRAMES: usize = 500;

/// Keeps stretches of frames, or leaves them to another watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameStretches {
    /// The series holds stretches of frames.
    Keep,
    /// The series holds no frames; another watcher has them.
    Leave,
}

/// Runs a simulation to its end and writes its series; `names` are the nodes'. Call it before anything has happened.
/// The result is a CSV under [`CSV_HEADER`], with rows only where a value has changed.
pub fn run(simulation: &mut Simulation, names: &[String], frames: FrameStretches) -> String {
    let (begins, end) = (simulation.plan.begins(), simulation.plan.end());
    simulation.world().keep_ledgers();
    let mut writer = SeriesWriter::new(simulation, names);
    let step = simulation.plan.duration / SAMPLES;
    let mut watcher = FrameWatcher::new(simulation, frames);
    for sample in 0..=SAMPLES {
        let at = if sample == SAMPLES { end } else { begins + step * sample };
        watcher.run_until(simulation, at);
        writer.sample(simulation, at);
        if sample % SAMPLES_A_COUNT == 0 {
            writer.counts(simulation, at);
        }
    }
    writer.airtime(simulation, end);
    writer.fairness(simulation);
    for (FrameStretch { from, to }, frames) in watcher.seen {
        writer.write("stretch", "all", from, &((to.0 - from.0) / 1_000).to_string());
        frames.take().iter().for_each(|event| writer.frame(event));
    }
    writer.text
}

#[derive(Clone, Copy, Debug)]
struct FrameStretch {
    from: Instant,
    to: Instant,
}

/// Watches frames stretch by stretch while a run goes on.
struct FrameWatcher {
    /// The stretches to come, and the one under way.
    left: VecDeque<FrameStretch>,
    seen: Vec<(FrameStretch, Rc<RefCell<Vec<FrameEvent>>>)>,
    is_watching: bool,
}

impl FrameWatcher {
    fn new(simulation: &Simulation, frames: FrameStretches) -> FrameWatcher {
        let (begins, end) = (simulation.plan.begins(), simulation.plan.end());
        let duration = simulation.plan.duration;
        let lasts = STRETCH.min(duration / (2 * STRETCHES));
        let stretch = |nth: u32| {
            let from = begins + (duration - lasts) / (STRETCHES - 1) * nth;
            FrameStretch { from, to: (from + lasts).min(end) }
        };
        let count = if frames == FrameStretches::Keep { STRETCHES } else { 0 };
        FrameWatcher { left: (0..count).map(stretch).collect(), seen: Vec::new(), is_watching: false }
    }

    fn run_until(&mut self, simulation: &mut Simulation, at: Instant) {
        while let Some(stretch) = self.left.front().copied() {
            if !self.is_watching && stretch.from <= at {
                simulation.run_until(stretch.from);
                self.seen.push((stretch, watch(simulation)));
                self.is_watching = true;
            }
            if !self.is_watching || stretch.to > at {
                break;
            }
            simulation.run_until(stretch.to);
            simulation.world().leave_frames();
            self.is_watching = false;
            self.left.pop_front();
        }
        simulation.run_until(at);
    }
}

fn watch(simulation: &mut Simulation) -> Rc<RefCell<Vec<FrameEvent>>> {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let kept = Rc::clone(&seen);
    let sink = move |event: &FrameEvent, _: &[u8]| {
        let is_lost = event.sees == FrameEffect::Collision && event.frame.to == event.station;
        let mut kept = kept.borrow_mut();
        if (is_lost || event.sees == FrameEffect::Sends) && kept.len() < MOST_FRAMES {
            kept.push(*event);
        }
    };
    simulation.world().set_frames(Box::new(sink));
    seen
}

struct SeriesWriter<'a> {
    names: &'a [String],
    /// The clock begins with the first flow.
    begins: Instant,
    /// The last value of each row.
    last: BTreeMap<(&'static str, String), String>,
    /// Each node on a copy of its track.
    walkers: Vec<Option<Walker>>,
    text: String,
}

impl<'a> SeriesWriter<'a> {
    fn new(simulation: &Simulation, names: &'a [String]) -> SeriesWriter<'a> {
        let plan = simulation.plan;
        let track = |node: usize| plan.tracks.get(node).cloned().flatten();
        let walker = |(node, position): (usize, &Option<Position>)| {
            position.map(|position| Walker::new(position, track(node)))
        };
        let walkers = plan.positions.iter().enumerate().map(walker).collect();
        let text = format!("{CSV_HEADER}\n");
        let mut writer = SeriesWriter { names, begins: plan.begins(), last: BTreeMap::new(), walkers, text };
        for wire in &plan.wires {
            let who = format!("{}>{}", writer.name(wire.ends.0), writer.name(wire.ends.1));
            writer.write("wire", &who, Instant::ZERO, "1");
        }
        writer
    }

    fn name(&self, node: u32) -> &str {
        self.names.get(node as usize).map_or("", String::as_str)
    }

    fn write(&mut self, what: &str, who: &str, at: Instant, value: &str) {
        let since = at.0.saturating_sub(self.begins.0);
        let _ = writeln!(
            self.text,
            "{what},{who},{}.{:06},{value}",
            since / 1_000_000_000,
            since % 1_000_000_000 / 1_000
        );
    }

    /// Writes a value that has changed.
    fn note(&mut self, what: &'static str, who: &str, at: Instant, value: String) {
        let last = self.last.entry((what, who.to_owned())).or_default();
        if *last != value {
            last.clone_from(&value);
            self.write(what, who, at, &value);
        }
    }

    fn sample(&mut self, simulation: &Simulation, at: Instant) {
        for (index, flow) in simulation.plan.flows.iter().enumerate().take(MOST_FLOWS) {
            let (opener, other) = names_of(flow, index);
            self.flow(simulation, at, as_u16(index), flow.from, &opener);
            self.flow(simulation, at, as_u16(index), flow.to, &other);
        }
        for node in 0..self.names.len().min(MOST_NODES) {
            let name = self.names[node].clone();
            let host = &simulation.world.machines()[node];
            if let Some(queue) = host.node().queue(RADIO) {
                self.note("queue_packets", &name, at, queue.len().to_string());
            }
            if let Some(position) = self.walkers[node].as_mut().map(|walker| walker.at(at.0)) {
                self.note("x_m", &name, at, format!("{:.1}", position.x));
                self.note("y_m", &name, at, format!("{:.1}", position.y));
            }
        }
    }

    /// One end of a TCP flow, if it sends.
    fn flow(&mut self, simulation: &Simulation, at: Instant, index: u16, node: u32, who: &str) {
        let host = &simulation.world.machines()[node as usize];
        let conn =
            host.flows().iter().find(|flow| flow.index == index).and_then(crate::programs::ProgramFlow::conn);
        let Some(Ok(info)) = conn.map(|conn| host.node().endpoint().info(at, conn)) else { return };
        if info.stats.bytes_sent == 0 {
            return;
        }
        let segments = |bytes: u64| format!("{:.2}", bytes as f64 / f64::from(info.snd_mss.max(1)));
        let stats = &info.stats;
        self.note("cwnd_segments", who, at, info.cwnd_bytes.map_or(String::new(), segments));
        let ssthresh = Some(info.ssthresh_bytes).filter(|bytes| *bytes < u64::from(u32::MAX));
        self.note("ssthresh_segments", who, at, ssthresh.map_or(String::new(), segments));
        self.note("flight_segments", who, at, info.flight.segments.to_string());
        self.note("acked_bytes", who, at, stats.bytes_acked.to_string());
        let sent_once = stats.bytes_sent.saturating_sub(info.bytes_retransmitted);
        self.note("sent_bytes", who, at, sent_once.to_string());
        self.note("sent_again_segments", who, at, stats.segments_retransmitted.to_string());
        self.note("timeouts", who, at, stats.timeouts.to_string());
    }

    /// Each radio's sent frames until now, and the frames for it that other frames spoilt.
    fn counts(&mut self, simulation: &Simulation, at: Instant) {
        for node in 0..self.names.len().min(MOST_NODES) {
            if simulation.plan.positions[node].is_some() {
                let (stats, name) = (*simulation.world.stats(as_u32(node)), self.names[node].clone());
                self.note("frames_sent", &name, at, stats.frames_sent.total().to_string());
                self.note("frames_lost", &name, at, stats.collisions.to_string());
            }
        }
    }

    /// The uses of each radio's time in the whole run.
    fn airtime(&mut self, simulation: &Simulation, at: Instant) {
        for node in 0..self.names.len().min(MOST_NODES) {
            let Some(airtime) = simulation.world.airtime(as_u32(node)) else { continue };
            if simulation.plan.positions[node].is_none() {
                continue;
            }
            for &spent in AirtimeUse::ALL {
                let what = format!("airtime:{}", spent.name());
                let seconds = format!("{:.3}", airtime.ns(spent) as f64 / 1e9);
                let name = self.names[node].clone();
                self.write(&what, &name, at, &seconds);
            }
        }
    }

    /// Jain's index of the flows' shares, at the end of each interval of the counted time.
    fn fairness(&mut self, simulation: &Simulation) {
        let (from, each) = (simulation.plan.counts_from(), simulation.plan.interval());
        for (nth, index) in (1..).zip(simulation.results().jain_by_interval()) {
            if let Some(index) = index {
                self.write("jain", "all", from + each * nth, &format!("{index:.3}"));
            }
        }
    }

    /// A frame on the air, with its microseconds, or one that was lost to another at its addressee.
    fn frame(&mut self, event: &FrameEvent) {
        let to = if event.frame.to == EVERYONE { "all" } else { self.name(event.frame.to) };
        let who = format!("{}>{to}", self.name(event.sender));
        let what = if event.sees == FrameEffect::Collision { "lost" } else { "frame" };
        let lasts_us = (event.until_ns - event.from_ns) / 1_000;
        self.write(
            &format!("{what}:{}", event.frame.kind.name()),
            &who,
            Instant(event.from_ns),
            &lasts_us.to_string(),
        );
    }
}

/// The names in results of the opener's data and of the other end's. A flow with one direction has its plain name.
fn names_of(flow: &FlowPlan, index: usize) -> (String, String) {
    let (flow_itself, back) = (format!("f{index}"), format!("f{index}-back"));
    match &flow.traffic {
        TrafficPlan::Tcp(tcp) if tcp.talk.directions() == Directions::Back => (back, flow_itself),
        _ => (flow_itself, back),
    }
}

#[cfg(test)]
mod tests;
