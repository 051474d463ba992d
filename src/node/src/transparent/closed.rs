//! SYNs that do not come in when they are caught.
//!
//! A caught SYN goes to a listener of this node, by the `input` chains of the machine's firewall. If one of them drops
//! it, the connection would never stand, though every SYN of it is caught. The way in is then closed for a while to all
//! SYNs that are like it: its repetition and new ones go straight on. A connection that stands opens it again.
//!
//! Only SYNs count as alike that the firewall does not tell from each other (`Likeness`). Anyone can send a SYN in the
//! name of a host, with a port or an option for which the firewall drops it. That closes nothing to the host's own
//! connections, which have other ones.

use std::collections::BTreeMap;
use std::time::Duration;

use hopwise_host::transparent::{Likeness, Syn};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::log_limit::LogLimit;

/// The first time for which the way in is closed. It doubles each time, since a trial costs a connection seconds.
const CLOSED_FIRST: Duration = Duration::from_secs(60);
const CLOSED_LONGEST: Duration = Duration::from_secs(3600);
/// The largest number of ways that are remembered. Beyond it the first one to be tried again is forgotten.
const MOST_WAYS: usize = 4096;

/// The ways in that are closed.
#[derive(Debug, Default)]
pub(super) struct Closed {
    ways: Mutex<BTreeMap<Likeness, Way>>,
    lines: LogLimit,
}

#[derive(Clone, Copy, Debug)]
struct Way {
    closed_until: Instant,
    last: Duration,
}

impl Closed {
    pub(super) fn is_closed(&self, syn: &Syn, now: Instant) -> bool {
        self.ways.lock().get(&syn.like).is_some_and(|way| now < way.closed_until)
    }

    pub(super) fn stands(&self, syn: &Syn) {
        self.ways.lock().remove(&syn.like);
    }

    /// A caught SYN did not come in.
    pub(super) fn close(&self, syn: &Syn, now: Instant) {
        let Some(lasts) = self.close_like(syn.like, now) else { return };
        let Some(times) = self.lines.due() else { return };
        tracing::warn!(
            from = %syn.from,
            to = %syn.to,
            times,
            minutes = lasts.as_secs() / 60,
            "a caught SYN did not come in: this machine's firewall, or its filter of reverse paths (`rp_filter`), \
             dropped it; connections like it go straight on meanwhile; a rule for chains of `input` that lets \
             caught SYNs in: `meta mark & 0x4000000 != 0 accept`"
        );
    }

    /// Closes the way in to SYNs that are like it, and returns for how long; `None` if it is closed already.
    fn close_like(&self, like: Likeness, now: Instant) -> Option<Duration> {
        let mut ways = self.ways.lock();
        let before = ways.get(&like);
        if before.is_some_and(|way| now < way.closed_until) {
            return None;
        }
        let last = before.map_or(Duration::ZERO, |way| way.last * 2).clamp(CLOSED_FIRST, CLOSED_LONGEST);
        if before.is_none()
            && ways.len() >= MOST_WAYS
            && let Some(first) = ways.iter().min_by_key(|(_, way)| way.closed_until).map(|(like, _)| *like)
        {
            ways.remove(&first);
        }
        ways.insert(like, Way { closed_until: now + last, last });
        Some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn syn(like: &[u8]) -> Syn {
        let [from, to] = ["10.1.0.2:40000", "10.2.0.2:80"].map(|end| end.parse().expect("an address"));
        let like = Likeness::of(like);
        Syn { interface: 2, from, to, seq: 7, hop_limit: 64, dscp: 0, is_signed: false, like }
    }

    #[tokio::test(start_paused = true)]
    async fn a_way_is_closed_longer_each_time_until_a_connection_stands() {
        let closed = Closed::default();
        let syn = syn(b"one");
        let mut now = Instant::now();
        let closes = |now: Instant| {
            closed.close(&syn, now);
            (0..).find(|minutes| !closed.is_closed(&syn, now + Duration::from_secs(60 * minutes)))
        };
        assert!(!closed.is_closed(&syn, now));
        for minutes in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(closes(now), Some(minutes));
            assert_eq!(closes(now), Some(minutes), "once for all SYNs that are missing then");
            now += Duration::from_secs(60 * minutes);
        }
        closed.stands(&syn);
        assert_eq!(closes(now), Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_way_is_closed_to_syns_that_are_alike_and_to_no_others() {
        let closed = Closed::default();
        let now = Instant::now();
        closed.close(&syn(b"one"), now);
        assert!(closed.is_closed(&syn(b"one"), now) && !closed.is_closed(&syn(b"another"), now));
    }

    #[tokio::test(start_paused = true)]
    async fn of_too_many_ways_the_first_to_be_tried_again_is_forgotten() {
        let closed = Closed::default();
        let now = Instant::now();
        let of = |nth: usize| syn(&nth.to_be_bytes());
        for nth in 0..=MOST_WAYS {
            closed.close(&of(nth), now + Duration::from_millis(nth as u64));
        }
        let is_closed = |nth: usize| closed.is_closed(&of(nth), now);
        assert_eq!((is_closed(0), is_closed(1), is_closed(MOST_WAYS)), (false, true, true));
    }
}
