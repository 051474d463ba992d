//! The peers about which a node is polled, and its answers. Peers with connections have places that a stranger's peers
//! cannot take.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use hopwise_core::Instant;

/// The largest age of an answer while a node answers in time.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// The time for which the last answer holds while a node is silent.
const KEPT_IN_SILENCE: Duration = Duration::from_secs(5);
/// The number of places for known peers, and for peers that are only named.
pub(super) const MOST_KNOWN: usize = 64;
pub(super) const MOST_NAMED: usize = 16;
/// The largest number of polls in a row for a known peer without arrivals.
const MOST_ASKED: u32 = 50;

/// The peer's port, ours, and the sequence number that has arrived.
pub(super) type FlowArrivals = Vec<(u16, u16, u32)>;

#[derive(Debug, Default)]
struct PolledPeer {
    /// There was a route to it, or the node has connections to it. Otherwise only some node's request names it.
    is_known: bool,
    flows: FlowArrivals,
    /// The start of the node's silence.
    silent_since: Option<Instant>,
    /// The number of further polls without arrivals.
    left: u32,
    ask_at: Instant,
}

#[derive(Debug, Default)]
pub(super) struct PolledPeers(BTreeMap<IpAddr, PolledPeer>);

impl PolledPeers {
    /// Returns whether that peer is new.
    pub(super) fn want(&mut self, peer: IpAddr, is_known: bool) -> bool {
        let times = if is_known { MOST_ASKED } else { 1 };
        let is_new = !self.0.contains_key(&peer);
        if is_new && !is_known && self.count(false) >= MOST_NAMED {
            return false;
        }
        let wanted = self.0.entry(peer).or_default();
        wanted.is_known |= is_known;
        wanted.left = wanted.left.max(times);
        self.make_room(peer);
        is_new && self.0.contains_key(&peer)
    }

    fn count(&self, is_known: bool) -> usize {
        self.0.values().filter(|peer| peer.is_known == is_known).count()
    }

    /// Among known peers, the one without arrivals for longest gives way, or else the newest.
    fn make_room(&mut self, newest: IpAddr) {
        if self.count(true) <= MOST_KNOWN {
            return;
        }
        let others = self.0.iter().filter(|(address, _)| **address != newest);
        let quiet = others.filter(|(_, peer)| peer.is_known && peer.flows.is_empty());
        let victim = quiet.min_by_key(|(_, peer)| peer.left).map_or(newest, |(address, _)| *address);
        self.0.remove(&victim);
    }

    /// The node's last answer about it.
    pub(super) fn said(&self, peer: IpAddr) -> &[(u16, u16, u32)] {
        self.0.get(&peer).map_or(&[], |peer| &peer.flows)
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.0.values().map(|peer| peer.ask_at).min()
    }

    /// The peers to poll now: peers with connections first, peers that are only named last.
    pub(super) fn due(&mut self, now: Instant) -> Vec<IpAddr> {
        let mut due: Vec<_> = self.0.iter_mut().filter(|(_, peer)| peer.ask_at <= now).collect();
        due.sort_by_key(|(_, peer)| Reverse((!peer.flows.is_empty(), peer.is_known)));
        due.iter_mut().for_each(|(_, peer)| peer.ask_at = now + ASK_EVERY);
        due.into_iter().map(|(address, _)| *address).collect()
    }

