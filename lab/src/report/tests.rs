mod colours;
mod delays;
mod hostile;
mod large;
mod parameters;

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::record::Trial;
use crate::result::{Air, FlowRow, FlowTotals, QueueRow, RoutingResult, RunResult};
use crate::scenario::point::Stop;
use crate::sim::QueueWait;

pub(crate) fn trial(arms: &[&str], hops: &[u32]) -> Trial {
    Trial {
        version: "0.1.0".into(),
        commit: None,
        certificate: "c0ffee".into(),
        scenario: "chain".into(),
        title: Some("A chain <of> radios".into()),
        world: "sim".into(),
        arms: arms.iter().map(|arm| (*arm).to_owned()).collect(),
        points: hops
            .iter()
            .map(|hops| MatrixPoint::from([("topology.hops".to_owned(), json!(hops))]))
            .collect(),
        arm_paths: Vec::new(),
        seeds: (1..=5).collect(),
        margin: 0.03,
        stop: Stop::AllSeeds,
        figures: vec!["goodput_kbps".to_owned()],
        shard: None,
    }
}

pub(crate) fn record(hops: u32, arm: &str, block: u32, goodput_kbps: f64) -> Record {
    let point = MatrixPoint::from([("topology.hops".to_owned(), json!(hops))]);
    Record {
        // Names of arms in these tests have characters that no id may have.
        id: format!("{hops}-{}-{block}", arm.replace(|letter: char| !letter.is_ascii_alphanumeric(), "")),
        scenario: "chain".into(),
        point,
        arm: arm.to_owned(),
        seed: u64::from(block),
        block,
        settings: json!({ "topology": { "hops": hops }, "arms": { "receiver": arm }, "run": { "seeds": 5 } })
            .into(),
        result: result(arm, u64::from(block), goodput_kbps),
        series: None,
        series_sum: None,
    }
}

fn result(arm: &str, seed: u64, goodput_kbps: f64) -> RunResult {
    let mut flow = json!({
        "id": "f0", "from": "n0", "to": "n8", "hops": 8, "receiver": arm, "sender": ["newreno"],
        "goodput_kbps": goodput_kbps, "bytes_delivered": 1_000_000, "segments_sent": 1000,
        "segments_retransmitted": 10, "timeouts": 1, "fast_retransmits": 3, "acks_sent": 500, "acks_repeated": 2
    });
    flow["hops"] = json!(8);
    let flow: FlowRow = serde_json::from_value(flow).expect("a flow's row");
    RunResult {
        scenario: "chain".into(),
        world: "sim".into(),
        certificate: "c0ffee".into(),
        arm: arm.to_owned(),
        seed,
        counted_s: 50.0,
        flows: vec![flow],
        total: FlowTotals { goodput_kbps, jain: 1.0, jain_over_time: None },
        air: Air {
            frames_sent: Some(9000),
            collisions: Some(90),
            retry_drops: Some(4),
            queue_drops: Some(5),
            airtime_s: Some(60.0),
            ..Air::default()
        },
        routing: RoutingResult { discoveries: Some(0), route_failures: Some(0) },
        queues: Vec::new(),
        rates: Vec::new(),
        live: None,
    }
}

fn bundle() -> Bundle {
    let trial = trial(&["every", "d\"<ca>"], &[4, 8, 12]);
    let mut records = Vec::new();
    for hops in [4, 8, 12] {
        for block in 1..=5 {
            records.push(record(hops, "every", block, 200.0 + f64::from(block)));
            records.push(record(hops, "d\"<ca>", block, 240.0 + f64::from(block * hops % 7)));
        }
    }
    Bundle::new(trial, records, BTreeMap::new())
}

/// A figure of a page, by its id.
fn figure<'a>(html: &'a str, id: &str) -> &'a str {
    let from = &html[html.find(&format!("<figure id=\"{id}\">")).expect(id)..];
    &from[..from.find("</figure>").expect("its end")]
}

