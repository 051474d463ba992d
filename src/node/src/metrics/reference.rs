//! The page of the book that lists all metrics, from what a node prints.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::atomic::Ordering;

use hopwise_core::trace::Totals;
use hopwise_host::CaptureCounts;

use super::{Sums, text};
use crate::fleet::report::{AirtimeReport, ClockReport, HostReport, NeighbourReport, QueueReport, Reports};
use crate::fleet::view;
use crate::snapshot::{LinkSnapshot, Snapshot, TotalsSnapshot};
use hopwise_daemon::thin::ThinSnapshot;
use hopwise_testing::book;

/// The values of a label with no more than this stand on the page.
const MOST_VALUES: usize = 12;

const HEAD: &str = "\
# Metrics

Written by a test from the program. A node with `metrics: { listen: 127.0.0.1:9184 }` answers `GET /metrics` in
Prometheus' text format. No address and no port of a connection becomes a label. Counters count from the start of the
daemon, and include connections that are gone.

`hopwise mesh status --metrics` prints the metrics of a fleet, for a file of the node exporter's collector `textfile`.
[grafana/hopwise.json](grafana/hopwise.json) is a dashboard of both for Grafana; [a fleet of hosts](fleet.md) tells how.
";

/// A family of metrics.
#[derive(Default)]
struct Family {
    kind: String,
    help: String,
    labels: BTreeMap<String, BTreeSet<String>>,
}

/// A page of a node on which each family has a line.
fn sample() -> String {
    let sums = Sums::new();
    sums.all().for_each(|counter| counter.store(1, Ordering::Relaxed));
    let one = |name: &str| BTreeMap::from([(name.to_owned(), 1)]);
    let link = LinkSnapshot { name: "hw0".to_owned(), drops: one("down"), ..LinkSnapshot::default() };
    let mut snapshot = Snapshot {
        drops: one("no-route"),
        totals: TotalsSnapshot::of(&Totals::default()),
        relays: [("socks5-accepted".to_owned(), 1), ("socks5-open".to_owned(), 1)].into(),
        links: vec![link],
        ..Snapshot::default()
    };
    snapshot.bounds.add("connections", [1, 1, 1]);
    text(&sums, &snapshot, &CaptureCounts::default())
}

/// The families of a page, in its order.
fn families(page: &str) -> Vec<(String, Family)> {
    let mut found: Vec<(String, Family)> = Vec::new();
    for line in page.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            found.push((name.to_owned(), Family { help: help.to_owned(), ..Family::default() }));
            continue;
        }
        let Some((_, family)) = found.last_mut() else { continue };
        match line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            Some((_, kind)) => kind.clone_into(&mut family.kind),
            None => add_labels(family, line),
        }
    }
    found
}

fn add_labels(family: &mut Family, line: &str) {
    let labels = line.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map_or("", |(of, _)| of);
    for (name, value) in labels.split(',').filter_map(|pair| pair.split_once('=')) {
        family.labels.entry(name.to_owned()).or_default().insert(value.trim_matches('"').to_owned());
    }
}

/// A label with its values, if they are few and known beforehand.
fn label((name, values): (&String, &BTreeSet<String>)) -> String {
    if !(2..=MOST_VALUES).contains(&values.len()) || name == "le" {
        return format!("`{name}`");
    }
    let values: Vec<_> = values.iter().map(|value| format!("`{value}`")).collect();
    format!("`{name}`: {}", values.join(", "))
}

fn table(page: &str) -> String {
    let mut text = "| metric | kind | labels | meaning |\n|---|---|---|---|\n".to_owned();
    for (name, Family { kind, help, labels }) in families(page) {
        let labels: Vec<_> = labels.iter().map(label).collect();
        writeln!(text, "| `{name}` | {kind} | {} | {help} |", labels.join("; ")).expect("a text grows");
    }
    text
}

/// A report with a value of each metric.
fn host() -> HostReport {
    let neighbour = NeighbourReport { signal_dbm: Some(-60), ..NeighbourReport::default() };
    HostReport {
        host: "n1".to_owned(),
        neighbours: Some(vec![neighbour]),
        routes_valid: Some(1),
        queue: Some(QueueReport::default()),
        airtime: Some(AirtimeReport { active_ms: 2, busy_ms: 1, ..AirtimeReport::default() }),
        connections: Some(1),
        clock: Some(ClockReport::default()),
        ..HostReport::default()
    }
}

#[test]
fn the_book_has_every_metric() {
    let fleet = view::metrics(&Reports { hosts: vec![host()] });
    let thin = ThinSnapshot::default().metrics();
    let [node, thin, fleet] = [&sample(), &thin, &fleet].map(|page| table(page));
    let made = format!(
        "{HEAD}\n## A node\n\n{node}\n## A daemon that thins ACKs\n\n`hopwise thin --metrics ADDRESS:PORT` answers \
         too.\n\n{thin}\n## A fleet\n\n{fleet}"
    );
    book::holds("docs/metrics.md", &made);
}

#[test]
fn each_family_has_a_line_with_its_meaning() {
    let families = families(&sample());
    assert!(families.len() > 25, "{}", families.len());
    let page = sample();
    let fleet = view::metrics(&Reports { hosts: vec![host()] });
    assert_eq!(fleet.matches("# TYPE ").count(), fleet.matches("{host=\"n1\"}").count(), "{fleet}");
    for (name, Family { kind, help, .. }) in families {
        let is_named = name.starts_with("hopwise_") && (kind == "counter") == name.ends_with("_total");
        assert!(is_named && help.ends_with('.'), "{name} ({kind}): {help}");
        let has_line = page.lines().any(|line| line.starts_with(&name));
        assert!(has_line, "the sample has no line of {name}");
    }
}
