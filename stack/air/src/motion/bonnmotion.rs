//! BonnMotion's movement files (`.movements`, unpacked): a line for each node, with its waypoints one after the other.
//!
//! A waypoint is a time and a place, `t x y`. After a line `#3D` a waypoint has a height too, `t x y z`, which is left
//! out. Between two waypoints a node moves at a steady speed. It stands at the first one before, and at the last one
//! after. Other lines with `#` are comments. The scenario DisasterArea has a form of its own and is refused.

use std::collections::VecDeque;

use super::movements::{
    MOST_NODES, MovementError, MovementFault, MovementProblem, Movements, metres, seconds,
};
use super::{Leg, NodeTrack};
use crate::radio::Position;
use crate::truncate::{self, quoted};

/// A leg takes seven times the memory of the shortest text of a waypoint.
const MOST_WAYPOINTS: usize = 10_000_000;

pub(super) fn parse(text: &str) -> Result<Movements, MovementError> {
    let mut movements = Movements { positions: Vec::new(), tracks: Vec::new() };
    let (mut each, mut empty, mut waypoints) = (3, None, 0);
    for (line, number) in text.lines().zip(1..) {
        if line.trim().is_empty() {
            empty = empty.or(Some(number));
            continue;
        }
        if let Some(comment) = line.trim_start().strip_prefix('#') {
            // The mark holds for the whole file, and stands above all nodes.
            if movements.positions.is_empty() && comment.trim().eq_ignore_ascii_case("3D") {
                each = 4;
            }
            continue;
        }
        if let Some(number) = empty.filter(|_| !movements.positions.is_empty()) {
            return Err(MovementError::of_line(number, MovementProblem::Empty));
        }
        empty = None;
        if movements.positions.len() >= MOST_NODES as usize {
            let text = (movements.positions.len() + 1).to_string();
            return Err(MovementError::of_line(
                number,
                MovementProblem::OutOfRange { what: "node's number", text },
            ));
        }
        let (start, legs) =
            read_node(line, each, &mut waypoints).map_err(|fault| MovementError::at(number, line, fault))?;
        movements.positions.push(start);
        movements.tracks.push(NodeTrack::Legs(legs));
    }
    Ok(movements)
}

