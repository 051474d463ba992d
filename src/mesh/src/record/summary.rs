//! The words of a recording for people: a line of progress, and a summary at the end.

use std::io::{self, IsTerminal};
use std::time::Duration;

use hopwise_air::channel::MOST_ROWS;
use hopwise_core::Instant;
use indicatif::ProgressBar;
use serde::Serialize;

use super::sample::NeighbourCounts;
use hopwise_daemon::failure::remark;

/// Between two lines of progress where there is no terminal.
const PAUSE: Duration = Duration::from_secs(60);

#[derive(Debug, Default, Serialize)]
pub(super) struct RecordingSummary {
    pub interface: String,
    pub(super) node: String,
    pub address: Option<String>,
    /// Absent for standard output.
    pub(super) out: Option<String>,
    pub(super) every_s: f64,
    pub(super) began_s: f64,
    /// The time of the last sample.
    pub(super) length_s: f64,
    pub(super) rows: u64,
    /// The number of times that somebody set the time of day meanwhile.
    pub(super) clock_was_set: u64,
    pub(super) neighbours: Vec<NeighbourCounts>,
}

impl RecordingSummary {
    pub(super) fn new(interface: &str, node: &str) -> RecordingSummary {
        RecordingSummary {
            interface: interface.to_owned(),
            node: node.to_owned(),
            ..RecordingSummary::default()
        }
    }

    /// One line about the recording, and a line for each problem that a reader has to know.
    pub(super) fn lines(&self) -> Vec<String> {
        let RecordingSummary { interface, node, length_s, rows, clock_was_set, neighbours, .. } = self;
        let of = |one: &NeighbourCounts| format!("{} in {} samples", one.name, one.signals);
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

/// A line that changes on a terminal, and lines now and then elsewhere.
pub(super) struct RecordingProgress {
    bar: Option<ProgressBar>,
    shown: Instant,
}

impl RecordingProgress {
    pub(super) fn new() -> RecordingProgress {
        RecordingProgress {
            bar: io::stderr().is_terminal().then(ProgressBar::new_spinner),
            shown: Instant::ZERO,
        }
    }

    pub(super) fn show(&mut self, at: Instant, summary: &RecordingSummary, neighbours: usize) {
        let state = || format!("{:.0} s, {} rows, {neighbours} neighbours", summary.length_s, summary.rows);
        match &self.bar {
            Some(bar) => {
                bar.set_message(state());
                bar.tick();
            }
            None if at.since(self.shown) >= PAUSE => {
                self.shown = at;
                remark(&state());
            }
            None => {}
        }
    }

    pub(super) fn end(&self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_says_it_and_others_say_what_is_wrong() {
        let of = |name: &str, signals| NeighbourCounts {
            name: name.to_owned(),
            signals,
            ..NeighbourCounts::default()
        };
        let summary = |neighbours, clock_was_set, rows| {
            let length_s = 12.34;
            RecordingSummary {
                neighbours,
                clock_was_set,
                rows,
                length_s,
                ..RecordingSummary::new("wlan0", "roof")
            }
            .lines()
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
