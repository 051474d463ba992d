//! Decides whether the next train waits for the ACK of the one before it. Trials show what brings more.
//!
//! A lone flow on a clean path of radios gains by the pause, which keeps ACKs and data apart. The pause costs more than
//! it saves if frames are lost, if other stations send anyway, or if most of the path is a wire. From time to time a
//! block of trains goes the other way. A way that brought less is tried again after twice the time. If trains lose
//! segments without the pause, the pause stays: losses are a MAC's sign of overload.

use hopwise_core::Instant;

use super::constants::{BLOCK_TIME, INTERVAL, LOSSY, MOST_INTERVAL, Part, TRAINS};

/// A pause after each train, or none. [`Regime`](super::gap::Regime) follows from it and from the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pausing {
    /// The next train waits for the ACK.
    On,
    /// One train more may be under way.
    Off,
}

impl Pausing {
    fn other(self) -> Pausing {
        match self {
            Pausing::On => Pausing::Off,
            Pausing::Off => Pausing::On,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrialStage {
    Kept,
    Tried,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Pause {
    without: Part,
    pub(super) pausing: Pausing,
    stage: TrialStage,
    /// The goodput of the kept way, in bytes per second.
    rate: Option<f64>,
    blocks: u32,
    interval: u32,
    lossy_share: f64,
    block: TrialBlock,
}

#[derive(Clone, Copy, Debug, Default)]
struct TrialBlock {
    began: Option<Instant>,
    trains: u32,
    bytes: u64,
}

impl Pause {
    pub(super) fn new(without: Part) -> Pause {
        Pause {
            without,
            pausing: Pausing::On,
            stage: TrialStage::Kept,
            rate: None,
            blocks: 0,
            interval: INTERVAL,
            lossy_share: 0.0,
            block: TrialBlock::default(),
        }
    }

    /// Begins with or without pauses, as suits what is known of the path.
    pub(super) fn begin(&mut self, pausing: Pausing) {
        *self = Pause { pausing, ..Pause::new(self.without) };
    }

    /// A train had too little data: the block that holds it proves nothing.
    pub(super) fn on_break(&mut self) {
        self.block = TrialBlock::default();
    }

    /// A train has arrived. `worth` is the ratio of goodput that leaving the pause out must bring; `None` if the answer
    /// is known.
    pub(super) fn on_train(&mut self, now: Instant, bytes: u64, is_lossy: bool, worth: Option<f64>) {
        let Some(began) = self.block.began else {
            self.block.began = Some(now);
            return;
        };
        self.block.trains += 1;
        self.block.bytes += bytes;
        self.lossy_share += (f64::from(u8::from(is_lossy)) - self.lossy_share) / f64::from(TRAINS);
        if self.pausing == Pausing::Off && self.lossy_share > LOSSY && self.without != Part::Lossy {
            return self.turn_back();
        }
        if self.block.trains >= TRAINS && now.since(began) >= BLOCK_TIME {
            let rate = self.block.bytes as f64 / now.since(began).as_secs_f64();
            self.block = TrialBlock { began: Some(now), ..TrialBlock::default() };
            self.on_block(rate, worth);
        }
    }

    fn on_block(&mut self, rate: f64, worth: Option<f64>) {
        if self.stage == TrialStage::Kept {
            self.rate = Some(self.rate.map_or(rate, |before| before + (rate - before) / f64::from(TRAINS)));
            self.blocks += 1;
            if self.blocks >= self.interval && worth.is_some() {
                self.blocks = 0;
                self.turn(TrialStage::Tried);
            }
            return;
        }
        let kept = self.rate.unwrap_or(0.0);
        let worth = worth.unwrap_or(1.0);
        let is_better = match self.pausing {
            Pausing::Off => rate > worth * kept,
            Pausing::On => rate * worth > kept,
        };
        if is_better {
            (self.stage, self.rate, self.interval) = (TrialStage::Kept, Some(rate), INTERVAL);
        } else {
            self.turn_back();
        }
    }

    fn turn_back(&mut self) {
        if self.stage == TrialStage::Kept {
            self.rate = None;
        }
        self.interval =
            if self.without == Part::Interval { INTERVAL } else { (2 * self.interval).min(MOST_INTERVAL) };
        self.blocks = 0;
        self.turn(TrialStage::Kept);
    }

    fn turn(&mut self, stage: TrialStage) {
        (self.pausing, self.stage, self.lossy_share) = (self.pausing.other(), stage, 0.0);
        self.block = TrialBlock::default();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const OPEN: Option<f64> = Some(1.02);

    /// Trains of half a second, with 10 kB each if they wait and `flowing` bytes if they do not.
    struct Road {
        pause: Pause,
        now: Instant,
        flowing: u64,
    }

    impl Road {
        fn new(flowing: u64) -> Road {
            Road { pause: Pause::new(Part::Nothing), now: Instant::ZERO, flowing }
        }

        fn train(&mut self, is_lossy: bool, worth: Option<f64>) -> Pausing {
            self.now += Duration::from_millis(500);
            let bytes = if self.pause.pausing == Pausing::Off { self.flowing } else { 10_000 };
            self.pause.on_train(self.now, bytes, is_lossy, worth);
            self.pause.pausing
        }

        fn trains(&mut self, trains: u32) -> usize {
            (0..trains).filter(|_| self.train(false, OPEN) == Pausing::Off).count()
        }
    }

    #[test]
    fn a_way_that_brings_more_is_kept_and_one_that_brings_less_is_left() {
        assert!(Road::new(12_000).trains(400) > 300);
        let tried = Road::new(9_000).trains(400);
        assert!((20..80).contains(&tried), "{tried}");
    }

    /// The trials begin after six, twelve and twenty-four blocks.
    #[test]
    fn what_brought_less_is_tried_again_after_twice_as_long() {
        let mut road = Road::new(9_000);
        let mut began = Vec::new();
        let mut before = Pausing::On;
        for nth in 0..600 {
            let pausing = road.train(false, OPEN);
            if (before, pausing) == (Pausing::On, Pausing::Off) {
                began.push(nth / TRAINS);
            }
            before = pausing;
        }
        assert_eq!(began, [6, 19, 44]);
    }

    #[test]
    fn nothing_is_tried_where_the_answer_is_known() {
        let mut road = Road::new(99_000);
        assert!((0..400).all(|_| road.train(false, None) == Pausing::On));
    }

    #[test]
    fn two_lossy_trains_end_a_trial_and_one_in_six_what_it_began() {
        let mut road = Road::new(12_000);
        while road.train(false, OPEN) == Pausing::On {}
        // Time counts from the first train on.
        road.train(false, OPEN);
        road.train(true, OPEN);
        assert_eq!(road.pause.pausing, Pausing::Off);
        road.train(true, OPEN);
        assert_eq!(road.pause.pausing, Pausing::On);

        road.trains(200);
        assert_eq!(road.pause.pausing, Pausing::Off);
        let flowing = (0..100).filter(|nth| road.train(nth % 20 == 0, None) == Pausing::Off).count();
        assert_eq!(flowing, 100);
        assert!((0..40).any(|nth| road.train(nth % 4 == 0, None) == Pausing::On));
    }

    /// When other flows come or go, the other way may be better, so it is tried from time to time.
    #[test]
    fn what_is_kept_is_put_to_the_test_too() {
        let mut road = Road::new(12_000);
        road.trains(200);
        road.flowing = 8_000;
        road.trains(600);
        assert!(road.trains(200) < 100);
    }

    #[test]
    fn a_block_with_a_short_train_in_it_counts_for_nothing() {
        let mut road = Road::new(12_000);
        for _ in 0..100 {
            road.trains(5);
            road.pause.on_break();
        }
        assert_eq!(road.pause.pausing, Pausing::On);
    }
}
