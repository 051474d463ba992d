//! The constants of the rule, and of the rule without one of its parts.
//!
//! `scripts/bench train --ablate` measures what each mechanism brings over the scenes of `configs/train/test.yaml`.

use crate::param::choices;

#[derive(Debug)]
pub(super) struct Constants {
    /// Timeouts in a row that do not double the timer: a fade is not a dead path yet.
    pub(super) stubborn: u8,
    /// Part of the handshake's round trip that the first gap is.
    pub(super) first_gap: f64,
    /// True if the handshake gives the first gap. Otherwise the first segment's round trip is the first gap.
    pub(super) begins_by_handshake: bool,
    /// Factor of the gap after each train of the beginning, while nothing queues.
    pub(super) quicker: f64,
    /// The same factor on a path that is longer than radios make it.
    pub(super) much_quicker: f64,
    /// Segments in the queue that end the beginning.
    pub(super) full_segments: f64,
    /// Factor of the gap when a loss ends the beginning.
    pub(super) loss_slows: f64,
    /// (This factor × gap / least round trip)² segments may queue at a train's end, within bounds.
    pub(super) queue_factor: f64,
    /// True if the queue that may stand follows the gap. Otherwise it is always the least.
    pub(super) queue_by_gap: bool,
    /// Segments that may always queue at a train's end.
    pub(super) least_queue: f64,
    /// Part of a train's segments that may always queue. Round trips of an empty path vary by as much as this.
    pub(super) too_short: f64,
    /// Segments that may queue at a train's end at the most, where trains wait.
    pub(super) most_queue: f64,
    /// Part of the queue's error that a train makes good.
    pub(super) gain: f64,
    /// Part of the gap that a loss adds beside a long round trip.
    pub(super) loss_adds: f64,
    /// Part of the gap that one train may take away.
    pub(super) most_down: f64,
    /// Part added to that for each segment that may queue: where many may, no cliff is near.
    pub(super) down_by_queue: f64,
    /// Part of the gap that one train may add.
    pub(super) most_up: f64,
    /// Segments that may queue without pauses on a short path. Flows with pauses must keep their share.
    pub(super) short_queue: f64,
    /// True if a short path has its own bound for that queue.
    pub(super) has_short_queue: bool,
    /// Part of the queue's growth since the last train that a train makes good, if there are no pauses.
    pub(super) growth_gain: f64,
    /// Part of the gap that one train may take away without pauses.
    pub(super) flowing_down: f64,
    /// Part of the queue that may stand on a long path after a loss.
    pub(super) loss_leaves: f64,
    /// Segments by which that queue grows with each train without a loss.
    pub(super) room_grows: f64,
    /// An empty path that holds more segments than this is longer than radios make it.
    pub(super) long: f64,
    /// The same for a path of a few hops, once its gap is no guess.
    pub(super) long_for_few_hops: f64,
    /// A train is calm if no more segments than this queue at its end.
    pub(super) calm: f64,
    /// True if a path has to be noisy before the pause is left out on trial.
    pub(super) hears_noise: bool,
    /// True if trains with a pause and trains without one each have their own gap.
    pub(super) has_two_gaps: bool,
    /// True if a train that is shorter than its round trip moves the gap by less.
    pub(super) weighs: bool,
    /// True if on a long path the queue's error counts by the square of that weight.
    pub(super) squares: bool,
    /// Hops after which the air of the first one is free again.
    pub(super) reuse_hops: f64,
    /// Part of the least round trip that a segment takes, for a path of unknown length.
    pub(super) part_served: f64,
    /// The least round trip of a train counts as at most this many handshakes.
    pub(super) handshakes: f64,
    /// True if another number of hops means another path.
    pub(super) hears_change: bool,
    /// A short path that holds more segments than this at the current gap carries no other flow.
    pub(super) alone: f64,
    /// The same without pauses. Below it other flows are thought to send.
    pub(super) not_alone: f64,
    /// True if the pause comes back on a short path as soon as other flows send.
    pub(super) minds_others: bool,
    /// True if the pause may be left out at all.
    pub(super) flows: bool,
    /// True if it may be left out on trial on paths of radios that are not short.
    pub(super) tries: bool,
    /// True if it may be left out on trial on short paths.
    pub(super) tries_short: bool,
    /// Ratio of goodput without pauses to goodput with them that leaves them out. Pauses keep a long path from
    /// overload.
    pub(super) worth: f64,
    /// The same on a short path, which nothing overloads.
    pub(super) short_worth: f64,
    /// Trains of a trial that do not count, until the gap has found its place.
    pub(super) warm_trains: u32,
    /// Blocks of trains until the first trial.
    pub(super) first_interval: u32,
    /// Blocks of trains between two trials at the most. Each trial that fails doubles them.
    pub(super) most_interval: u32,
    /// The number of trains with losses that ends a trial.
    pub(super) most_lossy: u32,
    /// Share of trains with losses that brings the pause back.
    pub(super) most_lossy_share: f64,
    /// Multiple of what a long path holds that may be in flight besides a train.
    pub(super) held: f64,
    /// True if trains on a long path are short enough for the peer's window to hold all data in flight.
    pub(super) fits_window: bool,
    /// True if on a long path an ACK for most of a train ends it.
    pub(super) most_is_all: bool,
}

