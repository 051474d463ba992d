//! Flows with their times and sizes, and refusals of senseless ones.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use super::{CHAIN, Scenario, plan_of, read, refused};
use crate::metric;
use crate::result::RunResult;
use crate::sim::{Results, Simulation, TrafficPlan};

/// The chain of the papers, shorter, with other traffic.
fn scenario(traffic: &str, more: &[&str]) -> Scenario {
    let sets = ["topology.hops=2", "run={ duration: 20s }", &format!("traffic=[{traffic}]")];
    read(CHAIN, &[&sets[..], more].concat())
}

fn results(traffic: &str, more: &[&str]) -> Results {
    let plan = scenario(traffic, more).plan(None, 1).expect("a plan").plan;
    crate::sim::run(&plan).expect("it runs")
}

fn result(traffic: &str) -> RunResult {
    result_with(traffic, &[])
}

fn result_with(traffic: &str, more: &[&str]) -> RunResult {
    let prepared = scenario(traffic, more).plan(None, 1).expect("a plan");
    let results = crate::sim::run(&prepared.plan).expect("it runs");
    RunResult::new("a", "sim", &prepared, &results)
}

#[test]
fn a_transfer_carries_its_bytes_and_no_more() {
    let done = results("{ from: first, to: last, kind: bulk, bytes: 100kB }", &[]);
    let flow = &done.flows[0];
    assert_eq!((flow.bytes_delivered, flow.completions.map(|c| c.count)), (100_000, Some(1)));
}

#[test]
fn transfers_follow_each_other_after_thinking() {
    let traffic = "{ from: first, to: last, kind: bulk, bytes: 20kB, repeat: 3, think: 1s }";
    let done = results(traffic, &[]);
    let completions = done.flows[0].completions.expect("transfers end");
    assert_eq!((done.flows[0].bytes_delivered, completions.count), (60_000, 3));
    // Three of them with two pauses between would not fit with three pauses more.
    assert!(completions.total_ns < 10_000_000_000, "{completions:?}");
    let once = results("{ from: first, to: last, kind: bulk, bytes: 20kB }", &[]);
    assert_eq!(once.flows[0].bytes_delivered, 20_000);
}

#[test]
fn round_trips_are_those_of_the_path_and_count_after_the_warm_up() {
    let traffic = "{ from: first, to: last, kind: request, request: 200B, response: 200B, think: 100ms }";
    let wire = "topology={ kind: chain, hops: 1, wired: { rate: 10mbit, delay: 50ms } }";
    let trips = |more: &[&str]| {
        let run = result_with(traffic, &[&[wire, "tcp={ profile: modern }"], more].concat());
        assert!(run.flows.iter().all(|flow| flow.rtt_ms.is_none()), "sim does not look at smoothed ones");
        (run.flows[0].round_trips.expect("the sender measures"), run)
    };
    let (whole, run) = trips(&[]);
    // Two ways of 50 ms on the wire, and little more on the air.
    assert!((100.0..125.0).contains(&whole.median_ms), "{whole:?}");
    assert!(whole.median_ms <= whole.p95_ms && whole.p95_ms <= whole.p99_ms, "{whole:?}");
    let completed = run.flows[0].completed.expect("requests end");
    assert!(whole.count >= completed.count && completed.count > 50, "{whole:?} {completed:?}");
    let (median_s, p95_s) = completed.median_s.zip(completed.p95_s).expect("some ended");
    assert!(0.1 <= median_s && median_s <= p95_s && p95_s <= completed.longest_s, "{completed:?}");
    let (late, _) = trips(&["run.warmup=15s"]);
    assert!(late.count < whole.count / 3, "{late:?} of {whole:?}");
    let metric = |name: &str| (metric::named(name).expect("its name").of)(&run);
    assert_eq!(metric("completion_median_s"), Some(median_s));
    let both = run.flows.iter().filter_map(|flow| Some(flow.round_trips?.median_ms)).sum::<f64>() / 2.0;
    assert_eq!(metric("rtt_median_ms"), Some(both), "the mean of both ways");
}

