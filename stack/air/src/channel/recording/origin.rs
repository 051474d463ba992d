//! The hosts and the time of a recording, as comments: lines of the head, and of the file where a clock was set.
//!
//! ```text
//! # began 1795667207.300 s
//! # node roof 02:00:00:00:00:01
//! ```

use std::fmt;

use hopwise_core::StationAddress;

use super::{FieldError, plain};
use crate::truncate::{self, quoted};

const BEGAN: &str = "# began ";
const NODE: &str = "# node ";
/// Seconds since 1970 that are no time of a recording any more.
const LATEST_S: f64 = 4e9;

/// The hosts of a recording and the time of day of its beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingOrigin {
    /// Nanoseconds since 1970 at time 0. The last of several lines holds: the clock was set before it.
    pub began_ns: Option<u64>,
    /// The names of radios, with their addresses.
    pub nodes: Vec<(String, StationAddress)>,
}

impl RecordingOrigin {
    /// Reads the comments of a recording. A place that is refused is the line's.
    pub fn of(text: &str) -> Result<RecordingOrigin, FieldError> {
        let mut origin = RecordingOrigin::default();
        for (line, number) in text.lines().zip(1..) {
            let refused = |expected: &str| {
                let problem = format!("`{}`, expected {expected}", quoted(line));
                FieldError { line: number, column: 1, problem }
            };
            if let Some(seconds) = line.strip_prefix(BEGAN) {
                let expected = "`# began SECONDS s` with seconds since 1970";
                origin.began_ns = Some(nanos(seconds).ok_or_else(|| refused(expected))?);
            } else if let Some(node) = line.strip_prefix(NODE) {
                let expected = "`# node NAME ADDRESS` with an address such as 02:00:00:00:00:01";
                origin.nodes.push(named(node).ok_or_else(|| refused(expected))?);
            }
        }
        Ok(origin)
    }

    /// The line that tells a beginning, also after the clock was set.
    pub fn began_line(began_ns: u64) -> String {
        format!("{BEGAN}{}.{:03} s\n", began_ns / 1_000_000_000, began_ns / 1_000_000 % 1_000)
    }
}

fn nanos(text: &str) -> Option<u64> {
    let seconds = text.trim_end().strip_suffix(" s")?.parse::<f64>().ok()?;
    // Milliseconds are exact in a float, nanoseconds since 1970 are not.
    let millis = truncate::to_u64(seconds * 1e3 + 0.5);
    (0.0..=LATEST_S).contains(&seconds).then_some(millis * 1_000_000)
}

fn named(text: &str) -> Option<(String, StationAddress)> {
    let (name, address) = text.trim_end().split_once(' ')?;
    Some((name.to_owned(), address.parse().ok()?))
}

impl fmt::Display for RecordingOrigin {
    /// The lines of the head.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(began_ns) = self.began_ns {
            f.write_str(&RecordingOrigin::began_line(began_ns))?;
        }
        for (name, address) in &self.nodes {
            writeln!(f, "{NODE}{} {address}", plain(name))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOF: StationAddress = StationAddress([2, 0, 0, 0, 0, 1]);

    #[test]
    fn a_head_is_read_as_it_is_written_and_a_clock_that_was_set_holds_from_the_beginning() {
        let origin = RecordingOrigin {
            began_ns: Some(1_795_667_207_300_000_000),
            nodes: vec![("roof".to_owned(), ROOF)],
        };
        let text = super::super::head_with(0.1, &[], &origin);
        assert!(text.contains("# began 1795667207.300 s\n# node roof 02:00:00:00:00:01\ntime_s,"), "{text}");
        assert_eq!(RecordingOrigin::of(&text), Ok(origin));
        let set = text + &RecordingOrigin::began_line(1_795_667_000_000_000_000);
        let began_ns = RecordingOrigin::of(&set).expect("it is read").began_ns;
        assert_eq!(began_ns, Some(1_795_667_000_000_000_000));
        assert_eq!(RecordingOrigin::of("# roof\n# nodes a,b\n"), Ok(RecordingOrigin::default()));
    }

    #[test]
    fn lines_that_tell_nothing_are_refused() {
        for (text, line, expected) in [
            ("# began soon s\n", 1, "`# began SECONDS s`"),
            ("#\n# began 12\n", 2, "`# began SECONDS s`"),
            ("# began 5e9 s\n", 1, "seconds since 1970"),
            ("# began NaN s\n", 1, "seconds since 1970"),
            ("# node roof\n", 1, "`# node NAME ADDRESS`"),
            ("# node roof 02:00\n", 1, "02:00:00:00:00:01"),
        ] {
            let error = RecordingOrigin::of(text).expect_err(text);
            assert!(error.line == line && error.problem.contains(expected), "{text}: {error:?}");
        }
    }
}
