//! Captures: every packet of every link in pcapng. Each packet of ours has the reason why it left.
//!
//! A [`Tap`] observes a driver: it copies into a bounded queue and counts what does not fit. A writer's thread joins
//! packets with the trace and writes them. A slow or full disk therefore delays no connection. Each shard has its own
//! tap; the file holds the packets of all shards in the order of their times.

mod comments;
mod file;
mod frames;
mod joiner;
mod links;
mod order;
mod queue;

use std::io;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;

pub use comments::{Comment, Comments, ConnNames, Names};
use hopwise_core::trace::TraceEvent;
use hopwise_core::{Instant, LinkId};

use crate::first_links::FirstLinks;
use crate::frames::Framing;
use crate::observer::{Observer, SeenPacket};

use file::CaptureFile;
pub use file::{begin_pcapng, numbered, pcapng_error};
pub use frames::ArrivalFrames;
pub use frames::finish_checksum;
pub use joiner::Explainer;
use joiner::{Commented, Joiner};
use links::CapturedLinks;
use order::TimeOrder;
use queue::{CaptureQueue, QueueRecord};

/// The longest wait of the writer for more data before it writes a batch.
const WRITE_EVERY: Duration = Duration::from_millis(200);

/// The settings of a capture.
pub struct CaptureSettings {
    /// The current file; older ones get a number behind this path.
    pub path: PathBuf,
    /// A new file begins before this one would have more bytes; a packet that is larger alone has one to itself.
    pub rotate_bytes: Option<u64>,
    /// The number of files that stay: the current one, and the older ones, which get a number.
    pub files: NonZeroU32,
    /// All links, by their numbers.
    pub links: Vec<CapturedLink>,
    /// The links to capture.
    pub wanted: Vec<LinkId>,
    /// The offset from an [`Instant`](hopwise_core::Instant) to the time of day:
    /// [`Clock::wall_offset`](crate::Clock::wall_offset).
    pub wall_clock_offset: Duration,
    /// For each shard, a function that describes a connection by its number in the shard's trace. The writer's thread
    /// calls it a few times for each connection.
    pub names: Vec<Names>,
}

/// A link as a capture's file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedLink {
    /// The name of the interface in the file.
    pub name: String,
    /// The header before each packet in the file.
    pub framing: Framing,
}

hopwise_core::shown!(CaptureSettings: path);

/// Counts of packets, files and losses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaptureCounts {
    /// Packets that are in the files.
    pub packets_written: u64,
    /// The size of all files begun, in bytes.
    pub bytes_written: u64,
    /// All files begun, also removed ones.
    pub files_begun: u64,
    /// Packets and trace events that found the queue full.
    pub packets_missed: u64,
    /// Trace events that found the queue full.
    pub events_missed: u64,
    /// Packets that the disk did not take.
    pub packets_unwritten: u64,
    /// The last error of a write.
    pub last_error: Option<String>,
}

impl CaptureCounts {
    fn add(&mut self, other: &CaptureCounts) {
        self.packets_written += other.packets_written;
        self.bytes_written += other.bytes_written;
        self.files_begun += other.files_begun;
        self.packets_missed += other.packets_missed;
        self.events_missed += other.events_missed;
        self.packets_unwritten += other.packets_unwritten;
        self.last_error.clone_from(&other.last_error);
    }
}

/// Begins and ends captures of all that its [`Tap`]s see.
#[derive(Clone, Debug)]
pub struct Capture {
    queue: Arc<CaptureQueue>,
    captures: Arc<Mutex<RunningCaptures>>,
}

#[derive(Debug, Default)]
struct RunningCaptures {
    running: Option<RunningCapture>,
    /// The sum over all captures that have ended.
    ended: CaptureCounts,
}

#[derive(Debug)]
struct RunningCapture {
    path: PathBuf,
    counts: Arc<Mutex<CaptureCounts>>,
    /// `None` while another thread waits for its end.
    writer: Option<JoinHandle<()>>,
}

/// The reason why no capture began or ended.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// A capture runs already, into this file.
    #[error("a capture into {} is running: stop it first", .0.display())]
    AlreadyRuns(PathBuf),
    /// There is no capture to end.
    #[error("no capture is running")]
    NoneRuns,
    /// A file of the capture could not be made.
    #[error("{}: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

