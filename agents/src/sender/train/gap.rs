//! The gap between segments, steered by the outcome of each train.

use std::time::Duration;

use super::constants::{
    ALONE, FIRST_SEGMENTS, FLOWING_QUEUE, FLOWING_STEP, GAIN, HANDSHAKES, HELD, LEAST_QUEUE, LONG,
    MOST_QUEUE, MOST_STEP, MUCH_QUICKER, Part, QUEUE_FACTOR, QUICKER, SHARE, SHORT_HOPS, STEP, TOO_SHORT,
    TRAINS,
};
use super::pause::Pausing;
use crate::truncate;

/// No gap is shorter: a driver's clock is no finer.
const LEAST_S: f64 = 0.00005;
const MOST_S: f64 = 2.0;
/// A path without delay would lead to a division by zero.
const LEAST_BASE_S: f64 = 1e-6;

/// The outcome of a train.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrainOutcome {
    /// The round trip of its last segment; `None` if it shows nothing of the path.
    pub(super) rtt_s: Option<f64>,
    pub(super) segments: f64,
    pub(super) lost: bool,
}

/// The way in which trains follow each other. `docs/train.md` has a table of what leads from one to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Regime {
    /// A train, its ACK, the next train.
    Waiting,
    /// The next train follows at once; the one after it waits.
    Flowing,
    /// Trains follow until the path is full, as it is longer than radios make it.
    Filling,
    /// A share of the queue is in flight, since other flows fill it.
    Sharing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GapPhase {
    /// No round trip is known.
    Unknown,
    /// Each train is quicker than the one before.
    Start,
    Steady,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    without: Part,
    phase: GapPhase,
    /// The gap; zero while no round trip is known.
    pub(super) seconds: f64,
    /// The least round trip of all trains.
    pub(super) base_s: f64,
    smoothed_s: f64,
    is_guessed: bool,
    crowd: Option<CrowdShare>,
    hops: Option<u8>,
    /// The least round trip of all segments and handshakes.
    least_s: Option<f64>,
    pausing: Pausing,
    /// The last gap with pauses, if there are none now, or without.
    others_s: Option<f64>,
    /// Segments that may queue on a long path without pauses.
    room: f64,
    /// The round trip of the train before.
    last_s: Option<f64>,
    /// The share of calm trains among the trains that waited.
    calm: f64,
}

impl Gap {
    pub(super) fn new(without: Part, competes: bool) -> Gap {
        Gap {
            without,
            phase: GapPhase::Unknown,
            seconds: 0.0,
            base_s: 0.0,
            smoothed_s: 0.0,
            is_guessed: false,
            crowd: competes.then(CrowdShare::default),
            hops: None,
            least_s: None,
            pausing: Pausing::On,
            others_s: None,
            room: FLOWING_QUEUE,
            last_s: None,
            calm: 1.0,
        }
    }

    /// Returns whether hardly any train finds the path as empty as it can be, however slow the trains are.
    pub(super) fn is_noisy(&self) -> bool {
        self.calm < 0.5 || self.without == Part::Noise
    }

    /// Returns whether the path is longer than radios alone make it.
    pub(super) fn is_long(&self) -> bool {
        // The beginning tries gaps that no radio serves.
        let is_known = self.phase == GapPhase::Steady && self.has_few_hops();
        let hops = if is_known { SHORT_HOPS } else { SHORT_HOPS + 1 };
        self.ratio() > LONG * f64::from(hops) && self.without != Part::Long
    }

    /// Returns whether the path is so short that a pause costs a lone flow more than it brings.
    pub(super) fn is_short(&self) -> bool {
        self.has_few_hops() && !self.is_long()
    }

    fn has_few_hops(&self) -> bool {
        self.hops.is_some_and(|hops| hops <= SHORT_HOPS)
    }

    /// Returns whether no other flow sends: the gap is what the empty path takes. Beside other flows it is longer.
    pub(super) fn is_alone(&self) -> bool {
        self.ratio() > ALONE
    }

    /// Segments that the empty path holds.
    fn ratio(&self) -> f64 {
        self.base_s / self.seconds.max(LEAST_S)
    }

    /// Segments that keep a long path full.
    pub(super) fn holds(&self) -> u32 {
        truncate::to_u32(HELD * self.ratio())
    }

    /// Begins or ends pauses. The gap differs with and without pauses, except on a long path, where the narrowest part
    /// sets it.
    pub(super) fn turn(&mut self, pausing: Pausing) {
        if self.pausing != pausing {
            let is_long = self.is_long();
            self.pausing = pausing;
            if is_long || self.without == Part::TwoGaps {
                return;
            }
            let seconds = self.others_s.replace(self.seconds).unwrap_or(self.seconds);
            self.seconds = seconds;
        }
    }

