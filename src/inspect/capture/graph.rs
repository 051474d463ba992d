//! `hopwise capture graph`: the time-sequence graph of one direction of a connection, with the reason of each ACK.

mod points;
mod svg;
mod xplot;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use hopwise_lab::named;
use hopwise_lab::units::Time;

use crate::failure::{Failure, say};

use super::follow::Flow;
use super::source::Source;
use points::{Points, Wanted};

/// Draw the time-sequence graph of a connection: its data, what was sent again, and each ACK with its reason
#[derive(Args, Debug)]
#[command(after_help = "\
Data is a line from its first byte to its last, at the time of its packet. ACKs are steps below it, and the window is a
line above. An SVG shows the agent, the rule and the wait of an ACK under the pointer, and a colour for each rule. A
file for xplot (.xpl), tcptrace's format, has them as texts.

Examples:
  hopwise capture graph n2.pcapng -o n2.svg
  hopwise capture graph n2.pcapng -o n2.xpl --from 2s --to 3s && xplot n2.xpl
  hopwise capture graph all.pcapng --flow 10.0.0.1:50548-10.0.0.9:5001 --interface n8 -o n8.svg")]
pub(super) struct Arguments {
    /// Capture to read
    file: PathBuf,
    /// File to write: .svg, or .xpl for xplot
    #[arg(short, long, value_name = "FILE", value_parser = drawn)]
    out: PathBuf,
    /// Direction of a connection, FROM-TO (default: the one with the most data)
    #[arg(long, value_name = "FROM-TO", value_parser = flow)]
    flow: Option<Flow>,
    /// Name of the interface to look from (default: the one that has the most data of the flow)
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Leave out all before this time, counted from the first packet of the file
    #[arg(long, value_name = "TIME")]
    from: Option<Time>,
    /// Leave out all after this time
    #[arg(long, value_name = "TIME")]
    to: Option<Time>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let wanted = Wanted {
        flow: arguments.flow,
        interface: arguments.interface.as_deref(),
        from: arguments.from.map_or(Duration::ZERO, |time| time.0),
        to: arguments.to.map_or(Duration::MAX, |time| time.0),
        most: usize::MAX,
    };
    let points = Points::read(&arguments.file, &wanted)?;
    let text = if is_of(&arguments.out, "xpl") { xplot::text(&points) } else { svg::text(&points) };
    let out = arguments.out.display();
    named::write(&arguments.out, text).map_err(|error| Failure::refused(out.to_string(), error))?;
    let (from, to) = points.flow;
    say(&format!(
        "{out}: {from} to {to}, {} packets with data, {} ACKs",
        points.data.len(),
        points.acks.len()
    ))
}

/// The graph of the largest flow in a capture, for a report.
#[derive(Debug)]
pub(crate) struct Drawing(Points);

impl Drawing {
    /// Reads the largest flow of a file below a folder, with its first packets; nothing where no flow has data.
    pub(crate) fn read(folder: &Path, file: &Path, most: usize) -> Result<Option<Drawing>, Failure> {
        let path = folder.join(file);
        let refused = |error| Failure::refused(path.display().to_string(), error);
        let open = || Source::of(&path, Box::new(hopwise_lab::folder::open(folder, file).map_err(refused)?));
        Ok(Points::of_largest(&open, most)?.map(Drawing))
    }

    pub(crate) fn svg(&self) -> String {
        svg::text(&self.0)
    }

    pub(crate) fn packets(&self) -> u64 {
        self.0.packets()
    }

    /// ACKs whose reason the capture has: the receiver's has most.
    pub(crate) fn reasons(&self) -> usize {
        self.0.acks.iter().filter(|ack| ack.reason.is_some()).count()
    }

    /// Packets for which there was no room.
    pub(crate) fn left(&self) -> u64 {
        self.0.left
    }
}

fn is_of(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|found| found.eq_ignore_ascii_case(ending))
}

fn drawn(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let is_known = is_of(&path, "svg") || is_of(&path, "xpl");
    if is_known { Ok(path) } else { Err("expected a name that ends in .svg or .xpl".to_owned()) }
}

fn flow(text: &str) -> Result<Flow, String> {
    let read = || {
        let (from, to) = text.split_once('-')?;
        Some((from.parse::<SocketAddr>().ok()?, to.parse::<SocketAddr>().ok()?))
    };
    read().ok_or_else(|| "expected FROM-TO, such as 10.0.0.1:50548-10.0.0.9:5001".to_owned())
}
