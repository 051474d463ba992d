//! Port forwards: a port on this machine that leads to a service over Hopwise, and the reverse.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::time::Duration;

use hopwise_core::endpoint::{ConnectOptions, ListenOptions};
use hopwise_host::{Shards, ShardsListener as MeshListener, TcpStream as MeshStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::config::{Forward, HostPort, NodeConfig, Side};
use super::counts::{ClientCounts, count};
use super::hangup;
use super::log_limit::LogLimit;
use super::lookups::Names;
use super::origin::Origin;
use super::relay::{self, Relayed};
use super::seats::weights;
use super::seats::{Seat, Seats};
use super::stage::{self, Stage};
use super::unfinished::Unfinished;
use super::users::Users;
use hopwise_daemon::failure::Failure;

const CONNECT_WITHIN: Duration = Duration::from_secs(60);
/// The largest number of clients of a forward that wait for a seat.
pub(super) const MOST_WAITING: usize = 256;
/// A client that has a seat may lose its right to it without any event.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A forward whose port on this machine was bound while that was still allowed.
#[derive(Debug)]
pub(super) struct BoundForward {
    listening: Listening,
    listen: String,
    seats: Arc<Seats>,
    idle: Duration,
}

#[derive(Debug)]
enum Listening {
    Outward { listener: StdListener, to: HostPort },
    Inward { listen: HostPort, to: HostPort },
}

/// The state that all forwards share; each client has a copy.
#[derive(Clone)]
pub(super) struct ForwardContext {
    pub(super) shards: Shards,
    pub(super) names: Names,
    pub(super) users: Users,
    pub(super) relayed: Arc<Relayed>,
    pub(super) counts: Arc<ClientCounts>,
}

pub(super) fn bind_all(config: &NodeConfig) -> Result<Vec<BoundForward>, Failure> {
    let bind = |forward: &Forward| {
        let seats = Seats::new(forward.connections, forward.reads_within.0, forward.per_source);
        let (seats, listen, idle) = (Arc::new(seats), forward.listen.to_string(), forward.idle.0);
        listening(forward)
            .map(|listening| listening.map(|listening| BoundForward { listening, listen, seats, idle }))
    };
    config.forwards.iter().filter_map(|forward| bind(forward).transpose()).collect()
}

impl BoundForward {
    /// The place where it listens, as in the file, and its seats.
    pub(super) fn seats(&self) -> (String, Arc<Seats>) {
        (self.listen.clone(), Arc::clone(&self.seats))
    }
}

fn listening(forward: &Forward) -> Result<Option<Listening>, Failure> {
    match (&forward.listen, &forward.to) {
        (Side::Local(listen), Side::Mesh(to)) => {
            let address = listen.ip().map(|ip| SocketAddr::new(ip, listen.port));
            let address = address.ok_or_else(|| Failure::failed("bind a forward", "it has no address"))?;
            Ok(Some(Listening::Outward { listener: super::bind::bind(address)?, to: to.clone() }))
        }
        (Side::Mesh(listen), Side::Local(to)) => {
            Ok(Some(Listening::Inward { listen: listen.clone(), to: to.clone() }))
        }
        _ => Ok(None),
    }
}

/// Starts a forward as a task of `tasks`.
pub(super) fn start(
    bound: BoundForward,
    context: &ForwardContext,
    tasks: &mut JoinSet<usize>,
    stage: &watch::Receiver<Stage>,
) -> Result<(), Failure> {
    let (context, stage, BoundForward { listening, seats, idle, .. }) =
        (context.clone(), stage.clone(), bound);
    let seats = (seats, Arc::clone(&context.counts));
    match listening {
        Listening::Outward { listener, to } => {
            let listener =
                TcpListener::from_std(listener).map_err(Failure::during("listen for a forward"))?;
            let users = context.users.clone();
            let carry = move |client, seat| outward(context.clone(), to.clone(), client, (seat, idle));
            let local = Local { listener, users, failed: LogLimit::default() };
            tasks.spawn(serve(local, seats, carry, stage));
        }
        Listening::Inward { listen, to } => {
            let listener = context
                .shards
                .listen(listen.ip(), listen.port, &ListenOptions::default())
                .map_err(Failure::during("listen for a forward over Hopwise"))?;
            let carry = move |client, seat| inward(context.clone(), to.clone(), client, (seat, idle));
            tasks.spawn(serve(listener, seats, carry, stage));
        }
    }
    Ok(())
}

/// The source of a forward's clients.
trait ClientSource: Send + 'static {
    type Client: Send + 'static;
    /// The next client and its origin, unless there can be no more. None is lost if the wait for it is given up.
    fn next(&self) -> impl Future<Output = Option<(Self::Client, Origin)>> + Send;
}

