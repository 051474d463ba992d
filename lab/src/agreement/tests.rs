use super::*;
use crate::report::tests::{record, trial};
use crate::result::{Completed, Live, RoundTripQuantiles};

/// A world in which each arm has five blocks around its mean.
fn world(name: &str, means: &[(&str, f64)]) -> InWorld {
    let arms: Vec<&str> = means.iter().map(|(arm, _)| *arm).collect();
    let trial = Trial { world: name.to_owned(), ..trial(&arms, &[4]) };
    let blocks = |(arm, mean): &(&str, f64)| {
        let (arm, mean) = ((*arm).to_owned(), *mean);
        (1..=5).map(move |block| record(4, &arm, block, mean * (1.0 + f64::from(block % 3) / 200.0)))
    };
    InWorld { trial, records: means.iter().flat_map(blocks).collect() }
}

fn verdicts(agreement: &Agreement, arm: &str) -> Vec<ComparisonVerdict> {
    let of_arm = agreement.points[0].arms.iter().find(|of_arm| of_arm.arm == arm).expect("it ran");
    of_arm.comparisons.iter().map(|comparison| comparison.verdict).collect()
}

#[test]
fn an_arm_agrees_within_five_percent_and_each_world_stands_against_the_first() {
    let sim = world("sim", &[("delayed", 300.0), ("dca", 350.0)]);
    let netns = world("netns", &[("delayed", 303.0), ("dca", 280.0)]);
    let hwsim = world("hwsim", &[("delayed", 200.0), ("dca", 352.0)]);
    let found = Agreement::of(&[sim, netns, hwsim]);
    assert_eq!(found.worlds, ["sim", "netns", "hwsim"]);
    assert_eq!(verdicts(&found, "delayed"), [ComparisonVerdict::NoDifference, ComparisonVerdict::Slower]);
    assert_eq!(verdicts(&found, "dca"), [ComparisonVerdict::Slower, ComparisonVerdict::NoDifference]);
    let text = found.text();
    assert!(text.contains("dca in netns is 20 % slower than dca in sim"), "{text}");
    assert!(text.contains("delayed in netns and delayed in sim do not differ by more than 5 %"), "{text}");
}

#[test]
fn an_arm_that_one_world_cannot_run_is_compared_among_the_others_and_stands_in_no_order() {
    let sim = world("sim", &[("delayed", 300.0)]);
    let netns = world("netns", &[("delayed", 300.0), ("kernel", 250.0)]);
    let hwsim = world("hwsim", &[("delayed", 300.0), ("kernel", 200.0)]);
    let found = Agreement::of(&[sim, netns, hwsim]);
    assert_eq!(verdicts(&found, "kernel"), [ComparisonVerdict::Slower]);
    assert!(found.text().contains("kernel in hwsim is 20 % slower than kernel in netns"));
    assert!(found.points[0].orders.iter().all(|order| order.arms == ["delayed"]));
}

#[test]
fn arms_in_another_order_are_told_only_if_both_worlds_are_sure() {
    let sim = world("sim", &[("delayed", 300.0), ("dca", 350.0)]);
    let turned = world("netns", &[("delayed", 350.0), ("dca", 300.0)]);
    let found = Agreement::of(&[sim.clone(), turned]);
    let contradiction = &found.points[0].contradictions[..];
    let [Contradiction { figure: None, faster, slower, world: at, elsewhere }] = contradiction else {
        panic!("{contradiction:?}");
    };
    assert_eq!([faster, slower, at, elsewhere], ["dca", "delayed", "sim", "netns"]);
    assert!(found.text().contains("dca is faster than delayed in sim, and slower in netns."));
    let alike = world("netns", &[("delayed", 350.5), ("dca", 350.0)]);
    let found = Agreement::of(&[sim, alike]);
    assert_eq!(found.points[0].orders[1].arms, ["delayed", "dca"], "by means alone");
    assert!(found.text().contains("No two arms are surely in another order."));
}

