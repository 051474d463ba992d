//! `hopwise world`: the nodes of a scenario on kernels' own stacks.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::failure::Failure;

pub(crate) mod hwsim;

/// Run real programs in a world that a scenario describes, and that is closer to a machine than its simulation
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise world hwsim configs/chain.yaml --set topology.hops=3 --shell
  hopwise world hwsim configs/chain.yaml --set topology.hops=3 -- ip netns exec n0 ping -c 5 10.0.0.4")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    subcommand: Sub,
}

#[derive(Debug, Subcommand)]
enum Sub {
    Hwsim(hwsim::Arguments),
}

/// Returns the status of the command that ran in the world.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.subcommand {
        Sub::Hwsim(arguments) => hwsim::run(arguments),
    }
}
