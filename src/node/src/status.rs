//! `hopwise status`: prints the state of a running daemon, or watches it.

use std::io::Write;

use clap::Args;

use crate::control::client::Control;
use crate::control::{Request, Response};
use crate::snapshot::Snapshot;
use hopwise_daemon::failure::{Failure, json};

pub(super) mod printing;
pub(super) mod watch;

use printing::page;
use watch::WatchArguments;

/// Show the state of a running daemon, once or live
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise status
  hopwise status --control /run/hopwise/n2.sock --json | jq .connections
  hopwise status --control /run/hopwise/route.sock       # `control:` of hopwise route
  hopwise status --watch                                 # a node's connections: rates, cwnd, RTT, ACKs per segment
  hopwise status --watch --control /run/hopwise/thin.sock --every 250ms    # the counts of another daemon
  hopwise status --watch --once                          # one frame as text, for scripts
  hopwise status --watch --fleet --inventory configs/inventory.yaml

Keys while it watches: q or Esc ends it. With --fleet, the keys n, s, u, a and c choose the order: as in the inventory,
or by signal, queue, airtime or connections.")]
pub struct Arguments {
    #[command(flatten)]
    control: Control,
    /// Also show what is zero: bounds of which nothing is held, and counts of relays
    #[arg(short, long)]
    verbose: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Draw a node's connections, or another daemon's state, anew each second
    #[arg(short, long, conflicts_with_all = ["verbose", "json"])]
    watch: bool,
    #[command(flatten, next_help_heading = "With --watch")]
    watching: WatchArguments,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.watch {
        return watch::run(&arguments.control, &arguments.watching);
    }
    if arguments.watching.chosen.inventory.is_some() {
        return Err(Failure::refused("--inventory", "expected --watch --fleet beside it"));
    }
    let text = match arguments.control.ask(&Request::Status)? {
        Response::Status(snapshot) if arguments.json => json(&snapshot)? + "\n",
        Response::Routing(snapshot) if arguments.json => json(&snapshot)? + "\n",
        Response::Thin(snapshot) if arguments.json => json(&snapshot)? + "\n",
        told => page_of(&told, arguments.verbose)?,
    };
    hopwise_daemon::failure::printed(hopwise_lab::plain::out().write_all(text.as_bytes()))
}

/// What any daemon says of its state, as a page.
fn page_of(told: &Response, all: bool) -> Result<String, Failure> {
    match told {
        Response::Status(snapshot) => Ok(page(snapshot, all)),
        Response::Routing(snapshot) => Ok(snapshot.page()),
        Response::Thin(snapshot) => Ok(snapshot.page()),
        _ => Err(Failure::failed("ask the daemon", "it answered another question")),
    }
}

/// The state of a node.
pub fn ask(control: &Control) -> Result<Snapshot, Failure> {
    match control.ask(&Request::Status)? {
        Response::Status(snapshot) => Ok(*snapshot),
        _ => Err(Failure::failed("ask the daemon", "it is no node")),
    }
}
