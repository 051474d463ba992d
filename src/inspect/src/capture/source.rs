//! Reads the packets of a pcapng file in their order. A block is the most that is in memory, and a file that ends early
//! gives what it has.

use std::io::Read;
use std::path::{Path, PathBuf};

use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::interface_statistics::InterfaceStatisticsBlock;
use pcap_file::pcapng::{Block, PcapNgParser};
use pcap_file::{DataLink, Endianness, PcapError};

use hopwise_lab::named;

use crate::pcapng::CaptureKind;
use hopwise_daemon::failure::Failure;

/// No block of a capture is longer, whoever wrote it.
const LONGEST: usize = 4 << 20;
const FIRST_READ: usize = 64 << 10;
const NANOS: u128 = 1_000_000_000;

/// An interface of a file, over all its sections.
#[derive(Clone, Debug)]
pub(super) struct CaptureInterface {
    pub name: Option<String>,
    pub(super) link: DataLink,
    pub(super) options: Vec<InterfaceDescriptionOption<'static>>,
    units: TimeUnits,
}

/// The unit of an interface's times, and what is added to them.
#[derive(Clone, Copy, Debug)]
struct TimeUnits {
    per_second: u128,
    offset_s: i64,
}

impl TimeUnits {
    /// Nanoseconds since 1970. Times after 2262 are all that year's last.
    fn nanos(self, time: u64) -> i64 {
        let nanos = u128::from(time) * NANOS / self.per_second;
        let since = i128::from(self.offset_s) * NANOS as i128;
        i64::try_from(since.saturating_add_unsigned(nanos)).unwrap_or(i64::MAX)
    }
}

impl CaptureInterface {
    fn of(block: InterfaceDescriptionBlock<'static>) -> CaptureInterface {
        const MICROSECONDS: u8 = 6;
        let (mut name, mut resolution, mut offset_s) = (None, MICROSECONDS, 0);
        for option in &block.options {
            match option {
                InterfaceDescriptionOption::IfName(text) => name = Some(text.to_string()),
                InterfaceDescriptionOption::IfTsResol(unit) => resolution = *unit,
                InterfaceDescriptionOption::IfTsOffset(seconds) => offset_s = seconds.cast_signed(),
                _ => {}
            }
        }
        let power = u32::from(resolution & 0x7f);
        let base: u128 = if resolution & 0x80 == 0 { 10 } else { 2 };
        let per_second = base.checked_pow(power).unwrap_or(NANOS);
        let units = TimeUnits { per_second, offset_s };
        CaptureInterface { name, link: block.linktype, options: block.options, units }
    }
}

/// A packet of a capture.
#[derive(Debug)]
pub(super) struct CapturePacket {
    /// Its number in its file, counted from 1.
    pub(super) frame: u64,
    /// Nanoseconds since 1970.
    pub(super) at: i64,
    /// The number of its interface in the file.
    pub interface: usize,
    pub(super) link: DataLink,
    pub(super) block: EnhancedPacketBlock<'static>,
}

/// Hands over the packets of a file until `take` returns false.
pub(super) fn each(
    path: &Path,
    take: impl FnMut(&CapturePacket) -> Result<bool, Failure>,
) -> Result<CaptureSource, Failure> {
    each_of(CaptureSource::open(path)?, take)
}

/// The same for a file that is open already.
pub(super) fn each_of(
    mut source: CaptureSource,
    mut take: impl FnMut(&CapturePacket) -> Result<bool, Failure>,
) -> Result<CaptureSource, Failure> {
    while let Some(item) = source.next()? {
        if let CaptureItem::Packet(packet) = item
            && !take(&packet)?
        {
            break;
        }
    }
    Ok(source)
}

/// The count of packets that an interface lacks, told at the end of a capture.
#[derive(Debug)]
pub(super) struct LackingPackets {
    pub(super) at: i64,
    pub interface: usize,
    pub(super) block: InterfaceStatisticsBlock<'static>,
}

#[derive(Debug)]
pub(super) enum CaptureItem {
    Packet(CapturePacket),
    Statistics(LackingPackets),
}

pub(super) struct CaptureSource {
    path: PathBuf,
    input: Box<dyn Read>,
    parser: Option<PcapNgParser>,
    buffer: Vec<u8>,
    /// The part of the buffer that was not taken.
    from: usize,
    until: usize,
    pub interfaces: Vec<CaptureInterface>,
    /// The number of the section's first interface.
    section: usize,
    pub(super) frames: u64,
    /// It ends in the middle of a block.
    pub(super) is_cut_off: bool,
}

impl CaptureSource {
    pub(super) fn open(path: &Path) -> Result<CaptureSource, Failure> {
        let input = named::open(path).map_err(|error| Failure::refused(path.display().to_string(), error))?;
        CaptureSource::of(path, Box::new(input))
    }

