//! The numbers of the rule.

use std::time::Duration;

/// Segments of the first burst, as of other senders (RFC 6928).
pub(super) const FIRST_SEGMENTS: u32 = 10;
/// A radio aggregates if this many segments arrive together.
pub(super) const LEAST_RUN: u32 = 4;
/// No aggregate has more packets: a block ACK has room for as many.
pub(super) const MOST_RUN: u32 = 64;
/// One of so many ACKs, at the latest, is followed by a survey: a burst that asks how long aggregates are.
pub(super) const SURVEY_EVERY: u32 = 64;
/// The paced bursts that share an ACK leave within this time, and are at most so many.
pub(super) const GROUP: Duration = Duration::from_millis(100);
pub(super) const MOST_PARTS: u32 = 10;
/// Part of the queue's error by which the gap changes with each ACK, and the most of it either way.
pub(super) const GAIN: f64 = 0.03;
pub(super) const MOST_DOWN: f64 = 0.01;
pub(super) const MOST_UP: f64 = 0.1;
/// Factor of the gap after each ACK in the beginning, until an aggregate queues. The last two steps are taken back then
/// and with each loss, since the queue has come with the gap of a round trip ago.
pub(super) const QUICKER: f64 = 0.93;
/// The least round trip is that of one or two such times.
pub(super) const MEMORY: Duration = Duration::from_secs(10);
/// The counted time of a trial. Half of it goes by before, and the gap may be sought for four of it.
pub(super) const BLOCK: Duration = Duration::from_secs(1);
/// The ratio of goodput that paced bursts have to bring. A rate that grows by as much from block to block still rises.
pub(super) const WORTH: f64 = 1.05;
/// Each trial multiplies the time until the next one, up to 512 s: the first trial comes after a block, the second one
/// after 32 s.
pub(super) const PATIENCE: u32 = 16;
