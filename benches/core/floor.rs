//! The work that no stack avoids if it copies at both ends and computes both sums: the least cost of a segment.

use std::hint::black_box;

use hopwise_core::wire::Sum;

use crate::clock::cost_ns;
use crate::pair::{BUFFER_BYTES, SEGMENT_BYTES};

const SEGMENTS: u64 = 50_000;
const HEADER_BYTES: usize = 32;

/// Nanoseconds a segment. It goes from the program into a buffer, then into a packet with its sum. It is summed again,
/// and goes through the peer's buffer to its program.
pub(crate) fn copies_and_sums() -> f64 {
    let (data, mut sink) = (vec![7; SEGMENT_BYTES], vec![0; SEGMENT_BYTES]);
    let (mut sent, mut received) = (vec![0; BUFFER_BYTES], vec![0; BUFFER_BYTES]);
    let mut packet = Vec::with_capacity(HEADER_BYTES + SEGMENT_BYTES);
    let places = BUFFER_BYTES / SEGMENT_BYTES;
    cost_ns(SEGMENTS, || {
        for nth in 0..SEGMENTS as usize {
            let from = nth % places * SEGMENT_BYTES;
            let place = from..from + SEGMENT_BYTES;
            sent[place.clone()].copy_from_slice(black_box(&data));
            packet.clear();
            packet.extend_from_slice(&[0; HEADER_BYTES]);
            let sum = Sum::default().append(&sent[place.clone()], &mut packet).finish();
            packet[16..18].copy_from_slice(&sum.to_be_bytes());
            assert_eq!(black_box(Sum::default().add(&packet)).finish(), 0, "the sum is right");
            received[place.clone()].copy_from_slice(&packet[HEADER_BYTES..]);
            sink.copy_from_slice(black_box(&received[place]));
        }
        black_box(&sink);
    })
}
