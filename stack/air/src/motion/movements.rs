//! Movement files: the first places of all nodes, then their ways. ns-2's and BonnMotion's look so different that the
//! first line tells them apart.

use super::{NodeTrack, bonnmotion, setdest};
use crate::radio::Position;
use crate::truncate::quoted;

/// A larger number is a mistake and not a node's.
pub(super) const MOST_NODES: u32 = 1_000_000;
const FARTHEST_M: f64 = 1e7;
const LATEST_S: f64 = 1e9;

/// The first positions and the movements of all nodes.
#[derive(Clone, Debug)]
pub struct Movements {
    /// The places of the nodes at time 0, in the order of their numbers.
    pub positions: Vec<Position>,
    /// Each node's movements, in the order of nodes.
    pub tracks: Vec<NodeTrack>,
}

/// A movement file that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct MovementError {
    /// Counted from 1.
    pub line: usize,
    /// The character of the line, counted from 1.
    pub column: usize,
    /// The fault at that place.
    pub problem: MovementProblem,
}

/// The fault of a movement file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MovementProblem {
    /// The line is not a place and not a movement.
    #[error("`{0}` is neither a place nor a movement")]
    NotUnderstood(String),
    /// A word that should be a number is none.
    #[error("`{text}` is no {what}")]
    NoNumber {
        /// The quantity that should stand there.
        what: &'static str,
        /// The word that stands there.
        text: String,
    },
    /// A number is too large or too small.
    #[error("`{text}` is out of range for a {what}")]
    OutOfRange {
        /// The quantity that should stand there.
        what: &'static str,
        /// The number that stands there.
        text: String,
    },
    /// The last line has no end.
    #[error("the file ends in the middle of a line: it was cut short")]
    CutShort,
    /// A node has no place although a line names it, or a node with a higher number.
    #[error("node {0} has no X_ and Y_ to begin at")]
    NoPlace(u32),
    /// The file has no first position of any node.
    #[error("the file places no node")]
    NoNodes,
    /// A line of BonnMotion's has a number of numbers that makes no waypoints.
    #[error("{numbers} numbers{}", wanted_of_waypoints(*.each))]
    NoWaypoints {
        /// The numbers in the line.
        numbers: usize,
        /// The numbers of a waypoint: three, or four with heights.
        each: usize,
    },
    /// A waypoint is no later than the one before it, and elsewhere.
    #[error("a waypoint at `{0}` s, expected a time after that of the waypoint before it")]
    NotLater(String),
    /// A line of BonnMotion's between two nodes has no waypoint.
    #[error("an empty line between two nodes, expected a node's waypoints")]
    Empty,
    /// The file has more waypoints than this.
    #[error("more waypoints than {0}")]
    TooMany(usize),
}

fn wanted_of_waypoints(each: usize) -> &'static str {
    match each {
        3 => ", expected three for each waypoint: time, x and y",
        _ => " after #3D, expected four for each waypoint: time, x, y and z",
    }
}

/// A fault, with the part of a line that has it.
pub(super) type MovementFault<'a> = (&'a str, MovementProblem);

impl MovementError {
    /// `part` is a part of `line`; one from elsewhere stands at the beginning.
    pub(super) fn at(number: usize, line: &str, (part, problem): MovementFault<'_>) -> MovementError {
        let offset = part.as_ptr().addr().checked_sub(line.as_ptr().addr());
        let before = offset.and_then(|offset| line.get(..offset)).unwrap_or_default();
        MovementError { line: number, column: before.chars().count() + 1, problem }
    }

    /// The fault of a whole line.
    pub(super) fn of_line(number: usize, problem: MovementProblem) -> MovementError {
        MovementError { line: number, column: 1, problem }
    }
}

impl Movements {
    /// Reads a whole file, ns-2's or BonnMotion's: a line of the latter begins with a number. Every node has a first
    /// position; lines of another form are errors, except comments.
    pub fn parse(text: &str) -> Result<Movements, MovementError> {
        let is_said = |line: &&str| !line.is_empty() && !line.starts_with('#');
        let first = text.lines().map(str::trim_start).find(is_said);
        let is_number = |first: char| first.is_ascii_digit() || "+-.".contains(first);
        let movements = if first.is_some_and(|line| line.starts_with(is_number)) {
            bonnmotion::parse(text)?
        } else {
            setdest::parse(text)?
        };
        let last = text.lines().count().max(1);
        if !text.is_empty() && !text.ends_with('\n') {
            return Err(MovementError::of_line(last, MovementProblem::CutShort));
        }
        if movements.positions.is_empty() {
            return Err(MovementError::of_line(last, MovementProblem::NoNodes));
        }
        Ok(movements)
    }
}

pub(super) fn metres(text: &str) -> Result<f64, MovementFault<'_>> {
    number_in("place in metres", text, -FARTHEST_M, FARTHEST_M)
}

pub(super) fn seconds(text: &str) -> Result<f64, MovementFault<'_>> {
    number_in("time in seconds", text, 0.0, LATEST_S)
}

pub(super) fn speed_mps(text: &str) -> Result<f64, MovementFault<'_>> {
    number_in("speed in m/s", text, 0.0, FARTHEST_M)
}

fn number_in<'a>(what: &'static str, text: &'a str, least: f64, most: f64) -> Result<f64, MovementFault<'a>> {
    match text.parse::<f64>() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        Ok(_) => Err((text, MovementProblem::OutOfRange { what, text: quoted(text) })),
        Err(_) => Err((text, MovementProblem::NoNumber { what, text: quoted(text) })),
    }
}
