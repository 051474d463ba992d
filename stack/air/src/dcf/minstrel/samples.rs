//! The rates that are tried in addition to rates in use.

use super::{Minstrel, ONE, RateFacts, SAMPLES, SampleKind};

impl Minstrel {
    /// Chooses the rates that are tried until the next update.
    pub(super) fn refill(&mut self) {
        let usual = |index: usize| self.candidates[index].usual_ns;
        let used = [self.best[0], self.best[1], self.sure].map(usual);
        let (fast, slow) = (used.into_iter().min().unwrap_or(0), used.into_iter().max().unwrap_or(0));
        let top = usual(self.best[0]);
        for kind in [SampleKind::Step, SampleKind::Jump, SampleKind::Slow] {
            let mut rates = std::mem::take(&mut self.samples[kind as usize].rates);
            rates.retain(|index| match kind {
                SampleKind::Step | SampleKind::Jump => usual(*index) < fast,
                SampleKind::Slow => (fast + 1..slow).contains(&usual(*index)),
            });
            self.samples[kind as usize].rates = rates;
        }
        while self.samples[SampleKind::Step as usize].rates.len() < SAMPLES
            && let Some(index) = self.next_step(top)
        {
            self.samples[SampleKind::Step as usize].rates.push(index);
        }
        while self.samples[SampleKind::Jump as usize].rates.len() < SAMPLES
            && let Some(index) = self.next_jump(fast, slow)
        {
            self.samples[SampleKind::Jump as usize].rates.push(index);
        }
    }

    /// The slowest rate of a group that is faster than the best one; groups have turns.
    fn next_step(&mut self, top: u64) -> Option<usize> {
        for _ in 0..self.groups {
            let samples = &mut self.samples[SampleKind::Step as usize];
            samples.group = (samples.group + 1) % self.groups;
            let group = samples.group;
            let faster = self.of_group(group).find(|index| self.candidates[*index].usual_ns < top);
            if let Some(index) = faster.filter(|index| !self.waits(SampleKind::Step, *index)) {
                return Some(index);
            }
        }
        None
    }

    fn waits(&self, kind: SampleKind, index: usize) -> bool {
        self.samples[kind as usize].rates.contains(&index)
    }

    /// A random rate that is faster than all in use. A rate between the two is put among the slow ones.
    fn next_jump(&mut self, fast: u64, slow: u64) -> Option<usize> {
        for _ in 0..self.groups {
            let has_room = self.samples[SampleKind::Slow as usize].rates.len() < SAMPLES;
            let below = if has_room { slow } else { fast };
            let samples = &mut self.samples[SampleKind::Jump as usize];
            samples.group = (samples.group + 1) % self.groups;
            let group = samples.group;
            let Some(index) = self.next_of_order(group, below) else { continue };
            let RateFacts { usual_ns, share, .. } = self.candidates[index];
            if usual_ns < fast {
                if !self.waits(SampleKind::Jump, index) {
                    return Some(index);
                }
            } else if has_room
                && usual_ns > fast
                && share <= ONE * 95 / 100
                && !self.waits(SampleKind::Slow, index)
            {
                self.samples[SampleKind::Slow as usize].rates.push(index);
            }
        }
        None
    }

    /// The next rate in the group's random order whose usual packet takes less than this.
    fn next_of_order(&mut self, group: usize, below: u64) -> Option<usize> {
        let all: Vec<usize> = self.of_group(group).collect();
        for _ in 0..2 * all.len() {
            if self.orders[group].is_empty() {
                self.orders[group].clone_from(&all);
                for last in (1..all.len()).rev() {
                    let other = self.stream.below(u32::try_from(last + 1).unwrap_or(1));
                    self.orders[group].swap(last, other as usize);
                }
            }
            let index = self.orders[group].pop()?;
            if self.candidates[index].usual_ns < below {
                return Some(index);
            }
        }
        None
    }
}
