//! The gap between segments, steered by the outcome of each train.

use std::time::Duration;

use super::constants::Constants;
use super::crowd::Crowd;
use super::pause::Mode;

/// No gap is shorter: a driver's clock is no finer.
const LEAST_S: f64 = 0.00005;
const MOST_S: f64 = 2.0;
/// A path without delay would lead to a division by zero.
const LEAST_BASE_S: f64 = 1e-6;
/// Without pauses ACKs meet data, and round trips show less of the queue. More of it is therefore accepted.
const FLOWING_QUEUE: f64 = 24.0;
const LEAST_ROOM: f64 = 2.0;
/// On a path of this many hops every station hears every other.
const SHORT_HOPS: u8 = 3;

/// The outcome of a train.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// The round trip of its last segment; `None` if it shows nothing of the path.
    pub(super) rtt_s: Option<f64>,
    pub(super) segments: f64,
    pub(super) lost: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No round trip is known.
    Unknown,
    /// Each train is quicker than the one before.
    Start,
    Steady,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    set: &'static Constants,
    phase: Phase,
    seconds: f64,
    /// The least round trip of all trains.
    base_s: f64,
    smoothed_s: f64,
    is_guessed: bool,
    crowd: Option<Crowd>,
    hops: Option<u8>,
    /// The least round trip of all segments and handshakes.
    least_s: Option<f64>,
    mode: Mode,
    /// The last gap of the other mode.
    others_s: Option<f64>,
    /// Segments that may queue on a long path without pauses.
    room: f64,
    /// The round trip of the train before.
    last_s: Option<f64>,
    /// The share of calm trains among those that waited.
    calm: f64,
}

impl Gap {
    pub(super) fn new(set: &'static Constants, competes: bool) -> Gap {
        Gap {
            set,
            phase: Phase::Unknown,
            seconds: 0.0,
            base_s: 0.0,
            smoothed_s: 0.0,
            is_guessed: false,
            crowd: competes.then(Crowd::default),
            hops: None,
            least_s: None,
            mode: Mode::Waiting,
            others_s: None,
            room: FLOWING_QUEUE,
            last_s: None,
            calm: 1.0,
        }
    }

    /// Returns whether hardly any train finds the path as empty as it can be, however slow the trains are.
    pub(super) fn is_noisy(&self) -> bool {
        self.calm < 0.5 || !self.set.hears_noise
    }

    /// Returns whether the path is longer than radios alone make it.
    pub(super) fn is_long(&self) -> bool {
        let is_known = self.phase == Phase::Steady && self.has_few_hops();
        self.ratio() > if is_known { self.set.long_for_few_hops } else { self.set.long }
    }

    fn has_few_hops(&self) -> bool {
        self.hops.is_some_and(|hops| hops <= SHORT_HOPS)
    }

    /// Returns whether the path is so short that a pause costs a lone flow more than it brings.
    pub(super) fn is_short(&self) -> bool {
        self.has_few_hops() && !self.is_long()
    }

    /// Returns whether no other flow sends: the gap is what the empty path takes. Beside other flows it is longer.
    pub(super) fn is_alone(&self) -> bool {
        self.ratio() > if self.mode == Mode::Waiting { self.set.alone } else { self.set.not_alone }
    }

    /// Segments that the empty path holds.
    pub(super) fn ratio(&self) -> f64 {
        self.base_s / self.seconds.max(LEAST_S)
    }

    /// Segments that may queue on a long path without pauses.
    pub(super) fn room(&self) -> f64 {
        self.room
    }

