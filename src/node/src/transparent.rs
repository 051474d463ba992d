//! Transparent nodes: TCP of the hosts behind this node goes to another node over Hopwise without their knowing.
//!
//! The first node (`entry`) holds a host's SYN (`host/transparent`). It connects to the node that leads to the
//! destination, and tells it the addresses of the connection (`header`). The second node (`exit`) opens the
//! connection, with the client's address where the answers come back through it, and says so. Only then is the SYN
//! caught: the kernel ends its connection here, and a relay joins the two. In any other case the SYN goes on as it
//! came, on the kernel's path. A wrong guess therefore breaks nothing: no byte of the host has been answered before the
//! whole way stands.
//!
//! **Loops.** A node never holds SYNs to its own addresses or to those of the nodes it knows, nor its own SYNs.
//! Connections of Hopwise do not come in by an interface for hosts, since a link cannot be one. A loop over several
//! nodes is refused twice. A node refuses to open a connection that it has opened itself (`exit`, `OpenedHere`). The
//! connection that the other node opens has the hop limit of the SYN, less `HOPS_OF_A_PAIR`. On a loop of relays it
//! runs out after a few rounds, as on a loop of routers.
//!
//! **Kills.** The kernel removes the table of nft with the process, and SYNs then go straight on. Connections that are
//! carried end with a reset, never with an end that would look like that of the data. `record` lists them for the log
//! of the next start.
//!
//! **Firewalls.** A caught SYN has to pass the chains for the machine itself. If one of them drops it, the connection
//! goes straight on after all, and so do others for a while whose SYNs the firewall does not tell from it (`closed`). A
//! SYN that is lost behind the firewall, in connection tracking or by NAT, goes straight on alone: anyone can bring
//! that about in the name of a host. So does a SYN that tracking takes for a part of something else.
//!
//! **Signatures.** A host that signs its segments (TCP-MD5, TCP-AO) would drop an answer of this machine's kernel. Its
//! SYN goes straight on.
//!
//! **Hangs.** While a node hangs, another process lets its SYNs go on (`hangs`).

mod answering;
mod closed;
mod decisions;
mod entry;
mod exit;
pub mod hangs;
pub(super) mod header;
mod record;
mod source;
mod unanswered;

use std::future::poll_fn;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use hopwise_host::Shards;
use hopwise_host::routing::Switches;
use hopwise_host::transparent::{self as host, Caught, LedPackets, TransparentConfig, TransparentError};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::config::{NodeConfig, Transparent};
use super::counts::count;
use super::relay::Relayed;
use super::seats::Seats;
use super::stage::Stage;
use hopwise_daemon::failure::Failure;
use hopwise_daemon::watchdog::Watcher;
use record::Record;

/// The hops that a pair of nodes takes off a connection's hop limit.
const HOPS_OF_A_PAIR: u8 = 8;

/// Counters of the connections that a node carries.
#[derive(Debug, Default)]
pub(super) struct TransparentCounts {
    /// SYNs of hosts that were caught.
    pub(super) caught: AtomicU64,
    /// SYNs that went straight on, for any reason.
    pub(super) straight: AtomicU64,
    /// The part of these whose node did not answer.
    pub(super) no_node: AtomicU64,
    /// The part of these whose node could not open the connection, or refused to.
    pub(super) no_target: AtomicU64,
    /// The part of these whose host signs its segments.
    pub(super) signed: AtomicU64,
    /// The part of these that had too few hops left.
    pub(super) no_hops: AtomicU64,
    /// The part of these that the firewall did not let in when they were caught, or that are like such a SYN.
    pub(super) not_let_in: AtomicU64,
    /// The part of these that were lost behind the firewall when they were caught, or for which tracking had no new
    /// entry.
    pub(super) lost: AtomicU64,
    /// Connections that were opened for other nodes.
    pub(super) opened: AtomicU64,
    /// The part of these with the client's own address.
    pub(super) opened_as_client: AtomicU64,
    /// Connections for other nodes that could not be opened.
    pub(super) not_opened: AtomicU64,
    /// Peers that are no nodes of the file, and targets that the file does not allow.
    pub(super) not_allowed: AtomicU64,
    /// Peers whose header was wrong, or came too late.
    pub(super) bad_header: AtomicU64,
    /// Connections that had been here before.
    pub(super) looped: AtomicU64,
    pub(super) open: AtomicU64,
}

