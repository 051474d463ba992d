//! The merged file: its interfaces, and the packets of all sources in the order of time, with comments that name its
//! own frames.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use hopwise_host::own_file::begin_own;
use hopwise_host::{begin_pcapng, pcapng_error};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};

use super::clock::ClockMap;
use crate::capture::source::{CaptureInterface, CaptureItem, CapturePacket, CaptureSource, LackingPackets};
use hopwise_daemon::failure::Failure;

/// Packets of a file that wait to be sorted: a node with several queues writes packets slightly out of order.
const MOST_WAITING: usize = 64;
/// Frames of a file whose numbers in the merged one are known: comments name frames of the last moments.
const MOST_KNOWN: usize = 1 << 16;
/// The words before the number of a frame.
const NAMES_FRAME: [&str; 2] = ["answers frame ", "ECE for the mark of frame "];

pub(super) struct Joined {
    file: PcapNgWriter<BufWriter<File>>,
    frames: u64,
}

/// One file on its way into the merged one.
pub(super) struct JoinedFile {
    pub(super) source: CaptureSource,
    pub(super) clock: ClockMap,
    /// The number of its first interface in the merged file.
    pub interfaces: usize,
    waiting: BTreeMap<(i64, u64), CapturePacket>,
    statistics: Vec<LackingPackets>,
    /// Its frames in the merged file.
    known: BTreeMap<u64, u64>,
}

impl JoinedFile {
    pub(super) fn new(source: CaptureSource, clock: ClockMap, interfaces: usize) -> JoinedFile {
        JoinedFile {
            source,
            clock,
            interfaces,
            waiting: BTreeMap::new(),
            statistics: Vec::new(),
            known: BTreeMap::new(),
        }
    }

    /// The time of its next packet.
    fn next_at(&mut self) -> Result<Option<i64>, Failure> {
        while self.waiting.len() < MOST_WAITING {
            match self.source.next()? {
                Some(CaptureItem::Packet(packet)) => {
                    self.waiting.insert((self.clock.map(packet.at), packet.frame), packet);
                }
                Some(CaptureItem::Statistics(statistics)) => self.statistics.push(statistics),
                None => break,
            }
        }
        Ok(self.waiting.keys().next().map(|(at, _)| *at))
    }

    /// A comment with the numbers of this file's frames in the merged one.
    fn renumbered(&self, comment: &str) -> String {
        let parts = comment.split("; ").map(|part| {
            let named = NAMES_FRAME.iter().find_map(|words| Some((words, part.strip_prefix(words)?)));
            let Some((words, Ok(frame))) = named.map(|(words, number)| (words, number.parse::<u64>())) else {
                return Cow::Borrowed(part);
            };
            Cow::Owned(match self.known.get(&frame) {
                Some(merged) => format!("{words}{merged}"),
                None => format!("{part} of {}", self.source.path().display()),
            })
        });
        parts.collect::<Vec<_>>().join("; ")
    }
}

impl Joined {
    pub(super) fn create(
        path: &Path,
        interfaces: Vec<InterfaceDescriptionBlock<'static>>,
    ) -> io::Result<Joined> {
        let file = BufWriter::new(begin_own(path, 0o644)?);
        let mut file = begin_pcapng(file)?;
        for interface in interfaces {
            file.write_pcapng_block(interface).map_err(pcapng_error)?;
        }
        Ok(Joined { file, frames: 0 })
    }

    /// Writes all packets. Returns their number.
    pub(super) fn join(mut self, streams: &mut [JoinedFile]) -> Result<u64, Failure> {
        let mut next = BinaryHeap::new();
        for (nth, stream) in streams.iter_mut().enumerate() {
            next.extend(stream.next_at()?.map(|at| Reverse((at, nth))));
        }
        while let Some(Reverse((_, nth))) = next.pop() {
            self.push(&mut streams[nth]).map_err(unwritten)?;
            next.extend(streams[nth].next_at()?.map(|at| Reverse((at, nth))));
        }
        for stream in streams {
            self.push_statistics(stream).map_err(unwritten)?;
        }
        self.file.get_mut().flush().map_err(unwritten)?;
        Ok(self.frames)
    }