    /// Switches the mode. Each mode has its own gap, except on a long path, where the narrowest part sets the gap.
    pub(super) fn turn(&mut self, mode: Mode) {
        if self.mode != mode {
            let is_long = self.is_long();
            self.mode = mode;
            if is_long || !self.set.has_two_gaps {
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

    /// The gap; zero while no round trip is known.
    pub(super) fn seconds(&self) -> f64 {
        self.seconds
    }

    pub(super) fn base_s(&self) -> f64 {
        self.base_s
    }

    pub(super) fn is_starting(&self) -> bool {
        self.phase != Phase::Steady
    }

    /// Segments to keep in flight beside flows that fill the queue, whatever the gap.
    pub(super) fn share(&self) -> Option<f64> {
        self.crowd.and_then(|crowd| crowd.share())
    }

    /// Takes what the connection knows of the path.
    pub(super) fn hear_path(&mut self, hops: Option<u8>, least: Option<Duration>) {
        self.hops = hops.or(self.hops);
        self.least_s = least.map(|least| least.as_secs_f64());
    }

    pub(super) fn competes(&self) -> bool {
        self.crowd.is_some()
    }

    /// Another number of hops means another path. The gap holds until that path is measured. Routing reports the old
    /// number again whenever another flow connects to the peer.
    pub(super) fn hear_change(&mut self, hops: Option<u8>) -> bool {
        let is_another = self.set.hears_change && hops.is_some() && self.hops.is_some() && hops != self.hops;
        if is_another {
            *self = Gap { seconds: self.seconds, hops, ..Gap::new(self.set, self.competes()) };
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
        // The flow's own least round trip may include a queue of others, or its own.
        if let Some(least_s) = self.least_s {
            self.base_s = self.base_s.min(self.set.handshakes * least_s).max(LEAST_BASE_S);
        }
        self.hear_noise(train);
        match (self.phase, train.rtt_s) {
            (Phase::Unknown, None) => return,
            (Phase::Unknown, Some(rtt_s)) => {
                self.seconds =
                    if self.is_guessed { self.seconds.min(rtt_s) * self.set.quicker } else { rtt_s };
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
        let part = self
            .hops
            .map_or(self.set.part_served, |hops| (self.set.reuse_hops / f64::from(hops.max(1))).min(1.0));
        let trains = if self.mode == Mode::Waiting { 1.0 } else { 2.0 };
        let own = (rtt_s / self.seconds).min(trains * train.segments);
        crowd.take((rtt_s - self.base_s) / (part * self.base_s).max(LEAST_BASE_S), own);
        if let Some(share) = crowd.share() {
            self.seconds = self.smoothed_s / share;
        }
    }

    fn hear_noise(&mut self, train: &Outcome) {
        if let (Some(rtt_s), Phase::Steady, Mode::Waiting) = (train.rtt_s, self.phase, self.mode) {
            let is_calm = !train.lost && rtt_s - self.base_s < self.set.calm * self.seconds;
            self.calm += (f64::from(u8::from(is_calm)) - self.calm) / 16.0;
        }
    }

    /// The weight of a train. A train that ends before its round trip is over shows only part of its effect.
    fn weight(&self, train: &Outcome) -> f64 {
        let rtt_s = train.rtt_s.unwrap_or(self.smoothed_s).max(LEAST_S);
        match self.mode {
            _ if !self.set.weighs => 1.0,
            Mode::Waiting => 1.0,
            Mode::Flowing => (train.segments * self.seconds / rtt_s).min(1.0),
        }
    }

    /// Without pauses each train stands behind the one before. The growth of the queue between them shows how much too
    /// quick they were.
    fn growth_s(&self, rtt_s: f64) -> f64 {
        match (self.mode, self.last_s) {
            (Mode::Flowing, Some(last_s)) => self.set.growth_gain * (rtt_s - last_s),
            _ => 0.0,
        }
    }

    fn start(&mut self, train: &Outcome) {
        let queued_s = train.rtt_s.map_or(0.0, |rtt_s| rtt_s - self.base_s);
        let weight = self.weight(train);
        if !train.lost && queued_s <= self.set.full_segments * self.seconds && self.seconds > LEAST_S {
            if train.rtt_s.is_some() {
                let quicker = if self.is_long() { self.set.much_quicker } else { self.set.quicker };
                self.seconds *= 1.0 - weight * (1.0 - quicker);
            }
            return;
        }
        self.phase = Phase::Steady;
        self.seconds += weight * queued_s / train.segments;
        if train.lost {
            self.seconds *= self.set.loss_slows;
        }
    }

    fn make_room(&mut self, train: &Outcome, weight: f64) {
        if train.lost {
            let queued = train.rtt_s.map_or(self.room, |rtt_s| (rtt_s - self.base_s) / self.seconds);
            self.room = (self.set.loss_leaves * self.room.min(queued)).max(LEAST_ROOM);
        } else {
            self.room = (self.room + self.set.room_grows * weight).min(FLOWING_QUEUE);
        }
    }

    /// All flows of a path see the same queue, and the gap decides how much of it they accept. They all come to the
    /// same gap.
    fn steer(&mut self, train: &Outcome) {
        let gap_s = self.seconds;
        let weight = self.weight(train);
        if self.mode == Mode::Flowing && self.is_long() {
            self.make_room(train, weight);
        }
        let ratio = self.set.queue_factor * gap_s / self.base_s;
        let (may_queue, most_down) = match self.mode {
            Mode::Waiting => {
                let least = self.set.least_queue.max(self.set.too_short * train.segments);
                let queue = (if self.set.queue_by_gap { ratio * ratio } else { 0.0 })
                    .max(least)
                    .min(self.set.most_queue);
                (queue, self.set.most_down + self.set.down_by_queue * (queue - self.set.least_queue))
            }
            Mode::Flowing if self.is_short() && self.set.has_short_queue => {
                (self.set.short_queue, self.set.flowing_down)
            }
            Mode::Flowing if self.is_long() => (self.room, self.set.flowing_down),
            Mode::Flowing => (FLOWING_QUEUE, self.set.flowing_down),
        };
        // The queue answers after a round trip. If every train until then made good as much, the gap would swing.
        let (of_queue, of_growth) =
            if self.is_long() && self.set.squares { (weight * weight, weight) } else { (weight, 1.0) };
        let mut change = train.rtt_s.map_or(0.0, |rtt_s| {
            let off_s = self.set.gain * of_queue * (rtt_s - self.base_s - may_queue * gap_s);
            (off_s + of_growth * self.growth_s(rtt_s)) / train.segments
        });
        if train.lost {
            // A loss beside a short round trip came from the air, not from a queue. Without a round trip nothing is
            // known.
            change = if change > 0.0 { change + self.set.loss_adds * gap_s } else { 0.0 };
        }
        self.seconds += change.clamp(-most_down * weight * gap_s, self.set.most_up * gap_s);
    }
}

#[cfg(test)]
mod tests;
