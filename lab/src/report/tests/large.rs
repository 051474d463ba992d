//! Trials of many arms at many points, and of several flows.

use std::collections::BTreeMap;

use serde_json::json;

use super::{Bundle, Series, html, record, trial};
use crate::record::Record;
use crate::result::FlowRow;

const HOPS: [u32; 4] = [2, 4, 6, 8];

/// 32 arms at four points, of which two are apart from the baseline; with lines over time.
fn large() -> Bundle {
    let names: Vec<String> = (0..32).map(|nth| format!("arm{nth}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let run = |hops: u32, nth: usize, block: u32| {
        let scatter = f64::from((block * 7 + u32::try_from(nth).unwrap_or(0) * 3) % 11);
        let gain = if nth == 5 { 300.0 } else { 0.0 };
        record(hops, names[nth], block, 200.0 + gain + 10.0 * scatter)
    };
    let all = HOPS.into_iter().flat_map(|hops| (0..32).map(move |nth| (hops, nth)));
    let records: Vec<Record> = all
        .flat_map(|(hops, nth)| (1..=3).map(move |block| (hops, nth, block)))
        .map(|(a, b, c)| run(a, b, c))
        .collect();
    let lines: String = (0..20_000)
        .map(|at| format!("cwnd_segments,f0,{}.5,{}\nacked_bytes,f0,{at},5\n", at, at % 9))
        .collect();
    let csv = format!("what,who,at,value\nairtime:idle,n0,20000,1\n{lines}");
    let of_first = |run: &&Record| run.block == 1;
    let series = Series::parse(&csv);
    let series = records.iter().filter(of_first).map(|run| (run.id.clone(), series.clone())).collect();
    Bundle::new(trial(&names, &HOPS), records, series)
}

#[test]
fn a_large_trial_is_a_map_with_the_rest_folded_and_its_lines_are_thinned() {
    let html = html(&large());
    assert!(html.len() < 3_000_000, "{} bytes", html.len());
    assert!(html.contains("<body class=\"large\">") && html.contains("<summary>32 arms</summary>"));
    assert_eq!(html.matches("<table class=\"heat\">").count(), 1, "no run knows a delay");
    assert_eq!(html.matches("<td class=\"best\"").count(), HOPS.len(), "the best of each point");
    let (_, results) = html.split_once("<section id=\"results\">").expect("results");
    let (results, _) = results.split_once("</section>").expect("their end");
    for hops in HOPS {
        assert!(results.contains(&format!("<details><summary>topology.hops = {hops}</summary>")), "{hops}");
    }
    assert!(results.contains(" undecided arms</summary>"));
    let (_, over_time) = html.split_once("<section id=\"time\">").expect("over time");
    assert!(over_time.contains("run of 2 of 32 arms: arm0, arm5"), "{}", &over_time[..400]);
    assert!(!html.contains("class=\"player\""), "frames are most of a page");
}

#[test]
fn a_flow_that_stands_for_several_is_said_and_drawn_so() {
    let mut run = record(4, "every", 1, 200.0);
    run.settings["traffic"] = json!([{ "kind": "bulk", "from": "n0", "to": "n8", "flows": 3 }]);
    run.settings["topology"]["hops"] = json!(8);
    let flow = |nth: u32| FlowRow { id: format!("f{nth}"), ..run.result.flows[0].clone() };
    run.result.flows = (0..3).map(flow).collect();
    let html = html(&Bundle::new(trial(&["every"], &[4]), vec![run], BTreeMap::new()));
    assert!(html.contains("3 flows of bulk from n0 to n8"), "{html}");
    assert_eq!(html.matches("<path class=\"flow\"").count(), 3, "an arrow for each");
}

#[test]
fn windows_that_lie_over_each_other_show_the_axes_of_one_chart() {
    let csv = "what,who,at,value\nacked_bytes,f0,1,5\ncwnd_segments,f0,1,5\nairtime:idle,n0,9,1\n";
    let records = ["every", "dca"].map(|arm| record(4, arm, 1, 100.0)).to_vec();
    let series = records.iter().map(|run| (run.id.clone(), Series::parse(csv))).collect();
    let html = html(&Bundle::new(trial(&["every", "dca"], &[4]), records, series));
    let (_, windows) = html.split_once("<figure id=\"fig-cwnd-0-f0\">").expect("windows");
    let (windows, _) = windows.split_once("</figure>").expect("their end");
    assert_eq!(
        (windows.matches("class=\"axes\"").count(), windows.matches("class=\"frame\"").count()),
        (1, 2)
    );
    assert!(html.contains("body:has(#over:checked) .lines .frame{display:none}"));
    let (_, progress) = html.split_once("<figure id=\"fig-seq-0-f0\">").expect("progress");
    let (progress, _) = progress.split_once("</figure>").expect("its end");
    assert_eq!(progress.matches("<svg").count(), 1, "all arms are in one chart");
    assert!(progress.contains("class=\"line a0\"") && progress.contains("class=\"line a1\""), "{progress}");
}
