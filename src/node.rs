//! `hopwise node`: a TCP/IP host of its own as a daemon.

use std::path::PathBuf;

use clap::Args;

use crate::failure::Failure;

mod bind;
pub(crate) mod config;
mod confined;
pub(crate) mod control;
mod counts;
mod daemon;
mod descriptors;
mod forward;
mod hangup;
pub(crate) mod links;
mod metrics;
mod names;
mod paths;
mod relay;
mod seats;
pub(crate) mod snapshot;
mod socks5;
mod stage;
pub(crate) mod status;
pub(crate) mod top;
mod unfinished;
mod unmet;

/// Run a node: its own TCP/IP on a TUN device or an interface, with SOCKS5 and forwards for other programs
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise node configs/node.yaml
  hopwise node configs/node.yaml --check
  kill -HUP $(pidof hopwise)     # reads the rules anew, for connections that begin afterwards

It ends on SIGTERM and SIGINT, when connections have finished or `stop_within` is over.")]
pub(crate) struct Arguments {
    /// The configuration, in YAML
    config: PathBuf,
    /// Only say whether the configuration is accepted
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (document, config) = config::load_for_here(&arguments.config).map_err(Failure::from)?;
    if arguments.check {
        return crate::daemon::accepted(&arguments.config);
    }
    crate::daemon::log::begin();
    daemon::run(document, config, &arguments.config)
}
