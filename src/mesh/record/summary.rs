//! The last words of a recording.

use hopwise_air::channel::MOST_ROWS;
use serde::Serialize;

use super::sample::Counted;

#[derive(Debug, Default, Serialize)]
pub(super) struct Summary {
    pub(super) interface: String,
    pub(super) node: String,
    pub(super) address: Option<String>,
    /// Absent for standard output.
    pub(super) out: Option<String>,
    pub(super) every_s: f64,
    pub(super) began_s: f64,
    /// The time of the last sample.
    pub(super) length_s: f64,
    pub(super) rows: u64,
    /// The number of times that somebody set the time of day meanwhile.
    pub(super) clock_was_set: u64,
    pub(super) neighbours: Vec<Counted>,
}

impl Summary {
    pub(super) fn new(interface: &str, node: &str) -> Summary {
        Summary { interface: interface.to_owned(), node: node.to_owned(), ..Summary::default() }
    }

    /// One line, and those that a reader has to know besides.
    pub(super) fn lines(&self) -> Vec<String> {
        let Summary { interface, node, length_s, rows, clock_was_set, neighbours, .. } = self;
        let of = |one: &Counted| format!("{} in {} samples", one.name, one.signals);
        let heard: Vec<_> = neighbours.iter().filter(|one| one.signals > 0).map(of).collect();
        let silent: Vec<_> =
            neighbours.iter().filter(|one| one.signals == 0).map(|one| one.name.clone()).collect();
        let told = if heard.is_empty() { "no neighbour".to_owned() } else { heard.join(", ") };
        let mut lines = vec![format!(
            "recorded {length_s:.1} s of {interface} as {node}: {rows} rows, signals of {told}"
        )];
        if heard.is_empty() {
            lines.push(
                "without a signal there is nothing to play: expected neighbours that send frames".to_owned(),
            );
        }
        if !silent.is_empty() {
            lines.push(format!("their driver told no signal of a frame: {}", silent.join(", ")));
        }
        if *clock_was_set > 0 {
            lines.push(format!(
                "the clock was set {clock_was_set} times: a merge takes the last setting for all rows"
            ));
        }
        if *rows > MOST_ROWS as u64 {
            lines.push(format!("a field has {MOST_ROWS} rows at most: expected a longer --every"));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_says_it_and_others_say_what_is_wrong() {
        let of = |name: &str, signals| Counted { name: name.to_owned(), signals, ..Counted::default() };
        let summary = |neighbours, clock_was_set, rows| {
            let length_s = 12.34;
            Summary { neighbours, clock_was_set, rows, length_s, ..Summary::new("wlan0", "roof") }.lines()
        };
        let good = "recorded 12.3 s of wlan0 as roof: 40 rows, signals of gate in 20 samples";
        assert_eq!(summary(vec![of("gate", 20)], 0, 40), [good]);
        let bad = summary(vec![of("gate", 0)], 2, 5_000_000).join("\n");
        for wanted in
            ["no neighbour", "nothing to play", "no signal of a frame: gate", "set 2 times", "longer --every"]
        {
            assert!(bad.contains(wanted), "{wanted}: {bad}");
        }
    }
}