    /// Takes the node's answer; `None` if there was none in time.
    pub(super) fn take(&mut self, now: Instant, address: IpAddr, answer: Option<FlowArrivals>) {
        let Some(peer) = self.0.get_mut(&address) else { return };
        match answer {
            Some(flows) => (peer.flows, peer.silent_since) = (flows, None),
            None => {
                let since = *peer.silent_since.get_or_insert(now);
                if now.since(since) >= KEPT_IN_SILENCE {
                    peer.flows.clear();
                }
            }
        }
        if !peer.flows.is_empty() {
            (peer.is_known, peer.left) = (true, MOST_ASKED);
            self.make_room(address);
            return;
        }
        peer.left = peer.left.saturating_sub(1);
        if peer.left == 0 {
            self.0.remove(&address);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(n: u32) -> IpAddr {
        IpAddr::V4(std::net::Ipv4Addr::from_bits(0x0a00_0000 + n))
    }

    fn flows() -> Option<FlowArrivals> {
        Some(vec![(1, 2, 3)])
    }

    #[test]
    fn made_up_origins_leave_known_peers_their_places() {
        let mut peers = PolledPeers::default();
        (1_000..2_000).for_each(|n| _ = peers.want(peer(n), false));
        assert_eq!(peers.len(), MOST_NAMED);
        assert!((1..=64).all(|n| peers.want(peer(n), true)), "each finds a place");
        peers.take(Instant::ZERO, peer(1), flows());
        (2_000..3_000).for_each(|n| _ = peers.want(peer(n), false));
        assert_eq!(peers.len(), MOST_KNOWN + MOST_NAMED);
        let due = peers.due(Instant::ZERO);
        assert_eq!(due[0], peer(1), "what has connections is asked about first");
        assert!(due[..MOST_KNOWN].iter().all(|due| *due < peer(1_000)));
        assert!(peers.due(Instant::ZERO).is_empty() && peers.next().is_some());
    }

    #[test]
    fn a_known_peer_takes_the_place_of_one_of_which_nothing_is_said_and_of_no_other() {
        let mut peers = PolledPeers::default();
        (1..=64).for_each(|n| _ = peers.want(peer(n), true));
        (1..=64).filter(|n| *n != 9).for_each(|n| peers.take(Instant::ZERO, peer(n), flows()));
        assert!(peers.want(peer(100), true));
        assert_eq!((peers.said(peer(9)), peers.len()), (&[][..], MOST_KNOWN));
        peers.take(Instant::ZERO, peer(100), flows());
        assert!(!peers.want(peer(101), true), "all of them have connections");
        peers.want(peer(102), false);
        peers.take(Instant::ZERO, peer(102), flows());
        assert_eq!((peers.said(peer(102)), peers.len()), (&[][..], MOST_KNOWN));
        assert!((1..=64).filter(|n| *n != 9).all(|n| !peers.said(peer(n)).is_empty()));
    }

    #[test]
    fn silence_keeps_what_is_known_for_some_seconds_and_an_answer_that_says_nothing_removes_it() {
        let mut peers = PolledPeers::default();
        let at = Instant::from_millis;
        peers.want(peer(1), true);
        peers.take(at(0), peer(1), flows());
        peers.take(at(100), peer(1), None);
        peers.take(at(5_000), peer(1), None);
        assert_eq!(peers.said(peer(1)), [(1, 2, 3)]);
        peers.take(at(5_100), peer(1), None);
        assert!(peers.said(peer(1)).is_empty());
        peers.take(at(6_000), peer(1), flows());
        peers.take(at(6_100), peer(1), None);
        peers.take(at(6_200), peer(1), flows());
        peers.take(at(11_150), peer(1), None);
        assert!(!peers.said(peer(1)).is_empty(), "silence begins anew");
        peers.take(at(11_200), peer(1), Some(FlowArrivals::new()));
        assert!(peers.said(peer(1)).is_empty());
    }

    #[test]
    fn peers_of_which_nothing_is_said_are_asked_about_no_more() {
        let mut peers = PolledPeers::default();
        peers.want(peer(1), true);
        peers.want(peer(2), false);
        peers.take(Instant::ZERO, peer(2), None);
        assert_eq!(peers.len(), 1);
        (0..MOST_ASKED).for_each(|_| peers.take(Instant::ZERO, peer(1), Some(FlowArrivals::new())));
        assert_eq!(peers.len(), 0);
        peers.take(Instant::ZERO, peer(1), flows());
        assert_eq!(peers.len(), 0);
    }
}
