//! The arguments of `hopwise recv`.

use std::path::PathBuf;

use clap::Args;

use crate::measure::carrier::LinkArguments;
use crate::measure::protocol::PORT;
use crate::numbers;

/// Wait for a `hopwise send` and receive its data, or send data if it asks with --reverse
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise recv --address 10.7.0.3/24 --kernel 10.7.0.1/24
  hopwise recv --config configs/node.yaml --receiver delayed:d=3 --once --json
  hopwise recv --kernel-tcp --port 5202

It runs a TCP stack of its own, on a TUN device that it makes (--address) or on the links of a node that does not
run (--config). With --kernel-tcp it uses the kernel's TCP for comparison. It ends with Ctrl-C, or on SIGTERM.")]
pub(crate) struct Arguments {
    /// Port to listen on
    #[arg(long, value_name = "PORT", default_value_t = PORT, value_parser = numbers::whole(1..=u16::MAX))]
    pub(super) port: u16,
    /// Take one measurement, refuse others meanwhile, and exit after the first that carries something
    #[arg(long)]
    pub(super) once: bool,
    /// File for the data of the first flow; an existing file is replaced once all of it has come
    #[arg(long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Print one JSON object for each measurement
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) link: LinkArguments,
}