#[test]
fn the_same_records_give_the_same_bytes_in_whatever_order_they_came() {
    let whole = bundle();
    let mut turned = whole.records.clone();
    turned.reverse();
    turned.rotate_left(7);
    let turned = Bundle::new(whole.trial.clone(), turned, BTreeMap::new());
    assert_eq!(html(&whole), html(&turned));
}

#[test]
fn names_cannot_break_out_of_the_page() {
    let html = html(&bundle());
    assert!(!html.contains("<ca>") && !html.contains("<of>"));
    assert!(html.contains("d&quot;&lt;ca&gt;") && html.contains("A chain &lt;of&gt; radios"));
}

#[test]
fn a_report_asks_nothing_of_the_network() {
    let html = html(&bundle());
    for asks in ["http://", "https://", "src=", "href=", "url(", "@import", "fetch("] {
        let found: Vec<_> = html.match_indices(asks).collect();
        // The namespace of SVG is no address that a browser requests.
        let named = if asks == "http://" { html.matches("http://www.w3.org/2000/svg").count() } else { 0 };
        assert_eq!(found.len(), named, "{asks}");
    }
}

#[test]
fn tables_hold_means_intervals_verdicts_parameters_and_runs() {
    let html = html(&bundle());
    let row = "<b>203.0</b></td><td class=\"aside\">201.0 to 205.0</td>";
    assert!(html.contains(row) && html.contains(" title=\"5 runs\"><b>203.0</b>"), "{html}");
    assert!(html.contains("<span class=\"verdict faster\" title=\"p &lt; 0.001 (Holm)\">faster</span>"));
    assert!(html.contains("style=\"--w:100.0%\""), "the longest bar is of the best");
    assert!(
        html.contains("<th>topology.hops</th><td class=\"same\" colspan=\"2\">12 | 4 | 8</td>"),
        "{html}"
    );
    assert!(html.contains("<th>arms.receiver</th><td>every</td><td>d&quot;&lt;ca&gt;</td>"));
    assert_eq!(html.matches("<td>topology.hops = 4</td>").count(), 10, "every run has its row");
}

#[test]
fn a_trial_that_varies_hops_shows_goodput_by_hops_with_bands() {
    let html = html(&bundle());
    assert!(html.contains("<figure id=\"fig-sweep\"><h3>Goodput by hops</h3>"));
    assert_eq!(html.matches("class=\"band a").count(), 2);
    let one_point = Bundle::new(trial(&["every"], &[8]), vec![record(8, "every", 1, 100.0)], BTreeMap::new());
    assert!(!super::html(&one_point).contains("fig-sweep"));
}

