//! Minstrel-HT, the rate control of Linux's mac80211: the rates that carry most by what came through lately, a chain of
//! them for the tries of a frame, and now and then a try of a rate that is not in use.
//!
//! Every 50 ms each rate's share of packets that came through is averaged, and the rates are put in order by the
//! throughput that follows. A frame goes at the best rate first, then at the second best, then at the one that most
//! surely comes through. The latter two are announced by an RTS. Every 20 ms the first try of a frame goes at another
//! rate: mostly at a faster one, at times at one between those in use.
//!
//! The numbers are mac80211's. Its stations share a table of random orders; here each has orders of its own. A try of
//! another rate carries a whole aggregate, as with drivers that leave aggregation to the device.

mod samples;

use super::mpdu::longest_ampdu;
use super::rates::RateChoice;
use crate::phy::{BitForm, Phy, Rate};
use crate::random::NumberStream;

/// A probability of 1.
const ONE: i64 = 1 << 12;
/// The rates that are kept in order of their throughput.
const BEST: usize = 4;
/// The rates of a kind that wait to be tried.
const SAMPLES: usize = 5;
const UPDATE_NS: u64 = 50_000_000;
const SAMPLE_NS: u64 = 20_000_000;
/// The time in which all tries at a rate should fit.
const SEGMENT_NS: u64 = 6_000_000;
const MOST_TRIES: u8 = 7;
/// The length of the packet by which rates are compared.
const USUAL: u32 = 1_200;
/// The coefficients of the average: a low-pass filter of second order with a period of 16, in parts of 4,096.
const OLD: i64 = 0x1499;
const OLDER: i64 = -0x92e;
const NEW: i64 = ONE - OLD - OLDER;

/// The kinds of rates that are tried in addition to rates in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SampleKind {
    /// The next faster one.
    Step,
    /// Any faster one.
    Jump,
    /// One between those in use.
    Slow,
}

/// The order in which kinds are tried.
const ORDER: [SampleKind; 6] = [
    SampleKind::Step,
    SampleKind::Jump,
    SampleKind::Step,
    SampleKind::Jump,
    SampleKind::Step,
    SampleKind::Slow,
];

/// The facts about a rate.
#[derive(Clone, Debug)]
struct RateFacts {
    rate: Rate,
    group: usize,
    /// The time of a usual packet without its preamble.
    usual_ns: u64,
    /// The bytes of the longest aggregate.
    longest: u32,
    /// The average share that came through, and the one before.
    share: i64,
    share_before: i64,
    /// The packets since the last update, and how many of them came through.
    sent: u32,
    came: u32,
    was_sent: bool,
}

/// The rates that wait to be tried.
#[derive(Clone, Debug, Default)]
struct SampleQueue {
    rates: Vec<usize>,
    group: usize,
}

/// A part of a chain.
#[derive(Clone, Copy, Debug, Default)]
struct ChainPart {
    candidate: usize,
    tries: u8,
    is_announced: bool,
}

/// The rate control of one receiver's frames.
#[derive(Clone, Debug)]
pub(super) struct Minstrel {
    pub(super) to: u32,
    candidates: Vec<RateFacts>,
    groups: usize,
    /// The candidates by their throughput, of all and of each group.
    best: [usize; BEST],
    best_of: Vec<[usize; BEST]>,
    /// The one that most surely comes through.
    sure: usize,
    chain: [ChainPart; 3],
    /// The candidate that the frame at hand tries first.
    probe: Option<usize>,
    /// A frame has been sent since it was chosen.
    is_probed: bool,
    samples: [SampleQueue; 3],
    /// The rest of each group's random order.
    orders: Vec<Vec<usize>>,
    step: usize,
    sample_at: u64,
    update_at: u64,
    /// The average length of aggregates, and the frames and packets since the last update.
    length: i64,
    frames: u32,
    packets: u32,
    /// The time of a frame without its packets: preamble, SIFS, the answer.
    overhead_ns: u64,
    rts_ns: u64,
    stream: NumberStream,
}

/// Moves the average on by a new value.
fn filter(share: &mut i64, before: &mut i64, new: i64) {
    let new = new.max(1);
    if *share == 0 {
        (*share, *before) = (new, new);
        return;
    }
    let next = (NEW * new + OLD * *share + OLDER * *before) >> 12;
    (*share, *before) = (next.clamp(1, ONE), *share);
}

/// The time of a usual packet without its preamble. Symbols of 802.11ac hold so much of it that Linux takes the part of
/// a packet among sixteen.
fn usual_ns(phy: &Phy, rate: Rate) -> u64 {
    let packets = if let BitForm::Vht(_) = rate.form { 16 } else { 1 };
    (phy.airtime_ns(packets * USUAL, rate) - phy.airtime_ns(0, rate)) / u64::from(packets)
}

