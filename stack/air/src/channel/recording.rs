//! Recordings of a field as text: CSV, a row for a directed link at a time. Names of columns have their units.
//!
//! ```text
//! # hopwise field 1, every 1 s
//! # nodes n0,n1
//! time_s,from,to,signal_dbm,noise_dbm,loss,rate_bps,expected_bps,packets,retries,failed,airtime_s,busy
//! 0.000,n0,n1,-61,-95,,,,,,,,0.21
//! 0.000,n1,n0,,,,6500000,,40,3,0,0.082,
//! ```
//!
//! The receiver of a link tells its signal, its noise and the share of time in which its channel was busy. The sender
//! tells rate, expected throughput, packets, retries, failed packets and airtime, as counted since its row before. An
//! empty cell is not known, and never zero. Columns may come in any order; a reader leaves out columns that it does not
//! know. Lines with `#` are comments. One host records the signals that it hears and the packets that it sends; its
//! comments tell the host and the time ([`RecordingOrigin`]), by which [`merge`] joins such files.

mod merge;
mod origin;

use std::fmt;

pub use merge::{MergeError, MergedLink, MergedRecording, RecordingFile, merge};
pub use origin::RecordingOrigin;

use crate::truncate::{self, quoted};

const MAGIC: &str = "# hopwise field 1, every ";
const NODES: &str = "# nodes ";
const COLUMNS: &str =
    "time_s,from,to,signal_dbm,noise_dbm,loss,rate_bps,expected_bps,packets,retries,failed,airtime_s,busy";
const LATEST_S: f64 = 1e9;
const LONGEST_INTERVAL_S: f64 = 3_600.0;
const MOST_DBM: f64 = 200.0;

/// The facts about a directed link at a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedLink {
    /// The time, in seconds since the beginning of the recording.
    pub time_s: f64,
    /// The sender.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// The power of the sender's frames at the receiver.
    pub signal_dbm: Option<f64>,
    /// The noise at the receiver.
    pub noise_dbm: Option<f64>,
    /// The share of frames, from 0 to 1, that chance spoils although their power is enough.
    pub loss: Option<f64>,
    /// The bit rate of the sender's last packet.
    pub rate_bps: Option<u64>,
    /// The sender's estimate of what the link carries.
    pub expected_bps: Option<u64>,
    /// Packets since the row before, failed ones included.
    pub packets: Option<u64>,
    /// Retransmissions of these packets.
    pub retries: Option<u64>,
    /// Packets that were given up since the row before.
    pub failed: Option<u64>,
    /// The airtime of frames since the row before, in seconds.
    pub airtime_s: Option<f64>,
    /// The share of time, from 0 to 1, in which the receiver's channel was busy since the row before.
    pub busy: Option<f64>,
}

/// The head of a recording with a sample in each such interval. The names of all nodes may stand in it, in their order.
pub fn head(every_s: f64, names: &[String]) -> String {
    head_with(every_s, names, &RecordingOrigin::default())
}

/// The same, with the hosts and the time of the recording.
pub fn head_with(every_s: f64, names: &[String], origin: &RecordingOrigin) -> String {
    let names: Vec<_> = names.iter().map(|name| plain(name)).collect();
    let nodes = if names.is_empty() { String::new() } else { format!("{NODES}{}\n", names.join(",")) };
    format!("{MAGIC}{every_s} s\n{nodes}{origin}{COLUMNS}\n")
}

/// The names of all nodes, in their order, if the head has them.
pub fn names(text: &str) -> Vec<&str> {
    let line =
        text.lines().take_while(|line| line.starts_with('#')).find_map(|line| line.strip_prefix(NODES));
    line.map(|names| names.split(',').map(str::trim).collect()).unwrap_or_default()
}

/// Characters that would part a row are dashes.
fn plain(name: &str) -> String {
    name.replace([',', '"', '#', '\n', '\r', ' '], "-")
}

impl fmt::Display for RecordedLink {
    /// A line of the recording.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let real = |value: Option<f64>, places: usize| {
            value.map(|value| format!("{value:.places$}")).unwrap_or_default()
        };
        let count = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
        let cells = [
            real(self.signal_dbm, 3),
            real(self.noise_dbm, 1),
            real(self.loss, 6),
            count(self.rate_bps),
            count(self.expected_bps),
            count(self.packets),
            count(self.retries),
            count(self.failed),
            real(self.airtime_s, 6),
            real(self.busy, 4),
        ];
        write!(f, "{:.3},{},{},{}", self.time_s, plain(&self.from), plain(&self.to), cells.join(","))
    }
}

