//! The rate of a data frame: the profile's own, or the choice of a rate control, for each receiver by what came through
//! before.

use hopwise_core::narrow::{as_u8, as_u32};

use crate::dcf::minstrel::Minstrel;
use crate::dcf::mpdu::longest_ampdu;
use crate::dcf::{Dcf, FrameKind, PacketInService};
use crate::phy::{Phy, Rate};
use crate::random::{NumberStream, Purpose};

/// The choice of a data frame's rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateControl {
    /// The profile's rate, always.
    #[default]
    Fixed,
    /// A rate between the profile's and the basic one, for each receiver by the fate of the frames before.
    Arf,
    /// Minstrel-HT of Linux: any rate of the profile's kind that is no faster.
    Minstrel,
}

/// The load that a rate has carried to a receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateUse {
    /// The receiver.
    pub to: u32,
    /// The rate.
    pub rate: Rate,
    /// The data frames at this rate.
    pub frames: u64,
    /// The packets in them.
    pub packets: u64,
    /// Those of them that were acknowledged.
    pub came: u64,
    /// The airtime of the frames.
    pub airtime_ns: u64,
}

impl RateControl {
    /// The rates that data frames of this profile may have.
    pub fn rates(self, phy: &Phy) -> Vec<Rate> {
        match self {
            RateControl::Fixed => vec![phy.data],
            RateControl::Arf => phy.rates().collect(),
            RateControl::Minstrel => phy.rate_groups().concat(),
        }
    }

    /// The least of them.
    pub fn slowest(self, phy: &Phy) -> Rate {
        self.rates(phy).into_iter().min_by_key(|rate| rate.bits_per_second).unwrap_or(phy.basic)
    }
}

/// A rate, and what follows from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateChoice {
    pub(super) rate: Rate,
    /// An RTS goes first, however short the frame is.
    pub(super) is_protected: bool,
    /// The bytes of the longest aggregate.
    pub(super) longest: u32,
}

impl Dcf {
    /// The rate of the first frame with a packet for this receiver.
    pub(super) fn first_rate(&mut self, n: usize, to: u32) -> RateChoice {
        match self.mac.rate {
            RateControl::Fixed => {
                let longest = self.times.longest_ampdu;
                RateChoice { rate: self.phy.data, is_protected: false, longest }
            }
            RateControl::Arf => {
                let below = self.stations[n].ladder(to).map_or(0, |ladder| ladder.below);
                let rate = self.phy.rates().rev().nth(usize::from(below)).unwrap_or(self.phy.basic);
                let longest = if self.mac.ampdu.is_some() { longest_ampdu(&self.phy, rate) } else { 0 };
                RateChoice { rate, is_protected: false, longest }
            }
            RateControl::Minstrel => {
                let now = self.now;
                let control = self.minstrel(n, to);
                control.begin(now);
                control.after(0).expect("a chain has a rate")
            }
        }
    }

    #[inline(never)]
    fn minstrel(&mut self, n: usize, to: u32) -> &mut Minstrel {
        let st = &mut self.stations[n];
        let known = st.minstrels.iter().position(|minstrel| minstrel.to == to);
        let index = known.unwrap_or_else(|| {
            let stream = NumberStream::new(self.seed ^ u64::from(to) << 32, as_u32(n), Purpose::Rates);
            st.minstrels.push(Minstrel::new(to, &self.phy, self.now, stream));
            st.minstrels.len() - 1
        });
        &mut st.minstrels[index]
    }

    /// The packets in service are sent again or are new, maybe at another rate.
    pub(super) fn renew_rate(&mut self, n: usize) {
        if self.mac.rate == RateControl::Fixed {
            return;
        }
        let Some(service) = self.stations[n].service else { return };
        let next = match self.mac.rate {
            RateControl::Minstrel if service.chain > 0 => self.minstrel(n, service.to).after(service.chain),
            _ => None,
        };
        let chain = if next.is_some() { service.chain } else { 0 };
        let RateChoice { rate, is_protected, longest } =
            next.unwrap_or_else(|| self.first_rate(n, service.to));
        let airtime_ns = self.phy.data_at_ns(service.bytes, rate);
        let is_announced = is_protected || self.mac.announces(service.bytes);
        self.stations[n].service =
            Some(PacketInService { rate, airtime_ns, is_protected, is_announced, longest, chain, ..service });
    }

    /// Notes how many packets of the station's data frame were acknowledged. Without any its chain goes on.
    pub(super) fn learn_rate(&mut self, n: usize, came: u32) {
        if self.mac.rate == RateControl::Fixed {
            return;
        }
        let st = &mut self.stations[n];
        let frame = st.frame;
        debug_assert_eq!(frame.kind, FrameKind::Data, "others have no rate of their own");
        let sent = u32::from(frame.mpdus.max(1));
        if let Some(service) = &mut st.service {
            service.chain = if came > 0 { 0 } else { service.chain.saturating_add(1) };
        }
        self.tally(n, came);
        match self.mac.rate {
            RateControl::Fixed => {}
            RateControl::Arf => {
                let lowest = as_u8(self.phy.rates().count() - 1);
                let ladder = self.stations[n].ladder_mut(frame.to);
                if came > 0 { ladder.on_acknowledged() } else { ladder.on_unanswered(lowest) }
            }
            RateControl::Minstrel => {
                let now = self.now;
                self.minstrel(n, frame.to).learn(now, frame.rate, (sent, came));
            }
        }
    }

