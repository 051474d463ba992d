//! Tells connections the facts about our own link on the way to their peers.
//!
//! A thread finds the station that gets the packets for a peer first: a link that finds neighbours itself names it, and
//! for a TUN device the kernel does, by its route and its neighbours. The facts about that station come from the
//! [`StationSource`](crate::nl80211::StationSource) of the interface, as they are believed. A capture that runs gets
//! these facts, too.

mod stations;

use std::collections::BTreeMap;
use std::io;
use std::mem;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hopwise_core::{Endpoint, Instant, LinkFacts, NextHop, StationAddress};

use crate::capture::Capture;
use crate::clock::Clock;
use crate::driver::Driver;
use crate::fork;
use crate::nl80211::EVERY;
use crate::signals::NoHandlers;
use crate::stack::Stack;
use stations::StationReports;

/// The pause between two looks for the ways to peers.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The same where no way has stations: an interface may come to have some.
const LOOK_SELDOM: Duration = Duration::from_secs(1);
/// The peers whose ways are known. Connections to further peers have no facts.
const MOST_PEERS: usize = 256;
/// Telling more connections takes longer than is worth 20 times a second.
const MANY: usize = 2_000;

/// The thread that tells; it ends when this is dropped.
#[derive(Debug)]
pub struct LinkTeller {
    is_ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// The process that has the thread.
    process: u64,
}

impl LinkTeller {
    /// Tells the connections of these stacks, which share a clock, and the capture.
    pub fn start(stacks: Vec<Stack>, capture: Capture) -> io::Result<LinkTeller> {
        LinkTeller::tell(stacks, capture)
    }

    /// Tells the capture alone about the links to these peers, to which the kernel routes. `clock` gives the times.
    pub fn for_capture(peers: Vec<IpAddr>, clock: Clock, capture: Capture) -> io::Result<LinkTeller> {
        LinkTeller::tell(RoutedPeers { peers, clock }, capture)
    }

    fn tell(receivers: impl Receivers, capture: Capture) -> io::Result<LinkTeller> {
        let is_ending = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_ending);
        let tell = move || tell(&receivers, &capture, &ends);
        let _no_handlers = NoHandlers::on_this_thread();
        let thread = thread::Builder::new().name("first-links".into()).spawn(tell)?;
        Ok(LinkTeller { is_ending, thread: Some(thread), process: fork::process() })
    }
}

impl Drop for LinkTeller {
    fn drop(&mut self) {
        let _no_handlers = NoHandlers::on_this_thread();
        if self.process != fork::process() {
            return mem::forget(self.thread.take());
        }
        self.is_ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It has panicked, and has said so.
            let _ = thread.join();
        }
    }
}

/// The receivers of the facts. A capture may get them, too.
trait Receivers: Send + 'static {
    fn clock(&self) -> Option<Clock>;
    /// Adds the ways to peers, and returns the number of connections.
    fn add_ways(&self, ways: &mut BTreeMap<IpAddr, FirstHop>) -> usize;
    fn take(&self, links: &FirstLinks);
}

impl Receivers for Vec<Stack> {
    fn clock(&self) -> Option<Clock> {
        self.first().map(Stack::clock)
    }

    fn add_ways(&self, ways: &mut BTreeMap<IpAddr, FirstHop>) -> usize {
        let add = |stack: &Stack| stack.shared().look_at_driver(|driver| add_ways(driver, ways, MOST_PEERS));
        self.iter().map(add).sum()
    }

    fn take(&self, links: &FirstLinks) {
        for stack in self {
            stack.with(|_, endpoint| endpoint.set_links(&mut |peer| links.get(&peer).cloned()));
        }
    }
}

/// Peers to which the kernel routes, and no connections.
struct RoutedPeers {
    peers: Vec<IpAddr>,
    clock: Clock,
}

impl Receivers for RoutedPeers {
    fn clock(&self) -> Option<Clock> {
        Some(self.clock)
    }

    fn add_ways(&self, ways: &mut BTreeMap<IpAddr, FirstHop>) -> usize {
        ways.extend(self.peers.iter().take(MOST_PEERS).map(|peer| (*peer, FirstHop::ByKernel)));
        0
    }

    fn take(&self, _: &FirstLinks) {}
}

fn tell(to: &impl Receivers, capture: &Capture, is_ending: &AtomicBool) {
    let Some(clock) = to.clock() else { return };
    let mut stations = StationReports::default();
    let mut look_at = Instant::ZERO;
    let mut are_many = false;
    let mut told = Arc::new(FirstLinks::new());
    while !is_ending.load(Ordering::Relaxed) {
        let now = clock.now();
        if look_at <= now {
            let mut ways = BTreeMap::new();
            are_many = to.add_ways(&mut ways) > MANY;
            stations.look(now, &ways, is_ending);
            look_at = now + if stations.has_any() { LOOK_EVERY } else { LOOK_SELDOM };
        }
        stations.poll(now);
        let known = stations.facts(now);
        if known != *told {
            told = Arc::new(known);
            to.take(&told);
            capture.tell_links(&told);
        }
        let until_look = look_at.since(clock.now());
        thread::park_timeout(if stations.has_any() && !are_many { EVERY } else { until_look });
    }
}

/// The facts about our own link on the way to each peer.
pub type FirstLinks = BTreeMap<IpAddr, Arc<LinkFacts>>;

/// The beginning of the way to a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FirstHop {
    /// The kernel routes.
    ByKernel,
    /// The station that gets the packets, on the device of a link.
    To(String, StationAddress),
}

/// Adds the ways to the peers of an endpoint's connections, up to `most`. Returns the number of connections.
pub(crate) fn add_ways(
    driver: &Driver<Endpoint>,
    ways: &mut BTreeMap<IpAddr, FirstHop>,
    most: usize,
) -> usize {
    for peer in driver.machine().peers() {
        if ways.len() < most
            && !ways.contains_key(&peer)
            && let Some(way) = way_to(driver, peer)
        {
            ways.insert(peer, way);
        }
    }
    driver.machine().connections()
}

/// None while the station is unknown.
fn way_to(driver: &Driver<Endpoint>, peer: IpAddr) -> Option<FirstHop> {
    let (link, hop) = driver.machine().way_to(peer)?;
    let link = driver.link(link)?;
    match hop {
        NextHop::Neighbour(hop) => Some(FirstHop::To(link.tally().name.clone(), link.station_of(hop)?)),
        NextHop::Link if link.properties().is_routed => Some(FirstHop::ByKernel),
        NextHop::Link | NextHop::All => None,
    }
}
