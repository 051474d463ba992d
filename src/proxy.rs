//! `hopwise proxy`: what a base station does for a link that fades.

use clap::{Args, Subcommand};

use crate::failure::Failure;

mod plan;

/// Plan how a base station bridges a fade
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  hopwise proxy plan --acks 30 --outage 1000 --rtt 1 --rttvar .3")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    subcommand: Sub,
}

#[derive(Debug, Subcommand)]
enum Sub {
    Plan(plan::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.subcommand {
        Sub::Plan(arguments) => plan::run(arguments),
    }
}