    fn tally(&mut self, n: usize, came: u32) {
        let super::Frame { to, rate, airtime_ns, mpdus, .. } = self.stations[n].frame;
        let uses = &mut self.rate_uses[n];
        let known = uses.iter().position(|used| used.to == to && used.rate == rate);
        let index = known.unwrap_or_else(|| {
            uses.push(RateUse { to, rate, frames: 0, packets: 0, came: 0, airtime_ns: 0 });
            uses.len() - 1
        });
        let used = &mut uses[index];
        used.frames += 1;
        used.packets += u64::from(mpdus.max(1));
        used.came += u64::from(came);
        used.airtime_ns += airtime_ns;
    }

    /// The load that each rate has carried from a station; nothing at a fixed rate.
    pub(crate) fn rate_uses(&self, station: u32) -> &[RateUse] {
        &self.rate_uses[station as usize]
    }

    /// Returns whether the rate control has no further try for the data in service; none where the MAC's limits hold.
    pub(super) fn is_chain_over(&mut self, n: usize) -> Option<bool> {
        if self.mac.rate != RateControl::Minstrel {
            return None;
        }
        let service = self.stations[n].service?;
        Some(self.minstrel(n, service.to).after(service.chain).is_none())
    }
}

const ENOUGH_GOOD: u8 = 10;
/// The paper's timer, counted in frames.
const ENOUGH_SENT: u8 = 15;
const ENOUGH_BAD: u8 = 2;

/// The rate of one receiver by auto rate fallback (Kamerman and Monteban 1997). It rises after ten acknowledged frames
/// in a row, or fifteen since the last change. It falls after two unacknowledged frames in a row, or when the first
/// frame at a higher rate fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ArfLadder {
    to: u32,
    /// Steps below the profile's rate.
    pub(super) below: u8,
    good: u8,
    bad: u8,
    sent: u8,
    is_on_trial: bool,
}

impl ArfLadder {
    fn new(to: u32) -> ArfLadder {
        ArfLadder { to, below: 0, good: 0, bad: 0, sent: 0, is_on_trial: false }
    }

    pub(super) fn on_acknowledged(&mut self) {
        self.bad = 0;
        self.is_on_trial = false;
        self.good += 1;
        self.sent += 1;
        if self.below > 0 && (self.good >= ENOUGH_GOOD || self.sent >= ENOUGH_SENT) {
            self.step(self.below - 1);
            self.is_on_trial = true;
        }
        self.good = self.good.min(ENOUGH_GOOD);
        self.sent = self.sent.min(ENOUGH_SENT);
    }

    pub(super) fn on_unanswered(&mut self, lowest: u8) {
        self.good = 0;
        self.bad += 1;
        self.sent = (self.sent + 1).min(ENOUGH_SENT);
        if self.is_on_trial || self.bad >= ENOUGH_BAD {
            self.step((self.below + 1).min(lowest));
        }
    }

    fn step(&mut self, below: u8) {
        *self = ArfLadder { below, ..ArfLadder::new(self.to) };
    }
}

impl crate::dcf::DcfStation {
    pub(super) fn ladder(&self, to: u32) -> Option<&ArfLadder> {
        self.ladders.iter().find(|ladder| ladder.to == to)
    }

    pub(super) fn ladder_mut(&mut self, to: u32) -> &mut ArfLadder {
        let known = self.ladders.iter().position(|ladder| ladder.to == to);
        let index = known.unwrap_or_else(|| {
            self.ladders.push(ArfLadder::new(to));
            self.ladders.len() - 1
        });
        &mut self.ladders[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(ladder: &mut ArfLadder, outcomes: &str) -> u8 {
        for outcome in outcomes.chars() {
            match outcome {
                '+' => ladder.on_acknowledged(),
                _ => ladder.on_unanswered(3),
            }
        }
        ladder.below
    }

    #[test]
    fn two_in_a_row_go_down_and_ten_in_a_row_go_up() {
        let mut ladder = ArfLadder::new(1);
        assert_eq!(after(&mut ladder, "-+-+-"), 0, "never two in a row");
        assert_eq!(after(&mut ladder, "-"), 1);
        assert_eq!(after(&mut ladder, "+++++++++"), 1);
        assert_eq!(after(&mut ladder, "+"), 0);
    }

    #[test]
    fn the_first_at_a_higher_rate_is_on_trial() {
        let mut ladder = ArfLadder::new(1);
        assert_eq!(after(&mut ladder, "--++++++++++"), 0);
        assert_eq!(after(&mut ladder, "-"), 1);
        assert_eq!(after(&mut ladder, "+++++++++++"), 0);
        assert_eq!(after(&mut ladder, "-"), 0, "the trial was passed");
    }

    #[test]
    fn fifteen_frames_without_a_change_are_reason_enough_to_try() {
        let mut ladder = ArfLadder::new(1);
        assert_eq!(after(&mut ladder, "--"), 1);
        assert_eq!(after(&mut ladder, "+++-+++-+++-++"), 1);
        assert_eq!(after(&mut ladder, "+"), 0);
    }

    #[test]
    fn there_is_nothing_below_the_basic_rate() {
        assert_eq!(after(&mut ArfLadder::new(1), "--------------------"), 3);
    }
}
