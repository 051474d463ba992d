//! `hopwise node`: a daemon that is a TCP/IP host of its own.

use std::path::PathBuf;

use clap::Args;

use crate::failure::{self, Failure};

mod bind;
pub(crate) mod config;
mod confined;
pub(crate) mod control;
mod counts;
mod crowding;
mod daemon;
pub(crate) mod descriptors;
mod forward;
pub mod fuzzing;
mod greed;
mod hangup;
pub(crate) mod links;
mod log_limit;
mod lookups;
mod metrics;
mod names;
mod origin;
mod paths;
pub(crate) mod places;
pub(crate) mod relay;
pub(crate) mod seats;
mod services;
pub(crate) mod snapshot;
mod socks5;
pub(crate) use socks5::client as socks5_client;
mod stage;
pub(crate) mod status;
pub(crate) mod top;
mod transparent;
pub(crate) use transparent::hangs as transparent_hangs;
pub(crate) mod unfinished;
mod unmet;
mod users;

/// Run a node: its own TCP/IP on a TUN device or an interface, with SOCKS5 and forwards for other programs
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise node configs/node.yaml
  hopwise node configs/node.yaml --check
  kill -HUP $(pidof hopwise)     # reads the rules again, for new connections

It ends on SIGTERM, SIGINT or SIGQUIT, once connections have finished or after `stop_within`.")]
pub(crate) struct Arguments {
    /// Configuration file in YAML
    config: PathBuf,
    /// Check the configuration and exit
    #[arg(long)]
    check: bool,
    /// Talk to the trial that started it, and end with it
    #[arg(long, hide = true)]
    with_trial: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (document, config) = config::load_for_here(&arguments.config).map_err(Failure::from)?;
    let warnings = [config::shown_passwords(&arguments.config, &config), config.lacks_connections()];
    let warnings: Vec<String> = warnings.into_iter().flatten().collect();
    if arguments.check {
        warnings.iter().for_each(|warning| failure::remark(warning));
        return crate::daemon::accepted(&arguments.config);
    }
    crate::daemon::log::begin();
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    daemon::run(document, config, &arguments.config, arguments.with_trial)
}
