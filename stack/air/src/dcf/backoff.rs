//! When a station may begin an exchange: backoffs drawn, interrupted and resumed.

use hopwise_core::narrow::{as_u32, as_usize};

use super::station::{Backoff, ExchangePhase, Hears, Wait};
use super::{Dcf, EVERYONE, MacRules};
use crate::deadlines::NEVER;

impl Dcf {
    /// A packet came to a station that had none.
    pub(super) fn contend_for_new(&mut self, now: u64, n: usize) {
        let st = &mut self.stations[n];
        // During an exchange no backoff is drawn; `proceed` or `resume_all` draws at its end.
        if st.backoff != Backoff::None
            || st.phase != ExchangePhase::Idle
            || !matches!(st.wait, Wait::Nothing | Wait::Backoff)
        {
            return;
        }
        let is_idle = st.reception.hears == Hears::Nothing && st.nav_end() <= now && st.busy_until <= now;
        st.is_undrawn = self.mac.rules == MacRules::Standard && is_idle;
        st.drawn = None;
        // Access at once on a medium that has been idle for DIFS is the standard's; ns-2 draws always.
        st.slots = if st.is_undrawn { 0 } else { st.draw() };
        st.backoff = Backoff::Paused;
        let is_undrawn = st.is_undrawn;
        let from = if is_undrawn { now.saturating_sub(self.aifs(n)) } else { now };
        self.resume(n, from);
    }

    pub(super) fn draw_backoff(&mut self, n: usize) {
        let st = &mut self.stations[n];
        st.slots = st.draw();
        st.is_undrawn = false;
        st.backoff = Backoff::Paused;
    }

    /// The exchange of a station is over: its packet in service goes on.
    pub(super) fn proceed(&mut self, n: usize) {
        let st = &self.stations[n];
        if st.others.is_empty() && st.service.is_some() && st.backoff == Backoff::None {
            self.draw_backoff(n);
        }
        self.resume(n, 0);
    }

    /// Lets a paused backoff go on, if the receiver is idle and nothing else is to be done: DIFS after carrier and NAV
    /// are idle.
    #[inline]
    pub(super) fn resume(&mut self, n: usize, not_before: u64) {
        let st = &mut self.stations[n];
        if !st.others.is_empty() {
            return self.resume_all(n, not_before);
        }
        let may = st.backoff == Backoff::Paused
            && st.phase == ExchangePhase::Idle
            && st.wait == Wait::Nothing
            && st.reception.hears == Hears::Nothing;
        if !may {
            return;
        }
        let idle_from = st.busy_until.max(st.nav_end()).max(not_before);
        st.slots_from = (idle_from + self.times.difs).max(st.eifs_until);
        st.backoff = Backoff::Running;
        let until = st.slots_from + u64::from(st.slots) * u64::from(self.times.slot);
        self.wait(n, Wait::Backoff, until);
    }

    /// The medium gets busy at `at`. A backoff that runs out by then does not stop. Otherwise only the whole slots that
    /// have passed are taken off. EDCA takes one more off, at the end of AIFS (IEEE 802.11-2016 §10.22.2.4).
    #[inline]
    pub(super) fn interrupt(&mut self, n: usize, at: u64) {
        let st = &self.stations[n];
        if !st.others.is_empty() {
            return self.interrupt_all(n, at);
        }
        if st.backoff != Backoff::Running || self.deadlines.of(n) <= at {
            return;
        }
        self.pause(n, at);
        self.wait_for_nothing(n);
    }

    /// Pauses the backoff at hand.
    #[inline]
    pub(super) fn pause(&mut self, n: usize, at: u64) {
        let st = &mut self.stations[n];
        // A first bit that arrives when a slot begins is not noticed: that slot counts under EDCA.
        if at >= st.slots_from {
            let passed = as_u32(as_usize(at - st.slots_from)) / self.times.slot;
            st.slots = st.slots.saturating_sub(passed + self.times.slots_of_aifs);
        }
        if st.is_undrawn {
            st.is_undrawn = false;
            st.slots = st.draw();
        }
        st.backoff = Backoff::Paused;
    }

    pub(super) fn wait_for_nothing(&mut self, n: usize) {
        self.stations[n].wait = Wait::Nothing;
        self.deadlines.set(n, NEVER);
    }

    pub(super) fn on_backoff_over(&mut self, now: u64, n: usize) {
        if !self.stations[n].others.is_empty() && !self.choose_category(now, n) {
            return;
        }
        let st = &mut self.stations[n];
        st.backoff = Backoff::None;
        st.is_undrawn = false;
        let Some(service) = &mut st.service else { return };
        if service.queued_at != NEVER {
            let queued_at = std::mem::replace(&mut service.queued_at, NEVER);
            self.waits[n].add(service.load, now - queued_at);
        }
        if service.is_request {
            self.send_request(now, n);
            return;
        }
        self.begin_exchange(now, n);
    }

    /// Sends the packets in service, or an RTS or a CTS before them.
    pub(super) fn begin_exchange(&mut self, now: u64, n: usize) {
        if self.stations[n].service.is_some_and(|service| service.mpdus > 0) {
            self.fix_aggregate(now, n);
        }
        let Some(service) = &self.stations[n].service else { return };
        if service.is_announced && !service.is_cleared {
            self.send_rts(now, n);
        } else if self.mac.cts_to_self && !service.is_announced && service.to != EVERYONE {
            self.send_cts_to_self(now, n);
        } else {
            self.send_data(now, n);
        }
    }
}