/// The kernel's TCP.
struct Local {
    listener: TcpListener,
    users: Users,
    failed: LogLimit,
}

impl ClientSource for Local {
    type Client = Unfinished<TcpStream>;

    async fn next(&self) -> Option<(Self::Client, Origin)> {
        loop {
            match self.listener.accept().await {
                Ok((client, from)) => {
                    let from = Origin::of(&self.users, &client, from.ip());
                    return Some((Unfinished::even_if_killed(client), from));
                }
                Err(error) => self.failed.not_accepted("forward", &error).await,
            }
        }
    }
}

impl ClientSource for MeshListener {
    type Client = Unfinished<MeshStream>;

    async fn next(&self) -> Option<(Self::Client, Origin)> {
        // It fails when the stacks have been stopped.
        let client = self.accept().await.ok()?;
        let from = Origin::from(client.peer_addr().ip());
        Some((Unfinished::new(client), from))
    }
}

/// Carries each client until the node begins to end, and then the present ones. Returns how many were cut off. A
/// client that waits for its seat delays no other client. If too many wait, the newest of the source with the most is
/// reset. So are all that still wait at the end.
async fn serve<I: ClientSource, F: Future<Output = ()> + Send + 'static>(
    incoming: I,
    (seats, counts): (Arc<Seats>, Arc<ClientCounts>),
    carry: impl Fn(I::Client, Seat) -> F + Send,
    mut stage: watch::Receiver<Stage>,
) -> usize {
    let (mut relays, mut waiting) = (JoinSet::new(), VecDeque::new());
    loop {
        // The clients that may get a seat now: the newcomer, the oldest, or any.
        let mut next = tokio::select! {
            come = incoming.next() => {
                let Some(come) = come else { break };
                waiting.push_back(come);
                if waiting.len() > MOST_WAITING {
                    waiting.remove(newest_of_most(&waiting));
                    count(&counts.refused);
                }
                waiting.len() - 1..waiting.len()
            }
            Some(_) = relays.join_next() => 0..waiting.len().min(1),
            () = sleep(LOOK_EVERY), if !waiting.is_empty() => 0..waiting.len(),
            _ = stage.changed() => break,
        };
        while let Some((_, from)) = waiting.get(next.start).filter(|_| !next.is_empty()) {
            match seats.take(*from) {
                Some(seat) => {
                    let (client, _) = waiting.remove(next.start).expect("it was found there");
                    relays.spawn(carry(client, seat));
                    next.end -= 1;
                }
                None => next.start += 1,
            }
        }
    }
    drop((incoming, waiting));
    stage::finish(relays, stage).await
}

fn newest_of_most<C>(clients: &VecDeque<(C, Origin)>) -> usize {
    let weights = weights(clients.iter().map(|(_, from)| *from));
    // `max_by_key` takes the last of equal ones.
    (0..weights.len()).max_by_key(|nth| weights[*nth]).unwrap_or(0)
}

/// A client's seat, and for how long it may be quiet there.
type TimedSeat = (Seat, Duration);

async fn outward(context: ForwardContext, to: HostPort, mut client: Unfinished<TcpStream>, seat: TimedSeat) {
    let hangs_up = hangup::by_local(client.stream(), hangup::WHILE_CONNECTING);
    // An idle relay does not keep what connecting took.
    let connected = context.connected(connect_mesh(&context, &to, &seat.0), hangs_up, &to, &seat.0);
    if let Some(mesh) = Box::pin(connected).await {
        relay::bound_send_buffer(client.stream());
        carry(client, Unfinished::new(mesh), &context, &seat).await;
    }
}

async fn inward(context: ForwardContext, to: HostPort, mut mesh: Unfinished<MeshStream>, seat: TimedSeat) {
    let hangs_up = hangup::by_mesh(mesh.stream(), hangup::WHILE_CONNECTING);
    let connected = context.connected(connect_local(&context, &to, &seat.0), hangs_up, &to, &seat.0);
    if let Some(local) = Box::pin(connected).await {
        carry(Unfinished::even_if_killed(local), mesh, &context, &seat).await;
    }
}

impl ForwardContext {
    /// The connection for an accepted client, unless the client hangs up before.
    async fn connected<S>(
        &self,
        connecting: impl Future<Output = io::Result<S>>,
        hangs_up: impl Future<Output = ()>,
        to: &HostPort,
        seat: &Seat,
    ) -> Option<S> {
        count(&self.counts.accepted);
        let connected = tokio::select! {
            connected = connecting => connected,
            () = hangs_up => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the client hung up")),
            () = seat.sitter().told_to_go() => Err(io::Error::other("another client needs the seat")),
        };
        let connected = connected.inspect_err(|error| {
            count(&self.counts.not_connected);
            tracing::warn!(%error, host = to.host, port = to.port, "forward");
        });
        connected.ok()
    }
}

