//! Several flows of one host, in turn and without turns. The rows show gains and costs; they have no goal.

use crate::goals::Chain;
use crate::measure::{self, Cell, Mean};
use crate::row::Row;

const ARMS: [&str; 3] = ["train", "off", "tda"];
const OFF: &str = "turns=off";

/// Rate and delay, and the number of flows that share it.
const WIRES: [(&str, &str, u32); 6] = [
    ("2mbit", "5ms", 2),
    ("2mbit", "5ms", 5),
    ("50mbit", "1ms", 2),
    ("50mbit", "1ms", 5),
    ("2mbit", "20ms", 2),
    ("10mbit", "50ms", 2),
];

pub(crate) fn rows() -> Vec<Row> {
    let (names, cells): (Vec<_>, Vec<_>) = chains().chain(WIRES.map(wire)).unzip();
    let measured = measure::all(&cells);
    names.iter().zip(&measured).flat_map(|(name, means)| rows_of(name, means)).map(Row::printed).collect()
}

/// Frames that are lost, and rates at which a train is many segments.
fn chains() -> impl Iterator<Item = (String, Cell)> {
    let mut chains = Vec::new();
    for rules in ["standard", "ns2"] {
        for loss in ["0%", "1%", "5%"] {
            for hops in [8, 12] {
                let more = Some(("channel.loss", loss));
                let of = |flows| Chain { rules, profile: "dsss-2mbps", flows, hops, more };
                chains.extend([2, 5].map(of));
            }
        }
        let fast = |(flows, hops)| Chain { rules, profile: "ofdm-24mbps", flows, hops, more: None };
        chains.extend([(5, 8), (2, 15)].map(fast));
    }
    chains.into_iter().map(|chain| (chain.name(), cell(chain.sets())))
}

fn wire((rate, delay, flows): (&str, &str, u32)) -> (String, Cell) {
    let sets = vec![
        format!("topology={{ kind: chain, hops: 1, wired: {{ rate: {rate}, delay: {delay} }} }}"),
        "traffic.0.to=n0".to_owned(),
        format!("traffic.0.flows={flows}"),
    ];
    (format!("a wire of {rate} and {delay} {flows} flows"), cell(sets))
}

fn cell(mut sets: Vec<String>) -> Cell {
    sets.push("arms.off={ receiver: train, sender: ['train:turns=off'] }".to_owned());
    Cell { sets, arms: &ARMS }
}

/// Rows that compare turns with no turns, and each of the two with `tda`.
fn rows_of(name: &str, means: &[Mean]) -> [Row; 3] {
    let [in_turn, off, tda] = means else { panic!("a mean for each arm") };
    let row = |of: &str, ours: &Mean, peer, theirs: &Mean| Row {
        name: format!("{name}, {of}"),
        unit: "kbit/s",
        ours: ours.kbps,
        peer,
        theirs: theirs.kbps,
        goal: None,
        jain: Some(ours.jain),
    };
    [row("in turn", in_turn, OFF, off), row("in turn", in_turn, "tda", tda), row(OFF, off, "tda", tda)]
}
