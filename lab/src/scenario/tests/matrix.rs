//! Points of a matrix, and refusals of invalid ones.

use super::{CHAIN, Scenario, read, shown};
use crate::findings::label;

fn with_matrix(matrix: &str, sets: &[&str]) -> Scenario {
    read(&format!("{CHAIN}matrix:\n{matrix}"), sets)
}

fn points(scenario: &Scenario) -> Vec<String> {
    scenario.asked().expect("it can be asked").cells.iter().map(|cell| label(&cell.point)).collect()
}

const CROSSED: &str = "  topology.hops: [1, 4]\n  radio.profile: [dsss-2mbps, dsss-11mbps]\n";

#[test]
fn paths_are_crossed_the_last_fastest() {
    let scenario = with_matrix(CROSSED, &[]);
    let expected =
        ["dsss-2mbps, topology.hops = 1", "dsss-11mbps, topology.hops = 1", "dsss-2mbps, topology.hops = 4"];
    let points = points(&scenario);
    assert_eq!(points.len(), 4);
    for (point, expected) in points.iter().zip(expected) {
        assert_eq!(point, &format!("radio.profile = {expected}"));
    }
    let cells = scenario.asked().expect("it can be asked").cells;
    let there = scenario.at(&cells[3]).and_then(|there| there.under("x")?.prepare(1)).expect("a plan").plan;
    assert_eq!((there.positions.len(), there.phy.name), (5, "dsss-11mbps"));
}

#[test]
fn groups_go_together_and_excluded_points_are_left_out() {
    let together = "  arms.x.receiver: [immediate, delayed]
  together:
    - radio.profile: [dsss-2mbps, dsss-11mbps]
      run.duration: [300s, 100s]
  exclude:
    - { radio.profile: dsss-11mbps, arms.x.receiver: delayed }
";
    let names = points(&with_matrix(together, &[]));
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!(names[1], "arms.x.receiver = immediate, radio.profile = dsss-11mbps, run.duration = 100s");
}

#[test]
fn what_is_set_varies_no_more_and_a_run_needs_one_point() {
    assert_eq!(
        points(&with_matrix(CROSSED, &["topology.hops=7"])),
        ["radio.profile = dsss-2mbps", "radio.profile = dsss-11mbps"]
    );
    let Err(super::NoPlan::Refused(refusal)) = with_matrix(CROSSED, &[]).plan(None, 1) else {
        panic!("four points")
    };
    assert!(shown(&refusal).contains("--set radio.profile=… --set topology.hops=…"), "{}", shown(&refusal));
    let one = with_matrix(CROSSED, &["topology.hops=7", "radio.profile=dsss-1mbps"]);
    assert_eq!(one.plan(None, 1).expect("one point").plan.positions.len(), 8);
}

#[test]
fn the_matrix_itself_can_be_set() {
    let set = |sets: &[&str]| points(&with_matrix("  topology.hops: [1, 4]\n", sets));
    assert_eq!(set(&["matrix.topology.hops=[7]"]), ["topology.hops = 7"]);
    assert_eq!(set(&["matrix.topology.hops.1=3"]), ["topology.hops = 1", "topology.hops = 3"]);
    assert_eq!(
        set(&["matrix.radio.profile=[dsss-1mbps]"])[1],
        "radio.profile = dsss-1mbps, topology.hops = 4"
    );
    assert_eq!(set(&["matrix=null"]), [""]);
}

#[test]
fn what_goes_together_may_repeat_one_value_and_is_one_point_where_the_other_is_set() {
    let together = "  together: [{ topology.hops: [1, 1, 4], radio.queue_packets: [10, 50, 50] }]\n";
    assert_eq!(points(&with_matrix(together, &[])).len(), 3);
    assert_eq!(
        points(&with_matrix(together, &["radio.queue_packets=20"])),
        ["topology.hops = 1", "topology.hops = 4"]
    );
}