#[test]
fn a_flow_without_a_tcp_that_measures_has_no_round_trips() {
    let run = result("{ from: first, to: last, kind: cbr, every: 100ms }");
    assert_eq!(run.flows[0].round_trips, None);
    let value = serde_json::to_value(&run).expect("JSON");
    assert!(value["flows"][0].get("round_trips").is_none(), "{value}");
    assert_eq!((metric::named("rtt_p99_ms").expect("its name").of)(&run), None);
}

#[test]
fn data_goes_back_and_both_ways_on_one_connection() {
    let back = result("{ from: first, to: last, kind: bulk, direction: back, bytes: 50kB }");
    let rows: Vec<_> =
        back.flows.iter().map(|f| (f.id.as_str(), f.from.as_str(), f.bytes_delivered)).collect();
    assert_eq!(rows, [("f0", "n2", 50_000)]);
    let both = result("{ from: first, to: last, kind: bulk, direction: both }");
    let rows: Vec<_> = both.flows.iter().map(|f| (f.id.as_str(), f.from.as_str())).collect();
    assert_eq!(rows, [("f0", "n0"), ("f0-back", "n2")]);
    assert!(both.flows.iter().all(|flow| flow.bytes_delivered > 100_000), "{:?}", both.flows);
    assert_eq!(both.total.jain, 1.0, "both ways are one flow's share");
}

#[test]
fn requests_are_answered_one_at_a_time() {
    let traffic =
        "{ from: first, to: last, kind: request, request: 200B, response: 5kB, repeat: 4, think: 100ms }";
    let done = result(traffic);
    let bytes: Vec<_> = done.flows.iter().map(|flow| flow.bytes_delivered).collect();
    assert_eq!(bytes, [800, 20_000]);
    let completed = done.flows[0].completed.expect("requests end");
    assert_eq!((completed.count, done.flows[1].completed), (4, None));
    assert!(completed.mean_s.is_some_and(|mean| mean > 0.02 && mean < 2.0), "{completed:?}");
    let endless = "{ from: first, to: last, kind: request, request: 200B, response: 5kB }";
    assert!(result(endless).flows[0].completed.is_some_and(|completed| completed.count > 50));
}

#[test]
fn flows_stop_when_they_are_told_to() {
    let goodput = |kind: &str| {
        let done = results(&format!("{{ from: first, to: last, {kind} }}"), &[]);
        done.flows.iter().map(|flow| flow.bytes_delivered).sum::<u64>()
    };
    for kind in [
        "kind: bulk",
        "kind: bulk, direction: back",
        "kind: request, request: 100B, response: 3kB",
        "kind: cbr, every: 20ms",
        "kind: saturated",
    ] {
        let (whole, half) = (goodput(kind), goodput(&format!("{kind}, stop: 10s")));
        assert!(half * 10 < whole * 7 && half * 10 > whole * 3, "{kind}: {half} of {whole}");
    }
}

#[test]
fn background_stands_in_its_row_and_in_no_total() {
    let traffic = "{ from: first, to: last, kind: bulk }, \
                   { from: last, to: first, kind: cbr, rate: 80kbit, segment_bytes: 500, background: true }";
    let done = result(traffic);
    assert_eq!(done.total.goodput_kbps, done.flows[0].goodput_kbps);
    assert!(
        done.flows[1].background && (60.0..85.0).contains(&done.flows[1].goodput_kbps),
        "{:?}",
        done.flows
    );
    // 500 bytes at 80 kbit/s: one each 50 ms.
    assert!((Some(399)..=Some(401)).contains(&done.flows[1].segments_sent), "{:?}", done.flows[1]);
}

#[test]
fn rules_choose_agents_before_the_arm_does() {
    let traffic = "{ from: first, to: last, kind: bulk, flows: 2 }";
    let sets = [
        "rules=[{ match: { port: 5002, to: n2 }, receiver: \"delayed:4\", sender: [newreno, \"limit:2\"] }]",
    ];
    let done = results(traffic, &sets);
    let agents: Vec<_> = done.flows.iter().map(|flow| flow.agents.as_ref().expect("it was open")).collect();
    assert_eq!((&*agents[0].receiver, &*agents[0].senders), ("immediate", "[newreno]"));
    assert_eq!((&*agents[1].receiver, &*agents[1].senders), ("delayed:4", "[newreno, limit:2]"));
}

