//! The first node of a carried connection: it decides about held SYNs, and takes the connections of caught ones.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hopwise_core::endpoint::ConnectOptions;
use hopwise_host::netlink::is_connected;
use hopwise_host::transparent::{Arrival, Arrivals, Caught, HeldSyn, HeldSyns, Syn};
use hopwise_host::{ConnectError, TcpStream as MeshStream};
use parking_lot::Mutex;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until, timeout, timeout_at};

use super::answering::AnsweringNodes;
use super::closed::Closed;
use super::decisions::{Decisions, Ends, STANDS_WITHIN, Verdict};
use super::hangs::Pulse;
use super::header::Told;
use super::unanswered::{UnansweredWays, WayPlace};
use super::{Carrying, HOPS_OF_A_PAIR, Open, count, first_of};
use crate::config::{Class, Transparent};
use crate::log_limit::LogLimit;
use crate::relay;
use crate::seats::{Seat, Seats};
use crate::stage::{self, Stage};
use crate::unfinished::Unfinished;
use hopwise_daemon::watchdog::{BEAT_EVERY, Watcher};

/// The time between two looks for SYNs that have not come in: some fall between two copies of a host's SYN.
const CLEAN_EVERY: Duration = Duration::from_millis(250);
const WATCHER_ENDS_WITHIN: Duration = Duration::from_secs(1);
/// The largest number of SYNs that are being decided at a time; further SYNs go straight on. One address has at most
/// half of them, as of the seats: it can have each of its SYNs wait for a place at a server.
const MOST_DECIDING: usize = 256;

pub(super) struct Entry {
    carrying: Carrying,
    config: Transparent,
    decisions: Mutex<Decisions<Way>>,
    /// A seat for each SYN that is being decided.
    deciding: Seats,
    unanswered: Arc<UnansweredWays>,
    answering: AnsweringNodes,
    arrivals: Arrivals,
    closed: Closed,
    pulse: Mutex<Pulse>,
    /// The lines of the log about clients that were not accepted, and about a queue that cannot be read.
    unaccepted: LogLimit,
    unread: LogLimit,
    /// Lines about SYNs that were lost, and about verdicts that did not reach the kernel.
    lost: LogLimit,
    undecided: LogLimit,
}

/// A way to a destination that stands.
#[derive(Debug)]
struct Way {
    mesh: Unfinished<MeshStream>,
    seat: Seat,
    place: WayPlace,
    syn: Syn,
}

/// Why a SYN goes straight on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Straight {
    NoSeat,
    /// Connection tracking has seen both ends of its connection, or NAT changes one of them.
    Known,
    /// The host would not take an answer without its signature.
    Signed,
    NoHops,
    NoNode,
    NoTarget,
    NotLetIn,
    /// Caught, and lost behind the firewall.
    Lost,
    /// The node has hung meanwhile, and a copy of the SYN may have gone straight on.
    Hung,
    Ending,
}

impl Entry {
    pub(super) fn new(carrying: Carrying, config: &Transparent, arrivals: Arrivals) -> Arc<Entry> {
        Arc::new(Entry {
            carrying,
            config: config.clone(),
            decisions: Mutex::default(),
            deciding: Seats::new(MOST_DECIDING, Duration::MAX, None),
            unanswered: Arc::default(),
            answering: AnsweringNodes::default(),
            arrivals,
            closed: Closed::default(),
            pulse: Mutex::new(Pulse::new()),
            unaccepted: LogLimit::default(),
            unread: LogLimit::default(),
            lost: LogLimit::default(),
            undecided: LogLimit::default(),
        })
    }

    /// The node that leads to the destination, with the port of the connection's class.
    fn node_for(&self, syn: &Syn) -> Option<SocketAddr> {
        let Transparent { to, classes, port, .. } = &self.config;
        let towards = to.iter().find(|towards| towards.network.0.contains(syn.to.ip()))?;
        Some(SocketAddr::new(towards.node, port_of(classes, *port, (syn.from, syn.to), syn.dscp)))
    }

    /// Acts on what is known of a held SYN. Returns whether it is to be decided.
    fn is_new(&self, held: &HeldSyn) -> bool {
        let Syn { from, to, seq, like, .. } = held.syn;
        // The host's address is first in the ends of its connection.
        let has_kernel = |(host, server): Ends| is_connected(server, host).unwrap_or(false);
        // The lock must not last as long as the match.
        let verdict = self.decisions.lock().about((from, to), seq, |way| way.syn.like == like, has_kernel);
        match verdict {
            Verdict::Decide => return true,
            Verdict::Forget => self.told(held.forget()),
            Verdict::Catch => self.told(held.catch()),
            Verdict::LetGo => self.told(held.let_go()),
        }
        false
    }

