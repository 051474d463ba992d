//! The decisions about connections of hosts, by their addresses: a SYN that comes again gets the same one.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::Instant;

/// Both ends of a connection, its host's first.
pub(super) type Ends = (SocketAddr, SocketAddr);

/// Linux repeats a SYN for 127 seconds (tcp_syn_retries).
const REPEATED_FOR: Duration = Duration::from_secs(150);
/// The time that a caught SYN has until its connection stands: some of its repetitions.
const STANDS_WITHIN: Duration = Duration::from_secs(15);
/// Connections that went straight on are forgotten beyond this, the oldest first. Their SYNs are then decided anew.
const MOST_STRAIGHT: usize = 1 << 16;

/// The answer to a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The connection is new, and is being decided from now on.
    Decide,
    /// A copy of the SYN is being decided.
    Forget,
    Catch,
    LetGo,
}

#[derive(Debug)]
enum State<W> {
    Deciding,
    /// The SYN was caught, and this waits for the connection.
    Waiting {
        since: Instant,
        with: W,
    },
    Carried,
    Straight {
        seq: u32,
        since: Instant,
    },
}

#[derive(Debug)]
pub(super) struct Decisions<W> {
    states: BTreeMap<Ends, State<W>>,
    /// By age; some are forgotten already.
    straight: VecDeque<Ends>,
}

impl<W> Default for Decisions<W> {
    fn default() -> Decisions<W> {
        Decisions { states: BTreeMap::new(), straight: VecDeque::new() }
    }
}

impl<W> Decisions<W> {
    pub(super) fn about(&mut self, ends: Ends, seq: u32) -> Verdict {
        match self.states.get(&ends) {
            Some(State::Deciding) => return Verdict::Forget,
            Some(State::Waiting { .. } | State::Carried) => return Verdict::Catch,
            Some(State::Straight { seq: known, .. }) if *known == seq => return Verdict::LetGo,
            Some(State::Straight { .. }) | None => {}
        }
        self.states.insert(ends, State::Deciding);
        Verdict::Decide
    }

    pub(super) fn goes_straight(&mut self, ends: Ends, seq: u32, now: Instant) {
        self.states.insert(ends, State::Straight { seq, since: now });
        self.straight.push_back(ends);
        if self.straight.len() > MOST_STRAIGHT
            && let Some(oldest) = self.straight.pop_front()
        {
            self.forget_straight(oldest);
        }
    }

    pub(super) fn is_caught(&mut self, ends: Ends, with: W, now: Instant) {
        self.states.insert(ends, State::Waiting { since: now, with });
    }

    /// The connection stands: it is carried from now on, with what waited for it.
    pub(super) fn stands(&mut self, ends: Ends) -> Option<W> {
        let waits = self.states.get_mut(&ends).filter(|state| matches!(state, State::Waiting { .. }))?;
        match std::mem::replace(waits, State::Carried) {
            State::Waiting { with, .. } => Some(with),
            _ => None,
        }
    }

    pub(super) fn ended(&mut self, ends: Ends) {
        self.states.remove(&ends);
    }

    /// Forgets connections that came to nothing, and those whose SYN does not come again.
    pub(super) fn clean(&mut self, now: Instant) {
        while let Some(oldest) = self.straight.front().copied() {
            let is_recent = match self.states.get(&oldest) {
                Some(State::Straight { since, .. }) => now.duration_since(*since) < REPEATED_FOR,
                _ => false,
            };
            if is_recent {
                break;
            }
            self.straight.pop_front();
            self.forget_straight(oldest);
        }
        self.states.retain(|_, state| {
            !matches!(state, State::Waiting { since, .. } if now.duration_since(*since) >= STANDS_WITHIN)
        });
    }

    fn forget_straight(&mut self, ends: Ends) {
        if let Some(State::Straight { .. }) = self.states.get(&ends) {
            self.states.remove(&ends);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(port: u16) -> Ends {
        (SocketAddr::from(([10, 1, 0, 2], port)), SocketAddr::from(([10, 2, 0, 2], 80)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_syn_that_comes_again_gets_the_same_decision_and_a_new_one_is_decided_anew() {
        let mut decisions = Decisions::<&str>::default();
        let now = Instant::now();
        assert_eq!(decisions.about(ends(1), 7), Verdict::Decide);
        assert_eq!(decisions.about(ends(1), 7), Verdict::Forget);
        decisions.goes_straight(ends(1), 7, now);
        assert_eq!(decisions.about(ends(1), 7), Verdict::LetGo);
        assert_eq!(decisions.about(ends(1), 8), Verdict::Decide);
        decisions.is_caught(ends(1), "way", now);
        assert_eq!(decisions.about(ends(1), 8), Verdict::Catch);
        assert_eq!((decisions.stands(ends(2)), decisions.stands(ends(1))), (None, Some("way")));
        assert_eq!(decisions.stands(ends(1)), None);
        assert_eq!(decisions.about(ends(1), 9), Verdict::Catch);
        decisions.ended(ends(1));
        assert_eq!(decisions.about(ends(1), 9), Verdict::Decide);
    }

    #[tokio::test(start_paused = true)]
    async fn what_came_to_nothing_is_forgotten() {
        let mut decisions = Decisions::<&str>::default();
        let now = Instant::now();
        decisions.goes_straight(ends(1), 7, now);
        decisions.is_caught(ends(2), "way", now);
        decisions.clean(now + STANDS_WITHIN);
        assert_eq!(decisions.stands(ends(2)), None);
        assert_eq!(decisions.about(ends(1), 7), Verdict::LetGo);
        decisions.clean(now + REPEATED_FOR);
        assert!(decisions.states.is_empty() && decisions.straight.is_empty());
        for port in 0..=u16::MAX {
            decisions.goes_straight(ends(port), 7, now);
        }
        decisions.goes_straight((ends(1).1, ends(1).0), 7, now);
        assert_eq!(decisions.states.len(), MOST_STRAIGHT);
    }
}