/// The first place of a node, and its legs.
fn read_node<'a>(
    line: &'a str,
    each: usize,
    waypoints: &mut usize,
) -> Result<(Position, VecDeque<Leg>), MovementFault<'a>> {
    let mut words = line.split_whitespace();
    let mut legs = VecDeque::new();
    let mut last: Option<(u64, Position)> = None;
    while let Some(at) = words.next() {
        let mut next = || {
            let missing = || MovementProblem::NoWaypoints { numbers: line.split_whitespace().count(), each };
            words.next().ok_or_else(|| (at, missing()))
        };
        let (x, y) = (next()?, next()?);
        if each == 4 {
            metres(next()?)?;
        }
        let at_ns = truncate::to_u64(seconds(at)? * 1e9);
        let place = Position { x: metres(x)?, y: metres(y)? };
        *waypoints += 1;
        if *waypoints > MOST_WAYPOINTS {
            return Err((at, MovementProblem::TooMany(MOST_WAYPOINTS)));
        }
        match last {
            // BonnMotion itself repeats waypoints.
            Some((from_ns, start)) if start == place && from_ns <= at_ns => {}
            Some((from_ns, start)) if from_ns < at_ns => {
                legs.push_back(Leg { from_ns, until_ns: at_ns, start, end: place });
            }
            Some(_) => return Err((at, MovementProblem::NotLater(quoted(at)))),
            None => {}
        }
        last = Some((at_ns, place));
    }
    let (_, end) = last.ok_or((line, MovementProblem::Empty))?;
    Ok((legs.front().map_or(end, |leg| leg.start), legs))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::motion::Walker;

    const SCENE: &str = "\
# BonnMotion, ManhattanGrid
0.0 100.0 50.0
0.0 0.0 0.0 2.0 0.0 0.0 12.0 0.0 100.0 1.2E1 0.0 100.0 20.0 0.0 100.0 30.0 50.0 50.0
5.0 7.0 -8.0 6.0 7.0 2.0
";

    fn at(movements: &Movements, node: usize, seconds: f64) -> (f64, f64) {
        let mut walker = Walker::new(movements.positions[node], Some(movements.tracks[node].clone()));
        let place = walker.at(truncate::to_u64(seconds * 1e9));
        (place.x, place.y)
    }

    #[test]
    fn a_node_is_at_its_waypoints_at_their_times_and_on_the_way_between() {
        let movements = Movements::parse(SCENE).expect("a movement file");
        assert_eq!((movements.positions.len(), movements.tracks.len()), (3, 3));
        for (node, seconds, place) in [
            (0, 99.0, (100.0, 50.0)),
            (1, 1.0, (0.0, 0.0)),
            (1, 3.0, (0.0, 10.0)),
            (1, 12.0, (0.0, 100.0)),
            // It pauses there.
            (1, 20.0, (0.0, 100.0)),
            (1, 25.0, (25.0, 75.0)),
            (1, 1e6, (50.0, 50.0)),
            // The first waypoint comes late: the node waits there.
            (2, 0.0, (7.0, -8.0)),
            (2, 5.5, (7.0, -3.0)),
        ] {
            assert_eq!(at(&movements, node, seconds), place, "node {node} at {seconds} s");
        }
    }

    #[test]
    fn heights_are_read_after_their_mark_and_left_out() {
        let flat = Movements::parse("0 1 2 4 5 6\n").expect("two dimensions");
        let high = Movements::parse("#3D\n0 1 2 99 4 5 6 7\n").expect("three dimensions");
        assert_eq!(format!("{flat:?}"), format!("{high:?}"));
        let noted = Movements::parse("#3D\n0 1 2 3\n#3D\n0 1 2 3\n").expect("a mark counts once");
        assert_eq!(noted.positions.len(), 2);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_column() {
        for (text, line, column, problem) in [
            ("0 1 2\n0 1\n", 2, 1, "2 numbers, expected three for each waypoint: time, x and y"),
            ("0 1 2  3 4 5  6\n", 1, 15, "7 numbers, expected three"),
            ("#3D\n0 1 2\n", 2, 1, "3 numbers after #3D, expected four"),
            ("#3D\n0 1 2 up\n", 2, 7, "`up` is no place in metres"),
            ("0 1 2 3 east 5\n", 1, 9, "`east` is no place in metres"),
            ("0 1 2 soon 4 5\n", 1, 7, "`soon` is no time in seconds"),
            ("0 1 1e99\n", 1, 5, "`1e99` is out of range for a place"),
            ("0 1 NaN\n", 1, 5, "`NaN` is out of range for a place"),
            ("-1 1 1\n", 1, 1, "`-1` is out of range for a time"),
            ("0 1 2 5 3 4 5 6 7\n", 1, 13, "a waypoint at `5` s, expected a time after"),
            ("0 1 2 5 3 4 4 3 4\n", 1, 13, "a waypoint at `4` s"),
            ("0 1 2\n\n# x\n0 1 2\n", 2, 1, "an empty line between two nodes"),
            ("0 1 2\n0 1 2", 2, 1, "cut short"),
        ] {
            let error = Movements::parse(text).expect_err(text);
            assert_eq!((error.line, error.column), (line, column), "{text}: {error}");
            assert!(error.to_string().contains(problem), "{text}: {error}");
        }
        assert!(Movements::parse("\n0 1 2\n\n").is_ok(), "empty lines around the nodes");
        // A form of BonnMotion's with a number a line is no node with one.
        assert!(Movements::parse("0.0\n1.0\n2.0\n0.0\n").is_err());
    }

    #[test]
    fn a_file_cut_anywhere_is_read_to_a_whole_line_or_refused() {
        for end in 0..SCENE.len() {
            let cut = &SCENE[..end];
            if let Ok(movements) = Movements::parse(cut) {
                assert!(cut.ends_with('\n') && !movements.positions.is_empty(), "{cut}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn no_text_makes_the_parser_panic(text in "(#3D\n)?([0-9][0-9eE. \n#+-]|NaN |inf |1e9 |é){0,60}") {
            let _ = Movements::parse(&text);
        }

        #[test]
        fn all_waypoints_are_met_and_none_is_left(
            places in prop::collection::vec((1..50_u32, -900..900_i32, -900..900_i32), 1..20),
        ) {
            let (mut seconds, mut text, mut met) = (0, String::new(), Vec::new());
            for (step, x, y) in places {
                seconds += step;
                text += &format!("{seconds} {x} {y} ");
                met.push((f64::from(seconds), (f64::from(x), f64::from(y))));
            }
            let movements = Movements::parse(&(text + "\n")).expect("a movement file");
            for (seconds, place) in met {
                prop_assert_eq!(at(&movements, 0, seconds), place);
            }
        }
    }
}