#[test]
fn a_matrix_that_was_set_is_refused_where_it_was_set() {
    for (set, problem) in [
        ("matrix.topology.hops=[1, 4]", "a run has one point, and the matrix has 2"),
        ("matrix.topology.hops=[4, 4]", "`4` is there already"),
        ("matrix={ topology.hops: 4 }", "no list"),
        ("matrix={ topology.hopps: [4] }", "unknown field `hopps`"),
        ("matrix.together=[{ topology.hops: [] }]", "no list"),
        ("matrix.topology.hops=[4, none]", "a run has one point"),
    ] {
        let refused = super::refused(&[set]);
        assert!(refused.starts_with("--set:1:") && refused.contains(problem), "{set}: {refused}");
    }
    let key = super::refused(&["matrix={ topology.hopps: [4] }"]);
    assert!(key.starts_with("--set:1:10: "), "the key is wrong, and not its value: {key}");
    let far = read(CHAIN, &["matrix.topology.hops=[4, none]"]);
    let cells = far.asked().expect("it can be asked").cells;
    let refused = far.at(&cells[1]).expect_err("no number");
    assert!(shown(&refused).starts_with("--set:1:26: `none` does not fit here"), "{}", shown(&refused));
}

#[test]
fn an_arm_sets_nothing_that_the_matrix_varies() {
    for set in ["arms.x.set={ topology.hops: 3 }", "arms.x.set={ topology: { kind: chain, hops: 3 } }"] {
        let scenario = with_matrix(CROSSED, &[set]);
        let refused = shown(&scenario.asked().expect_err(set));
        assert!(
            refused.contains("the matrix varies `topology.hops`, and this would replace its values"),
            "{refused}"
        );
        let fixed = with_matrix(CROSSED, &[set, "topology.hops=7"]);
        assert_eq!(fixed.asked().expect("it varies no more").cells.len(), 2);
    }
    with_matrix(CROSSED, &["arms.x.set={ topology.spacing_m: 150 }"]).asked().expect("another path");
}

#[test]
fn what_is_excluded_holds_for_what_is_set_as_well_unless_all_of_it_is() {
    let without = format!("{CROSSED}  exclude: [{{ topology.hops: 1, radio.profile: dsss-2mbps }}]\n");
    let left = |sets: &[&str]| points(&with_matrix(&without, sets));
    assert_eq!(left(&[]).len(), 3);
    assert_eq!(left(&["topology.hops=1"]), ["radio.profile = dsss-11mbps"]);
    assert_eq!(left(&["topology.hops=4"]).len(), 2);
    assert_eq!(left(&["topology.hops=1", "radio.profile=dsss-2mbps"]), [""]);
}

#[test]
fn a_matrix_that_makes_no_sense_is_refused_where_it_stands() {
    let lines = CHAIN.lines().count();
    for (matrix, problem) in [
        ("  topology.hops: 4\n", "18: no list"),
        ("  topology.hops: []\n", "18: no list"),
        ("  arms: [1, 2]\n", "3: an arm cannot change the arms"),
        ("  run.seeds: [1, 2]\n", "3: it applies to the whole trial"),
        ("  together: [{ topology.hops: [1, 4], run.duration: [30s] }]\n", "53: 1 values"),
        ("  topology.hops: [1]\n  together: [{ topology.hops: [2] }]\n", "varies in another place already"),
        ("  topology.hops: [1]\n  exclude: [{ topology.hops: 2 }]\n", "no point has these values"),
        ("  topology.hops: [1]\n  exclude: [{ topology.hops: 1 }]\n", "no point is left"),
        ("  4: [1]\n", "a key that is no text"),
        ("  topology.hops: [1, 4, 4]\n", "25: `4` is there already"),
        ("  topology.hops: [1, 1.0]\n", "`1.0` is there already"),
        ("  topology: { hops: [2, 2] }\n", "`2` is there already"),
        ("  together: [{ topology.hops: [1, 1], run.duration: [60s, 60s] }]\n", "`1, 60s` is there already"),
    ] {
        let refused = with_matrix(matrix, &[]).asked().expect_err(matrix);
        let refused = shown(&refused);
        assert!(refused.contains(problem), "{matrix}: {refused}");
        assert!(refused.contains(&format!("a.yaml:{}", lines + 2)) || !problem.starts_with(char::is_numeric));
    }
    let far = with_matrix("  topology.hops: [1, 100000]\n", &[]);
    let cells = far.asked().expect("it can be asked").cells;
    let refused = far.at(&cells[1]).expect_err("too far");
    assert!(
        shown(&refused).starts_with(&format!("a.yaml:{}:22: hops: 100000", lines + 2)),
        "{}",
        shown(&refused)
    );
}

