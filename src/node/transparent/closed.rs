//! A firewall that lets no caught SYN in.
//!
//! A caught SYN goes to a listener of this node, by the `input` chains of the machine's firewall. If one of them drops
//! it, the connection would never stand, though every SYN of it is caught. The way in is then closed for a while: the
//! SYN's repetition and all new SYNs go straight on. A connection that stands opens it again.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hopwise_host::transparent::Sockets;
use parking_lot::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::decisions::Ends;

/// The first time for which the way in is closed. It doubles each time, since a trial costs a connection seconds.
const CLOSED_FIRST: Duration = Duration::from_secs(60);
const CLOSED_LONGEST: Duration = Duration::from_secs(3600);

/// The ways in, by version of IP, whose firewalls differ.
#[derive(Debug)]
pub(super) struct Inward {
    /// `None` if the kernel's list cannot be read; no way is closed then.
    sockets: Option<Arc<Sockets>>,
    ways: Mutex<[Way; 2]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Way {
    closed_until: Option<Instant>,
    last: Duration,
}

impl Inward {
    pub(super) fn new(sockets: Option<Sockets>) -> Inward {
        Inward { sockets: sockets.map(Arc::new), ways: Mutex::default() }
    }

    pub(super) fn is_closed(&self, host: IpAddr, now: Instant) -> bool {
        self.ways.lock()[usize::from(host.is_ipv6())].closed_until.is_some_and(|until| now < until)
    }

    pub(super) fn stands(&self, host: IpAddr) {
        self.ways.lock()[usize::from(host.is_ipv6())] = Way::default();
    }

    /// A caught SYN did not come in.
    pub(super) fn close(&self, host: IpAddr, now: Instant) {
        let Some(lasts) = self.ways.lock()[usize::from(host.is_ipv6())].close(now) else { return };
        let version = if host.is_ipv6() { "IPv6" } else { "IPv4" };
        tracing::warn!(
            version,
            minutes = lasts.as_secs() / 60,
            "no caught SYN comes in: an `input` chain of this machine's firewall drops them; connections go straight \
             on meanwhile; a rule that lets them in: `meta mark & 0x4000000 != 0 accept`"
        );
    }

    /// Those of the caught connections that have no socket here: their SYNs have not come in.
    pub(super) async fn missing(&self, caught: BTreeSet<Ends>) -> BTreeSet<Ends> {
        let Some(sockets) = self.sockets.clone() else { return BTreeSet::new() };
        let looked = spawn_blocking(move || {
            let found = sockets.having(&caught)?;
            Ok::<_, std::io::Error>(caught.difference(&found).copied().collect())
        });
        looked.await.ok().and_then(Result::ok).unwrap_or_default()
    }
}

impl Way {
    /// Closes the way, and returns for how long; `None` if it is closed already.
    fn close(&mut self, now: Instant) -> Option<Duration> {
        if self.closed_until.is_some_and(|until| now < until) {
            return None;
        }
        self.last = (self.last * 2).clamp(CLOSED_FIRST, CLOSED_LONGEST);
        self.closed_until = Some(now + self.last);
        Some(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_way_is_closed_longer_each_time_until_a_connection_stands() {
        let inward = Inward::new(None);
        let (v4, v6) = (IpAddr::from([10, 1, 0, 2]), "fd01::2".parse().expect("an address"));
        let mut now = Instant::now();
        let closes = |now: Instant| {
            inward.close(v4, now);
            (0..).find(|minutes| !inward.is_closed(v4, now + Duration::from_secs(60 * minutes)))
        };
        assert!(!inward.is_closed(v4, now));
        for minutes in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(closes(now), Some(minutes));
            assert_eq!(closes(now), Some(minutes), "once for all SYNs that are missing then");
            now += Duration::from_secs(60 * minutes);
        }
        assert!(!inward.is_closed(v6, now));
        inward.stands(v4);
        assert_eq!(closes(now), Some(1));
    }
}
