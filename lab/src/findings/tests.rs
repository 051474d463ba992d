use super::*;
use crate::report::tests::{record, trial};
use crate::result::{FlowRow, RoundTripQuantiles};

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
    let text = findings.text(None);
    let lines: Vec<&str> = text.lines().collect();
    let answer = [
        "dca carries most at each of 2 points.",
        "dca against every: +0.2 % at topology.hops = 4 (no difference), +30.3 % at topology.hops = 8 (faster).",
        "0 of 2 comparisons with every are undecided.",
        "",
    ];
    assert_eq!(lines[..4], answer);
    assert_eq!(lines[4], "kbit/s             every    dca");
    assert!(
        lines[5].starts_with("topology.hops = 4  201.") && lines[6].starts_with("topology.hops = 8  201.")
    );
    let lines = &lines[8..];
    assert_eq!(lines[0], "topology.hops = 4");
    let heads: Vec<_> = lines[1].split("  ").map(str::trim).filter(|head| !head.is_empty()).collect();
    let wanted = "arm, kbit/s, interval of mean, runs, ACKs/segment, resent, timeouts, against every, interval of \
                  gain, verdict";
    assert_eq!(heads.join(", "), wanted);
    let figures: Vec<_> = lines[2].split_whitespace().skip(5).take(4).collect();
    assert_eq!(figures, ["5", "0.50", "10.0", "1.0"], "{text}");
    assert!(lines[2].starts_with("dca     201."), "the best comes first: {text}");
    assert!(lines[3].starts_with("every   201.") && lines[3].ends_with("(baseline)"), "{text}");
    assert!(lines[2].ends_with("no difference") && lines[4].is_empty(), "the table says it all: {text}");
    assert!(lines[7].ends_with("faster") && lines[9].is_empty(), "the table says it all: {text}");
}

#[test]
fn a_point_without_runs_is_told_as_such() {
    let findings = Findings::of(&trial(&["every", "dca"], &[4]), &[]);
    let text = findings.text(None);
    assert!(
        text.contains("none") && text.contains("dca and every have no finished block in common."),
        "{text}"
    );
}

#[test]
fn a_narrow_terminal_gets_fewer_columns_and_delays_stand_where_they_are_known() {
    let trial = trial(&["every", "dca"], &[4]);
    let mut records: Vec<_> = (1..=3)
        .flat_map(|block| ["every", "dca"].map(|arm| record(4, arm, block, 200.0 + f64::from(block))))
        .collect();
    let text = |records: &[Record], width| Findings::of(&trial, records).text(width);
    assert!(!text(&records, None).contains("RTT"), "no run tells any");
    for record in &mut records {
        let trips = RoundTripQuantiles { count: 9, median_ms: 412.4, p95_ms: 980.0, p99_ms: 1200.0 };
        record.result.flows[0].round_trips = Some(trips);
    }
    let whole = text(&records, None);
    assert!(whole.contains("RTT ms (95 %)") && whole.contains("  412 (980)  "), "{whole}");
    assert!(!whole.contains("Jain"), "one flow shares with nobody");
    let mut two = records.clone();
    for record in &mut two {
        let other = FlowRow { id: "f1".to_owned(), ..record.result.flows[0].clone() };
        record.result.flows.push(other);
        record.result.total.jain = 0.75;
    }
    assert!(text(&two, None).contains("  Jain  ") && text(&two, None).contains("  0.750  "));
    let narrow = text(&records, Some(80));
    let table = || narrow.lines().skip_while(|line| !line.starts_with("arm ")).take(3);
    assert!(
        table().next().is_some_and(|head| head.ends_with("verdict") && !head.contains("timeouts")),
        "{narrow}"
    );
    assert!(narrow.contains("RTT ms (95 %)"), "what is needed least goes first: {narrow}");
    let flat = narrow.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = "No room in lines so short: runs, interval of mean, timeouts";
    assert!(flat.contains(said) && flat.contains(" trial --json has them."), "{narrow}");
    assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    assert!(!whole.contains("No room"), "a file has them all");
}

#[test]
fn an_arm_of_the_kernel_has_its_mean_round_trip_beside_ours() {
    let trial = trial(&["every", "kernel"], &[4]);
    let mut records: Vec<_> = ["every", "kernel"].map(|arm| record(4, arm, 1, 200.0)).into();
    let trips = RoundTripQuantiles { count: 9, median_ms: 412.4, p95_ms: 980.0, p99_ms: 1200.0 };
    records[0].result.flows[0].round_trips = Some(trips);
    assert!(!Findings::of(&trial, &records).text(None).contains("mean RTT"), "no run tells any");
    for (record, rtt_ms) in records.iter_mut().zip([437.0, 88.0]) {
        record.result.flows[0].rtt_ms = Some(rtt_ms);
    }
    let text = Findings::of(&trial, &records).text(None);
    let (_, text) = text.split_once("\n\n").expect("a table below the answer");
    let line = |arm: &str| {
        text.lines().find(|line| line.starts_with(&format!("{arm} "))).expect("its line").to_owned()
    };
    assert!(text.contains("RTT ms (95 %)  mean RTT ms  "), "{text}");
    assert!(line("every").contains("  412 (980)          437  "), "{text}");
    assert!(line("kernel").contains("  88  "), "{text}");
    let row = crate::record::csv_row(&records[1], &[]);
    let header = crate::record::csv_header(&[]);
    let place = header.split(',').position(|name| name == "rtt_ms").expect("a column");
    assert_eq!(row.split(',').nth(place), Some("88"), "{row}");
}