    async fn decide(&self, syn: Syn) -> Result<Way, Straight> {
        let came = Instant::now();
        if syn.is_signed {
            return Err(Straight::Signed);
        }
        let hop_limit = syn.hop_limit.checked_sub(HOPS_OF_A_PAIR).filter(|left| *left > 0);
        let hop_limit = hop_limit.ok_or(Straight::NoHops)?;
        if self.closed.is_closed(&syn, came) {
            return Err(Straight::NotLetIn);
        }
        let node =
            self.node_for(&syn).filter(|node| !self.answering.is_avoided(*node)).ok_or(Straight::NoNode)?;
        // A wait for a place says nothing of the node, which has its whole time after that.
        let place =
            timeout(self.config.answers_within.0 / 2, self.unanswered.place((syn.from, syn.to))).await;
        let place = place.map_err(|_| Straight::NoSeat)?;
        let began = Instant::now();
        let until = began + self.config.answers_within.0;
        // The source of a SYN may be made up: no carried connection makes room for one.
        let seat = self.carrying.seats.take_free(syn.from.ip()).ok_or(Straight::NoSeat)?;
        let options = ConnectOptions::default();
        let connected = timeout_at(until, self.carrying.shards.connect(node, &options)).await;
        let mesh = match connected {
            Ok(Ok(mesh)) => mesh,
            // This node's own bounds say nothing of the other one.
            Ok(Err(ConnectError::Refused(_) | ConnectError::Stopped)) => return Err(Straight::NoSeat),
            Ok(Err(ConnectError::Failed(_))) | Err(_) => {
                self.answering.does_not_answer(node, began);
                return Err(Straight::NoNode);
            }
        };
        self.answering.answers(node);
        relay::mark(&mesh, syn.dscp);
        let mut mesh = Unfinished::new(mesh);
        let told = Told { from: syn.from, to: syn.to, hop_limit, dscp: syn.dscp };
        let opened = timeout_at(until, ask(mesh.stream(), told)).await;
        match opened {
            Ok(Ok(())) if self.pulse.lock().hung_since(came) => Err(Straight::Hung),
            Ok(Ok(())) => Ok(Way { mesh, seat, place, syn }),
            Ok(Err(_)) | Err(_) => Err(Straight::NoTarget),
        }
    }

    /// Looks for caught SYNs that have not come in. A SYN is looked for again if the kernel cannot be asked about it,
    /// or if a copy of it has been caught meanwhile.
    async fn looks_inward(&self) {
        let asked = Instant::now();
        let late = self.decisions.lock().late(asked);
        if late.is_empty() {
            return;
        }
        let arrivals = self.arrivals.clone();
        let told =
            move || late.into_iter().filter_map(|ends| Some((ends, arrivals.of_last(ends).ok()?))).collect();
        let told: Vec<_> = spawn_blocking(told).await.unwrap_or_default();
        let mut decisions = self.decisions.lock();
        let still_late = decisions.late(asked);
        for (ends, arrival) in told.into_iter().filter(|(ends, _)| still_late.contains(ends)) {
            let now = Instant::now();
            if arrival == Arrival::Taken {
                decisions.has_come_in(ends);
            } else if let Some(Way { syn, .. }) = decisions.gives_up(ends, now) {
                self.is_missing(&syn, arrival, now);
            }
        }
    }

    /// Gives up ways whose hosts have reset the answers to their SYNs: somebody else has sent the SYNs, or the hosts
    /// have given up. Such ways would keep places from other connections.
    async fn frees_disowned(&self) {
        let asked = Instant::now();
        let quiet = self.decisions.lock().quiet(asked);
        if quiet.is_empty() {
            return;
        }
        let arrivals = self.arrivals.clone();
        let is_disowned = move |(ends, seq): &(Ends, u32)| arrivals.is_disowned(*ends, *seq).unwrap_or(false);
        let disowned =
            spawn_blocking(move || quiet.into_iter().filter(is_disowned).collect::<Vec<_>>()).await;
        let mut decisions = self.decisions.lock();
        let still_quiet = decisions.quiet(asked);
        for way in disowned.unwrap_or_default().into_iter().filter(|way| still_quiet.contains(way)) {
            decisions.gives_up(way.0, Instant::now());
        }
    }

