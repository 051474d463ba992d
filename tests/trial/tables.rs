//! Tables of the book that a trial of seconds makes: each cell is what the page's command measures.

use serde_json::Value;

use crate::folder::Folder;
use crate::pages::{blocks, clone, print};

/// A page's command for a table, as it stands there or with more words, and the form of a cell.
struct Measured<'a> {
    page: &'a str,
    begins: &'a str,
    more: &'a str,
    arms: &'a [&'a str],
    cell: fn(&Value) -> String,
}

fn mean(arm: &Value, figure: &str) -> f64 {
    arm[figure]["mean"].as_f64().unwrap_or_else(|| panic!("no {figure}: {arm}"))
}

fn goodput_delay_resent(arm: &Value) -> String {
    let [kbps, p95, resent] =
        ["goodput_kbps", "rtt_p95_ms", "segments_retransmitted"].map(|figure| mean(arm, figure));
    format!("{kbps:.0}, {p95:.0} ms, {resent:.0}")
}

fn goodput_interval(arm: &Value) -> String {
    let end = |nth: usize| arm["goodput_kbps"]["ci95"][nth].as_f64().expect("several runs");
    format!("{:.0} ({:.0} to {:.0})", mean(arm, "goodput_kbps"), end(0), end(1))
}

/// The summary of the trial that a page's command makes.
fn summary(folder: &Folder, of: &Measured<'_>) -> Value {
    let text = std::fs::read_to_string(of.page).expect("the page");
    let block = blocks(&text).into_iter().find(|(commands, _)| commands.starts_with(of.begins));
    let command = block.unwrap_or_else(|| panic!("{} has no {}", of.page, of.begins)).0;
    let command = format!("{} --out results {}", command.trim_end(), of.more);
    let _ = std::fs::remove_dir_all(folder.path("results"));
    print(folder, of.page, &command, "");
    let summary = std::fs::read_to_string(folder.path("results/summary.json")).expect("a summary");
    serde_json::from_str(&summary).expect("JSON")
}

/// Each number of hops has a row that begins with it and with `more_cells`.
fn rows_stand_there(folder: &Folder, of: &Measured<'_>, more_cells: &str) {
    let (summary, page) = (summary(folder, of), std::fs::read_to_string(of.page).expect("the page"));
    let points = summary["points"].as_array().expect("points");
    assert!(points.len() > 1, "{summary}");
    for point in points {
        let cells = of.arms.iter().map(|arm| (of.cell)(&point["arms"][arm]));
        let cells: Vec<_> = cells.collect();
        let hops = &point["point"]["topology.hops"];
        let row = format!("\n| {hops} |{more_cells} {} |\n", cells.join(" | "));
        assert!(page.contains(&row), "{}, under {}: measured is {row}", of.page, of.begins);
    }
}

#[test]
fn the_tables_of_senders_are_what_their_commands_measure() {
    let folder = clone("book-senders");
    for begins in ["hopwise trial configs/senders.yaml\n", "hopwise trial configs/senders.yaml --set 'radio="]
    {
        let arms = &["linux", "linux-bbr", "cubic-hystart", "cubic", "newreno-hystart", "bbr", "train"];
        let page = "docs/notebook/senders.md";
        let of = Measured { page, begins, more: "", arms, cell: goodput_delay_resent };
        rows_stand_there(&folder, &of, "");
    }
}

#[test]
fn the_simulated_table_of_worlds_is_what_its_command_measures() {
    let folder = clone("book-worlds");
    for (rate, more) in [
        (" 2 |", ""),
        (" 11 |", "--set radio.profile=dsss-11mbps --set 'matrix={ topology.hops: [2, 4, 8] }'"),
    ] {
        let begins = "hopwise trial configs/live/hops.yaml --world sim";
        let arms = &["immediate", "delayed", "dca", "tda", "train"];
        let of = Measured { page: "docs/notebook/linux.md", begins, more, arms, cell: goodput_interval };
        rows_stand_there(&folder, &of, rate);
    }
}