#[test]
fn an_arm_that_says_nothing_has_the_defaults() {
    let arm = plan_of(CHAIN, &["arms={ x: }"]).arm;
    assert_eq!((arm.receiver.as_str(), arm.senders.as_str()), ("delayed", "[cubic:hystart=on]"));
}

#[test]
fn what_chance_draws_is_the_same_for_every_arm_and_another_for_every_seed() {
    let text = CHAIN.replace("  x: {", "  y: { receiver: dca, sender: [newreno, \"limit:2\"] }\n  x: {");
    let traffic = "traffic=[{ from: first, to: last, kind: bulk, flows: 3, start: { from: 0s, to: 2s } }]";
    let place = "topology={ kind: random, nodes: 20, width_m: 500, height_m: 300 }";
    let scenario = read(&text, &[place, "channel={ shadowing_db: 2 }", traffic]);
    let drawn = |arm: &str, seed| {
        let plan = scenario.plan(Some(arm), seed).expect("a plan").plan;
        let starts: Vec<_> = plan.flows.iter().map(|flow| flow.start).collect();
        (format!("{:?}", plan.positions), starts)
    };
    assert_eq!(drawn("x", 1), drawn("y", 1));
    assert_ne!(drawn("x", 1).0, drawn("x", 2).0);
    assert_ne!(drawn("x", 1).1, drawn("x", 2).1);
}

#[test]
fn a_flow_keeps_its_numbers_when_another_is_put_beside_it() {
    let start = "kind: cbr, every: { mean: 50ms }, start: { from: 0s, to: 2s }";
    let one = scenario(&format!("{{ from: first, to: last, {start} }}"), &[]);
    let two =
        scenario(&format!("{{ from: first, to: last, {start} }}, {{ from: last, to: first, {start} }}"), &[]);
    let starts = |scenario: &Scenario| {
        let plan = scenario.plan(None, 1).expect("a plan").plan;
        assert!(matches!(plan.flows[0].traffic, TrafficPlan::Datagrams { .. }));
        plan.flows.iter().map(|flow| flow.start).collect::<Vec<_>>()
    };
    let (one, two) = (starts(&one), starts(&two));
    assert_eq!(one[0], two[0]);
    assert_ne!(two[0], two[1]);
}

#[test]
fn traffic_that_makes_no_sense_is_refused_where_it_stands() {
    for (keys, problem) in [
        ("kind: bulk, think: 1s", "`think` has no effect on endless data"),
        ("kind: bulk, repeat: 3", "`repeat` has no effect on endless data"),
        ("kind: bulk, bytes: 3kB, repeat: 0", "repeat: 0 is out of range"),
        ("kind: bulk, bytes: 0B", "1B to 1GiB"),
        ("kind: bulk, bytes: 2GiB", "1B to 1GiB"),
        ("kind: bulk, bytes: 300", "a size with its unit"),
        ("kind: bulk, every: 3ms", "`every` belongs to another kind of traffic"),
        ("kind: cbr, direction: back, every: 3ms", "`direction` belongs to another kind of traffic"),
        ("kind: request, request: 200B", "`kind: request` needs `response`"),
        ("kind: request, request: 7B, response: 3kB", "8B to 1GiB"),
        ("kind: cbr", "needs `every` or `rate`"),
        ("kind: cbr, every: 0ms", "every: 0ms is out of range"),
        ("kind: cbr, every: 1ms, rate: 3kbit", "`every` already sets"),
        ("kind: cbr, rate: 0kbit", "rate: 0kbit is out of range"),
        ("kind: bulk, start: 5s, stop: 4s", "the stop is before the start"),
        ("kind: bulk, start: { from: 5s, to: 4s }", "`to` is less than `from`"),
        ("kind: bulk, start: { mean: 5s, to: 4s }", "neither a mean nor bounds"),
        ("kind: bulk, start: { middle: 5s }", "unknown field `middle`"),
        ("kind: bulk, direction: fort", "did you mean `forth`?"),
        ("kind: bulc", "did you mean `bulk`?"),
    ] {
        let set = format!("traffic=[{{ from: first, to: last, {keys} }}]");
        let refused = refused(&[&set]);
        assert!(refused.contains(problem) && refused.contains("--set:1:"), "{keys}: {refused}");
    }
}

