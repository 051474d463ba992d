use super::*;
use crate::report::tests::{record, trial};
use crate::result::RoundTrips;

fn trips(median_ms: f64) -> RoundTrips {
    RoundTrips { count: 1000, median_ms, p95_ms: 2.0 * median_ms, p99_ms: 3.0 * median_ms }
}

fn sentences_of(change_arm: impl Fn(&mut Record)) -> String {
    let trial = trial(&["every", "dca"], &[8]);
    let mut records = Vec::new();
    for block in 1..=5 {
        let scatter = f64::from(block % 3);
        let known = |arm, goodput| {
            let mut record = record(8, arm, block, goodput);
            record.result.air.ack_airtime_s = Some(0.0);
            record.result.flows[0].round_trips = Some(trips(100.0));
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
    let sentences_of = sentences(&trial, &records);
    sentences_of[0].1[0].1.clone()
}

#[test]
fn a_faster_arm_has_its_reasons_and_what_went_against_it() {
    let sentence = sentences_of(|arm| {
        arm.result.total.goodput_kbps *= 1.3;
        arm.result.flows[0].acks_sent = Some(100);
        arm.result.flows[0].timeouts = Some(5);
        arm.result.air.airtime_s = Some(45.0);
    });
    assert_eq!(
        sentence,
        "dca was faster than every (+30.3 %): it sent 0.10 ACKs a segment instead of 0.50 and a new segment took \
         45.5 ms of air instead of 60.6. It was so although fewer radios sent at a time (45.0 s of sending a run \
         instead of 60.0) and a run had 5.0 timeouts instead of 1.0."
    );
}

/// A fallback explains figures as nothing that the radios count does.
#[test]
fn what_an_arm_did_without_is_told_beside_its_reasons() {
    let trial = trial(&["every", "dca"], &[8]);
    let mut records: Vec<_> =
        (1..=5).flat_map(|block| ["every", "dca"].map(|arm| record(8, arm, block, 200.0))).collect();
    let of_arm = |records: &[Record]| sentences(&trial, records)[0].1.clone();
    assert_eq!(of_arm(&records).len(), 1);
    for record in records.iter_mut().filter(|record| record.arm == "dca") {
        record.result.flows[0].receiver_lacks = vec!["peer-cwnd".into()];
    }
    let said = of_arm(&records);
    let wanted = "The receiver of dca does without peer-cwnd (needs the sender tell-cwnd)";
    assert!(said.len() == 2 && said[1].0 == "dca" && said[1].1.starts_with(wanted), "{said:?}");
    let table = Findings::of(&trial, &records).text(None);
    assert!(table.contains(wanted), "{table}");
    let page = crate::report::html(&crate::report::Bundle::new(
        trial.clone(),
        records,
        std::collections::BTreeMap::new(),
    ));
    assert_eq!(page.matches(wanted).count(), 2, "beside the results, and beside the reasons");
}

#[test]
fn a_slower_arm_is_told_what_slowed_it() {
    let sentence = sentences_of(|arm| {
        arm.result.total.goodput_kbps *= 0.6;
        arm.result.flows[0].segments_retransmitted = Some(200);
        arm.result.air.collisions = Some(900);
        arm.result.air.ack_airtime_s = Some(20.0);
    });
    assert!(sentence.contains("ACKs took 25.0 ms of air a new segment instead of 0.0"), "{sentence}");
    assert!(sentence.starts_with("dca was slower than every (−39."), "{sentence}");
    assert!(sentence.contains("112 frames collided for 100 new segments instead of 9"), "{sentence}");
    assert!(sentence.contains("20.0 % of segments were sent again instead of 1.0 %"), "{sentence}");
}

#[test]
fn what_an_arm_does_not_tell_is_no_reason() {
    let sentence = sentences_of(|arm| {
        arm.result.total.goodput_kbps *= 1.3;
        arm.result.flows[0].timeouts = None;
        arm.result.air = crate::result::Air::default();
    });
    assert!(!sentence.contains("NaN") && !sentence.contains("timeouts"), "{sentence}");
}

#[test]
fn equal_arms_have_nothing_that_tells_them_apart() {
    let sentence = sentences_of(|_| {});
    assert_eq!(
        sentence,
        "dca was as fast as every (+0.2 %), and nothing that the runs count tells them apart."
    );
}

#[test]
fn what_is_equal_as_printed_is_no_reason_and_one_thing_is_no_several() {
    let sentence = sentences_of(|arm| {
        arm.result.total.goodput_kbps *= 1.3;
        // 9.09 and 8.59 collisions for 100 new segments are both printed as 9; so are 5.05 and 4.95 packets as 5.
        arm.result.air.collisions = Some(85);
        arm.result.air.airtime_s = Some(45.0);
    });
    assert!(sentence.contains("a new segment took 45.5 ms"), "{sentence}");
    assert!(!sentence.contains("collided"), "{sentence}");
    let sentence = sentences_of(|arm| {
        arm.result.total.goodput_kbps *= 1.3;
        arm.result.air.collisions = Some(10);
    });
    assert!(sentence.contains("1 frame collided for 100 new segments instead of 9"), "{sentence}");
}

#[test]
fn what_is_nearly_equal_as_printed_is_no_reason() {
    let packets =
        QUANTITIES.iter().find(|quantity| quantity.digits == 0 && quantity.floor > 4.0).expect("one");
    assert_eq!(apart([20.6, 19.55], packets), None, "printed as 21 instead of 20");
    assert_eq!(apart([19.8, 18.7], packets), None, "printed as 20 instead of 19");
    assert_eq!(apart([22.0, 19.55], packets), Some(["22".to_owned(), "20".to_owned()]));
    assert_eq!((apart([f64::NAN, 19.0], packets), apart([4.0, 2.0], packets)), (None, None));
}

#[test]
fn what_an_arm_costs_in_delay_is_said_after_its_reasons() {
    let with = |median_ms: f64| {
        sentences_of(move |arm| {
            arm.result.total.goodput_kbps *= 1.3;
            arm.result.flows[0].round_trips = Some(trips(median_ms));
        })
    };
    let cost =
        " Half of its round trips took up to 400 ms instead of 100, and 95 % up to 800 ms instead of 200.";
    assert!(with(400.0).ends_with(cost), "{}", with(400.0));
    assert!(!with(101.0).contains("round trips"), "{}", with(101.0));
}

#[test]
fn longer_bursts_and_more_reordering_are_said_after_the_delay_and_only_where_both_arms_tell() {
    let with = |burst_mean: Option<f64>, above: u64| {
        sentences_of(move |arm| {
            arm.result.flows[0].burst_mean = burst_mean;
            arm.result.flows[0].segments_out_of_order = Some(above);
        })
    };
    let both = with(Some(3.0), 300);
    let wanted = " It sent 3.0 segments a burst instead of 1.5. It had 30.0 % of its segments arrive above a missing \
                  one instead of 1.0 %.";
    assert!(both.ends_with(wanted), "{both}");
    assert!(!with(Some(1.51), 10).contains("burst"), "{}", with(Some(1.51), 10));
    assert!(!with(None, 10).contains("burst"), "{}", with(None, 10));
}

#[test]
fn an_arm_without_quantiles_is_told_by_the_mean_that_both_have() {
    let mean = |rtt_ms: f64| {
        let trial = trial(&["every", "kernel"], &[8]);
        let mut records = ["every", "kernel"].map(|arm| record(8, arm, 1, 200.0));
        records[0].result.flows[0].round_trips = Some(trips(100.0));
        for (record, rtt_ms) in records.iter_mut().zip([400.0, rtt_ms]) {
            record.result.flows[0].rtt_ms = Some(rtt_ms);
        }
        sentences(&trial, &records)[0].1[0].1.clone()
    };
    let cost = " Its smoothed round trip was 100 ms in the mean instead of 400.";
    assert!(mean(100.0).ends_with(cost), "{}", mean(100.0));
    assert!(!mean(401.0).contains("round trip"), "{}", mean(401.0));
}

#[test]
fn figures_that_decide_come_before_the_reasons_of_goodput() {
    let by = |figures: &[&str]| {
        let figures = figures.iter().map(|name| (*name).to_owned()).collect();
        let trial = Trial { figures, ..trial(&["every", "dca"], &[4]) };
        sentences(&trial, &crate::findings::tests::quicker())[0].1[0].1.clone()
    };
    let alone = by(&["rtt_p95_ms"]);
    assert!(alone.starts_with("dca is better than every in rtt_p95_ms: "), "{alone}");
    assert!(
        alone.contains(" In goodput, which decides nothing here, dca came to ±0.0 % against every"),
        "{alone}"
    );
    let both = by(&["goodput_kbps", "rtt_p95_ms"]);
    assert!(both.contains(" dca was as fast as every (±0.0 %)"), "{both}");
}
