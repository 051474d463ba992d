//! Report at the end of `hopwise air`.

use std::io::{self, Write};

use hopwise_air::dcf::StationStats;
use hopwise_air::{Lateness, Live, OutsideDevices};
use hopwise_core::LinkFacts;
use hopwise_lab::live::air as live_air;
use hopwise_lab::scenario::Prepared;
use serde::Serialize;

use super::medium::DroppedFrames;
use hopwise_daemon::stations::StationSnapshot;
use hopwise_daemon::table;

#[derive(Debug, Serialize)]
pub(super) struct AirReport {
    scenario: String,
    seed: u64,
    lasted_s: f64,
    stations: Vec<NodeRow>,
    links: Vec<StationRow>,
    behind: RadioDelay,
}

#[derive(Debug, Serialize)]
struct NodeRow {
    node: String,
    frames_sent: u64,
    airtime_s: f64,
    collisions: u64,
    retry_drops: u64,
    /// Frames that its queue dropped; the kernel's own drops are in its counters.
    queue_drops: u64,
    /// Packets that CoDel has marked.
    #[serde(skip_serializing_if = "Option::is_none")]
    ce_marks: Option<u64>,
    /// Frames that the device sent with the source address of another node.
    in_anothers_name: u64,
    /// Frames of the device that no frame of the radio or the wire can carry.
    too_long: u64,
    /// Frames for a device that was down.
    not_taken: u64,
}

/// A row of the report: what a node's radio knows of its link to a station.
#[derive(Debug, Serialize)]
struct StationRow {
    node: String,
    #[serde(flatten)]
    link: StationSnapshot,
}

/// Delay of the radio behind real time.
#[derive(Debug, Serialize)]
struct RadioDelay {
    times: u64,
    worst_s: f64,
    left_out_s: f64,
}

pub(super) fn of(
    scenario: &str,
    prepared: &Prepared,
    live: &mut Live<OutsideDevices>,
    dropped: &DroppedFrames,
) -> AirReport {
    let Lateness { worst, times, left_out } = live.lateness();
    let world = live.world();
    let row = |(name, node): (&String, u32)| {
        let stats: &StationStats = world.stats(node);
        NodeRow {
            node: name.clone(),
            frames_sent: stats.frames_sent.total(),
            airtime_s: stats.airtime_ns as f64 / 1e9,
            collisions: stats.collisions,
            retry_drops: stats.retry_drops,
            queue_drops: world.machines()[node as usize].queue_drops(),
            ce_marks: world.machines()[node as usize].queue_marks(),
            in_anothers_name: dropped.in_anothers_name[node as usize],
            too_long: dropped.too_long[node as usize],
            not_taken: dropped.not_taken[node as usize],
        }
    };
    let addresses: Vec<_> = live_air::stations(&prepared.plan)
        .into_iter()
        .map(|station| (station.mac, station.address))
        .collect();
    let who_has = |mac| addresses.iter().find(|(known, _)| *known == mac).map(|(_, address)| *address);
    let now = world.now();
    let links_of = |(name, node): (&String, u32)| {
        let link = |facts: LinkFacts| StationRow {
            node: name.clone(),
            link: StationSnapshot::of(&facts, now, who_has(facts.station.0)),
        };
        world.facts(node).into_iter().map(link).collect::<Vec<_>>()
    };
    let links = prepared.names.iter().zip(0..).flat_map(links_of).collect();
    AirReport {
        scenario: scenario.to_owned(),
        seed: prepared.plan.seed,
        lasted_s: world.now().since(hopwise_core::Instant::ZERO).as_secs_f64(),
        stations: prepared.names.iter().zip(0..).map(row).collect(),
        links,
        behind: RadioDelay { times, worst_s: worst.as_secs_f64(), left_out_s: left_out.as_secs_f64() },
    }
}

impl AirReport {
    pub(super) fn print_json(&self) -> io::Result<()> {
        let mut out = hopwise_lab::plain::out();
        serde_json::to_writer(&mut out, self)?;
        writeln!(out)
    }

    pub(super) fn print_text(&self) -> io::Result<()> {
        let mut out = hopwise_lab::plain::out();
        writeln!(out, "{}, seed {}: {:.1} s of the air", self.scenario, self.seed, self.lasted_s)?;
        let columns = [
            "node",
            "frames",
            "airtime s",
            "collisions",
            "given up",
            "queue drops",
            "in another's name",
            "too long",
            "not taken",
        ];
        let cells = |row: &NodeRow| {
            let NodeRow {
                collisions, retry_drops, queue_drops, in_anothers_name, too_long, not_taken, ..
            } = *row;
            let counts = [collisions, retry_drops, queue_drops, in_anothers_name, too_long, not_taken];
            let first = [row.node.clone(), row.frames_sent.to_string(), format!("{:.3}", row.airtime_s)];
            first.into_iter().chain(counts.iter().map(u64::to_string)).collect()
        };
        let rows: Vec<Vec<String>> = self.stations.iter().map(cells).collect();
        for line in table::lines(&columns, &rows) {
            writeln!(out, "{line}")?;
        }
        let RadioDelay { times, worst_s, left_out_s } = self.behind;
        let worst_ms = worst_s * 1e3;
        match times {
            0 => writeln!(out, "in real time, {worst_ms:.1} ms late at the worst"),
            _ => writeln!(
                out,
                "behind real time {times} times, by {worst_ms:.1} ms at the worst; {left_out_s:.1} s were left out"
            ),
        }
    }
}