    /// Begins with a guess, before the round trip of any segment is known.
    pub(super) fn begin(&mut self, seconds: f64) {
        self.seconds = seconds.clamp(LEAST_S, MOST_S);
        self.is_guessed = true;
    }

    pub(super) fn is_starting(&self) -> bool {
        self.phase != GapPhase::Steady
    }

    /// Segments to keep in flight while other flows fill the queue, whatever the gap.
    pub(super) fn share(&self) -> Option<f64> {
        self.crowd.and_then(|crowd| crowd.share)
    }

    /// Takes what the connection knows of the path.
    pub(super) fn hear_path(&mut self, hops: Option<u8>, least: Option<Duration>) {
        self.hops = hops.or(self.hops);
        self.least_s = least.map(|least| least.as_secs_f64());
    }

    pub(super) fn competes(&self) -> bool {
        self.crowd.is_some()
    }

    pub(super) fn on_train(&mut self, train: &TrainOutcome) {
        if let Some(rtt_s) = train.rtt_s {
            let is_first = self.phase == GapPhase::Unknown;
            self.base_s = if is_first { rtt_s } else { self.base_s.min(rtt_s) }.max(LEAST_BASE_S);
            self.smoothed_s = if is_first {
                rtt_s
            } else {
                self.smoothed_s + (rtt_s - self.smoothed_s) / f64::from(TRAINS)
            };
        }
        // The flow's own least round trip may include a queue of other flows, or its own.
        if let Some(least_s) = self.least_s.filter(|_| self.without != Part::HandshakeBase) {
            self.base_s = self.base_s.min(HANDSHAKES * least_s).max(LEAST_BASE_S);
        }
        self.hear_noise(train);
        match (self.phase, train.rtt_s) {
            (GapPhase::Unknown, None) => return,
            (GapPhase::Unknown, Some(rtt_s)) => {
                self.seconds = if self.is_guessed { self.seconds.min(rtt_s) * QUICKER } else { rtt_s };
                self.phase = GapPhase::Start;
            }
            (GapPhase::Start, _) => self.start(train),
            (GapPhase::Steady, _) => self.steer(train),
        }
        self.last_s = train.rtt_s;
        self.look_at_others(train);
        self.seconds = self.seconds.clamp(LEAST_S, MOST_S);
    }

    fn look_at_others(&mut self, train: &TrainOutcome) {
        let (Some(rtt_s), GapPhase::Steady, Some(crowd)) = (train.rtt_s, self.phase, &mut self.crowd) else {
            return;
        };
        // A segment comes out of the path each time the air of its first hops is free again.
        let part = self.hops.map_or(0.5, |hops| f64::from(SHORT_HOPS + 1) / f64::from(hops.max(1))).min(1.0);
        let trains = if self.pausing == Pausing::On { 1.0 } else { 2.0 };
        let own = (rtt_s / self.seconds).min(trains * train.segments);
        crowd.take((rtt_s - self.base_s) / (part * self.base_s).max(LEAST_BASE_S), own);
        if let Some(share) = crowd.share {
            self.seconds = self.smoothed_s / share;
        }
    }

    fn hear_noise(&mut self, train: &TrainOutcome) {
        if let (Some(rtt_s), GapPhase::Steady, Pausing::On) = (train.rtt_s, self.phase, self.pausing) {
            let is_calm = !train.lost && rtt_s - self.base_s < LEAST_QUEUE * self.seconds;
            self.calm += (f64::from(u8::from(is_calm)) - self.calm) / f64::from(TRAINS);
        }
    }

    fn start(&mut self, train: &TrainOutcome) {
        let queued_s = train.rtt_s.map_or(0.0, |rtt_s| rtt_s - self.base_s);
        let part = self.part(train);
        if !train.lost && queued_s <= f64::from(FIRST_SEGMENTS) * self.seconds && self.seconds > LEAST_S {
            if train.rtt_s.is_some() {
                let quicker = if self.is_long() { MUCH_QUICKER } else { QUICKER };
                self.seconds *= 1.0 - part * (1.0 - quicker);
            }
            return;
        }
        self.phase = GapPhase::Steady;
        self.seconds += part * queued_s / train.segments;
    }

    pub(super) fn regime(&self) -> Regime {
        match self.pausing {
            _ if self.share().is_some() => Regime::Sharing,
            Pausing::On => Regime::Waiting,
            Pausing::Off if self.is_long() => Regime::Filling,
            Pausing::Off => Regime::Flowing,
        }
    }