impl Minstrel {
    pub(super) fn new(to: u32, phy: &Phy, now: u64, stream: NumberStream) -> Minstrel {
        let mut candidates = Vec::new();
        let groups = phy.rate_groups();
        for (group, rates) in groups.iter().enumerate() {
            candidates.extend(rates.iter().map(|rate| RateFacts {
                rate: *rate,
                group,
                usual_ns: usual_ns(phy, *rate),
                longest: longest_ampdu(phy, *rate),
                share: 0,
                share_before: 0,
                sent: 0,
                came: 0,
                was_sent: false,
            }));
        }
        let mut minstrel = Minstrel {
            to,
            candidates,
            groups: groups.len(),
            best: [0; BEST],
            best_of: vec![[0; BEST]; groups.len()],
            sure: 0,
            chain: [ChainPart::default(); 3],
            probe: None,
            is_probed: false,
            samples: Default::default(),
            orders: vec![Vec::new(); groups.len()],
            step: 0,
            sample_at: now,
            update_at: now + UPDATE_NS,
            length: ONE,
            frames: 0,
            packets: 0,
            overhead_ns: phy.airtime_ns(0, phy.data) + phy.sifs_ns + phy.ack_ns(),
            rts_ns: phy.rts_ns() + phy.cts_ns() + 2 * phy.sifs_ns,
            stream,
        };
        minstrel.update();
        minstrel
    }

    /// A new frame begins, maybe with a try of another rate.
    pub(super) fn begin(&mut self, now: u64) {
        if self.probe.is_some() && !self.is_probed {
            return;
        }
        (self.probe, self.is_probed) = (None, false);
        if now < self.sample_at {
            return;
        }
        self.sample_at = now + SAMPLE_NS;
        let kind = ORDER[self.step];
        self.step = (self.step + 1) % ORDER.len();
        let waiting = &mut self.samples[kind as usize].rates;
        if !waiting.is_empty() {
            self.probe = Some(waiting.remove(0));
        }
    }

    /// The rate after this number of frames without an answer; none at the end of the chain.
    pub(super) fn after(&self, unanswered: u8) -> Option<RateChoice> {
        let mut chain = self.chain;
        if let Some(candidate) = self.probe {
            chain[0] = ChainPart { candidate, tries: 1, is_announced: false };
        }
        let mut left = unanswered;
        for link in chain {
            if left < link.tries {
                let RateFacts { rate, longest, .. } = self.candidates[link.candidate];
                return Some(RateChoice { rate, is_protected: link.is_announced, longest });
            }
            left -= link.tries;
        }
        None
    }

    /// A frame at this rate was sent with `sent` packets, of which `came` came through.
    pub(super) fn learn(&mut self, now: u64, rate: Rate, (sent, came): (u32, u32)) {
        self.is_probed = true;
        self.frames += 1;
        self.packets += sent;
        if let Some(candidate) = self.candidates.iter_mut().find(|candidate| candidate.rate == rate) {
            candidate.sent += sent;
            candidate.came += came;
            candidate.was_sent = true;
        }
        let mut has_changed = false;
        for nth in 0..2 {
            let RateFacts { sent, came, group, .. } = self.candidates[self.best[nth]];
            if sent > 30 && came < sent / 4 {
                has_changed |= self.step_down(nth, group);
            }
        }
        if now >= self.update_at {
            self.update_at = now + UPDATE_NS;
            self.sample_at = now;
            self.update();
        } else if has_changed {
            self.set_chain();
        }
    }

    /// A rate in use fails suddenly: the rate of a group with no more streams takes its place.
    fn step_down(&mut self, nth: usize, group: usize) -> bool {
        let streams = |group: usize| {
            self.candidates.iter().find(|candidate| candidate.group == group).map(|c| c.rate.streams())
        };
        let Some(lower) = (0..group).rev().find(|lower| streams(*lower) <= streams(group)) else {
            return false;
        };
        self.best[nth] = self.best_of[lower][nth];
        true
    }

    fn packets_a_frame(&self) -> u64 {
        (u64::try_from(self.length).unwrap_or(0) >> 12).max(1)
    }

    /// The throughput of a rate, in packets a second, if this share comes through. More than 0.9 counts as 0.9, since
    /// collisions make shares go up and down.
    fn throughput(&self, index: usize) -> i64 {
        let RateFacts { share, usual_ns, .. } = self.candidates[index];
        if share < ONE / 10 {
            return 0;
        }
        let ns = self.overhead_ns / self.packets_a_frame() + usual_ns;
        share.min(ONE * 9 / 10) * 1_000_000_000 / i64::try_from(ns.max(1)).unwrap_or(i64::MAX) / ONE
    }

