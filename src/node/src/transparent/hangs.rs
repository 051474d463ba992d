//! The watch over a node that holds SYNs. While the node hangs, another process lets them go on.
//!
//! A node is never killed for a hang: its carried connections go on when it works again. Connections of hosts that have
//! gone straight on meanwhile must not be caught then. The node looks at the clock for them ([`Pulse`]).

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use caps::Capability;
use clap::Args;
use hopwise_host::transparent::{Bypass, Caught};
use tokio::time::Instant;

use crate::config::NodeConfig;
use hopwise_daemon::confine::{AccessNeeds, Confine, confine};
use hopwise_daemon::failure::Failure;
use hopwise_daemon::log;
use hopwise_daemon::numbers;
use hopwise_daemon::privileges::Privileges;
use hopwise_daemon::watchdog::{Watcher, comes_again, stand_by};

/// The silence after which a node is taken to hang: a SYN is sent again after a second.
const PATIENCE: Duration = Duration::from_millis(800);

/// Starts the watcher. The node also works without one.
pub(super) fn start(caught: &Caught, queue: u16, config: &NodeConfig) -> Option<Watcher> {
    let (queue, how) = (queue.to_string(), config.confine.to_string());
    let arguments = ["bypass", "--queue", &queue, "--confine", &how];
    let started = caught.held.socket().and_then(|socket| Watcher::start(&arguments, socket));
    started.inspect_err(|error| tracing::warn!(%error, "nothing lets SYNs go on while the node hangs")).ok()
}

/// The node's own knowledge of its hangs. The watcher sees beats later than they are noted here: it has let no SYN go
/// in a time that counts as none here.
#[derive(Debug)]
pub(super) struct Pulse {
    last: Instant,
    hung_until: Option<Instant>,
}

impl Pulse {
    pub(super) fn new() -> Pulse {
        Pulse { last: Instant::now(), hung_until: None }
    }

    /// Notes a beat, before it is sent.
    pub(super) fn beat(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.last) >= PATIENCE {
            self.hung_until = Some(now);
        }
        self.last = now;
    }

    /// Returns whether the node has hung at any time since then.
    pub(super) fn hung_since(&self, since: Instant) -> bool {
        self.last.elapsed() >= PATIENCE || self.hung_until.is_some_and(|until| until >= since)
    }
}

/// Let held SYNs go on while standard input is silent. Standard output is the socket of their queue
#[derive(Args, Debug)]
pub struct Arguments {
    /// Number of the queue
    #[arg(long, value_parser = numbers::whole(0..=u16::MAX))]
    queue: u16,
    /// Confinement of the process: on, log or off
    #[arg(long)]
    confine: Confine,
    /// Watch in this process, and not in one that is started again when it is killed
    #[arg(long)]
    alone: bool,
}

fn failed(error: io::Error) -> Failure {
    Failure::failed("watch the node", error)
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    log::begin_for_helper();
    if arguments.alone {
        return watch(arguments);
    }
    log::flow().map_err(failed)?;
    let (queue, how) = (arguments.queue.to_string(), arguments.confine.to_string());
    let watcher = ["bypass", "--alone", "--queue", &queue, "--confine", &how];
    stand_by(&watcher, "lets SYNs go on while the node hangs").map_err(failed)
}

/// The watcher's side.
fn watch(arguments: &Arguments) -> Result<(), Failure> {
    let privileges = Privileges::of_helper().map_err(Failure::during("watch the node"))?;
    // The kernel asks for it with each verdict.
    let needs = AccessNeeds { capabilities: vec![Capability::CAP_NET_ADMIN], ..AccessNeeds::default() };
    let _confined = confine(arguments.confine, &privileges, &needs)?;
    let mut beats = io::stdin().lock();
    let socket = io::stdout().as_fd().try_clone_to_owned().map_err(failed)?;
    let mut bypass = Bypass::new(socket, arguments.queue);
    let mut buffer = [0; 64];
    loop {
        if !comes_again(&beats, PATIENCE).map_err(failed)? {
            tracing::warn!("the node hangs: new connections go straight on");
            let connections = bypass.let_go_until(beats.as_fd()).map_err(failed)?;
            tracing::warn!(
                connections,
                "the node works again, or has ended: some went straight on meanwhile"
            );
        }
        if beats.read(&mut buffer).map_err(failed)? == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_hang_is_known_before_and_after_the_next_beat_and_not_of_syns_that_came_later() {
        let mut pulse = Pulse::new();
        let before = Instant::now();
        sleep(PATIENCE / 2).await;
        assert!(!pulse.hung_since(before));
        pulse.beat();
        sleep(PATIENCE).await;
        assert!(pulse.hung_since(before));
        pulse.beat();
        assert!(pulse.hung_since(before));
        sleep(PATIENCE / 2).await;
        assert!(!pulse.hung_since(Instant::now()));
    }
}
