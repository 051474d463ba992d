//! The results of short runs: waits, probes, fairness, bursts.

use super::{NodeResult, QueueWait, Results};
use crate::metric;
use crate::result::RunResult;
use crate::scenario::Scenario;

const CHAIN: &str = "
topology: { kind: chain, hops: 3, spacing_m: 200 }
traffic: [{ from: first, to: last, kind: bulk }]
arms: { x: { receiver: immediate, sender: [newreno] } }
run: { duration: 20s }
";

fn ran(sets: &[&str]) -> (Results, RunResult) {
    let sets: Vec<_> = sets.iter().map(|set| (*set).to_owned()).collect();
    let scenario = Scenario::parse("chain", CHAIN, &sets).expect("a scenario");
    let prepared = scenario.plan(None, 1).expect("a plan");
    let results = super::run(&prepared.plan).expect("it runs");
    let result = RunResult::new("chain", "sim", &prepared, &results);
    (results, result)
}

#[test]
fn waits_are_counted_at_every_hop_for_data_and_acks_apart() {
    let (results, result) = ran(&[]);
    let nodes: Vec<_> = result.queues.iter().map(|row| row.node.as_str()).collect();
    assert_eq!(nodes, ["n0", "n1", "n2", "n3"]);
    let data: Vec<_> = result.queues.iter().map(|row| row.data.is_some()).collect();
    let acks: Vec<_> = result.queues.iter().map(|row| row.acks.is_some()).collect();
    assert_eq!((data, acks), (vec![true, true, true, false], vec![true, true, true, true]));
    // n0 sends the handshake's ACK and nothing else without payload but the SYN.
    assert!(result.queues[0].acks.is_some_and(|wait| wait.count <= 3), "{:?}", result.queues[0]);
    let crossings: u64 = results.nodes.iter().filter_map(|node| Some(node.waits.data?.count)).sum();
    assert_eq!(results.air.waits.data.map(|wait| wait.count), Some(crossings));
    // A round trip is all waits of its hops, and the time on the air.
    let mean = |of: fn(&NodeResult) -> Option<QueueWait>| -> f64 {
        results.nodes.iter().filter_map(|node| Some(of(node)?.mean_ms)).sum()
    };
    let waited = mean(|node| node.waits.data) + mean(|node| node.waits.acks.filter(|wait| wait.count > 3));
    let median = result.flows[0].round_trips.expect("they are measured").median_ms;
    assert!(waited > 0.3 * median && waited < 1.2 * median, "{waited} ms of {median} ms");
    for (name, wanted) in [
        ("queue_wait_ms", results.air.waits.data.map(|wait| wait.mean_ms)),
        ("queue_wait_p95_ms", results.air.waits.data.map(|wait| wait.p95_ms)),
        ("ack_queue_wait_ms", results.air.waits.acks.map(|wait| wait.mean_ms)),
    ] {
        let found = (metric::named(name).expect("a metric").of)(&result);
        assert!(found.is_some() && found == wanted, "{name}: {found:?} {wanted:?}");
    }
}

#[test]
fn a_shorter_queue_waits_less() {
    let wait = |packets: u32| {
        let queue = format!("radio.queue_packets={packets}");
        ran(&[&queue, "topology.hops=1"]).1.air.queue_wait_ms.expect("data was sent")
    };
    assert!(wait(50) > 2.0 * wait(5), "{} {}", wait(50), wait(5));
}

/// A run with a probe every 50 ms beside this load.
fn probed(load: &str, sets: &[&str]) -> RunResult {
    let probe = "{ from: first, to: last, kind: probe, every: 50ms }";
    let traffic = format!("traffic=[{{ from: first, to: last, {load} }}, {probe}]");
    ran(&[&[traffic.as_str()], sets].concat()).1
}