/// Moving nodes over links that fade and lose, under agents that have nothing in common.
fn lively(arm: &str, traffic: &str) -> Results {
    let text =
        CHAIN.replace("  x: {", "  y: { receiver: dca, sender: [cubic, tell-cwnd, \"limit:2\"] }\n  x: {");
    let sets = [
        "run={ duration: 30s }",
        "topology={ kind: random, nodes: 12, width_m: 500, height_m: 300 }",
        "mobility={ speed_mps: [1, 20] }",
        "channel={ shadowing_db: 3, fading: rayleigh, doppler_hz: 5, loss: 2% }",
        &format!("traffic=[{traffic}]"),
    ];
    crate::sim::run(&read(&text, &sets).plan(Some(arm), 3).expect("a plan").plan).expect("it runs")
}

#[test]
fn an_arm_changes_nothing_but_what_its_agents_do() {
    let traffic = "{ from: first, to: last, kind: cbr, every: { mean: 20ms }, start: { from: 0s, to: 2s }, flows: 3 }, \
                   { from: n3, to: n7, kind: saturated }";
    let (x, y) = (lively("x", traffic), lively("y", traffic));
    assert!(x.flows[1].bytes_delivered > 0 && x.flows[3].bytes_delivered > 0, "{:?}", x.flows);
    assert_eq!(x, y);
}

#[test]
fn what_programs_draw_is_the_same_whatever_the_network_makes_of_it() {
    let traffic = "{ from: first, to: last, kind: request, request: 100B, response: { mean: 2kB }, repeat: 4 }, \
                   { from: last, to: first, kind: cbr, every: { mean: 200ms }, stop: 25s }";
    let drawn = |arm: &str, seed| {
        let text =
            CHAIN.replace("  x: {", "  y: { receiver: \"delayed:d=4,hold=400ms\", sender: [cubic] }\n  x: {");
        let scenario = read(&text, &["run={ duration: 30s }", &format!("traffic=[{traffic}]")]);
        let results =
            crate::sim::run(&scenario.plan(Some(arm), seed).expect("a plan").plan).expect("it runs");
        let took = results.flows[0].completions.map(|completions| completions.total_ns);
        (results.flows[1].bytes_delivered, results.flows[2].sender.segments_sent, took)
    };
    let (x, y, other) = (drawn("x", 1), drawn("y", 1), drawn("x", 2));
    assert_eq!((x.0, x.1), (y.0, y.1));
    assert_ne!(x.2, y.2, "the arms did differ");
    assert!(x.0 != other.0 && x.1 != other.1);
}

/// `dca` and `pgy` need options that the other end does not offer: each falls back, and the result shows it.
#[test]
fn what_the_peer_did_not_agree_to_stands_in_the_result() {
    let traffic = "{ from: first, to: last, kind: bulk, bytes: 20kB }";
    let done = result_with(traffic, &["arms={ x: { receiver: dca, sender: [newreno, pgy] } }"]);
    let flow = &done.flows[0];
    assert_eq!(
        (&flow.receiver_lacks[..], &flow.sender_lacks[..]),
        (&["peer-cwnd".to_owned()][..], &["dup-count".to_owned()][..])
    );
    assert_eq!((flow.hops, flow.hops_source.as_deref()), (Some(2), Some("routing")));
    let done = result_with(traffic, &["arms={ x: { receiver: dca, sender: [newreno, tell-cwnd] } }"]);
    assert_eq!((done.flows[0].receiver_lacks.len(), done.flows[0].sender_lacks.len()), (0, 0));
}

/// Both ends obey ACK-rate requests and make the offers of a sender of requests: only the data shows the lack.
#[test]
fn a_peer_that_never_asks_stands_in_the_result_whether_its_data_ends_or_not() {
    for traffic in ["bytes: 20kB", "start: 0s"] {
        let traffic = format!("{{ from: first, to: last, kind: bulk, {traffic} }}");
        let lacks = |sender: &str| {
            let arms = format!("arms={{ x: {{ receiver: tarr, sender: {sender} }} }}");
            result_with(&traffic, &[&arms]).flows[0].receiver_lacks.clone()
        };
        assert_eq!(lacks("[newreno]"), ["rate-request"], "{traffic}");
        assert_eq!(lacks("[newreno, \"ask-rate:4\"]"), [""; 0], "{traffic}");
    }
}

