//! The files of a capture: pcapng, whole blocks at a time, rotated by size. Each ends with the losses of its links.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::num::NonZeroU32;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::interface_statistics::{InterfaceStatisticsBlock, InterfaceStatisticsOption};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};

use hopwise_core::LinkId;

use super::frames::{ArrivalFrames, finished};
use super::joiner::Commented;
use super::{CaptureCounts, CaptureSettings, CapturedLink};
use crate::frames::Framing;
use crate::observer::Direction;
use crate::own_file::{begin_own, gives_way};

/// Times are in nanoseconds.
const NANOSECONDS: u8 = 9;
/// Values of pcapng's flags word of a packet (section 4.3.1): its two lowest bits are the direction.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// Numbers that other users' files may have beside ours.
const MOST_OF_OTHERS: u32 = 1_000;

pub(super) struct CaptureFile {
    path: PathBuf,
    rotate_bytes: u64,
    files: NonZeroU32,
    links: Vec<CapturedLink>,
    statistics: Vec<LinkStatistics>,
    offset: Duration,
    file: File,
    /// The bytes of whole blocks on the disk.
    written: u64,
    /// Packets in this file, on the disk.
    packets: u64,
    frames: ArrivalFrames,
    /// Blocks to be written together.
    blocks: PcapNgWriter<Vec<u8>>,
    waiting: u64,
    /// The length of the headers at the beginning of each file.
    headers: usize,
    /// The first error since the last [`write`](CaptureFile::write).
    refused: Option<io::Error>,
    counted: CaptureCounts,
}

/// Counts of one link since the capture began.
#[derive(Clone, Copy, Debug, Default)]
struct LinkStatistics {
    seen: u64,
    missed: u64,
    latest: Duration,
}

/// One link's statistics in a file: block type, lengths, number, time, two counts and the end of options.
const STATISTICS_BYTES: u64 = 52;

impl CaptureFile {
    pub(super) fn create(settings: &CaptureSettings) -> io::Result<CaptureFile> {
        let mut blocks = section(&settings.links)?;
        let headers = blocks.get_mut().len();
        let mut created = CaptureFile {
            path: settings.path.clone(),
            rotate_bytes: settings.rotate_bytes.unwrap_or(u64::MAX),
            files: settings.files,
            links: settings.links.clone(),
            statistics: vec![LinkStatistics::default(); settings.links.len()],
            offset: settings.wall_clock_offset,
            file: open(&settings.path)?,
            written: 0,
            packets: 0,
            frames: ArrivalFrames::default(),
            blocks,
            waiting: 0,
            headers,
            refused: None,
            counted: CaptureCounts { files_begun: 1, ..CaptureCounts::default() },
        };
        created.write_waiting()?;
        Ok(created)
    }

    /// Adds a packet. A packet that would make the file too large begins the next file, unless it would be the first of
    /// this one. A packet may have a comment on its link and one of its own.
    pub(super) fn push(&mut self, shard: u16, commented: &Commented<'_>, of_link: Option<&str>) {
        let at = self.offset + Duration::from_nanos(commented.head.at.0);
        let start = self.blocks.get_mut().len();
        self.write_block(shard, at, commented, of_link);
        let end = self.written + self.blocks.get_mut().len() as u64 + self.end_bytes();
        if self.has_more_than_headers(start) && end > self.rotate_bytes {
            self.blocks.get_mut().truncate(start);
            if let Err(error) = self.rotate() {
                self.refused.get_or_insert(error);
                self.counted.packets_unwritten += 1;
                return;
            }
            // Frame numbers begin anew.
            self.write_block(shard, at, commented, of_link);
        }
        self.waiting += 1;
        if commented.head.direction == Direction::In && commented.head.id > 0 {
            self.frames.note(shard, commented.head.id, self.packets + self.waiting);
        }
        if let Some(statistics) = self.statistics.get_mut(usize::from(commented.head.link.0)) {
            statistics.seen += 1;
            statistics.latest = at;
        }
    }

    /// Returns whether packets come before what begins there in the blocks that wait.
    fn has_more_than_headers(&self, start: usize) -> bool {
        self.written + start as u64 > self.headers as u64
    }