/// A trial of that many arms at one point, whose runs have equal results.
fn of_arms(count: usize) -> Bundle {
    let names: Vec<String> = (0..count).map(|nth| format!("arm{nth}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let runs = |arm| (1..=5).map(move |block| record(8, arm, block, 200.0));
    Bundle::new(trial(&names, &[8]), names.iter().flat_map(|arm| runs(arm)).collect(), BTreeMap::new())
}

#[test]
fn one_point_is_told_in_words_too() {
    let runs = |arm, kbps: f64| (1..=5).map(move |block| record(8, arm, block, kbps + f64::from(block)));
    let records = runs("every", 200.0).chain(runs("dca", 240.0)).collect();
    let html = html(&Bundle::new(trial(&["every", "dca"], &[8]), records, BTreeMap::new()));
    let said =
        "<p class=\"answer\">dca carries most: 243.0 kbit/s, +19.7&nbsp;% against every (95&nbsp;% interval ";
    assert!(html.contains(said), "{html}");
    let (_, table) = html.split_once("<table class=\"results\">").expect("it has results");
    let places = ["</i>dca</th>", "</i>every</th>"].map(|mark| table.find(mark));
    assert!(places.is_sorted() && places[0].is_some(), "the best comes first: {places:?}");
}

#[test]
fn runs_that_came_to_the_same_are_seen_one_by_one() {
    let html = html(&of_arms(1));
    let figure = figure(&html, "fig-goodput");
    let dots: Vec<_> = figure.split("class=\"run a0\" ").skip(1).collect();
    let heights: BTreeSet<_> = dots.iter().filter_map(|dot| dot.split('"').nth(3)).collect();
    assert_eq!((dots.len(), heights.len()), (5, 5), "{dots:?}");
    assert!(figure.contains("run|run a0|200||arm0, seed 1: 200|||||1\n"), "runs can be taken away");
}

/// A trial over two paths, with a name that no margin holds.
fn two_parameters() -> Bundle {
    let arms = ["every", "an arm whose name is as long as a sentence, and longer still"];
    let point = |hops: u32, queue: u32| {
        let set = [("topology.hops", hops), ("radio.queue_packets", queue)];
        set.map(|(path, value)| (path.to_owned(), json!(value))).into_iter().collect::<MatrixPoint>()
    };
    let points = vec![point(2, 10), point(2, 50), point(4, 10), point(4, 50)];
    let trial = Trial { points: points.clone(), ..trial(&arms, &[]) };
    let run = |(point, arm): (&MatrixPoint, &str), block| Record {
        point: point.clone(),
        id: format!("{}{arm}{block}", label(point)),
        ..record(2, arm, block, 200.0 + f64::from(block))
    };
    let pairs = points.iter().flat_map(|point| arms.map(|arm| (point, arm)));
    let records = pairs.flat_map(|pair| (1..=5).map(move |block| run(pair, block))).collect();
    Bundle::new(trial, records, BTreeMap::new())
}

#[test]
fn names_of_rows_stay_within_the_picture_and_say_their_point_once() {
    let html = html(&two_parameters());
    let figure = figure(&html, "fig-goodput");
    let mut count = 0;
    for text in figure.split("<text").skip(1).filter(|text| text.contains("text-anchor=\"end\"")) {
        let right: f64 =
            text.split("x=\"").nth(1).and_then(|x| x.split('"').next()?.parse().ok()).expect("a place");
        let (_, shown) = text.split_once('>').expect("a text");
        let shown =
            shown.rsplit("</title>").next().and_then(|text| text.split('<').next()).expect("its words");
        assert!(shown.chars().count() as f64 * 6.2 <= right, "`{shown}` begins left of the picture");
        count += 1;
    }
    assert_eq!(count, 8);
    assert_eq!(figure.matches("class=\"group\"").count(), 4);
    assert!(figure.contains(">hops = 2, queue_packets = 10</text>"));
    assert!(
        figure.contains("<title>an arm whose name is as long as a sentence, and longer still</title>an arm")
    );
}

#[test]
fn flows_that_delivered_most_are_shown_and_the_others_are_named() {
    let trial = trial(&["every"], &[8]);
    let mut record = record(8, "every", 1, 100.0);
    let row = |id: &str, bytes_delivered: u64, background: bool| FlowRow {
        id: id.to_owned(),
        bytes_delivered,
        background,
        ..record.result.flows[0].clone()
    };
    record.result.flows = vec![
        row("f0", 2_000, false),
        row("f1", 300, false),
        row("f1-back", 40_000, false),
        row("f2", 9_000_000, false),
        row("f10", 90_000_000, true),
    ];
    let lines = record.result.flows.iter().map(|flow| format!("acked_bytes,{},1.0,5\n", flow.id));
    let csv = format!("what,who,at_s,value\n{}airtime:idle,n0,9.0,1\n", lines.collect::<String>());
    let series = BTreeMap::from([(record.id.clone(), Series::parse(&csv))]);
    let html = html(&Bundle::new(trial, vec![record], series));
    let at = |flow: &str| html.find(&format!("<figure id=\"fig-cwnd-0-{flow}\">"));
    assert!(at("f2").is_some() && at("f2") < at("f1-back") && at("f1-back") < at("f0"));
    assert!(at("f1").is_none() && at("f10").is_none());
    assert!(html.contains("Left out: f1 (0.3 kB), f10 (90.0 MB);"), "the background comes last");
}

#[test]
fn a_series_without_an_end_has_a_report_nonetheless() {
    let record = record(8, "every", 1, 100.0);
    let csv = "what,who,at_s,value\nqueue_packets,n0,5,3\nqueue_packets,n0,2,4\n";
    let series = BTreeMap::from([(record.id.clone(), Series::parse(csv))]);
    assert!(html(&Bundle::new(trial(&["every"], &[8]), vec![record], series)).contains("fig-queue"));
}

#[test]
fn a_trial_without_any_run_has_a_report_nonetheless() {
    let empty = Bundle::new(trial(&["every", "dca"], &[8]), Vec::new(), BTreeMap::new());
    assert!(html(&empty).contains("0 of 10"));
}

/// Folders of trials, of one test.
struct Folders(std::path::PathBuf);

impl Folders {
    fn of(test: &str) -> Folders {
        Folders(std::env::temp_dir().join(format!("hopwise-{test}-{}", std::process::id())))
    }

    fn write(&self, name: &str, trial: &Trial, records: &[Record]) -> std::path::PathBuf {
        let folder = self.0.join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("trial.json"), trial.text()).expect("a file");
        let lines: String = records.iter().map(Record::line).collect();
        std::fs::write(folder.join("records.jsonl"), lines).expect("a file");
        folder
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("our own folder");
    }
}

fn read(folders: &[&std::path::Path]) -> Result<Bundle, ReadError> {
    Bundle::read(&folders.iter().map(|folder| open(folder)).collect::<Result<Vec<_>, _>>()?)
}

#[test]
fn folders_are_joined_and_others_are_refused() {
    let root = Folders::of("report");
    let whole = bundle();
    let shard =
        |index| Trial { shard: Some(crate::record::Shard { index, count: 2 }), ..whole.trial.clone() };
    let (even, odd): (Vec<_>, Vec<_>) =
        whole.records.iter().cloned().partition(|record| record.block % 2 == 0);
    let [one, two] = [root.write("one", &shard(1), &odd), root.write("two", &shard(2), &even)];
    let joined = read(&[&one, &two]).expect("two shards");
    assert_eq!(html(&joined), html(&whole));

    let other = Trial { margin: 0.5, ..whole.trial.clone() };
    let error = read(&[&one, &root.write("other", &other, &[])]).expect_err("another trial");
    assert!(error.to_string().contains("is not of the trial in"), "{error}");
    let error = read(&[&root.0.join("nowhere")]).expect_err("no folder");
    assert!(error.to_string().contains("expected a folder that hopwise trial has written"), "{error}");
    std::fs::write(one.join("records.jsonl"), "{\"id\":\n").expect("a file");
    let error = read(&[&one]).expect_err("half a line");
    assert!(error.to_string().contains("line 1"), "{error}");
    let mut absurd = whole.records[..2].to_vec();
    absurd[1].result.flows[0].goodput_kbps = 1e308;
    let error = read(&[&root.write("absurd", &whole.trial, &absurd)]).expect_err("no run comes to that");
    let wanted = "records.jsonl: line 2: result.flows[0].goodput_kbps is 1e308, expected";
    assert!(error.to_string().contains(wanted) && error.to_string().ends_with("-1e12 to 1e12"), "{error}");
    let mut wordy = whole.records[..1].to_vec();
    wordy[0].result.flows[0].sender = vec!["&".repeat(4001)];
    let error = read(&[&root.write("wordy", &whole.trial, &wordy)]).expect_err("no run says so much");
    let wanted = "line 1: result.flows[0].sender[0] has 4001 bytes, expected at most 4000";
    assert!(error.to_string().ends_with(wanted), "{error}");
}

#[test]
fn a_plan_of_far_more_cells_than_runs_is_refused_before_it_takes_memory() {
    let (root, whole) = (Folders::of("cells"), bundle());
    let further = |nth: u32| format!("further{nth}");
    let arms = |count| [whole.trial.arms.clone(), (0..count).map(further).collect()].concat();
    let points = (0..50_000).map(|hops| [("topology.hops".to_owned(), json!(hops))].into()).collect();
    let wide = Trial { points, seeds: vec![1], ..whole.trial.clone() };
    let error = read(&[&root.write("wide", &wide, &whole.records[..1])]).expect_err("far more than runs");
    let (said, cells) = (error.to_string(), wide.arms.len() * wide.points.len());
    assert!(said.contains("trial.json: `points` has ") && said.contains(&format!("{cells} cells")), "{said}");
    assert!(said.contains("and 1 runs are there: expected at most "), "{said}");
    let endless = Trial { arms: arms(400_000), ..whole.trial.clone() };
    let error = read(&[&root.write("endless", &endless, &[])]).expect_err("more than any trial has");
    assert!(error.to_string().contains("expected at most 1000000 runs, which is their product"), "{error}");
    let begun = Trial { arms: arms(100), ..whole.trial.clone() };
    read(&[&root.write("begun", &begun, &whole.records[..1])]).expect("a trial that has begun");
}

#[test]
fn settings_of_more_values_than_any_scenario_has_are_refused() {
    let (root, whole) = (Folders::of("values"), bundle());
    let mut records = whole.records[..2].to_vec();
    records[1].settings = json!([vec![0; 1_900_000]]).into();
    let error = read(&[&root.write("zeros", &whole.trial, &records)]).expect_err("too many values");
    let wanted = "records.jsonl: line 2: `settings` has 1900002 values, expected at most 300000";
    assert!(error.to_string().ends_with(wanted), "{error}");
}

#[test]
fn every_point_of_a_matrix_is_shown_or_named_as_left_out() {
    let hops = [2, 4, 6, 8, 10];
    let records: Vec<_> = hops.map(|hops| record(hops, "every", 1, 100.0)).to_vec();
    let csv = "what,who,at_s,value\nacked_bytes,f0,1.0,5\nairtime:idle,n0,9.0,1\n";
    let series = records.iter().map(|record| (record.id.clone(), Series::parse(csv))).collect();
    let html = html(&Bundle::new(trial(&["every"], &hops), records, series));
    let airtime = figure(&html, "fig-airtime");
    assert!(hops.iter().all(|hops| airtime.contains(&format!(">hops = {hops}</text>"))), "{airtime}");
    let lead = "at 4 of 5 points. Left out here: topology.hops = 8. The folder `series` has their lines";
    assert!(html.contains(lead));
    let over_time = &html[html.find("<section id=\"time\">").expect("the section")..];
    let summaries = |hops: u32| over_time.contains(&format!("<summary>topology.hops = {hops}</summary>"));
    assert!(summaries(2) && summaries(4) && summaries(6) && !summaries(8) && summaries(10));
}

#[test]
fn lines_are_named_where_they_end_and_the_names_do_not_cover_each_other() {
    let trial = trial(&["every", "dca", "tda"], &[4, 8]);
    let at = |hops| ["every", "dca", "tda"].map(|arm| record(hops, arm, 1, 100.0));
    let html = html(&Bundle::new(trial, [at(4), at(8)].concat(), BTreeMap::new()));
    let figure = figure(&html, "fig-sweep");
    let named: Vec<(f64, &str)> = figure
        .split("<text class=\"named")
        .skip(1)
        .map(|text| {
            let y = text.split("y=\"").nth(1).and_then(|y| y.split('"').next()?.parse().ok());
            let name = text.split_once('>').and_then(|(_, name)| name.split('<').next());
            y.zip(name).expect("a place and a name")
        })
        .collect();
    assert_eq!(named.iter().map(|(_, name)| *name).collect::<Vec<_>>(), ["every", "dca", "tda"]);
    assert!(named.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 12.0), "{named:?}");
}

