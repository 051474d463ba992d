//! Airtime of every radio, as a picture in text.

use std::io::{self, Write};

use hopwise_air::airtime::{Airtime, Spent};
use hopwise_lab::scenario::Prepared;
use hopwise_lab::sim::Results;

const WIDTH: usize = 60;

const MARKS: [(Spent, char, &str); 10] = [
    (Spent::SendsData, 'D', "sends data"),
    (Spent::SendsTcpAck, 'a', "sends TCP ACKs"),
    (Spent::SendsAck, 'A', "sends MAC ACKs"),
    (Spent::SendsRts, 'r', "sends RTS"),
    (Spent::SendsCts, 'c', "sends CTS"),
    (Spent::Receives, '#', "receives"),
    (Spent::Overhears, 'o', "overhears"),
    (Spent::Noise, '~', "noise"),
    (Spent::Collision, 'x', "collision"),
    (Spent::Idle, '.', "idle"),
];

pub(super) fn print(results: &Results, prepared: &Prepared) -> io::Result<()> {
    let mut out = hopwise_lab::plain::out();
    writeln!(out, "\nairtime of each radio; a mark is {:.1} % of the time", 100.0 / WIDTH as f64)?;
    for (node, number) in results.nodes.iter().zip(0..) {
        if let Some(airtime) = node.airtime.filter(|_| prepared.plan.positions[number as usize].is_some()) {
            writeln!(out, "{:>5} {}", prepared.name_of(number), bar(&airtime))?;
        }
    }
    let legend: Vec<_> = MARKS.iter().map(|(_, mark, name)| format!("{mark} {name}")).collect();
    writeln!(out, "      {}", legend.join("  "))
}

/// Marks in proportion; each kind ends at its cumulative share.
fn bar(airtime: &Airtime) -> String {
    let total = airtime.total_ns().max(1);
    let (mut bar, mut so_far) = (String::new(), 0);
    for (spent, mark, _) in MARKS {
        so_far += airtime.ns(spent);
        let until = (u128::from(so_far) * WIDTH as u128 / u128::from(total)) as usize;
        while bar.len() < until {
            bar.push(mark);
        }
    }
    bar
}
