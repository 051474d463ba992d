//! Stations with several access categories (EDCA): each contends by itself, and the station decides among them.
//!
//! One category is at hand: the one whose frame is on the air, or was last. The contenders of other categories are put
//! by (`contender.rs`). A station that only ever sent at best effort has one contender, and is a station of the DCF
//! with the numbers of best effort.
//!
//! - The category whose backoff runs out first sends. If several run out at one instant the greatest sends, and the
//!   lesser ones draw from a wider window, as after a collision (IEEE 802.11-2016 §10.22.2.4). No try is counted for
//!   that.
//! - A category with a TXOP limit goes on after SIFS as long as a further exchange fits. After a failure it contends
//!   anew. A broadcast is a TXOP of its own.
//! - Packets of voice leave one by one: Linux has no aggregates there.

use hopwise_core::queue::Category;

use super::contender::Success;
use super::rates::RateChoice;
use super::station::{Backoff, ExchangePhase, Hears, PacketInService, Wait};
use super::{AggregateRoom, Dcf, EVERYONE, Offered};
use crate::deadlines::NEVER;
use crate::phy::Phy;

impl Dcf {
    /// Returns whether a category of a station has no packet.
    #[inline]
    pub fn has_room_in(&self, station: u32, category: Category) -> bool {
        let st = &self.stations[station as usize];
        if st.category == category {
            return st.service.is_none();
        }
        st.place_of(category).is_none_or(|place| st.others[place].service.is_none())
    }

    /// Gives a packet to a category of a station that has room, and returns its number. The caller keeps it until
    /// [`DcfNews::Done`](super::News::Done).
    pub fn give(&mut self, now: u64, station: u32, offered: Offered) -> u32 {
        let n = station as usize;
        self.now = now;
        let number = self.within(n, offered.category, |dcf| dcf.give_at_hand(now, n, offered));
        if !self.stations[n].others.is_empty() {
            self.continue_txop(n);
        }
        number
    }

    /// Gives a packet to the category at hand.
    fn give_at_hand(&mut self, now: u64, n: usize, offered: Offered) -> u32 {
        let Offered { to, bytes, load, queued_at, category } = offered;
        let is_aggregated = self.is_aggregated(category) && to != EVERYONE;
        assert!(self.stations[n].service.is_none(), "one frame in service");
        let number =
            if is_aggregated { self.add_mpdu(now, n, &offered) } else { self.stations[n].next_number() };
        let choice = match to {
            EVERYONE => RateChoice { rate: self.phy.slowest, is_protected: false, longest: 0 },
            _ => self.first_rate(n, to),
        };
        let RateChoice { rate, is_protected, longest } = choice;
        let is_announced = to != EVERYONE && (is_protected || self.mac.announces(bytes));
        self.stations[n].service = Some(PacketInService {
            to,
            bytes,
            number,
            airtime_ns: self.phy.data_at_ns(bytes, rate),
            rate,
            load,
            is_announced,
            is_protected,
            longest,
            chain: 0,
            is_cleared: false,
            has_left: false,
            queued_at: queued_at.filter(|_| !is_aggregated).unwrap_or(NEVER),
            unanswered: 0,
            mpdus: u8::from(is_aggregated),
            is_request: false,
        });
        self.contend_for_new(now, n);
        number
    }

    /// Gives a category a further packet, for which [`room_for_more_in`](Self::room_for_more_in) has room. Returns its
    /// number.
    pub(crate) fn give_more(&mut self, now: u64, station: u32, offered: Offered) -> u32 {
        let n = station as usize;
        self.within(n, offered.category, |dcf| dcf.add_mpdu(now, n, &offered))
    }

    /// Room for a further packet of a category at a station; none where frames go one by one.
    pub(crate) fn room_for_more_in(&mut self, station: u32, category: Category) -> Option<AggregateRoom> {
        if !self.is_aggregating() || self.has_room_in(station, category) {
            return None;
        }
        self.within(station as usize, category, |dcf| dcf.room_for_more(station))
    }

    /// Does something with a category in hand.
    pub(super) fn within<T>(&mut self, n: usize, category: Category, act: impl FnOnce(&mut Dcf) -> T) -> T {
        let own = self.stations[n].category;
        let is_other = own != category;
        if is_other {
            self.stations[n].take_up(&self.phy, category);
        }
        let done = act(self);
        if is_other {
            self.stations[n].take_up(&self.phy, own);
        }
        done
    }

