//! `hopwise agents`: lists agents, with their rule, parameters and origin.

use std::io::{self, BufWriter, Write};

use clap::{Args, Subcommand};
use hopwise_agents::Descriptor;
use hopwise_agents::registry::{self, Kind};
use hopwise_agents::spec::nearest;

use hopwise_daemon::failure::Failure;

mod printing;
pub mod program;

/// List the ACK and sending agents of connections, or show an agent
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise agents
  hopwise agents show dca
  hopwise agents --json | jq -r '.[].name'")]
pub struct Arguments {
    #[command(subcommand)]
    subcommand: Option<AgentsAction>,
    /// Print a JSON array of agents; with `show` one object, or both agents of a shared name
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum AgentsAction {
    /// Print an agent's rule, parameters and paper, and its differences from the paper
    Show {
        /// Name of the agent, as in a spec: dca, delayed, newreno
        name: String,
    },
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let out = &mut BufWriter::new(hopwise_lab::plain::out());
    let all: Vec<_> = registry::all().collect();
    let written = match (&arguments.subcommand, arguments.json) {
        (None, false) => printing::list(&all, out),
        (None, true) => printing::array(&all, out),
        (Some(AgentsAction::Show { name }), json) => {
            let agents = find(name)?;
            if json { printing::objects(&agents, out) } else { printing::each(&agents, out) }
        }
    };
    finish(written.and_then(|()| out.flush()))
}

/// A receiver agent, a sender agent, or one of each.
fn find(name: &str) -> Result<Vec<&'static Descriptor>, Failure> {
    let found: Vec<_> = registry::find(name).collect();
    if found.is_empty() {
        let kinds = [Kind::Receiver, Kind::Sender, Kind::BaseStation];
        let mut known: Vec<_> = Vec::new();
        for named in kinds.into_iter().flat_map(registry::names) {
            // `train` is a name of both kinds.
            if !known.contains(&named) {
                known.push(named);
            }
        }
        return Err(Failure::refused(name, unknown(name, &known)));
    }
    Ok(found)
}

/// A scenario chooses agents by specs, so that people may type a spec here too.
fn unknown(name: &str, known: &[&str]) -> String {
    let bare = name
        .split(['(', ')', ':', '[', ']', ',', '"'])
        .find(|word| !word.trim().is_empty())
        .unwrap_or_default()
        .trim();
    let advice = if known.contains(&bare) {
        format!("a name alone is wanted: `{bare}`; ")
    } else {
        let nearest = nearest(bare, known.iter().copied());
        nearest.map_or(String::new(), |nearest| format!("did you mean `{nearest}`? "))
    };
    format!("no agent is called that; {advice}accepted: {}", known.join(", "))
}

/// A reader that has enough, such as `head`, closes the pipe; that is no failure.
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
