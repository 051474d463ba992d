//! The arguments of `hopwise capture`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use hopwise_lab::units::{Size, UnitError};

use super::{extcap, follow, live, merge};
use crate::trace;
use hopwise_daemon::numbers;
use hopwise_node::config::check_rotation;
use hopwise_node::control::client::Control;

/// Capture a node's packets with the reason for each, or explain a capture
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise capture start n2.pcapng --rotate 64MiB --files 8
  hopwise capture stop
  hopwise capture live | wireshark -k -i -
  hopwise capture why n2.pcapng 17
  hopwise capture why n2.pcapng --summary
  hopwise capture merge n*.pcapng -o all.pcapng
  hopwise capture follow all.pcapng 40
  hopwise capture trace trace.txt --event ack-held
  wireshark n2.pcapng         # the reasons are the packets' comments")]
pub struct Arguments {
    #[command(flatten)]
    pub control: Control,
    #[command(subcommand)]
    pub(super) action: CaptureAction,
}

#[derive(Debug, Subcommand)]
pub(super) enum CaptureAction {
    /// Start a capture in pcapng format; the daemon's user needs permission to write the file
    Start {
        /// File to write
        #[arg(value_parser = named)]
        file: PathBuf,
        /// Name of a link to capture (default: all); repeatable
        #[arg(long, value_name = "NAME")]
        link: Vec<String>,
        /// Size of a file before the next one starts, 64KiB or more; a larger packet gets a file of its own
        #[arg(long, value_name = "SIZE", value_parser = rotation)]
        rotate: Option<Size>,
        /// Number of rotated files to keep, 1 or more
        #[arg(long, value_name = "N", default_value_t = 8, value_parser = numbers::whole(1..=u32::MAX))]
        files: u32,
    },
    /// End the capture and report what was written and what was lost
    Stop,
    Trace(trace::Arguments),
    Live(live::Arguments),
    Extcap(extcap::Arguments),
    Merge(merge::Arguments),
    Follow(follow::Arguments),
    /// Explain in a sentence why a packet was sent or what became of it, or summarize all packets
    Why {
        /// Capture to read
        file: PathBuf,
        /// Number of the packet, as Wireshark counts; needed without --summary
        #[arg(value_parser = numbers::whole(1..=u64::MAX))]
        frame: Option<u64>,
        /// Count by connection and rule: ACKs and the delay of each, packets sent and dropped; for a radio
        /// also tries and losses
        #[arg(long, conflicts_with = "frame")]
        summary: bool,
        /// Print the summary as one JSON object
        #[arg(long, requires = "summary")]
        json: bool,
    },
}

fn rotation(text: &str) -> Result<Size, String> {
    let size: Size = text.parse().map_err(|error: UnitError| error.to_string())?;
    check_rotation(size.0).map(|()| size)
}

/// The daemon writes the file, and cannot use this command's standard output.
fn named(text: &str) -> Result<PathBuf, String> {
    match text {
        "-" => {
            Err("the daemon writes into a file: expected its name, such as n2.pcapng (./- is a name)".into())
        }
        name => Ok(name.into()),
    }
}
