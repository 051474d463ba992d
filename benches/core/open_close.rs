//! Connections opened and closed, one after the other.

use crate::clock::rate;
use crate::ours::{Ours, Settings};
use crate::pair::{Acks, Packets, Pair, Sums};
use crate::row::{Better, Row, SMOLTCP, in_turn};
use crate::theirs::Theirs;

/// Connections of one run.
const CONNECTIONS: u64 = 10_000;
/// A share of smoltcp's rate.
const GOAL: f64 = 0.45;

pub(crate) fn rows() -> Vec<Row> {
    let mut ours = Ours::new(Settings::default());
    // smoltcp opens one socket again and again, and has its buffers already.
    let mut theirs = Theirs::new(Sums::On, Acks::Delayed, Packets::Segments);
    let (ours, theirs) =
        in_turn(|| open_and_close(&mut ours, CONNECTIONS), || open_and_close(&mut theirs, CONNECTIONS));
    let row = Row::beside("open and close", "connections/s", Better::More, ours, (SMOLTCP, theirs));
    vec![row.meant_to_be(GOAL)]
}

/// Returns connections a second.
pub(crate) fn open_and_close(pair: &mut impl Pair, connections: u64) -> f64 {
    rate(connections, || {
        for _ in 0..connections {
            pair.open();
            pair.close();
        }
    })
}