    /// Segments that may queue at the end of a train with a pause behind it: more where no cliff is near.
    fn may_queue(&self, segments: f64) -> f64 {
        let ratio = if self.without == Part::QueueByGap { 0.0 } else { QUEUE_FACTOR / self.ratio() };
        let of_train = if self.without == Part::TooShort { 0.0 } else { TOO_SHORT * segments };
        (ratio * ratio).max(LEAST_QUEUE).max(of_train).min(MOST_QUEUE)
    }

    /// The part of what a round trip holds that this train is. On a long path further trains are under way with it, of
    /// this flow or of those in turn with it, and all of them together move the gap once in a round trip.
    fn part(&self, train: &TrainOutcome) -> f64 {
        if self.regime() != Regime::Filling || self.without == Part::Steadied {
            return 1.0;
        }
        let rtt_s = train.rtt_s.unwrap_or(self.smoothed_s);
        (train.segments * self.seconds / rtt_s.max(LEAST_S)).min(1.0)
    }

    fn make_room(&mut self, train: &TrainOutcome) {
        if train.lost {
            let queued = train.rtt_s.map_or(self.room, |rtt_s| (rtt_s - self.base_s) / self.seconds);
            self.room = self.room.min(queued).max(1.0);
        } else {
            self.room = (self.room + FLOWING_STEP).min(FLOWING_QUEUE);
        }
    }

    /// All flows of a path see one queue, and the gap decides how much of it they accept. All their gaps become equal.
    fn steer(&mut self, train: &TrainOutcome) {
        let (gap_s, regime) = (self.seconds, self.regime());
        let (may_queue, most_down) = match regime {
            Regime::Sharing => return,
            Regime::Waiting => {
                let queue = self.may_queue(train.segments);
                let more = if self.without == Part::DownByQueue { LEAST_QUEUE } else { queue };
                (queue, STEP * (1.5 + more))
            }
            Regime::Flowing => (FLOWING_QUEUE, FLOWING_STEP),
            Regime::Filling => {
                self.make_room(train);
                (self.room, FLOWING_STEP)
            }
        };
        let mut change = train.rtt_s.map_or(0.0, |rtt_s| {
            let error_s = GAIN * (rtt_s - self.base_s - may_queue * gap_s);
            let error_s = if regime == Regime::Filling && self.without != Part::Steadied {
                self.steadied(error_s, rtt_s, train)
            } else {
                error_s
            };
            error_s / train.segments
        });
        if train.lost {
            // A loss at a short round trip came from the air, not from a queue. Without a round trip nothing is known.
            change = if change > 0.0 { change + 3.0 * STEP * gap_s } else { 0.0 };
        }
        self.seconds += change.clamp(-most_down * gap_s, MOST_STEP * gap_s);
    }

    /// On a long path the queue answers only when other trains are under way. Its error counts by the square of the
    /// part of them that this train is, and its growth since the train before counts too. The gap would swing else.
    fn steadied(&self, error_s: f64, rtt_s: f64, train: &TrainOutcome) -> f64 {
        let part = self.part(train);
        part * (part * error_s + rtt_s - self.last_s.unwrap_or(rtt_s))
    }
}

/// The share is no more than the longest train, and never nothing.
const MOST_SHARE: f64 = 64.0;

/// The share of the queue that a flow takes while other flows fill every queue.
///
/// Flows of the own kind let only a few segments queue, however many flows there are. A queue far beyond that belongs
/// to other flows, and its path is never empty. Waiting for an empty path would cost the flow its share and win
/// nothing. While the crowd lasts, the flow keeps in flight a part of what the crowd has queued. This is less than
/// theirs, so it ends with them: several flows that take such shares lower them with each train.
#[derive(Clone, Copy, Debug, Default)]
struct CrowdShare {
    /// Segments that other flows have in the queue.
    others: f64,
    /// Trains in a row that contradict the current state.
    contrary: u32,
    /// Segments to keep in flight while other flows fill the queue.
    share: Option<f64>,
}

impl CrowdShare {
    /// A train found `queued` segments in the queue, of which `own` could be its own.
    fn take(&mut self, queued: f64, own: f64) {
        let others = (queued - self.share.unwrap_or(own)).max(0.0);
        self.others += (others - self.others) / f64::from(TRAINS);
        let is_contrary = match self.share {
            None => others > FLOWING_QUEUE,
            Some(_) => others < 0.5 * FLOWING_QUEUE,
        };
        self.contrary = if is_contrary { self.contrary + 1 } else { 0 };
        if self.contrary == TRAINS {
            self.contrary = 0;
            if self.share.take().is_some() {
                return;
            }
            self.others = others;
        } else if self.share.is_none() {
            return;
        }
        self.share = Some((SHARE * self.others).clamp(1.0, MOST_SHARE));
    }
}

#[cfg(test)]
mod tests;
