//! The capture of a node's endpoint: each packet with its reason, and the decision log.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::Path;

use hopwise_core::LinkId;
use hopwise_host::{Capture, CaptureSettings, CapturedLink, Clock, Framing, LinkTeller, Observer};
use hopwise_lab::live::LiveNode;

use crate::failure::{self, Failure};
use crate::lab::run::watch::names::KnownNames;

/// The endpoint has one link, and one shard.
const SHARD: u16 = 0;

/// A thread of the capture's own writes the file, so that a slow disk delays no program.
#[derive(Debug)]
pub(super) struct Captured<'a> {
    path: &'a Path,
    capture: Capture,
    names: KnownNames,
    /// Tells the capture the facts about the first links, while it runs.
    links: Option<LinkTeller>,
}

impl Captured<'_> {
    pub(super) fn new(path: &Path) -> Captured<'_> {
        Captured { path, capture: Capture::default(), names: KnownNames::default(), links: None }
    }

    /// Makes the machine tell its connections' names. Its driver needs the observer.
    pub(super) fn watch(&self, machine: &mut LiveNode) -> Box<dyn Observer> {
        let names = self.names.clone();
        machine.watch_trace(Box::new(move |endpoint, event| names.learn(endpoint, event)));
        Box::new(self.capture.tap(SHARD))
    }

    /// The node's kernel routes to the peers.
    pub(super) fn begin(&mut self, node: &str, clock: Clock, peers: Vec<IpAddr>) -> Result<(), Failure> {
        let settings = CaptureSettings {
            path: self.path.to_owned(),
            rotate_bytes: None,
            files: NonZeroU32::MIN,
            links: vec![CapturedLink { name: node.to_owned(), framing: Framing::Ip }],
            wanted: vec![LinkId(0)],
            wall_clock_offset: clock.wall_offset(),
            names: vec![self.names.namer()],
        };
        self.capture.start(settings).map_err(|error| Failure::failed("begin a capture", error))?;
        let links = LinkTeller::for_capture(peers, clock, self.capture.clone());
        self.links = Some(links.map_err(|error| Failure::failed("start a thread", error))?);
        Ok(())
    }

    /// Writes what is left, and tells what the file lacks.
    pub(super) fn end(&mut self, node: &str) -> Result<(), Failure> {
        self.links = None;
        let (path, counts) = self.capture.stop().map_err(|error| Failure::failed("end a capture", error))?;
        if let Some(error) = counts.last_error {
            return Err(Failure::failed("write a capture", format_args!("{}: {error}", path.display())));
        }
        let missed = counts.packets_missed + counts.events_missed;
        if missed > 0 {
            failure::remark(&format!("the capture at the end {node} lacks {missed} packets or events"));
        }
        Ok(())
    }
}
