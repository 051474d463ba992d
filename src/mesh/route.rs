//! `hopwise route`: AODV or AODVv2 on this machine's interfaces, for whatever programs run on it.

use std::path::PathBuf;

use clap::Args;

use crate::failure::Failure;

mod config;
mod daemon;
mod drops;
mod kernel;
mod keys;
mod neighbours;
mod nodes;
mod speaks;
mod state;
mod stations;
mod switches;

/// Find routes on demand (AODV or DYMO) over this machine's interfaces; the kernel forwards
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise route configs/route.yaml
  hopwise route configs/route.yaml --check

Packets to the mesh without a route come to a TUN device, wait there until a route is found, and go on by the
kernel's table. It needs root to start, and ends on SIGTERM and SIGINT; then its routes are gone. With `keys:`
its messages are signed, and those of others that have none of the keys are refused; SIGHUP reads the file of the
keys anew.")]
pub(crate) struct Arguments {
    /// The configuration, in YAML
    config: PathBuf,
    /// Only say whether the configuration is accepted
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let config = config::load(&arguments.config)?;
    let keys = config.read_keys()?;
    if arguments.check {
        return crate::daemon::accepted(&arguments.config);
    }
    crate::daemon::log::begin();
    daemon::run(config, keys)
}