/// Sees everything of one shard while a capture runs. While none does and no other observer watches, it loads one flag
/// for each iteration and each step of a program.
#[derive(Debug)]
pub struct Tap {
    queue: Arc<CaptureQueue>,
    shard: u16,
}

impl Tap {
    /// Sees a packet with its comment, where no trace gives one.
    pub fn on_commented(&self, seen: &SeenPacket<'_>, comment: String) {
        if self.queue.is_open() {
            self.queue.push_packet(self.shard, seen, Some(comment));
        }
    }
}

impl Default for Capture {
    fn default() -> Capture {
        Capture { queue: Arc::new(CaptureQueue::new()), captures: Arc::default() }
    }
}

impl Capture {
    /// The tap for the driver of that shard; a stack that stands alone is shard 0.
    pub fn tap(&self, shard: u16) -> Tap {
        Tap { queue: Arc::clone(&self.queue), shard }
    }

    /// Creates the file and begins. An older file of that name is replaced.
    pub fn start(&self, settings: CaptureSettings) -> Result<(), CaptureError> {
        let mut captures = self.captures.lock();
        if let Some(RunningCapture { path, .. }) = &captures.running {
            return Err(CaptureError::AlreadyRuns(path.clone()));
        }
        let path = settings.path.clone();
        let file_error = |error| CaptureError::File { path: path.clone(), error };
        let file = CaptureFile::create(&settings).map_err(file_error)?;
        let mut begun = CaptureCounts::default();
        file.report(&mut begun);
        let counts = Arc::new(Mutex::new(begun));
        let (queue, counted) = (Arc::clone(&self.queue), Arc::clone(&counts));
        self.queue.open(&settings.wanted);
        let writer = thread::Builder::new()
            .name("capture".to_owned())
            .spawn(move || write_all(&queue, settings.names, file, &counted))
            .map_err(|error| {
                self.queue.close();
                file_error(error)
            })?;
        captures.running = Some(RunningCapture { path, counts, writer: Some(writer) });
        Ok(())
    }

    /// Ends the capture and first writes the queue's contents. It blocks until then, and the capture still counts as
    /// running.
    pub fn stop(&self) -> Result<(PathBuf, CaptureCounts), CaptureError> {
        let writer = self.captures.lock().running.as_mut().and_then(|running| running.writer.take());
        let writer = writer.ok_or(CaptureError::NoneRuns)?;
        self.queue.close();
        if writer.join().is_err() {
            tracing::error!("the capture's thread has panicked");
        }
        let mut captures = self.captures.lock();
        let RunningCapture { path, counts, .. } = captures.running.take().ok_or(CaptureError::NoneRuns)?;
        let counts = counts.lock().clone();
        captures.ended.add(&counts);
        Ok((path, counts))
    }

    /// Takes the facts about our own links, at the time when connections get them.
    pub(crate) fn tell_links(&self, links: &Arc<FirstLinks>) {
        if self.queue.is_open() {
            self.queue.push_links(links);
        }
    }

    /// The path and counts of the capture that is running.
    pub fn running(&self) -> Option<(PathBuf, CaptureCounts)> {
        let captures = self.captures.lock();
        captures.running.as_ref().map(|running| (running.path.clone(), running.counts.lock().clone()))
    }

    /// The sum over all captures until now: no count goes down when one ends or begins. The error is the latest one.
    pub fn totals(&self) -> CaptureCounts {
        let captures = self.captures.lock();
        let mut totals = captures.ended.clone();
        if let Some(running) = &captures.running {
            totals.add(&running.counts.lock());
        }
        totals
    }
}