pub(super) const FITTED: Constants = Constants {
    stubborn: 3,
    first_gap: 0.6,
    begins_by_handshake: true,
    quicker: 0.75,
    much_quicker: 0.5,
    full_segments: 4.4,
    loss_slows: 1.1,
    queue_factor: 2.2,
    queue_by_gap: true,
    least_queue: 0.5,
    too_short: 1.0 / 80.0,
    most_queue: 6.0,
    gain: 0.3,
    loss_adds: 0.03,
    most_down: 0.02,
    down_by_queue: 0.01,
    most_up: 0.15,
    short_queue: 4.0,
    has_short_queue: true,
    growth_gain: 0.5,
    flowing_down: 0.1,
    loss_leaves: 0.7,
    room_grows: 0.1,
    long: 8.0,
    long_for_few_hops: 5.0,
    calm: 0.35,
    hears_noise: true,
    has_two_gaps: true,
    weighs: true,
    squares: true,
    reuse_hops: 4.0,
    part_served: 0.5,
    handshakes: 2.5,
    hears_change: true,
    alone: 0.9,
    not_alone: 0.7,
    minds_others: true,
    flows: true,
    tries: true,
    tries_short: true,
    worth: 1.02,
    short_worth: 1.0,
    warm_trains: 4,
    first_interval: 6,
    most_interval: 96,
    most_lossy: 2,
    most_lossy_share: 0.15,
    held: 1.25,
    fits_window: true,
    most_is_all: true,
};

choices!(Part {
    Nothing = "nothing",
    /// The first gap that the handshake tells.
    HandshakeGap = "handshake-gap",
    /// The bound that the handshake sets to the least round trip.
    HandshakeBase = "handshake-base",
    /// The quicker beginning of long paths.
    MuchQuicker = "much-quicker",
    /// The slower gap after a loss in the beginning.
    LossSlows = "loss-slows",
    /// The queue that grows with the gap.
    QueueByGap = "queue-by-gap",
    /// The queue that grows with the train.
    TooShort = "too-short",
    /// The quicker steps where more may queue.
    DownByQueue = "down-by-queue",
    /// The larger gap after a loss.
    LossAdds = "loss-adds",
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
    /// The trains of a trial that do not count.
    Warm = "warm",
    /// The second gap.
    TwoGaps = "two-gaps",
    /// The pause that comes back when others send.
    Others = "others",
    /// The second bound of being alone.
    NotAlone = "not-alone",
    /// The smaller queue of short paths.
    ShortQueue = "short-queue",
    /// The part of the steps that the queue's growth gives.
    Growth = "growth",
    /// The smaller steps of short trains.
    Weight = "weight",
    /// The still smaller steps on long paths.
    Squares = "squares",
    /// All that is of long paths.
    Long = "long",
    /// The lower bound of long paths for a few hops.
    LongFewHops = "long-few-hops",
    /// The smaller queue after a loss on a long path.
    Room = "room",
    /// The shorter trains in a small window.
    WindowFit = "window-fit",
    /// The end of a train before all of it is acknowledged.
    MostIsAll = "most-is-all",
    /// The new beginning after a change of hops.
    HopChange = "hop-change",
    /// The hops in the length of others' queues.
    Reuse = "reuse",
});

impl Part {
    /// The constants of the rule without this part.
    pub(super) fn constants(self) -> &'static Constants {
        match self {
            Part::Nothing => &FITTED,
            Part::HandshakeGap => &Constants { begins_by_handshake: false, ..FITTED },
            Part::HandshakeBase => &Constants { handshakes: f64::INFINITY, ..FITTED },
            Part::MuchQuicker => &Constants { much_quicker: FITTED.quicker, ..FITTED },
            Part::LossSlows => &Constants { loss_slows: 1.0, ..FITTED },
            Part::QueueByGap => &Constants { queue_by_gap: false, ..FITTED },
            Part::TooShort => &Constants { too_short: 0.0, ..FITTED },
            Part::DownByQueue => &Constants { down_by_queue: 0.0, ..FITTED },
            Part::LossAdds => &Constants { loss_adds: 0.0, ..FITTED },
            Part::Flowing => &Constants { flows: false, ..FITTED },
            Part::Trials => &Constants { tries: false, ..FITTED },
            Part::ShortTrials => &Constants { tries_short: false, ..FITTED },
            Part::Noise => &Constants { hears_noise: false, ..FITTED },
            Part::Lossy => &Constants { most_lossy: u32::MAX, most_lossy_share: f64::INFINITY, ..FITTED },
            Part::Interval => &Constants { most_interval: FITTED.first_interval, ..FITTED },
            Part::Warm => &Constants { warm_trains: 0, ..FITTED },
            Part::TwoGaps => &Constants { has_two_gaps: false, ..FITTED },
            Part::Others => &Constants { minds_others: false, ..FITTED },
            Part::NotAlone => &Constants { not_alone: FITTED.alone, ..FITTED },
            Part::ShortQueue => &Constants { has_short_queue: false, ..FITTED },
            Part::Growth => &Constants { growth_gain: 0.0, ..FITTED },
            Part::Weight => &Constants { weighs: false, ..FITTED },
            Part::Squares => &Constants { squares: false, ..FITTED },
            Part::Long => &Constants { long: f64::INFINITY, long_for_few_hops: f64::INFINITY, ..FITTED },
            Part::LongFewHops => &Constants { long_for_few_hops: FITTED.long, ..FITTED },
            Part::Room => &Constants { loss_leaves: 1.0, ..FITTED },
            Part::WindowFit => &Constants { fits_window: false, ..FITTED },
            Part::MostIsAll => &Constants { most_is_all: false, ..FITTED },
            Part::HopChange => &Constants { hears_change: false, ..FITTED },
            Part::Reuse => &Constants { reuse_hops: f64::INFINITY, part_served: 1.0, ..FITTED },
        }
    }
}
