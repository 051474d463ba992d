//! The gap between segments, steered by what each train came to.

use std::time::Duration;

use super::crowd::Crowd;
use super::pause::Way;

/// Nothing is sent faster: a driver's clock is no finer.
const LEAST_S: f64 = 0.00005;
const MOST_S: f64 = 2.0;
/// A path without delay would divide by nothing.
const LEAST_BASE_S: f64 = 1e-6;
/// At the beginning each train is faster than the one before by this, as long as nothing queues.
const QUICKER: f64 = 0.75;
/// On a path longer than radios make it.
const MUCH_QUICKER: f64 = 0.5;
/// So many segments may queue before the beginning is over.
const FULL_SEGMENTS: f64 = 4.4;
const LOSS_SLOWS: f64 = 1.1;
/// What queues at the end of a train may be (2.2 gap/base)² segments, within bounds.
const QUEUE_FACTOR: f64 = 2.2;
const LEAST_QUEUE: f64 = 0.5;
/// What queues is what the gap is too short, times the train's segments: so much too short it may always be. With less,
/// a long train of short gaps would take what its round trip varies for a queue.
const TOO_SHORT: f64 = 1.0 / 80.0;
const MOST_QUEUE: f64 = 6.0;
/// How much of the difference is made good at once.
const GAIN: f64 = 0.3;
const LOSS_ADDS: f64 = 0.03;
const MOST_DOWN: f64 = 0.02;
/// Faster by this for each segment that may queue: where many may, no cliff is near.
const DOWN_BY_QUEUE: f64 = 0.01;
const MOST_UP: f64 = 0.15;
/// Without pauses ACKs meet data, and round trips say less of the queue: more of it is let be.
const FLOWING_QUEUE: f64 = 24.0;
/// On a short path hardly any: others who wait must not be driven off.
const SHORT_QUEUE: f64 = 4.0;
const GROWTH_GAIN: f64 = 0.5;
const FLOWING_DOWN: f64 = 0.1;
/// Where a wire loses segments its queue is full: of what was queued then, so much may be queued from there on, a
/// little more with each train that loses none.
const LOSS_LEAVES: f64 = 0.7;
const ROOM_GROWS: f64 = 0.1;
const LEAST_ROOM: f64 = 2.0;
/// A path that holds more segments than this is longer than radios alone make it.
const LONG: f64 = 8.0;
/// So is one of a few hops that holds more than this, once its gap is no guess.
const LONG_FOR_FEW_HOPS: f64 = 5.0;
/// A train is calm when so many segments queue at its end, or fewer.
const CALM: f64 = 0.35;
/// From so many hops on the first ones are free again while the last ones are still in use.
const REUSE_HOPS: f64 = 4.0;
/// For a path of unknown length.
const PART_SERVED: f64 = 0.5;
/// A segment and its ACK take at most this much longer than a handshake, which is of small packets.
const HANDSHAKES: f64 = 2.5;
/// On a path of so many hops everybody hears everybody.
const SHORT_HOPS: u8 = 3;
/// Who finds a short path as empty as this is alone there.
const ALONE: f64 = 0.9;
const NOT_ALONE: f64 = 0.7;

/// What a train came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// Of its last segment, where nothing made it longer than the path.
    pub(super) rtt_s: Option<f64>,
    pub(super) segments: f64,
    pub(super) lost: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No round trip is known.
    Unknown,
    /// Each train is quicker than the last.
    Start,
    Steady,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    phase: Phase,
    seconds: f64,
    /// The least round trip of all.
    base_s: f64,
    smoothed_s: f64,
    is_guessed: bool,
    crowd: Option<Crowd>,
    hops: Option<u8>,
    /// The least round trip of anything, handshakes included.
    least_s: Option<f64>,
    way: Way,
    /// The gap of the other way, when it was last gone.
    others_s: Option<f64>,
    /// Segments that may queue on a long path without pauses.
    room: f64,
    /// The round trip of the train before.
    last_s: Option<f64>,
    /// The share of calm trains among those that waited.
    calm: f64,
}

impl Gap {
    pub(super) fn new(competes: bool) -> Gap {
        Gap {
            phase: Phase::Unknown,
            seconds: 0.0,
            base_s: 0.0,
            smoothed_s: 0.0,
            is_guessed: false,
            crowd: competes.then(Crowd::default),
            hops: None,
            least_s: None,
            way: Way::Waiting,
            others_s: None,
            room: FLOWING_QUEUE,
            last_s: None,
            calm: 1.0,
        }
    }

    /// Hardly a train finds the path as empty as it can be, however slow they are.
    pub(super) fn is_noisy(&self) -> bool {
        self.calm < 0.5
    }

