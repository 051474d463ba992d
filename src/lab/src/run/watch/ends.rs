//! Captures at the ends of flows: each packet that the endpoint takes or sends, with the reason from its trace.

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use hopwise_core::trace::TraceEvent;
use hopwise_core::{Endpoint, Instant, LinkId};
use hopwise_host::Comment;
use hopwise_host::{ArrivalFrames, Direction, Explainer, SeenPacket, finish_checksum};
use hopwise_lab::sim::address_of;
use hopwise_mesh::{EndpointObserver, behind_routing};
use pcap_file::DataLink;

use super::Files;
use super::pcapng::{PcapngFile, PcapngInterface};
use hopwise_part::KnownNames;

/// The file of one node.
pub(super) struct NodeCapture {
    file: PcapngFile,
    /// The frame numbers of the arrivals.
    frames: ArrivalFrames,
    /// A packet whose checksum is being completed.
    scratch: Vec<u8>,
}

impl NodeCapture {
    pub(super) fn create(folder: &Path, name: &str, node: u32) -> io::Result<NodeCapture> {
        let description = format!("the endpoint of {name}, {}", address_of(node));
        let interface = PcapngInterface { name, description: &description, link: DataLink::RAW };
        let file = PcapngFile::create(&folder.join(format!("{name}.pcapng")), interface)?;
        Ok(NodeCapture { file, frames: ArrivalFrames::default(), scratch: Vec::new() })
    }

    fn push(&mut self, seen: &SeenPacket<'_>, comment: &Comment) -> io::Result<()> {
        self.scratch.clear();
        self.scratch.extend_from_slice(seen.packet);
        finish_checksum(&mut self.scratch, behind_routing);
        let text = comment.with_frames(|packet| self.frames.of(0, packet));
        let frame =
            self.file.push(Duration::from_nanos(seen.at.0), seen.direction, &self.scratch, &[&text])?;
        if seen.direction == Direction::In {
            self.frames.note(0, seen.id, frame);
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Files {
    fn on_explained(&mut self, node: u32, now: Instant, seen: &SeenPacket<'_>, comment: &Comment) {
        if let Some(captures) = &mut self.captures {
            match seen.direction {
                Direction::In => captures.on_taken(node, now, seen.id, comment),
                Direction::Out => captures.on_reason(node, seen.id, comment),
            }
        }
        self.attempt(|files| match &mut files.ends[node as usize] {
            Some(end) => end.push(seen, comment),
            None => Ok(()),
        });
    }
}

/// Watches the endpoint of one node.
pub(super) struct EndWatcher {
    node: u32,
    explainer: Explainer,
    known: KnownNames,
    files: Rc<RefCell<Files>>,
}

impl EndWatcher {
    pub(super) fn new(node: u32, files: Rc<RefCell<Files>>) -> EndWatcher {
        let known = KnownNames::default();
        EndWatcher { node, explainer: Explainer::new(known.namer()), known, files }
    }

    fn on_packet(&mut self, now: Instant, direction: Direction, id: u64, packet: &[u8]) {
        let (files, node) = (&self.files, self.node);
        let seen = SeenPacket {
            at: now,
            link: LinkId(0),
            direction,
            id,
            segment_bytes: None,
            ethernet: None,
            packet,
        };
        self.explainer.on_packet(&seen, &mut |seen, comment| {
            files.borrow_mut().on_explained(node, now, seen, comment);
        });
    }
}

impl EndpointObserver for EndWatcher {
    fn on_arrival(&mut self, now: Instant, id: u64, packet: &[u8]) {
        self.on_packet(now, Direction::In, id, packet);
    }

    fn on_taken(&mut self, now: Instant) {
        let (files, node) = (&self.files, self.node);
        self.explainer.finish(&mut |seen, comment| {
            files.borrow_mut().on_explained(node, now, seen, comment);
        });
    }

    fn on_departure(&mut self, now: Instant, id: u64, packet: &[u8]) {
        self.on_packet(now, Direction::Out, id, packet);
    }

    fn on_trace(&mut self, endpoint: &Endpoint, event: &TraceEvent) {
        self.known.learn(endpoint, event);
        self.explainer.on_trace(event);
    }
}
