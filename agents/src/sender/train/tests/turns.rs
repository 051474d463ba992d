//! What `train` wants a turn for, and what it does where others take turns with it.

use hopwise_core::agent::{Asking, LossKind, Turn};

use super::{bench, flows_within, gap_us, segments, short_and_flowing, train};
use crate::testkit::sender::{Bench, MSS};

/// A turn is for one train: the next one has another name.
#[test]
fn a_train_is_named_by_where_it_begins_until_its_ack_is_in() {
    let mut bench = bench();
    let first = bench.snd_una;
    assert_eq!(bench.wanted_turn(), Some(first));
    train(&mut bench);
    let second = bench.snd_una;
    assert_eq!(bench.wanted_turn(), Some(second));
    bench.send(1);
    assert_eq!(bench.wanted_turn(), Some(second));
    bench.send(1);
    bench.ack(1);
    assert_eq!(bench.wanted_turn(), Some(second), "the last one is still to come");
    bench.ack(1);
    assert_eq!(bench.wanted_turn(), Some(second + 2 * MSS));
}

#[test]
fn who_has_little_or_probes_or_cannot_ask_waits_for_nobody() {
    let mut bench = bench();
    bench.unsent_bytes = 4 * u64::from(MSS);
    assert_eq!(bench.wanted_turn(), None);
    bench.unsent_bytes += 1;
    assert!(bench.wanted_turn().is_some());
    bench.asking = Asking::Never;
    assert_eq!(bench.wanted_turn(), None);
    bench.asking = Asking::Rate;
    bench.send(1);
    bench.lose(LossKind::Timeout { nth: 1 });
    assert_eq!(bench.wanted_turn(), None);
    bench.flight = bench.count(1);
    bench.ack(1);
    assert!(bench.wanted_turn().is_some());
    let mut off = Bench::new("train:turns=off");
    off.unsent_bytes = 1_000_000;
    assert_eq!(off.wanted_turn(), None);
}

/// What it has begun it ends: the last segments of a train are not little.
#[test]
fn the_end_of_a_train_needs_the_turn_that_its_beginning_had() {
    let mut bench = bench();
    (0..4).for_each(|_| drop(train(&mut bench)));
    let began = bench.snd_una;
    bench.unsent_bytes = 8 * u64::from(MSS);
    for left in (0..8).rev() {
        bench.send(1);
        bench.unsent_bytes = left * u64::from(MSS);
        assert_eq!(bench.wanted_turn(), Some(began), "{left} are left");
    }
}

/// A path that holds many segments has room for all.
#[test]
fn on_a_wire_nobody_waits_for_a_turn() {
    let mut bench = bench();
    assert!(bench.wanted_turn().is_some());
    (0..20).for_each(|_| drop(train(&mut bench)));
    assert_eq!(bench.wanted_turn(), None, "{} us", gap_us(&bench));
}

/// Otherwise it would send into the train of whoever comes next.
#[test]
fn who_takes_turns_with_others_makes_a_pause_after_each_train() {
    let mut bench = short_and_flowing();
    bench.turn = Turn::Holding;
    train(&mut bench);
    assert_eq!(bench.allowed_segments(), segments(&bench));
    assert!(!flows_within(&mut bench, 100), "nor is anything else tried");
    bench.turn = Turn::Alone;
    assert!(flows_within(&mut bench, 100));
}