#[test]
fn what_was_measured_beside_stands_with_each_world_and_is_absent_where_unknown() {
    let mut worlds = [world("sim", &[("dca", 300.0)]), world("netns", &[("dca", 300.0)])];
    for record in worlds.iter_mut().flat_map(|world| &mut world.records) {
        let trips = RoundTripQuantiles { count: 9, median_ms: 412.0, p95_ms: 980.0, p99_ms: 1200.0 };
        record.result.flows[0].round_trips = Some(trips);
    }
    let found = Agreement::of(&worlds);
    let of_world = |nth: usize| &found.points[0].arms[0].worlds[nth].beside;
    assert!(
        [0, 1].iter().all(|nth| of_world(*nth).contains(&("rtt_median_ms", Some(412.0)))),
        "both have it"
    );
    let measured = &found.points[0].arms[0].worlds[1];
    let known =
        |name: &str| measured.beside.iter().find(|(metric, _)| *metric == name).and_then(|(_, mean)| *mean);
    assert_eq!([known("queue_drops"), known("rtt_ms"), known("other_airtime_s")], [Some(5.0), None, None]);
    let json: serde_json::Value = serde_json::from_str(&found.json()).expect("JSON");
    assert_eq!(json["points"][0]["arms"][0]["worlds"][1]["world"], "netns");
    assert_eq!(json["points"][0]["arms"][0]["worlds"][1]["beside"]["queue_drops"], 5.0);
}

#[test]
fn worlds_are_compared_by_the_figures_that_decide() {
    let mut worlds = [
        world("sim", &[("delayed", 300.0), ("dca", 300.0)]),
        world("netns", &[("delayed", 300.0), ("dca", 300.0)]),
    ];
    for (world, times) in worlds.iter_mut().zip([[1.0, 2.0], [3.0, 1.5]]) {
        world.trial.figures = vec!["completion_s".to_owned()];
        for record in &mut world.records {
            let mean_s = times[usize::from(record.arm == "dca")] + f64::from(record.block) / 1e3;
            record.result.flows[0].completed = Some(Completed {
                count: 9,
                mean_s: Some(mean_s),
                longest_s: 9.0,
                median_s: None,
                p95_s: None,
            });
        }
    }
    let found = Agreement::of(&worlds);
    let text = found.text();
    assert!(
        text.starts_with("topology.hops = 4\nBy completion_s, in s; less is better:\narm      world      s"),
        "{text}"
    );
    assert!(
        text.contains("delayed in netns is worse than delayed in sim in completion_s: 2.99 times as much"),
        "{text}"
    );
    assert!(text.contains("Order in sim, by means of completion_s: delayed, dca."), "{text}");
    assert!(text.contains("Order in netns, by means of completion_s: dca, delayed."), "{text}");
    assert!(
        text.contains("By completion_s delayed is better than dca in sim, and worse in netns."),
        "{text}"
    );
    let json: serde_json::Value = serde_json::from_str(&found.json()).expect("it is JSON");
    let measured = &json["points"][0]["arms"][0]["worlds"][0];
    assert!(
        measured["figures"]["completion_s"]["mean"].is_f64() && measured["goodput_kbps"]["mean"] == 301.8,
        "{measured}"
    );
    assert_eq!(json["points"][0]["contradictions"][0]["figure"], "completion_s");
}

/// The worlds with these counts of two costs in each run, and a spread that blocks have in common.
fn with_costs(worlds: &mut [InWorld], costs: &[[u64; 2]]) {
    for (world, [collisions, retry_drops]) in worlds.iter_mut().zip(costs) {
        for record in &mut world.records {
            let spread = u64::from(record.block % 3);
            record.result.air.collisions = Some(collisions + spread);
            record.result.air.retry_drops = Some(retry_drops + spread);
        }
    }
}

/// The sentences about costs, and that nothing explains a difference.
fn causes_told(worlds: &[InWorld]) -> Vec<String> {
    let text = Agreement::of(worlds).text();
    let lines = text.lines().filter(|line| line.starts_with("Costs of") || line.starts_with("Nothing that"));
    lines.map(str::to_owned).collect()
}

