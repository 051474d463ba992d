//! A field as it was recorded: how strongly each station was heard by each other one, over time.
//!
//! Between two rows of a link that are at most three intervals apart, its power is interpolated in dB. Elsewhere a row
//! holds for one and a half intervals before and after. Beyond that, and without rows, nothing of one station reaches
//! the other. A field knows powers and losses, and neither places nor frames: collisions and retries of the recorded
//! network are no part of it, since the world that plays it makes its own.

use std::collections::BTreeMap;

use super::recording::{FieldError, ReadRow, RecordingReader};
use crate::radio::watts;
use crate::truncate;

/// More rows are refused: each takes 24 bytes.
pub const MOST_ROWS: usize = 4_000_000;

const FIRST_NS: u64 = 10_000_000_000;

/// The powers and losses of all recorded links.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedField {
    /// The rows of each link, by sender and receiver, in the order of their times.
    links: BTreeMap<(u32, u32), Vec<LinkHistory>>,
    /// A row holds so long before and after its time.
    holds_ns: u64,
    /// The time of the last row, in nanoseconds.
    pub ends_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct LinkHistory {
    at_ns: u64,
    signal_dbm: f64,
    loss_ppm: Option<u32>,
}

/// A link at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FieldLink {
    pub(crate) power_w: f64,
    /// The share of frames that are lost although they would be understood, if it was recorded.
    pub(crate) loss_ppm: Option<u32>,
}

impl RecordedField {
    /// Reads a recording; `node` knows the numbers of names.
    pub fn parse(text: &str, node: &dyn Fn(&str) -> Option<u32>) -> Result<RecordedField, FieldError> {
        let mut reader = RecordingReader::new(text)?;
        let mut field =
            RecordedField { links: BTreeMap::new(), holds_ns: reader.every_ns / 2 * 3, ends_ns: 0 };
        let mut rows = 0;
        while let Some(row) = reader.next(node)? {
            let ReadRow { at_ns, from, to, signal_dbm, loss_ppm, .. } = row;
            field.ends_ns = field.ends_ns.max(at_ns);
            let Some(signal_dbm) = signal_dbm else { continue };
            let of_link = field.links.entry((from, to)).or_default();
            if of_link.last().is_some_and(|last| last.at_ns >= at_ns) {
                return Err(reader.not_later());
            }
            rows += 1;
            if rows > MOST_ROWS {
                return Err(reader.too_many(MOST_ROWS));
            }
            of_link.push(LinkHistory { at_ns, signal_dbm, loss_ppm });
        }
        if field.links.is_empty() { Err(reader.no_links()) } else { Ok(field) }
    }

    /// The number of links that have rows.
    pub(crate) fn links(&self) -> usize {
        self.links.len()
    }

    /// Returns whether there are rows of a link.
    pub(crate) fn joins(&self, from: u32, to: u32) -> bool {
        self.links.contains_key(&(from, to))
    }

    /// The stations that ever hear this one, in the order of their numbers.
    pub(crate) fn receivers_of(&self, from: u32) -> Vec<u32> {
        self.links.range((from, 0)..=(from, u32::MAX)).map(|((_, to), _)| *to).collect()
    }

    /// The mean power of a link in its first ten seconds, for routes that are set at the beginning: a fade at time 0
    /// does not count. `None`: nothing arrives at time 0.
    pub(crate) fn first_power_w(&self, from: u32, to: u32) -> Option<f64> {
        let at_once = self.at(from, to, 0)?;
        let rows = self.links.get(&(from, to))?.iter().take_while(|row| row.at_ns <= FIRST_NS);
        let (sum, count) =
            rows.fold((0.0, 0.0), |(sum, count), row| (sum + watts(row.signal_dbm), count + 1.0));
        Some(if count == 0.0 { at_once.power_w } else { sum / count })
    }

