//! The mesh of a trial on real hosts: its map, its links, its routes over time, its clocks and channels.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::chart::escape;
use super::figures::{self, MAP_WIDTH, NodePlaces, map_link};
use super::{View, figure};
use crate::live::mesh::{ChannelRow, ClockRow, HostRow, MeshRun, StationLink};
use crate::metric::mean;
use crate::record::Record;
use crate::statistics::shown;

/// Rows of routes beyond these stand in the records alone.
const MOST_ROUTES: usize = 300;

/// The section; nothing where no run was on hosts.
pub(super) fn section(view: &View<'_>) -> String {
    let records = view.bundle.records.iter();
    let runs: Vec<_> = records.filter_map(|of| Some((of, of.result.live.as_ref()?.mesh.as_ref()?))).collect();
    let Some((_, first)) = runs.first() else { return String::new() };
    format!(
        "<section id=\"mesh\"><h2>The mesh</h2><p class=\"lead\">What the hosts saw of their radios and routes beside \
         the runs. What no driver tells is empty.</p>{}{}{}{}{}</section>\n",
        map(first, &runs),
        hosts(first, &runs),
        links(&runs),
        routes(&runs),
        again(&runs)
    )
}

type MeshRuns<'a> = [(&'a Record, &'a MeshRun)];

/// The hosts at their places, and a line where some route led from one to the next.
fn map(first: &MeshRun, runs: &MeshRuns<'_>) -> String {
    let place = |row: &HostRow| row.at_m.map(|[x, y]| (row.node.clone(), x, y));
    let Some(at) = first.hosts.iter().map(place).collect::<Option<Vec<_>>>() else { return String::new() };
    let places = NodePlaces::within(MAP_WIDTH, at, (Vec::new(), Vec::new()));
    let mut svg = format!(
        "<svg class=\"map\" viewBox=\"0 0 {MAP_WIDTH} {:.0}\" role=\"img\" aria-label=\"the hosts and their links\">",
        places.height
    );
    let used: BTreeSet<(&str, &str)> = each_host(runs)
        .flat_map(|row| {
            row.routes.iter().filter_map(|route| Some((row.node.as_str(), route.via.as_deref()?)))
        })
        .map(|(a, b)| if a < b { (a, b) } else { (b, a) })
        .collect();
    for ends in used {
        map_link(&mut svg, &places, ends, "link", 2.0);
    }
    places.at.iter().for_each(|(node, place)| figures::node(&mut svg, *place, node));
    svg.push_str("</svg>");
    let reading = "The hosts at the places that the scenario gives them. A line joins two of which one was the first \
                   hop of the other in some run.";
    figure("fig-mesh", "The hosts and their links", &svg, reading)
}

fn each_host<'a>(runs: &'a MeshRuns<'_>) -> impl Iterator<Item = &'a HostRow> {
    runs.iter().flat_map(|(_, mesh)| &mesh.hosts)
}

fn cell(value: Option<f64>) -> String {
    value.map_or(String::new(), shown)
}

fn percent(value: Option<f64>) -> String {
    value.map_or(String::new(), |share| format!("{:.0} %", share * 100.0))
}

/// A table with these heads; nothing without rows.
fn table(title: &str, heads: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let heads: String = heads.iter().map(|head| format!("<th>{head}</th>")).collect();
    let mut html =
        format!("<h3>{title}</h3><div class=\"scroll\"><table><thead><tr>{heads}</tr></thead><tbody>");
    for row in rows {
        let cells: String = row.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
        let _ = write!(html, "<tr>{cells}</tr>");
    }
    html + "</tbody></table></div>"
}

