//! What has arrived at nodes on this machine, asked of each by a thread of its own, so that none holds the daemon up.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hopwise_core::Seq;

use crate::daemon::control::ask_within;
use crate::failure::Failure;
use crate::node::control::{Request, Response};

/// How old an answer is at most while a node answers in time.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// A node that says nothing within that time has said nothing.
const SAID_WITHIN: Duration = Duration::from_millis(200);
/// Peers that a node is asked about, and how often in a row without an answer that says anything.
const MOST_PEERS: usize = 64;
const MOST_ASKED: u32 = 50;
/// Peers that wait to be asked about; others are left out.
const MOST_WAITING: usize = 64;

/// The peer's port, ours, and up to where it has arrived.
type Flows = Vec<(u16, u16, u32)>;

/// A peer to ask about.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    peer: IpAddr,
    /// Connections go there, and not only a stranger's request names it.
    is_known: bool,
}

/// What one node has said last.
#[derive(Debug)]
pub(super) struct Arrivals {
    wanted: SyncSender<Wanted>,
    said: Arc<Mutex<BTreeMap<IpAddr, Flows>>>,
    /// For its thread, until that begins.
    asker: Option<Asker>,
}

impl Arrivals {
    pub(super) fn new(socket: &Path) -> Arrivals {
        let (wanted, peers) = sync_channel(MOST_WAITING);
        let said = Arc::default();
        let asker =
            Asker { socket: socket.to_owned(), peers, said: Arc::clone(&said), asked: BTreeMap::new() };
        Arrivals { wanted, said, asker: Some(asker) }
    }

    pub(super) fn begin(&mut self) -> Result<(), Failure> {
        let Some(mut asker) = self.asker.take() else { return Ok(()) };
        std::thread::Builder::new()
            .name("ask-a-node".into())
            .spawn(move || asker.run())
            .map_err(|error| Failure::failed("start a thread", error))?;
        Ok(())
    }

    /// Connections go to that peer.
    pub(super) fn note(&self, peer: IpAddr) {
        let _ = self.wanted.try_send(Wanted { peer, is_known: true });
    }

    /// What is known now. The next time more may be.
    pub(super) fn of(&self, peer: IpAddr, sink: &mut dyn FnMut((u16, u16), Seq)) {
        let _ = self.wanted.try_send(Wanted { peer, is_known: false });
        let said = locked(&self.said);
        let flows = said.get(&peer).into_iter().flatten();
        flows.for_each(|(theirs, ours, seq)| sink((*theirs, *ours), Seq(*seq)));
    }
}

fn locked(said: &Mutex<BTreeMap<IpAddr, Flows>>) -> MutexGuard<'_, BTreeMap<IpAddr, Flows>> {
    said.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct Asker {
    socket: PathBuf,
    peers: Receiver<Wanted>,
    said: Arc<Mutex<BTreeMap<IpAddr, Flows>>>,
    /// How often each peer may still be asked about in vain.
    asked: BTreeMap<IpAddr, u32>,
}

impl Asker {
    /// Until the daemon ends.
    fn run(&mut self) {
        loop {
            let first = if self.asked.is_empty() {
                self.peers.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                self.peers.recv_timeout(ASK_EVERY)
            };
            if matches!(first, Err(RecvTimeoutError::Disconnected)) {
                return;
            }
            let more: Vec<_> = first.into_iter().chain(self.peers.try_iter()).collect();
            more.into_iter().for_each(|wanted| self.want(wanted));
            self.ask_all();
        }
    }

    fn want(&mut self, Wanted { peer, is_known }: Wanted) {
        let times = if is_known { MOST_ASKED } else { 1 };
        if self.asked.len() < MOST_PEERS || self.asked.contains_key(&peer) {
            let left = self.asked.entry(peer).or_default();
            *left = (*left).max(times);
        }
    }

    /// A node that does not answer in time is asked nothing more in this round, and nothing is known of it.
    fn ask_all(&mut self) {
        let mut is_silent = false;
        for (peer, left) in &mut self.asked {
            let answer = if is_silent { None } else { ask(&self.socket, *peer) };
            is_silent = answer.is_none();
            let flows = answer.unwrap_or_default();
            *left = if flows.is_empty() { left.saturating_sub(1) } else { MOST_ASKED };
            let mut said = locked(&self.said);
            if flows.is_empty() {
                said.remove(peer);
            } else {
                said.insert(*peer, flows);
            }
        }
        self.asked.retain(|_, left| *left > 0);
    }
}

/// `None`: the node did not answer in time.
fn ask(socket: &Path, peer: IpAddr) -> Option<Flows> {
    match ask_within(socket, &Request::Arrivals { peer }, SAID_WITHIN) {
        Ok(Response::Arrivals { flows }) => Some(flows),
        Ok(_) => Some(Flows::new()),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;

    use super::*;

    /// The node answers in the very thread that asks, which a question that waits for its answer never lets it do.
    #[test]
    fn what_has_arrived_is_known_without_waiting_for_the_node() {
        let path = std::env::temp_dir().join(format!("hopwise-arrivals-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let node = UnixListener::bind(&path).expect("the temporary folder can be written");
        let mut arrivals = Arrivals::new(&path);
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

    #[test]
    fn peers_of_which_nothing_is_said_are_asked_about_no_more() {
        let mut arrivals = Arrivals::new(Path::new("/nonexistent/node.sock"));
        let mut asker = arrivals.asker.take().expect("it has not begun");
        let peer = |n| IpAddr::from([10, 0, 0, n]);
        asker.want(Wanted { peer: peer(1), is_known: true });
        (2..=250).for_each(|n| asker.want(Wanted { peer: peer(n), is_known: false }));
        assert_eq!(asker.asked.len(), MOST_PEERS);
        asker.ask_all();
        assert_eq!(asker.asked.into_iter().collect::<Vec<_>>(), [(peer(1), MOST_ASKED - 1)]);
    }
}