    /// A caught SYN did not come to its listener. Only this machine's firewall says something of the next ones.
    fn is_missing(&self, syn: &Syn, arrival: Arrival, now: Instant) {
        if arrival == Arrival::Dropped {
            self.counted(Straight::NotLetIn);
            self.closed.close(syn, now);
            return;
        }
        self.counted(Straight::Lost);
        if let Some(times) = self.lost.due() {
            tracing::warn!(
                from = %syn.from,
                to = %syn.to,
                times,
                "a caught SYN was lost behind the firewall, in connection tracking, by NAT or in a chain of `input` \
                 with a priority above 99, or was dropped while tracking had no new entry for it or no route led back \
                 to its source; its connection goes straight on"
            );
        }
    }

    /// Shows the watcher that SYNs are read.
    fn beats(&self, watcher: &mut Option<Watcher>) {
        self.pulse.lock().beat();
        if watcher.as_ref().is_some_and(|watcher| !watcher.beat()) {
            tracing::warn!("nothing lets SYNs go on any more while the node hangs");
            *watcher = None;
        }
    }

    async fn cannot_read(&self, error: &io::Error) {
        if let Some(times) = self.unread.due() {
            tracing::warn!(%error, times, "held SYNs cannot be read");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    fn counted(&self, why: Straight) {
        let counts = &self.carrying.counts;
        count(&counts.straight);
        match why {
            Straight::Signed => count(&counts.signed),
            Straight::NoHops => count(&counts.no_hops),
            Straight::NoNode => count(&counts.no_node),
            Straight::NoTarget => count(&counts.no_target),
            Straight::NotLetIn => count(&counts.not_let_in),
            Straight::Lost => count(&counts.lost),
            Straight::NoSeat | Straight::Known | Straight::Hung | Straight::Ending => {}
        }
    }

    /// A verdict that does not reach the kernel leaves the SYN to be sent again.
    fn told(&self, verdict: io::Result<()>) {
        if let Err(error) = verdict
            && let Some(times) = self.undecided.due()
        {
            tracing::warn!(%error, times, "a held SYN could not be decided");
        }
    }

    fn goes_straight(&self, held: &HeldSyn, why: Straight) {
        let Syn { from, to, seq, .. } = held.syn;
        tracing::debug!(%from, %to, ?why, "a connection goes straight on");
        self.counted(why);
        self.decisions.lock().goes_straight((from, to), seq, Instant::now());
        self.told(held.let_go());
    }
}

/// The port over Hopwise of a connection: the first class that matches it gives the port.
fn port_of(classes: &[Class], default: u16, (from, to): Ends, dscp: u8) -> u16 {
    let belongs = |class: &&Class| {
        let has =
            |port: u16| class.ports.is_empty() || class.ports.iter().any(|ports| ports.0.contains(&port));
        class.from.is_none_or(|network| network.0.contains(from.ip()))
            && class.to.is_none_or(|network| network.0.contains(to.ip()))
            && class.dscp.is_none_or(|wanted| wanted == dscp)
            && has(to.port())
    };
    classes.iter().find(belongs).map_or(default, |class| class.port)
}

/// Tells the addresses, and waits until the connection to the destination stands.
async fn ask(mesh: &mut MeshStream, told: Told) -> io::Result<()> {
    let bytes = told.bytes().ok_or(io::ErrorKind::InvalidInput)?;
    mesh.write_all(&bytes).await?;
    match Told::read(mesh).await {
        Ok(answer) if answer.to == told.to => Ok(()),
        _ => Err(io::ErrorKind::ConnectionRefused.into()),
    }
}

/// Serves until the node begins to end. New connections then go straight on, until the present ones have ended.
pub(super) fn serve(
    entry: Arc<Entry>,
    (caught, mut watcher): (Caught, Option<Watcher>),
    mut stage: watch::Receiver<Stage>,
) -> io::Result<impl Future<Output = usize> + Send> {
    let mut held = caught.held.read()?;
    let listeners =
        caught.listeners.into_iter().map(TcpListener::from_std).collect::<io::Result<Vec<_>>>()?;
    Ok(async move {
        let (mut deciding, mut relays) = (JoinSet::new(), JoinSet::new());
        let (mut clean, mut beat) = (interval(CLEAN_EVERY), interval(BEAT_EVERY));
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut accepts_from = Instant::now();
        loop {
            // SYNs are read meanwhile.
            let next_client = async {
                sleep_until(accepts_from).await;
                first_of(&listeners, TcpListener::poll_accept).await
            };
            tokio::select! {
                syn = held.next() => match syn {
                    Ok(syn) => heard(&entry, syn, &mut deciding),
                    Err(error) => entry.cannot_read(&error).await,
                },
                accepted = next_client => match accepted {
                    Ok((client, from)) => stands(&entry, client, from, &mut relays),
                    Err(error) => {
                        accepts_from = entry.unaccepted.not_accepted("transparent", &error).deadline();
                    }
                },
                Some(_) = deciding.join_next() => {}
                Some(_) = relays.join_next() => {}
                _ = beat.tick() => entry.beats(&mut watcher),
                _ = clean.tick() => {
                    // A connection that the kernel has may wait to be accepted, as while descriptors are spent.
                    let lacks = |(host, server)| is_connected(server, host).is_ok_and(|has_it| !has_it);
                    let is_in_way = |ends: Ends, waits| {
                        (waits >= STANDS_WITHIN || entry.unanswered.is_crowded(ends.1)) && lacks(ends)
                    };
                    entry.decisions.lock().clean(Instant::now(), is_in_way);
                    let entry = Arc::clone(&entry);
                    deciding.spawn(async move {
                        entry.looks_inward().await;
                        entry.frees_disowned().await;
                    });
                }
                _ = stage.changed() => break,
            }
        }
        deciding.shutdown().await;
        let cut_off = tokio::select! {
            cut_off = stage::finish(relays, stage) => cut_off,
            never = let_go(&entry, &mut held, &mut beat, &mut watcher) => match never {},
        };
        drop(held);
        // It ends at once, unless someone has stopped it.
        let _ = timeout(WATCHER_ENDS_WITHIN, spawn_blocking(move || drop(watcher))).await;
        cut_off
    })
}

/// Lets all SYNs go whose connections are not carried yet.
async fn let_go(
    entry: &Entry,
    held: &mut HeldSyns,
    beat: &mut Interval,
    watcher: &mut Option<Watcher>,
) -> Infallible {
    loop {
        let syn = tokio::select! {
            syn = held.next() => syn,
            _ = beat.tick() => {
                entry.beats(watcher);
                continue;
            }
        };
        match syn {
            Ok(held) if entry.is_new(&held) => entry.goes_straight(&held, Straight::Ending),
            Ok(_) => {}
            Err(error) => entry.cannot_read(&error).await,
        }
    }
}

fn heard(entry: &Arc<Entry>, held: HeldSyn, deciding: &mut JoinSet<()>) {
    let syn = held.syn;
    if held.is_known() {
        entry.counted(Straight::Known);
        return entry.told(held.let_go());
    }
    if !entry.is_new(&held) {
        return;
    }
    let Some(seat) = entry.deciding.take_free(syn.from.ip()) else {
        return entry.goes_straight(&held, Straight::NoSeat);
    };
    let entry = Arc::clone(entry);
    deciding.spawn(async move {
        let _seat = seat;
        let undecided = Undecided { entry: &entry, held: Some(&held) };
        let decided = entry.decide(syn).await;
        undecided.has_ended();
        match decided {
            Ok(way) => {
                count(&entry.carrying.counts.caught);
                entry.decisions.lock().is_caught((syn.from, syn.to), (syn.seq, way), Instant::now());
                entry.told(held.catch());
            }
            Err(why) => entry.goes_straight(&held, why),
        }
    });
}

/// A SYN whose decision is broken off goes straight on.
struct Undecided<'a> {
    entry: &'a Entry,
    held: Option<&'a HeldSyn>,
}

impl Undecided<'_> {
    fn has_ended(mut self) {
        self.held = None;
    }
}