#[test]
fn a_difference_has_the_costs_of_which_the_worse_world_has_surely_more() {
    let means = |netns| [world("sim", &[("dca", 300.0)]), world("netns", &[("dca", netns)])];
    let unexplained = ["Nothing that was measured explains why dca is worse in netns."];
    let mut slower = means(240.0);
    with_costs(&mut slower, &[[40, 100], [130, 150]]);
    assert_eq!(
        causes_told(&slower),
        ["Costs of which netns has surely more for dca: packets given up (151.2 against 101.2 in sim), \
          collisions (131.2 against 41.2)."]
    );
    // A count of which the other world has none hides no larger one.
    with_costs(&mut slower, &[[400, 0], [900, 10]]);
    let told = causes_told(&slower);
    assert!(told[0].contains("packets given up (11.2") && told[0].contains("collisions (901.2"), "{told:?}");
    // The world that is better has more of both: that costs it something, and explains nothing.
    with_costs(&mut slower, &[[130, 150], [40, 100]]);
    assert_eq!(causes_told(&slower), unexplained);
    // They differ less than their spread.
    with_costs(&mut slower, &[[40, 100], [41, 101]]);
    assert_eq!(causes_told(&slower), unexplained);
    // The later world is faster: the cost is the first one's.
    let mut faster = means(360.0);
    with_costs(&mut faster, &[[40, 200], [39, 100]]);
    assert_eq!(
        causes_told(&faster),
        ["Costs of which sim has surely more for dca: packets given up (201.2 against 101.2 in netns)."]
    );
    let json: serde_json::Value = serde_json::from_str(&Agreement::of(&faster).json()).expect("JSON");
    let cause = &json["points"][0]["arms"][0]["causes"][0];
    assert_eq!((&cause["world"], &cause["found"][0]["measured"]), (&"sim".into(), &"retry_drops".into()));
    let mut alike = means(303.0);
    with_costs(&mut alike, &[[40, 100], [130, 150]]);
    assert!(causes_told(&alike).is_empty(), "worlds that agree need no cause");
}

#[test]
fn lateness_of_two_milliseconds_is_a_cost_beside_virtual_time() {
    let mut worlds = [world("sim", &[("dca", 300.0)]), world("netns", &[("dca", 240.0)])];
    with_costs(&mut worlds, &[[40, 100], [40, 100]]);
    let mut late = |air_late_ms| {
        for record in &mut worlds[1].records {
            record.result.live = Some(Live { air_late_ms, ..Live::default() });
        }
        causes_told(&worlds)
    };
    assert_eq!(late(1.9), ["Nothing that was measured explains why dca is worse in netns."]);
    assert_eq!(
        late(4.0),
        [
            "Costs of which netns has surely more for dca: milliseconds by which radios were late (4.0 against 0.0 in \
          sim)."
        ]
    );
}

#[test]
fn airtime_of_no_tcp_is_told_by_its_kind_and_in_older_records_as_one() {
    let mut worlds = [world("sim", &[("dca", 300.0)]), world("netns", &[("dca", 300.0)])];
    for (nth, world) in worlds.iter_mut().enumerate() {
        for record in &mut world.records {
            let air = &mut record.result.air;
            (air.airtime_s, air.data_airtime_s, air.ack_airtime_s) = (Some(60.0), Some(40.0), Some(10.0));
            if nth == 1 {
                air.beacon_airtime_s = Some(4.0);
                air.arp_airtime_s = Some(1.0);
                air.routing_airtime_s = Some(3.0);
            }
        }
    }
    let found = Agreement::of(&worlds);
    let known = |world: usize, name: &str| {
        let beside = &found.points[0].arms[0].worlds[world].beside;
        beside.iter().find(|(metric, _)| *metric == name).and_then(|(_, mean)| *mean)
    };
    let names = ["beacon_airtime_s", "arp_airtime_s", "routing_airtime_s", "other_airtime_s"];
    assert_eq!(names.map(|name| known(0, name)), [None, None, None, Some(10.0)]);
    assert_eq!(names.map(|name| known(1, name)), [Some(4.0), Some(1.0), Some(3.0), Some(2.0)]);
}
