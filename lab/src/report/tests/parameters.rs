//! The head of a report, and its table of parameters.

use std::collections::BTreeMap;

use serde_json::json;

use super::{Bundle, bundle, html, record, trial};

#[test]
fn a_section_without_entries_is_no_parameter_that_differs() {
    let mut whole = bundle();
    for record in &mut whole.records {
        let own = if record.arm == "every" { json!({}) } else { json!({ "w": 3 }) };
        record.settings["arm"] = json!({ "parameters": { "receiver": own } });
    }
    let html = html(&Bundle::new(whole.trial, whole.records, BTreeMap::new()));
    assert!(html.contains("<th>arm.parameters.receiver.w</th><td>–</td><td>3</td>"), "{html}");
    assert!(!html.contains("<th>arm.parameters.receiver</th>") && !html.contains("{}</td>"), "{html}");
}

#[test]
fn paths_of_more_cells_than_a_page_has_room_for_are_counted() {
    let names: Vec<String> = (0..100).map(|nth| format!("arm{nth}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut run = record(4, "arm0", 1, 100.0);
    run.settings =
        (0..6_000).map(|nth| (format!("path{nth}"), json!(nth))).collect::<serde_json::Value>().into();
    let html = html(&Bundle::new(trial(&names, &[4]), vec![run], BTreeMap::new()));
    assert_eq!(html.matches("<th>path").count(), 2 + 5_000, "rows and two heads");
    assert!(html.contains("<p>1000 more paths stand in records.jsonl.</p>"));
}

#[test]
fn the_head_says_that_the_radio_is_certified_and_by_what() {
    let mut whole = bundle();
    whole.trial.certificate = "85f4ad88".repeat(8);
    let said = html(&whole);
    let shown = format!("<dd title=\"certificate {}\">certified ✓ (85f4ad88…)</dd>", whole.trial.certificate);
    assert!(said.contains(&shown), "{said}");
    assert_eq!(said.matches(&whole.trial.certificate).count(), 1, "the digits stand under the pointer alone");
}

/// The digits that a report shows of its settings.
fn settings_of(whole: Bundle) -> String {
    let said = html(&whole);
    let rest = said
        .split_once("<dt>settings</dt><dd title=\"SHA-256 of settings and seeds ")
        .expect("it names them")
        .1;
    rest.split_once('"').expect("a hash").0.to_owned()
}

#[test]
fn the_head_has_a_hash_of_the_settings_that_no_version_changes() {
    let first = settings_of(bundle());
    assert_eq!(first.len(), 64);
    let changed = |change: fn(&mut Bundle)| {
        let mut whole = bundle();
        change(&mut whole);
        settings_of(whole)
    };
    let other_version = changed(|whole| {
        for record in &mut whole.records {
            record.settings["hopwise"] = json!({ "version": "another" });
        }
    });
    assert_eq!(other_version, first);
    let setting: fn(&mut Bundle) = |whole| {
        for record in &mut whole.records {
            record.settings["radio"] = json!({ "queue_packets": 51 });
        }
    };
    let seed: fn(&mut Bundle) = |whole| whole.trial.seeds.push(99);
    for change in [setting, seed] {
        assert_ne!(changed(change), first);
    }
}

#[test]
fn the_drawing_on_top_names_its_point_and_counts_those_with_other_nodes() {
    let mut whole = bundle();
    let drawn = "as in the first run, at topology.hops = 4. 2 other points have other nodes or flows.";
    assert!(html(&whole).contains(drawn), "{}", html(&whole));
    for record in &mut whole.records {
        record.settings["topology"]["hops"] = json!(4);
    }
    assert!(html(&whole).contains("as in the first run.<"), "the nodes of all points are the same");
}