fn hosts(first: &MeshRun, runs: &MeshRuns<'_>) -> String {
    let mut by_node: BTreeMap<&str, Vec<&HostRow>> = BTreeMap::new();
    each_host(runs).for_each(|row| by_node.entry(&row.node).or_default().push(row));
    let row = |host: &HostRow| {
        let all = || by_node[host.node.as_str()].iter();
        let clock = |of: fn(&ClockRow) -> f64| cell(mean(all().filter_map(|row| row.clock.as_ref().map(of))));
        let largest = |of: fn(&ClockRow) -> f64| {
            all()
                .filter_map(|row| row.clock.as_ref().map(of))
                .fold(None, |most: Option<f64>, value| Some(most.map_or(value, |most| most.max(value))))
        };
        let busy = |of: fn(&ChannelRow) -> Option<f64>| {
            percent(mean(all().filter_map(|row| row.channel.as_ref().and_then(of))))
        };
        vec![
            host.node.clone(),
            host.host.clone(),
            format!("{} ({})", host.address, host.interface),
            host.kernel.clone().unwrap_or_default(),
            clock(|clock| clock.ahead_ms),
            cell(largest(|clock| clock.within_ms)),
            clock(|clock| clock.drift_ppm),
            cell(largest(|clock| clock.drift_within_ppm)),
            host.channel.map_or(String::new(), |channel| format!("{} MHz", channel.frequency_mhz)),
            busy(|channel| channel.busy_before),
            busy(|channel| channel.busy_beside),
        ]
    };
    let heads = [
        "node",
        "host",
        "address",
        "kernel",
        "clock ahead, ms",
        "± ms",
        "drift, ppm",
        "± ppm",
        "channel",
        "busy before",
        "busy beside",
    ];
    let mut seen = BTreeSet::new();
    let rows = first.hosts.iter().filter(|host| seen.insert(&*host.node)).map(row);
    table("Hosts, means over the runs", &heads, &rows.collect::<Vec<_>>())
}

fn links(runs: &MeshRuns<'_>) -> String {
    let mut by_ends: BTreeMap<(&str, &str), Vec<&StationLink>> = BTreeMap::new();
    for host in each_host(runs) {
        for link in &host.links {
            by_ends.entry((&host.node, &link.to)).or_default().push(link);
        }
    }
    let row = |((from, to), all): (&(&str, &str), &Vec<&StationLink>)| {
        let sum = |of: fn(&StationLink) -> Option<u64>| {
            let known: Vec<_> = all.iter().filter_map(|link| of(link)).collect();
            (!known.is_empty()).then(|| known.iter().sum::<u64>())
        };
        let weakest = all.iter().filter_map(|link| link.weakest_dbm).min();
        let strongest = all.iter().filter_map(|link| link.strongest_dbm).max();
        let count = |of: Option<u64>| of.map_or(String::new(), |count| count.to_string());
        vec![
            (*from).to_owned(),
            (*to).to_owned(),
            cell(mean(all.iter().filter_map(|link| link.signal_dbm))),
            weakest.zip(strongest).map_or(String::new(), |(low, high)| format!("{low} to {high}")),
            cell(mean(all.iter().filter_map(|link| link.tx_mbps))),
            count(sum(|link| link.tx_packets)),
            count(sum(|link| link.tx_retries)),
            count(sum(|link| link.tx_failed)),
        ]
    };
    let heads = ["from", "to", "signal, dBm", "range, dBm", "Mbit/s", "packets", "repeated", "given up"];
    table("Links, over all runs", &heads, &by_ends.iter().map(row).collect::<Vec<_>>())
}

/// The first hops of the first run, and each change in any run.
fn routes(runs: &MeshRuns<'_>) -> String {
    let mut rows = Vec::new();
    for (nth, (record, mesh)) in runs.iter().enumerate() {
        for host in &mesh.hosts {
            let mut known = BTreeSet::new();
            for route in &host.routes {
                let is_first = known.insert(&route.to);
                if is_first && nth > 0 {
                    continue;
                }
                rows.push(vec![
                    format!("{}, seed {}", record.arm, record.seed),
                    shown(route.at_s),
                    host.node.clone(),
                    route.to.clone(),
                    route.via.clone().unwrap_or_else(|| "no route".to_owned()),
                ]);
            }
        }
    }
    let left = rows.len().saturating_sub(MOST_ROUTES);
    rows.truncate(MOST_ROUTES);
    let html =
        table("Routes of the first run, and each change", &["run", "s", "from", "to", "first hop"], &rows);
    if left > 0 { format!("{html}<p>{left} more are in the records.</p>") } else { html }
}

/// The reasons why runs were repeated.
fn again(runs: &MeshRuns<'_>) -> String {
    let of = |(record, mesh): &(&Record, &MeshRun)| {
        let run = format!("{}, seed {}", record.arm, record.seed);
        mesh.again.iter().map(|why| vec![run.clone(), why.clone()]).collect::<Vec<_>>()
    };
    let rows: Vec<_> = runs.iter().flat_map(of).collect();
    table("Runs that were repeated", &["run", "why an earlier try does not count"], &rows)
}
