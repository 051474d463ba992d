//! `hopwise node`: a daemon that is a TCP/IP host of its own.

#![allow(missing_docs, reason = "parts of one command: what a name says needs no comment")]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

use std::path::PathBuf;

use clap::Args;
use hopwise_lab::located::Document;

use hopwise_daemon::failure::{self, Failure};

mod bind;
pub mod config;
mod confined;
pub mod control;
mod counts;
mod daemon;
pub(crate) mod descriptors;
pub mod exec;
pub mod fleet;
mod forward;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod hangup;
pub mod links;
mod log_limit;
mod lookups;
pub mod measure;
mod metrics;
mod origin;
pub mod paths;
pub(crate) mod places;
pub(crate) mod relay;
pub(crate) mod seats;
mod services;
pub mod snapshot;
mod socks5;
pub(crate) use socks5::client as socks5_client;
mod stage;
pub mod status;
mod transparent;
pub use metrics::serve_page;
pub use transparent::hangs as transparent_hangs;
pub(crate) mod unfinished;
mod unmet;
mod users;

/// Run Hopwise's TCP/IP on a TUN device or interface, with SOCKS5 and forwards
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise node configs/node.yaml
  hopwise node configs/node.yaml --check
  kill -HUP $(pidof hopwise)     # reads the rules again, for new connections

It ends on SIGTERM, SIGINT or SIGQUIT, once connections have finished or after `stop_within`.")]
pub struct Arguments {
    /// Configuration file in YAML
    config: PathBuf,
    /// Check the configuration and exit
    #[arg(long)]
    check: bool,
    /// Talk to the trial that started it, and end with it
    #[arg(long, hide = true)]
    with_trial: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (document, config) = Document::load_with(&arguments.config, config::read_for_here)?;
    let warnings = [config::shown_passwords(&arguments.config, &config), config.lacks_connections()];
    let warnings: Vec<String> = warnings.into_iter().flatten().collect();
    if arguments.check {
        warnings.iter().for_each(|warning| failure::remark(warning));
        return hopwise_daemon::accepted(&arguments.config);
    }
    hopwise_daemon::log::begin();
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    daemon::run(document, config, &arguments.config, arguments.with_trial)
}
