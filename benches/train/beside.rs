//! Beside one flow of plain NewReno: at least half of what `dca` gets there, and no less for NewReno than beside its
//! like.

use crate::measure::{self, Cell, Mean};
use crate::row::Row;

const HOPS: [u32; 4] = [2, 4, 8, 12];
const ARMS: [&str; 3] = ["delayed", "dca", "train"];
const HALF: f64 = 0.5;

pub(crate) fn newreno() -> Vec<Row> {
    let mut names = Vec::new();
    let mut cells = Vec::new();
    for rules in ["ns2", "standard"] {
        for hops in HOPS {
            names.push(format!("{rules} {hops} hops beside newreno"));
            let sets = vec![
                format!("mac.rules={rules}"),
                format!("topology.hops={hops}"),
                "traffic.0.flows=2".to_owned(),
                "rules=[{ match: { port: 5002 }, receiver: delayed, sender: [newreno] }]".to_owned(),
            ];
            cells.push(Cell { sets, arms: &ARMS });
        }
    }
    let measured = measure::all(&cells);
    names.iter().zip(&measured).flat_map(|(name, means)| rows(name, means)).map(Row::told).collect()
}

fn rows(name: &str, means: &[Mean]) -> [Row; 2] {
    let [delayed, dca, train] = means else { panic!("a mean for each arm") };
    let row = |name: String, ours: f64, peer: &'static str, theirs: f64, goal: f64| Row {
        name,
        unit: "kbit/s",
        ours,
        peer,
        theirs,
        goal,
        jain: None,
    };
    let like = delayed.kbps / 2.0;
    [
        row(name.to_owned(), train.flows_kbps[0], "dca there", dca.flows_kbps[0], HALF),
        row(format!("{name}: what newreno has"), train.flows_kbps[1], "beside its like", like, 1.0),
    ]
}