    fn write_block(&mut self, shard: u16, at: Duration, commented: &Commented<'_>, of_link: Option<&str>) {
        let Commented { head, packet, comment } = commented;
        let way = if head.direction == Direction::In { INBOUND } else { OUTBOUND };
        let mut options = vec![EnhancedPacketOption::Flags(way)];
        if !comment.text.is_empty() {
            let text = comment.with_frames(|id| self.frames.of(shard, id));
            options.push(EnhancedPacketOption::Comment(Cow::Owned(text)));
        }
        options.extend(of_link.map(|text| EnhancedPacketOption::Comment(Cow::Borrowed(text))));
        let block = EnhancedPacketBlock {
            interface_id: number(head.link),
            timestamp: at,
            original_len: u32::try_from(packet.len()).unwrap_or(u32::MAX),
            data: finished(packet, head.header_len),
            options,
        };
        // It cannot fail: it writes to memory, and the section describes the link.
        let pushed = self.blocks.write_pcapng_block(block);
        debug_assert!(pushed.is_ok(), "{pushed:?}");
    }

    /// Writes the waiting blocks, and returns the first error since the last call. `missed` counts packets that no file
    /// has, by their links' numbers.
    pub(super) fn write(&mut self, missed: &[u64]) -> io::Result<()> {
        for (statistics, missed) in self.statistics.iter_mut().zip(missed) {
            statistics.missed = *missed;
        }
        let outcome = self.write_waiting();
        self.refused.take().map_or(outcome, Err)
    }

    /// Writes the waiting blocks, and the losses of the links.
    pub(super) fn end(&mut self, missed: &[u64]) -> io::Result<()> {
        self.write(missed)?;
        self.write_statistics();
        self.write_waiting()
    }

    fn end_bytes(&self) -> u64 {
        STATISTICS_BYTES * self.statistics.len() as u64
    }

    /// Adds the statistics after the packets that wait.
    fn write_statistics(&mut self) {
        for (interface_id, statistics) in (0..).zip(&self.statistics) {
            let nanos = u64::try_from(statistics.latest.as_nanos()).unwrap_or(u64::MAX);
            let block = InterfaceStatisticsBlock {
                interface_id,
                // The upper half comes first; the crate writes one number.
                timestamp: if cfg!(target_endian = "little") { nanos.rotate_left(32) } else { nanos },
                options: vec![
                    InterfaceStatisticsOption::IsbIfRecv(statistics.seen + statistics.missed),
                    InterfaceStatisticsOption::IsbIfDrop(statistics.missed),
                ],
            };
            let pushed = self.blocks.write_pcapng_block(block);
            debug_assert!(pushed.is_ok(), "{pushed:?}");
        }
    }

    /// Counts and drops the blocks that the disk refuses. The file still begins with its headers and ends with a whole
    /// block. It stays readable, and can be continued.
    fn write_waiting(&mut self) -> io::Result<()> {
        let mut bytes = std::mem::take(self.blocks.get_mut());
        let packets = std::mem::take(&mut self.waiting);
        let outcome = self.file.write_all(&bytes).and_then(|()| self.file.flush());
        match &outcome {
            Ok(()) => {
                self.written += bytes.len() as u64;
                self.packets += packets;
                self.counted.packets_written += packets;
                self.counted.bytes_written += bytes.len() as u64;
                bytes.clear();
            }
            Err(_) => {
                self.counted.packets_unwritten += packets;
                // These fail on a file that is not regular; the first error says more.
                let _ = self.file.set_len(self.written);
                let _ = self.file.seek(SeekFrom::Start(self.written));
                bytes.truncate(if self.written == 0 { self.headers } else { 0 });
                self.frames.forget();
            }
        }
        *self.blocks.get_mut() = bytes;
        outcome
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn report(&self, counts: &mut CaptureCounts) {
        counts.packets_written = self.counted.packets_written;
        counts.bytes_written = self.counted.bytes_written;
        counts.files_begun = self.counted.files_begun;
        counts.packets_unwritten = self.counted.packets_unwritten;
    }

    /// Renames `a.pcapng` to `a.1.pcapng`, that one to `a.2.pcapng`, and replaces the oldest. The headers wait for the
    /// first packet.
    fn rotate(&mut self) -> io::Result<()> {
        if !gives_way(&self.path) {
            return Err(others("the file of the capture is another user's now"));
        }
        // After a failed attempt to make the new file, its name is free.
        if fs::symlink_metadata(&self.path).is_ok() {
            let names = self.names()?;
            for pair in names.windows(2).rev() {
                fs::rename(&pair[0], &pair[1])?;
            }
            if names.len() == 1 {
                fs::remove_file(&self.path)?;
            }
        }
        let next = open(&self.path)?;
        self.write_statistics();
        if let Err(error) = self.write_waiting() {
            self.refused.get_or_insert(error);
        }
        self.file = next;
        self.counted.files_begun += 1;
        (self.written, self.packets) = (0, 0);
        self.frames.forget();
        self.blocks = section(&self.links)?;
        Ok(())
    }

    /// The capture's files, the newest first, up to the last that may stay or the first that is not there. Another
    /// user's file keeps its number.
    fn names(&self) -> io::Result<Vec<PathBuf>> {
        let older = self.files.get() - 1;
        let (mut names, mut number) = (vec![self.path.clone()], 0_u32);
        while names.len() as u64 <= u64::from(older) {
            number += 1;
            if number > older.saturating_add(MOST_OF_OTHERS) {
                return Err(others("files of other users have the numbers of older files"));
            }
            let path = numbered(&self.path, number);
            if gives_way(&path) {
                let is_free = fs::symlink_metadata(&path).is_err();
                names.push(path);
                if is_free {
                    break;
                }
            }
        }
        Ok(names)
    }
}

fn others(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, problem)
}