#[test]
fn a_sweep_multiplies_the_points_of_the_matrix_and_its_settings_are_told_apart() {
    let swept = "  topology.hops: [1, 2]\nsweep: { radio.queue_packets: [5, 50] }\n";
    let scenario = with_matrix(swept, &[]);
    let labels = points(&scenario);
    let wanted = ["radio.queue_packets = 5, topology.hops = 1", "radio.queue_packets = 5, topology.hops = 2"];
    assert_eq!((labels.len(), &labels[..2]), (4, &wanted.map(str::to_owned)[..]));
    assert_eq!(label(&scenario.first_reading().expect("a sweep")), "radio.queue_packets = 5");
    let fixed = with_matrix(swept, &["radio.queue_packets=9"]);
    assert!(fixed.first_reading().expect("a sweep").is_empty(), "a value that is set is no longer open");
    let named = swept.replace(" }", ", named: { short: { radio.queue_packets: 5 } } }");
    let names = with_matrix(&named, &[]).names_of_readings().expect("names");
    assert_eq!(
        names.iter().map(|(name, at)| (name.as_str(), label(at))).collect::<Vec<_>>(),
        [("short", "radio.queue_packets = 5".to_owned())]
    );
    assert_eq!(points(&with_matrix(&named, &[])), labels, "a name is no point");
    let nothing = with_matrix(&named.replace("packets: 5 }", "packets: 6 }"), &[]).names_of_readings();
    let refused = shown(&nothing.expect_err("a name of nothing"));
    assert!(refused.contains("no reading has these values"), "{refused}");
    let fixed = with_matrix(&named, &["radio.queue_packets=9"]).names_of_readings().expect("names");
    assert!(fixed.is_empty(), "nor has what is set a name");
    let twice = with_matrix(&swept.replace("radio.queue_packets", "topology.hops"), &[]);
    let refused = shown(&twice.asked().expect_err("it varies twice"));
    assert!(refused.contains("`topology.hops` varies in another place already"), "{refused}");
    let arm = with_matrix(swept, &["arms.x.set={ radio.queue_packets: 7 }"]);
    let refused = shown(&arm.asked().expect_err("an arm sets an open setting"));
    assert!(refused.contains("the sweep varies `radio.queue_packets`, and this would replace"), "{refused}");
}

/// Sections that stand whole in a grid are no exception.
#[test]
fn a_constant_that_the_protocol_of_its_section_does_not_know_is_refused() {
    let refusal = |section: &str| {
        let matrix = format!("  routing: [{{ protocol: static }}, {section}]\n");
        with_matrix(&matrix, &[]).asked().map(|_| ()).map_err(|refusal| shown(&refusal))
    };
    for (section, unknown) in [
        ("{ protocol: dsr, ack_seq: true }", "`ack_seq` changes nothing under the `protocol`"),
        ("{ hello: true }", "`hello` changes nothing under the `protocol`"),
        (
            "{ protocol: aodv, rules: ns2, max_repair_ttl: 3 }",
            "`max_repair_ttl` changes nothing under the `rules`",
        ),
    ] {
        let said = refusal(section).expect_err("it is refused");
        assert!(said.contains(unknown), "{section}: {said}");
    }
    for section in
        ["{ protocol: aodv, rules: ns2, ack_seq: true }", "{ protocol: dsr, dsr: { ack_seq: true } }"]
    {
        assert_eq!(refusal(section), Ok(()), "{section}");
    }
}