    fn push(&mut self, stream: &mut JoinedFile) -> io::Result<()> {
        let Some(((at, _), packet)) = stream.waiting.pop_first() else { return Ok(()) };
        self.frames += 1;
        if stream.known.len() == MOST_KNOWN {
            stream.known.pop_first();
        }
        stream.known.insert(packet.frame, self.frames);
        let CapturePacket { interface, mut block, .. } = packet;
        block.interface_id = number(stream.interfaces + interface);
        block.timestamp = Duration::from_nanos(u64::try_from(at).unwrap_or(0));
        // The numbers of packets count within one node's capture alone.
        block.options.retain(|option| !matches!(option, EnhancedPacketOption::Unknown(_)));
        for option in &mut block.options {
            if let EnhancedPacketOption::Comment(text) = option {
                *text = Cow::Owned(stream.renumbered(text));
            }
        }
        self.file.write_pcapng_block(block).map(|_| ()).map_err(pcapng_error)
    }

    fn push_statistics(&mut self, stream: &mut JoinedFile) -> io::Result<()> {
        for LackingPackets { at, interface, mut block } in std::mem::take(&mut stream.statistics) {
            block.interface_id = number(stream.interfaces + interface);
            let at = u64::try_from(stream.clock.map(at)).unwrap_or(0);
            // The upper half comes first; the crate writes one number.
            block.timestamp = if cfg!(target_endian = "little") { at.rotate_left(32) } else { at };
            self.file.write_pcapng_block(block).map_err(pcapng_error)?;
        }
        Ok(())
    }
}

fn number(interface: usize) -> u32 {
    u32::try_from(interface).unwrap_or(u32::MAX)
}

fn unwritten(error: io::Error) -> Failure {
    Failure::failed("write the merged capture", error)
}

/// Times are in nanoseconds.
const NANOSECONDS: u8 = 9;

/// A unique name for the interface: its own, or with its file's name before it.
pub(super) fn unique_name(interface: &CaptureInterface, path: &Path, taken: &[String]) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let own = interface.name.clone().unwrap_or_else(|| stem.clone());
    // The file of an interface often has its name.
    let place = if stem == own { folder.into_owned() } else { stem };
    let longer = [own.clone(), format!("{place}/{own}"), format!("{}/{own}", path.display())];
    let free = longer.into_iter().find(|name| !taken.contains(name));
    free.unwrap_or_else(|| format!("{}/{own}/{}", path.display(), taken.len()))
}

/// The description of an interface in the merged file. `clock` says how its times were changed.
pub(super) fn interface_block(
    interface: &CaptureInterface,
    name: &str,
    path: &Path,
    clock: &str,
) -> InterfaceDescriptionBlock<'static> {
    let mut from = format!("from {}", path.display());
    let mut options = vec![InterfaceDescriptionOption::IfName(Cow::Owned(name.to_owned()))];
    for option in &interface.options {
        match option {
            InterfaceDescriptionOption::IfDescription(text) => from = format!("{text}, {from}"),
            InterfaceDescriptionOption::IfName(_)
            | InterfaceDescriptionOption::IfTsResol(_)
            | InterfaceDescriptionOption::IfTsOffset(_)
            | InterfaceDescriptionOption::Unknown(_) => {}
            other => options.push(other.clone()),
        }
    }
    options.push(InterfaceDescriptionOption::IfDescription(Cow::Owned(from)));
    options.push(InterfaceDescriptionOption::IfTsResol(NANOSECONDS));
    options.push(InterfaceDescriptionOption::Comment(Cow::Owned(clock.to_owned())));
    InterfaceDescriptionBlock { linktype: interface.link, snaplen: 0, options }
}
