//! `hopwise thin`: receiver agents for the TCP of the kernel.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hopwise_agents::StandardAgents;
use hopwise_core::agent::AgentMaker;
use hopwise_host::mtu_of;
use hopwise_lab::units::Time;
use hopwise_mesh::ThinConfig;

use hopwise_daemon::failure::Failure;
use hopwise_daemon::numbers;

mod serve;

/// Hold and merge the ACKs of this kernel's TCP by a receiver agent
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise thin wlan0
  hopwise thin wlan0 --receiver aad
  hopwise status --control /run/hopwise/thin.sock --json

It runs on the host that receives, or on the last router before it, and serves all TCP that leaves by the interface.
The other end needs nothing. It needs root to start, nft or iptables, and netfilter queues. It ends on SIGTERM,
SIGINT, SIGQUIT or SIGHUP. ACKs then leave as without it, also if it is killed or hangs.")]
pub struct Arguments {
    /// Interface by which the ACKs leave; repeatable
    #[arg(required = true, value_name = "INTERFACE")]
    interfaces: Vec<String>,
    /// Receiver agent of each flow: `hopwise agents` lists them
    #[arg(long, value_name = "AGENT", default_value = "delayed:d=8")]
    receiver: String,
    /// Number of a netfilter queue that no other program uses
    #[arg(long, value_name = "NUMBER", default_value = "7300", value_parser = numbers::whole(0..=u16::MAX))]
    queue: u16,
    /// Most flows that are followed; ACKs of further flows pass
    #[arg(long, value_name = "FLOWS", default_value = "4000", value_parser = numbers::whole(1..=4_000_usize))]
    flows: usize,
    /// Control socket, for `hopwise status`
    #[arg(long, value_name = "SOCKET", default_value = "/run/hopwise/thin.sock")]
    control: PathBuf,
    /// Time without work after which the daemon is killed, so that ACKs go on without it: 600ms or more
    #[arg(long, value_name = "TIME", default_value = "800ms", value_parser = patience)]
    watchdog: Duration,
}

/// As many ACKs as Linux has in its quick-ACK mode, besides the one that shows where a flow is.
const QUICK: u32 = 16;
/// Beats come each 200 ms.
const LEAST_PATIENCE: Duration = Duration::from_millis(600);

fn patience(text: &str) -> Result<Duration, String> {
    let time = serde_yaml::from_str::<Time>(text).map_err(|error| error.to_string())?.0;
    if time < LEAST_PATIENCE { Err("expected 600ms or more".to_owned()) } else { Ok(time) }
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let spec = &arguments.receiver;
    let receiver =
        StandardAgents::default().receiver(spec).map_err(|error| Failure::refused("--receiver", error))?;
    let mtu = arguments.interfaces.iter().filter_map(|name| mtu_of(name)).min().unwrap_or(1_500);
    hopwise_daemon::log::begin();
    serve::run(arguments, ThinConfig { receiver, mtu, most_flows: arguments.flows, quick: QUICK })
}
