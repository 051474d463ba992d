//! The dashboard for Grafana: each of its queries asks for metrics and labels that a live node, and `hopwise mesh
//! status`, print, and the file has what Grafana's dashboards need.
//!
//! Grafana's own types read the file in `python/tests/test_dashboard.py`.
//! Grafana itself (AGPL) is no part of the tests.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::field::{Field, HOPWISE, SOCKS5, THROUGH, text};

const DASHBOARD: &str = include_str!("../../../docs/grafana/hopwise.json");
/// Labels that Prometheus adds, and a histogram's label.
const ADDED: [&str; 2] = ["instance", "job"];
/// Metrics of radios, which a wire does not have.
const OF_RADIOS: [&str; 2] = ["hopwise_mesh_weakest_signal_dbm", "hopwise_mesh_airtime_busy_ratio"];

fn dashboard() -> Value {
    serde_json::from_str(DASHBOARD).expect("JSON")
}

/// All queries of the panels and of the variables.
fn queries(of: &Value) -> Vec<String> {
    let panels = of["panels"].as_array().into_iter().flatten();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let variables = of["templating"]["list"].as_array().into_iter().flatten();
    let of_variables = variables.filter_map(|one| one["query"]["query"].as_str());
    targets.filter_map(|target| target["expr"].as_str()).chain(of_variables).map(str::to_owned).collect()
}

/// The metrics of a query, each with the labels that the query asks of it.
fn asked(query: &str) -> Vec<(String, BTreeSet<String>)> {
    let is_name = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
    let mut found = Vec::new();
    for (at, _) in query.match_indices("hopwise_") {
        let rest = &query[at..];
        let end = rest.find(|letter| !is_name(letter)).unwrap_or(rest.len());
        let inside =
            rest[end..].strip_prefix('{').and_then(|rest| rest.split('}').next()).unwrap_or_default();
        let labels = inside.split(',').filter_map(|pair| pair.split(['=', '!']).next());
        let grouped = query[..at].rfind("by (").and_then(|by| query[by + 4..at].split(')').next());
        let grouped = grouped.unwrap_or_default().split(',');
        // A variable has the values of a label.
        let of_variable = query.strip_prefix("label_values(").and_then(|rest| rest.split([',', ')']).nth(1));
        let labels =
            labels.chain(grouped).chain(of_variable).map(str::trim).filter(|label| !label.is_empty());
        found.push((rest[..end].to_owned(), labels.map(str::to_owned).collect()));
    }
    found
}

/// The metrics of a page, each with the labels of its lines.
fn printed(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut metrics: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap_or_default().to_owned();
        let labels = line.split_once('{').and_then(|(_, rest)| rest.split('}').next()).unwrap_or_default();
        let labels = labels.split(',').filter_map(|pair| Some(pair.split_once('=')?.0.to_owned()));
        metrics.entry(name).or_default().extend(labels);
    }
    metrics
}

#[test]
fn the_dashboard_asks_for_nothing_that_a_live_node_does_not_print() {
    needs!["curl", "python3"];
    let field = Field::new("dashboard");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    std::fs::write(field.path("www/big"), vec![7; 300_000]).expect("the folder can be written");
    // An agent that withholds ACKs has lines for that.
    let rules = "rules: [{ receiver: \"delayed:d=4\" }]";
    let _daemon = field.daemon(&format!("{SOCKS5}\nmetrics: {{ listen: 127.0.0.1:9184 }}\n{rules}"));
    let page = field.curl(&[&THROUGH[..], &["http://10.9.0.2/big", "-o", "/dev/null"]].concat());
    assert!(page.status.success(), "{}", text(&page.stderr));
    let node = text(&field.curl(&["http://127.0.0.1:9184/metrics"]).stdout);
    let mesh = field.node.output(&[
        HOPWISE,
        "mesh",
        "status",
        "--metrics",
        "--control",
        &field.path("control.sock"),
    ]);
    let mesh = text(&mesh.stdout);
    let mut known = printed(&format!("{node}{mesh}"));
    for name in OF_RADIOS {
        assert!(mesh.contains(&format!("# TYPE {name} gauge")), "{mesh}");
        known.entry(name.to_owned()).or_default().insert("host".to_owned());
    }
    // A machine without a mesh has neither.
    for name in ["hopwise_mesh_neighbours", "hopwise_mesh_queue_packets"] {
        assert!(mesh.contains(&format!("# TYPE {name} gauge")), "{mesh}");
        known.entry(name.to_owned()).or_default().insert("host".to_owned());
    }
    let queries = queries(&dashboard());
    assert!(queries.len() > 15, "{}", queries.len());
    for query in queries {
        let asked = asked(&query);
        assert!(!asked.is_empty(), "{query}");
        for (name, labels) in asked {
            let has = known.get(&name).unwrap_or_else(|| panic!("no {name}, which `{query}` asks for"));
            let lacks: Vec<_> = labels
                .iter()
                .filter(|label| !has.contains(*label) && !ADDED.contains(&label.as_str()))
                .collect();
            assert!(lacks.is_empty(), "{name} has no {lacks:?}, which `{query}` asks for: {has:?}");
        }
    }
}

#[test]
fn the_dashboard_has_what_grafana_needs_and_its_panels_do_not_overlap() {
    let all = dashboard();
    assert!(all["schemaVersion"].as_u64() >= Some(36) && all["uid"].is_string() && all["id"].is_null());
    assert!(
        all["title"].is_string() && all["time"]["from"].is_string() && all["annotations"]["list"].is_array()
    );
    let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for panel in all["panels"].as_array().expect("panels") {
        assert!(ids.insert(panel["id"].as_u64().expect("a number")), "{panel}");
        assert!(panel["title"].is_string() && panel["type"].is_string(), "{panel}");
        let at = |key: &str| panel["gridPos"][key].as_u64().unwrap_or_else(|| panic!("no {key}: {panel}"));
        assert!(at("x") + at("w") <= 24, "{panel}");
        for x in at("x")..at("x") + at("w") {
            assert!((at("y")..at("y") + at("h")).all(|y| cells.insert((x, y))), "{panel} lies over another");
        }
        if panel["type"] == "row" {
            continue;
        }
        let mut names = BTreeSet::new();
        for target in panel["targets"].as_array().expect("targets") {
            assert!(names.insert(target["refId"].as_str().expect("a name")), "{target}");
            assert_eq!(target["datasource"]["uid"], "${datasource}");
            let expr = target["expr"].as_str().expect("a query");
            assert_eq!(expr.matches('(').count(), expr.matches(')').count(), "{expr}");
        }
        assert!(!names.is_empty() && panel["fieldConfig"]["defaults"]["unit"].is_string(), "{panel}");
    }
    let variables = all["templating"]["list"].as_array().expect("variables");
    let names: Vec<_> = variables.iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["datasource", "instance", "host"]);
}

#[test]
fn metrics_and_labels_of_a_query_are_found() {
    let found = asked("sum by (a, le) (rate(hopwise_x_bucket{what=\"new\",host=~\"$h\"}[5m])) / hopwise_y");
    let labels = |nth: usize| found[nth].1.iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!((found[0].0.as_str(), labels(0)), ("hopwise_x_bucket", vec!["a", "host", "le", "what"]));
    assert_eq!(found[1].0, "hopwise_y");
    assert_eq!(asked("label_values(hopwise_z, host)")[0].1.iter().collect::<Vec<_>>(), ["host"]);
}
