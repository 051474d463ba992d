//! `hopwise capture`: starts and stops captures on a running node, joins them, and explains why a packet in
//! one left.

use std::path::{Path, PathBuf};

use hopwise_daemon::failure::{self, Failure, say};
use hopwise_node::control::client::Control;
use hopwise_node::control::{Request, Response};
use hopwise_node::snapshot::CaptureSnapshot;

use crate::trace;

mod arguments;
mod extcap;
mod follow;
mod live;
mod mac;
mod merge;
mod packets;
mod radiotap;
mod source;
mod summary;
mod why;

pub use arguments::Arguments;
use arguments::CaptureAction;
use summary::CaptureSummary;

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.action {
        CaptureAction::Why { file, frame: Some(frame), .. } => say(&why::sentence(file, *frame)?),
        CaptureAction::Why { summary: false, .. } => {
            let accepted =
                "expected the number of a packet, as Wireshark counts, or --summary for all packets";
            Err(Failure::refused("FRAME", format_args!("it is missing; {accepted}")))
        }
        CaptureAction::Why { file, json, .. } => {
            let summary = CaptureSummary::of(file)?;
            if !json {
                return say(summary.page().trim_end());
            }
            say(&failure::json(&summary)?)
        }
        CaptureAction::Trace(arguments) => trace::run(arguments),
        CaptureAction::Merge(arguments) => merge::run(arguments),
        CaptureAction::Follow(arguments) => follow::run(arguments),
        CaptureAction::Live(live) => live::run(live, &arguments.control),
        CaptureAction::Extcap(extcap) => extcap::run(extcap, &arguments.control),
        CaptureAction::Start { file, link, rotate, files } => {
            let request = Request::CaptureStart {
                file: absolute(file)?,
                links: link.clone(),
                rotate_bytes: rotate.map(|size| size.0),
                files: *files,
            };
            let begun = ask(&arguments.control, &request)?;
            say(&format!("capturing into {}", begun.file))
        }
        CaptureAction::Stop => {
            let ended = ask(&arguments.control, &Request::CaptureStop)?;
            say(&ended.summary().join("\n  "))
        }
    }
}

/// The daemon runs in another folder.
fn absolute(file: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(file).map_err(|error| Failure::refused(file.display().to_string(), error))
}

fn ask(control: &Control, request: &Request) -> Result<CaptureSnapshot, Failure> {
    match control.ask(request)? {
        Response::Capture(snapshot) => Ok(snapshot),
        _ => Err(Failure::failed("ask the daemon", "it answered another question")),
    }
}
