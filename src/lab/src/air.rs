//! `hopwise air`: the radios of a scenario for real programs, which know nothing of the simulation.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use hopwise_daemon::failure::Failure;

pub(crate) mod hwsim;
mod medium;
pub(crate) mod netns;

/// Run programs over emulated Wi-Fi, in network namespaces or a virtual machine
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise air netns configs/chain.yaml -- ip netns exec chain-n0 ping -c 3 10.0.0.3
  hopwise air hwsim configs/chain.yaml --set topology.hops=3 --shell
  hopwise air medium net.cfg --vhost-user medium.socket")]
pub struct Arguments {
    #[command(subcommand)]
    world: AirWorld,
}

#[derive(Debug, Subcommand)]
enum AirWorld {
    Netns(netns::Arguments),
    Hwsim(hwsim::Arguments),
    Medium(medium::Arguments),
}

/// Returns the exit status of COMMAND, if there was one.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.world {
        AirWorld::Netns(arguments) => netns::run(arguments),
        AirWorld::Hwsim(arguments) => hwsim::run(arguments),
        AirWorld::Medium(arguments) => medium::run(arguments),
    }
}