async fn carry(
    local: Unfinished<TcpStream>,
    mesh: Unfinished<MeshStream>,
    context: &ForwardContext,
    (seat, idle): &TimedSeat,
) {
    count(&context.counts.open);
    let end = relay::carry(local, mesh, &context.relayed, seat.sitter(), *idle).await;
    context.counts.has_ended(end);
}

async fn connect_mesh(context: &ForwardContext, to: &HostPort, seat: &Seat) -> io::Result<MeshStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in context.names.resolve(seat.sitter().origin(), &to.host, to.port).await? {
        match timeout(CONNECT_WITHIN, context.shards.connect(address, &ConnectOptions::default())).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error.into(),
            Err(elapsed) => last = elapsed.into(),
        }
    }
    Err(last)
}

async fn connect_local(context: &ForwardContext, to: &HostPort, seat: &Seat) -> io::Result<TcpStream> {
    let addresses = context.names.resolve(seat.sitter().origin(), &to.host, to.port).await?;
    timeout(CONNECT_WITHIN, TcpStream::connect(&addresses[..])).await?
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::time::Instant;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 7, 0, 9));

    /// Clients of one source, and later one of another.
    struct Crowd {
        come: AtomicUsize,
        here: usize,
        began: Instant,
        there_after: Duration,
    }

    impl ClientSource for Crowd {
        type Client = usize;

        async fn next(&self) -> Option<(usize, Origin)> {
            let nth = self.come.load(Ordering::Relaxed);
            let from = match nth.cmp(&self.here) {
                std::cmp::Ordering::Less => HERE,
                std::cmp::Ordering::Equal => {
                    sleep(self.there_after.saturating_sub(self.began.elapsed())).await;
                    THERE
                }
                std::cmp::Ordering::Greater => std::future::pending().await,
            };
            self.come.store(nth + 1, Ordering::Relaxed);
            Some((nth, from.into()))
        }
    }

    /// Serves a crowd on two seats, and watches which clients are served. Returns how many
    /// were refused.
    async fn watched(crowd: Crowd, sits: fn(&Seat), watches: impl AsyncFn(&dyn Fn() -> Vec<usize>)) -> u64 {
        let served: Arc<Mutex<Vec<usize>>> = Arc::default();
        let carry = |client, seat: Seat| {
            let served = Arc::clone(&served);
            async move {
                served.lock().expect("nobody panics").push(client);
                sits(&seat);
                seat.sitter().told_to_go().await;
            }
        };
        let (_end, stage) = watch::channel(Stage::Open);
        let counts = Arc::new(ClientCounts::default());
        let seats = Arc::new(Seats::new(2, Duration::from_secs(30), None));
        let seats = (seats, Arc::clone(&counts));
        let now = || served.lock().expect("nobody panics").clone();
        tokio::select! {
            _ = serve(crowd, seats, carry, stage) => panic!("nobody ends it"),
            () = watches(&now) => counts.refused.load(Ordering::Relaxed),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_gives_its_seat_to_the_next() {
        let crowd =
            Crowd { come: AtomicUsize::new(0), here: 9, began: Instant::now(), there_after: Duration::MAX };
        let watches = async |served: &dyn Fn() -> Vec<usize>| {
            sleep(Duration::from_secs(20)).await;
            assert_eq!(served(), [0, 1], "they may still read");
            sleep(Duration::from_secs(15)).await;
            assert_eq!(served(), [0, 1, 2, 3]);
        };
        watched(crowd, |_| {}, watches).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_that_has_its_share_and_waits_keeps_no_other_out() {
        for waits in [1, 2 * MOST_WAITING] {
            let there_after = Duration::from_secs(5);
            let crowd =
                Crowd { come: AtomicUsize::new(0), here: 2 + waits, began: Instant::now(), there_after };
            let watches = async |served: &dyn Fn() -> Vec<usize>| {
                sleep(Duration::from_secs(4)).await;
                assert_eq!(served(), [0, 1], "nobody else wants a seat");
                sleep(Duration::from_secs(4)).await;
                assert_eq!(served(), [0, 1, 2 + waits], "the one of the other source");
            };
            let refused = watched(crowd, |seat| seat.sitter().moves(), watches).await;
            // The client of the other source found room, too.
            assert_eq!(refused, (waits + 1).saturating_sub(MOST_WAITING) as u64);
        }
    }
}
