//! `hopwise agents`: which agents there are, and what each does, by what parameters and where from.

use std::io::{self, BufWriter, Write};

use clap::{Args, Subcommand};
use hopwise_agents::Descriptor;
use hopwise_agents::registry::{self, Kind};

use crate::failure::Failure;

mod print;

/// List the agents that a connection can have, or show one
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise agents
  hopwise agents show dca
  hopwise agents --json | jq -r '.[].name'")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    subcommand: Option<Sub>,
    /// An array of objects, one an agent; with `show` that object, or both of a name that both kinds have
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Sub {
    /// Print an agent's rule, its parameters, its paper, and where it departs from that
    Show {
        /// As in a spec: dca, delayed, newreno
        name: String,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let out = &mut BufWriter::new(io::stdout().lock());
    let written = match (&arguments.subcommand, arguments.json) {
        (None, false) => print::list(registry::all(), out),
        (None, true) => print::array(registry::all(), out),
        (Some(Sub::Show { name }), json) => {
            let agents = find(name)?;
            if json { print::objects(&agents, out) } else { print::each(&agents, out) }
        }
    };
    finish(written.and_then(|()| out.flush()))
}

/// A receiver agent, a sender agent, or one of each.
fn find(name: &str) -> Result<Vec<&'static Descriptor>, Failure> {
    let found: Vec<_> = registry::find(name).collect();
    if found.is_empty() {
        let kinds = [Kind::Receiver, Kind::Sender, Kind::BaseStation];
        let known: Vec<_> = kinds.into_iter().flat_map(registry::names).collect();
        let problem = format_args!("no agent is called that; accepted: {}", known.join(", "));
        return Err(Failure::refused(name, problem));
    }
    Ok(found)
}

/// A reader that has seen enough, such as `head`, closes the pipe; that is no failure.
fn finish(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Failed { doing: "writing to standard output", problem: error.to_string() })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