#[test]
fn a_probe_shows_the_delay_under_load_and_stands_in_no_total() {
    let of =
        |name: &str, run: &RunResult| (metric::named(name).expect("a metric").of)(run).expect("it is known");
    let (idle, loaded) = (probed("kind: bulk, bytes: 1kB", &[]), probed("kind: bulk", &[]));
    for run in [&idle, &loaded] {
        let [load, probe] = &run.flows[..] else { panic!("two flows") };
        assert!(probe.background && load.probe.is_none());
        assert_eq!(run.total.goodput_kbps, load.goodput_kbps);
        let told = probe.probe.expect("a probe's flow");
        // 20 s at 50 ms; those of the last two seconds count if they were answered.
        assert!((355..=400).contains(&told.sent) && told.answered <= told.sent, "{told:?}");
    }
    let [idle_ms, loaded_ms] = [&idle, &loaded].map(|run| of("probe_median_ms", run));
    assert!(loaded_ms > 3.0 * idle_ms, "{idle_ms} ms alone, {loaded_ms} ms beside bulk");
    assert!(of("probe_p95_ms", &loaded) > loaded_ms && of("probe_loss", &idle) == 0.0);
    // A queue of two packets loses some of them.
    let lossy = probed("kind: bulk", &["radio.queue_packets=2"]);
    assert!(of("probe_loss", &lossy) > 0.01, "{:?}", lossy.flows[1].probe);
    let counted = probed("kind: bulk", &["run.warmup=10s"]).flows[1].probe.expect("a probe's flow").sent;
    assert!((155..=200).contains(&counted), "{counted}");
}

const TWO: &str = "traffic=[{ from: first, to: last, kind: bulk }, { from: first, to: last, kind: bulk }]";

#[test]
fn jains_index_over_time_sees_flows_that_take_turns() {
    let (results, run) = ran(&[TWO]);
    let over_time = run.total.jain_over_time.expect("two flows");
    assert!(
        over_time > 0.5 && over_time <= 1.0 && over_time < run.total.jain,
        "{over_time} {}",
        run.total.jain
    );
    let each = results.jain_by_interval();
    assert_eq!(each.len(), 100);
    let bytes: u64 = results.flows.iter().flat_map(|flow| &flow.by_interval).sum();
    assert_eq!(bytes, results.flows.iter().map(|flow| flow.counted_bytes).sum::<u64>(), "no byte is lost");
    // One after the other: never at once, and alike in the end.
    let turns = "traffic=[{ from: first, to: last, kind: bulk, stop: 10s }, \
                 { from: first, to: last, kind: bulk, start: 10s }]";
    let (_, turns) = ran(&[turns]);
    let over_time = turns.total.jain_over_time.expect("two flows");
    assert!(turns.total.jain > 0.9 && over_time < 0.6, "{} {over_time}", turns.total.jain);
    assert_eq!(ran(&[]).1.total.jain_over_time, None, "one flow shares with no other");
}

#[test]
fn bursts_are_what_leaves_upon_one_packet_and_an_ack_for_many_segments_makes_long_ones() {
    let of = |receiver: &str| {
        let arm = format!("arms.x.receiver={receiver}");
        let run = ran(&[&arm, "topology.hops=1", "run.warmup=5s"]).1;
        ["burst_longest", "burst_mean"]
            .map(|name| (metric::named(name).expect("a metric").of)(&run).expect("known"))
    };
    let ([every, every_mean], [fourth, fourth_mean]) = (of("immediate"), of("\"delayed:d=4\""));
    assert!(every >= 1.0 && every_mean < 1.6, "{every} {every_mean}");
    assert!(fourth >= 4.0 && fourth_mean > 1.5 * every_mean, "{fourth} {fourth_mean}");
}

#[test]
fn segments_above_a_hole_are_a_share_of_all_that_arrived() {
    let share = |sets: &[&str]| {
        let run = ran(sets).1;
        (metric::named("out_of_order_share").expect("a metric").of)(&run).expect("known")
    };
    let (clean, lossy) = (share(&["topology.hops=1"]), share(&["radio.queue_packets=5"]));
    assert!(lossy > clean && lossy < 0.5, "{clean} {lossy}");
}
