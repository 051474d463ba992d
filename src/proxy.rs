//! `hopwise proxy`: what a base station does for a link that fades.

use clap::{Args, Subcommand};

use crate::failure::Failure;

mod plan;

/// Plan how a base station bridges a fade
#[derive(Args, Debug)]
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
