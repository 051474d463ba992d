//! `hopwise route`: AODV or AODVv2 on this machine's interfaces, for all programs on it.

use std::path::PathBuf;

use clap::Args;
use hopwise_lab::located::Document;

use hopwise_daemon::failure::Failure;

mod arrivals;
pub mod config;
mod daemon;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod kernel;
mod keys;
mod nodes;
mod state;
mod stations;
mod status;
mod switches;

/// Run a routing daemon (AODV or AODVv2) on this machine's interfaces
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise route configs/route.yaml
  hopwise route configs/route.yaml --check

Packets to the mesh without a route go to a TUN device, wait there until a route is found, and then follow the
kernel's routing table. It needs root to start. It ends on SIGTERM, SIGINT or SIGQUIT and then removes its routes. With
`keys:` it signs its messages and refuses messages that none of the keys has signed. SIGHUP reads the file of
the keys again.")]
pub struct Arguments {
    /// Configuration file in YAML
    config: PathBuf,
    /// Check the configuration and exit
    #[arg(long)]
    check: bool,
    /// Obey a trial that has started this: begin at its word, end when standard input does, and then print counts
    #[arg(long, hide = true)]
    with_trial: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (document, config) = Document::load_with(&arguments.config, config::read)?;
    let keys = config.read_keys()?;
    if arguments.check {
        return hopwise_daemon::accepted(&arguments.config);
    }
    if let Some(absent) = config::absent_interface(&document, &config) {
        return Err(absent);
    }
    hopwise_daemon::log::begin();
    daemon::run(config, keys, arguments.with_trial)
}
