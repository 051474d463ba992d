//! Nodes on this machine, such as `hopwise node` on a TUN device: their connections hear of paths over the control
//! sockets, and are asked what has arrived (`arrivals`).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path as FilePath, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use hopwise_core::agent::{Path, PathEvent};
use hopwise_core::endpoint::PathSeam;
use hopwise_core::{Instant, Seq};

use super::arrivals::Arrivals;
use crate::daemon::control::ask_within;
use crate::failure::Failure;
use crate::node::control::{PathNews, PathWhat, Request, Response};

/// News that wait for a node; a node that takes none loses them.
const MOST_WAITING: usize = 256;
/// What is known is said again so often: for connections that have begun since, and for nodes that were not there.
const SAY_AGAIN: Duration = Duration::from_secs(1);
const TOLD_WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Nodes {
    sockets: Vec<PathBuf>,
    tellers: Vec<SyncSender<PathNews>>,
    /// What the tellers' threads will hear, until they begin.
    news: Vec<Receiver<PathNews>>,
    /// Where routing messages say what has arrived.
    arrivals: Vec<Arrivals>,
}

impl Nodes {
    pub(super) fn new(sockets: &[PathBuf], says_arrivals: bool) -> Nodes {
        let (tellers, news) = sockets.iter().map(|_| sync_channel(MOST_WAITING)).unzip();
        let asked = if says_arrivals { sockets } else { &[] };
        let arrivals = asked.iter().map(|socket| Arrivals::new(socket)).collect();
        Nodes { sockets: sockets.to_vec(), tellers, news, arrivals }
    }

    /// Begins a thread for each node, and one that asks it.
    pub(super) fn begin(&mut self) -> Result<(), Failure> {
        for (socket, news) in self.sockets.iter().cloned().zip(self.news.drain(..)) {
            std::thread::Builder::new()
                .name("tell-a-node".into())
                .spawn(move || tell_on(&socket, &news))
                .map_err(|error| Failure::failed("start a thread", error))?;
        }
        self.arrivals.iter_mut().try_for_each(Arrivals::begin)
    }

    pub(super) fn tell(&self, peer: IpAddr, ports: Option<(u16, u16)>, event: PathEvent, path: &Path) {
        let what = match event {
            PathEvent::RouteFound => PathWhat::RouteFound,
            PathEvent::RouteFailed => PathWhat::RouteFailed,
            PathEvent::HopsChanged => PathWhat::HopsChanged,
            PathEvent::AckSeq(Seq(seq)) => PathWhat::AckSeq(seq),
        };
        self.arrivals.iter().for_each(|node| node.note(peer));
        let hops = path.hops_to_peer.map(|(hops, _)| hops);
        for teller in &self.tellers {
            if let Err(TrySendError::Full(news)) = teller.try_send(PathNews { peer, ports, what, hops }) {
                tracing::debug!(?news, "a node does not listen");
            }
        }
    }
}

/// The protocol asks what has arrived; what it says goes by orders.
impl PathSeam for Nodes {
    fn handle_path(&mut self, _: Instant, _: IpAddr, _: Option<(u16, u16)>, _: &PathEvent, _: &Path) {}

    fn ack_hints(&self, _: Instant, peer: IpAddr, sink: &mut dyn FnMut((u16, u16), Seq)) {
        self.arrivals.iter().for_each(|node| node.of(peer, sink));
    }
}

/// What a node should know by now: how far its peers are, and for a while that there is no way to one any more. A node
/// that is held up may take news that nobody waits for any longer after the ones that came later.
#[derive(Debug, Default)]
struct Known(BTreeMap<IpAddr, Option<u8>>);

impl Known {
    fn take(&mut self, news: &PathNews) {
        match news.what {
            PathWhat::AckSeq(_) => {}
            PathWhat::RouteFound | PathWhat::HopsChanged => {
                self.0.insert(news.peer, news.hops);
            }
            PathWhat::RouteFailed => {
                self.0.insert(news.peer, None);
            }
        }
    }

    fn again(&self) -> Vec<PathNews> {
        let of = |(peer, hops): (&IpAddr, &Option<u8>)| PathNews {
            peer: *peer,
            ports: None,
            what: PathWhat::HopsChanged,
            hops: *hops,
        };
        self.0.iter().map(of).take(MOST_WAITING).collect()
    }

    /// It heard all of that.
    fn was_heard(&mut self) {
        self.0.retain(|_, hops| hops.is_some());
    }
}

/// Until the daemon ends.
fn tell_on(socket: &FilePath, news: &Receiver<PathNews>) {
    let mut known = Known::default();
    let mut is_heard = true;
    loop {
        let (said, is_again): (Vec<_>, bool) = match news.recv_timeout(SAY_AGAIN) {
            Ok(first) => (std::iter::once(first).chain(news.try_iter()).collect(), false),
            Err(RecvTimeoutError::Timeout) => (known.again(), true),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        said.iter().for_each(|news| known.take(news));
        if said.is_empty() {
            continue;
        }
        let answer = ask_within(socket, &Request::Paths { news: said }, TOLD_WITHIN);
        let was_heard = std::mem::replace(&mut is_heard, matches!(answer, Ok(Response::Told)));
        if is_again && is_heard {
            known.was_heard();
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
        let news = |what, hops| PathNews { peer, ports: None, what, hops };
        let mut known = Known::default();
        known.take(&news(PathWhat::RouteFound, Some(3)));
        known.take(&news(PathWhat::HopsChanged, Some(4)));
        known.take(&news(PathWhat::AckSeq(7), Some(4)));
        assert_eq!(known.again(), [news(PathWhat::HopsChanged, Some(4))]);
        known.was_heard();
        assert_eq!(known.again(), [news(PathWhat::HopsChanged, Some(4))]);
        known.take(&news(PathWhat::RouteFailed, None));
        assert_eq!(known.again(), [news(PathWhat::HopsChanged, None)]);
        known.was_heard();
        assert!(known.again().is_empty());
    }
}
