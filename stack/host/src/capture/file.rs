//! The files of a capture: pcapng, whole blocks at a time, rotated by size.

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};

use hopwise_core::LinkId;

use super::joiner::Commented;
use super::{CaptureCounts, CaptureSettings};
use crate::observer::Direction;

/// Times are in nanoseconds.
const NANOSECONDS: u8 = 9;
/// pcapng's flags word of a packet (section 4.3.1): its two lowest bits say which way it went.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

pub(super) struct CaptureFile {
    path: PathBuf,
    rotate_bytes: u64,
    files: u32,
    links: Vec<String>,
    offset: Duration,
    file: File,
    /// Whole blocks up to here are on the disk.
    written: u64,
    /// Blocks that wait to be written together.
    blocks: PcapNgWriter<Vec<u8>>,
    waiting: u64,
    /// The first thing that went wrong since somebody asked.
    refused: Option<io::Error>,
    told: CaptureCounts,
}

impl CaptureFile {
    pub(super) fn create(settings: &CaptureSettings) -> io::Result<CaptureFile> {
        let mut created = CaptureFile {
            path: settings.path.clone(),
            rotate_bytes: settings.rotate_bytes.unwrap_or(u64::MAX),
            files: settings.files.max(1),
            links: settings.links.clone(),
            offset: settings.wall_clock_offset,
            file: open(&settings.path)?,
            written: 0,
            blocks: section(&settings.links)?,
            waiting: 0,
            refused: None,
            told: CaptureCounts::default(),
        };
        created.write_waiting()?;
        Ok(created)
    }

    pub(super) fn push(&mut self, commented: &Commented<'_>) {
        let Commented { head, packet, comment } = commented;
        let way = if head.direction == Direction::In { INBOUND } else { OUTBOUND };
        let mut options = vec![EnhancedPacketOption::Flags(way)];
        if !comment.is_empty() {
            options.push(EnhancedPacketOption::Comment(Cow::Borrowed(comment)));
        }
        let block = EnhancedPacketBlock {
            interface_id: number(head.link),
            timestamp: self.offset + Duration::from_nanos(head.at.0),
            original_len: u32::try_from(packet.len()).unwrap_or(u32::MAX),
            data: Cow::Borrowed(packet),
            options,
        };
        // Into memory, and of a link that the section describes: it cannot fail.
        let pushed = self.blocks.write_pcapng_block(block);
        debug_assert!(pushed.is_ok(), "{pushed:?}");
        self.waiting += 1;
        if self.written + self.blocks.get_mut().len() as u64 >= self.rotate_bytes
            && let Err(error) = self.write_and_rotate()
        {
            self.refused.get_or_insert(error);
        }
    }

    /// Writes what waits; answers also for what was written since the last time.
    pub(super) fn write(&mut self) -> io::Result<()> {
        let outcome = self.write_and_rotate();
        self.refused.take().map_or(outcome, Err)
    }

    /// Begins a new file when this one is full.
    fn write_and_rotate(&mut self) -> io::Result<()> {
        let has_packets = self.waiting > 0;
        self.write_waiting()?;
        if has_packets && self.written >= self.rotate_bytes { self.rotate() } else { Ok(()) }
    }

    /// What the disk does not take is counted and gone, and the file still ends with a whole block, so that it can be
    /// read and written on.
    fn write_waiting(&mut self) -> io::Result<()> {
        let mut bytes = std::mem::take(self.blocks.get_mut());
        let packets = std::mem::take(&mut self.waiting);
        let outcome = self.file.write_all(&bytes).and_then(|()| self.file.flush());
        match &outcome {
            Ok(()) => {
                self.written += bytes.len() as u64;
                self.told.packets_written += packets;
                self.told.bytes_written += bytes.len() as u64;
            }
            Err(_) => {
                self.told.packets_unwritten += packets;
                // What is no regular file has no end to go back to, and the first error says more.
                let _ = self.file.set_len(self.written);
                let _ = self.file.seek(SeekFrom::Start(self.written));
            }
        }
        bytes.clear();
        *self.blocks.get_mut() = bytes;
        outcome
    }

    pub(super) fn report(&self, counts: &mut CaptureCounts) {
        counts.packets_written = self.told.packets_written;
        counts.bytes_written = self.told.bytes_written;
        counts.packets_unwritten = self.told.packets_unwritten;
    }

    /// `a.pcapng` becomes `a.1.pcapng`, that one `a.2.pcapng`, and the oldest goes.
    fn rotate(&mut self) -> io::Result<()> {
        for older in (1..self.files).rev() {
            let from = if older == 1 { self.path.clone() } else { numbered(&self.path, older - 1) };
            match fs::rename(&from, numbered(&self.path, older)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.file = open(&self.path)?;
        self.written = 0;
        self.blocks = section(&self.links)?;
        self.write_waiting()
    }
}

/// Nobody else may read what went over the links, a link in the file system is not followed, and nobody is waited for:
/// what reads a pipe could hold up whoever writes.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let is_pipe = |kind: fs::FileType| kind.is_fifo() || kind.is_socket();
    if fs::symlink_metadata(path).is_ok_and(|facts| is_pipe(facts.file_type())) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a pipe or a socket, expected a file"));
    }
    options.open(path)
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// A section's header with its links, in memory.
fn section(links: &[String]) -> io::Result<PcapNgWriter<Vec<u8>>> {
    let application = format!("hopwise {}", env!("CARGO_PKG_VERSION"));
    let header = SectionHeaderBlock {
        endianness: Endianness::native(),
        options: vec![SectionHeaderOption::UserApplication(application.into())],
        ..SectionHeaderBlock::default()
    };
    let mut blocks = PcapNgWriter::with_section_header(Vec::new(), header).map_err(system)?;
    for name in links {
        let block = InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ],
        };
        blocks.write_pcapng_block(block).map_err(system)?;
    }
    Ok(blocks)
}

fn system(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other.to_string()),
    }
}

fn number(link: LinkId) -> u32 {
    u32::from(link.0)
}