/// The loop of the writer's thread.
fn write_all(queue: &CaptureQueue, names: Vec<Names>, mut file: CaptureFile, counts: &Mutex<CaptureCounts>) {
    let mut batch = queue::Batch::default();
    let mut shards = ShardPackets::new(names);
    loop {
        let is_over = queue.take(&mut batch, WRITE_EVERY);
        shards.take(&batch, is_over, &mut file);
        let outcome =
            if is_over { file.end(&queue.missed_by_link()) } else { file.write(&queue.missed_by_link()) };
        let before = counts.lock().clone();
        let mut now = before.clone();
        file.report(&mut now);
        (now.packets_missed, now.events_missed) = queue.missed();
        if let Err(error) = outcome {
            now.last_error = Some(error.to_string());
        }
        *counts.lock() = now.clone();
        for what in losses_begun(&before, &now) {
            tracing::warn!(file = %file.path().display(), error = now.last_error, "{what}");
        }
        if is_over {
            return;
        }
    }
}

/// Joins each shard's packets with its trace, and sorts the packets of all shards by their times.
struct ShardPackets {
    joiners: Vec<Joiner>,
    out: FileWriter,
}

/// The way of commented packets into the file.
struct FileWriter {
    links: CapturedLinks,
    /// `None` with one shard, whose packets are in order.
    order: Option<TimeOrder>,
}

impl FileWriter {
    fn push(&mut self, shard: u16, packet: &Commented<'_>, file: &mut CaptureFile) {
        let of_link = self.links.comment(&packet.head, packet.packet);
        match &mut self.order {
            Some(order) => order.push(shard, packet, of_link),
            None => file.push(shard, packet, of_link.as_deref()),
        }
    }
}

impl ShardPackets {
    fn new(names: Vec<Names>) -> ShardPackets {
        let order = (names.len() > 1).then(TimeOrder::default);
        let out = FileWriter { links: CapturedLinks::default(), order };
        ShardPackets { joiners: names.into_iter().map(Joiner::new).collect(), out }
    }

    fn take(&mut self, batch: &queue::Batch, is_over: bool, file: &mut CaptureFile) {
        let is_silent = is_over || batch.is_empty();
        let ShardPackets { joiners, out } = self;
        let mut now = if is_silent { Instant::FAR } else { Instant::ZERO };
        for (shard, record) in batch.records() {
            if let QueueRecord::Links(links) = record {
                out.links.hear(links);
                continue;
            }
            now = record.at().map_or(now, |at| now.max(at));
            if let Some(joiner) = joiners.get_mut(usize::from(shard)) {
                joiner.take(record, &mut |packet| out.push(shard, packet, file));
            }
        }
        // An arrival of a silent shard gets no more events.
        for (shard, joiner) in (0..).zip(joiners) {
            if joiner.waits_since().is_some_and(|since| now.since(since) >= WRITE_EVERY) {
                joiner.finish(&mut |packet| out.push(shard, packet, file));
            }
        }
        if let Some(order) = &mut out.order {
            let push = &mut |shard, packet: &Commented<'_>, of_link: Option<String>| {
                file.push(shard, packet, of_link.as_deref());
            };
            order.release(is_silent, push);
        }
    }
}

/// The losses that begin. Each is logged once, and the counts hold its amount.
fn losses_begun(before: &CaptureCounts, now: &CaptureCounts) -> impl Iterator<Item = &'static str> {
    let begins = |loses: fn(&CaptureCounts) -> bool| !loses(before) && loses(now);
    let losses = [
        (begins(|counts| counts.last_error.is_some()), "the capture cannot write, and packets are lost"),
        (
            begins(|counts| counts.packets_missed > 0),
            "packets come faster than the capture writes, and some are lost",
        ),
        (
            begins(|counts| counts.events_missed > 0),
            "trace events come faster than the capture writes, and packets lack their reasons",
        ),
    ];
    losses.into_iter().filter_map(|(begins, what)| begins.then_some(what))
}

impl Observer for Tap {
    fn is_watching(&self) -> bool {
        self.queue.is_open()
    }

    fn takes_times(&self) -> bool {
        self.queue.is_open()
    }

    fn on_packet(&mut self, seen: &SeenPacket<'_>) {
        if self.queue.is_open() {
            self.queue.push_packet(self.shard, seen, None);
        }
    }

    fn on_own_frame(&mut self, seen: &SeenPacket<'_>) {
        self.on_packet(seen);
    }

    fn on_trace(&mut self, event: &TraceEvent) {
        if self.queue.is_open() {
            self.queue.push_event(self.shard, event);
        }
    }
}

#[cfg(test)]
mod tests;
