//! `hopwise replay`: decides the ACKs of a capture again, and tells what other agents would have decided.

use std::path::PathBuf;

use clap::Args;
use hopwise_agents::spec::{ReceiverSpec, SpecError, parse_receiver};
use hopwise_core::tcp::decisions::Replay;

use crate::failure::{Failure, say};

mod blocks;
mod connections;
mod files;
mod findings;
mod frames;
mod printing;

use connections::Connections;

/// Decide the ACKs of a capture again, by the same agent and by others
///
/// A capture holds what the receiver agent of each connection was asked, and what it decided. The agent is
/// asked again: its decisions have to be the same, byte for byte. With --receiver, other agents get the same
/// arrivals, and the command tells how many ACKs they would have sent, and how long segments would have waited.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise replay n2.pcapng
  hopwise replay n2.pcapng --receiver immediate --receiver delayed:d=4
  hopwise replay n2.pcapng --connection 3 --receiver dca --json
  hopwise replay n2.2.pcapng n2.1.pcapng n2.pcapng      # a capture that was rotated

Other agents get the arrivals that the ACKs of the live agent led to. Their own ACKs would have led to others.

Exit status: 0 no decision differs; 1 one differs, or a file is damaged; 2 a file or argument is refused.")]
pub(crate) struct Arguments {
    /// Capture of a node, or of the ends of flows (ends/NODE.pcapng of `hopwise run` and `trial`); all files of
    /// one that was rotated, in any order
    #[arg(required = true)]
    file: Vec<PathBuf>,
    /// Receiver agent that gets the same arrivals; repeatable, up to 8
    #[arg(long, value_name = "SPEC", value_parser = spec)]
    receiver: Vec<ReceiverSpec>,
    /// Only connection to replay: its number in the output, or the address and port of an end
    #[arg(long, value_name = "NUMBER|ADDRESS:PORT")]
    connection: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn spec(text: &str) -> Result<ReceiverSpec, SpecError> {
    parse_receiver(text)
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { file, receiver, connection, json } = arguments;
    if receiver.len() > Replay::MOST_OTHERS {
        let problem = format!("{} agents, expected {} at most", receiver.len(), Replay::MOST_OTHERS);
        return Err(Failure::refused("--receiver", problem));
    }
    let paths = files::in_order(file)?;
    let mut connections = Connections::new(receiver, connection.as_deref());
    files::read(&paths, &mut connections)?;
    let mut findings = connections.conclude()?;
    frames::find(&paths, &mut findings)?;
    let text = if *json {
        serde_json::to_string(&findings).map_err(|error| Failure::failed("write JSON", error))?
    } else {
        printing::page(&findings)
    };
    say(text.trim_end())?;
    findings.verdict()
}
