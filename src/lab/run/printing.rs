//! Prints the result of a run for people, or for a program.

use std::io::{self, Write};
use std::path::Path;

use hopwise_lab::cost::Cost;
use hopwise_lab::lacks::in_words;
use hopwise_lab::result::{FlowRow, RateRow, RunResult};
use serde::Serialize;

use crate::table::known;

#[derive(Serialize)]
struct WithCost<'a> {
    #[serde(flatten)]
    result: &'a RunResult,
    cost: &'a Cost,
}

pub(super) fn result(result: &RunResult, cost: &Cost, folder: &Path, is_json: bool) -> io::Result<()> {
    if is_json { json(result, cost) } else { text(result, cost, folder) }
}

fn json(result: &RunResult, cost: &Cost) -> io::Result<()> {
    let mut out = hopwise_lab::plain::out();
    serde_json::to_writer(&mut out, &WithCost { result, cost })?;
    writeln!(out)
}

fn text(result: &RunResult, cost: &Cost, folder: &Path) -> io::Result<()> {
    let mut out = hopwise_lab::plain::out();
    writeln!(
        out,
        "{} in {}, arm {}, seed {}: {:.1} s counted",
        result.scenario, result.world, result.arm, result.seed, result.counted_s
    )?;
    write_flows(&mut out, &result.flows)?;
    for flow in &result.flows {
        write_remarks(&mut out, flow)?;
    }
    let (total, air) = (&result.total, &result.air);
    writeln!(out, "\ntotal {:.1} kbit/s, Jain {:.3}", total.goodput_kbps, total.jain)?;
    writeln!(
        out,
        "air   {} frames, {} collisions, {} packets given up, {} lost to full queues",
        known(air.frames_sent),
        known(air.collisions),
        known(air.retry_drops),
        known(air.queue_drops.map(|drops| drops - air.codel_drops.unwrap_or(0)))
    )?;
    if let (Some(given_up @ 1..), Some(late)) = (air.reorder_timeouts, air.reorder_late) {
        writeln!(
            out,
            "      {given_up} holes in aggregates given up by receivers, {late} packets that came later"
        )?;
    }
    if let (Some(dropped), Some(marked)) = (air.codel_drops, air.ce_marks) {
        writeln!(out, "      {dropped} packets that CoDel dropped, {marked} that it marked")?;
    }
    write_rates(&mut out, &result.rates)?;
    let seconds = |seconds: Option<f64>| known(seconds.map(|seconds| format!("{seconds:.1}")));
    let [all, data, acks] = [air.airtime_s, air.data_airtime_s, air.ack_airtime_s].map(seconds);
    writeln!(
        out,
        "      {all} s of airtime, all radios together: {data} s for data, {acks} s for TCP's ACKs"
    )?;
    writeln!(out, "cost  {:.2} s of CPU; files are in {}", cost.cpu_s, folder.display())
}

/// The load that rates carried, if a rate control chose them.
fn write_rates(out: &mut impl Write, rates: &[RateRow]) -> io::Result<()> {
    for link in rates.chunk_by(|a, b| (&a.node, &a.to) == (&b.node, &b.to)) {
        let packets: u64 = link.iter().map(|row| row.packets).sum();
        let share = |part: u64, whole: u64| 100.0 * part as f64 / (whole as f64).max(1.0);
        let of = |row: &RateRow| {
            let (sent, came) = (share(row.packets, packets), share(row.acknowledged, row.packets));
            format!("{} {sent:.1} % ({came:.0} % came)", row.rate)
        };
        let said: Vec<_> = link.iter().map(of).collect();
        writeln!(out, "rates {} → {}: {}", link[0].node, link[0].to, said.join(", "))?;
    }
    Ok(())
}

fn write_flows(out: &mut impl Write, flows: &[FlowRow]) -> io::Result<()> {
    writeln!(
        out,
        "\nflow     way           hops  goodput kbit/s  segments  sent again  timeouts      ACKs  RTT ms (95 %)"
    )?;
    for flow in flows {
        let hops = flow.hops.map_or("?".to_owned(), |hops| hops.to_string());
        writeln!(
            out,
            "{:<8} {:<13} {hops:>4}  {:>14.1}  {:>8}  {:>10}  {:>8}  {:>8}  {:>13}",
            flow.id,
            format!("{} → {}", flow.from, flow.to),
            flow.goodput_kbps,
            known(flow.segments_sent),
            known(flow.segments_retransmitted),
            known(flow.timeouts),
            known(flow.acks_sent),
            known(round_trips(flow))
        )?;
    }
    Ok(())
}

/// The median with the 95 % quantile. The kernel's TCP tells a mean alone.
fn round_trips(flow: &FlowRow) -> Option<String> {
    let quantiles = flow.round_trips.map(|trips| format!("{:.0} ({:.0})", trips.median_ms, trips.p95_ms));
    quantiles.or_else(|| Some(format!("mean {:.0}", flow.rtt_ms?)))
}

/// Writes what a flow lacks, what shadows would have done, and what it completed.
fn write_remarks(out: &mut impl Write, flow: &FlowRow) -> io::Result<()> {
    for (who, lacks) in [("receiver", &flow.receiver_lacks), ("sender", &flow.sender_lacks)] {
        if !lacks.is_empty() {
            writeln!(out, "{:<8} the {who} does without {}", flow.id, in_words(lacks))?;
        }
    }
    for shadow in &flow.shadows {
        writeln!(out, "{:<8} {shadow}", flow.id)?;
    }
    if let Some(done) = &flow.completed {
        let [mean, median, p95] =
            [done.mean_s, done.median_s, done.p95_s].map(|s| known(s.map(|s| format!("{s:.3} s"))));
        let (id, count, longest) = (&flow.id, done.count, done.longest_s);
        writeln!(
            out,
            "{id:<8} {count} completed, {mean} each: half within {median}, 95 % within {p95}, all within {longest:.3} s"
        )?;
    }
    Ok(())
}