    /// Does something with each category in hand, that at hand first.
    fn in_each(&mut self, n: usize, mut act: impl FnMut(&mut Dcf)) {
        act(self);
        self.in_others(n, act);
    }

    fn in_others(&mut self, n: usize, mut act: impl FnMut(&mut Dcf)) {
        for place in 0..self.stations[n].others.len() {
            self.stations[n].swap(place);
            act(self);
            self.stations[n].swap(place);
        }
    }

    /// AIFS of the category at hand.
    #[inline]
    pub(super) fn aifs(&self, n: usize) -> u64 {
        self.times.aifs[self.stations[n].category.index()]
    }

    /// Lets all paused backoffs go on, and draws backoffs for packets that came during an exchange.
    #[inline(never)]
    pub(super) fn resume_all(&mut self, n: usize, not_before: u64) {
        let st = &self.stations[n];
        let is_free = st.phase == ExchangePhase::Idle && matches!(st.wait, Wait::Nothing | Wait::Backoff);
        if !is_free || st.reception.hears != Hears::Nothing || self.continue_txop(n) {
            return;
        }
        self.draw_missing(n);
        self.in_each(n, |dcf| dcf.resume_one(n, not_before));
        self.await_backoffs(n);
    }

    fn resume_one(&mut self, n: usize, not_before: u64) {
        let aifs = self.aifs(n);
        let st = &mut self.stations[n];
        if st.backoff != Backoff::Paused {
            return;
        }
        let idle_from = st.busy_until.max(st.nav_end()).max(not_before);
        // EIFS ends with AIFS of the category in place of best effort's.
        let after_eifs = (st.eifs_until + aifs).saturating_sub(self.times.difs);
        st.slots_from = (idle_from + aifs).max(after_eifs);
        st.backoff = Backoff::Running;
    }

    /// The medium gets busy at `at`: backoffs that run out by then do not stop.
    #[inline(never)]
    pub(super) fn interrupt_all(&mut self, n: usize, at: u64) {
        if self.stations[n].wait != Wait::Backoff {
            return;
        }
        self.in_each(n, |dcf| dcf.interrupt_one(n, at));
        self.await_backoffs(n);
    }

    fn interrupt_one(&mut self, n: usize, at: u64) {
        let slot = self.times.slot;
        if self.stations[n].runs_out(slot).is_some_and(|until| until > at) {
            self.pause(n, at);
        }
    }

    /// Waits for the backoff that runs out first, if one is running.
    fn await_backoffs(&mut self, n: usize) {
        let (slot, mut first) = (self.times.slot, None::<u64>);
        self.in_each(n, |dcf| {
            let until = dcf.stations[n].runs_out(slot);
            first = first.into_iter().chain(until).min();
        });
        match first {
            Some(until) => self.wait(n, Wait::Backoff, until),
            None if self.stations[n].wait == Wait::Backoff => self.wait_for_nothing(n),
            None => {}
        }
    }

    /// A backoff has run out: takes the category that sends in hand. Returns whether there is one.
    #[inline(never)]
    pub(super) fn choose_category(&mut self, now: u64, n: usize) -> bool {
        let (slot, mut winner) = (self.times.slot, None::<Category>);
        self.in_each(n, |dcf| {
            let st = &mut dcf.stations[n];
            if st.runs_out(slot).is_none_or(|until| until > now) {
                return;
            }
            if st.service.is_some() {
                winner = winner.max(Some(st.category));
            } else {
                (st.backoff, st.is_undrawn) = (Backoff::None, false);
            }
        });
        let Some(winner) = winner else {
            self.await_backoffs(n);
            return false;
        };
        self.stations[n].take_up(&self.phy, winner);
        self.in_others(n, |dcf| match dcf.stations[n].runs_out(slot) {
            Some(until) if until <= now => {
                dcf.stats[n].internal_collisions += 1;
                dcf.stations[n].widen();
                dcf.draw_backoff(n);
            }
            // The slot that ends now counts: its end is at this boundary.
            Some(_) => dcf.pause(n, now + 1),
            None => {}
        });
        let limit = self.times.txop[winner.index()];
        let st = &mut self.stations[n];
        st.txop_until = if limit > 0 { now + limit } else { 0 };
        true
    }