impl Drop for Undecided<'_> {
    fn drop(&mut self) {
        if let Some(held) = self.held {
            self.entry.goes_straight(held, Straight::Ending);
        }
    }
}

/// Joins an accepted connection with the way that waits for it. One without a way came to the listener by itself.
fn stands(entry: &Arc<Entry>, client: TcpStream, from: SocketAddr, relays: &mut JoinSet<()>) {
    let mut client = Unfinished::even_if_killed(client);
    let Ok(to) = client.stream().local_addr() else { return };
    let ends = (from, to);
    let Some(mut way) = entry.decisions.lock().stands(ends) else { return };
    entry.closed.stands(&way.syn);
    way.place.is_answered();
    let entry = Arc::clone(entry);
    relays.spawn(async move {
        let _carried = Carried { entry: &entry, ends };
        let _open = Open::new(&entry.carrying.counts);
        let _line = entry.carrying.record.add(ends);
        let Way { mesh, seat, place: _place, .. } = way;
        relay::bound_send_buffer(client.stream());
        let _ = relay::carry(client, mesh, &entry.carrying.relayed, seat.sitter(), entry.config.idle.0).await;
    });
}

/// Forgets a carried connection when this is dropped.
struct Carried<'a> {
    entry: &'a Entry,
    ends: Ends,
}

impl Drop for Carried<'_> {
    fn drop(&mut self) {
        self.entry.decisions.lock().ended(self.ends);
    }
}
