//! Arrivals at nodes on this machine. A thread of its own polls each node, so that none delays the daemon.

mod peers;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hopwise_core::Seq;
use hopwise_host::Clock;

use self::peers::{FlowArrivals, PolledPeers};
use hopwise_daemon::control::ask_within;
use hopwise_daemon::failure::Failure;
use hopwise_daemon::spawn;
use hopwise_node::control::{Request, Response};

/// The time within which a node has to answer.
const SAID_WITHIN: Duration = Duration::from_millis(200);

/// The latest answers of one node.
#[derive(Debug)]
pub(super) struct NodeArrivals {
    peers: Arc<Mutex<PolledPeers>>,
    /// Wakes the thread for a new peer.
    bell: SyncSender<()>,
    /// The state of its thread, until that starts.
    asker: Option<Asker>,
}

impl NodeArrivals {
    pub(super) fn new(socket: &Path) -> NodeArrivals {
        let (bell, rings) = sync_channel(1);
        let peers = Arc::default();
        let asker =
            Asker { socket: socket.to_owned(), rings, peers: Arc::clone(&peers), clock: Clock::start() };
        NodeArrivals { peers, bell, asker: Some(asker) }
    }

    pub(super) fn begin(&mut self) -> Result<(), Failure> {
        let Some(asker) = self.asker.take() else { return Ok(()) };
        spawn("ask-a-node", move || asker.run())
    }

    /// Notes that connections go to that peer.
    pub(super) fn note(&self, peer: IpAddr) {
        self.want(peer, true);
    }

    /// Gives the known arrivals, and has the peer polled for later calls.
    pub(super) fn of(&self, peer: IpAddr, sink: &mut dyn FnMut((u16, u16), Seq)) {
        self.want(peer, false);
        let peers = locked(&self.peers);
        peers.said(peer).iter().for_each(|(theirs, ours, seq)| sink((*theirs, *ours), Seq(*seq)));
    }

    fn want(&self, peer: IpAddr, is_known: bool) {
        if locked(&self.peers).want(peer, is_known) {
            // One wake-up is enough.
            let _ = self.bell.try_send(());
        }
    }
}

fn locked(peers: &Mutex<PolledPeers>) -> MutexGuard<'_, PolledPeers> {
    peers.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct Asker {
    socket: PathBuf,
    rings: Receiver<()>,
    peers: Arc<Mutex<PolledPeers>>,
    clock: Clock,
}

impl Asker {
    /// Runs until the daemon ends.
    fn run(&self) {
        loop {
            let next = locked(&self.peers).next();
            let rung = match next {
                Some(next) => self.rings.recv_timeout(next.since(self.clock.now())),
                None => self.rings.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            if rung == Err(RecvTimeoutError::Disconnected) {
                return;
            }
            self.ask_all();
        }
    }

    /// Polls all due peers. A node that does not answer in time is polled no more in this round.
    fn ask_all(&self) {
        let due = locked(&self.peers).due(self.clock.now());
        let mut is_silent = false;
        for peer in due {
            let answer = if is_silent { None } else { ask(&self.socket, peer) };
            is_silent = answer.is_none();
            locked(&self.peers).take(self.clock.now(), peer, answer);
        }
    }
}

/// `None`: the node did not answer in time, or refused the request.
fn ask(socket: &Path, peer: IpAddr) -> Option<FlowArrivals> {
    match ask_within(socket, &Request::Arrivals { peer }, SAID_WITHIN) {
        Ok(Response::Arrivals { flows }) => Some(flows),
        Ok(_) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;

    use super::*;

    /// The node answers in the thread of the test, which a call that waits for the answer would block.
    #[test]
    fn what_has_arrived_is_known_without_waiting_for_the_node() {
        let path = std::env::temp_dir().join(format!("hopwise-arrivals-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let node = UnixListener::bind(&path).expect("the temporary folder can be written");
        let mut arrivals = NodeArrivals::new(&path);
        arrivals.begin().expect("a thread");
        let peer = IpAddr::from([10, 0, 0, 9]);
        let known = || {
            let mut known = Vec::new();
            arrivals.of(peer, &mut |ports, seq| known.push((ports, seq)));
            known
        };
        arrivals.note(peer);
        let said = loop {
            let said = known();
            if !said.is_empty() {
                break said;
            }
            let (mut asks, _) = node.accept().expect("a question");
            let mut question = String::new();
            BufReader::new(&asks).read_line(&mut question).expect("a line");
            assert!(question.contains("10.0.0.9"), "{question}");
            let answer = Response::Arrivals { flows: vec![(5_001, 40_000, 7)] };
            let line = format!("{}\n", serde_json::to_string(&answer).expect("JSON"));
            // It may have been too late for this one; there will be another.
            let _ = asks.write_all(line.as_bytes());
        };
        assert_eq!(said, [((5_001, 40_000), Seq(7))]);
        std::fs::remove_file(&path).expect("it is there");
    }
}