    /// Longer than radios alone make a path.
    pub(super) fn is_long(&self) -> bool {
        let is_known = self.phase == Phase::Steady && self.has_few_hops();
        self.ratio() > if is_known { LONG_FOR_FEW_HOPS } else { LONG }
    }

    fn has_few_hops(&self) -> bool {
        self.hops.is_some_and(|hops| hops <= SHORT_HOPS)
    }

    /// Where a pause costs more than it brings, for whoever is alone.
    pub(super) fn is_short(&self) -> bool {
        self.has_few_hops() && !self.is_long()
    }

    /// Nobody else sends: the gap is what the empty path takes. It is more where others send, too.
    pub(super) fn is_alone(&self) -> bool {
        self.ratio() > if self.way == Way::Waiting { ALONE } else { NOT_ALONE }
    }

    /// Segments that the empty path holds.
    pub(super) fn ratio(&self) -> f64 {
        self.base_s / self.seconds.max(LEAST_S)
    }

    /// Segments that may queue on a long path without pauses.
    pub(super) fn room(&self) -> f64 {
        self.room
    }

    /// Each way has a gap of its own, but on a long path, where the gap is what its narrowest part takes.
    pub(super) fn turn(&mut self, way: Way) {
        if self.way != way {
            let is_long = self.is_long();
            self.way = way;
            if is_long {
                return;
            }
            let seconds = self.others_s.replace(self.seconds).unwrap_or(self.seconds);
            self.seconds = seconds;
        }
    }

    /// A guess, before anything is known of segments.
    pub(super) fn begin(&mut self, seconds: f64) {
        self.seconds = seconds.clamp(LEAST_S, MOST_S);
        self.is_guessed = true;
    }

    /// Nothing while no round trip is known.
    pub(super) fn seconds(&self) -> f64 {
        self.seconds
    }

    pub(super) fn base_s(&self) -> f64 {
        self.base_s
    }

    pub(super) fn is_starting(&self) -> bool {
        self.phase != Phase::Steady
    }

    /// Segments to keep in flight beside others that fill the queue, whatever the gap.
    pub(super) fn share(&self) -> Option<f64> {
        self.crowd.and_then(|crowd| crowd.share())
    }

    /// What the connection knows of the path.
    pub(super) fn hear_path(&mut self, hops: Option<u8>, least: Option<Duration>) {
        self.hops = hops.or(self.hops);
        self.least_s = least.map(|least| least.as_secs_f64());
    }

    pub(super) fn competes(&self) -> bool {
        self.crowd.is_some()
    }

    /// A path of another length is another path: the gap holds until something is known of it. Routing says the same
    /// once more whenever somebody connects to the same peer.
    pub(super) fn hear_change(&mut self, hops: Option<u8>) -> bool {
        let is_another = hops.is_some() && self.hops.is_some() && hops != self.hops;
        if is_another {
            *self = Gap { seconds: self.seconds, hops, ..Gap::new(self.competes()) };
        }
        is_another
    }

    pub(super) fn on_train(&mut self, train: &Outcome) {
        if let Some(rtt_s) = train.rtt_s {
            let is_first = self.phase == Phase::Unknown;
            self.base_s = if is_first { rtt_s } else { self.base_s.min(rtt_s) }.max(LEAST_BASE_S);
            self.smoothed_s =
                if is_first { rtt_s } else { self.smoothed_s + (rtt_s - self.smoothed_s) / 8.0 };
        }
        // The own least round trip may be one beside others, or behind a queue of the own.
        if let Some(least_s) = self.least_s {
            self.base_s = self.base_s.min(HANDSHAKES * least_s).max(LEAST_BASE_S);
        }
        self.hear_noise(train);
        match (self.phase, train.rtt_s) {
            (Phase::Unknown, None) => return,
            (Phase::Unknown, Some(rtt_s)) => {
                self.seconds = if self.is_guessed { self.seconds.min(rtt_s) * QUICKER } else { rtt_s };
                self.phase = Phase::Start;
            }
            (Phase::Start, _) => self.start(train),
            (Phase::Steady, _) if self.share().is_none() => self.steer(train),
            (Phase::Steady, _) => {}
        }
        self.last_s = train.rtt_s;
        self.look_at_others(train);
        self.seconds = self.seconds.clamp(LEAST_S, MOST_S);
    }