/// The peer's FIN comes without data as well. Each packet is lost for which an interface queue of two has no room.
#[test]
fn packets_of_a_flow_that_has_ended_have_arrived_or_are_lost() {
    let run = |traffic: &str, more: &[&str]| result_with(traffic, more);
    let lost = |run: &RunResult| {
        [metric::segments_lost(run), metric::acks_lost(run)].map(|lost| lost.expect("it is counted"))
    };
    let whole = run("{ from: first, to: last, kind: bulk, bytes: 100kB }", &["tcp.recv_buffer=4KiB"]);
    let flow = &whole.flows[0];
    assert_eq!((flow.segments_arrived, flow.acks_sent, flow.acks_arrived), (Some(100), Some(100), Some(101)));
    assert_eq!(lost(&whole), [0.0, 0.0]);
    let cut = run("{ from: first, to: last, kind: bulk, stop: 18s }", &["radio.queue_packets=2"]);
    let ([segments, acks], dropped) = (lost(&cut), cut.air.queue_drops.expect("it is counted") as f64);
    assert!(segments > 0.0 && segments + acks >= dropped, "{segments} {acks} {dropped}");
}

/// The arm's agents fill the gaps of a rule. Shadows may also observe an arm as a whole.
#[test]
fn a_rule_that_names_shadows_alone_leaves_the_arm_its_agents() {
    let traffic = "{ from: first, to: last, kind: bulk, bytes: 200kB }";
    let arm = "arms={ x: { receiver: delayed, sender: [newreno, \"limit:4\"], shadows: [immediate] } }";
    let of = |more: &[&str]| result_with(traffic, &[&[arm], more].concat()).flows.remove(0);
    let watched = of(&[]);
    assert_eq!((&*watched.receiver, watched.sender.len()), ("delayed", 2));
    assert_eq!(watched.shadows.iter().map(|shadow| &*shadow.receiver).collect::<Vec<_>>(), ["immediate"]);
    assert!(Some(watched.shadows[0].acks) > watched.acks_sent, "{watched:?}");
    assert_eq!(watched.shadows[0].mean_hold_ms, Some(0.0));
    let ruled = of(&["rules=[{ shadows: [\"delayed:4\", delayed] }]"]);
    assert_eq!((&*ruled.receiver, ruled.sender.len()), ("delayed", 2));
    let acks: Vec<_> = ruled.shadows.iter().map(|shadow| shadow.acks).collect();
    // One ACK of the live agent went with the FIN.
    assert!(acks[0] < acks[1] && Some(acks[1]) == ruled.acks_sent.map(|acks| acks + 1), "{ruled:?}");
    assert_eq!(ruled.goodput_kbps, watched.goodput_kbps, "nobody is disturbed");
}

#[test]
fn packets_of_every_flow_set_out_with_the_hop_limit_that_routing_gives_them() {
    let flows = "{ from: first, to: last, kind: bulk }, { from: first, to: last, kind: cbr, every: 50ms }";
    let sets = ["routing={ protocol: aodv, rules: ns2, data_hop_limit: 7 }", "run={ duration: 2s }"];
    let scenario = scenario(flows, &sets);
    let arm = scenario.under("x").expect("an arm");
    assert_eq!(arm.settings()["tcp"]["in_force"]["hop_limit"], 7);
    let plan = arm.prepare(1).expect("a plan").plan;
    assert_eq!(plan.flows.iter().map(|flow| flow.traffic.hop_limit()).collect::<Vec<_>>(), [7, 7]);
    let limits = Rc::new(RefCell::new(BTreeSet::new()));
    let sink = Rc::clone(&limits);
    let mut simulation = Simulation::new(&plan).expect("it is built");
    simulation.world().set_frames(Box::new(move |_, packet| {
        let is_aodv = packet.get(22..24) == Some(&[2, 142]);
        if let [.., hop_limit, protocol] = packet.get(..10).unwrap_or_default()
            && !is_aodv
        {
            sink.borrow_mut().insert((*protocol, *hop_limit));
        }
    }));
    simulation.run_until(plan.end());
    let first = |protocol| limits.borrow().iter().filter(|(of, _)| *of == protocol).map(|(_, n)| *n).max();
    assert_eq!((first(6), first(17)), (Some(7), Some(7)), "{limits:?}");
}