    /// Reads a file that is open already.
    pub(super) fn of(path: &Path, input: Box<dyn Read>) -> Result<CaptureSource, Failure> {
        let mut source = CaptureSource {
            path: path.to_owned(),
            input,
            parser: None,
            buffer: vec![0; FIRST_READ],
            from: 0,
            until: 0,
            interfaces: Vec::new(),
            section: 0,
            frames: 0,
            is_cut_off: false,
        };
        while source.until < 4 && source.fill()? {}
        let problem = match CaptureKind::of(&source.buffer[..source.until]) {
            CaptureKind::Pcapng => return Ok(source),
            CaptureKind::Empty => "it is empty: expected a capture in pcapng",
            CaptureKind::Classic => {
                "it is a classic pcap, without names and reasons: expected a capture in pcapng, of a node or of \
                 --capture (`editcap -F pcapng` makes one without reasons)"
            }
            CaptureKind::Other => "it is no capture: expected one in pcapng",
        };
        Err(Failure::refused(path.display().to_string(), problem))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn refused(&self, problem: impl std::fmt::Display) -> Failure {
        let place = self.path.display().to_string();
        Failure::refused(place, format_args!("after frame {}: {problem}", self.frames))
    }

    pub(super) fn next(&mut self) -> Result<Option<CaptureItem>, Failure> {
        while let Some(block) = self.next_block()? {
            match block {
                Block::SectionHeader(_) => self.section = self.interfaces.len(),
                Block::InterfaceDescription(block) => self.interfaces.push(CaptureInterface::of(block)),
                Block::EnhancedPacket(block) => {
                    let time = u64::try_from(block.timestamp.as_nanos()).unwrap_or(u64::MAX);
                    let (interface, at) = self.place(block.interface_id, time)?;
                    self.frames += 1;
                    let (frame, link) = (self.frames, self.interfaces[interface].link);
                    return Ok(Some(CaptureItem::Packet(CapturePacket {
                        frame,
                        at,
                        interface,
                        link,
                        block,
                    })));
                }
                Block::InterfaceStatistics(block) => {
                    // The upper half comes first, which the crate reads as one number.
                    let halves = match self.endianness() {
                        Endianness::Little => block.timestamp.rotate_left(32),
                        Endianness::Big => block.timestamp,
                    };
                    let (interface, at) = self.place(block.interface_id, halves)?;
                    return Ok(Some(CaptureItem::Statistics(LackingPackets { at, interface, block })));
                }
                Block::SimplePacket(_) | Block::Packet(_) => {
                    return Err(self.refused("a packet has no time: expected enhanced packet blocks"));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn place(&self, id: u32, time: u64) -> Result<(usize, i64), Failure> {
        let nth = self.section + id as usize;
        match self.interfaces.get(nth) {
            Some(interface) => Ok((nth, interface.units.nanos(time))),
            None => Err(self.refused(format_args!("interface {id} is not described"))),
        }
    }

    pub(super) fn endianness(&self) -> Endianness {
        self.parser.as_ref().map_or(Endianness::native(), |parser| parser.section().endianness)
    }

    fn next_block(&mut self) -> Result<Option<Block<'static>>, Failure> {
        loop {
            let bytes = &self.buffer[self.from..self.until];
            let read = match &mut self.parser {
                Some(parser) => {
                    parser.next_block(bytes).map(|(rest, block)| (rest.len(), block.into_owned()))
                }
                None => PcapNgParser::new(bytes).map(|(rest, parser)| {
                    let section = Block::SectionHeader(parser.section().clone());
                    self.parser = Some(parser);
                    (rest.len(), section)
                }),
            };
            match read {
                Ok((rest, block)) => {
                    self.from = self.until - rest;
                    return Ok(Some(block));
                }
                Err(PcapError::IncompleteBuffer) => {
                    if !self.fill()? {
                        self.is_cut_off = self.from < self.until;
                        return Ok(None);
                    }
                }
                Err(error) => return Err(self.refused(error)),
            }
        }
    }

    /// Reads on. Returns false at the end of the file.
    fn fill(&mut self) -> Result<bool, Failure> {
        self.buffer.copy_within(self.from..self.until, 0);
        (self.from, self.until) = (0, self.until - self.from);
        if self.until == self.buffer.len() {
            if self.until >= LONGEST {
                return Err(self.refused(format_args!("a block is longer than {LONGEST} bytes")));
            }
            self.buffer.resize(self.until * 2, 0);
        }
        let read = self.input.read(&mut self.buffer[self.until..]);
        let read = read.map_err(|error| self.refused(error))?;
        self.until += read;
        Ok(read > 0)
    }
}