    /// The link at that time; `None`: nothing arrives.
    pub(crate) fn at(&self, from: u32, to: u32, now: u64) -> Option<FieldLink> {
        let rows = self.links.get(&(from, to))?;
        let next = rows.partition_point(|row| row.at_ns <= now);
        let before = next.checked_sub(1).map(|last| &rows[last]);
        let after = rows.get(next);
        if let (Some(before), Some(after)) = (before, after)
            && after.at_ns - before.at_ns <= 2 * self.holds_ns
        {
            return Some(between(before, after, now));
        }
        let holds = |row: &&LinkHistory| row.at_ns.abs_diff(now) <= self.holds_ns;
        let row = before.filter(holds).or(after.filter(holds))?;
        Some(FieldLink { power_w: watts(row.signal_dbm), loss_ppm: row.loss_ppm })
    }
}

fn between(before: &LinkHistory, after: &LinkHistory, now: u64) -> FieldLink {
    let share = (now - before.at_ns) as f64 / (after.at_ns - before.at_ns) as f64;
    let along = |a: f64, b: f64| a + (b - a) * share;
    let loss = |(a, b): (u32, u32)| truncate::to_u32(along(f64::from(a), f64::from(b)));
    FieldLink {
        power_w: watts(along(before.signal_dbm, after.signal_dbm)),
        loss_ppm: before.loss_ppm.zip(after.loss_ppm).map(loss),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> Option<u32> {
        name.strip_prefix('n')?.parse().ok().filter(|n| *n < 9)
    }

    fn field(rows: &str) -> RecordedField {
        let head = "# hopwise field 1, every 1 s\ntime_s,from,to,signal_dbm,loss\n";
        RecordedField::parse(&format!("{head}{rows}"), &node).expect("a recording")
    }

    const S: f64 = 1e9;

    fn dbm(field: &RecordedField, seconds: f64) -> Option<f64> {
        let heard = field.at(0, 1, truncate::to_u64(seconds * S))?;
        Some((libm::log10(heard.power_w * 1_000.0) * 1e4 + 0.5).floor() / 1e3)
    }

    #[test]
    fn power_is_interpolated_in_db_and_a_link_without_rows_is_out_of_reach() {
        let field = field("0,n0,n1,-60,\n1,n0,n1,-70,\n4,n0,n1,-40,\n8,n0,n1,-50,\n");
        for (seconds, expected) in [
            (0.0, Some(-60.0)),
            (0.25, Some(-62.5)),
            (1.0, Some(-70.0)),
            // Three intervals apart still belong together.
            (2.5, Some(-55.0)),
            // Four do not: each row holds for one and a half.
            (5.5, Some(-40.0)),
            (5.6, None),
            (6.4, None),
            (6.5, Some(-50.0)),
            (9.5, Some(-50.0)),
            (9.6, None),
        ] {
            assert_eq!(dbm(&field, seconds), expected, "at {seconds} s");
        }
        assert_eq!((field.at(1, 0, 0), field.at(0, 2, 0)), (None, None), "one way is not the other");
        assert_eq!((field.receivers_of(0), field.receivers_of(1), field.links()), (vec![1], vec![], 1));
        assert_eq!(field.ends_ns, 8_000_000_000);
    }

    #[test]
    fn a_fade_at_time_0_parts_no_route_and_a_link_that_comes_later_makes_none() {
        let field = field("0,n0,n1,-90,\n1,n0,n1,-60,\n20,n0,n1,-40,\n5,n1,n0,-60,\n");
        let mean_w = (watts(-90.0) + watts(-60.0)) / 2.0;
        assert_eq!((field.first_power_w(0, 1), field.first_power_w(1, 0)), (Some(mean_w), None));
    }

    #[test]
    fn losses_are_interpolated_where_both_rows_have_them() {
        let field = field("0,n0,n1,-60,0\n1,n0,n1,-60,0.5\n2,n0,n1,-60,\n");
        let loss = |ms: u64| field.at(0, 1, ms * 1_000_000).and_then(|heard| heard.loss_ppm);
        assert_eq!((loss(0), loss(500), loss(1_500), loss(2_000)), (Some(0), Some(250_000), None, None));
    }

    #[test]
    fn rows_that_tell_no_power_move_no_link() {
        let field = field("0,n0,n1,-60,\n1,n0,n1,,\n2,n0,n1,-62,\n3,n1,n0,,\n");
        assert_eq!((dbm(&field, 1.0), field.links(), field.ends_ns), (Some(-61.0), 1, 3_000_000_000));
    }
}
