//! ns-2's movement files, as its `setdest` writes them: the first positions, then the movements with their times.
//!
//! Other lines of such files are skipped: comments, heights (`Z_`), and the distances for `$god_`.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use super::{Leg, Track};
use crate::position::Position;
use crate::truncate;

/// A larger number is a mistake and not a node's.
const MOST_NODES: u32 = 1_000_000;
const FARTHEST_M: f64 = 1e7;
const LATEST_S: f64 = 1e9;

/// The first positions and the movements of all nodes.
#[derive(Clone, Debug)]
pub struct Movements {
    /// The places of the nodes at time 0, in the order of their numbers.
    pub positions: Vec<Position>,
    /// Each node's movements, in the same order.
    pub tracks: Vec<Track>,
}

/// A movement file that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovementError {
    /// Counted from 1.
    pub line: usize,
    /// The fault in that line.
    pub problem: Problem,
}

/// The fault of a movement file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The line is not a place and not a movement.
    NotUnderstood(String),
    /// A word that should be a number is none.
    NoNumber {
        /// The quantity that should stand there.
        what: &'static str,
        /// The word that stands there.
        text: String,
    },
    /// A number is too large or too small.
    OutOfRange {
        /// The quantity that should stand there.
        what: &'static str,
        /// The number that stands there.
        text: String,
    },
    /// The last line has no end.
    CutShort,
    /// A node has no place although a line names it, or a node with a higher number.
    NoPlace(u32),
    /// The file has no first position of any node.
    NoNodes,
}

impl fmt::Display for MovementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            Problem::NotUnderstood(text) => write!(f, "`{text}` is neither a place nor a movement"),
            Problem::NoNumber { what, text } => write!(f, "`{text}` is no {what}"),
            Problem::OutOfRange { what, text } => write!(f, "`{text}` is out of range for a {what}"),
            Problem::CutShort => f.write_str("the file ends in the middle of a line: it was cut short"),
            Problem::NoPlace(node) => write!(f, "node {node} has no X_ and Y_ to begin at"),
            Problem::NoNodes => f.write_str("the file places no node"),
        }
    }
}

impl std::error::Error for MovementError {}

/// A node's lines, as they are read.
#[derive(Debug, Default)]
struct Draft {
    x: Option<f64>,
    y: Option<f64>,
    /// The time, the destination and the speed.
    orders: Vec<(u64, Position, f64)>,
    /// The first line that names the node.
    line: usize,
}

impl Movements {
    /// Reads a whole file. Every node has a first position; lines of another form are errors, except comments.
    pub fn parse(text: &str) -> Result<Movements, MovementError> {
        let mut drafts: BTreeMap<u32, Draft> = BTreeMap::new();
        for (line, number) in text.lines().zip(1..) {
            read_line(line.trim(), number, &mut drafts)
                .map_err(|problem| MovementError { line: number, problem })?;
        }
        let last = text.lines().count().max(1);
        if !text.is_empty() && !text.ends_with('\n') {
            return Err(MovementError { line: last, problem: Problem::CutShort });
        }
        if drafts.is_empty() {
            return Err(MovementError { line: last, problem: Problem::NoNodes });
        }
        let mut movements = Movements { positions: Vec::new(), tracks: Vec::new() };
        for ((node, mut draft), expected) in drafts.into_iter().zip(0..) {
            let (Some(x), Some(y), true) = (draft.x, draft.y, node == expected) else {
                return Err(MovementError {
                    line: draft.line,
                    problem: Problem::NoPlace(node.min(expected)),
                });
            };
            let start = Position { x, y };
            draft.orders.sort_by_key(|(at, ..)| *at);
            movements.tracks.push(Track::Legs(legs(start, &draft.orders)));
            movements.positions.push(start);
        }
        Ok(movements)
    }
}

/// An order interrupts the leg that is under way.
fn legs(start: Position, orders: &[(u64, Position, f64)]) -> VecDeque<Leg> {
    let mut legs = VecDeque::new();
    let mut leg = Leg::standing(start);
    for (at, to, speed_mps) in orders {
        leg = Leg::towards(*at, leg.at(*at), *to, *speed_mps);
        legs.push_back(leg);
    }
    legs
}

fn read_line(line: &str, number: usize, drafts: &mut BTreeMap<u32, Draft>) -> Result<(), Problem> {
    let not_understood = || Problem::NotUnderstood(line.chars().take(80).collect());
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        [] => Ok(()),
        [first, ..] if first.starts_with('#') || first == "$god_" => Ok(()),
        [node, "set", axis, value] => {
            let node = node_of(node).ok_or_else(not_understood)??;
            let draft = draft_of(drafts, node, number);
            let metres = number_in("place in metres", value, -FARTHEST_M, FARTHEST_M)?;
            match axis {
                "X_" => draft.x = Some(metres),
                "Y_" => draft.y = Some(metres),
                "Z_" => {}
                _ => return Err(not_understood()),
            }
            Ok(())
        }
        ["$ns_" | "$ns", "at", _, "\"$god_", ..] if line.ends_with('"') => Ok(()),
        ["$ns_" | "$ns", "at", at, node, "setdest", x, y, speed] => {
            let (Some(node), Some(speed)) = (node.strip_prefix('"'), speed.strip_suffix('"')) else {
                return Err(not_understood());
            };
            let node = node_of(node).ok_or_else(not_understood)??;
            let seconds = number_in("time in seconds", at, 0.0, LATEST_S)?;
            let position = |text| number_in("place in metres", text, -FARTHEST_M, FARTHEST_M);
            let to = Position { x: position(x)?, y: position(y)? };
            let speed_mps = number_in("speed in m/s", speed, 0.0, FARTHEST_M)?;
            let draft = draft_of(drafts, node, number);
            draft.orders.push((truncate::to_u64(seconds * 1e9), to, speed_mps));
            Ok(())
        }
        _ => Err(not_understood()),
    }
}