/// Opens a file that no other user may read; another user's file stays as it is. A pipe is refused, because its reader
/// could hold up the writer.
fn open(path: &Path) -> io::Result<File> {
    let is_pipe = |kind: fs::FileType| kind.is_fifo() || kind.is_socket();
    if fs::symlink_metadata(path).is_ok_and(|facts| is_pipe(facts.file_type())) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a pipe or a socket, expected a file"));
    }
    begin_own(path, 0o600)
}

/// The path of a rotated capture's file by its number. The file that is being written is number 0, and has no number in
/// its name.
pub fn numbered(path: &Path, number: u32) -> PathBuf {
    if number == 0 {
        return path.to_owned();
    }
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// A section's header with its links, in memory.
fn section(links: &[CapturedLink]) -> io::Result<PcapNgWriter<Vec<u8>>> {
    let mut blocks = begin_pcapng(Vec::new())?;
    for CapturedLink { name, framing } in links {
        let linktype = match framing {
            Framing::Ip => DataLink::RAW,
            Framing::Ethernet => DataLink::ETHERNET,
        };
        let block = InterfaceDescriptionBlock {
            linktype,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ],
        };
        blocks.write_pcapng_block(block).map_err(pcapng_error)?;
    }
    Ok(blocks)
}

/// Begins a pcapng with the header of a section.
pub fn begin_pcapng<W: Write>(into: W) -> io::Result<PcapNgWriter<W>> {
    let application = format!("hopwise {}", env!("CARGO_PKG_VERSION"));
    let header = SectionHeaderBlock {
        endianness: Endianness::native(),
        options: vec![SectionHeaderOption::UserApplication(application.into())],
        ..SectionHeaderBlock::default()
    };
    PcapNgWriter::with_section_header(into, header).map_err(pcapng_error)
}

/// The system's error of a pcapng that could not be written.
pub fn pcapng_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other.to_string()),
    }
}

fn number(link: LinkId) -> u32 {
    u32::from(link.0)
}

#[cfg(test)]
mod tests {
    use super::super::comments::Comment;
    use hopwise_core::Instant;

    use super::super::queue::PacketHead;
    use super::super::tests::{Folder, read, settings};
    use super::*;

    fn push(file: &mut CaptureFile, id: u64, packet: &[u8]) {
        let head =
            PacketHead { at: Instant(id), link: LinkId(0), direction: Direction::Out, id, header_len: 0 };
        file.push(0, &Commented { head, packet, comment: &Comment::default() }, None);
    }

    fn packets(path: &Path) -> Vec<Vec<u8>> {
        read(path).into_iter().map(|(bytes, _)| bytes).collect()
    }

    /// Makes files of one packet each.
    fn rotated(folder: &Folder, files: u32) -> CaptureFile {
        let path = folder.file("a.pcapng");
        let files = NonZeroU32::new(files).expect("more than 0");
        let settings = CaptureSettings { rotate_bytes: Some(1), files, ..settings(&path) };
        CaptureFile::create(&settings).expect("the folder can be written")
    }

    #[test]
    fn headers_that_a_full_disk_refuses_come_when_it_has_room() {
        let folder = Folder::new("capture-headers");
        let mut file = rotated(&folder, 2);
        push(&mut file, 1, b"first");
        push(&mut file, 2, b"lost");
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("it is there");
        let own = std::mem::replace(&mut file.file, full);
        assert!(file.write(&[]).is_err());
        file.file = own;
        push(&mut file, 3, b"third");
        file.write(&[]).expect("there is room");
        assert_eq!(packets(&folder.file("a.1.pcapng")), [b"first"]);
        assert_eq!(packets(&folder.file("a.pcapng")), [b"third"]);
        assert_eq!((file.counted.packets_written, file.counted.packets_unwritten), (2, 1));
    }

