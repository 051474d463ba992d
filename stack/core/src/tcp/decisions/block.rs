//! The blocks in which files hold the log: entries with a header by which a reader notices whatever is missing.
//!
//! | bytes | content; numbers are little-endian |
//! |---|---|
//! | 0-3 | `HWDL` |
//! | 4 | [`VERSION`] |
//! | 5 | 1 if entries were lost before this block, else 0 |
//! | 6-7 | the machine, if several write into one file |
//! | 8-11 | the number of the block, from 0; it counts on in the next file of a capture |
//! | 12-15 | the length of the entries |
//! | 16-23 | the time of day of the machine's instant 0, in nanoseconds since 1970 |
//! | 24-31 | SipHash-1-3 of all other bytes, with a key of zeros |
//! | 32- | the entries |

use std::fmt;
use std::hash::Hasher;
use std::time::Duration;

use siphasher::sip::SipHasher13;

use super::VERSION;
use crate::narrow::as_u32;

/// The type of the blocks in pcapng, from the range for local use. Other programs skip such blocks.
pub const BLOCK_TYPE: u32 = 0x8000_4857;
/// No block has more bytes.
pub const LONGEST_BLOCK: usize = 8 << 20;

const MAGIC: [u8; 4] = *b"HWDL";
const HEADER: usize = 32;
/// The entries of a block are written when they have so many bytes.
const FULL: usize = 4 << 10;

/// Collects the entries of one machine.
#[derive(Debug)]
pub struct BlockWriter {
    machine: u16,
    number: u32,
    is_lossy: bool,
    entries: Vec<u8>,
}

impl BlockWriter {
    /// A log begins.
    pub fn new(machine: u16) -> BlockWriter {
        BlockWriter { machine, number: 0, is_lossy: false, entries: Vec::new() }
    }

    /// Adds whole entries.
    pub fn push(&mut self, entries: &[u8]) {
        self.entries.extend_from_slice(entries);
    }

    /// Notes that entries were lost before the next ones.
    pub fn note_loss(&mut self) {
        self.entries.clear();
        self.is_lossy = true;
    }

    /// Returns whether a block is worth writing.
    pub fn is_full(&self) -> bool {
        self.entries.len() >= FULL
    }

    /// The next block of a pcapng file in this machine's order of bytes, if there are entries.
    pub fn block(&mut self, offset: Duration) -> Option<Vec<u8>> {
        if self.entries.is_empty() {
            return None;
        }
        let mut body = Vec::with_capacity(HEADER + self.entries.len() + 16);
        body.extend(MAGIC);
        body.extend([VERSION, u8::from(self.is_lossy)]);
        body.extend(self.machine.to_le_bytes());
        body.extend(self.number.to_le_bytes());
        body.extend(as_u32(self.entries.len()).to_le_bytes());
        body.extend(u64::try_from(offset.as_nanos()).unwrap_or(u64::MAX).to_le_bytes());
        let sum = checksum(&body, &self.entries);
        body.extend(sum.to_le_bytes());
        body.append(&mut self.entries);
        body.resize(body.len().next_multiple_of(4), 0);
        self.number = self.number.wrapping_add(1);
        self.is_lossy = false;
        let len = as_u32(body.len() + 12).to_ne_bytes();
        Some([&BLOCK_TYPE.to_ne_bytes()[..], &len, &body, &len].concat())
    }
}

/// A block as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// Several machines of one process may write into one file.
    pub machine: u16,
    /// From 0, without gaps.
    pub number: u32,
    /// Entries were lost before it.
    pub is_after_loss: bool,
    /// The time of day of the machine's instant 0.
    pub offset: Duration,
    /// For a [`LogReader`](super::LogReader).
    pub entries: &'a [u8],
}

/// The reason why a block cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadBlock {
    /// Another program uses the same type of blocks.
    NotOurs,
    /// The log has another version.
    Version(u8),
    /// The checksum or the length is wrong.
    Damaged,
}

impl fmt::Display for BadBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadBlock::NotOurs => f.write_str("a block of another program"),
            BadBlock::Version(version) => {
                write!(f, "a decision log of version {version}: this program reads version {VERSION}")
            }
            BadBlock::Damaged => f.write_str("a block of the decision log is damaged: its checksum is wrong"),
        }
    }
}

impl std::error::Error for BadBlock {}

impl<'a> Block<'a> {
    /// Reads the body of a pcapng block, without its type and lengths.
    pub fn read(body: &'a [u8]) -> Result<Block<'a>, BadBlock> {
        if !body.starts_with(&MAGIC) {
            return Err(BadBlock::NotOurs);
        }
        let version = *body.get(4).ok_or(BadBlock::Damaged)?;
        if version != VERSION {
            return Err(BadBlock::Version(version));
        }
        let (header, rest) = body.split_at_checked(HEADER).ok_or(BadBlock::Damaged)?;
        let len = usize::try_from(number(header, 12, 4)).map_err(|_| BadBlock::Damaged)?;
        let entries = rest.get(..len).ok_or(BadBlock::Damaged)?;
        if checksum(&header[..24], entries) != number(header, 24, 8) {
            return Err(BadBlock::Damaged);
        }
        Ok(Block {
            machine: u16::try_from(number(header, 6, 2)).map_err(|_| BadBlock::Damaged)?,
            number: u32::try_from(number(header, 8, 4)).map_err(|_| BadBlock::Damaged)?,
            is_after_loss: header[5] != 0,
            offset: Duration::from_nanos(number(header, 16, 8)),
            entries,
        })
    }
}

fn number(header: &[u8], from: usize, len: usize) -> u64 {
    header[from..from + len].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn checksum(header: &[u8], entries: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(0, 0);
    hasher.write(header);
    hasher.write(entries);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> Vec<u8> {
        let mut writer = BlockWriter::new(3);
        writer.push(b"first");
        writer.block(Duration::ZERO).expect("it has entries");
        writer.push(b"lost");
        writer.note_loss();
        writer.push(b"entries");
        writer.block(Duration::from_nanos(77)).expect("it has entries")
    }

    #[test]
    fn a_block_is_read_as_it_was_written() {
        let block = written();
        assert_eq!((block.len() % 4, &block[..4]), (0, &BLOCK_TYPE.to_ne_bytes()[..]));
        let read = Block::read(&block[8..block.len() - 4]).expect("it is sound");
        let expected = Block {
            machine: 3,
            number: 1,
            is_after_loss: true,
            offset: Duration::from_nanos(77),
            entries: b"entries",
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn no_byte_may_change_and_none_may_be_missing() {
        let block = written();
        let body = &block[8..block.len() - 4];
        for nth in 0..HEADER + 7 {
            let mut bent = body.to_vec();
            bent[nth] ^= 4;
            let expected = match nth {
                0..4 => BadBlock::NotOurs,
                4 => BadBlock::Version(VERSION ^ 4),
                _ => BadBlock::Damaged,
            };
            assert_eq!(Block::read(&bent), Err(expected), "byte {nth}");
        }
        for len in 0..HEADER + 7 {
            assert!(Block::read(&body[..len]).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn a_writer_without_entries_writes_nothing() {
        assert_eq!(BlockWriter::new(0).block(Duration::ZERO), None);
    }
}
