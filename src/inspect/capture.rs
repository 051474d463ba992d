//! `hopwise capture`: starts and stops captures on a running node, joins them, and explains why a packet in
//! one left.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, say};
use crate::node::control::client::Control;
use crate::node::control::{Request, Response};
use crate::node::snapshot::CaptureSnapshot;

mod airtime;
mod arguments;
mod ethernet;
mod extcap;
mod follow;
mod live;
mod mac;
mod merge;
mod packets;
mod radio;
mod radiotap;
mod source;
mod summary;
mod why;

use arguments::Action;
pub(crate) use arguments::Arguments;
use summary::Summary;

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.action {
        Action::Why { file, frame: Some(frame), .. } => say(&why::sentence(file, *frame)?),
        Action::Why { summary: false, .. } => {
            let accepted =
                "expected the number of a packet, as Wireshark counts, or --summary for all packets";
            Err(Failure::refused("FRAME", format_args!("it is missing; {accepted}")))
        }
        Action::Why { file, json, .. } => {
            let summary = Summary::of(file)?;
            if !json {
                return say(summary.page().trim_end());
            }
            let text =
                serde_json::to_string(&summary).map_err(|error| Failure::failed("write JSON", error))?;
            say(&text)
        }
        Action::Merge(arguments) => merge::run(arguments),
        Action::Follow(arguments) => follow::run(arguments),
        Action::Live(live) => live::run(live, &arguments.control),
        Action::Extcap(extcap) => extcap::run(extcap, &arguments.control),
        Action::Start { file, link, rotate, files } => {
            let request = Request::CaptureStart {
                file: absolute(file)?,
                links: link.clone(),
                rotate_bytes: rotate.map(|size| size.0),
                files: *files,
            };
            let begun = ask(&arguments.control, &request)?;
            say(&format!("capturing into {}", begun.file))
        }
        Action::Stop => {
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