#[test]
fn a_saturated_flow_sends_also_while_its_datagrams_find_no_place_in_the_queue() {
    let apart = "channel={ outages: [{ from: n0, to: n1, begins: 0s, ends: 20s }] }";
    for (set, other) in [
        ("routing={ protocol: aodv }", "channel={}"),
        ("routing={ protocol: dymo }", apart),
        ("routing={ protocol: aodv }", apart),
        ("radio={ queue_packets: 2 }", "channel={}"),
    ] {
        let sets =
            [set, other, "run={ duration: 30s }", "traffic=[{ from: first, to: last, kind: saturated }]"];
        let results = crate::sim::run(&plan_of(CHAIN, &sets)).expect("it runs");
        assert!(results.flows[0].bytes_delivered > 100_000, "{set}: {:?}", results.flows);
    }
}

#[test]
fn a_probe_needs_its_interval_room_for_a_number_and_a_load_beside_it() {
    let probe = |keys: &str| {
        let flow = "{ from: first, to: last, kind: bulk }";
        refused(&[&format!("traffic=[{flow}, {{ from: first, to: last, kind: probe{keys} }}]")])
    };
    assert!(probe("").contains("`kind: probe` needs `every`"), "{}", probe(""));
    assert!(probe(", every: 0s").contains("every: 0s is out of range"), "{}", probe(", every: 0s"));
    let small = probe(", every: 1s, segment_bytes: 7");
    assert!(small.contains("no room for its number") && small.contains("8 bytes or more"), "{small}");
    assert!(probe(", rate: 1kbit").contains("`rate` belongs to another kind"), "{}", probe(", rate: 1kbit"));
    let alone = refused(&["traffic=[{ from: first, to: last, kind: probe, every: 1s }]"]);
    assert!(alone.contains("all flows are in the background"), "{alone}");
}

/// Kinds for an operator who writes no sizes: their values stand in the settings, and the file's own go before them.
#[test]
fn kinds_for_operators_have_sizes_and_pauses_that_a_file_may_replace() {
    let settings = |flow: &str| {
        let flows = format!("{{ from: first, to: last, {flow} }}, {{ from: first, to: last, kind: bulk }}");
        scenario(&flows, &[]).only(None).expect("it is sound").settings()["traffic"][0].clone()
    };
    let web = settings("kind: web");
    assert_eq!((&web["kind"], &web["request"]), (&"web".into(), &"500B".into()), "{web}");
    assert!(web["response"]["mean"].is_string() && web["think"]["mean"] == "2s", "{web}");
    let own = settings("kind: web, think: 1s, request: 9kB");
    assert_eq!((&own["think"], &own["request"]), (&"1s".into(), &"9kB".into()), "{own}");
    let iot = settings("kind: iot");
    assert_eq!(
        (&iot["request"], &iot["response"], &iot["think"]["mean"]),
        (&"100B".into(), &"20B".into(), &"5s".into())
    );
    let voice = settings("kind: voice");
    assert_eq!((&voice["every"], &voice["segment_bytes"]), (&"20ms".into(), &172.into()), "{voice}");
    let refused = refused(&["traffic=[{ from: first, to: last, kind: web, bytes: 1kB }]"]);
    assert!(refused.contains("`bytes` belongs to another kind of traffic"), "{refused}");
}

#[test]
fn pages_calls_and_sensors_run_beside_each_other() {
    let kinds = ["web", "iot", "voice"].map(|kind| format!("{{ from: first, to: last, kind: {kind} }}"));
    let run = result(&kinds.join(", "));
    let flow = |id: &str| run.flows.iter().find(|flow| flow.id == id).expect("it ran");
    let done = |id: &str| flow(id).completed.map_or(0, |completed| completed.count);
    assert!(done("f0") > 2 && done("f1") > 2, "{run:?}");
    let call = flow("f2").probe.as_ref().expect("it is a probe");
    assert!(call.sent > 800 && call.answered > 400, "50 datagrams a second: {call:?}");
    assert!(flow("f2").background && !flow("f1").background, "a call carries no goodput");
}
