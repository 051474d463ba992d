//! The resources that a node opens with capabilities and uses without, and its stacks.

use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::time::Duration;

use hopwise_agents::StandardAgents;
use hopwise_host::{Capture, Link, Observer, Shards, StackConfig, random_key};

use super::super::bind::bind;
use super::super::config::NodeConfig;
use super::super::metrics::{Adder, Sums};
use super::super::unmet::UnmetRequirement;
use super::super::{forward, links, transparent};
use hopwise_daemon::control;
use hopwise_daemon::failure::Failure;

/// The resources that were opened with capabilities and are used without.
pub(super) struct OpenedResources {
    /// By shard.
    pub links: Vec<Vec<Box<dyn Link>>>,
    pub control: Option<control::BoundSocket>,
    pub(super) socks5: Option<StdListener>,
    pub(super) metrics: Option<StdListener>,
    pub(super) forwards: Vec<forward::BoundForward>,
    pub transparent: Option<transparent::Opened>,
}

/// Starts a stack for each queue; most nodes have one.
pub(super) fn start(
    config: &NodeConfig,
    links: Vec<Vec<Box<dyn Link>>>,
    capture: &Capture,
    sums: &[Arc<Sums>],
) -> Result<Shards, Failure> {
    let keys: Result<Vec<_>, _> = links.iter().map(|_| random_key()).collect();
    let keys = keys.map_err(Failure::during("draw a key"))?;
    let of_shard = |shard: u16, links: &[Box<dyn Link>]| {
        let nth = usize::from(shard);
        let mut observers: Vec<Box<dyn Observer>> = vec![Box::new(capture.tap(shard))];
        if config.metrics.is_some() {
            observers.push(Box::new(Adder(Arc::clone(&sums[nth]))));
        }
        let endpoint = config.endpoint(links::describe_all(config, links), keys[nth]);
        let busy_poll = config.busy_poll.map_or(Duration::ZERO, |time| time.0);
        StackConfig { observers, busy_poll, ..StackConfig::new(endpoint) }
    };
    let profile = config.tcp.profile.0;
    Shards::start(links, of_shard, || Box::new(StandardAgents::new(profile)))
        .map_err(Failure::during("start the stack"))
}

pub(super) fn open(config: &NodeConfig) -> Result<OpenedResources, UnmetRequirement> {
    let links = links::open_all(config).map_err(UnmetRequirement::Link)?;
    let control = config
        .control
        .as_deref()
        .map(control::BoundSocket::new)
        .transpose()
        .map_err(UnmetRequirement::Control)?;
    let bind = |service: &str, address: Option<SocketAddr>| -> Result<_, UnmetRequirement> {
        let listener = address.map(bind).transpose().map_err(UnmetRequirement::Listener)?;
        let chosen = listener.as_ref().filter(|_| address.is_some_and(|address| address.port() == 0));
        // Only the kernel knows a port that it chose.
        if let Some(Ok(listen)) = chosen.map(StdListener::local_addr) {
            tracing::info!(service, %listen, "listens at a free port");
        }
        Ok(listener)
    };
    Ok(OpenedResources {
        links,
        control,
        socks5: bind("socks5", config.socks5.as_ref().map(|socks5| socks5.listen))?,
        metrics: bind("metrics", config.metrics.as_ref().map(|metrics| metrics.listen))?,
        forwards: forward::bind_all(config).map_err(UnmetRequirement::Listener)?,
        transparent: transparent::open(config).map_err(UnmetRequirement::Transparent)?,
    })
}
