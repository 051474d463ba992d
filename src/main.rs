//! The `hopwise` command: one file a subcommand.
//!
//! Exit status: 0 done, 1 the work failed, 2 the input was refused (with the place and what would be accepted).

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod failure;
mod trace;

/// A user-level TCP for multi-hop 802.11, with the ACK decision and the sending decision chosen per connection.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Command {
    #[command(subcommand)]
    subcommand: Sub,
}

#[derive(Debug, Subcommand)]
enum Sub {
    Trace(trace::Arguments),
}

fn main() -> ExitCode {
    let Command { subcommand } = Command::parse();
    let done = match subcommand {
        Sub::Trace(arguments) => trace::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("hopwise: {failure}");
            failure.exit_code()
        }
    }
}
