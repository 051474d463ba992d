//! Commands that run a mesh: its interfaces, the routing daemon, simulated radios for kernels that have none, the hosts
//! of a fleet, and recordings of its links.

#![allow(missing_docs, reason = "parts of one command: what a name says needs no comment")]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

use clap::{Args, Subcommand};

use hopwise_daemon::failure::Failure;

pub mod bringup;
mod merge;
pub mod proxy;
mod record;
pub mod route;
mod status;
mod study;
pub mod thin;
mod watchdog;

/// Configure mesh interfaces, show a mesh's hosts, and record its links
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise mesh up configs/mesh.yaml     # and within 60 s, over a new connection:
  hopwise mesh confirm
  hopwise mesh down                     # back to what was there before
  hopwise mesh hosts --inventory configs/inventory.yaml      # the hosts, and how each is reached
  hopwise mesh status --inventory configs/inventory.yaml     # their state
  hopwise mesh record wlan0 --out roof.csv                   # the links of this host over time
  hopwise mesh merge gate.csv roof.csv --out field.csv       # for `channel: { trace: field.csv }`")]
pub struct Arguments {
    #[command(subcommand)]
    subcommand: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    Up(bringup::up::Arguments),
    /// Keep what `hopwise mesh up` changed
    #[command(after_help = "\
Example:
  ssh pi1 hopwise mesh confirm    # a new connection shows that the machine is still in reach")]
    Confirm(bringup::Arguments),
    /// Restore what was there before `hopwise mesh up`
    #[command(after_help = "\
Example:
  hopwise mesh down

It also undoes what an interrupted `hopwise mesh up` left, and needs no confirmation. End `hopwise route` and `hopwise
node` on these interfaces first.")]
    Down(bringup::Arguments),
    #[command(hide = true)]
    Keep(bringup::keep::Arguments),
    Status(status::Arguments),
    Hosts(status::HostsArguments),
    Record(record::Arguments),
    Merge(merge::Arguments),
    Study(study::Arguments),
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.subcommand {
        Subcommands::Up(arguments) => bringup::up::run(arguments),
        Subcommands::Confirm(arguments) => bringup::confirm(arguments),
        Subcommands::Down(arguments) => bringup::down(arguments),
        Subcommands::Keep(arguments) => bringup::keep::run(arguments),
        Subcommands::Status(arguments) => status::run(arguments),
        Subcommands::Hosts(arguments) => status::hosts(arguments),
        Subcommands::Record(arguments) => record::run(arguments),
        Subcommands::Merge(arguments) => merge::run(arguments),
        Subcommands::Study(arguments) => study::run(arguments),
    }
}
