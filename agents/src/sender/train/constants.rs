//! The numbers of the rule, and the parts of it that can be left out. `scripts/bench train --ablate` measures what each
//! part brings over the scenes of `configs/train/test.yaml`.

use std::time::Duration;

use crate::param::choices;

/// Timeouts in a row that do not double the timer: a fade is not a dead path yet.
pub(super) const HELD_TIMEOUTS: u8 = 3;
/// The first train after a handshake has this many segments. A flow with no more needs no turn.
pub(super) const FIRST_SEGMENTS: u32 = 4;
/// Part of the handshake's round trip that the first gap is.
pub(super) const FIRST_GAP: f64 = 0.6;
/// Factor of the gap after each train of the beginning, until the queue is as long as the first train.
pub(super) const QUICKER: f64 = 0.75;
/// The same on a path that is longer than radios make it.
pub(super) const MUCH_QUICKER: f64 = 0.5;
/// The least round trip of a train counts as at most this many handshakes.
pub(super) const HANDSHAKES: f64 = 2.5;
/// Part of the queue's error that a train makes good.
pub(super) const GAIN: f64 = 0.3;
/// Part of the gap that one train may take away for each segment that may queue. A loss adds three of it.
pub(super) const STEP: f64 = 0.01;
/// Part of the gap that one train may add.
pub(super) const MOST_STEP: f64 = 0.15;
/// Part of the gap that one train may take away without a pause. The room on a long path grows by this part of a
/// segment.
pub(super) const FLOWING_STEP: f64 = 0.1;
/// (This factor × gap / least round trip)² segments may queue at a train's end.
pub(super) const QUEUE_FACTOR: f64 = 2.2;
/// Segments that may always queue there, and at the most. A train is calm if no more than the least queue.
pub(super) const LEAST_QUEUE: f64 = 0.5;
pub(super) const MOST_QUEUE: f64 = 6.0;
/// Part of a train's segments that may always queue. Round trips of an empty path vary by as much as this.
pub(super) const TOO_SHORT: f64 = 1.0 / 80.0;
/// Segments that may queue without pauses: ACKs then meet data, and round trips show less of the queue. A longer queue
/// belongs to other flows, until less than half of this is left.
pub(super) const FLOWING_QUEUE: f64 = 16.0;
/// An empty path that holds more segments than this for each hop is longer than radios make it. Up to three hops count
/// as three, and more hops as four: behind these the air of the first one is free again.
pub(super) const LONG: f64 = 2.0;
/// Multiple of what a long path holds that may be in flight together with a train.
pub(super) const HELD: f64 = 1.25;
/// On a path of this many hops every station hears every other.
pub(super) const SHORT_HOPS: u8 = 3;
/// A short path that holds more segments than this at the current gap carries no other flow.
pub(super) const ALONE: f64 = 0.9;
/// Trains that an average covers, that a block has at least, and that show in a row that other flows fill the queue.
pub(super) const TRAINS: u32 = 8;
/// The least time of a block.
pub(super) const BLOCK_TIME: Duration = Duration::from_secs(2);
/// Blocks until the first trial, and between two trials at the most. Each trial that fails doubles them.
pub(super) const INTERVAL: u32 = 6;
pub(super) const MOST_INTERVAL: u32 = 16 * INTERVAL;
/// Ratio of goodput without pauses to goodput with them that leaves them out.
pub(super) const WORTH: f64 = 1.02;
/// Share of trains with losses that brings the pause back: losses are a MAC's sign of overload.
pub(super) const LOSSY: f64 = 0.2;
/// The part of the other flows' queue to keep in flight.
pub(super) const SHARE: f64 = 0.8;

choices!(Part {
    Nothing = "nothing",
    /// The first gap that the handshake tells.
    HandshakeGap = "handshake-gap",
    /// The bound that the handshake sets to the least round trip.
    HandshakeBase = "handshake-base",
    /// The queue that grows with the gap.
    QueueByGap = "queue-by-gap",
    /// The queue that grows with the train.
    TooShort = "too-short",
    /// The quicker steps where more may queue.
    DownByQueue = "down-by-queue",
    /// Trains that follow each other without a pause.
    Flowing = "flowing",
    /// Trials without pauses on paths of radios.
    Trials = "trials",
    /// Trials without pauses on short paths.
    ShortTrials = "short-trials",
    /// The test that a path is noisy before a trial.
    Noise = "noise",
    /// The losses that bring the pause back.
    Lossy = "lossy",
    /// The doubled time after a trial that failed.
    Interval = "interval",
    /// The second gap.
    TwoGaps = "two-gaps",
    /// All that is of long paths.
    Long = "long",
    /// The smaller steps of trains that are only a part of what a long path holds.
    Steadied = "steadied",
    /// The shorter trains in a small window.
    WindowFit = "window-fit",
    /// The end of a train before all of it is acknowledged.
    MostIsAll = "most-is-all",
});