    /// Puts a rate in its place among the best: by throughput, then by its share.
    fn insert(&self, best: &mut [usize; BEST], index: usize) {
        let rank = |index: usize| (self.throughput(index), self.candidates[index].share);
        let worse = best.iter().rposition(|other| rank(index) <= rank(*other)).map_or(0, |last| last + 1);
        if worse < BEST {
            best[worse..].rotate_right(1);
            best[worse] = index;
        }
    }

    /// Averages what has come through, and puts the rates in order.
    fn update(&mut self) {
        if self.frames > 0 {
            let length = ONE * i64::from(self.packets) / i64::from(self.frames);
            self.length += (length - self.length) * 32 / 128;
            (self.frames, self.packets) = (0, 0);
        }
        let mut share_above = 0;
        for index in (0..self.candidates.len()).rev() {
            let next_group = self.candidates.get(index + 1).map(|next| next.group);
            let candidate = &mut self.candidates[index];
            if next_group != Some(candidate.group) {
                share_above = 0;
            }
            if candidate.sent > 0 {
                let share = ONE * i64::from(candidate.came) / i64::from(candidate.sent);
                filter(&mut candidate.share, &mut candidate.share_before, share);
                (candidate.sent, candidate.came) = (0, 0);
            }
            // A packet that comes through at a faster rate does so at a slower one.
            if candidate.was_sent {
                share_above = candidate.share.max(share_above);
            } else {
                candidate.share = candidate.share.max(share_above);
            }
        }
        self.choose();
        self.set_chain();
        self.refill();
    }

    fn first_of(&self, group: usize) -> usize {
        self.candidates.iter().position(|candidate| candidate.group == group).unwrap_or(0)
    }

    fn choose(&mut self) {
        let mut best = [0; BEST];
        for group in 0..self.groups {
            let mut best_of = [self.first_of(group); BEST];
            for index in self.of_group(group).rev().filter(|index| self.throughput(*index) > 0) {
                self.insert(&mut best, index);
                self.insert(&mut best_of, index);
            }
            self.best_of[group] = best_of;
        }
        self.best = best;
        let mut sure = 0;
        let mut sure_of: Vec<_> = (0..self.groups).map(|group| self.first_of(group)).collect();
        for index in 0..self.candidates.len() {
            let (this, top) = (&self.candidates[index], &self.candidates[best[0]]);
            if this.usual_ns < top.usual_ns && this.share < top.share {
                continue;
            }
            for place in [&mut sure, &mut sure_of[this.group]] {
                let is_better = if this.share > ONE * 3 / 4 {
                    self.throughput(index) > self.throughput(*place)
                } else {
                    this.share > self.candidates[*place].share
                };
                if is_better {
                    *place = index;
                }
            }
        }
        // Fewer streams are surer.
        let streams = |index: usize| self.candidates[index].rate.streams();
        let fewer = sure_of.into_iter().filter(|index| streams(*index) < streams(best[0]));
        let fewer =
            fewer.filter(|index| self.throughput(*index) > 0).max_by_key(|index| self.throughput(*index));
        self.sure = fewer.unwrap_or(sure);
    }

    fn of_group(&self, group: usize) -> impl DoubleEndedIterator<Item = usize> + use<> {
        let first = self.first_of(group);
        let count = self.candidates.iter().filter(|candidate| candidate.group == group).count();
        first..first + count
    }

    /// The tries at a rate: all that fit the segment with their backoffs, and at least two.
    fn tries(&self, index: usize, is_announced: bool) -> u8 {
        if self.candidates[index].share < ONE / 5 {
            return 2;
        }
        let backoff_ns = |cw: u64| 9_000 * cw / 2;
        let overhead_ns = self.overhead_ns + if is_announced { self.rts_ns } else { 0 };
        let frame_ns = overhead_ns + self.candidates[index].usual_ns * self.packets_a_frame();
        let (mut cw, mut total, mut tries) = (15, 0, 0);
        while tries < MOST_TRIES {
            total += backoff_ns(cw) + frame_ns;
            if tries >= 2 && total >= SEGMENT_NS {
                break;
            }
            tries += 1;
            cw = (2 * cw + 1).min(1_023);
        }
        tries
    }

    fn set_chain(&mut self) {
        let link = |candidate, is_announced| {
            let tries = self.tries(candidate, is_announced);
            ChainPart { candidate, tries, is_announced }
        };
        self.chain = [link(self.best[0], false), link(self.best[1], true), link(self.sure, true)];
    }
}

#[cfg(test)]
mod tests;
