//! The head of a report, and its table of parameters.

use std::collections::BTreeMap;

use serde_json::json;

use super::{Bundle, bundle, html};

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
fn the_head_says_that_the_radio_is_certified_and_by_what() {
    let mut whole = bundle();
    whole.trial.certificate = "85f4ad88".repeat(8);
    let said = html(&whole);
    let shown = format!("<dd title=\"certificate {}\">certified ✓ (85f4ad88…)</dd>", whole.trial.certificate);
    assert!(said.contains(&shown), "{said}");
    assert_eq!(said.matches(&whole.trial.certificate).count(), 1, "the digits stand under the pointer alone");
}
