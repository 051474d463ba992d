use super::*;

const CHAIN: &str = include_str!("../../configs/calibration/ns2-chain.yaml");

fn refused(sets: &[&str]) -> String {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let planned =
        Scenario::parse("a.yaml", CHAIN, &sets).map_err(NoPlan::Refused).and_then(|s| s.plan(None, 1));
    match planned {
        Err(NoPlan::Refused(refusal)) => refusal.to_string(),
        other => panic!("{sets:?}: {other:?}"),
    }
}

#[test]
fn calibration_file_gives_any_cell_by_what_is_set() {
    let sets = ["topology.hops=8", "radio.profile=dsss-11mbps", "arms.x.sender=[newreno, \"limit:4\"]"];
    let scenario = Scenario::parse("a", CHAIN, &sets.map(str::to_owned)).expect("it is read");
    let Prepared { plan, names, senders } = scenario.plan(None, 3).expect("it is a plan");
    assert_eq!((plan.places.len(), names.len(), plan.phy.name), (9, 9, "dsss-11mbps"));
    assert_eq!((senders, plan.seed), (vec!["newreno".to_owned(), "limit:4".to_owned()], 3));
    assert_eq!((plan.duration.as_secs(), plan.warmup.as_secs()), (300, 50));
}

#[test]
fn what_makes_no_sense_is_refused_where_it_stands() {
    for (set, problem) in [
        ("topology.hops=0", "--set:1:15: hops: 0"),
        ("topology.hops=1000000", "hops: 1000000"),
        ("topology.hops=-1", "--set:1:15: invalid value"),
        ("topology.spacing_m=0", "spacing_m: 0"),
        ("topology.kind=grid", "`hops` belongs to another kind"),
        ("radio.profile=dsss-3mbps", "no profile is called `dsss-3mbps`"),
        ("radio.rts_threshold=-4", "`-4`"),
        ("run.duration=-3s", "`-3s`"),
        ("run.duration=10s", "the warm-up leaves nothing"),
        ("world=mesh", "unknown variant `mesh`"),
        ("routing.protocol=olsr", "unknown variant `olsr`"),
        ("traffic.0.to=n9", "no node is called `n9`"),
        ("traffic.0.to=first", "are the same node"),
        ("arms.x.receiver=imediate", "imediate"),
        ("arms.x.sender=[\"limit:4\"]", "sender"),
        ("arms={}", "no arm"),
        ("mac.rule=ns2", "unknown field `rule`"),
        ("channel={ shadowing_db: -1 }", "shadowing_db: -1"),
        ("channel={ fading: rayleigh }", "`doppler_hz` is missing"),
        ("channel={ outages: [{ from: n0, to: n9, begins: 1s, ends: 2s }] }", "no node is called `n9`"),
        ("channel={ outages: [{ from: n0, to: n1, begins: 2s, ends: 1s }] }", "ends before it begins"),
    ] {
        let refused = refused(&[set]);
        assert!(refused.contains(problem), "{set}: {refused}");
    }
}

#[test]
fn an_arm_must_be_named_where_there_are_several_and_changes_what_it_sets() {
    let text = include_str!("../../configs/chain.yaml");
    let scenario = Scenario::parse("chain", text, &[]).expect("it is read");
    let Err(NoPlan::WhichArm { arms }) = scenario.plan(None, 1) else { panic!("several arms") };
    assert_eq!(arms, ["delayed", "every", "far"]);
    let nodes = |arm| scenario.plan(Some(arm), 1).expect("a plan").plan.places.len();
    assert_eq!((nodes("every"), nodes("far")), (9, 13));
}

#[test]
fn shapes_put_nodes_where_they_belong() {
    let places = |topology: &str| {
        let set = format!("topology={topology}");
        let scenario = Scenario::parse("a", CHAIN, &[set]).expect("it is read");
        scenario.plan(None, 1).expect("a plan").plan
    };
    let cross = places("{ kind: cross, arm: 2 }").places;
    assert_eq!((cross.len(), cross[2].map(|p| (p.x, p.y))), (9, Some((0.0, 0.0))));
    let grid = places("{ kind: grid, rows: 2, columns: 3, spacing_m: 100 }").places;
    assert_eq!(grid[5].map(|p| (p.x, p.y)), Some((200.0, 100.0)));
    let random = places("{ kind: random, nodes: 50, width_m: 1500, height_m: 300 }").places;
    assert!(random.iter().flatten().all(|p| (0.0..1500.0).contains(&p.x) && (0.0..300.0).contains(&p.y)));
    let hybrid = places("{ kind: chain, hops: 2, wired: { rate: 10mbit, delay: 50ms } }");
    assert_eq!((hybrid.places.len(), hybrid.places[0], hybrid.wires.len()), (4, None, 1));
}