fn draft_of(drafts: &mut BTreeMap<u32, Draft>, node: u32, line: usize) -> &mut Draft {
    drafts.entry(node).or_insert_with(|| Draft { line, ..Draft::default() })
}

/// `$node_(7)`.
fn node_of(word: &str) -> Option<Result<u32, Problem>> {
    let number = word.strip_prefix("$node_(")?.strip_suffix(')')?;
    let what = "node's number";
    Some(match number.parse::<u32>() {
        Ok(node) if node < MOST_NODES => Ok(node),
        Ok(_) => Err(Problem::OutOfRange { what, text: number.to_owned() }),
        Err(_) => Err(Problem::NoNumber { what, text: number.to_owned() }),
    })
}

fn number_in(what: &'static str, text: &str, least: f64, most: f64) -> Result<f64, Problem> {
    match text.parse::<f64>() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        Ok(_) => Err(Problem::OutOfRange { what, text: text.to_owned() }),
        Err(_) => Err(Problem::NoNumber { what, text: text.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SCENE: &str = "\
#
# nodes: 2, pause: 2.00, max speed: 20.00
#
$node_(0) set X_ 100.0
$node_(0) set Y_ 50.0
$node_(0) set Z_ 0.000000000000
$node_(1) set X_ 0.0
$node_(1) set Y_ 0.0
$node_(1) set Z_ 0.0
$god_ set-dist 0 1 1
$ns_ at 2.0 \"$node_(1) setdest 0.0 100.0 10.0\"
$ns_ at 3.5 \"$god_ set-dist 0 1 16777215\"
$ns_ at 7.0 \"$node_(1) setdest 50.0 50.0 5.0\"
";

    fn legs_of(movements: &Movements, node: usize) -> Vec<Leg> {
        let Track::Legs(legs) = &movements.tracks[node] else { panic!("legs") };
        legs.iter().copied().collect()
    }

    #[test]
    fn nodes_head_where_they_are_told_and_orders_interrupt_each_other() {
        let movements = Movements::parse(SCENE).expect("a movement file");
        assert_eq!(movements.positions[0], Position { x: 100.0, y: 50.0 });
        assert_eq!(legs_of(&movements, 0), []);
        let [first, second] = legs_of(&movements, 1)[..] else { panic!("two legs") };
        assert_eq!((first.from_ns, first.until_ns), (2_000_000_000, 12_000_000_000));
        assert_eq!(first.at(3_000_000_000), Position { x: 0.0, y: 10.0 });
        // The node is half the distance up when the second order comes.
        assert_eq!(second.start, Position { x: 0.0, y: 50.0 });
        assert_eq!(second.until_ns, 17_000_000_000);
        assert_eq!(second.at(u64::MAX), Position { x: 50.0, y: 50.0 });
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let first = "$node_(0) set X_ 1\n$node_(0) set Y_ 1\n";
        for (rest, line, problem) in [
            ("$ns_ at -1.0 \"$node_(0) setdest 1 1 1\"\n", 3, "out of range for a time"),
            ("$ns_ at nan \"$node_(0) setdest 1 1 1\"\n", 3, "out of range for a time"),
            ("$ns_ at 1.0 \"$node_(0) setdest 1 1 -1\"\n", 3, "out of range for a speed"),
            ("$ns_ at 1.0 \"$node_(0) setdest 1 inf 1\"\n", 3, "out of range for a place"),
            ("$ns_ at 1.0 \"$node_(0) setdest 1 1 1", 3, "neither a place nor a movement"),
            ("$ns_ at 1.0 \"$node_(0) setdest 1", 3, "neither a place nor a movement"),
            ("$ns_ at soon \"$node_(0) setdest 1 1 1\"\n", 3, "`soon` is no time"),
            ("$node_(0) set W_ 1\n", 3, "neither a place nor a movement"),
            ("$node_(x) set X_ 1\n", 3, "`x` is no node's number"),
            ("$node_(4000000) set X_ 1\n", 3, "out of range for a node's number"),
            ("\n$node_(1) set X_ 1\n", 4, "node 1 has no X_ and Y_"),
            ("$node_(2) set X_ 1\n$node_(2) set Y_ 1\n", 3, "node 1 has no X_ and Y_"),
            ("$node_(1) set X_ 1\n$node_(1) set Y_ 1", 4, "cut short"),
            ("hello\n", 3, "`hello` is neither"),
        ] {
            let error = Movements::parse(&format!("{first}{rest}")).expect_err(rest);
            assert_eq!(error.line, line, "{rest}");
            assert!(error.to_string().contains(problem), "{rest}: {error}");
        }
        assert_eq!(Movements::parse("").expect_err("no node").problem, Problem::NoNodes);
    }

    #[test]
    fn a_file_cut_anywhere_is_read_to_a_whole_line_or_refused() {
        for end in 0..SCENE.len() {
            let cut = &SCENE[..end];
            if let Ok(movements) = Movements::parse(cut) {
                assert!(cut.ends_with('\n'), "{cut}");
                assert!(!movements.positions.is_empty());
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn no_text_makes_the_parser_panic(text in "([$_a-z0-9() .\"\n-]|\\$ns_ at |setdest |\\$node_\\(0\\) ){0,60}") {
            let _ = Movements::parse(&text);
        }
    }
}
