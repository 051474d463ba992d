//! The last node of a carried connection: it opens connections for the nodes of the file.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hopwise_core::endpoint::{ListenError, ListenOptions};
use hopwise_host::transparent::Arrivals;
use hopwise_host::{ShardsListener, TcpStream as MeshStream};
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::header::{BadHeader, Told};
use super::source::{OpenedHere, Opener};
use super::{Carrying, Open, count, first_of};
use crate::config::{NodeConfig, Source, Transparent};
use crate::hangup;
use crate::log_limit::LogLimit;
use crate::places::Places;
use crate::relay;
use crate::socks5::{Own, leads_to};
use crate::stage::{self, Stage};
use crate::unfinished::Unfinished;

/// The time that a node has for its header.
const TOLD_WITHIN: Duration = Duration::from_secs(5);
/// A longer attempt is of no use: the SYN went straight on.
const CONNECT_WITHIN: Duration = Duration::from_secs(30);
/// The largest number of nodes that have not sent their header yet.
const MOST_UNTOLD: usize = 256;

pub(super) struct Exit {
    carrying: Carrying,
    config: Transparent,
    own: Own,
    opener: Opener,
    opened: OpenedHere,
    rounds: LogLimit,
}

impl Exit {
    pub(super) fn new(carrying: Carrying, config: &NodeConfig, transparent: &Transparent) -> Arc<Exit> {
        let (opened, sets) = (OpenedHere::default(), Arrivals::of(transparent.table.into()));
        Arc::new(Exit {
            carrying,
            config: transparent.clone(),
            own: Own::new(config, transparent.port),
            opener: Opener::new(transparent.source == Source::Client, opened.clone(), sets),
            opened,
            rounds: LogLimit::default(),
        })
    }

    fn knows(&self, node: IpAddr) -> bool {
        self.config.from.iter().any(|network| network.0.contains(node))
    }

    /// Returns whether a node may tell these addresses. A client with an address of this machine would be answered as
    /// this machine, and the kernel takes an own address in place of a broadcast.
    fn may_open(&self, told: &Told) -> bool {
        let client = told.from.ip();
        leads_to(self.config.targets.as_deref(), told.to.ip())
            && !self.own.listens_at(told.to)
            && is_of_host(client)
            && !self.own.has(client)
    }
}

/// Returns whether a host may have such an address. It is not of 0/8, 127/8, 224/4 or 240/4 (RFC 6890), nor a group.
fn is_of_host(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => !matches!(address.octets()[0], 0 | 127 | 224..),
        IpAddr::V6(address) => !address.is_unspecified() && !address.is_loopback() && !address.is_multicast(),
    }
}

pub(super) fn listen(exit: &Exit) -> Result<Vec<ShardsListener>, ListenError> {
    let options = ListenOptions::default();
    let ports = exit.config.mesh_ports();
    ports.into_iter().map(|port| exit.carrying.shards.listen(None, port, &options)).collect()
}

/// Serves until the node begins to end, and then the present connections.
pub(super) async fn serve(
    exit: Arc<Exit>,
    listeners: Vec<ShardsListener>,
    mut stage: watch::Receiver<Stage>,
) -> usize {
    let (mut untold, mut places) = (JoinSet::new(), Places::new(MOST_UNTOLD));
    let mut relays = JoinSet::new();
    loop {
        tokio::select! {
            accepted = first_of(&listeners, ShardsListener::poll_accept) => {
                // It fails when the stacks have been stopped.
                let Ok(mesh) = accepted else { break };
                let node = mesh.peer_addr().ip();
                let mesh = Unfinished::new(mesh);
                if !exit.knows(node) {
                    count(&exit.carrying.counts.not_allowed);
                    continue;
                }
                let exit = Arc::clone(&exit);
                let hearing = untold.spawn(async move { hear(&exit, mesh).await });
                places.take(hearing, node.into());
            },
            Some(heard) = untold.join_next() => {
                if let Ok(Some((mesh, told))) = heard {
                    let exit = Arc::clone(&exit);
                    relays.spawn(async move { open(&exit, mesh, told).await });
                }
            },
            Some(_) = relays.join_next() => {}
            _ = stage.changed() => break,
        }
    }
    drop(listeners);
    untold.shutdown().await;
    stage::finish(relays, stage).await
}

/// Reads the header of a node, and refuses one that it may not send.
async fn hear(exit: &Exit, mut mesh: Unfinished<MeshStream>) -> Option<(Unfinished<MeshStream>, Told)> {
    let counts = &exit.carrying.counts;
    let node = mesh.stream().peer_addr();
    let told = match timeout(TOLD_WITHIN, Told::read(mesh.stream())).await {
        Ok(Ok(told)) => told,
        // The SYN went straight on meanwhile.
        Ok(Err(BadHeader::Ended(error))) if error.kind() == std::io::ErrorKind::ConnectionReset => {
            return None;
        }
        Ok(Err(_)) | Err(_) => {
            tracing::debug!(%node, "no header of a node came");
            count(&counts.bad_header);
            return None;
        }
    };
    if exit.opened.has((told.from, told.to)) {
        if let Some(times) = exit.rounds.due() {
            tracing::warn!(
                %node, from = %told.from, to = %told.to, times,
                "refused: a connection of this node came round, or somebody told the addresses of such a connection"
            );
        }
        count(&counts.looped);
        return None;
    }
    if !exit.may_open(&told) {
        tracing::debug!(%node, from = %told.from, to = %told.to, "a connection is not allowed");
        count(&counts.not_allowed);
        return None;
    }
    Some((mesh, told))
}

/// Opens the connection, tells so, and carries its data.
async fn open(exit: &Exit, mut mesh: Unfinished<MeshStream>, told: Told) {
    let counts = &exit.carrying.counts;
    let Some(seat) = exit.carrying.seats.take_free(told.from.ip()) else { return count(&counts.not_opened) };
    let connected = tokio::select! {
        connected = timeout(CONNECT_WITHIN, exit.opener.connect(&told)) => connected.ok().and_then(Result::ok),
        () = hangup::by_mesh(mesh.stream(), hangup::WHILE_CONNECTING) => None,
    };
    let Some((stream, from)) = connected else { return count(&counts.not_opened) };
    let target = Unfinished::even_if_killed(stream);
    relay::mark(mesh.stream(), told.dscp);
    let answer = Told { from, ..told }.bytes().unwrap_or_default();
    if mesh.stream().write_all(&answer).await.is_err() {
        return count(&counts.not_opened);
    }
    count(&counts.opened);
    if from.ip() == told.from.ip() {
        count(&counts.opened_as_client);
    }
    let _line = exit.carrying.record.add((told.from, told.to));
    let _open = Open::new(&exit.carrying.counts);
    let _ = relay::carry(target, mesh, &exit.carrying.relayed, seat.sitter(), exit.config.idle.0).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_no_address_of_a_reserved_range_nor_of_a_group() {
        let is_of_host = |text: &str| is_of_host(text.parse().expect("an address"));
        for other in [
            "0.0.0.0",
            "0.0.0.5",
            "127.0.0.2",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "ff02::1",
            "::ffff:0.0.0.5",
            "::ffff:255.255.255.255",
        ] {
            assert!(!is_of_host(other), "{other}");
        }
        for host in ["1.0.0.1", "10.1.0.2", "126.1.1.1", "223.255.255.1", "fd01::2", "2001:db8::1"] {
            assert!(is_of_host(host), "{host}");
        }
    }
}
