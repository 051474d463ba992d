//! Bounds the number of simultaneous lookups at the system's resolver. Each holds a thread of the runtime until the
//! resolver answers, even if no client waits any more. The control socket and the node's end need such threads.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::origin::{Origin, Sharer};

/// The runtime has 512 threads for blocking calls. SOCKS5 has this many for names, and so have all forwards together. A
/// source begins a lookup only while more are free than it has: two or three that flood leave some to others.
pub(super) const MOST: usize = 32;
/// The longest time that a client waits until its lookup may begin.
const BEGINS_WITHIN: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, Default)]
pub(super) struct Lookups(Arc<LookupSlots>);

#[derive(Debug, Default)]
struct LookupSlots {
    /// The number of running lookups for each source.
    running: Mutex<BTreeMap<Sharer, usize>>,
    ended: Notify,
}

/// A running lookup.
struct RunningLookup {
    shared: Arc<LookupSlots>,
    source: Sharer,
}

impl Lookups {
    /// The number of running lookups.
    pub(super) fn running(&self) -> usize {
        self.0.running.lock().values().sum()
    }

    /// Runs a lookup for a client from there as soon as it may begin.
    pub(super) async fn run(
        &self,
        from: Origin,
        look_up: impl FnOnce() -> io::Result<Vec<SocketAddr>> + Send + 'static,
    ) -> io::Result<Vec<SocketAddr>> {
        let begun = timeout(BEGINS_WITHIN, self.begin(from.sharer())).await;
        let running = begun.map_err(|_| {
            let problem = "too many names are being looked up; try again when the resolver has answered";
            io::Error::new(io::ErrorKind::TimedOut, problem)
        })?;
        let asked = spawn_blocking(move || {
            let found = look_up();
            drop(running);
            found
        });
        asked.await.map_err(io::Error::other)?
    }

    async fn begin(&self, source: Sharer) -> RunningLookup {
        loop {
            let mut ended = std::pin::pin!(self.0.ended.notified());
            // A lookup that ends from here on wakes this one.
            ended.as_mut().enable();
            if let Some(running) = self.0.begin(source) {
                return running;
            }
            ended.await;
        }
    }
}

impl LookupSlots {
    fn begin(self: &Arc<Self>, source: Sharer) -> Option<RunningLookup> {
        let mut running = self.running.lock();
        let of_source = running.get(&source).copied().unwrap_or(0);
        if of_source >= MOST - running.values().sum::<usize>() {
            return None;
        }
        running.insert(source, of_source + 1);
        Some(RunningLookup { shared: Arc::clone(self), source })
    }
}

impl Drop for RunningLookup {
    fn drop(&mut self) {
        let mut running = self.shared.running.lock();
        if let Some(of_source) = running.get_mut(&self.source) {
            *of_source -= 1;
            if *of_source == 0 {
                running.remove(&self.source);
            }
        }
        drop(running);
        self.shared.ended.notify_waiters();
    }
}

// Resolves names to addresses: the configuration's own first, then the system's.

/// The largest number of addresses of one name that are tried, in the resolver's order.
const MOST_TRIED: usize = 4;

#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    hosts: Arc<BTreeMap<String, IpAddr>>,
    pub(super) lookups: Lookups,
}

impl Names {
    pub(super) fn new(hosts: &BTreeMap<String, IpAddr>) -> Names {
        Names { hosts: Arc::new(hosts.clone()), lookups: Lookups::default() }
    }

    /// Resolves a name for a client from `from`.
    pub(super) async fn resolve(&self, from: Origin, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let known = host.parse().ok().or_else(|| self.hosts.get(host).copied());
        if let Some(ip) = known {
            return Ok(vec![SocketAddr::new(ip, port)]);
        }
        let asked = (host.to_owned(), port);
        let look_up = move || asked.to_socket_addrs().map(|found| found.take(MOST_TRIED).collect());
        let found: Vec<_> = self.lookups.run(from, look_up).await?;
        if found.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address")));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;
    use std::sync::mpsc;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn found(port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(vec![SocketAddr::new(HERE, port)])
    }

    /// A resolver that does not answer blocks neither another source nor other work on the runtime's threads.
    #[test]
    fn names_that_nobody_resolves_hold_up_neither_other_sources_nor_other_work() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().max_blocking_threads(MOST + 1).build().expect("a runtime");
        let lookups = Lookups::default();
        runtime.block_on(async {
            let mut slow = Vec::new();
            // Each flooding source has as many addresses as it likes.
            for nth in 0..100 {
                for from in [[127, 0, 0, nth], [10, 7, 0, 9]] {
                    let (answer, answered) = mpsc::channel::<()>();
                    let resolver = move || {
                        let _ = answered.recv();
                        found(1)
                    };
                    let lookups = lookups.clone();
                    let asks = tokio::spawn(async move { lookups.run(Origin::from(from), resolver).await });
                    slow.push((asks, answer));
                }
                tokio::task::yield_now().await;
                if nth == 50 {
                    let patience = Duration::from_secs(60);
                    let other = timeout(patience, spawn_blocking(|| 7)).await.expect("a thread is free");
                    assert_eq!(other.expect("no panic"), 7);
                }
            }
            // Both sources together leave 10 free, fewer than each of them has.
            let running: Vec<usize> = lookups.0.running.lock().values().copied().collect();
            assert_eq!(running, [11, 11]);
            // A client that hangs up ends no lookup.
            slow.iter().map(|(asks, _)| asks).for_each(tokio::task::JoinHandle::abort);
            tokio::task::yield_now().await;
            assert_eq!(lookups.0.running.lock().values().sum::<usize>(), 22);
            let third = Origin::from([10, 9, 0, 1]);
            let answered = timeout(Duration::from_secs(60), lookups.run(third, || found(80))).await;
            assert!(answered.expect("a third source does not wait").is_ok());
            drop(slow);
            let answered = timeout(Duration::from_secs(60), lookups.run(HERE.into(), || found(80))).await;
            assert_eq!(
                answered.expect("the others have ended").expect("it is found"),
                found(80).expect("so")
            );
        });
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_with_its_share_waits_for_a_while_and_is_refused() {
        let lookups = Lookups::default();
        let begin = || lookups.0.begin(Origin::from(HERE).sharer());
        let mut held: Vec<RunningLookup> = std::iter::from_fn(begin).take(2 * MOST).collect();
        assert_eq!(held.len(), MOST / 2);
        let refused = lookups.run(HERE.into(), || found(80)).await.expect_err("none of its own has ended");
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
        let there = lookups.run(Origin::from([10, 7, 0, 9]), || found(80)).await;
        assert!(there.is_ok());
        let ends = async {
            tokio::time::sleep(BEGINS_WITHIN / 2).await;
            held.pop();
        };
        let (waits, ()) = tokio::join!(lookups.run(HERE.into(), || found(80)), ends);
        assert!(waits.is_ok());
    }

    #[tokio::test]
    async fn own_names_and_addresses_need_no_resolver() {
        let names = Names::new(&BTreeMap::from([("gateway".to_owned(), IpAddr::from([10, 7, 0, 1]))]));
        let one = |text: &str| text.parse().map(|address| vec![address]).expect("an address");
        let from = Origin::from([127, 0, 0, 1]);
        assert_eq!(names.resolve(from, "gateway", 80).await.expect("known"), one("10.7.0.1:80"));
        assert_eq!(names.resolve(from, "fd07::1", 80).await.expect("an address"), one("[fd07::1]:80"));
    }
}
