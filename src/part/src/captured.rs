//! The capture of a node's endpoint: each packet with its reason.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use hopwise_core::{Endpoint, LinkId};
use hopwise_host::{
    Capture, CaptureSettings, CapturedLink, Clock, ConnNames, Framing, LinkTeller, Names, Observer,
};
use hopwise_lab::live::LiveNode;

use hopwise_core::trace::TraceEvent;
use hopwise_daemon::failure::{self, Failure};
use parking_lot::Mutex;

/// The endpoint has one link, and one shard.
const SHARD: u16 = 0;

/// A thread of the capture's own writes the file, so that a slow disk delays no program.
#[derive(Debug)]
pub(crate) struct Captured<'a> {
    path: &'a Path,
    capture: Capture,
    names: KnownNames,
    /// Tells the capture the facts about the first links, while it runs.
    links: Option<LinkTeller>,
}

impl Captured<'_> {
    pub(crate) fn new(path: &Path) -> Captured<'_> {
        Captured { path, capture: Capture::default(), names: KnownNames::default(), links: None }
    }

    /// Makes the machine tell its connections' names. Its driver needs the observer.
    pub(crate) fn watch(&self, machine: &mut LiveNode) -> Box<dyn Observer> {
        let names = self.names.clone();
        machine.watch_trace(Box::new(move |endpoint, event| names.learn(endpoint, event)));
        Box::new(self.capture.tap(SHARD))
    }

    /// The node's kernel routes to the peers.
    pub(crate) fn begin(&mut self, node: &str, clock: Clock, peers: Vec<IpAddr>) -> Result<(), Failure> {
        let settings = CaptureSettings {
            path: self.path.to_owned(),
            rotate_bytes: None,
            files: NonZeroU32::MIN,
            links: vec![CapturedLink { name: node.to_owned(), framing: Framing::Ip }],
            wanted: vec![LinkId(0)],
            wall_clock_offset: clock.wall_offset(),
            names: vec![self.names.namer()],
        };
        self.capture.start(settings).map_err(Failure::during("begin a capture"))?;
        let links = LinkTeller::for_capture(peers, clock, self.capture.clone());
        self.links = Some(links.map_err(Failure::during("start a thread"))?);
        Ok(())
    }

    /// Writes what is left, and tells what the file lacks.
    pub(crate) fn end(&mut self, node: &str) -> Result<(), Failure> {
        self.links = None;
        let (path, counts) = self.capture.stop().map_err(Failure::during("end a capture"))?;
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

// Names of an endpoint's connections, for the comments of a capture that another thread writes.

/// The largest number of look-ups for a connection whose hops are unknown.
const MOST_ASKED: u8 = 8;

/// The known names of connections, and the number of look-ups: hops may be known later than the rest.
type CachedNames = BTreeMap<u32, (Option<ConnNames>, u8)>;

#[derive(Clone, Debug, Default)]
pub struct KnownNames(Arc<Mutex<CachedNames>>);

impl KnownNames {
    pub fn namer(&self) -> Names {
        let known = self.clone();
        Box::new(move |conn: u32| known.0.lock().get(&conn).and_then(|(names, _)| names.clone()))
    }

    /// Learns the names of the event's connection.
    pub fn learn(&self, endpoint: &Endpoint, event: &TraceEvent) {
        if event.conn == 0 {
            return;
        }
        let mut known = self.0.lock();
        let (names, asked) = known.entry(event.conn).or_default();
        if *asked < MOST_ASKED && names.as_ref().is_none_or(|names| names.hops.is_none()) {
            *asked += 1;
            *names = ConnNames::of(event.now, endpoint, event.conn).or(names.take());
        }
    }
}
