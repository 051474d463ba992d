//! One recording of several: what each host heard and sent, at common times.
//!
//! Rows move into intervals of the time of day, so the clocks of hosts have to agree within one. Rows of a link in an
//! interval become one, with the cells of all files. The field begins once all nodes record. Files are read twice:
//! names and times are known before the first row is written. A link that no file tells has no row, and no cell
//! replaces another.

mod names;
mod rows;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hopwise_core::StationAddress;

use super::{FieldError, RecordingOrigin, head_with};
use crate::truncate::quoted;
use names::NodeNames;
use rows::{CELLS, RowCells, RowReader};

/// Longer without a row of any file, one of the clocks is wrong.
const LONGEST_GAP_NS: u64 = 60_000_000_000;

/// A file to join.
#[derive(Clone, Copy, Debug)]
pub struct RecordingFile<'a> {
    /// Its name, for errors about two files.
    pub name: &'a str,
    /// All of its text.
    pub text: &'a str,
}

/// What is read from a file, or why it is refused.
type MergeResult<T> = Result<T, MergeError>;

/// A file that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeError {
    /// The place of the file in the list.
    pub file: usize,
    /// The place in the file, and the fault.
    pub error: FieldError,
}

/// The recording of all, and what is in it.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedRecording {
    /// The text of the file.
    pub text: String,
    /// The names of the nodes, in their order.
    pub names: Vec<String>,
    /// The time of day of its beginning, in nanoseconds since 1970.
    pub began_ns: u64,
    /// The time of one interval.
    pub every_ns: u64,
    /// The time from its beginning to its last row.
    pub length_ns: u64,
    /// The rows of the file.
    pub rows: u64,
    /// The links that have rows.
    pub links: Vec<MergedLink>,
    /// The time before the last node began to record, whose rows are left out, and that node's file.
    pub skipped: Option<(u64, usize)>,
    /// Stations without a name, whose rows are left out.
    pub strangers: Vec<StationAddress>,
    /// Files that end within a line, by their places, with that line's number. It is left out.
    pub cut: Vec<(usize, usize)>,
}

/// The rows of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergedLink {
    /// The sender.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// Rows with a signal, which the receiver tells.
    pub signals: u64,
    /// Rows with packets, which the sender tells.
    pub counts: u64,
}

/// Joins recordings. Given names of addresses count more than names in the files.
pub fn merge(
    sources: &[RecordingFile<'_>],
    given: &[(StationAddress, String)],
) -> MergeResult<MergedRecording> {
    let (sources, cut) = whole(sources);
    let mut names = NodeNames::of(&sources, given)?;
    let MergedIntervals { every_ns, first, began, last_begun } = times(&sources, &mut names)?;
    let origin = RecordingOrigin { began_ns: Some(began * every_ns), nodes: names.nodes() };
    let text = head_with(every_ns as f64 / 1e9, &names.all, &origin);
    let (sources, links) = (&sources[..], BTreeMap::new());
    let mut joiner =
        RecordingJoiner { sources, names: &names, every_ns, began, text, rows: 0, last: began, links };
    joiner.join()?;
    let RecordingJoiner { text, rows, links, last, .. } = joiner;
    let late = "it begins after the last row of the others, expected recordings of one time";
    if rows == 0 {
        return Err(at_line(last_begun, 1, late.to_owned()));
    }
    let (length_ns, began_ns) = ((last - began) * every_ns, began * every_ns);
    let skipped = (began > first).then_some(((began - first) * every_ns, last_begun));
    let (links, strangers) = (links.into_values().collect(), names.strangers.iter().copied().collect());
    let names = names.all;
    Ok(MergedRecording { text, names, began_ns, every_ns, length_ns, rows, links, skipped, strangers, cut })
}

/// The intervals of all files.
struct MergedIntervals {
    every_ns: u64,
    /// The first one with a row.
    first: u64,
    /// The first one in which all nodes record.
    began: u64,
    /// The file of the node that began last.
    last_begun: usize,
}

/// Reads all files for the first time, for their times and for names that no head tells.
fn times(sources: &[RecordingFile<'_>], names: &mut NodeNames) -> MergeResult<MergedIntervals> {
    let (mut every_ns, mut begins, mut spans) = (None, BTreeMap::new(), Vec::new());
    for (file, source) in sources.iter().enumerate() {
        let mut rows = RowReader::open(source, file)?;
        let first = *every_ns.get_or_insert(rows.every_ns());
        if first != rows.every_ns() {
            let seconds = first as f64 / 1e9;
            let problem =
                format!("{} has an interval of {seconds} s, expected the same one", sources[0].name);
            return Err(at_line(file, 1, problem));
        }
        let begin = (rows.slot(0), file);
        let known = begins.entry(rows.node(source.name)).or_insert(begin);
        *known = begin.min(*known);
        spans.extend(names.look_through(&mut rows)?);
    }
    let Some(every_ns) = every_ns else { return Err(at_line(0, 1, "there is no recording".to_owned())) };
    let first = without_gap((sources, names), &mut spans, every_ns)?;
    let (begin, last_begun) = begins.into_values().max().unwrap_or((first, 0));
    Ok(MergedIntervals { every_ns, first, began: first.max(begin), last_begun })
}

fn at_line(file: usize, line: usize, problem: String) -> MergeError {
    MergeError { file, error: FieldError { line, column: 1, problem } }
}

/// The texts up to their last whole lines, and the lines that were cut.
fn whole<'a>(sources: &[RecordingFile<'a>]) -> (Vec<RecordingFile<'a>>, Vec<(usize, usize)>) {
    let cut = sources.iter().enumerate().filter(|(_, source)| !source.text.ends_with('\n'));
    let cut = cut.map(|(file, source)| (file, source.text.lines().count())).collect();
    let whole = |text: &'a str| text.rfind('\n').map_or("", |end| &text[..=end]);
    (sources.iter().map(|source| RecordingFile { text: whole(source.text), ..*source }).collect(), cut)
}

