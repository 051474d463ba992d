//! Small messages to and fro, one at a time.

use crate::clock::rate;
use crate::ours::{Ours, Settings};
use crate::pair::{Acks, End, Packets, Pair, Sums, settle};
use crate::row::{Better, Row, SMOLTCP, in_turn};
use crate::theirs::Theirs;

const MESSAGE_BYTES: usize = 64;
/// Messages of one run; each has an answer.
const MESSAGES: u64 = 100_000;

/// A share of smoltcp's rate.
const GOAL: f64 = 0.45;

pub(crate) fn rows() -> Vec<Row> {
    let mut ours = Ours::new(Settings::default());
    let mut theirs = Theirs::new(Sums::On, Acks::Delayed, Packets::Segments);
    for pair in [&mut ours as &mut dyn Pair, &mut theirs] {
        pair.open();
    }
    settle(&mut ours);
    settle(&mut theirs);
    let (ours, theirs) = in_turn(|| play(&mut ours, MESSAGES), || play(&mut theirs, MESSAGES));
    vec![Row::beside("ping-pong", "round trips/s", Better::More, ours, (SMOLTCP, theirs)).meant_to_be(GOAL)]
}

/// Returns round trips a second.
pub(crate) fn play(pair: &mut impl Pair, messages: u64) -> f64 {
    let mut message = [7; MESSAGE_BYTES];
    rate(messages, || {
        for _ in 0..messages {
            for end in [End::A, End::B] {
                pair.wait_us(5);
                assert_eq!(pair.write(end, &message), MESSAGE_BYTES, "one message always fits");
                pair.give(end);
                pair.take(end.other());
                assert_eq!(pair.read(end.other(), &mut message), MESSAGE_BYTES, "it came in one piece");
            }
        }
    })
}
