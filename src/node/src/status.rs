//! `hopwise status`: prints the state of a running node.

use std::io::Write;

use clap::Args;

use crate::control::client::Control;
use crate::control::{Request, Response};
use crate::snapshot::Snapshot;
use hopwise_daemon::failure::Failure;

pub(super) mod printing;

use printing::page;

/// Show the state of a running node or routing daemon
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise status
  hopwise status --control /run/hopwise/n2.sock --json | jq .connections
  hopwise status --control /run/hopwise/route.sock       # `control:` of hopwise route")]
pub struct Arguments {
    #[command(flatten)]
    control: Control,
    /// Also show what is zero: bounds of which nothing is held, and counts of relays
    #[arg(short, long)]
    verbose: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let text = match arguments.control.ask(&Request::Status)? {
        Response::Status(snapshot) if arguments.json => json(&snapshot)?,
        Response::Status(snapshot) => page(&snapshot, arguments.verbose),
        Response::Routing(snapshot) if arguments.json => json(&snapshot)?,
        Response::Routing(snapshot) => snapshot.page(),
        _ => return Err(Failure::failed("ask the daemon", "it answered another question")),
    };
    hopwise_daemon::failure::printed(hopwise_lab::plain::out().write_all(text.as_bytes()))
}

fn json(snapshot: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(snapshot).map_err(|error| Failure::failed("write JSON", error))?;
    Ok(text + "\n")
}

pub fn ask(control: &Control) -> Result<Snapshot, Failure> {
    match control.ask(&Request::Status)? {
        Response::Status(snapshot) => Ok(*snapshot),
        Response::Routing(_) => {
            Err(Failure::failed("ask the daemon", "it routes: `hopwise status` shows it"))
        }
        _ => Err(Failure::failed("ask the daemon", "it answered another question")),
    }
}