/// A file's place, and its first and last interval.
type FileSpan = (u64, u64, usize);

/// The first interval of all. Clocks that are wrong by hours would make a field that is empty for hours.
fn without_gap(
    (sources, names): (&[RecordingFile<'_>], &NodeNames),
    spans: &mut [FileSpan],
    every_ns: u64,
) -> MergeResult<u64> {
    spans.sort_unstable();
    let Some((began, mut ends, mut before)) = spans.first().copied() else {
        return Err(at_line(0, 1, names.without_rows()));
    };
    for (begins, end, file) in spans.iter().copied() {
        let gap_ns = begins.saturating_sub(ends).saturating_mul(every_ns);
        if gap_ns > LONGEST_GAP_NS {
            let problem = format!(
                "it begins {} s after the end of {}, expected clocks that agree and recordings of one time",
                gap_ns / 1_000_000_000,
                sources[before].name
            );
            return Err(at_line(file, 1, problem));
        }
        if end > ends {
            (ends, before) = (end, file);
        }
    }
    Ok(began)
}

/// The cells of a link in an interval, each with the file and the line that tells it.
type Cells<'a> = [Option<(&'a str, usize, usize)>; CELLS.len()];

/// Writes the rows of all files in their order.
#[derive(Debug)]
struct RecordingJoiner<'m> {
    sources: &'m [RecordingFile<'m>],
    names: &'m NodeNames,
    every_ns: u64,
    /// The first interval that is written.
    began: u64,
    text: String,
    rows: u64,
    last: u64,
    links: BTreeMap<(usize, usize), MergedLink>,
}

impl<'m> RecordingJoiner<'m> {
    fn join(&mut self) -> MergeResult<()> {
        let mut all = Vec::new();
        for (file, source) in self.sources.iter().enumerate() {
            let mut rows = RowReader::open(source, file)?;
            let next = rows.next()?;
            all.push((rows, next));
        }
        while let Some(slot) = all.iter().filter_map(|(_, next)| Some(next.as_ref()?.slot)).min() {
            let mut links: BTreeMap<(usize, usize), Cells<'m>> = BTreeMap::new();
            for (rows, next) in &mut all {
                while let Some(row) = next.filter(|row| row.slot == slot) {
                    let link = self.names.number(row.from).zip(self.names.number(row.to));
                    if let Some(link) = link.filter(|_| slot >= self.began) {
                        self.add(links.entry(link).or_default(), link, &row, rows.file)?;
                    }
                    *next = rows.next()?;
                }
            }
            for (link, cells) in links {
                self.write(slot, link, &cells);
            }
        }
        Ok(())
    }

    fn add(
        &self,
        cells: &mut Cells<'m>,
        link: (usize, usize),
        row: &RowCells<'m>,
        file: usize,
    ) -> MergeResult<()> {
        for ((cell, told), (column, ..)) in cells.iter_mut().zip(row.cells).zip(CELLS) {
            if told.is_empty() {
                continue;
            }
            let (known, other, line) = *cell.get_or_insert((told, file, row.line));
            if known != told {
                let [from, to] = [link.0, link.1].map(|node| &self.names.all[node]);
                let problem = format!(
                    "{column} of {from}->{to} is `{}` here and `{}` in {}:{line}, within one interval: expected one \
                     recording of a node at a time",
                    quoted(told),
                    quoted(known),
                    self.sources[other].name
                );
                return Err(at_line(file, row.line, problem));
            }
        }
        Ok(())
    }

    fn write(&mut self, slot: u64, link: (usize, usize), cells: &Cells<'_>) {
        let [from, to] = [link.0, link.1].map(|node| self.names.all[node].as_str());
        let millis = ((slot - self.began) * self.every_ns + 500_000) / 1_000_000;
        let cells = cells.map(|cell| cell.map_or("", |(text, ..)| text));
        let (seconds, millis) = (millis / 1_000, millis % 1_000);
        // Writing into a text cannot fail.
        let _ = writeln!(self.text, "{seconds}.{millis:03},{from},{to},{}", cells.join(","));
        let counted = self.links.entry(link).or_default();
        if counted.from.is_empty() {
            (counted.from, counted.to) = (from.to_owned(), to.to_owned());
        }
        counted.signals += u64::from(!cells[0].is_empty());
        counted.counts += u64::from(!cells[5].is_empty());
        self.rows += 1;
        self.last = slot;
    }
}

#[cfg(test)]
mod tests;
