//! A connection's deadlines, except that of a held ACK, which the ledger keeps (`AckLedger::deadline`).

use crate::Instant;

/// The kinds of deadlines. If several are due, the first in this list is handled first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Timer {
    /// Sends new data, or else the last segment again, because no ACK shows whether it was lost (RFC 8985 §7). If both
    /// are due, the probe replaces the timeout, and the RTO starts again.
    TailProbe,
    /// Retransmits the first unacknowledged segment (RFC 6298), also a SYN or a FIN.
    Retransmit,
    /// Marks segments as lost that may merely have been reordered (RFC 8985 §6.2).
    Reorder,
    /// Probes a window that the peer has closed (RFC 9293 §3.8.6.1), or overrides silly-window avoidance.
    Persist,
    /// Lets the next segment leave that pacing holds back.
    Pace,
    /// Probes a silent peer (RFC 9293 §3.8.4).
    KeepAlive,
    /// Gives the connection up because data has stayed unacknowledged too long (RFC 9293 §3.8.3).
    UserTimeout,
    /// Forgets a connection whose end is settled (TIME-WAIT) or whose peer never closes (FIN-WAIT-2 after the
    /// application has gone).
    Linger,
    /// Sends the next probe over a route that has failed, while the RTO stands still.
    Frozen,
    /// Tries a larger segment again on a path that has lost large ones (RFC 4821).
    MtuProbe,
    /// Frees the buffers' memory after some time without an event.
    Relax,
}

impl Timer {
    pub(crate) const ALL: [Timer; 11] = [
        Timer::TailProbe,
        Timer::Retransmit,
        Timer::Reorder,
        Timer::Persist,
        Timer::Pace,
        Timer::KeepAlive,
        Timer::UserTimeout,
        Timer::Linger,
        Timer::Frozen,
        Timer::MtuProbe,
        Timer::Relax,
    ];
}

/// One deadline for each [`Timer`]; [`Instant::FAR`] means that it is off. Invariant: `wake` is no later than the
/// earliest deadline. Only [`expired`](Timers::expired) moves it to a later instant, so that a timer costs nothing but
/// its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Timers {
    deadlines: [Instant; Timer::ALL.len()],
    wake: Instant,
}

const _: () = assert!(size_of::<Timers>() <= 128);

impl Timers {
    pub(crate) const fn new() -> Timers {
        Timers { deadlines: [Instant::FAR; Timer::ALL.len()], wake: Instant::FAR }
    }

    /// Sets the deadline, whatever it was before.
    #[inline]
    pub(crate) fn arm(&mut self, timer: Timer, at: Instant) {
        self.deadlines[timer as usize] = at;
        self.wake = self.wake.min(at);
    }
    pub(crate) fn disarm(&mut self, timer: Timer) {
        self.deadlines[timer as usize] = Instant::FAR;
    }
    pub(crate) fn deadline(&self, timer: Timer) -> Option<Instant> {
        Some(self.deadlines[timer as usize]).filter(|at| *at != Instant::FAR)
    }
    pub(crate) fn is_armed(&self, timer: Timer) -> bool {
        self.deadlines[timer as usize] != Instant::FAR
    }

    /// The instant at which [`expired`](Timers::expired) should be asked. It may be too early, but not too late.
    pub(crate) fn wake(&self) -> Instant {
        self.wake
    }

    /// The first timer that is due. It stays due until the caller disarms it or arms it anew.
    pub(crate) fn expired(&mut self, now: Instant) -> Option<Timer> {
        if now < self.wake {
            return None;
        }
        let due = Timer::ALL.into_iter().find(|timer| self.deadlines[*timer as usize] <= now);
        if due.is_none() {
            self.wake = self.deadlines.iter().copied().fold(Instant::FAR, Instant::min);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_timer_has_its_own_place_in_the_order_of_handling() {
        for (place, timer) in Timer::ALL.into_iter().enumerate() {
            assert_eq!(timer as usize, place);
        }
    }

    #[test]
    fn nothing_is_due_before_the_earliest_deadline() {
        let mut timers = Timers::new();
        assert_eq!((timers.wake(), timers.expired(Instant(u64::MAX - 1))), (Instant::FAR, None));
        timers.arm(Timer::Pace, Instant(20));
        timers.arm(Timer::Retransmit, Instant(30));
        assert_eq!((timers.wake(), timers.expired(Instant(19))), (Instant(20), None));
        assert_eq!(timers.expired(Instant(20)), Some(Timer::Pace));
    }

    #[test]
    fn of_several_due_the_first_in_order_is_told_until_it_is_disarmed() {
        let mut timers = Timers::new();
        timers.arm(Timer::Pace, Instant(10));
        timers.arm(Timer::Retransmit, Instant(20));
        for _ in 0..2 {
            assert_eq!(timers.expired(Instant(25)), Some(Timer::Retransmit));
        }
        timers.disarm(Timer::Retransmit);
        assert_eq!(timers.expired(Instant(25)), Some(Timer::Pace));
        timers.disarm(Timer::Pace);
        assert_eq!((timers.expired(Instant(25)), timers.wake()), (None, Instant::FAR));
    }

    #[test]
    fn a_wake_stays_early_until_nothing_is_found_due() {
        let mut timers = Timers::new();
        timers.arm(Timer::Retransmit, Instant(10));
        timers.arm(Timer::Retransmit, Instant(30));
        assert_eq!(timers.wake(), Instant(10));
        assert_eq!((timers.expired(Instant(10)), timers.wake()), (None, Instant(30)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn no_timer_runs_out_unseen(
            steps in prop::collection::vec((0..11_usize, prop_oneof![0..20_u64, Just(u64::MAX)], 0..20_u64), 1..80),
        ) {
            let mut timers = Timers::new();
            let mut model = [u64::MAX; 11];
            for (timer, at, now) in steps {
                timers.arm(Timer::ALL[timer], Instant(at));
                model[timer] = at;
                let earliest = model.iter().copied().min().map_or(Instant::FAR, Instant);
                prop_assert!(timers.wake() <= earliest);
                let due = model.iter().position(|at| *at <= now).map(|place| Timer::ALL[place]);
                let was_early = timers.wake() <= Instant(now) && due.is_none();
                prop_assert_eq!(timers.expired(Instant(now)), due);
                prop_assert!(!was_early || timers.wake() == earliest);
                prop_assert_eq!(timers.deadline(Timer::ALL[timer]), Some(Instant(at)).filter(|at| at.0 != u64::MAX));
            }
        }
    }
}