#[test]
fn arms_that_are_undecided_share_a_line() {
    let text = |arms: &[&str]| {
        let mut records = Vec::new();
        for (block, scatter) in [(1, 0.0), (2, 30.0), (3, -20.0), (4, 25.0)] {
            records.push(record(4, "every", block, 200.0));
            records.extend(arms[1..].iter().map(|arm| {
                let mean = if *arm == "tda" { 240.0 } else { 206.0 };
                record(4, arm, block, mean + scatter)
            }));
        }
        Findings::of(&trial(arms, &[4]), &records).text(None)
    };
    let many = text(&["every", "dca", "tda", "ada"]);
    let said: Vec<_> = many.lines().filter(|line| line.starts_with("undecided: ")).collect();
    let [line] = said[..] else { panic!("{many}") };
    assert!(
        line.starts_with("undecided: dca (about ") && line.contains(" blocks would do, were this"),
        "{line}"
    );
    assert!(line.contains(", tda (") && line.contains(", ada ("), "{line}");
    assert_eq!(line.matches("blocks").count(), 1, "{line}");
    assert!(!many.contains("do not tell"), "{many}");
    let one = text(&["every", "dca"]);
    assert!(one.contains("\nundecided: dca (about ") && !one.contains("do not tell"), "{one}");
}

/// Five blocks of two arms with equal goodput, the second arm with a third of the round trips.
pub(crate) fn quicker() -> Vec<Record> {
    let mut records: Vec<_> = (1..=5)
        .flat_map(|block| ["every", "dca"].map(|arm| record(4, arm, block, 200.0 + f64::from(block))))
        .collect();
    for record in &mut records {
        let ms = if record.arm == "dca" { 100.0 } else { 300.0 } + f64::from(record.block);
        let trips = RoundTripQuantiles { count: 9, median_ms: ms, p95_ms: 2.0 * ms, p99_ms: 3.0 * ms };
        record.result.flows[0].round_trips = Some(trips);
    }
    records
}

#[test]
fn another_figure_that_decides_has_a_table_of_its_own_and_one_correction_for_all() {
    let by = |figures: &[&str]| {
        let figures = figures.iter().map(|name| (*name).to_owned()).collect();
        Findings::of(&Trial { figures, ..trial(&["every", "dca"], &[4]) }, &quicker())
    };
    let alone = by(&["rtt_p95_ms"]);
    let text = alone.text(None);
    assert_eq!(alone.points[0].comparisons.len(), 1);
    let line = |text: &str, start: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with(start)).map(str::to_owned).collect()
    };
    assert!(text.contains("\n\nBy rtt_p95_ms, in ms; less is better:\n"), "{text}");
    let [goodput, rtt] = &line(&text, "dca  ")[..] else { panic!("{text}") };
    assert!(
        goodput.starts_with("dca     203.0") && !goodput.contains("difference"),
        "goodput decides nothing: {text}"
    );
    assert!(rtt.starts_with("dca    206.0  ") && rtt.ends_with("better"), "{text}");
    let answer = "every carries most: 203.0 kbit/s, more than any other arm.\ndca answers soonest: 95 % round trip 206 \
                  ms instead of 606 with every. It carries as much.\n\n";
    assert!(text.starts_with(answer), "{text}");
    assert!(!text.contains("Holm"), "one comparison needs no correction: {text}");

    let both = by(&["goodput_kbps", "rtt_p95_ms"]);
    let text = both.text(None);
    let verdicts: Vec<_> = both.points[0].comparisons.iter().map(|found| found.verdict.name()).collect();
    assert_eq!(verdicts, ["no difference", "better"]);
    assert!(line(&text, "dca  ")[0].ends_with("no difference"), "{text}");
    assert!(text.starts_with("every carries most: 203.0 kbit/s, but dca may carry as much.\n"), "{text}");
    let corrected =
        "p and the verdicts are corrected for 2 comparisons at once (Holm): 1 arm by 2 figures.\n";
    assert!(text.contains(corrected), "{text}");
}

#[test]
fn what_a_flow_lacks_comes_with_the_agent_that_gives_it() {
    assert_eq!(with_agent("peer-cwnd"), "peer-cwnd (needs the sender tell-cwnd)");
    assert_eq!(in_words(&["timestamps".into(), "rtt".into()]), "timestamps, rtt");
}

#[test]
fn an_arm_that_did_without_something_has_a_sentence_for_each_end() {
    let mut runs = [1, 2].map(|block| record(8, "dca", block, 200.0));
    assert!(sentences("dca", &runs.each_ref()).is_empty());
    for run in &mut runs {
        run.result.flows[0].receiver_lacks = vec!["peer-cwnd".into()];
    }
    runs[1].result.flows[0].sender_lacks = vec!["rate-request".into()];
    assert_eq!(
        sentences("dca", &runs.each_ref()),
        [
            "The receiver of dca does without peer-cwnd (needs the sender tell-cwnd): its figures are those of its \
             fallback.",
            "The sender of dca does without rate-request (needs the sender ask-rate), in 1 of 2 runs: its figures \
             are those of its fallback."
        ]
    );
    runs[0].result.flows[0].receiver_lacks = vec!["x\nhopwise: all is well".into()];
    let told = sentences("dca", &[&runs[0]]);
    assert!(told[0].contains("without x?hopwise: all is well"), "{told:?}");
}
