//! Several stacks that share nothing, one on each queue of a device: both directions of a flow meet one stack.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hopwise_core::agent::AgentMaker;
use hopwise_core::endpoint::{ConnectOptions, ListenError, ListenOptions};

use crate::clock::Clock;
use crate::counters::LinkCounters;
use crate::link::Link;
use crate::stack::{ConnectError, Stack, StackConfig, StackError, Stopped};
use crate::stream::{TcpListener, TcpStream};
use crate::tun_fast::mixed;

/// Attempts to find a free port before a connection is refused.
const TRIES: usize = 32;
/// The first of the dynamic ports (RFC 6335 §6).
const FIRST_PORT: u16 = 49_152;

/// The shard of a connection. The queues of [`TunFast`](crate::TunFast) use this function, too.
pub fn shard_of(one_port: u16, other_port: u16, shards: usize) -> usize {
    usize::from(mixed(one_port, other_port)) % shards.max(1)
}

/// A handle of several stacks. Connections that we open take the stacks in turn; incoming ones go by their ports.
#[derive(Clone, Debug)]
pub struct Shards {
    stacks: Vec<Stack>,
    next: Arc<AtomicUsize>,
}

/// One listener for each stack, polled in turn.
#[derive(Debug)]
pub struct ShardsListener {
    listeners: Vec<TcpListener>,
    next: AtomicUsize,
}

impl Shards {
    /// Starts one stack for each list of links. `config` and `maker` make its parts from the number of the shard. All
    /// must have equal addresses, and each a key of its own. One clock serves all.
    pub fn start(
        links: Vec<Vec<Box<dyn Link>>>,
        mut config: impl FnMut(u16, &[Box<dyn Link>]) -> StackConfig,
        maker: impl Fn() -> Box<dyn AgentMaker>,
    ) -> Result<Shards, StackError> {
        let clock = Clock::start();
        let mut stacks = Vec::with_capacity(links.len());
        for (shard, links) in (0..).zip(links) {
            let config = StackConfig { clock, ..config(shard, &links) };
            stacks.push(Stack::start(config, links, maker())?);
        }
        if stacks.is_empty() {
            return Err(StackError::Links { given: 0, described: Vec::new() });
        }
        Ok(Shards { stacks, next: Arc::default() })
    }

    /// The stacks, at least one.
    pub fn stacks(&self) -> &[Stack] {
        &self.stacks
    }

    /// The clock that all stacks share.
    pub fn clock(&self) -> Clock {
        self.stacks[0].clock()
    }

    /// Opens a connection to `remote` on the stack that its packets will meet, and waits until it is established.
    pub async fn connect(
        &self,
        remote: SocketAddr,
        options: &ConnectOptions,
    ) -> Result<TcpStream, ConnectError> {
        let count = self.stacks.len();
        if count == 1 {
            return self.stacks[0].connect(remote, options).await;
        }
        if let Some(port) = options.local_port.filter(|port| *port != 0) {
            return self.stacks[shard_of(port, remote.port(), count)].connect(remote, options).await;
        }
        let shard = self.next.fetch_add(1, Ordering::Relaxed) % count;
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

    /// Listens on all stacks; an `address` of `None` stands for all addresses.
    pub fn listen(
        &self,
        address: Option<IpAddr>,
        port: u16,
        options: &ListenOptions,
    ) -> Result<ShardsListener, ListenError> {
        let listen = |stack: &Stack| stack.listen(address, port, options.clone());
        let listeners = self.stacks.iter().map(listen).collect::<Result<_, _>>()?;
        Ok(ShardsListener { listeners, next: AtomicUsize::new(0) })
    }

    /// The counters of all links of all stacks.
    pub fn counters(&self) -> Vec<LinkCounters> {
        self.stacks.iter().flat_map(Stack::counters).collect()
    }

    /// Stops all stacks before one common deadline.
    pub fn stop(self, deadline: Duration) -> Stopped {
        let clock = self.clock();
        let until = clock.now() + deadline;
        self.stacks.iter().for_each(|stack| stack.with(|now, endpoint| endpoint.close_all(now)));
        let stop = |stack: Stack| stack.stop(until.since(clock.now())).reset;
        Stopped { reset: self.stacks.into_iter().map(stop).sum() }
    }
}

impl ShardsListener {
    /// The next incoming connection of any stack.
    pub async fn accept(&self) -> io::Result<TcpStream> {
        poll_fn(|cx| self.poll_accept(cx)).await
    }

    /// The same for hand-written futures.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<TcpStream>> {
        // A stack that always has a connection ready must not starve the other stacks.
        let nth = self.next.fetch_add(1, Ordering::Relaxed) % self.listeners.len();
        let (after, first) = self.listeners.split_at(nth);
        let mut waiting = first.iter().chain(after).map(|listener| listener.poll_accept(cx));
        waiting.find(Poll::is_ready).unwrap_or(Poll::Pending)
    }
}

/// A local port that leads to that shard.
fn random_port(shard: usize, remote_port: u16, shards: usize) -> u16 {
    let random = (getrandom::u32().unwrap_or_default() & 0xffff) as u16 | FIRST_PORT;
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

    /// Linux' clients take even ports first.
    #[test]
    fn clients_with_even_ports_are_dealt_to_every_shard_alike() {
        for shards in 2..=16 {
            let mut dealt = vec![0; shards];
            (32_768..=60_998).step_by(2).for_each(|port| dealt[shard_of(port, 80, shards)] += 1);
            let fair = 14_116 / shards;
            assert!(dealt.iter().all(|count| (fair * 9 / 10..fair * 11 / 10).contains(count)), "{dealt:?}");
        }
    }
}
