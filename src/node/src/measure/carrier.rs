//! The carrier of a measurement: a stack of its own over its own links, or the kernel's TCP for comparison.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

use clap::Args;
use hopwise_agents::{Profile, StandardAgents};
use hopwise_core::endpoint::{AgentChoice, ConnectOptions, EndpointConfig, LinkConfig, ListenOptions, Route};
use hopwise_core::ip::Prefix;
use hopwise_core::tcp::{AckMerge, KeepAlive, Options, TcpConfig};
use hopwise_core::{LinkId, NextHop};
use hopwise_host::{
    Capture, Link, LinkError, LinkTeller, Stack, StackConfig, Tun, TunConfig, describe, random_key,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::sleep;

use super::side::SideReport;
use crate::{config, links};
use hopwise_daemon::failure::Failure;
use hopwise_daemon::numbers;
use hopwise_daemon::shell;

/// Pause after a failure to accept: the connection stays in the queue, and the next call finds it at once.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// Link to run on, and agents to run with.
#[derive(Args, Clone, Debug)]
pub(crate) struct LinkArguments {
    /// Use links, routes, rules and TCP settings of this node configuration; the node itself must not run
    #[arg(long, value_name = "FILE", conflicts_with_all = ["address", "kernel_tcp"])]
    config: Option<PathBuf>,
    /// Make a TUN device and use this address on it, such as 10.7.0.2/24
    #[arg(long, value_name = "ADDRESS", conflicts_with = "kernel_tcp")]
    address: Option<Prefix>,
    /// Address of the kernel on that TUN device
    #[arg(long, value_name = "ADDRESS", requires = "address")]
    kernel: Option<Prefix>,
    /// Name of the TUN device; the kernel replaces %d with a number
    #[arg(long, value_name = "NAME", default_value = "hwm%d")]
    tun: String,
    /// MTU of the TUN device in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = numbers::whole(SMALLEST_MTU..=u16::MAX))]
    mtu: u16,
    /// Use the kernel's TCP, for comparison
    #[arg(long)]
    kernel_tcp: bool,
    /// Receiver agent of this side, which decides when to acknowledge, such as delayed:d=3
    #[arg(long, value_name = "SPEC", conflicts_with = "kernel_tcp")]
    receiver: Option<String>,
    /// Sender agents of this side, which decide how much to send, such as '[newreno, limit:4]'
    #[arg(long, value_name = "SPECS", conflicts_with = "kernel_tcp")]
    sender: Option<String>,
    /// Receiver agents that only observe, such as '[delayed:d=4, dca]'; the report says what each would have
    /// sent
    #[arg(long, value_name = "SPECS", conflicts_with = "kernel_tcp")]
    shadows: Option<String>,
    /// Number of hops to the peers (default: from the hop limit of their packets)
    #[arg(long, value_name = "N", conflicts_with = "kernel_tcp", value_parser = numbers::whole(1..=u8::MAX))]
    hops: Option<u8>,
    /// Number of kernels on the path that forward between a TUN device and the radio and are no hops; 1 if
    /// the peer is on the radio itself [default on a TUN device: 2, one at each end]
    #[arg(long, value_name = "N", conflicts_with = "kernel_tcp", value_parser = numbers::whole(0..=2_u8))]
    crossings: Option<u8>,
}

/// RFC 791: every link carries that much.
const SMALLEST_MTU: u16 = 68;
const SMALLEST_MTU_V6: u16 = 1280;

#[derive(Clone, Debug)]
pub(crate) enum Carrier {
    Hopwise {
        stack: Stack,
        agents: AgentChoice,
        /// Tells the connections the facts about their first links.
        _links: Arc<LinkTeller>,
    },
    Kernel,
}

impl LinkArguments {
    /// Makes the stack, which owns its devices.
    pub(crate) fn open(&self) -> Result<Carrier, Failure> {
        if self.kernel_tcp {
            return Ok(Carrier::Kernel);
        }
        let agents = checked_agents([&self.receiver, &self.sender, &self.shadows])?;
        self.check_addresses()?;
        let (endpoint, links, profile) = match (&self.config, self.address) {
            (Some(path), _) => {
                let mut config = config::load(path).map_err(Failure::from)?;
                // A measurement uses one stack, which is one shard.
                config.links.iter_mut().for_each(|link| link.queues = None);
                let opened = links::open_all(&config);
                let mut shards = opened.map_err(|unopened| unopened_link(&unopened, &unopened.error))?;
                let links = shards.pop().unwrap_or_default();
                let endpoint = config.endpoint(links::describe_all(&config, &links), key()?);
                (endpoint, links, config.tcp.profile.0)
            }
            (None, Some(address)) => {
                let (endpoint, links) = self.tun(address)?;
                (endpoint, links, Profile::Modern)
            }
            (None, None) => {
                let wanted =
                    "expected --address ADDRESS for a TUN of its own, --config FILE, or --kernel-tcp";
                return Err(Failure::refused("where to run", wanted));
            }
        };
        let endpoint = self.counting_hops(noticing(endpoint));
        let stack = Stack::start(StackConfig::new(endpoint), links, Box::new(StandardAgents::new(profile)))
            .map_err(Failure::during("start the stack"))?;
        let links = LinkTeller::start(vec![stack.clone()], Capture::default())
            .map_err(Failure::during("start a thread"))?;
        Ok(Carrier::Hopwise { stack, agents, _links: Arc::new(links) })
    }

    /// The command for the other end.
    pub(crate) fn waits_at(&self, port: u16) -> String {
        let own = self.address.map(|address| match address.address() {
            IpAddr::V6(own) => format!("[{own}]:{port}"),
            IpAddr::V4(own) => format!("{own}:{port}"),
        });
        let (at, to) = match own {
            Some(own) => (own.clone(), own),
            None => (format!("port {port} of every address of this machine"), format!("ADDRESS:{port}")),
        };
        format!("waiting at {at}; at the other end: hopwise send {to}\n")
    }

    /// Checks the flags as the check of a node's file does.
    fn check_addresses(&self) -> Result<(), Failure> {
        let both = [("--address", self.address), ("--kernel", self.kernel)];
        let given = both.map(|(flag, address)| address.map(|address| (flag, address)));
        for (flag, address) in given.into_iter().flatten() {
            if !config::is_hosts(address) {
                let problem = format_args!(
                    "{} is not the address of a host: expected one in the subnet",
                    address.address()
                );
                return Err(Failure::refused(flag, problem));
            }
            if address.address().is_ipv6() && self.mtu < SMALLEST_MTU_V6 {
                let problem = format_args!("{} is too small: IPv6 takes {SMALLEST_MTU_V6} bytes", self.mtu);
                return Err(Failure::refused("--mtu", problem));
            }
        }
        if self.kernel.is_some()
            && self.kernel.map(|kernel| kernel.address()) == self.address.map(|own| own.address())
        {
            return Err(Failure::refused("--kernel", "it is --address: expected another one in the subnet"));
        }
        if let Some((own, kernel)) = self.address.zip(self.kernel)
            && !own.contains(kernel.address())
            && !kernel.contains(own.address())
        {
            let problem = format_args!("{} and --address are in no common subnet", kernel.address());
            return Err(Failure::refused("--kernel", format_args!("{problem}: expected one in {own}")));
        }
        Ok(())
    }

    /// Applies the flags about hops.
    fn counting_hops(&self, mut endpoint: EndpointConfig) -> EndpointConfig {
        if let Some(crossings) = self.crossings {
            endpoint.links.iter_mut().for_each(|link| link.crossings = crossings);
        }
        if self.hops.is_some() {
            Arc::make_mut(&mut endpoint.tcp).hops.configured = self.hops;
        }
        endpoint
    }

    /// One TUN that leads everywhere.
    fn tun(&self, address: Prefix) -> Result<(EndpointConfig, Vec<Box<dyn Link>>), Failure> {
        let (kernel_addresses, routes) = match self.kernel {
            Some(kernel) => (vec![kernel], Vec::new()),
            None => (Vec::new(), vec![address]),
        };
        let settings = TunConfig { mtu: self.mtu, kernel_addresses, routes, ..TunConfig::new(&self.tun) };
        let link = Tun::open(&settings).map_err(|error| unopened_link(&error, &error))?;
        let any = if address.address().is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { ANY_V6 };
        let everything = Prefix::new(any, 0).map_err(Failure::during("route"))?;
        let route = Route { to: everything, link: LinkId(0), via: NextHop::Link };
        let described = describe(&link, LinkId(0), vec![address]);
        // A measurement is about each ACK that an agent decides.
        let ack_merge = AckMerge::Off;
        let described = LinkConfig { crossings: config::TUN_CROSSINGS, ack_merge, ..described };
        let endpoint = EndpointConfig { routes: vec![route], ..EndpointConfig::new(described, key()?) };
        Ok((endpoint, vec![Box::new(link)]))
    }
}

/// The agents of the flags --receiver, --sender and --shadows, once their specs are right.
pub(crate) fn checked_agents(
    [receiver, sender, shadows]: [&Option<String>; 3],
) -> Result<AgentChoice, Failure> {
    let checked = [
        ("--receiver", receiver.as_deref().map(hopwise_agents::validate_receiver)),
        ("--sender", sender.as_deref().map(hopwise_agents::validate_senders)),
        ("--shadows", shadows.as_deref().map(hopwise_agents::validate_shadows)),
    ];
    for (flag, spec) in checked {
        spec.transpose().map_err(|error| Failure::refused(flag, error))?;
    }
    Ok(AgentChoice { receiver: receiver.clone(), senders: sender.clone(), shadows: shadows.clone() })
}

/// The failure to open a link, with the command that may.
fn unopened_link(said: &dyn fmt::Display, error: &LinkError) -> Failure {
    let advice = shell::as_root().filter(|_| error.is_forbidden());
    let advice = advice.map_or(String::new(), |advice| format!("; {advice}"));
    Failure::failed("open a link", format_args!("{said}{advice}"))
}

/// Sets keep-alive: an end that only receives would never notice a lost sender.
fn noticing(endpoint: EndpointConfig) -> EndpointConfig {
    let seconds = Duration::from_secs;
    let keep_alive = KeepAlive { idle: seconds(10), interval: seconds(5), probes: 4 };
    let keep_alive = endpoint.tcp.keep_alive.or(Some(keep_alive));
    EndpointConfig { tcp: Arc::new(TcpConfig { keep_alive, ..(*endpoint.tcp).clone() }), ..endpoint }
}

const ANY_V6: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

fn key() -> Result<[u8; 32], Failure> {
    random_key().map_err(Failure::during("draw a key"))
}

impl Carrier {
    pub(crate) async fn connect(&self, to: SocketAddr) -> io::Result<Stream> {
        match self {
            Carrier::Kernel => Ok(Stream::kernel(tokio::net::TcpStream::connect(to).await?)),
            Carrier::Hopwise { stack, agents, .. } => {
                let options = ConnectOptions { agents: agents.clone(), ..ConnectOptions::default() };
                Ok(Stream::Hopwise(stack.connect(to, &options).await?))
            }
        }
    }

    pub(crate) async fn listen(&self, port: u16) -> io::Result<Listener> {
        match self {
            Carrier::Kernel => Ok(Listener::Kernel(tokio::net::TcpListener::bind((ANY_V6, port)).await?)),
            Carrier::Hopwise { stack, agents, .. } => {
                let options = ListenOptions { agents: agents.clone(), ..ListenOptions::default() };
                let listener = stack.listen(None, port, options);
                Ok(Listener::Hopwise(listener.map_err(|error| io::Error::other(error.to_string()))?))
            }
        }
    }

    /// Ends the stack in order.
    pub(crate) async fn stop(self) {
        const WITHIN: Duration = Duration::from_secs(3);
        if let Carrier::Hopwise { stack, .. } = self {
            // The links go with the stack even if it ends badly.
            let _ = tokio::task::spawn_blocking(move || stack.stop(WITHIN)).await;
        }
    }
}

#[derive(Debug)]
pub(crate) enum Listener {
    Hopwise(hopwise_host::TcpListener),
    Kernel(tokio::net::TcpListener),
}

impl Listener {
    /// The next connection, and its address. It fails once the stack has been stopped.
    pub(crate) async fn accept(&self) -> io::Result<(Stream, IpAddr)> {
        match self {
            Listener::Hopwise(listener) => {
                let stream = listener.accept().await?;
                let from = stream.peer_addr().ip();
                Ok((Stream::Hopwise(stream), from))
            }
            Listener::Kernel(listener) => loop {
                match listener.accept().await {
                    Ok((stream, from)) => return Ok((Stream::kernel(stream), from.ip().to_canonical())),
                    // Too many files are open, or the peer is gone already. A later call may succeed.
                    Err(_) => sleep(ACCEPT_AGAIN_AFTER).await,
                }
            },
        }
    }
}

#[derive(Debug)]
pub(crate) enum Stream {
    Hopwise(hopwise_host::TcpStream),
    /// Its addresses are noted now: the kernel does not give them after the end of the connection.
    Kernel(tokio::net::TcpStream, StreamEnds),
}

#[derive(Clone, Debug)]
pub(crate) struct StreamEnds {
    local: String,
    remote: String,
}

impl Stream {
    fn kernel(stream: tokio::net::TcpStream) -> Stream {
        // A socket that listens for both families shows IPv4 as a part of IPv6.
        let text = |address: io::Result<SocketAddr>| {
            let plain = address.map(|at| SocketAddr::new(at.ip().to_canonical(), at.port()));
            plain.map_or_else(|_| String::new(), |at| at.to_string())
        };
        let ends = StreamEnds { local: text(stream.local_addr()), remote: text(stream.peer_addr()) };
        Stream::Kernel(stream, ends)
    }

    /// Sends small messages at once: a request must not wait for the ACK of earlier data.
    pub(crate) fn set_nodelay(&self) {
        // A lost connection shows at the next write.
        let _ = match self {
            Stream::Kernel(stream, _) => stream.set_nodelay(true).is_ok(),
            Stream::Hopwise(stream) => stream.stack().with(|now, endpoint| {
                let id = stream.id();
                let options = endpoint.options(id).map(|options| Options { nagle: false, ..options });
                options.is_ok_and(|options| endpoint.set_options(now, id, options).is_ok())
            }),
        };
    }

    /// This side's view of the connection. The kernel gives only addresses.
    pub(crate) fn report(&self) -> SideReport {
        match self {
            Stream::Hopwise(stream) => {
                let now = stream.stack().clock().now();
                stream.info().map_or_else(SideReport::default, |info| SideReport::of(now, &info))
            }
            Stream::Kernel(_, StreamEnds { local, remote }) => {
                SideReport { local: local.clone(), remote: remote.clone(), ..SideReport::default() }
            }
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Hopwise(stream) => Pin::new(stream).poll_read(cx, into),
            Stream::Kernel(stream, _) => Pin::new(stream).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Hopwise(stream) => Pin::new(stream).poll_write(cx, data),
            Stream::Kernel(stream, _) => Pin::new(stream).poll_write(cx, data),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Hopwise(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Kernel(stream, _) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Hopwise(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Kernel(stream, _) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