    /// Draws backoffs for the categories that have a packet and no backoff.
    fn draw_missing(&mut self, n: usize) {
        self.in_each(n, |dcf| {
            let st = &dcf.stations[n];
            if st.service.is_some() && st.backoff == Backoff::None {
                dcf.draw_backoff(n);
            }
        });
    }

    /// The exchange of the category at hand has succeeded with the answer that ended at `ended`.
    pub(super) fn note_success(&mut self, n: usize, ended: u64) {
        let now = self.now;
        let st = &mut self.stations[n];
        st.txop_goes_on = (st.txop_until > 0).then_some(Success { of: st.category, at: now, ended });
    }

    /// Waits for SIFS, if the category at hand has just succeeded and its TXOP is not over by then. Returns whether it
    /// waits.
    #[inline(never)]
    pub(super) fn continue_txop(&mut self, n: usize) -> bool {
        let st = &self.stations[n];
        let Some(Success { of, at, ended }) = st.txop_goes_on else { return false };
        let is_free = st.phase == ExchangePhase::Idle && matches!(st.wait, Wait::Nothing | Wait::Backoff);
        let begin = ended + self.times.sifs;
        if !is_free || begin >= st.txop_until || at != self.now || of != st.category {
            return false;
        }
        self.in_each(n, |dcf| dcf.interrupt_one(n, ended));
        self.stations[n].txop_goes_on = None;
        self.wait(n, Wait::ToContinue, begin);
        true
    }

    /// SIFS and the longest answer that the frame may get.
    pub(super) fn answered_by(&self, service: &PacketInService) -> u64 {
        let mpdus = if service.mpdus > 0 { 2 } else { 0 };
        self.times.sifs + self.answer_ns(&PacketInService { mpdus, ..*service })
    }

    /// SIFS has passed since the last exchange of the TXOP.
    #[inline(never)]
    pub(super) fn on_time_to_continue(&mut self, now: u64, n: usize) {
        if !self.may_send(now, n) {
            return self.proceed(n);
        }
        self.stations[n].drawn = None;
        self.begin_exchange(now, n);
    }

    /// Returns whether the TXOP has room for what is next.
    fn may_send(&self, now: u64, n: usize) -> bool {
        let st = &self.stations[n];
        let is_one = |service: &PacketInService| service.to != EVERYONE && !service.is_request;
        let Some(service) = st.service.filter(is_one) else { return false };
        let first = st.mpdus.first().map_or(service.bytes, |mpdu| mpdu.bytes);
        let data_ns = self.phy.data_at_ns(first, service.rate);
        now + self.announced_by(&service) + data_ns + self.answered_by(&service) <= st.txop_until
    }

    /// The packets of a category leave one by one.
    pub(super) fn is_aggregated(&self, category: Category) -> bool {
        self.is_aggregating() && category != Category::Voice
    }

    /// The most time that a frame with several packets may take now; none without a limit. Its answer needs time as
    /// well, and so does an RTS before it.
    pub(super) fn txop_left(&self, now: u64, n: usize, service: &PacketInService) -> Option<u64> {
        let until = self.stations[n].txop_until;
        let besides = self.announced_by(service) + self.answered_by(service);
        (until > 0).then(|| until.saturating_sub(now + besides))
    }

    /// The time of an RTS, its CTS and the gaps after both, where an RTS may come before the frame, or of a CTS alone.
    fn announced_by(&self, service: &PacketInService) -> u64 {
        let times = &self.times;
        if service.is_protected || self.mac.rts_threshold.is_some() {
            times.rts + times.cts + 2 * times.sifs
        } else if self.mac.cts_to_self {
            times.cts + times.sifs
        } else {
            0
        }
    }
}

/// AIFS of all categories by their index.
pub(super) fn gaps(phy: &Phy) -> [u64; 4] {
    [0, 1, 2, 3].map(|index| phy.aifs_ns(Category::of_index(index)))
}

/// The TXOP limits of all categories by their index; 0 for one frame.
pub(super) fn limits(phy: &Phy) -> [u64; 4] {
    [0, 1, 2, 3].map(|index| phy.contention(Category::of_index(index)).txop_ns)
}
