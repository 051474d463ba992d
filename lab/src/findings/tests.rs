use super::*;
use crate::report::tests::{record, trial};

#[test]
fn every_point_has_its_own_table_and_sentences() {
    let trial = trial(&["every", "dca"], &[4, 8]);
    let mut records = Vec::new();
    for hops in [4, 8] {
        for block in 1..=5 {
            let scatter = f64::from(block % 3);
            records.push(record(hops, "every", block, 200.0 + scatter));
            let gain = if hops == 8 { 1.3 } else { 1.0 };
            records.push(record(hops, "dca", block, gain * (200.5 + scatter)));
        }
    }
    let findings = Findings::of(&trial, &records);
    let verdicts: Vec<_> = findings.points.iter().map(|point| point.comparisons[0].verdict.name()).collect();
    assert_eq!(verdicts, ["no difference", "faster"]);
    let text = findings.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "topology.hops = 4");
    let heads: Vec<_> = lines[1].split("  ").map(str::trim).filter(|head| !head.is_empty()).collect();
    assert_eq!(
        heads,
        [
            "arm",
            "kbit/s",
            "95 % interval",
            "runs",
            "ACKs/segment",
            "resent",
            "timeouts",
            "against every",
            "95 % interval",
            "verdict"
        ]
    );
    let figures: Vec<_> = lines[2].split_whitespace().skip(5).take(4).collect();
    assert_eq!(figures, ["5", "0.50", "10.0", "1.0"], "{text}");
    assert!(lines[2].starts_with("every   201.") && lines[2].ends_with("(baseline)"), "{text}");
    assert!(lines[4].starts_with("dca and every do not differ by more than 3 %"), "{text}");
    assert!(lines[10].starts_with("dca is 30.") && lines[10].contains("% faster than every"), "{text}");
}

#[test]
fn a_point_without_runs_is_told_as_such() {
    let findings = Findings::of(&trial(&["every", "dca"], &[4]), &[]);
    let text = findings.text();
    assert!(
        text.contains("none") && text.contains("dca and every have no finished block in common."),
        "{text}"
    );
}
