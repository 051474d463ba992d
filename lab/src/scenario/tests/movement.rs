//! Nodes that move: files of movements, and walks of the scenario itself.

use super::{CHAIN, Plan, plan_of, read, refused};

/// A file for the length of a test.
fn with_file(name: &str, text: &str, test: impl FnOnce(&str)) {
    let path = std::env::temp_dir().join(format!("hopwise-{}-{name}", std::process::id()));
    std::fs::write(&path, text).expect("it is written");
    test(&path.display().to_string());
    std::fs::remove_file(&path).expect("it is removed");
}

/// The plan of nodes that move as a file says.
fn walking(file: &str) -> Plan {
    plan_of(CHAIN, &[&format!("topology={{ kind: movements, file: \"{file}\" }}")])
}

/// BonnMotion's file of that walk.
const WAYPOINTS: &str = "0.0 0.0 0.0\n0.0 900.0 0.0 2.0 900.0 0.0 18.0 100.0 0.0\n";

const WALK: &str = "$node_(0) set X_ 0.0\n$node_(0) set Y_ 0.0\n$node_(1) set X_ 900.0\n$node_(1) set Y_ 0.0\n\
                    $ns_ at 2.0 \"$node_(1) setdest 100.0 0.0 50.0\"\n";

#[test]
fn movement_files_are_read_and_refused_with_their_line() {
    with_file("walk.tcl", WALK, |file| {
        let plan = walking(file);
        assert_eq!((plan.positions.len(), plan.tracks.len()), (2, 2));
    });
    with_file("walk.movements", WAYPOINTS, |file| {
        with_file("same.tcl", WALK, |same| {
            let [ours, theirs] =
                [file, same].map(walking).map(|plan| format!("{:?} {:?}", plan.positions, plan.tracks));
            let pause = "Leg { from_ns: 0, until_ns: 2000000000, start: Position { x: 900.0, y: 0.0 }";
            assert!(!ours.contains(pause), "a pause is no leg: {ours}");
            assert_eq!(ours, theirs, "the same walk in two forms");
        });
    });
    with_file("high.movements", "0 0 0 0\n", |file| {
        let refused = refused(&[&format!("topology={{ kind: movements, file: \"{file}\" }}")]);
        let problem = format!("{file}:1:7: 4 numbers, expected three for each waypoint");
        assert!(refused.contains(&problem) && refused.contains("BonnMotion's"), "{refused}");
    });
    let cut = &WALK[..WALK.len() - 8];
    with_file("cut.tcl", cut, |file| {
        let refused = refused(&[&format!("topology={{ kind: movements, file: \"{file}\" }}")]);
        assert!(refused.contains(&format!("{file}:5:1: ")), "{refused}");
    });
    with_file("walk.xy", "0 0\n200 0\n200 x\n", |file| {
        let refused = refused(&[&format!("topology={{ kind: file, file: \"{file}\" }}")]);
        assert!(refused.contains(&format!("{file}:3: `200 x` is no place")), "{refused}");
    });
}

#[test]
fn who_moves_may_begin_out_of_range_and_static_routes_stay_those_of_the_beginning() {
    with_file("near.tcl", WALK, |file| {
        let plan = plan_of(
            CHAIN,
            &[&format!("topology={{ kind: movements, file: \"{file}\" }}"), "run={ duration: 60s }"],
        );
        assert_eq!(crate::sim::run(&plan).expect("it runs").flows[0].bytes_delivered, 0);
    });
}

#[test]
fn flows_live_among_nodes_that_move_and_the_same_seed_moves_them_the_same_way() {
    let sets = [
        "topology.hops=1",
        "run={ duration: 30s }",
        "mobility={ speed_mps: [1, 5], pause: 1s, width_m: 150, height_m: 150 }",
        "channel={ fading: rician, k: 4, doppler_hz: 3, links: [link n0->n1 loses 1%] }",
    ];
    let scenario = read(CHAIN, &sets);
    let run = |seed| crate::sim::run(&scenario.plan(None, seed).expect("a plan").plan).expect("it runs");
    let first = run(1);
    assert!(first.flows[0].bytes_delivered > 1_000_000, "{:?}", first.flows);
    assert_eq!(first, run(1));
    assert_ne!(first, run(2));
}

#[test]
fn who_is_to_stay_stands_where_it_is_said_and_all_others_walk_as_they_would() {
    let plan = |still: &str| {
        plan_of(CHAIN, &[&format!("mobility={{ speed_mps: [1, 5], width_m: 900, height_m: 300{still} }}")])
    };
    let (all, some) = (plan(""), plan(", still: { n0: [0, 150], n2: [900, 20.5] }"));
    let spot = |node: usize| some.positions[node].map(|place| (place.x, place.y));
    assert_eq!((spot(0), spot(2)), (Some((0.0, 150.0)), Some((900.0, 20.5))));
    assert_eq!((some.positions[1], some.positions.len()), (all.positions[1], all.positions.len()));
    let stays: Vec<_> = (0..some.tracks.len()).filter(|node| some.tracks[*node].is_none()).collect();
    assert_eq!(stays, [0, 2]);
    for (still, problem) in
        [("{ n99: [1, 1] }", "no node is called `n99`"), ("{ n0: [1, 6] }", "1, 6 is outside")]
    {
        let set = format!("mobility={{ speed_mps: [1, 5], width_m: 5, height_m: 5, still: {still} }}");
        let refused = refused(&[&set]);
        assert!(refused.contains(problem), "{refused}");
    }
    let apart =
        "mobility={ speed_mps: [1, 5], width_m: 9000, height_m: 5, still: { n0: [0, 1], n1: [9000, 1] } }";
    let refused = refused(&["topology.hops=1", apart]);
    assert!(refused.contains("no route leads"), "nobody walks: {refused}");
}

#[test]
fn the_file_of_bonnmotion_s_that_comes_with_hopwise_runs() {
    let text = include_str!("../../../../configs/walk.yaml");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/walk.movements");
    let plan = plan_of(text, &[&format!("topology.file={file}"), "run.duration=60s"]);
    assert_eq!((plan.positions.len(), plan.tracks.len()), (4, 4));
    let result = crate::sim::run(&plan).expect("it runs");
    assert!(result.flows[0].bytes_delivered > 500_000, "{:?}", result.flows);
}

#[test]
fn the_file_that_shows_moving_nodes_makes_a_plan_for_any_seed() {
    let scenario = read(include_str!("../../../../configs/moving.yaml"), &[]);
    for seed in 1..6 {
        let plan = scenario.plan(Some("delayed"), seed).expect("a plan").plan;
        assert_eq!((plan.positions.len(), plan.tracks.len(), plan.channel.links.len()), (20, 20, 2));
        assert_eq!(plan.channel.outages.len(), 1);
    }
}
