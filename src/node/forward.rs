//! Port forwards: a port here that leads to a service over Hopwise, and a port over Hopwise that leads to one here.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::time::Duration;

use hopwise_core::endpoint::{ConnectOptions, ListenOptions};
use hopwise_host::{Shards, ShardsListener as MeshListener, TcpStream as MeshStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::config::{Forward, HostPort, NodeConfig, Side};
use super::names::Names;
use super::relay::{Relayed, prepare, relay};
use crate::failure::Failure;

/// Connections of one forward at a time.
const MOST_RELAYS: usize = 1024;
const CONNECT_WITHIN: Duration = Duration::from_secs(60);

/// A forward whose port on this machine is taken, while that is still allowed.
#[derive(Debug)]
pub(super) enum Bound {
    Outward { listener: StdListener, to: HostPort },
    Inward { listen: HostPort, to: HostPort },
}

/// What all forwards share; a copy goes with each client.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) shards: Shards,
    pub(super) names: Names,
    pub(super) relayed: Arc<Relayed>,
}

pub(super) fn bind_all(config: &NodeConfig) -> Result<Vec<Bound>, Failure> {
    let bind = |forward: &Forward| match (&forward.listen, &forward.to) {
        (Side::Local(listen), Side::Mesh(to)) => {
            let address = listen.ip().map(|ip| SocketAddr::new(ip, listen.port));
            let address = address.ok_or_else(|| Failure::failed("bind a forward", "it has no address"))?;
            Ok(Some(Bound::Outward { listener: super::daemon::bind(address)?, to: to.clone() }))
        }
        (Side::Mesh(listen), Side::Local(to)) => {
            Ok(Some(Bound::Inward { listen: listen.clone(), to: to.clone() }))
        }
        _ => Ok(None),
    };
    config.forwards.iter().filter_map(|forward| bind(forward).transpose()).collect()
}

/// Begins a forward as a task of `tasks`.
pub(super) fn start(
    bound: Bound,
    context: &Context,
    tasks: &mut JoinSet<()>,
    ending: &watch::Receiver<bool>,
) -> Result<(), Failure> {
    let (context, ending) = (context.clone(), ending.clone());
    match bound {
        Bound::Outward { listener, to } => {
            let listener = TcpListener::from_std(listener)
                .map_err(|error| Failure::failed("listen for a forward", error))?;
            let carry = move |client| outward(context.clone(), to.clone(), client);
            tasks.spawn(serve(listener, carry, ending));
        }
        Bound::Inward { listen, to } => {
            let listener = context
                .shards
                .listen(listen.ip(), listen.port, &ListenOptions::default())
                .map_err(|error| Failure::failed("listen for a forward over Hopwise", error))?;
            let carry = move |client| inward(context.clone(), to.clone(), client);
            tasks.spawn(serve(listener, carry, ending));
        }
    }
    Ok(())
}

/// Where a forward's clients come from.
trait Incoming: Send + 'static {
    type Client: Send + 'static;
    /// The next one, unless there can be no more.
    fn next(&self) -> impl Future<Output = Option<Self::Client>> + Send;
}

impl Incoming for TcpListener {
    type Client = TcpStream;

    async fn next(&self) -> Option<TcpStream> {
        loop {
            match self.accept().await {
                Ok((client, _)) => return Some(client),
                Err(error) => {
                    // Too many open files, or a client that is gone already: the next may do.
                    tracing::warn!(%error, "forward: a client was not accepted");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
        }
    }
}

impl Incoming for MeshListener {
    type Client = MeshStream;

    async fn next(&self) -> Option<MeshStream> {
        // It fails when the stacks have been stopped.
        self.accept().await.ok()
    }
}

/// Carries each client until it is told to end, and then those that it has.
async fn serve<I: Incoming, F: Future<Output = ()> + Send + 'static>(
    incoming: I,
    carry: impl Fn(I::Client) -> F + Send,
    mut ending: watch::Receiver<bool>,
) {
    let seats = Arc::new(Semaphore::new(MOST_RELAYS));
    let mut relays = JoinSet::new();
    loop {
        while relays.try_join_next().is_some() {}
        // Who finds no seat waits in the listener's queue.
        let next = async {
            let seat = Arc::clone(&seats).acquire_owned().await.ok()?;
            Some((seat, incoming.next().await?))
        };
        let next = tokio::select! {
            next = next => next,
            _ = ending.changed() => None,
        };
        let Some((seat, client)) = next else { break };
        let carried = carry(client);
        relays.spawn(async move {
            let _seat = seat;
            carried.await;
        });
    }
    drop(incoming);
    while relays.join_next().await.is_some() {}
}

async fn outward(context: Context, to: HostPort, client: TcpStream) {
    match connect_mesh(&context, &to).await {
        Ok(mesh) => {
            prepare(&client, &mesh);
            drop(relay(client, mesh, &context.relayed, None).await);
        }
        Err(error) => tracing::warn!(%error, host = to.host, port = to.port, "forward"),
    }
}

async fn inward(context: Context, to: HostPort, mesh: MeshStream) {
    match connect_local(&context, &to).await {
        Ok(local) => {
            prepare(&local, &mesh);
            drop(relay(local, mesh, &context.relayed, None).await);
        }
        Err(error) => {
            tracing::warn!(%error, host = to.host, port = to.port, "forward");
            mesh.abort();
        }
    }
}

async fn connect_mesh(context: &Context, to: &HostPort) -> io::Result<MeshStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in context.names.resolve(&to.host, to.port).await? {
        match timeout(CONNECT_WITHIN, context.shards.connect(address, &ConnectOptions::default())).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error.into(),
            Err(elapsed) => last = elapsed.into(),
        }
    }
    Err(last)
}

async fn connect_local(context: &Context, to: &HostPort) -> io::Result<TcpStream> {
    let addresses = context.names.resolve(&to.host, to.port).await?;
    timeout(CONNECT_WITHIN, TcpStream::connect(&addresses[..])).await?
}
