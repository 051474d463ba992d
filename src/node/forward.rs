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

/// What all forwards share.
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
            tasks.spawn(outward(context, listener, to, ending));
        }
        Bound::Inward { listen, to } => {
            let listener = context
                .shards
                .listen(listen.ip(), listen.port, &ListenOptions::default())
                .map_err(|error| Failure::failed("listen for a forward over Hopwise", error))?;
            tasks.spawn(inward(context, listener, to, ending));
        }
    }
    Ok(())
}

async fn outward(context: Context, listener: TcpListener, to: HostPort, mut ending: watch::Receiver<bool>) {
    let (context, seats) = (Arc::new(context), Arc::new(Semaphore::new(MOST_RELAYS)));
    let to = Arc::new(to);
    let mut relays = JoinSet::new();
    loop {
        while relays.try_join_next().is_some() {}
        // Who finds no seat waits in the kernel's queue.
        let Ok(seat) = Arc::clone(&seats).acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = ending.changed() => break,
        };
        match accepted {
            Ok((client, _)) => {
                let (context, to) = (Arc::clone(&context), Arc::clone(&to));
                relays.spawn(async move {
                    let _seat = seat;
                    match connect_mesh(&context, &to).await {
                        Ok(mesh) => {
                            prepare(&client, &mesh);
                            drop(relay(client, mesh, &context.relayed).await);
                        }
                        Err(error) => tracing::warn!(%error, host = to.host, port = to.port, "forward"),
                    }
                });
            }
            Err(error) => pause_after(&error).await,
        }
    }
    drop(listener);
    while relays.join_next().await.is_some() {}
}

async fn inward(context: Context, listener: MeshListener, to: HostPort, mut ending: watch::Receiver<bool>) {
    let (context, seats) = (Arc::new(context), Arc::new(Semaphore::new(MOST_RELAYS)));
    let to = Arc::new(to);
    let mut relays = JoinSet::new();
    loop {
        while relays.try_join_next().is_some() {}
        let Ok(seat) = Arc::clone(&seats).acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = ending.changed() => break,
        };
        // The stack has been stopped.
        let Ok(mesh) = accepted else { break };
        let (context, to) = (Arc::clone(&context), Arc::clone(&to));
        relays.spawn(async move {
            let _seat = seat;
            match connect_local(&context, &to).await {
                Ok(local) => {
                    prepare(&local, &mesh);
                    drop(relay(local, mesh, &context.relayed).await);
                }
                Err(error) => {
                    tracing::warn!(%error, host = to.host, port = to.port, "forward");
                    mesh.abort();
                }
            }
        });
    }
    drop(listener);
    while relays.join_next().await.is_some() {}
}

async fn pause_after(error: &io::Error) {
    tracing::warn!(%error, "forward: a client was not accepted");
    tokio::time::sleep(Duration::from_millis(10)).await;
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
