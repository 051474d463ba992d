//! `hopwise capture graph`: its ACKs, their reasons and what was sent again are those that the summary counts.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::{hopwise, run, text};

fn summary(file: &Path) -> Value {
    let done = hopwise(&["capture", "why", &file.to_string_lossy(), "--summary", "--json"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    serde_json::from_slice(&done.stdout).expect("JSON")
}

/// The graph of a capture as this file beside it.
fn graph(file: &Path, name: &str, words: &[&str]) -> String {
    let out = file.with_file_name(name);
    let (file, path) = (file.to_string_lossy(), out.to_string_lossy());
    let done = hopwise(&[&["capture", "graph", &file, "-o", &path], words].concat());
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    std::fs::read_to_string(out).expect("it was written")
}

#[test]
fn a_graph_has_each_ack_with_the_reason_that_the_summary_counts() {
    let end = run("graphed", "delayed", &[]).join("ends/n3.pcapng");
    let svg = graph(&end, "n3.svg", &[]);
    let mut counted = BTreeMap::new();
    for acks in summary(&end)["acks"].as_array().expect("a list") {
        let (agent, rule) = (acks["agent"].as_str().expect("a name"), acks["rule"].as_str().expect("a name"));
        // The answer to the SYN acknowledges no data.
        let is_opening = rule == "syn" || rule == "handshake";
        let name = if agent.is_empty() { rule.to_owned() } else { format!("{agent}: {rule}") };
        if !is_opening {
            *counted.entry(name).or_insert(0) += acks["count"].as_u64().expect("a count");
        }
    }
    assert!(!counted.is_empty(), "{}", summary(&end));
    for (rule, count) in &counted {
        assert!(svg.contains(&format!("{count} ACKs: {rule}</text>")), "{count} {rule}: {counted:?}");
    }
    let of_rules = svg.matches("</title></circle>").count();
    assert!(of_rules as u64 >= counted.values().sum(), "{of_rules} marks, {counted:?}");
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert!(svg.contains("decided it, ") && svg.contains("class=\"window\""), "reasons and the window");
    let part = graph(&end, "part.svg", &["--from", "1s", "--to", "2s"]);
    let marks = part.matches("</title></circle>").count();
    assert!(marks > 0 && marks < of_rules, "{marks} of {of_rules}");
}

#[test]
fn xplot_marks_what_was_sent_again_as_often_as_the_summary() {
    let end = run("graphed-lossy", "every", &["channel.loss=20%"]).join("ends/n0.pcapng");
    let xplot = graph(&end, "n0.xpl", &[]);
    let sent = summary(&end)["sent"].as_array().cloned().expect("a list");
    let again =
        sent.iter().filter(|one| one["what"].as_str().is_some_and(|what| what.starts_with("sent again")));
    let again: u64 = again.filter_map(|one| one["packets"].as_u64()).sum();
    assert!(again > 0, "{sent:?}");
    let marked = xplot.lines().filter(|line| *line == "R").count();
    assert_eq!(marked as u64, again, "{sent:?}");
    let shapes = shapes(&xplot);
    let count = |name: &str| shapes.iter().filter(|shape| shape.as_str() == name).count();
    assert!(count("line") > 100 && count("darrow") == count("uarrow"), "{}", shapes.len());
    assert_eq!(count("atext") as u64, again);
}

const XPLOT_COLOURS: [&str; 9] =
    ["white", "green", "red", "blue", "yellow", "purple", "orange", "magenta", "pink"];

/// The shapes of a file for xplot, read as strictly as xplot does. It has the kinds of both axes, then commands, each
/// on a line with its numbers. A text is the line behind its command.
fn shapes(file: &str) -> Vec<String> {
    let mut lines = file.lines();
    assert_eq!(lines.next(), Some("dtime unsigned"));
    let (mut shapes, mut ended) = (Vec::new(), false);
    while let Some(line) = lines.next() {
        assert!(!ended, "{line} stands behind the end");
        let words: Vec<_> = line.split(' ').collect();
        let places = match words[0] {
            "title" | "xlabel" | "ylabel" => 0,
            "go" => {
                ended = true;
                continue;
            }
            colour if words.len() == 1 && XPLOT_COLOURS.contains(&colour) => continue,
            "line" => 2,
            "darrow" | "uarrow" | "dtick" | "dot" | "atext" | "rtext" => 1,
            other => panic!("xplot knows no `{other}`: {line}"),
        };
        assert_eq!(words.len(), 1 + 2 * places, "{line}");
        for place in words[1..].chunks(2) {
            let (seconds, micros) = place[0].split_once('.').expect("seconds");
            assert!(seconds.parse::<u64>().is_ok() && micros.len() == 6 && micros.parse::<u64>().is_ok());
            place[1].parse::<u32>().expect("an unsigned number");
        }
        if places == 0 || words[0].ends_with("text") {
            let said = lines.next().expect("a line of text");
            assert!(!said.is_empty(), "{line}");
        }
        shapes.push(words[0].to_owned());
    }
    assert!(ended, "no `go`");
    shapes
}

#[test]
fn what_a_graph_cannot_show_is_refused_with_what_it_can() {
    let end = run("graphed-refused", "every", &[]).join("ends/n3.pcapng");
    let end = end.to_string_lossy();
    for (words, said) in [
        (&["-o", "x.png"][..], "expected a name that ends in .svg or .xpl"),
        (&["-o", "x.svg", "--flow", "a"], "expected FROM-TO"),
        (&["-o", "x.svg", "--flow", "10.9.9.9:1-10.9.9.9:2"], "expected one of 10."),
        (&["-o", "x.svg", "--interface", "n7"], "no interface `n7` has data of this flow: expected one of"),
    ] {
        let done = hopwise(&[&["capture", "graph", &end], words].concat());
        assert_eq!(done.status.code(), Some(2), "{words:?}");
        assert!(text(&done.stderr).contains(said), "{words:?}: {}", text(&done.stderr));
    }
}
