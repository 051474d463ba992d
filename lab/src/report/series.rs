//! A run's series, read back from the CSV that `sim::series` writes.

use std::collections::BTreeMap;

use crate::record::is_sound;

/// Values over seconds since the first flow began.
pub type TimeLine = Vec<(f64, f64)>;

/// The samples of one run over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Lines by their kind and by flow, node or link.
    lines: BTreeMap<(String, String), TimeLine>,
    /// The frames of the stretches that were watched.
    pub frames: Vec<FrameRow>,
}

/// A frame on the air, or lost to another at its addressee.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameRow {
    /// The time of its first bit, in seconds since the first flow began.
    pub at_s: f64,
    /// Its duration in microseconds.
    pub lasts_us: f64,
    /// The node that sent it.
    pub from: String,
    /// The node that it is for, or `all`.
    pub to: String,
    /// The kind: `rts`, `cts`, `data` or `ack`.
    pub kind: String,
    /// It was lost to another frame.
    pub is_lost: bool,
}

impl Series {
    /// Reads a series. Invalid rows and numbers that no run comes to are left out: a series illustrates and decides
    /// nothing.
    pub fn parse(text: &str) -> Series {
        Series::parse_within(text, usize::MAX).map_or_else(Series::default, |(series, _)| series)
    }

    /// The same as [`Series::parse`], with the places that the series takes in memory; none if it takes more. A sample
    /// takes one place.
    pub(super) fn parse_within(text: &str, most: usize) -> Option<(Series, usize)> {
        /// A name of a line with its list, and a frame.
        const NAME: usize = 12;
        const FRAME: usize = 6;
        let mut series = Series::default();
        let mut taken = 0;
        for line in text.lines().skip(1) {
            if taken > most {
                return None;
            }
            let fields: Vec<&str> = line.splitn(5, ',').collect();
            let [what, who, at, value] = fields[..] else { continue };
            let (Some(at_s), Some(value)) = (sound(at), sound(value)) else { continue };
            match (what.split_once(':'), who.split_once('>')) {
                (Some(("frame" | "lost", kind)), Some((from, to))) => {
                    taken += FRAME + line.len() / size_of::<(f64, f64)>();
                    series.frames.push(FrameRow {
                        at_s,
                        lasts_us: value,
                        from: from.to_owned(),
                        to: to.to_owned(),
                        kind: kind.to_owned(),
                        is_lost: what.starts_with("lost"),
                    });
                }
                _ => {
                    let line = series.lines.entry((what.to_owned(), who.to_owned())).or_default();
                    taken += if line.is_empty() { NAME + (what.len() + who.len()) / 16 } else { 1 };
                    line.push((at_s, value));
                }
            }
        }
        for line in series.lines.values_mut() {
            line.sort_by(|one, two| one.0.total_cmp(&two.0));
        }
        (taken <= most).then_some((series, taken))
    }

    /// The line of that kind for a flow, node or link; empty if there is none.
    pub fn line(&self, what: &str, who: &str) -> &[(f64, f64)] {
        self.lines.get(&(what.to_owned(), who.to_owned())).map_or(&[], Vec::as_slice)
    }

    /// The names that have such a line; names that end in numbers are in order.
    pub fn whose(&self, what: &str) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.lines.keys().filter(|(known, _)| known == what).map(|(_, who)| who.as_str()).collect();
        names.sort_by_key(|name| (name.trim_end_matches(|c: char| c.is_ascii_digit()), number_in(name)));
        names
    }

    /// The value that holds at an instant: the last one until then.
    pub fn at(&self, what: &str, who: &str, at_s: f64) -> Option<f64> {
        let line = self.line(what, who);
        // Instants are rounded to microseconds.
        let until = line.partition_point(|(at, _)| *at <= at_s + 1e-6);
        line[..until].last().map(|(_, value)| *value)
    }

    /// The last value, which holds to the end.
    pub fn last(&self, what: &str, who: &str) -> Option<f64> {
        self.line(what, who).last().map(|(_, value)| *value)
    }
}

fn sound(number: &str) -> Option<f64> {
    number.parse().ok().filter(|number| is_sound(*number))
}

fn number_in(name: &str) -> u64 {
    let digits: String = name.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_no_run_comes_to_are_left_out_and_times_are_in_order() {
        let text =
            "what,who,at,value\nq,n0,2,7\nq,n0,1,5\nq,n0,3,inf\nq,n0,NaN,1\nq,n0,1e300,1\nq,n0,4,-2e12\n";
        assert_eq!(Series::parse(text).line("q", "n0"), [(1.0, 5.0), (2.0, 7.0)]);
    }
}
