use super::*;
use crate::report::tests::{record, trial};
use crate::result::RoundTripQuantiles;

fn of(change_arm: impl Fn(&mut Record)) -> (Trial, Vec<Record>) {
    let mut records = Vec::new();
    for block in 1..=5 {
        let scatter = f64::from(block % 3);
        let known = |arm, goodput| {
            let mut record = record(8, arm, block, goodput);
            record.result.air.ack_airtime_s = Some(0.0);
            record.result.flows[0].burst_mean = Some(1.5);
            record.result.flows[0].segments_out_of_order = Some(10);
            record.result.flows[0].segments_arrived = Some(1000);
            record
        };
        records.push(known("every", 200.0 + scatter));
        let mut arm = known("dca", 200.5 + scatter);
        change_arm(&mut arm);
        records.push(arm);
    }
    (trial(&["every", "dca"], &[8]), records)
}

/// The rows of a change, each as its title, the baseline's cell, the arm's, and its side.
fn rows(change_arm: impl Fn(&mut Record)) -> Vec<String> {
    let (trial, records) = of(change_arm);
    let findings = Findings::of(&trial, &records);
    let all = reasons(&findings, &records);
    assert_eq!(all[0].arms[0].arm, "every", "the baseline comes first, whichever is the best");
    let row = |reason: &Reason| {
        let [(that, BaselineSide::Alike), (this, side)] = &reason.cells[..] else { panic!("{reason:?}") };
        format!("{}: {that} {this} {side:?}", reason.title)
    };
    all[0].reasons.iter().map(row).collect()
}

#[test]
fn an_arm_has_its_reasons_beside_the_baselines_figures() {
    let rows = rows(|arm| {
        arm.result.total.goodput_kbps *= 1.3;
        arm.result.flows[0].acks_sent = Some(100);
        arm.result.flows[0].timeouts = Some(5);
        arm.result.air.airtime_s = Some(45.0);
    });
    let wanted = [
        "ACKs a segment: 0.50 0.10 Better",
        "air for a new segment, ms: 60.6 45.5 Better",
        "all radios' sending, s a run: 60.0 45.0 Apart",
        "timeouts in a run: 1.0 5.0 Worse",
    ];
    assert_eq!(rows, wanted);
}

#[test]
fn what_slows_an_arm_is_on_the_worse_side() {
    let rows = rows(|arm| {
        arm.result.total.goodput_kbps *= 0.6;
        arm.result.flows[0].segments_retransmitted = Some(200);
        arm.result.air.collisions = Some(900);
        arm.result.air.ack_airtime_s = Some(20.0);
        arm.result.flows[0].burst_mean = Some(3.0);
        arm.result.flows[0].segments_out_of_order = Some(300);
    });
    for wanted in [
        "air for its ACKs, ms: 0.0 25.0 Worse",
        "collisions, of 100 segments: 9 112 Worse",
        "segments sent again, %: 1.0 20.0 Worse",
        "mean burst, segments: 1.5 3.0 Worse",
        "segments above a hole, %: 1.0 30.0 Worse",
    ] {
        assert!(rows.iter().any(|row| row == wanted), "{wanted}: {rows:?}");
    }
}

#[test]
fn what_is_equal_or_not_told_is_no_reason() {
    assert_eq!(rows(|_| {}), [""; 0]);
    let untold = rows(|arm| {
        arm.result.flows[0].timeouts = None;
        arm.result.flows[0].burst_mean = None;
        arm.result.air = crate::result::Air::default();
    });
    assert_eq!(untold, [""; 0]);
    // 9.09 and 8.59 collisions for 100 new segments are both printed as 9.
    assert_eq!(rows(|arm| arm.result.air.collisions = Some(85)), [""; 0]);
}

#[test]
fn what_is_nearly_equal_as_printed_is_no_reason() {
    let packets =
        QUANTITIES.iter().find(|quantity| quantity.digits == 0 && quantity.floor > 4.0).expect("one");
    assert_eq!(packets.side(20.6, 19.55), BaselineSide::Alike, "printed as 21 instead of 20");
    assert_eq!(packets.side(19.8, 18.7), BaselineSide::Alike, "printed as 20 instead of 19");
    assert_eq!(packets.side(22.0, 19.55), BaselineSide::Worse);
    assert_eq!([packets.side(f64::NAN, 19.0), packets.side(4.0, 2.0)], [BaselineSide::Alike; 2]);
}

#[test]
fn the_text_has_goodput_and_round_trips_above_the_reasons() {
    let (trial, mut records) = of(|arm| arm.result.flows[0].acks_sent = Some(100));
    for record in &mut records {
        let median_ms = if record.arm == "dca" { 400.0 } else { 100.0 };
        let trips =
            RoundTripQuantiles { count: 9, median_ms, p95_ms: 2.0 * median_ms, p99_ms: 3.0 * median_ms };
        record.result.flows[0].round_trips = Some(trips);
    }
    let text = text(&trial, &records, None);
    let wanted = "topology.hops = 8
                       every     dca
goodput, kbit/s        201.2   201.7
against every                 +0.2 %
median round trip, ms    100     400
95 % round trip, ms      200     800
ACKs a segment          0.50    0.10
";
    assert_eq!(text, wanted);
}

#[test]
fn many_arms_stand_in_blocks_of_the_terminals_width_each_with_the_baseline() {
    let names = ["every", "first-arm", "second-arm", "third-arm", "fourth-arm"];
    let runs = names.map(|arm| {
        let mut run = record(4, arm, 1, 200.0);
        run.result.flows[0].acks_sent = Some(if arm == "every" { 1000 } else { 10 });
        run
    });
    let text = text(&trial(&names, &[4]), &runs, Some(60));
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    let heads: Vec<_> = text.lines().filter(|line| line.starts_with(' ')).collect();
    assert!(heads.len() == 2 && text.contains("\n\n"), "{text}");
}

/// A fallback explains figures as nothing that the radios count does.
#[test]
fn what_an_arm_did_without_is_told_below_its_reasons() {
    let trial = trial(&["every", "dca"], &[8]);
    let mut records: Vec<_> =
        (1..=5).flat_map(|block| ["every", "dca"].map(|arm| record(8, arm, block, 200.0))).collect();
    for record in records.iter_mut().filter(|record| record.arm == "dca") {
        record.result.flows[0].receiver_lacks = vec!["peer-cwnd".into()];
    }
    let wanted = "The receiver of dca does without peer-cwnd (needs the sender tell-cwnd)";
    assert!(text(&trial, &records, None).lines().last().is_some_and(|line| line.starts_with(wanted)));
    let table = Findings::of(&trial, &records).text(None);
    assert!(table.contains(wanted), "{table}");
    let bundle = crate::report::Bundle::new(trial.clone(), records, std::collections::BTreeMap::new());
    assert_eq!(crate::report::html(&bundle).matches(wanted).count(), 1, "beside the results");
}
