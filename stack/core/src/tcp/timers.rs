//! A connection's deadlines.

use crate::Instant;

/// What can become due. When several are, the one that stands first is handled first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Timer {
    /// When to send the first unacknowledged segment again (RFC 6298), SYN and FIN among them.
    Retransmit,
    /// When to send the last segment once more because no ACK has come that would show its loss (RFC 8985 §7).
    TailProbe,
    /// When to take segments for lost that may merely have been reordered (RFC 8985 §6.2).
    Reorder,
    /// When to probe a window that the peer has closed (RFC 9293 §3.8.6.1), or override silly-window avoidance.
    Persist,
    /// When to send the ACK that a receiver agent holds back, at the latest when its hold or the ledger's
    /// ceiling is over.
    Ack,
    /// When the next segment may leave that pacing holds back.
    Pace,
    /// When to ask a silent peer whether it is still there (RFC 9293 §3.8.4).
    KeepAlive,
    /// When to give the connection up because data has stayed unacknowledged too long (RFC 9293 §3.8.3).
    UserTimeout,
    /// When to forget a connection whose end is settled (TIME-WAIT) or whose peer never closes (FIN-WAIT-2
    /// after the application has gone).
    Linger,
    /// When to send the next probe over a route that has failed, while the RTO stands still.
    Frozen,
    /// When to try a larger segment again on a path that has swallowed large ones (RFC 4821).
    MtuProbe,
    /// When to give the buffers' memory back because nothing has happened for a while.
    Relax,
}

impl Timer {
    pub(crate) const ALL: [Timer; 12] = [
        Timer::Retransmit,
        Timer::TailProbe,
        Timer::Reorder,
        Timer::Persist,
        Timer::Ack,
        Timer::Pace,
        Timer::KeepAlive,
        Timer::UserTimeout,
        Timer::Linger,
        Timer::Frozen,
        Timer::MtuProbe,
        Timer::Relax,
    ];
}

/// One deadline for each [`Timer`]; [`Instant::FAR`] means that it is off. Invariant: `next` is the earliest.
#[derive(Debug)]
pub(crate) struct Timers {
    deadlines: [Instant; Timer::ALL.len()],
    next: Instant,
}

const _: () = assert!(size_of::<Timers>() <= 128);

impl Timers {
    pub(crate) const fn new() -> Timers {
        Timers { deadlines: [Instant::FAR; Timer::ALL.len()], next: Instant::FAR }
    }

    /// Sets the deadline, whatever it was before.
    pub(crate) fn arm(&mut self, timer: Timer, at: Instant) {
        let before = std::mem::replace(&mut self.deadlines[timer as usize], at);
        if at <= self.next {
            self.next = at;
        } else if before == self.next {
            self.next = self.earliest();
        }
    }

    pub(crate) fn disarm(&mut self, timer: Timer) {
        self.arm(timer, Instant::FAR);
    }

    pub(crate) fn deadline(&self, timer: Timer) -> Option<Instant> {
        Some(self.deadlines[timer as usize]).filter(|at| *at != Instant::FAR)
    }

    /// The earliest deadline of all.
    pub(crate) fn next(&self) -> Option<Instant> {
        Some(self.next).filter(|at| *at != Instant::FAR)
    }

    /// The first timer that is due. It stays so until the caller disarms it or arms it anew.
    pub(crate) fn expired(&self, now: Instant) -> Option<Timer> {
        if now < self.next {
            return None;
        }
        Timer::ALL.into_iter().find(|timer| self.deadline(*timer).is_some_and(|at| at <= now))
    }

    fn earliest(&self) -> Instant {
        self.deadlines.iter().copied().fold(Instant::FAR, Instant::min)
    }
}
