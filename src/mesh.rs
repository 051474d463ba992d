//! Commands that run a mesh: its interfaces, the routing daemon, simulated radios for kernels that have none, the hosts
//! of a fleet, and recordings of its links.

use clap::{Args, Subcommand};

use crate::failure::Failure;

pub(crate) mod air;
mod beside;
pub(crate) mod bringup;
mod hosts;
mod lag;
mod merge;
mod record;
pub(crate) mod route;
mod status;
pub(crate) mod world;

/// Bring the interfaces of a mesh up, show its hosts, and record its links
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
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Up(bringup::up::Arguments),
    Confirm(bringup::confirm::Arguments),
    Down(bringup::down::Arguments),
    #[command(hide = true)]
    Keep(bringup::keep::Arguments),
    Status(status::Arguments),
    Hosts(hosts::Arguments),
    Record(record::Arguments),
    Merge(merge::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.what {
        What::Up(arguments) => bringup::up::run(arguments),
        What::Confirm(arguments) => bringup::confirm::run(arguments),
        What::Down(arguments) => bringup::down::run(arguments),
        What::Keep(arguments) => bringup::keep::run(arguments),
        What::Status(arguments) => status::run(arguments),
        What::Hosts(arguments) => hosts::run(arguments),
        What::Record(arguments) => record::run(arguments),
        What::Merge(arguments) => merge::run(arguments),
    }
}