/// Counts an open connection, until this is dropped.
#[derive(Debug)]
struct Open(Arc<TransparentCounts>);

impl Open {
    fn new(counts: &Arc<TransparentCounts>) -> Open {
        count(&counts.open);
        Open(Arc::clone(counts))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The first connection that one of the listeners has.
async fn first_of<L, T>(listeners: &[L], poll: fn(&L, &mut Context<'_>) -> Poll<T>) -> T {
    poll_fn(|cx| {
        let mut accepted = listeners.iter().map(|listener| poll(listener, cx));
        accepted.find(Poll::is_ready).unwrap_or(Poll::Pending)
    })
    .await
}

/// Rules, listeners and files that were opened with capabilities.
#[derive(Debug)]
pub(super) struct Opened {
    led: LedPackets,
    caught: Option<Caught>,
    watcher: Option<Watcher>,
    record: Record,
}

/// The parts that both roles of a node share.
#[derive(Clone, Debug)]
struct Carrying {
    shards: Shards,
    seats: Arc<Seats>,
    counts: Arc<TransparentCounts>,
    relayed: Arc<Relayed>,
    record: Record,
}

pub(super) fn open(config: &NodeConfig) -> Result<Option<Opened>, TransparentError> {
    let Some(transparent) = &config.transparent else { return Ok(None) };
    for name in missing(&transparent.interfaces) {
        tracing::warn!(
            interface = name,
            "no interface has this name: its hosts are carried once it is there"
        );
    }
    let (led, caught) = host::open(&led(config, transparent))?;
    let watcher = caught.as_ref().and_then(|caught| hangs::start(caught, transparent.queue, config));
    Ok(Some(Opened { led, caught, watcher, record: Record::begin(config.control.as_deref()) }))
}

/// The interfaces that the machine does not have.
fn missing(interfaces: &[String]) -> impl Iterator<Item = &str> {
    let is_there = |name: &&str| !Path::new("/sys/class/net").join(name).exists();
    interfaces.iter().map(String::as_str).filter(is_there)
}

fn led(config: &NodeConfig, transparent: &Transparent) -> TransparentConfig {
    let links = (0..config.links.len()).flat_map(|nth| config.addresses_of(nth));
    let nodes = transparent.to.iter().map(|towards| towards.node);
    TransparentConfig {
        interfaces: transparent.interfaces.clone(),
        ports: transparent.ports.iter().map(|ports| ports.0.clone()).collect(),
        networks: transparent.to.iter().map(|towards| towards.network.0).collect(),
        spared: links.map(|own| own.address()).chain(nodes).collect(),
        seats: transparent.connections,
        queue: transparent.queue,
        table: transparent.table.into(),
        switches: config.control.as_deref().and_then(|control| Switches::file_beside(control).ok()),
    }
}

/// Starts both roles as tasks.
pub(super) fn start(
    opened: Opened,
    config: &NodeConfig,
    (shards, seats): (Shards, Arc<Seats>),
    (counts, relayed): (Arc<TransparentCounts>, Arc<Relayed>),
    tasks: &mut JoinSet<usize>,
    stage: &watch::Receiver<Stage>,
) -> Result<(), Failure> {
    let Some(transparent) = &config.transparent else { return Ok(()) };
    let Opened { led, caught, watcher, record } = opened;
    let led = Arc::new(led);
    let carrying = Carrying { shards, seats, counts, relayed, record };
    if let Some(caught) = caught {
        let entry = entry::Entry::new(carrying.clone(), transparent, caught.arrivals.clone());
        let serving = entry::serve(entry, (caught, watcher), stage.clone())
            .map_err(Failure::during("read held SYNs"))?;
        tasks.spawn(serve_with(Arc::clone(&led), serving));
    }
    if !transparent.from.is_empty() {
        let exit = exit::Exit::new(carrying, config, transparent);
        let listeners =
            exit::listen(&exit).map_err(Failure::during("listen for other nodes over Hopwise"))?;
        tasks.spawn(serve_with(led, exit::serve(exit, listeners, stage.clone())));
    }
    Ok(())
}

/// Serves, and takes the rules back. That waits for programs, which no thread of the runtime may.
async fn serve_with(led: Arc<LedPackets>, serving: impl Future<Output = usize>) -> usize {
    let cut_off = serving.await;
    let _ = tokio::task::spawn_blocking(move || drop(led)).await;
    cut_off
}