    #[test]
    fn a_file_that_cannot_be_made_costs_packets_until_it_can() {
        let folder = Folder::new("capture-no-room");
        let mut file = rotated(&folder, 2);
        push(&mut file, 1, b"first");
        file.write(&[]).expect("there is room");
        let (own, away) = (folder.file(""), folder.file("").with_extension("away"));
        fs::rename(&own, &away).expect("it is ours");
        push(&mut file, 2, b"lost");
        assert!(file.write(&[]).is_err());
        fs::rename(&away, &own).expect("it is ours");
        push(&mut file, 3, b"third");
        file.write(&[]).expect("it can be made again");
        assert_eq!(packets(&folder.file("a.1.pcapng")), [b"first"]);
        assert_eq!(packets(&folder.file("a.pcapng")), [b"third"]);
        assert_eq!((file.counted.packets_written, file.counted.packets_unwritten), (2, 1));
    }

    /// When the new file cannot be made, the older files have moved on already. They must not move on at every attempt.
    #[test]
    fn a_file_that_cannot_be_made_costs_no_older_file() {
        let folder = Folder::new("capture-gap");
        let mut file = rotated(&folder, 3);
        for (number, packet) in (1..).zip([b"older", b"newer", b"third"]) {
            push(&mut file, number, packet);
            file.write(&[]).expect("there is room");
        }
        // The state after an attempt that has moved the older files and made none.
        fs::remove_file(folder.file("a.pcapng")).expect("it is ours");
        push(&mut file, 4, b"fourth");
        file.write(&[]).expect("it can be made again");
        let kept = ["a.2.pcapng", "a.1.pcapng", "a.pcapng"].map(|name| packets(&folder.file(name)));
        assert_eq!(kept, [[b"older".to_vec()], [b"newer".to_vec()], [b"fourth".to_vec()]]);
    }

    /// Only root can make a file of another user.
    #[test]
    fn a_capture_takes_no_file_of_another_user_and_none_of_a_second_name() {
        let folder = Folder::new("capture-others");
        let path = folder.file("a.pcapng");
        let refuses = |why: &str| {
            assert!(CaptureFile::create(&settings(&path)).is_err(), "{why}");
            assert_eq!(fs::read_to_string(&path).expect("it is there"), "precious", "{why}");
        };
        fs::write(&path, "precious").expect("a file");
        fs::hard_link(&path, folder.file("second")).expect("another name");
        refuses("it has two names");
        fs::remove_file(folder.file("second")).expect("it is there");
        let others = Some(4_242);
        if std::os::unix::fs::chown(&path, others, None).is_ok() {
            let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
            fs::set_permissions(path.parent().expect("a folder"), everybody).expect("it is ours");
            refuses("it is another user's");
            fs::remove_file(&path).expect("it is there");
            fs::write(&path, "ours").expect("a file");
        }
        CaptureFile::create(&settings(&path)).expect("it is ours");
        assert_ne!(fs::read(&path).expect("it is there"), b"ours");
    }

    /// Rotation in a folder that anybody may write to. It takes root to make a file that is another user's.
    #[test]
    fn older_files_take_no_number_of_another_users_file() {
        let folder = Folder::new("capture-shared");
        let mut file = rotated(&folder, 3);
        let (path, others) = (folder.file("a.1.pcapng"), Some(4_242));
        fs::write(&path, "precious").expect("a file");
        if std::os::unix::fs::chown(&path, others, None).is_err() {
            return;
        }
        let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(path.parent().expect("a folder"), everybody).expect("it is ours");
        for (number, packet) in (1..).zip([b"first", b"older", b"newer", b"third"]) {
            push(&mut file, number, packet);
            file.write(&[]).expect("there is room");
        }
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "precious");
        let kept = ["a.3.pcapng", "a.2.pcapng", "a.pcapng"].map(|name| packets(&folder.file(name)));
        assert_eq!(kept, [[b"older".to_vec()], [b"newer".to_vec()], [b"third".to_vec()]]);
        // The name of the newest file is not taken from another user either.
        let newest = folder.file("a.pcapng");
        fs::write(folder.file("planted"), "precious").expect("a file");
        std::os::unix::fs::chown(folder.file("planted"), others, None).expect("root may");
        fs::rename(folder.file("planted"), &newest).expect("the folder can be written");
        push(&mut file, 5, b"lost");
        let refused = file.write(&[]).expect_err("it is another user's");
        assert!(refused.to_string().contains("another user's"), "{refused}");
        assert_eq!(fs::read_to_string(&newest).expect("it is there"), "precious");
    }

    #[test]
    fn one_file_that_rotates_begins_anew() {
        let folder = Folder::new("capture-one");
        let mut file = rotated(&folder, 1);
        for (number, packet) in (1..).zip([&b"a longer packet than the next"[..], b"short"]) {
            push(&mut file, number, packet);
        }
        file.write(&[]).expect("there is room");
        assert_eq!(packets(&folder.file("a.pcapng")), [b"short"]);
    }
}
