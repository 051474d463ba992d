//! ns-2's movement files, as its `setdest` writes them: the first positions, then the movements with their times.
//!
//! Other lines of such files are skipped: comments, heights (`Z_`), and the distances for `$god_`.

use std::collections::{BTreeMap, VecDeque};

use super::movements::{
    MOST_NODES, MovementError, MovementFault, MovementProblem, Movements, metres, seconds, speed_mps,
};
use super::{Leg, NodeTrack};
use crate::radio::Position;
use crate::truncate::{self, quoted};

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

pub(super) fn parse(text: &str) -> Result<Movements, MovementError> {
    let mut drafts: BTreeMap<u32, Draft> = BTreeMap::new();
    for (line, number) in text.lines().zip(1..) {
        read_line(line.trim(), number, &mut drafts)
            .map_err(|fault| MovementError::at(number, line, fault))?;
    }
    let mut movements = Movements { positions: Vec::new(), tracks: Vec::new() };
    for ((node, mut draft), expected) in drafts.into_iter().zip(0..) {
        let (Some(x), Some(y), true) = (draft.x, draft.y, node == expected) else {
            return Err(MovementError::of_line(draft.line, MovementProblem::NoPlace(node.min(expected))));
        };
        let start = Position { x, y };
        draft.orders.sort_by_key(|(at, ..)| *at);
        movements.tracks.push(NodeTrack::Legs(legs(start, &draft.orders)));
        movements.positions.push(start);
    }
    Ok(movements)
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

fn read_line<'a>(
    line: &'a str,
    number: usize,
    drafts: &mut BTreeMap<u32, Draft>,
) -> Result<(), MovementFault<'a>> {
    let not_understood = || (line, MovementProblem::NotUnderstood(quoted(line)));
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        [] => Ok(()),
        [first, ..] if first.starts_with('#') || first == "$god_" => Ok(()),
        [node, "set", axis, value] => {
            let node = node_of(node).ok_or_else(not_understood)??;
            let draft = draft_of(drafts, node, number);
            let metres = metres(value)?;
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
            let at_ns = truncate::to_u64(seconds(at)? * 1e9);
            let to = Position { x: metres(x)?, y: metres(y)? };
            let speed_mps = speed_mps(speed)?;
            draft_of(drafts, node, number).orders.push((at_ns, to, speed_mps));
            Ok(())
        }
        _ => Err(not_understood()),
    }
}

fn draft_of(drafts: &mut BTreeMap<u32, Draft>, node: u32, line: usize) -> &mut Draft {
    drafts.entry(node).or_insert_with(|| Draft { line, ..Draft::default() })
}

/// `$node_(7)`.
fn node_of(word: &str) -> Option<Result<u32, MovementFault<'_>>> {
    let number = word.strip_prefix("$node_(")?.strip_suffix(')')?;
    let (what, text) = ("node's number", || quoted(number));
    Some(match number.parse::<u32>() {
        Ok(node) if node < MOST_NODES => Ok(node),
        Ok(_) => Err((number, MovementProblem::OutOfRange { what, text: text() })),
        Err(_) => Err((number, MovementProblem::NoNumber { what, text: text() })),
    })
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
        let NodeTrack::Legs(legs) = &movements.tracks[node] else { panic!("legs") };
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
        let error = Movements::parse(&format!("{first}$ns_ at 1 \"$node_(0) setdest 1 x 1\"\n"));
        assert_eq!(error.map_err(|error| error.column).expect_err("no place"), 32);
        assert_eq!(Movements::parse("").expect_err("no node").problem, MovementProblem::NoNodes);
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
