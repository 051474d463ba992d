//! `hopwise thin`: receiver agents for the TCP of the kernel.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hopwise_host::mtu_of;
use hopwise_lab::units::Time;
use hopwise_mesh::ThinConfig;

use hopwise_daemon::failure::Failure;
use hopwise_daemon::numbers;

mod captured;
pub mod config;
mod serve;

use config::{DEFAULT_RECEIVER, ThinSettings};

/// Hold and merge the ACKs of this kernel's TCP by a receiver agent
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  hopwise thin wlan0
  hopwise thin wlan0 --receiver aad
  hopwise thin --config configs/keys/thin.yaml        # agents by interface, port and network
  hopwise status --control /run/hopwise/thin.sock --json

It runs on the host that receives, or on the last router before it, and serves all TCP that leaves by the interface.
The other end needs nothing. It needs root to start, nft or iptables, and netfilter queues. It ends on SIGTERM,
SIGINT, SIGQUIT or SIGHUP. ACKs then leave as without it, also if it is killed or hangs.")]
pub struct Arguments {
    /// Interface by which the ACKs leave; repeatable
    #[arg(required_unless_present = "config", conflicts_with = "config", value_name = "INTERFACE")]
    interfaces: Vec<String>,
    /// Receiver agent of each flow: `hopwise agents` lists them
    #[arg(long, value_name = "AGENT", default_value = DEFAULT_RECEIVER, conflicts_with = "config")]
    receiver: String,
    /// File with the interfaces, and with agents by interface, port and network
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Number of a netfilter queue that no other program uses
    #[arg(long, value_name = "NUMBER", default_value = "7300", value_parser = numbers::whole(0..=u16::MAX))]
    queue: u16,
    /// Most flows that are followed; ACKs of further flows pass
    #[arg(long, value_name = "FLOWS", default_value = "4000", value_parser = numbers::whole(1..=4_000_usize))]
    flows: usize,
    /// Address at which Prometheus reads the counters, at /metrics (default: none)
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listening)]
    metrics: Option<SocketAddr>,
    /// File for a capture of the ACKs, each with its fate (pcapng; the newest gigabyte stays)
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Control socket, for `hopwise status`
    #[arg(long, value_name = "SOCKET", default_value = "/run/hopwise/thin.sock")]
    control: PathBuf,
    /// Time without work after which the daemon is killed, so that ACKs go on without it: 600ms or more
    #[arg(long, value_name = "TIME", default_value = "800ms", value_parser = patience)]
    watchdog: Duration,
    /// Talk to the trial that started it, and end with it
    #[arg(long, hide = true)]
    with_trial: bool,
}

/// Linux's HyStart wants eight measured round trips in each round of slow start. It gets eleven, or what the kernel
/// sends.
const GROWTH: u32 = 16;
/// Beats come each 200 ms.
const LEAST_PATIENCE: Duration = Duration::from_millis(600);

fn patience(text: &str) -> Result<Duration, String> {
    let time = serde_yaml::from_str::<Time>(text).map_err(|error| error.to_string())?.0;
    if time < LEAST_PATIENCE { Err("expected 600ms or more".to_owned()) } else { Ok(time) }
}

fn listening(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected an address and a port, such as 127.0.0.1:9100".to_owned())
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let settings = match &arguments.config {
        Some(path) => config::load(path)?,
        None => ThinSettings::of(&arguments.interfaces, &arguments.receiver),
    };
    let rules = settings.rules()?;
    let mtu = settings.interfaces.iter().filter_map(|name| mtu_of(name)).min().unwrap_or(1_500);
    hopwise_daemon::log::begin();
    let config = ThinConfig { rules, mtu, most_flows: arguments.flows, growth: GROWTH };
    let receiver = settings.receiver().to_owned();
    serve::run(&Arguments { interfaces: settings.interfaces, receiver, ..arguments.clone() }, config)
}