/// A recording that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct FieldError {
    /// Counted from 1.
    pub line: usize,
    /// The character of the line, counted from 1.
    pub column: usize,
    /// The fault, and what would be accepted.
    pub problem: String,
}

/// A row, as far as a field needs it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ReadRow {
    pub(super) at_ns: u64,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) signal_dbm: Option<f64>,
    pub(super) loss_ppm: Option<u32>,
}

/// The places of the columns that are read.
#[derive(Clone, Copy, Debug)]
struct ColumnPlaces {
    time: usize,
    from: usize,
    to: usize,
    signal: usize,
    loss: Option<usize>,
    count: usize,
}

/// Reads rows one by one.
#[derive(Debug)]
pub(super) struct RecordingReader<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    pub(super) every_ns: u64,
    places: ColumnPlaces,
    /// The line at hand and its number, counted from 1.
    line: (&'a str, usize),
    is_whole: bool,
}

/// A cell, and the character that it begins with, counted from 1.
type CsvCell<'a> = (&'a str, usize);

fn cells(line: &str) -> Vec<CsvCell<'_>> {
    let mut column = 1;
    let place = |cell: &'_ str| {
        let at = column + cell.chars().take_while(|character| character.is_whitespace()).count();
        column += cell.chars().count() + 1;
        at
    };
    let columns: Vec<usize> = line.split(',').map(place).collect();
    line.split(',').map(str::trim).zip(columns).collect()
}

