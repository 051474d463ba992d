//! The results of short runs: waits, probes, fairness, bursts.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use hopwise_core::trace::{DropReason, TraceKind};
use hopwise_mesh::constants::ConstantValue;
use hopwise_mesh::{LiveRouter, PacketMark, RoutingProtocol, StaticRoutes};

use super::{CERTIFICATE, NodeResult, Plan, QueueWait, Results, certificate_hash};
use crate::metric;
use crate::result::RunResult;
use crate::scenario::tests::{plan_of, read};

const CHAIN: &str = "
topology: { kind: chain, hops: 3, spacing_m: 200 }
traffic: [{ from: first, to: last, kind: bulk }]
arms: { x: { receiver: immediate, sender: [newreno] } }
run: { duration: 20s }
";

fn ran(sets: &[&str]) -> (Results, RunResult) {
    let prepared = read(CHAIN, sets).plan(None, 1).expect("a plan");
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

/// A run with this load and a probe every 50 ms.
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
        // 20 s at 50 ms; probes of the last two seconds count if they were answered.
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

#[test]
fn datagrams_over_one_hop_take_the_time_of_the_air_and_of_the_queue() {
    let one = "topology={ kind: chain, hops: 1, spacing_m: 200 }";
    let of = |flows: &str| ran(&[one, &format!("traffic=[{flows}]")]).1;
    let datagrams = "{ from: first, to: last, kind: cbr, every: 100ms, segment_bytes: 972 }";
    let alone = of(datagrams);
    let seen = alone.flows[0].datagrams.expect("they are measured");
    let times = seen.times.expect("they arrived");
    // 20 s, without the last two.
    assert_eq!((seen.sent, seen.arrived, seen.loss), (180, 180, 0.0));
    // RTS, CTS and the frame, with the gaps of 10 µs between them. The datagram is there before its ACK.
    let phy = plan_of(CHAIN, &[one]).phy;
    let air_ms = (phy.exchange_ns(1000) - phy.ack_ns() - 10_000) as f64 / 1e6;
    assert!((times.delay_ms - air_ms).abs() < 0.06, "{times:?} {air_ms}");
    assert!(times.jitter_ms < 0.06 && times.delay_error_ms == 0.0, "{times:?}");
    // Beside bulk data each waits like a segment.
    let loaded = of(&format!("{datagrams}, {{ from: first, to: last, kind: bulk }}"));
    let times = loaded.flows[0].datagrams.and_then(|seen| seen.times).expect("they arrived");
    let waits_ms = loaded.air.queue_wait_ms.expect("data was sent");
    assert!(
        waits_ms > 20.0 && (times.delay_ms / (waits_ms + air_ms) - 1.0).abs() < 0.1,
        "{times:?} {waits_ms}"
    );
    let metric = |name: &str| (metric::named(name).expect("a metric").of)(&loaded);
    assert_eq!(metric("datagram_delay_ms"), Some(times.delay_ms));
    assert_eq!(metric("datagram_jitter_ms"), Some(times.jitter_ms));
    assert!(times.jitter_ms > 1.0 && times.delay_p95_ms > times.delay_median_ms, "{times:?}");
}

#[test]
fn a_queue_loses_datagrams_and_a_call_is_measured_on_its_way_out() {
    let lossy = probed("kind: bulk", &["radio.queue_packets=2"]);
    let of = |name: &str| (metric::named(name).expect("a metric").of)(&lossy).expect("it is known");
    let seen = lossy.flows[1].datagrams.expect("a probe is measured");
    assert_eq!((seen.sent, lossy.flows[0].datagrams), (360, None), "every 50 ms");
    assert!(
        of("datagram_loss") > 0.01 && of("datagram_loss") == (360 - seen.arrived) as f64 / 360.0,
        "{seen:?}"
    );
    assert!(of("datagram_loss") <= of("probe_loss") + 0.05, "the way back loses some more");
    // Background traffic has its own result and is no figure of the run; what has no room is not measured.
    let flow = "from: first, to: last, kind: cbr, every: 50ms";
    let (_, run) = ran(&[&format!(
        "traffic=[{{ {flow}, background: true }}, {{ {flow}, segment_bytes: 15 }}, {{ from: first, to: last, \
         kind: saturated }}]"
    )]);
    let [hidden, small, saturated] = &run.flows[..] else { panic!("three flows") };
    assert!(hidden.datagrams.is_some() && small.datagrams.is_none() && saturated.datagrams.is_none());
    assert_eq!((metric::named("datagram_loss").expect("a metric").of)(&run), None);
}

const TWO: &str = "traffic=[{ from: first, to: last, kind: bulk }, { from: first, to: last, kind: bulk }]";

#[test]
fn timeouts_while_a_link_is_out_are_counted_apart() {
    let outage = "channel={ outages: [{ from: n1, to: n2, begins: 5s, ends: 9s }, { from: n2, to: n3, begins: 8s, \
                  ends: 10s }, { from: n0, to: n1, begins: 18s, ends: 30s }] }";
    let run = ran(&[outage]).1;
    let of = |until_ns: u64| {
        let plan = plan_of(CHAIN, &[outage]);
        let mut simulation = super::Simulation::new(&plan).expect("it runs");
        simulation.run_until(hopwise_core::Instant(until_ns));
        let flow = simulation.results().flows.remove(0);
        (flow.sender.timeouts.expect("it tells"), flow.timeouts_in_outages.expect("there are outages"))
    };
    let (before, none) = of(4_999_999_999);
    let (first, in_first) = of(9_999_999_999);
    let (between, as_before) = of(17_999_999_999);
    let (all, in_all) = of(20_000_000_000);
    assert_eq!((none, in_first, as_before), (0, first - before, first - before), "two that overlap are one");
    assert_eq!(in_all, first - before + all - between, "and one goes on until the end");
    assert!(in_first >= 2 && all > in_all, "{in_first} of {all}: one came when all links were back");
    assert_eq!((run.flows[0].timeouts, run.flows[0].timeouts_in_outages), (Some(all), Some(in_all)));
    assert_eq!(ran(&[]).1.flows[0].timeouts_in_outages, None, "nothing was out");
}

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

/// The goodput of `convoy` over a chain of 802.11n, in kbit/s.
fn of_convoy(sets: &[&str]) -> f64 {
    let chain = [
        "radio={ profile: ht20-mcs7, rts_threshold: off, queue_packets: 100 }",
        "arms.x={ receiver: convoy, sender: [convoy] }",
        "traffic=[{ from: first, to: last, kind: bulk, segment_bytes: 1448 }]",
        "mac.rules=standard",
    ];
    ran(&[&chain, sets].concat()).1.total.goodput_kbps
}

/// Its first surveys of whole aggregates have 56 segments.
#[test]
fn convoy_learns_its_bursts_through_a_queue_that_has_no_place_for_two_aggregates() {
    let kbps = of_convoy(&["topology.hops=4", "radio.queue_packets=50"]);
    assert!(kbps > 12_000.0, "{kbps} kbit/s");
}

/// With paced bursts two flows in opposite directions carry 12 to 17 Mbit/s.
#[test]
fn convoy_takes_no_flow_in_the_other_direction_for_a_wire() {
    let kbps = of_convoy(&["topology.hops=3", "traffic.0.direction=both"]);
    assert!(kbps > 18_000.0, "{kbps} kbit/s");
}

/// With whole aggregates it carries 24 Mbit/s.
#[test]
fn convoy_takes_hosts_that_answer_late_for_a_wire() {
    let kbps = of_convoy(&["topology.hops=2", "topology.wired={ rate: 1gbit, delay: 0.6ms }"]);
    assert!(kbps > 25_000.0, "{kbps} kbit/s");
}

/// Whole aggregates leave the air idle for half of the time.
#[test]
fn convoy_finds_a_wire_of_5_ms() {
    let kbps = of_convoy(&["topology.hops=2", "topology.wired={ rate: 100mbit, delay: 5ms }"]);
    assert!(kbps > 22_000.0, "{kbps} kbit/s");
}

/// Four flows over one hop of 802.11n with this queue, and a probe.
fn queued(queue: &str, sets: &[&str]) -> RunResult {
    let radio =
        format!("radio={{ profile: ht20-mcs7, rts_threshold: off, queue_packets: 1000, queue: {queue} }}");
    let tcp = "tcp={ ecn: false, send_buffer: 4MiB, recv_buffer: 4MiB }";
    let flow = "{ from: first, to: last, kind: bulk }";
    let probe = "{ from: first, to: last, kind: probe, every: 50ms }";
    let traffic = format!("traffic=[{flow}, {flow}, {flow}, {flow}, {probe}]");
    let all = ["run.duration=10s", "topology.hops=1", &radio, tcp, &traffic];
    ran(&[&all, sets].concat()).1
}

fn of(name: &str, run: &RunResult) -> Option<f64> {
    (metric::named(name).expect("a metric").of)(run)
}

/// Drops are counted with their cause, and a probe does not wait behind the load.
#[test]
fn queues_of_linux_keep_the_delay_down_and_the_goodput_up() {
    let (papers, linux) = (queued("{ kind: drop-tail }", &[]), queued("{ kind: fq-codel }", &[]));
    let [papers_ms, linux_ms] = [&papers, &linux].map(|run| of("probe_p95_ms", run).expect("it is known"));
    assert!(papers_ms > 3.0 * linux_ms, "{linux_ms} ms, {papers_ms} ms with drop-tail");
    let (before, after) = (papers.total.goodput_kbps, linux.total.goodput_kbps);
    assert!(after > 0.9 * before, "{after} kbit/s, {before} with drop-tail");
    assert_eq!([of("codel_drops", &papers), of("ce_marks", &papers)], [None, None]);
    let dropped = of("codel_drops", &linux).expect("it has CoDel");
    assert!(dropped > 0.0 && of("queue_drops", &linux) == Some(dropped), "{dropped}");
    assert_eq!(of("ce_marks", &linux), Some(0.0));
    let marked = queued("{ kind: fq-codel }", &["tcp.ecn=true"]);
    assert_eq!(of("codel_drops", &marked), Some(0.0));
    assert!(of("ce_marks", &marked).is_some_and(|marks| marks > 0.0));
}

/// A code point chooses the category, of datagrams and of TCP alike.
#[test]
fn packets_go_by_the_category_of_their_code_point() {
    for queue in ["{ kind: drop-tail }", "{ kind: fq-codel }"] {
        let ms = |sets: &[&str]| of("probe_p95_ms", &queued(queue, sets)).expect("it is known");
        let (plain, voice) = (ms(&[]), ms(&["traffic.4.dscp=48"]));
        // Each way it waits for the aggregate on the air, and at times for one more: 5.5 ms each. Under FQ-CoDel it
        // does not wait for the load's packets in any category.
        assert!(voice < 0.75 * plain && voice < 22.0, "{queue}: {voice} ms, {plain} at best effort");
        let share = |sets: &[&str]| {
            let run = queued(queue, sets);
            run.flows[1].goodput_kbps / run.flows[0].goodput_kbps
        };
        // Video has five accesses for one of best effort, and that has three for one of background.
        let video = share(&["traffic.1.dscp=34"]);
        let background = share(&["traffic.1.dscp=8", "traffic.2.dscp=8", "traffic.3.dscp=8"]);
        assert!(background < 0.5 && video > 2.0, "{queue}: {background}, {video} with video");
    }
}

/// Its messages go as voice, by a window in which seven RTSs are over in 2 ms.
#[test]
fn aodv_finds_routes_of_eight_hops_under_rts_for_all_packets() {
    let sets =
        ["topology.hops=8", "radio.profile=ht20-mcs7", "radio.rts_threshold=0", "routing.protocol=aodv"];
    let result = ran(&sets).1;
    assert!(result.total.goodput_kbps > 100.0, "{} kbit/s", result.total.goodput_kbps);
}

#[test]
fn without_limits_of_airtime_the_device_is_the_queue() {
    let ms = |queue: &str| of("probe_p95_ms", &queued(queue, &[])).expect("it is known");
    let (with, without) =
        (ms("{ kind: fq-codel }"), ms("{ kind: fq-codel, aql: false, device_packets: 1000 }"));
    assert!(without > 2.0 * with, "{without} ms, {with} ms with limits");
}

#[test]
fn packets_that_codel_drops_are_traced_with_their_reason() {
    let queue = "radio.queue={ kind: fq-codel, packets: 6, interval: 20ms }";
    let mut plan = plan_of(CHAIN, &["run.duration=5s", "topology.hops=2", "tcp.ecn=false", queue]);
    plan.trace_events = 1_000;
    let mut world = super::build::world(&plan).expect("it is built");
    let counts = Rc::new(RefCell::new(BTreeMap::<_, u64>::new()));
    let sink = Rc::clone(&counts);
    world.trace = Some(Box::new(move |_, event| {
        if let TraceKind::Dropped(reason) = event.kind {
            *sink.borrow_mut().entry(reason).or_default() += 1;
        }
    }));
    world.run_until(plan.end());
    for reason in [DropReason::Codel, DropReason::QueueFull] {
        let counted: u64 = world.machines().iter().map(|host| host.node().drops(reason)).sum();
        assert!(counted > 0 && counts.borrow().get(&reason) == Some(&counted), "{reason:?}: {counted}");
    }
}

/// A run tells the load of each rate: slower ones over a long link than over a short one. A fixed rate has none.
#[test]
fn minstrel_finds_each_links_rates_and_a_run_says_what_they_carried() {
    let radio = "radio={ profile: ht20-mcs7, rts_threshold: off, rate: minstrel }";
    let noise = "channel={ noise_dbm: -75 }";
    let run = ran(&["topology.hops=1", "run.duration=10s", radio, noise]).1;
    let link: Vec<_> = run.rates.iter().filter(|row| row.node == "n0" && row.to == "n1").collect();
    let packets: u64 = link.iter().map(|row| row.packets).sum();
    let best = link.iter().max_by_key(|row| row.packets).expect("it has sent");
    assert!(best.packets * 2 > packets && best.acknowledged * 10 > best.packets * 8, "{link:?}");
    assert!(link.len() > 2 && link.windows(2).all(|two| two[0].mbps > two[1].mbps), "{link:?}");
    let near = ran(&["topology.hops=1", "topology.spacing_m=50", "run.duration=10s", radio, noise]).1;
    let fastest = near.rates.iter().max_by_key(|row| row.packets).expect("it has sent");
    assert!(fastest.mbps > best.mbps, "{fastest:?} {best:?}");
    assert!(ran(&["run.duration=2s"]).1.rates.is_empty());
}

#[test]
fn rate_controls_choose_no_rate_that_their_mask_lacks() {
    for (radio, allowed) in [
        ("{ profile: ht20-mcs15, rts_threshold: off, rate: minstrel, mcs: [7, 8] }", &[65.0, 13.0][..]),
        ("{ profile: ht20-mcs7, rts_threshold: off, rate: arf, mcs: [1, 3] }", &[13.0, 26.0]),
        ("{ profile: ofdm-54mbps, rate: arf, rates: [6mbit, 24mbit] }", &[6.0, 24.0]),
        ("{ profile: dsss-11mbps, rate: minstrel, rates: [5.5mbit] }", &[5.5]),
    ] {
        let radio = format!("radio={radio}");
        let run = ran(&["topology.hops=1", "run.duration=3s", &radio]).1;
        assert!(run.total.goodput_kbps > 1_000.0, "{radio}");
        assert!(run.rates.iter().all(|row| allowed.contains(&row.mbps)), "{radio}: {:?}", run.rates);
    }
}

#[test]
fn every_probe_of_the_certificate_has_passed() {
    let probes: Vec<_> = CERTIFICATE.lines().filter(|line| line.starts_with("  ")).collect();
    assert!(probes.len() > 100, "{}", probes.len());
    assert!(probes.iter().all(|probe| probe.ends_with("passed")), "{probes:#?}");
    assert_eq!(certificate_hash().len(), 64);
}

/// A protocol that the registry does not have: routes by the shortest paths.
static OWN_PROTOCOL: RoutingProtocol = RoutingProtocol {
    name: "own",
    summary: "A protocol of this test.",
    constants: &[],
    subject: "a protocol of this test",
    is_flat: false,
    mark: PacketMark::None,
    needs_positions: false,
    live: LiveRouter::Nobody,
    daemon: None,
    make: |constants, setup| {
        assert_eq!(constants.get("own_constant"), Some(ConstantValue::Count(9)));
        Box::new(StaticRoutes::new(setup.routes))
    },
};

#[test]
fn a_protocol_runs_that_no_other_file_names() {
    let mut plan = plan_of(CHAIN, &[]);
    let bytes = |plan: &Plan| super::run(plan).expect("it runs").flows[0].sender.bytes_acked;
    let by_static_routes = bytes(&plan);
    plan.routing.protocol = &OWN_PROTOCOL;
    plan.routing.constants.set("own_constant", ConstantValue::Count(9));
    assert_eq!(bytes(&plan), by_static_routes);
}
