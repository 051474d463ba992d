//! Commands that run a mesh: the routing daemon, simulated radios for kernels that have none, and the hosts of a fleet.

use clap::{Args, Subcommand};

use crate::failure::Failure;

pub(crate) mod air;
mod hosts;
mod lag;
pub(crate) mod route;
mod status;
pub(crate) mod world;

/// The hosts of a mesh: their state in one table
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise mesh hosts --inventory configs/inventory.yaml      # the hosts, and how each is reached
  hopwise mesh status --inventory configs/inventory.yaml     # their state")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Status(status::Arguments),
    Hosts(hosts::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.what {
        What::Status(arguments) => status::run(arguments),
        What::Hosts(arguments) => hosts::run(arguments),
    }
}