impl<'a> RecordingReader<'a> {
    /// Reads the head.
    pub(super) fn new(text: &'a str) -> Result<RecordingReader<'a>, FieldError> {
        let of_line = |line, problem: String| Err(FieldError { line, column: 1, problem });
        let mut lines = text.lines().enumerate();
        let first = lines.next().map(|(_, line)| line.trim_end()).unwrap_or_default();
        let seconds = first.strip_prefix(MAGIC).and_then(|rest| rest.strip_suffix(" s"));
        let every_s = seconds.and_then(|seconds| seconds.parse::<f64>().ok());
        let Some(every_s) = every_s.filter(|seconds| (0.001..=LONGEST_INTERVAL_S).contains(seconds)) else {
            let said = quoted(first);
            return of_line(1, format!("`{said}`, expected `{MAGIC}SECONDS s` with 0.001 to 3600 seconds"));
        };
        let head = lines.find(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let Some((number, head)) = head else {
            return of_line(text.lines().count(), format!("there are no columns, expected {COLUMNS}"));
        };
        let names = cells(head);
        let place = |name: &str| names.iter().position(|(known, _)| *known == name);
        let needed = |name: &str| {
            let missing = || format!("the column `{name}` is missing, expected some of {COLUMNS}");
            place(name).ok_or_else(|| FieldError { line: number + 1, column: 1, problem: missing() })
        };
        let places = ColumnPlaces {
            time: needed("time_s")?,
            from: needed("from")?,
            to: needed("to")?,
            signal: needed("signal_dbm")?,
            loss: place("loss"),
            count: names.len(),
        };
        let every_ns = truncate::to_u64(every_s * 1e9);
        Ok(RecordingReader {
            lines,
            every_ns,
            places,
            line: (head, number + 1),
            is_whole: text.ends_with('\n'),
        })
    }

    /// The next row, if there is one.
    pub(super) fn next(&mut self, node: &dyn Fn(&str) -> Option<u32>) -> Result<Option<ReadRow>, FieldError> {
        if let Some(cells) = self.next_cells()? { self.row(&cells, node).map(Some) } else { Ok(None) }
    }

    /// The cells of the next row, one for each column of the head.
    fn next_cells(&mut self) -> Result<Option<Vec<CsvCell<'a>>>, FieldError> {
        loop {
            let Some((number, line)) = self.lines.next() else { return Ok(None) };
            self.line = (line, number + 1);
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            if !self.is_whole && self.lines.clone().next().is_none() {
                let problem = "the file ends in the middle of a line: it was cut short, expected whole lines";
                return Err(self.at(1, problem.to_owned()));
            }
            let (cells, count) = (cells(line), self.places.count);
            if cells.len() != count {
                let problem = format!("{} cells, expected {count} as in the head", cells.len());
                return Err(self.at(1, problem));
            }
            return Ok(Some(cells));
        }
    }

    fn row(&self, cells: &[CsvCell<'_>], node: &dyn Fn(&str) -> Option<u32>) -> Result<ReadRow, FieldError> {
        let ColumnPlaces { from, to, signal, loss, .. } = self.places;
        let station = |(name, column): CsvCell<'_>| {
            let problem = || format!("no node is called `{}`, expected a name of the topology", quoted(name));
            node(name).ok_or_else(|| self.at(column, problem()))
        };
        let row = ReadRow {
            at_ns: self.at_ns(cells)?,
            from: station(cells[from])?,
            to: station(cells[to])?,
            signal_dbm: match cells[signal] {
                ("", _) => None,
                cell => Some(self.number(cell, "signal in dBm", -MOST_DBM, MOST_DBM)?),
            },
            loss_ppm: match loss.map(|loss| cells[loss]) {
                None | Some(("", _)) => None,
                Some(cell) => Some(truncate::to_u32(self.number(cell, "share", 0.0, 1.0)? * 1e6 + 0.5)),
            },
        };
        if row.from == row.to {
            let problem = format!("a link from `{}` to itself, expected another node", quoted(cells[to].0));
            return Err(self.at(cells[to].1, problem));
        }
        Ok(row)
    }

    fn at_ns(&self, cells: &[CsvCell<'_>]) -> Result<u64, FieldError> {
        let seconds = self.number(cells[self.places.time], "time in seconds", 0.0, LATEST_S)?;
        Ok(truncate::to_u64(seconds * 1e9 + 0.5))
    }

    fn number(
        &self,
        (text, column): CsvCell<'_>,
        what: &str,
        least: f64,
        most: f64,
    ) -> Result<f64, FieldError> {
        let number = text.parse::<f64>().ok().filter(|number| (least..=most).contains(number));
        let problem = || format!("`{}` is no {what}, expected {least} to {most}", quoted(text));
        number.ok_or_else(|| self.at(column, problem()))
    }

    fn at(&self, column: usize, problem: String) -> FieldError {
        FieldError { line: self.line.1, column, problem }
    }

    /// The row at hand does not follow the one before it.
    pub(super) fn not_later(&self) -> FieldError {
        let cells = cells(self.line.0);
        let (time, column) = cells[self.places.time];
        let link = format!("{}->{}", cells[self.places.from].0, cells[self.places.to].0);
        let expected = "expected a time after that of the row before it";
        self.at(column, format!("a row of {} at `{}` s, {expected}", quoted(&link), quoted(time)))
    }

    pub(super) fn too_many(&self, most: usize) -> FieldError {
        self.at(1, format!("more rows with a signal than {most}, expected a longer interval or fewer links"))
    }

    pub(super) fn no_links(&self) -> FieldError {
        self.at(1, "no row has a signal, expected at least one".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::RecordedField;
    use super::*;

    fn node(name: &str) -> Option<u32> {
        name.strip_prefix('n')?.parse().ok().filter(|n| *n < 9)
    }

    fn row(time_s: f64, signal_dbm: f64) -> RecordedLink {
        let (from, to) = ("n0".to_owned(), "n1".to_owned());
        RecordedLink { time_s, from, to, signal_dbm: Some(signal_dbm), ..RecordedLink::default() }
    }

    #[test]
    fn what_is_written_is_read_and_what_is_unknown_is_empty() {
        let all = RecordedLink {
            noise_dbm: Some(-95.0),
            loss: Some(0.05),
            rate_bps: Some(6_500_000),
            packets: Some(40),
            retries: Some(3),
            failed: Some(0),
            airtime_s: Some(0.082),
            busy: Some(0.25),
            ..row(0.5, -61.25)
        };
        assert_eq!(all.to_string(), "0.500,n0,n1,-61.250,-95.0,0.050000,6500000,,40,3,0,0.082000,0.2500");
        let odd = RecordedLink { from: "a,b \"c\"".to_owned(), ..row(0.0, -61.0) };
        assert_eq!(odd.to_string(), "0.000,a-b--c-,n1,-61.000,,,,,,,,,");
        let text = head(0.1, &[]) + &format!("{all}\n");
        let mut reader = RecordingReader::new(&text).expect("a head");
        let (signal_dbm, loss_ppm) = (Some(-61.25), Some(50_000));
        let expected = ReadRow { at_ns: 500_000_000, from: 0, to: 1, signal_dbm, loss_ppm };
        assert_eq!((reader.every_ns, reader.next(&node)), (100_000_000, Ok(Some(expected))));
        assert_eq!(reader.next(&node), Ok(None));
    }

    #[test]
    fn the_head_may_name_all_nodes_in_their_order() {
        let text = head(1.0, &["roof".to_owned(), "a, b".to_owned()]);
        assert_eq!(names(&text), ["roof", "a--b"]);
        assert_eq!((names(&head(1.0, &[])), names("time_s\n# nodes n0\n")), (vec![], vec![]));
        assert!(RecordedField::parse(&(text + "0,n0,n1,-60,,,,,,,,,\n"), &node).is_ok());
    }

    #[test]
    fn columns_come_in_any_order_with_others_among_them() {
        let text = "# hopwise field 1, every 2 s\n# roof\n\nto,weather,signal_dbm,time_s,from\n n1 ,fair, -60,0,n0\n";
        let mut reader = RecordingReader::new(text).expect("a head");
        let row = reader.next(&node).expect("it is read").expect("a row");
        assert_eq!((row.from, row.to, row.signal_dbm), (0, 1, Some(-60.0)));
    }

    fn refused(text: &str, (line, column): (usize, usize), problem: &str) {
        let error = RecordedField::parse(text, &node).expect_err(text);
        assert_eq!((error.line, error.column), (line, column), "{text}: {error}");
        assert!(error.to_string().contains(problem), "{text}: {error}");
    }

    #[test]
    fn a_head_that_is_wrong_is_refused_with_what_would_be_right() {
        for (text, place, problem) in [
            ("", (1, 1), "expected `# hopwise field 1, every SECONDS s`"),
            ("# hopwise field 2, every 1 s\n", (1, 1), "expected `# hopwise field 1"),
            ("# hopwise field 1, every 0 s\n", (1, 1), "0.001 to 3600 seconds"),
            ("# hopwise field 1, every 1 s\n", (1, 1), "there are no columns, expected time_s,from"),
            ("# hopwise field 1, every 1 s\ntime_s,from,to\n", (2, 1), "`signal_dbm` is missing"),
            (&head(1.0, &[]), (2, 1), "no row has a signal"),
        ] {
            refused(text, place, problem);
        }
    }

    #[test]
    fn a_row_that_is_wrong_is_refused_with_its_line_and_column() {
        let whole = head(1.0, &[]) + "0,n0,n1,-60,,,,,,,,,\n";
        for (row, column, problem) in [
            ("1,n0,n1\n", 1, "3 cells, expected 13 as in the head"),
            ("soon,n0,n1,-60,,,,,,,,,\n", 1, "`soon` is no time in seconds, expected 0 to"),
            ("1,n0,n9,-60,,,,,,,,,\n", 6, "no node is called `n9`"),
            ("1,n0, n0,-60,,,,,,,,,\n", 7, "a link from `n0` to itself"),
            ("1,n0,n1,loud,,,,,,,,,\n", 9, "`loud` is no signal in dBm"),
            ("1,n0,n1,NaN,,,,,,,,,\n", 9, "`NaN` is no signal in dBm"),
            ("1,n0,n1,-60,,1.5,,,,,,,\n", 14, "`1.5` is no share, expected 0 to 1"),
            ("0,n0,n1,-60,,,,,,,,,\n", 1, "a row of n0->n1 at `0` s, expected a time after"),
            ("1,n0,n1,-60,,,,,,,,,", 1, "cut short"),
        ] {
            refused(&format!("{whole}{row}"), (4, column), problem);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn no_text_makes_the_reader_panic(text in "([0-9.,n\n# -]|n0,n1,|-60|é){0,80}") {
            let _ = RecordedField::parse(&text, &node);
            let _ = RecordedField::parse(&(head(1.0, &[]) + &text), &node);
        }

        #[test]
        fn powers_are_those_that_were_written(powers in prop::collection::vec(-90.0..-20.0_f64, 1..30)) {
            let rows = powers.iter().zip(0..).map(|(dbm, nth)| format!("{}\n", row(f64::from(nth), *dbm)));
            let text = head(1.0, &[]) + &rows.collect::<String>();
            let field = RecordedField::parse(&text, &node).expect("a recording");
            for (dbm, nth) in powers.iter().zip(0_u64..) {
                let heard = field.at(0, 1, nth * 1_000_000_000).expect("it is heard");
                prop_assert!((10.0 * libm::log10(heard.power_w * 1e3) - dbm).abs() < 0.001);
            }
        }
    }
}
