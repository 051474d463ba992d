use serde_json::json;

use crate::findings::Findings;
use crate::record::Record;
use crate::report::tests::{record, trial};
use crate::result::{FlowRow, ProbeResult, RoundTripQuantiles};
use crate::summary::Summary;

/// A trial of these arms, each with its goodput, the probe's wait in ms, and how far blocks scatter, in per mille.
fn findings(arms: &[(&str, f64, f64, u32)]) -> Findings {
    let names: Vec<&str> = arms.iter().map(|(name, ..)| *name).collect();
    let mut trial = trial(&names, &[4]);
    trial.figures = vec!["goodput_kbps".to_owned(), "probe_p95_ms".to_owned()];
    let mut records = Vec::new();
    for (name, kbps, wait_ms, scatter) in arms {
        for (block, sign) in [(1, -1.0), (2, 1.0), (3, 0.3), (4, -0.6), (5, 0.1)] {
            let by = 1.0 + sign * f64::from(*scatter) / 1000.0;
            records.push(run(name, block, (kbps * by, wait_ms / by)));
        }
    }
    let findings = Findings::of(&trial, &records);
    let summary = Summary::of(&trial, &records, &findings).json();
    let told = findings.points[0].advice.as_ref().map(|advice| json!({ "advice": advice }).to_string());
    let told = told.map(|told| told.trim_matches(['{', '}']).to_owned());
    assert!(told.is_none_or(|told| summary.contains(&told)), "{summary}");
    findings
}

fn run(arm: &str, block: u32, (kbps, wait_ms): (f64, f64)) -> Record {
    let mut record = record(4, arm, block, kbps);
    record.settings["arm"] = match arm {
        "thin-d8" => json!({ "receiver": "kernel", "sender": ["kernel:bbr"], "thin": "delayed:d=8" }),
        _ => json!({ "receiver": "tda", "sender": ["newreno", "tell-cwnd"] }),
    };
    let trips = RoundTripQuantiles { count: 90, median_ms: 1.0, p95_ms: wait_ms, p99_ms: wait_ms };
    let probe = ProbeResult { sent: 90, answered: 90, round_trips: Some(trips) };
    let row = record.result.flows[0].clone();
    record.result.flows.push(FlowRow { id: "f1".to_owned(), probe: Some(probe), background: true, ..row });
    record
}

fn advice(arms: &[(&str, f64, f64, u32)]) -> String {
    findings(arms).points[0].advice.clone().unwrap_or_default()
}

const LINUX: (&str, f64, f64, u32) = ("linux", 1000.0, 300.0, 2);

#[test]
fn linux_stays_where_nothing_is_worth_a_change() {
    // 4 % of goodput, a third of a short wait, and a short wait that costs goodput.
    let leave = "Leave Linux's TCP as it is.";
    for other in [("pair-x", 1040.0, 290.0, 4), ("linux-bbr", 1000.0, 240.0, 4), ("pair-x", 900.0, 30.0, 4)] {
        let said = advice(&[LINUX, other]);
        assert!(said.starts_with(leave) && !said.contains("Undecided"), "{other:?}: {said}");
        assert!(said.contains("It carries 999.9 kbit/s; its probe's 95 % round trip is 300 ms."), "{said}");
    }
    let quick = advice(&[("linux", 1000.0, 60.0, 2), ("pair-x", 1000.0, 15.0, 4)]);
    assert!(quick.starts_with(leave), "nobody feels 45 ms: {quick}");
    let longer = advice(&[LINUX, ("pair-x", 1300.0, 400.0, 4)]);
    assert!(longer.starts_with(leave), "more for a longer wait: {longer}");
}

#[test]
fn an_arm_that_carries_more_or_answers_sooner_takes_its_place_with_figures_and_certainty() {
    let more = advice(&[LINUX, ("pair-x", 1200.0, 300.0, 4)]);
    assert!(
        more.starts_with(
            "Put the receiver tda and the sender newreno, tell-cwnd between the nodes (pair-x). It \
                          carries 1199.8 kbit/s, +20.0 % against linux (95 % interval +"
        ),
        "{more}"
    );
    let sooner = advice(&[LINUX, ("thin-d8", 990.0, 100.0, 4)]);
    assert!(
        sooner.starts_with("Keep Linux's TCP, let it send by bbr, and run `hopwise thin` with the receiver \
                            delayed:d=8 where data arrive (thin-d8). It carries 989.8 kbit/s, −1.0 % against linux"),
        "{sooner}"
    );
    assert!(
        sooner.contains("; its probe's 95 % round trip is 100 ms, −66.7 % against linux (95 %"),
        "{sooner}"
    );
    let of_two = advice(&[LINUX, ("pair-x", 1200.0, 300.0, 4), ("pair-y", 1190.0, 100.0, 4)]);
    assert!(of_two.contains("(pair-y)"), "of two it is the one with the most goodput by wait: {of_two}");
}

#[test]
fn a_dearer_arm_has_to_be_worth_its_change_beside_a_cheaper_one() {
    let arms = |pair| [LINUX, ("linux-bbr", 1100.0, 120.0, 4), ("pair-x", pair, 110.0, 4)];
    let bbr = advice(&arms(1110.0));
    assert!(bbr.starts_with("Keep Linux's TCP, and let it send by ") && bbr.contains("(linux-bbr)"), "{bbr}");
    assert!(!bbr.contains("Cheaper"), "{bbr}");
    let pair = advice(&arms(1300.0));
    assert!(pair.contains("(pair-x)") && pair.contains("+30.0 % against linux"), "{pair}");
    assert!(pair.ends_with(" Cheaper, and worth a change as well: linux-bbr."), "{pair}");
}

#[test]
fn what_chance_may_have_brought_is_no_advice_and_is_told() {
    let said = advice(&[LINUX, ("pair-x", 1100.0, 300.0, 200)]);
    assert!(said.starts_with("Leave Linux's TCP as it is."), "{said}");
    let (_, told) = said.split_once(" Undecided: pair-x may be better still; about ").expect("it is told");
    assert!(told.ends_with(" seeds would tell."), "{said}");
}

#[test]
fn trials_of_other_arms_have_no_advice() {
    for arms in
        [[LINUX, ("train", 1200.0, 300.0, 4)], [("every", 1000.0, 300.0, 4), ("pair-x", 1200.0, 300.0, 4)]]
    {
        assert_eq!(advice(&arms), "", "{arms:?}");
        assert!(findings(&arms).answer()[0].contains("carries most"));
    }
    let findings = findings(&[LINUX, ("pair-x", 1200.0, 300.0, 4)]);
    let answer = findings.answer();
    assert!(answer[0].starts_with("topology.hops = 4: Put the receiver"), "{answer:?}");
    assert!(answer[1].starts_with("pair-x carries most"), "{answer:?}");
}
