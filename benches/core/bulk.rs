//! Bulk: A sends B all that fits, in full segments.

use crate::clock::rate;
use crate::floor;
use crate::ours::{Ours, Settings, Trace};
use crate::pair::{Acks, BUFFER_BYTES, End, Packets, Pair, SEGMENT_BYTES, Sums, settle};
use crate::row::{Better, Row, SMOLTCP, in_turn, median_of};
use crate::theirs::Theirs;

/// Segments of one run.
const SEGMENTS: u64 = 50_000;
/// The most that the application writes at a time; the other one reads all that is there.
const CHUNK_BYTES: usize = 16 << 10;
/// Virtual time of one turn.
const TURN_US: u64 = 10;

/// Data segments: their ACKs are not counted, but the cost of the ACKs is.
const UNIT: &str = "ns/segment";
/// A share of smoltcp's segments a second, checksums, SACK, timestamps and an agent included.
const GOAL: f64 = 0.75;
const WINDOW_GOAL: f64 = 0.85;
/// Bundles compared with segments. Beside bundles it is out of reach: copies and sums alone take longer.
const BUNDLES_GOAL: f64 = 1.5;

/// The steps in which packets come to the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandOver {
    /// Each packet is handled, read and answered before the next one leaves: both stacks send equally many ACKs.
    Each,
    /// A whole window at once. smoltcp then sends one ACK for all of it; ours follows its agent's decisions.
    Window,
}

/// The case that is measured on each stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) sums: Sums,
    pub(crate) acks: Acks,
    pub(crate) packets: Packets,
    pub(crate) hand_over: HandOver,
}

pub(crate) fn rows() -> Vec<Row> {
    let plain =
        Case { sums: Sums::On, acks: Acks::Delayed, packets: Packets::Segments, hand_over: HandOver::Each };
    let bundles = Case { packets: Packets::Bundles, ..plain };
    let windows = Case { hand_over: HandOver::Window, ..plain };
    let cases = [
        ("bulk, an ACK each", Case { acks: Acks::Immediate, ..plain }),
        ("bulk, in bundles", bundles),
        ("bulk, in bundles, no checksums", Case { sums: Sums::Off, ..bundles }),
    ];
    let mut rows = goal_rows(plain);
    let unsummed = Case { sums: Sums::Off, ..plain };
    rows.push(beside_smoltcp("bulk, no checksums", (unsummed, unsummed)));
    rows.push(beside_smoltcp("bulk, window by window", (windows, windows)).meant_to_be(WINDOW_GOAL));
    rows.extend(cases.map(|(name, case)| beside_smoltcp(name, (case, case))));
    rows.push(beside_smoltcp("bulk, bundles against segments", (bundles, plain)).meant_to_be(BUNDLES_GOAL));
    for (name, trace) in [("bulk, trace drained", Trace::Drained), ("bulk, no trace", Trace::Off)] {
        let mut pair = ours(plain, trace);
        rows.push(Row::alone(
            name,
            UNIT,
            median_of(|| cost_ns(transfer(&mut pair, HandOver::Each, SEGMENTS))),
        ));
    }
    rows.push(Row::alone("bulk, copies and sums alone", UNIT, median_of(floor::copies_and_sums)));
    rows
}

/// The rows of the goal, in both units.
fn goal_rows(case: Case) -> Vec<Row> {
    let (ours, theirs) = measured((case, case));
    vec![
        Row::beside("bulk", "segments/s", Better::More, ours, (SMOLTCP, theirs)).meant_to_be(GOAL),
        Row::beside("bulk", UNIT, Better::Less, cost_ns(ours), (SMOLTCP, cost_ns(theirs))).meant_to_be(GOAL),
    ]
}

/// A row with our case and theirs.
fn beside_smoltcp(name: &str, cases: (Case, Case)) -> Row {
    let (ours, theirs) = measured(cases);
    Row::beside(name, UNIT, Better::Less, cost_ns(ours), (SMOLTCP, cost_ns(theirs)))
}

/// Segments a second.
fn measured(cases: (Case, Case)) -> (f64, f64) {
    let (mut ours, mut theirs) = (ours(cases.0, Trace::Kept), theirs(cases.1));
    in_turn(
        || transfer(&mut ours, cases.0.hand_over, SEGMENTS),
        || transfer(&mut theirs, cases.1.hand_over, SEGMENTS),
    )
}

fn cost_ns(segments_per_s: f64) -> f64 {
    1e9 / segments_per_s
}

pub(crate) fn ours(case: Case, trace: Trace) -> Ours {
    opened(Ours::new(Settings { sums: case.sums, acks: case.acks, packets: case.packets, trace }))
}

pub(crate) fn theirs(case: Case) -> Theirs {
    opened(Theirs::new(case.sums, case.acks, case.packets))
}

fn opened<P: Pair>(mut pair: P) -> P {
    pair.open();
    settle(&mut pair);
    pair
}

/// One run on a connection that stays; returns full segments a second.
pub(crate) fn transfer(pair: &mut impl Pair, hand_over: HandOver, segments: u64) -> f64 {
    let (chunk, mut sink) = (vec![7; CHUNK_BYTES], vec![0; BUFFER_BYTES]);
    let before = pair.full_segments();
    let rate = rate(segments, || {
        let mut to_write = segments as usize * SEGMENT_BYTES;
        let mut to_read = to_write;
        while to_read > 0 {
            pair.wait_us(TURN_US);
            to_write -= fill(pair, &chunk, to_write);
            to_read -= match hand_over {
                HandOver::Each => turn_of_packets(pair, &mut sink),
                HandOver::Window => turn_of_a_window(pair, &mut sink),
            };
        }
    });
    let passed = pair.full_segments() - before;
    assert!(passed.abs_diff(segments) <= segments / 30, "{passed} segments are not {segments} full ones");
    rate
}

/// The application writes until there is no room.
fn fill(pair: &mut impl Pair, chunk: &[u8], most: usize) -> usize {
    let mut written = 0;
    while written < most {
        let len = chunk.len().min(most - written);
        let taken = pair.write(End::A, &chunk[..len]);
        written += taken;
        if taken < len {
            break;
        }
    }
    written
}

/// All packets of A go to B, are read there, and are acknowledged. Returns the number of bytes read.
fn turn_of_packets(pair: &mut impl Pair, sink: &mut [u8]) -> usize {
    let mut read = 0;
    while pair.give_one(End::A) {
        pair.take(End::B);
        read += pair.read(End::B, sink);
        pair.give(End::B);
        pair.take(End::A);
    }
    pair.give(End::B);
    pair.take(End::A);
    read
}

fn turn_of_a_window(pair: &mut impl Pair, sink: &mut [u8]) -> usize {
    pair.give(End::A);
    pair.take(End::B);
    let mut read = 0;
    loop {
        let taken = pair.read(End::B, sink);
        if taken == 0 {
            break;
        }
        read += taken;
    }
    pair.give(End::B);
    pair.take(End::A);
    read
}
