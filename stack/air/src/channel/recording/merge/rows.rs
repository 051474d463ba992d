//! The rows of one file, with their intervals of the time of day.

use super::super::{FieldError, LATEST_S, MOST_DBM, RecordingOrigin, RecordingReader, cells};
use super::{MergeError, MergeResult, RecordingFile, at_line};
use crate::truncate::quoted;

const MOST_COUNT: f64 = 1e18;
/// The columns after the link, in their order, and the numbers that they take.
pub(super) const CELLS: [(&str, &str, [f64; 2]); 10] = [
    ("signal_dbm", "signal in dBm", [-MOST_DBM, MOST_DBM]),
    ("noise_dbm", "noise in dBm", [-MOST_DBM, MOST_DBM]),
    ("loss", "share", [0.0, 1.0]),
    ("rate_bps", "bit rate", [0.0, MOST_COUNT]),
    ("expected_bps", "bit rate", [0.0, MOST_COUNT]),
    ("packets", "count", [0.0, MOST_COUNT]),
    ("retries", "count", [0.0, MOST_COUNT]),
    ("failed", "count", [0.0, MOST_COUNT]),
    ("airtime_s", "time in seconds", [0.0, LATEST_S]),
    ("busy", "share", [0.0, 1.0]),
];

/// The cells of a row; a cell that the file lacks is empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowCells<'a> {
    /// The interval of the time of day, counted from 1970.
    pub(super) slot: u64,
    pub(super) line: usize,
    pub(super) from: &'a str,
    pub(super) to: &'a str,
    pub(super) cells: [&'a str; CELLS.len()],
}

/// Reads the rows of a file.
#[derive(Debug)]
pub(super) struct RowReader<'a> {
    pub(super) file: usize,
    /// The node that the file is of, if it is of one.
    node: Option<String>,
    reader: RecordingReader<'a>,
    places: [Option<usize>; CELLS.len()],
    began_ns: u64,
    last_ns: u64,
}

impl<'a> RowReader<'a> {
    pub(super) fn open(source: &RecordingFile<'a>, file: usize) -> MergeResult<RowReader<'a>> {
        let refused = |error| MergeError { file, error };
        let reader = RecordingReader::new(source.text).map_err(refused)?;
        let head = cells(reader.line.0);
        let place = |name: &str| head.iter().position(|(known, _)| *known == name);
        let mut origin = RecordingOrigin::of(source.text).map_err(refused)?;
        let Some(began_ns) = origin.began_ns else {
            let expected = "expected a recording of `hopwise mesh record`";
            return Err(at_line(file, 1, format!("no line `# began SECONDS s` tells its time, {expected}")));
        };
        let node = origin.nodes.pop().filter(|_| origin.nodes.is_empty()).map(|(name, _)| name);
        Ok(RowReader {
            file,
            node,
            reader,
            places: CELLS.map(|(name, ..)| place(name)),
            began_ns,
            last_ns: 0,
        })
    }

    /// Several recordings of one node follow each other. One of several nodes stands for itself.
    pub(super) fn node(&self, file: &str) -> String {
        self.node.clone().unwrap_or_else(|| file.to_owned())
    }

    /// The interval of a time of the file.
    pub(super) fn slot(&self, at_ns: u64) -> u64 {
        let every_ns = self.every_ns();
        (self.began_ns + at_ns + every_ns / 2) / every_ns
    }

    pub(super) fn every_ns(&self) -> u64 {
        self.reader.every_ns
    }

    pub(super) fn next(&mut self) -> MergeResult<Option<RowCells<'a>>> {
        self.read().map_err(|error| MergeError { file: self.file, error })
    }

    fn read(&mut self) -> Result<Option<RowCells<'a>>, FieldError> {
        let Some(line) = self.reader.next_cells()? else { return Ok(None) };
        let at_ns = self.reader.at_ns(&line)?;
        let places = self.reader.places;
        if at_ns < self.last_ns {
            let (time, column) = line[places.time];
            let problem = format!("the time goes back to `{}` s, expected rows in their order", quoted(time));
            return Err(self.reader.at(column, problem));
        }
        self.last_ns = at_ns;
        let mut cells = [""; CELLS.len()];
        for ((cell, place), (_, what, [least, most])) in cells.iter_mut().zip(self.places).zip(CELLS) {
            let Some(told) = place.map(|place| line[place]).filter(|(text, _)| !text.is_empty()) else {
                continue;
            };
            self.reader.number(told, what, least, most)?;
            *cell = told.0;
        }
        let slot = self.slot(at_ns);
        let (from, to) = (line[places.from].0, line[places.to].0);
        Ok(Some(RowCells { slot, line: self.reader.line.1, from, to, cells }))
    }
}
