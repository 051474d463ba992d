//! Hosts whose caught SYNs do not come in.
//!
//! A caught SYN goes to a listener of this node, by the `input` chains of the machine's firewall. If one of them drops
//! it, the connection would never stand, though every SYN of it is caught. The way in is then closed to its host for a
//! while: the SYN's repetition and all new SYNs go straight on. A connection that stands opens it again.
//!
//! A host is known by its interface, too. A SYN with its address that comes by another one closes nothing to it.

use std::collections::BTreeMap;
use std::time::Duration;

use hopwise_core::ip::Source;
use hopwise_host::transparent::Syn;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The first time for which the way in is closed. It doubles each time, since a trial costs a connection seconds.
const CLOSED_FIRST: Duration = Duration::from_secs(60);
const CLOSED_LONGEST: Duration = Duration::from_secs(3600);
/// The log names a closed way once in this time.
const SAID_EVERY: Duration = Duration::from_secs(60);
/// The largest number of hosts that are remembered. Beyond it the first one to be tried again is forgotten.
const MOST_HOSTS: usize = 4096;

/// A host: the number of its interface, and its address or its network of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Host(u32, Source);

impl From<&Syn> for Host {
    fn from(syn: &Syn) -> Host {
        Host(syn.interface, Source::of(syn.from.ip()))
    }
}

/// The ways in that are closed.
#[derive(Debug, Default)]
pub(super) struct Closed(Mutex<Hosts>);

#[derive(Debug, Default)]
struct Hosts {
    ways: BTreeMap<Host, Way>,
    said: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Way {
    closed_until: Instant,
    last: Duration,
}

impl Closed {
    pub(super) fn is_closed(&self, host: Host, now: Instant) -> bool {
        self.0.lock().ways.get(&host).is_some_and(|way| now < way.closed_until)
    }

    pub(super) fn stands(&self, host: Host) {
        self.0.lock().ways.remove(&host);
    }

    /// A caught SYN of the host did not come in.
    pub(super) fn close(&self, host: Host, syn: &Syn, now: Instant) {
        let mut hosts = self.0.lock();
        let Some(lasts) = hosts.close(host, now) else { return };
        if hosts.said.is_some_and(|said| now.duration_since(said) < SAID_EVERY) {
            return;
        }
        hosts.said = Some(now);
        tracing::warn!(
            from = %syn.from,
            to = %syn.to,
            minutes = lasts.as_secs() / 60,
            "a caught SYN did not come in: this machine's firewall, or its filter of reverse paths (`rp_filter`), \
             dropped it; connections of the host go straight on meanwhile; a rule for chains of `input` that lets \
             caught SYNs in: `meta mark & 0x4000000 != 0 accept`"
        );
    }
}

impl Hosts {
    /// Closes the way to a host, and returns for how long; `None` if it is closed already.
    fn close(&mut self, host: Host, now: Instant) -> Option<Duration> {
        let before = self.ways.get(&host);
        if before.is_some_and(|way| now < way.closed_until) {
            return None;
        }
        let last = before.map_or(Duration::ZERO, |way| way.last * 2).clamp(CLOSED_FIRST, CLOSED_LONGEST);
        if before.is_none()
            && self.ways.len() >= MOST_HOSTS
            && let Some(first) =
                self.ways.iter().min_by_key(|(_, way)| way.closed_until).map(|(host, _)| *host)
        {
            self.ways.remove(&first);
        }
        self.ways.insert(host, Way { closed_until: now + last, last });
        Some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn syn(interface: u32, from: &str) -> Syn {
        let from = format!("{from}:40000").parse().expect("an address");
        let to = "10.2.0.2:80".parse().expect("an address");
        Syn { interface, from, to, seq: 7, hop_limit: 64, dscp: 0, is_signed: false }
    }

    #[tokio::test(start_paused = true)]
    async fn a_way_is_closed_longer_each_time_until_a_connection_stands() {
        let closed = Closed::default();
        let syn = syn(2, "10.1.0.2");
        let host = Host::from(&syn);
        let mut now = Instant::now();
        let closes = |now: Instant| {
            closed.close(host, &syn, now);
            (0..).find(|minutes| !closed.is_closed(host, now + Duration::from_secs(60 * minutes)))
        };
        assert!(!closed.is_closed(host, now));
        for minutes in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(closes(now), Some(minutes));
            assert_eq!(closes(now), Some(minutes), "once for all SYNs that are missing then");
            now += Duration::from_secs(60 * minutes);
        }
        closed.stands(host);
        assert_eq!(closes(now), Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_way_is_closed_to_the_host_alone_and_by_its_interface_alone() {
        let closed = Closed::default();
        let (now, of) = (Instant::now(), |interface, from: &str| Host::from(&syn(interface, from)));
        for from in ["10.1.0.2", "[fd01::2]"] {
            closed.close(of(2, from), &syn(2, from), now);
        }
        assert!(closed.is_closed(of(2, "10.1.0.2"), now) && closed.is_closed(of(2, "[fd01::99]"), now));
        for (interface, from) in [(2, "10.1.0.3"), (3, "10.1.0.2"), (2, "[fd01:0:0:1::2]")] {
            assert!(!closed.is_closed(of(interface, from), now), "{from}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn of_too_many_hosts_the_first_to_be_tried_again_is_forgotten() {
        let closed = Closed::default();
        let now = Instant::now();
        let of = |nth: usize| syn(2, &format!("10.1.{}.{}", nth / 256, nth % 256));
        for nth in 0..=MOST_HOSTS {
            closed.close(Host::from(&of(nth)), &of(nth), now + Duration::from_millis(nth as u64));
        }
        let is_closed = |nth: usize| closed.is_closed(Host::from(&of(nth)), now);
        assert_eq!((is_closed(0), is_closed(1), is_closed(MOST_HOSTS)), (false, true, true));
    }
}