    fn look_at_others(&mut self, train: &Outcome) {
        let (Some(rtt_s), Phase::Steady, Some(crowd)) = (train.rtt_s, self.phase, &mut self.crowd) else {
            return;
        };
        let part = self.hops.map_or(PART_SERVED, |hops| (REUSE_HOPS / f64::from(hops.max(1))).min(1.0));
        let trains = if self.way == Way::Waiting { 1.0 } else { 2.0 };
        let own = (rtt_s / self.seconds).min(trains * train.segments);
        crowd.take((rtt_s - self.base_s) / (part * self.base_s).max(LEAST_BASE_S), own);
        if let Some(share) = crowd.share() {
            self.seconds = self.smoothed_s / share;
        }
    }

    fn hear_noise(&mut self, train: &Outcome) {
        if let (Some(rtt_s), Phase::Steady, Way::Waiting) = (train.rtt_s, self.phase, self.way) {
            let is_calm = !train.lost && rtt_s - self.base_s < CALM * self.seconds;
            self.calm += (f64::from(u8::from(is_calm)) - self.calm) / 16.0;
        }
    }

    /// A train that is over sooner than its round trip says only so much of what it did.
    fn weight(&self, train: &Outcome) -> f64 {
        let rtt_s = train.rtt_s.unwrap_or(self.smoothed_s).max(LEAST_S);
        match self.way {
            Way::Waiting => 1.0,
            Way::Flowing => (train.segments * self.seconds / rtt_s).min(1.0),
        }
    }

    /// Where trains flow, each stands behind the one before: by what the queue grew between them they were too quick.
    fn growth_s(&self, rtt_s: f64) -> f64 {
        match (self.way, self.last_s) {
            (Way::Flowing, Some(last_s)) => GROWTH_GAIN * (rtt_s - last_s),
            _ => 0.0,
        }
    }

    fn start(&mut self, train: &Outcome) {
        let queued_s = train.rtt_s.map_or(0.0, |rtt_s| rtt_s - self.base_s);
        let weight = self.weight(train);
        if !train.lost && queued_s <= FULL_SEGMENTS * self.seconds && self.seconds > LEAST_S {
            if train.rtt_s.is_some() {
                let quicker = if self.is_long() { MUCH_QUICKER } else { QUICKER };
                self.seconds *= 1.0 - weight * (1.0 - quicker);
            }
            return;
        }
        self.phase = Phase::Steady;
        self.seconds += weight * queued_s / train.segments;
        if train.lost {
            self.seconds *= LOSS_SLOWS;
        }
    }

    fn make_room(&mut self, train: &Outcome, weight: f64) {
        if train.lost {
            let queued = train.rtt_s.map_or(self.room, |rtt_s| (rtt_s - self.base_s) / self.seconds);
            self.room = (LOSS_LEAVES * self.room.min(queued)).max(LEAST_ROOM);
        } else {
            self.room = (self.room + ROOM_GROWS * weight).min(FLOWING_QUEUE);
        }
    }

    /// All flows of a path see the same queue, and a gap for which this much may queue: so all come to the same gap.
    fn steer(&mut self, train: &Outcome) {
        let gap_s = self.seconds;
        let weight = self.weight(train);
        if self.way == Way::Flowing && self.is_long() {
            self.make_room(train, weight);
        }
        let ratio = QUEUE_FACTOR * gap_s / self.base_s;
        let (may_queue, most_down) = match self.way {
            Way::Waiting => {
                let least = LEAST_QUEUE.max(TOO_SHORT * train.segments);
                let queue = (ratio * ratio).max(least).min(MOST_QUEUE);
                (queue, MOST_DOWN + DOWN_BY_QUEUE * (queue - LEAST_QUEUE))
            }
            Way::Flowing if self.is_short() => (SHORT_QUEUE, FLOWING_DOWN),
            Way::Flowing if self.is_long() => (self.room, FLOWING_DOWN),
            Way::Flowing => (FLOWING_QUEUE, FLOWING_DOWN),
        };
        // The queue answers after a round trip: who makes good as much with each train that fits into one swings.
        let (of_queue, of_growth) = if self.is_long() { (weight * weight, weight) } else { (weight, 1.0) };
        let mut change = train.rtt_s.map_or(0.0, |rtt_s| {
            let off_s = GAIN * of_queue * (rtt_s - self.base_s - may_queue * gap_s);
            (off_s + of_growth * self.growth_s(rtt_s)) / train.segments
        });
        if train.lost {
            // Beside a round trip that is short enough it was the air, not a queue; without one nothing is known.
            change = if change > 0.0 { change + LOSS_ADDS * gap_s } else { 0.0 };
        }
        self.seconds += change.clamp(-most_down * weight * gap_s, MOST_UP * gap_s);
    }
}

#[cfg(test)]
mod tests;
