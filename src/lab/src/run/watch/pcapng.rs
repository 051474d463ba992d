//! A capture of one interface: pcapng with its name, times in nanoseconds, and comments.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use hopwise_host::own_file::begin_own;
use hopwise_host::{Direction, begin_pcapng, pcapng_error};
use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};

/// Times are in nanoseconds.
const NANOSECONDS: u8 = 9;

/// The interface's name, and the link type of its packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct PcapngInterface<'a> {
    pub name: &'a str,
    pub(super) description: &'a str,
    pub(super) link: DataLink,
}

/// The lowest bits of pcapng's flags word (section 4.3.1).
fn flags(direction: Direction) -> u32 {
    match direction {
        Direction::In => 1,
        Direction::Out => 2,
    }
}

pub(super) struct PcapngFile {
    file: BufWriter<File>,
    /// The block that is being written.
    blocks: PcapNgWriter<Vec<u8>>,
    frames: u64,
}

impl PcapngFile {
    pub(super) fn create(path: &Path, interface: PcapngInterface<'_>) -> io::Result<PcapngFile> {
        let file = BufWriter::new(begin_own(path, 0o644)?);
        let mut blocks = begin_pcapng(Vec::new())?;
        let block = InterfaceDescriptionBlock {
            linktype: interface.link,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(interface.name)),
                InterfaceDescriptionOption::IfDescription(Cow::Borrowed(interface.description)),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ],
        };
        blocks.write_pcapng_block(block).map_err(pcapng_error)?;
        let mut created = PcapngFile { file, blocks, frames: 0 };
        created.write()?;
        Ok(created)
    }

    /// Adds a packet with its comments, without the empty ones. Returns the number of its frame.
    pub(super) fn push(
        &mut self,
        at: Duration,
        direction: Direction,
        packet: &[u8],
        comments: &[&str],
    ) -> io::Result<u64> {
        let mut options = vec![EnhancedPacketOption::Flags(flags(direction))];
        let said = comments.iter().filter(|comment| !comment.is_empty());
        options.extend(said.map(|comment| EnhancedPacketOption::Comment(Cow::Borrowed(comment))));
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: at,
            original_len: u32::try_from(packet.len()).unwrap_or(u32::MAX),
            data: Cow::Borrowed(packet),
            options,
        };
        self.blocks.write_pcapng_block(block).map_err(pcapng_error)?;
        self.write()?;
        self.frames += 1;
        Ok(self.frames)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.write_all(self.blocks.get_mut())?;
        self.blocks.get_mut().clear();
        Ok(())
    }
}
