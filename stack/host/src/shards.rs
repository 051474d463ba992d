//! Several stacks that share nothing, one on each queue of a device: a flow meets the same one both ways.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hopwise_core::agent::AgentMaker;
use hopwise_core::endpoint::{ConnectOptions, ListenError, ListenOptions};

use crate::counters::LinkCounters;
use crate::link::Link;
use crate::stack::{ConnectError, Stack, StackConfig, StackError, Stopped};
use crate::stream::{TcpListener, TcpStream};

/// Ports that are tried before a connection is refused for want of one.
const TRIES: usize = 32;
/// The ports that are meant for this (RFC 6335 §6).
const FIRST_PORT: u16 = 49_152;

/// Which of `shards` a connection belongs to; the queues of [`TunFast`](crate::TunFast) go by it, too. The sum has 16
/// bits, as the kernel's number of a queue has.
pub fn shard_of(one_port: u16, other_port: u16, shards: usize) -> usize {
    usize::from(one_port.wrapping_add(other_port)) % shards.max(1)
}

/// The stacks. Connections are dealt out in turn, and those that come in by their ports.
#[derive(Debug)]
pub struct Shards {
    stacks: Vec<Stack>,
    turn: AtomicUsize,
}

/// One listener a stack.
#[derive(Debug)]
pub struct ShardsListener {
    listeners: Vec<TcpListener>,
}

impl Shards {
    /// One stack for each link, from what `config` and `maker` make for it. Each must have the same addresses, and a
    /// key of its own.
    pub fn start(
        links: Vec<Box<dyn Link>>,
        config: impl Fn(&dyn Link) -> StackConfig,
        maker: impl Fn() -> Box<dyn AgentMaker>,
    ) -> Result<Shards, StackError> {
        let start = |link: Box<dyn Link>| Stack::start(config(&*link), vec![link], maker());
        let stacks = links.into_iter().map(start).collect::<Result<Vec<_>, _>>()?;
        if stacks.is_empty() {
            return Err(StackError::Links { given: 0, described: Vec::new() });
        }
        Ok(Shards { stacks, turn: AtomicUsize::new(0) })
    }

    pub fn stacks(&self) -> &[Stack] {
        &self.stacks
    }

    pub async fn connect(
        &self,
        remote: SocketAddr,
        options: &ConnectOptions,
    ) -> Result<TcpStream, ConnectError> {
        let count = self.stacks.len();
        if let Some(port) = options.local_port.filter(|port| *port != 0) {
            return self.stacks[shard_of(port, remote.port(), count)].connect(remote, options).await;
        }
        let shard = self.turn.fetch_add(1, Ordering::Relaxed) % count;
        let mut refused = ConnectError::Refused(hopwise_core::endpoint::ConnectError::NoFreePort);
        for _ in 0..TRIES {
            let local_port = Some(random_port(shard, remote.port(), count));
            let options = ConnectOptions { local_port, ..options.clone() };
            match self.stacks[shard].connect(remote, &options).await {
                Err(ConnectError::Refused(in_use @ hopwise_core::endpoint::ConnectError::InUse(_))) => {
                    refused = ConnectError::Refused(in_use);
                }
                done => return done,
            }
        }
        Err(refused)
    }

    pub fn listen(
        &self,
        address: Option<IpAddr>,
        port: u16,
        options: &ListenOptions,
    ) -> Result<ShardsListener, ListenError> {
        let listen = |stack: &Stack| stack.listen(address, port, options.clone());
        Ok(ShardsListener { listeners: self.stacks.iter().map(listen).collect::<Result<_, _>>()? })
    }

    pub fn counters(&self) -> Vec<LinkCounters> {
        self.stacks.iter().flat_map(Stack::counters).collect()
    }

    /// Stops one after the other; the deadline is for each.
    pub fn stop(self, deadline: Duration) -> Stopped {
        let reset = self.stacks.into_iter().map(|stack| stack.stop(deadline).reset).sum();
        Stopped { reset }
    }
}

impl ShardsListener {
    pub async fn accept(&self) -> io::Result<TcpStream> {
        poll_fn(|cx| self.poll_accept(cx)).await
    }

    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<TcpStream>> {
        let mut waiting = self.listeners.iter().map(|listener| listener.poll_accept(cx));
        waiting.find(Poll::is_ready).unwrap_or(Poll::Pending)
    }
}

/// A port of ours that leads to that shard.
fn random_port(shard: usize, remote_port: u16, shards: usize) -> u16 {
    let random = getrandom::u32().unwrap_or_default() as u16 | FIRST_PORT;
    // Where the sum wraps, neighbours may lead to the same shard; soon after, every shard has had its turn.
    let upwards = (random..=u16::MAX).chain(FIRST_PORT..random);
    upwards.into_iter().find(|port| shard_of(*port, remote_port, shards) == shard).unwrap_or(random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_leads_to_its_shard_and_is_one_of_those_that_are_meant_for_this() {
        for shards in [1, 2, 3, 7, 256] {
            for shard in 0..shards {
                for remote in [1, 80, 443, 65_535] {
                    let port = random_port(shard, remote, shards);
                    assert!(port >= FIRST_PORT);
                    assert_eq!(shard_of(port, remote, shards), shard);
                }
            }
        }
    }
}