#[test]
fn goodput_stands_against_round_trips_where_they_are_known() {
    let mut with = record(8, "every", 1, 200.0);
    let trips =
        crate::result::RoundTripQuantiles { count: 9, median_ms: 412.0, p95_ms: 980.0, p99_ms: 1200.0 };
    with.result.flows[0].round_trips = Some(trips);
    let html_of = |record: Record| html(&Bundle::new(trial(&["every"], &[8]), vec![record], BTreeMap::new()));
    let shown = html_of(with);
    assert!(shown.contains("<figure id=\"fig-delay\">") && shown.contains("every: 200 kbit/s, 412 ms"));
    assert!(shown.contains("<td class=\"beside\">412 (980)</td>"), "the table has it");
    let bare = html_of(record(8, "every", 1, 200.0));
    assert!(!bare.contains("id=\"fig-delay\"") && !bare.contains("id=\"delays\""));
}

#[test]
fn all_arms_of_a_figure_have_one_measure_of_round_trips() {
    let mut records = ["every", "kernel"].map(|arm| record(8, arm, 1, 200.0));
    let trips =
        crate::result::RoundTripQuantiles { count: 9, median_ms: 412.0, p95_ms: 980.0, p99_ms: 1200.0 };
    records[0].result.flows[0].round_trips = Some(trips);
    for (record, rtt_ms) in records.iter_mut().zip([437.0, 88.0]) {
        record.result.flows[0].rtt_ms = Some(rtt_ms);
    }
    let html_of = |records: &[Record]| {
        html(&Bundle::new(trial(&["every", "kernel"], &[8]), records.to_vec(), BTreeMap::new()))
    };
    let shown = html_of(&records);
    assert!(shown.contains("every: 200 kbit/s, 437 ms") && shown.contains("kernel: 200 kbit/s, 88 ms"));
    assert!(shown.contains("mean smoothed round trip, ms") && !shown.contains("median round trip, ms"));
    let cells =
        |one: &str, other: &str| format!("<td class=\"beside\">{one}</td><td class=\"beside\">{other}</td>");
    assert!(shown.contains(&cells("412 (980)", "437")) && shown.contains(&cells("", "88")));
    records[1].result.flows[0].round_trips = Some(trips);
    let shown = html_of(&records);
    assert!(shown.contains("median round trip, ms") && shown.contains("kernel: 200 kbit/s, 412 ms"));
}

