//! Places of ways whose hosts have not answered yet. Each port of a server has a few.
//!
//! The last node opens a whole connection to the server before a host has shown that it sent the SYN, where a router
//! alone would let half of one open. Anyone can send SYNs in the names of hosts. A host that exists answers this
//! machine's kernel within milliseconds, and its way leaves its place then. Further SYNs wait for a place for a while,
//! and go straight on in the end. Honest hosts that come at once thus wait for a round or two, since each way that is
//! carried adds a place. A crowd of SYNs in one name leaves places for other hosts, as seats do.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use super::decisions::Ends;
use crate::origin::Origin;
use crate::seats::ClientCounts;

/// The places at a port to which no way is carried. A browser opens six connections at a time, and one address can take
/// half of the places. A server for which connections are dear bears sixteen that say nothing: sshd refuses the
/// first of them beyond ten, and all of them beyond a hundred.
const MOST: usize = 16;

#[derive(Debug, Default)]
pub(super) struct UnansweredWays {
    servers: Mutex<BTreeMap<SocketAddr, ServerWays>>,
}

#[derive(Debug, Default)]
struct ServerWays {
    /// The hosts of ways that are being opened, or wait for their hosts.
    unanswered: Vec<Origin>,
    carried: usize,
    /// Wakes the SYNs that wait for a place at this server, and no SYN to another server.
    changed: Arc<Notify>,
}

/// The place of a way at a server. It has no host once its host has answered.
#[derive(Debug)]
pub(super) struct WayPlace {
    all: Arc<UnansweredWays>,
    server: SocketAddr,
    host: Option<Origin>,
}

impl ServerWays {
    fn free(&self) -> usize {
        (MOST + self.carried).saturating_sub(self.unanswered.len())
    }
}

impl UnansweredWays {
    /// Waits for a place.
    pub(super) async fn place(self: &Arc<Self>, ends: Ends) -> WayPlace {
        loop {
            match self.free_place(ends) {
                Ok(place) => return place,
                Err(changed) => changed.await,
            }
        }
    }

    /// Takes a free place, or tells when to look again.
    fn free_place(self: &Arc<Self>, (host, server): Ends) -> Result<WayPlace, OwnedNotified> {
        let host = Origin::from(host.ip());
        let mut servers = self.servers.lock();
        let ways = servers.entry(server).or_default();
        if !ClientCounts::of(ways.unanswered.iter().copied()).leave_room(host, ways.free()) {
            return Err(Arc::clone(&ways.changed).notified_owned());
        }
        ways.unanswered.push(host);
        Ok(WayPlace { all: Arc::clone(self), server, host: Some(host) })
    }

    /// Returns whether half of a server's places are taken, as by one address.
    pub(super) fn is_crowded(&self, server: SocketAddr) -> bool {
        self.servers.lock().get(&server).is_some_and(|ways| ways.unanswered.len() >= ways.free())
    }
}

impl WayPlace {
    /// The host has answered: its way is carried.
    pub(super) fn is_answered(&mut self) {
        self.leaves(1);
    }

    /// A way leaves its place, and so many ways are carried then.
    fn leaves(&mut self, carried: usize) {
        let mut servers = self.all.servers.lock();
        let ways = servers.entry(self.server).or_default();
        let unanswered = &mut ways.unanswered;
        match self.host.take().map(|host| unanswered.iter().position(|other| *other == host)) {
            Some(nth) => drop(nth.map(|nth| unanswered.swap_remove(nth))),
            None => ways.carried -= 1,
        }
        ways.carried += carried;
        ways.changed.notify_waiters();
        if ways.unanswered.is_empty() && ways.carried == 0 {
            servers.remove(&self.server);
        }
    }
}

impl Drop for WayPlace {
    fn drop(&mut self) {
        self.leaves(0);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use tokio::task::yield_now;
    use tokio::time::timeout;

    use super::*;

    fn ends(host: u8, server_port: u16) -> Ends {
        (SocketAddr::from(([10, 1, 0, host], 40_000)), SocketAddr::from(([10, 2, 0, 2], server_port)))
    }

    fn places(ways: &Arc<UnansweredWays>, hosts: impl Iterator<Item = u8>) -> Vec<WayPlace> {
        hosts.map_while(|host| ways.free_place(ends(host, 80)).ok()).collect()
    }

    #[test]
    fn a_port_of_a_server_has_few_places_and_one_address_half_of_them() {
        let ways = Arc::new(UnansweredWays::default());
        let of_one = places(&ways, std::iter::repeat(2));
        assert_eq!(of_one.len(), MOST / 2);
        assert!(ways.is_crowded(ends(2, 80).1) && ways.free_place(ends(2, 81)).is_ok());
        let of_more = places(&ways, 3..);
        assert!(of_one.len() + of_more.len() < MOST + 1 && of_more.len() > MOST / 4, "{}", of_more.len());
        drop((of_one, of_more));
        assert!(ways.servers.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn each_way_that_is_carried_adds_a_place_while_it_lasts() {
        let ways = Arc::new(UnansweredWays::default());
        let mut first = places(&ways, 1..);
        let waits = |host| {
            let ways = Arc::clone(&ways);
            async move { timeout(Duration::from_secs(1), ways.place(ends(host, 80))).await.is_err() }
        };
        assert!(waits(200).await);
        let many = first.len();
        first.iter_mut().for_each(WayPlace::is_answered);
        assert!(!ways.is_crowded(ends(1, 80).1) && !waits(200).await);
        assert!(places(&ways, 1..).len() > many);
        drop(first);
        assert_eq!(places(&ways, 1..).len(), many);
        assert!(ways.servers.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_a_place_gets_it_when_another_way_leaves() {
        let ways = Arc::new(UnansweredWays::default());
        let mut first = places(&ways, 1..);
        let (place, ()) = tokio::join!(ways.place(ends(200, 80)), async { drop(first.pop()) });
        assert_eq!(place.host, Some(Origin::from(ends(200, 80).0.ip())));
    }

    #[tokio::test]
    async fn a_way_that_leaves_wakes_nobody_who_waits_at_another_server() {
        let (ways, looks) = (Arc::new(UnansweredWays::default()), Arc::new(AtomicUsize::new(0)));
        let mut first = places(&ways, 1..);
        let waiting = tokio::spawn({
            let (ways, looks) = (Arc::clone(&ways), Arc::clone(&looks));
            async move {
                let mut place = pin!(ways.place(ends(200, 80)));
                poll_fn(|cx| {
                    looks.fetch_add(1, Ordering::Relaxed);
                    place.as_mut().poll(cx)
                })
                .await
            }
        });
        for _ in 0..20 {
            yield_now().await;
            drop(ways.free_place(ends(1, 81)));
        }
        yield_now().await;
        drop(first.pop());
        drop(waiting.await.expect("it gets a place"));
        assert_eq!(looks.load(Ordering::Relaxed), 2, "at once, and when a way of its server has left");
    }
}
