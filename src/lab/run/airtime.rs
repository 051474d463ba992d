//! Airtime of every radio, as a picture in text.

use std::io::{self, Write};

use hopwise_air::airtime::{Airtime, Spent};
use hopwise_lab::scenario::Prepared;
use hopwise_lab::sim::Results;

use crate::table;

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
    legend(table::width()).iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// The meanings of the marks, in lines that are no wider than the terminal. A mark and its meaning stay together.
fn legend(width: Option<usize>) -> Vec<String> {
    const INDENT: &str = "    ";
    let mut lines = vec![INDENT.to_owned()];
    for (_, mark, name) in MARKS {
        let item = format!("  {mark} {name}");
        let has_room = |line: &&mut String| width.is_none_or(|width| line.len() + item.len() <= width);
        match lines.last_mut().filter(has_room) {
            Some(line) => line.push_str(&item),
            None => lines.push(format!("{INDENT}{item}")),
        }
    }
    lines
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_has_the_legend_in_several_lines_and_a_file_in_one() {
        let whole = legend(None);
        assert!(
            whole.len() == 1 && whole[0].starts_with("      D sends data  a sends TCP ACKs  "),
            "{whole:?}"
        );
        let narrow = legend(Some(80));
        assert!(narrow.len() == 2 && narrow.iter().all(|line| line.len() <= 80), "{narrow:#?}");
        let items = |lines: &[String]| lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join("  ");
        assert_eq!(items(&narrow), items(&whole));
    }
}
