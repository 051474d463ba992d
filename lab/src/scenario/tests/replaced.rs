//! Values set over a file, in the readings alone that leave them to the file.

use super::{CHAIN, owned, read};
use crate::findings::label;
use crate::scenario::{LeftOut, Replaced};

fn replacing(sweep: &str, sets: &[&str]) -> Replaced {
    read(&format!("{CHAIN}{sweep}"), &[]).replacing(&owned(sets)).expect("values")
}

fn points(replaced: &Replaced) -> Vec<String> {
    let scenario = replaced.scenario.as_ref().expect("readings are left");
    scenario.asked().expect("it can be asked").cells.iter().map(|cell| label(&cell.point)).collect()
}

const RADIO: &str = "radio.profile=dsss-1mbps";

/// The file's own profile is dsss-2mbps.
const SWEPT: &str = "\
sweep:
  together:
    - radio.profile: [dsss-2mbps, dsss-2mbps, dsss-11mbps, dsss-11mbps]
      tcp.rto_min: [200ms, 1s, 200ms, 2s]
  named:
    slow and short: { radio.profile: dsss-2mbps, tcp.rto_min: 200ms }
    slow and long: { radio.profile: dsss-2mbps, tcp.rto_min: 1s }
    fast and short: { radio.profile: dsss-11mbps, tcp.rto_min: 200ms }
    fast: { radio.profile: dsss-11mbps }
    slow: { radio.profile: dsss-2mbps }
";

#[test]
fn readings_with_another_value_are_left_out_and_the_rest_has_what_is_set() {
    let replaced = replacing(SWEPT, &["mac.rules=standard", "radio.profile=ht20-mcs7"]);
    let paths = vec!["radio.profile".to_owned()];
    assert_eq!(replaced.left_out, LeftOut { readings: 2, of: 4, paths });
    assert_eq!(points(&replaced), ["tcp.rto_min = 200ms", "tcp.rto_min = 1s"]);
    assert_eq!(replaced.values["radio.profile"], "dsss-2mbps");
    let scenario = replaced.scenario.expect("readings are left");
    assert_eq!(label(&scenario.first_reading().expect("one")), "tcp.rto_min = 200ms");
    let names = scenario.names_of_readings().expect("names");
    let names: Vec<_> = names.iter().map(|(name, at)| (name.as_str(), label(at))).collect();
    let wanted = [("slow and short", "200ms"), ("slow and long", "1s")];
    assert_eq!(names, wanted.map(|(name, rto)| (name, format!("tcp.rto_min = {rto}"))));
    let cells = scenario.asked().expect("it can be asked").cells;
    let there = scenario.at(&cells[1]).and_then(|there| there.under("x")?.prepare(1)).expect("a plan");
    assert_eq!(there.plan.phy.name, "ht20-mcs7");
}

#[test]
fn further_values_may_be_set_over_the_readings_that_are_left() {
    let replaced = replacing(SWEPT, &[RADIO]);
    let scenario = replaced.scenario.expect("readings are left");
    let one = scenario.with(&["tcp.rto_min=1s".to_owned()]).expect("it can be set");
    let cells = one.asked().expect("it can be asked").cells;
    assert_eq!(cells.iter().map(|cell| label(&cell.point)).collect::<Vec<_>>(), [""]);
    let there = one.at(&cells[0]).and_then(|there| there.under("x")?.prepare(1)).expect("a plan");
    assert_eq!(there.plan.phy.name, "dsss-1mbps");
}

#[test]
fn what_is_set_over_a_file_that_sweeps_something_else_leaves_nothing_out() {
    let replaced = replacing("sweep: { tcp.rto_min: [200ms, 1s] }\n", &[RADIO]);
    assert_eq!(replaced.left_out, LeftOut { readings: 0, of: 2, paths: Vec::new() });
    assert_eq!(points(&replaced).len(), 2);
    assert_eq!(points(&replacing("", &[RADIO])), [""]);
}

#[test]
fn readings_that_set_it_in_a_whole_section_are_left_out_and_so_are_all_where_points_do() {
    let section = "sweep: { radio: [{ profile: dsss-2mbps }, { queue_packets: 5 }], tcp.rto_min: [1s] }\n";
    let replaced = replacing(section, &[RADIO]);
    assert_eq!((replaced.left_out.readings, replaced.scenario.is_none()), (2, true));
    let of_arm = "sweep: { arms.x.set: [{ tcp.rto_min: 1s }, { radio.profile: dsss-11mbps }] }\n";
    let replaced = replacing(of_arm, &[RADIO]);
    assert_eq!((replaced.left_out.readings, points(&replaced).len()), (1, 1));
    let of_points =
        "matrix: { radio.profile: [dsss-2mbps, dsss-11mbps] }\nsweep: { tcp.rto_min: [1s, 2s] }\n";
    let replaced = replacing(of_points, &[RADIO]);
    assert_eq!((replaced.left_out.readings, replaced.left_out.of), (2, 2));
    assert_eq!(replaced.left_out.paths, ["radio.profile"]);
}
