//! Parses lines of a trace into columns. An error names the place and the expectation.

use std::fmt;

use super::{COLUMN_NAMES, FIRST_LINE, NANOS};
use crate::Instant;

/// The columns of one line; `event` may be the name of a newer writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceLine<'a> {
    /// `time_s`, to the nanosecond.
    pub now: Instant,
    /// 0 if no connection is involved.
    pub conn: u32,
    /// 0 for neither a transmit nor a received packet.
    pub packet: u64,
    /// Usually one of [`EVENT_NAMES`](super::EVENT_NAMES).
    pub event: &'a str,
    /// `key=value` pairs as written; see [`pairs`](TraceLine::pairs).
    pub details: &'a str,
}

impl<'a> TraceLine<'a> {
    /// The details' keys and values, in the order of the line.
    pub fn pairs(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.details.split(' ').filter_map(|pair| pair.split_once('='))
    }

    /// The value of the first pair with this key.
    pub fn value(&self, key: &str) -> Option<&'a str> {
        self.pairs().find(|(name, _)| *name == key).map(|(_, value)| value)
    }
}

/// The place of an error in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParseError {
    /// From 1, with the header; 0 if a single line was parsed.
    pub line: u64,
    /// From 1, in characters.
    pub column: usize,
    /// The text that would have been right there.
    pub expected: &'static str,
}

impl fmt::Display for TraceParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TraceParseError { line, column, expected } = self;
        if *line > 0 {
            write!(f, "line {line}, ")?;
        }
        write!(f, "column {column}: expected {expected}")
    }
}

impl std::error::Error for TraceParseError {}

/// Reads a trace line by line, the header lines included, and counts them.
#[derive(Debug, Default)]
pub struct TraceReader {
    lines: u64,
}

impl TraceReader {
    /// A reader that expects the two header lines first.
    pub fn new() -> TraceReader {
        TraceReader::default()
    }

    /// The next line, without its line ending. `None` for the header.
    pub fn line<'a>(&mut self, text: &'a str) -> Result<Option<TraceLine<'a>>, TraceParseError> {
        self.lines += 1;
        let refused = |column, expected| TraceParseError { line: self.lines, column, expected };
        match self.lines {
            1 if text == FIRST_LINE => Ok(None),
            1 => Err(refused(1, "the first line of a trace, `# hopwise-trace 1`")),
            2 if text == COLUMN_NAMES => Ok(None),
            2 => Err(refused(1, "the column names time_s, conn, packet, event, details, separated by tabs")),
            _ => parse_line(text).map(Some).map_err(|error| TraceParseError { line: self.lines, ..error }),
        }
    }

    /// The number of lines read.
    pub fn lines(&self) -> u64 {
        self.lines
    }
}

/// One line after the header, without its line ending.
pub fn parse_line(text: &str) -> Result<TraceLine<'_>, TraceParseError> {
    let mut columns = Columns { text, rest: Some(text) };
    let now = columns.parsed(parse_time, "seconds with up to nine decimals, such as 1.500000000")?;
    let conn = columns.parsed(parse_number::<u32>, "the number of a connection, 0 for none")?;
    let packet = columns.parsed(parse_number::<u64>, "the number of a packet, 0 for none")?;
    let event = columns.parsed(|word| is_name(word).then_some(word), "the name of an event")?;
    let details = columns.details()?;
    if columns.rest.is_some() {
        return Err(columns.refused("nothing after the details column"));
    }
    Ok(TraceLine { now, conn, packet, event, details })
}

/// The rest of a line, tab by tab.
struct Columns<'a> {
    text: &'a str,
    rest: Option<&'a str>,
}

impl<'a> Columns<'a> {
    fn parsed<T>(
        &mut self,
        parse: impl Fn(&'a str) -> Option<T>,
        expected: &'static str,
    ) -> Result<T, TraceParseError> {
        let Some(rest) = self.rest else { return Err(self.refused(expected)) };
        let (column, after) = split_column(rest);
        let Some(value) = parse(column) else { return Err(self.refused(expected)) };
        self.rest = after;
        Ok(value)
    }

    fn details(&mut self) -> Result<&'a str, TraceParseError> {
        let expected = "key=value pairs, separated by single spaces";
        let Some(rest) = self.rest else { return Err(self.refused(expected)) };
        let (column, after) = split_column(rest);
        let mut at = 0;
        for pair in column.split(' ').filter(|_| !column.is_empty()) {
            let sound = pair.split_once('=').is_some_and(|(key, value)| is_name(key) && !value.is_empty());
            if !sound {
                self.rest = Some(&rest[at..]);
                return Err(self.refused(expected));
            }
            at += pair.len() + 1;
        }
        self.rest = after;
        Ok(column)
    }

    fn refused(&self, expected: &'static str) -> TraceParseError {
        let read = self.text.len() - self.rest.map_or(0, str::len);
        TraceParseError { line: 0, column: self.text[..read].chars().count() + 1, expected }
    }
}

fn split_column(rest: &str) -> (&str, Option<&str>) {
    rest.split_once('\t').map_or((rest, None), |(column, after)| (column, Some(after)))
}

/// Digits only: `FromStr` would also accept a sign.
fn parse_number<T: std::str::FromStr>(text: &str) -> Option<T> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

fn parse_time(text: &str) -> Option<Instant> {
    let (seconds, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let whole = parse_number::<u64>(seconds)?.checked_mul(NANOS)?;
    if decimals.len() > 9 {
        return None;
    }
    let scale = 10_u64.pow(9 - u32::try_from(decimals.len()).ok()?);
    let nanos = parse_number::<u64>(decimals)?.checked_mul(scale)?;
    whole.checked_add(nanos).map(Instant)
}

/// Lower-case letters, digits, `-` and `_`.
fn is_name(word: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    !word.is_empty() && word.bytes().all(known)
}
