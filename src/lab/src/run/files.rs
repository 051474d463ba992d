//! Files that a run leaves behind.

use std::fmt::Write as _;
use std::path::Path;

use hopwise_air::airtime;
use hopwise_lab::cost::{Cost, RunCost};
use hopwise_lab::folder;
use hopwise_lab::result::{FlowRow, RunResult};
use hopwise_lab::scenario::Prepared;
use hopwise_lab::sim::{NodeResult, QueueWait, Results};
use serde_json::Value;

use hopwise_daemon::failure::Failure;

/// run.json, settings.json, flows.csv and cost.json.
pub(crate) fn write(folder: &Path, result: &RunResult, cost: &Cost, settings: &Value) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::failed("writing results", format_args!("{}: {error}", folder.display()))
    };
    // Without its cost, so that two runs of one seed are equal to the byte.
    let mut run = serde_json::to_vec_pretty(result).map_err(|error| failed(&error))?;
    run.push(b'\n');
    let cost = serde_json::to_vec_pretty(&RunCost::now(None, cost)).map_err(|error| failed(&error))?;
    let settings = serde_json::to_vec_pretty(settings).map_err(|error| failed(&error))?;
    for (name, text) in [
        ("run.json", run),
        ("settings.json", settings),
        ("flows.csv", flows(result).into_bytes()),
        ("cost.json", cost),
    ] {
        write_one(folder, name, &text)?;
    }
    Ok(())
}

/// air.csv.
pub(crate) fn write_air(folder: &Path, results: &Results, prepared: &Prepared) -> Result<(), Failure> {
    write_one(folder, "air.csv", air(results, prepared).as_bytes())
}

/// One file of the results.
pub(crate) fn write_one(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), Failure> {
    folder::write(folder, name, bytes).map_err(|error| {
        Failure::failed("writing results", format_args!("{}: {error}", folder.join(name).display()))
    })
}

fn flows(result: &RunResult) -> String {
    let mut text =
        "flow,from,to,hops,goodput_kbps,bytes_delivered,segments_sent,segments_retransmitted,timeouts,\
                    fast_retransmits,acks_sent,acks_repeated,segments_received_again,rtt_median_ms,rtt_p95_ms,\
                    rtt_p99_ms,rtt_ms,completed,completion_s,completion_median_s,completion_p95_s\n"
            .to_owned();
    for flow in &result.flows {
        let hops = flow.hops.map_or(String::new(), |hops| hops.to_string());
        let _ = writeln!(
            text,
            "{},{},{},{hops},{:.3},{},{},{},{},{},{},{},{},{}",
            flow.id,
            flow.from,
            flow.to,
            flow.goodput_kbps,
            flow.bytes_delivered,
            cell(flow.segments_sent),
            cell(flow.segments_retransmitted),
            cell(flow.timeouts),
            cell(flow.fast_retransmits),
            cell(flow.acks_sent),
            cell(flow.acks_repeated),
            cell(flow.segments_received_again),
            delays(flow)
        );
    }
    text
}

/// The cells of round trips and of completions.
fn delays(flow: &FlowRow) -> String {
    let (trips, done) = (flow.round_trips.as_ref(), flow.completed.as_ref());
    [
        cell(trips.map(|trips| trips.median_ms)),
        cell(trips.map(|trips| trips.p95_ms)),
        cell(trips.map(|trips| trips.p99_ms)),
        cell(flow.rtt_ms),
        cell(done.map(|done| done.count)),
        cell(done.and_then(|done| done.mean_s)),
        cell(done.and_then(|done| done.median_s)),
        cell(done.and_then(|done| done.p95_s)),
    ]
    .join(",")
}

/// A counter that the run does not tell is an empty cell.
fn cell<T: ToString>(counter: Option<T>) -> String {
    counter.map_or(String::new(), |counter| counter.to_string())
}

/// A row for each node.
fn air(results: &Results, prepared: &Prepared) -> String {
    let mut text = "node,rts,cts,data,ack,airtime_s,collisions,retry_drops,queue_drops".to_owned();
    for &spent in airtime::AirtimeUse::ALL {
        let _ = write!(text, ",{}_s", spent.name().replace('-', "_"));
    }
    text.push_str(",data_wait_ms,data_wait_p95_ms,ack_wait_ms,ack_wait_p95_ms\n");
    for (node, nodes) in results.nodes.iter().zip(0..) {
        let (stats, name) = (&node.stats, prepared.name_of(nodes));
        let sent = &stats.frames_sent;
        let _ = writeln!(
            text,
            "{name},{},{},{},{},{:.6},{},{},{}{}{}",
            sent.rts,
            sent.cts,
            sent.data,
            sent.ack,
            stats.airtime_ns as f64 / 1e9,
            stats.collisions,
            stats.retry_drops,
            node.queue_drops,
            spent(node),
            waits(node)
        );
    }
    text
}

/// The mean wait and the 95 % quantile, of data and of ACKs.
fn waits(node: &NodeResult) -> String {
    let cells = [node.waits.data, node.waits.acks].map(|wait| match wait {
        Some(QueueWait { mean_ms, p95_ms, .. }) => format!(",{mean_ms:.3},{p95_ms:.3}"),
        None => ",,".to_owned(),
    });
    cells.concat()
}

fn spent(node: &NodeResult) -> String {
    let seconds = |spent| node.airtime.map_or(0.0, |airtime| airtime.ns(spent) as f64 / 1e9);
    airtime::AirtimeUse::ALL.iter().map(|spent| format!(",{:.6}", seconds(*spent))).collect()
}