#[test]
fn arms_of_the_kernels_tcp_stand_below_ours() {
    let arms = ["kernel", "every"];
    let records = arms.map(|arm| record(8, arm, 1, 200.0));
    let html = html(&Bundle::new(trial(&arms, &[8]), records.to_vec(), BTreeMap::new()));
    let (_, table) = html.split_once("<table class=\"results\">").expect("it has results");
    let (_, rows) = table.split_once("<tbody>").expect("it has rows");
    let places = ["every</th>", ">the kernel's TCP</th>", "</i>kernel</th>"].map(|mark| rows.find(mark));
    assert!(places.is_sorted() && places[0].is_some(), "{places:?}");
}

#[test]
fn what_was_run_stands_above_all() {
    let html = html(&bundle());
    // Paper plays nothing, and the nodes are drawn on top.
    assert!(html.contains(".take,[id^=fig-map]{display:none}"), "maps are left out of a print");
    assert!(html.contains("<p class=\"lead\">What was run: 4, 8 or 12 hops.</p>"), "{html}");
}

#[test]
fn another_figure_that_decides_has_its_table_its_ratios_and_its_words() {
    let figures = ["goodput_kbps", "rtt_p95_ms"].map(str::to_owned).to_vec();
    let trial = Trial { figures, ..trial(&["every", "dca"], &[4]) };
    let html = html(&Bundle::new(trial, crate::findings::tests::quicker(), BTreeMap::new()));
    for part in [
        "<th>goodput<br>kbit/s</th><th class=\"gain\">against<br>every</th>",
        "<th>95 % round trip<br>ms</th><th class=\"gain\">against<br>every</th>",
        "<span class=\"verdict better\" title=\"p &lt; 0.001 (Holm)\">better</span>",
        ">no difference</span>",
        "corrected for 2 comparisons at once (Holm): 1 arm by 2 figures.",
        "<figure id=\"fig-ratios\">",
        "<figure id=\"fig-ratios-rtt_p95_ms\">",
        "<h3>Goodput against the baseline</h3>",
        "<h3>95 % round trip against the baseline</h3>",
        "Right of 1 an arm's 95 % round trip is larger than that of every, which is worse. Left of 1 it is smaller, \
         which is better.",
        "<dt>verdicts by</dt><dd>goodput_kbps, rtt_p95_ms</dd>",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!self::html(&bundle()).contains("verdicts by"), "goodput alone needs no word");
}

