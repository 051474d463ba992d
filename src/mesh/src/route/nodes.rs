//! Nodes on this machine, such as `hopwise node` on a TUN device. They get news of paths over their control sockets,
//! and are polled for arrivals (`arrivals`).

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::path::{Path as FilePath, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hopwise_core::agent::{Path, PathEvent};
use hopwise_core::endpoint::PathSeam;
use hopwise_core::{Instant, Seq};
use hopwise_host::Clock;

use super::arrivals::NodeArrivals;
use hopwise_daemon::control::ask_within;
use hopwise_daemon::failure::Failure;
use hopwise_daemon::spawn;
use hopwise_node::control::{PathNews, PathWhat, Request, Response};

/// The largest number of waiting news of each kind; a node that takes none loses further ones.
const MOST_WAITING: usize = 256;
/// The largest number of peers whose hops are sent to a node again.
const MOST_KNOWN: usize = 4_096;
/// The interval at which known hops are sent again, for new connections and for nodes that were not there.
const SAY_AGAIN: Duration = Duration::from_secs(1);
const TOLD_WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct RoutedNodes {
    sockets: Vec<PathBuf>,
    tellers: Vec<NodeTeller>,
    /// The receivers of the threads' wake-ups, until the threads start.
    rings: Vec<Receiver<()>>,
    /// Empty unless routing messages carry arrivals.
    arrivals: Vec<NodeArrivals>,
}

impl RoutedNodes {
    pub(super) fn new(sockets: &[PathBuf], says_arrivals: bool) -> RoutedNodes {
        let teller = |_| {
            let (bell, rings) = sync_channel(1);
            (NodeTeller { news: Arc::default(), bell }, rings)
        };
        let (tellers, rings) = sockets.iter().map(teller).unzip();
        let asked = if says_arrivals { sockets } else { &[] };
        let arrivals = asked.iter().map(|socket| NodeArrivals::new(socket)).collect();
        RoutedNodes { sockets: sockets.to_vec(), tellers, rings, arrivals }
    }

    /// The bit rates of the links to next hops, by peer. Nodes get them with the hops, which are sent each second.
    pub(super) fn set_rates(&self, rates: &BTreeMap<IpAddr, u64>) {
        for teller in &self.tellers {
            locked(&teller.news).known.rates.clone_from(rates);
        }
    }

    /// Starts a thread for each node, and one that polls it.
    pub(super) fn begin(&mut self) -> Result<(), Failure> {
        let threads = self.sockets.iter().cloned().zip(self.rings.drain(..));
        for ((socket, rings), teller) in threads.zip(&self.tellers) {
            let news = Arc::clone(&teller.news);
            spawn("tell-a-node", move || tell_on(&socket, &news, &rings))?;
        }
        self.arrivals.iter_mut().try_for_each(NodeArrivals::begin)
    }
}

/// It never waits: threads tell and ask the nodes.
impl PathSeam for RoutedNodes {
    fn handle_path(
        &mut self,
        _: Instant,
        peer: IpAddr,
        ports: Option<(u16, u16)>,
        event: &PathEvent,
        path: &Path,
    ) {
        let what = match *event {
            PathEvent::RouteFound => PathWhat::RouteFound,
            PathEvent::RouteFailed => PathWhat::RouteFailed,
            PathEvent::HopsChanged => PathWhat::HopsChanged,
            PathEvent::AckSeq(Seq(seq)) => PathWhat::AckSeq(seq),
        };
        // Any node can send arrivals, so that these make no peer known.
        if !matches!(what, PathWhat::AckSeq(_)) {
            self.arrivals.iter().for_each(|node| node.note(peer));
        }
        let hops = path.hops_to_peer.map(|(hops, _)| hops);
        for teller in &self.tellers {
            let mut waiting = locked(&teller.news);
            let link_bps = waiting.known.rates.get(&peer).copied();
            let news = PathNews { peer, ports, what, hops, link_bps };
            if !waiting.take(news) {
                tracing::debug!(?news, "a node does not listen");
            }
            drop(waiting);
            // One wake-up is enough.
            let _ = teller.bell.try_send(());
        }
    }

    fn ack_hints(&self, peer: IpAddr, sink: &mut dyn FnMut((u16, u16), Seq)) {
        self.arrivals.iter().for_each(|node| node.of(peer, sink));
    }
}

#[derive(Debug)]
struct NodeTeller {
    news: Arc<Mutex<NewsQueue>>,
    bell: SyncSender<()>,
}

fn locked(news: &Mutex<NewsQueue>) -> MutexGuard<'_, NewsQueue> {
    news.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The waiting news for a node. Any host can cause arrivals, which take no room from news of routes.
#[derive(Debug, Default)]
struct NewsQueue {
    known: PathMemory,
    paths: VecDeque<PathNews>,
    arrivals: VecDeque<PathNews>,
}

impl NewsQueue {
    /// Returns whether there is room.
    fn take(&mut self, news: PathNews) -> bool {
        self.known.take(&news);
        let waiting = match news.what {
            PathWhat::AckSeq(_) => &mut self.arrivals,
            PathWhat::RouteFound | PathWhat::RouteFailed | PathWhat::HopsChanged => &mut self.paths,
        };
        let has_room = waiting.len() < MOST_WAITING;
        if has_room {
            waiting.push_back(news);
        }
        has_room
    }

    fn waiting(&mut self) -> Vec<PathNews> {
        self.paths.drain(..).chain(self.arrivals.drain(..)).collect()
    }
}

/// The facts that a node should know: the hops to its peers, and for a while the peers without a route. A delayed node
/// may take expired news after later ones.
#[derive(Debug, Default)]
struct PathMemory {
    hops: BTreeMap<IpAddr, Option<u8>>,
    /// The bit rate of the link to the next hop on the way to a peer.
    rates: BTreeMap<IpAddr, u64>,
    /// The peer that was sent last; the next ones follow.
    last: Option<IpAddr>,
}

impl PathMemory {
    fn take(&mut self, news: &PathNews) {
        let hops = match news.what {
            PathWhat::AckSeq(_) => return,
            PathWhat::RouteFound | PathWhat::HopsChanged => news.hops,
            PathWhat::RouteFailed => None,
        };
        if self.hops.len() >= MOST_KNOWN && !self.hops.contains_key(&news.peer) {
            // Lost routes give way to new peers; existing routes do not.
            let gone = self.hops.iter().find(|(_, hops)| hops.is_none()).map(|(peer, _)| *peer);
            let Some(gone) = gone else { return };
            self.hops.remove(&gone);
        }
        self.hops.insert(news.peer, hops);
    }

    /// As many as may wait; all of them get their turns.
    fn again(&mut self) -> Vec<PathNews> {
        let of = |(peer, hops): (&IpAddr, &Option<u8>)| PathNews {
            peer: *peer,
            ports: None,
            what: PathWhat::HopsChanged,
            hops: *hops,
            link_bps: hops.and_then(|_| self.rates.get(peer).copied()),
        };
        let last = self.last;
        let later = self.hops.range((last.map_or(Unbounded, Excluded), Unbounded));
        let before = last.into_iter().flat_map(|last| self.hops.range((Unbounded, Included(last))));
        let said: Vec<_> = later.chain(before).map(of).take(MOST_WAITING).collect();
        self.last = said.last().map(|news| news.peer);
        said
    }

    /// Forgets lost routes that the node has received.
    fn was_heard(&mut self, said: &[PathNews]) {
        for news in said.iter().filter(|news| news.hops.is_none()) {
            if self.hops.get(&news.peer).is_some_and(Option::is_none) {
                self.hops.remove(&news.peer);
            }
        }
    }
}

/// Sends news to a node until the daemon ends.
fn tell_on(socket: &FilePath, news: &Mutex<NewsQueue>, rings: &Receiver<()>) {
    let clock = Clock::start();
    let mut again_at = clock.now() + SAY_AGAIN;
    let mut is_heard = true;
    let tell = |said: &[PathNews]| {
        let answer = ask_within(socket, &Request::Paths { news: said.to_vec() }, TOLD_WITHIN);
        matches!(answer, Ok(Response::Taken))
    };
    loop {
        if rings.recv_timeout(again_at.since(clock.now())) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
        let was_heard = is_heard;
        let said = locked(news).waiting();
        for part in said.chunks(MOST_WAITING) {
            is_heard = tell(part);
        }
        if again_at <= clock.now() {
            let again = locked(news).known.again();
            if !again.is_empty() {
                is_heard = tell(&again);
            }
            if is_heard {
                locked(news).known.was_heard(&again);
            }
            again_at = clock.now() + SAY_AGAIN;
        }
        if was_heard != is_heard {
            tracing::info!(node = %socket.display(), is_heard, "paths are told");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_node_should_know_is_said_again_and_that_a_route_has_failed_until_it_is_heard() {
        let peer = IpAddr::from([10, 0, 0, 9]);
        let news = |what, hops| PathNews { peer, ports: None, what, hops, link_bps: None };
        let mut known = PathMemory::default();
        let heard = |known: &mut PathMemory| {
            let said = known.again();
            known.was_heard(&said);
        };
        known.take(&news(PathWhat::RouteFound, Some(3)));
        known.take(&news(PathWhat::HopsChanged, Some(4)));
        known.take(&news(PathWhat::AckSeq(7), Some(4)));
        assert_eq!(known.again(), [news(PathWhat::HopsChanged, Some(4))]);
        heard(&mut known);
        assert_eq!(known.again(), [news(PathWhat::HopsChanged, Some(4))]);
        known.rates.insert(peer, 11_000_000);
        let rated = PathNews { link_bps: Some(11_000_000), ..news(PathWhat::HopsChanged, Some(4)) };
        assert_eq!(known.again(), [rated], "with the bit rate of the next hop's link");
        known.take(&news(PathWhat::RouteFailed, None));
        assert_eq!(known.again(), [news(PathWhat::HopsChanged, None)]);
        heard(&mut known);
        assert!(known.again().is_empty());
    }

    #[test]
    fn made_up_peers_and_numbers_keep_no_way_from_being_told() {
        let peer = |n: u32| IpAddr::V4(std::net::Ipv4Addr::from_bits(n));
        let news = |n, what| PathNews { peer: peer(n), ports: None, what, hops: Some(3), link_bps: None };
        let mut all = NewsQueue::default();
        (0..1_000).for_each(|n| _ = all.take(news(n, PathWhat::AckSeq(n))));
        assert!(all.take(news(9_000, PathWhat::RouteFound)), "numbers have their own room");
        assert_eq!(all.waiting().len(), MOST_WAITING + 1);
        (0..MOST_KNOWN as u32 * 2).for_each(|n| _ = all.take(news(n, PathWhat::RouteFailed)));
        assert_eq!((all.known.hops.len(), all.paths.len()), (MOST_KNOWN, MOST_WAITING));
        let rounds = MOST_KNOWN / MOST_WAITING;
        let is_told = (0..rounds).any(|_| all.known.again().contains(&news(9_000, PathWhat::HopsChanged)));
        assert!(is_told, "each has its turn");
    }
}
