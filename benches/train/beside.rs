//! `train` together with one flow of another kind. Beside plain NewReno it gets at least half of the goodput of `dca`
//! there, and NewReno loses nothing. Beside CUBIC, `dca` and `tda` it gets at least half of the goodput of another such
//! flow, and they lose nothing either.

use crate::measure::{self, Cell, Mean};
use crate::row::Row;

const HOPS: [u32; 4] = [2, 4, 8, 12];
const ARMS: [&str; 3] = ["delayed", "dca", "train"];
const HALF: f64 = 0.5;

/// Another flow's agents, and the arm in which both flows have them.
struct Other {
    name: &'static str,
    agents: &'static str,
    arms: [&'static str; 2],
}

const OTHERS: [Other; 3] = [
    Other { name: "cubic", agents: "receiver: delayed, sender: [cubic]", arms: ["cubic", "train"] },
    Other { name: "dca", agents: "receiver: dca, sender: [newreno, tell-cwnd]", arms: ["dca", "train"] },
    Other { name: "tda", agents: "receiver: tda, sender: [newreno, tell-cwnd]", arms: ["tda", "train"] },
];

pub(crate) fn newreno() -> Vec<Row> {
    let (names, cells): (Vec<_>, Vec<_>) = places()
        .map(|(rules, hops)| {
            let sets = beside(rules, hops, "receiver: delayed, sender: [newreno]");
            (format!("{rules} {hops} hops beside newreno"), Cell { sets, arms: &ARMS })
        })
        .unzip();
    let measured = measure::all(&cells);
    names
        .iter()
        .zip(&measured)
        .flat_map(|(name, means)| newreno_rows(name, means))
        .map(Row::printed)
        .collect()
}

pub(crate) fn others() -> Vec<Row> {
    let wanted: Vec<_> = OTHERS.iter().flat_map(|other| places().map(move |place| (other, place))).collect();
    let cell = |(other, (rules, hops)): &(&'static Other, (&str, u32))| {
        let mut sets = beside(rules, *hops, other.agents);
        sets.push("arms.cubic={ receiver: delayed, sender: [cubic] }".to_owned());
        Cell { sets, arms: &other.arms }
    };
    let cells: Vec<_> = wanted.iter().map(cell).collect();
    let measured = measure::all(&cells);
    let rows = wanted.iter().zip(&measured).flat_map(|((other, (rules, hops)), means)| {
        let [like, train] = means.as_slice() else { panic!("a mean for each arm") };
        let name = format!("{rules} {hops} hops beside {}", other.name);
        let like = like.kbps / 2.0;
        [
            row(name.clone(), train.flows_kbps[0], "another there", like, HALF),
            row(
                format!("{name}: what {} has", other.name),
                train.flows_kbps[1],
                "beside its like",
                like,
                1.0,
            ),
        ]
    });
    rows.map(Row::printed).collect()
}

fn places() -> impl Iterator<Item = (&'static str, u32)> {
    ["ns2", "standard"].into_iter().flat_map(|rules| HOPS.map(|hops| (rules, hops)))
}

/// Two flows over one path, the second one with these agents.
fn beside(rules: &str, hops: u32, agents: &str) -> Vec<String> {
    vec![
        format!("mac.rules={rules}"),
        format!("topology.hops={hops}"),
        "traffic.0.flows=2".to_owned(),
        format!("rules=[{{ match: {{ port: 5002 }}, {agents} }}]"),
    ]
}

fn newreno_rows(name: &str, means: &[Mean]) -> [Row; 2] {
    let [delayed, dca, train] = means else { panic!("a mean for each arm") };
    let like = delayed.kbps / 2.0;
    [
        row(name.to_owned(), train.flows_kbps[0], "dca there", dca.flows_kbps[0], HALF),
        row(format!("{name}: what newreno has"), train.flows_kbps[1], "beside its like", like, 1.0),
    ]
}

fn row(name: String, ours: f64, peer: &'static str, theirs: f64, goal: f64) -> Row {
    Row { name, unit: "kbit/s", ours, peer, theirs, goal: Some(goal), jain: None }
}