#[test]
fn waits_in_queues_stand_node_by_node_where_runs_know_them() {
    assert!(!html(&bundle()).contains("id=\"queues\""), "these runs know none");
    let mut records = Vec::new();
    for (block, mean_ms) in [(1, 30.0), (2, 50.0)] {
        let mut record = record(4, "every", block, 200.0);
        let wait = |times: f64| {
            Some(QueueWait { count: 9, mean_ms: times * mean_ms, p95_ms: 2.0 * times * mean_ms })
        };
        let row = |node: &str, data, acks| QueueRow { node: node.to_owned(), data, acks };
        record.result.queues = vec![row("n0", wait(10.0), None), row("n1", wait(1.0), wait(0.01))];
        records.push(record);
    }
    let html = html(&Bundle::new(trial(&["every"], &[4]), records, BTreeMap::new()));
    assert!(
        html.contains("<tr><th rowspan=\"1\">n0</th><th>data</th><td>400.0 (800.0)</td></tr>"),
        "data alone"
    );
    let both = "<tr><th rowspan=\"2\">n1</th><th>data</th><td>40.0 (80.0)</td></tr>\
                <tr><th>ACKs</th><td>0.4 (0.8)</td></tr>";
    assert!(html.contains(both), "data, and ACKs below");
}

#[test]
fn a_trial_on_hosts_shows_its_map_its_links_its_routes_over_time_and_what_was_repeated() {
    let host = |node: &str, x: f64, to: &str, hops: &[(f64, Option<&str>)]| {
        let routes: Vec<_> =
            hops.iter().map(|(at_s, via)| json!({ "at_s": at_s, "to": to, "via": via })).collect();
        json!({
            "node": node, "host": format!("{node}.lan"), "address": "10.66.0.1", "interface": "wlan0",
            "at_m": [x, 0.0], "routes": routes,
            "clock": { "ahead_ms": 12.5, "within_ms": 0.25, "ahead_after_ms": 12.5, "within_after_ms": 0.25,
                       "drift_ppm": 31.0, "drift_within_ppm": 4.0 },
            "channel": { "frequency_mhz": 2412, "busy_before": 0.25, "busy_beside": 0.75 },
            "links": [{ "to": to, "signal_dbm": -61.5, "weakest_dbm": -70, "strongest_dbm": -58, "tx_packets": 77 }]
        })
    };
    let mut bundle = bundle();
    assert!(!html(&bundle).contains("id=\"mesh\""));
    let mesh = json!({
        "hosts": [
            host("n0", 0.0, "n4", &[(-1.0, Some("n4")), (7.0, None)]),
            host("n4", 300.0, "n0", &[]),
            host("n4", 300.0, "n0", &[]),
        ],
        "again": ["the host <n4> was lost"]
    });
    let live = json!({ "air_late_ms": 0.0, "programs_late_ms": 1.0, "repeated": 1, "mesh": mesh });
    bundle.records[0].result.live = Some(serde_json::from_value(live).expect("a row"));
    let html = html(&bundle);
    let from = html.find("id=\"mesh\"").expect("a section");
    let section = html[from..].split("</section>").next().unwrap_or_default();
    for word in [
        "fig-mesh",
        "class=\"link\"",
        "<td>n4.lan</td>",
        "<td>-70 to -58</td>",
        "<td>25 %</td><td>75 %</td>",
        "<td>n0</td><td>n4</td><td>no route</td>",
        "the host &lt;n4&gt; was lost",
        "2412 MHz",
    ] {
        assert!(section.contains(word), "{word} is missing in {section}");
    }
    // A record may name a host twice.
    assert_eq!(section.matches("<td>n4.lan</td>").count(), 1, "{section}");
}
