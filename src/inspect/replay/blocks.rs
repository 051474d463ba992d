//! Reads the blocks of a pcapng file. Any bytes are read or refused, and no block takes more memory than is allowed.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use hopwise_core::tcp::decisions::{BLOCK_TYPE, LONGEST_BLOCK};
use hopwise_lab::named;

use crate::failure::Failure;
use crate::inspect::pcapng::{Kind, LONGEST, PACKET, SECTION};

const BYTE_ORDER: u32 = 0x1a2b_3c4d;

/// A block, as far as it matters here.
pub(super) enum Block<'a> {
    /// A section begins; the name of the program that wrote it.
    Section(String),
    Packet(Packet),
    /// The body of a block of the decision log.
    Log(&'a [u8]),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    /// Nanoseconds since 1970.
    pub(super) at: u64,
    /// The option `epb_packetid`, or 0.
    pub(super) id: u64,
    pub(super) has_left: bool,
}

/// The end of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Whole,
    /// In the middle of a block.
    CutOff,
    /// With bytes at that place that are no block.
    Damaged(u64),
}

pub(super) struct Blocks {
    input: Box<dyn BufRead>,
    /// The bytes that were read.
    at: u64,
    is_big_endian: bool,
    body: Vec<u8>,
}

/// The reason why no further block comes.
enum Stop {
    End(End),
    Error(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Stop::End(End::CutOff),
            _ => Stop::Error(error),
        }
    }
}

/// Hands over the blocks until `take` returns false.
pub(super) fn each(path: &Path, mut take: impl FnMut(Block<'_>) -> bool) -> Result<End, Failure> {
    let name = path.display().to_string();
    let refused = |problem: &dyn std::fmt::Display| Failure::refused(&name, problem);
    let mut file = named::open(path).map_err(|error| refused(&error))?;
    let begin = beginning(&mut file).map_err(|problem| refused(&problem))?;
    let input = Box::new(BufReader::new(Cursor::new(begin).chain(file)));
    let mut blocks = Blocks { input, at: 0, is_big_endian: false, body: Vec::new() };
    loop {
        match blocks.next(&mut take) {
            Ok(true) => {}
            Ok(false) => return Ok(End::Whole),
            Err(Stop::End(end)) => return Ok(end),
            Err(Stop::Error(error)) => return Err(refused(&error)),
        }
    }
}

/// The first bytes of a capture. A file of another kind is refused by them.
fn beginning(file: &mut impl Read) -> Result<Vec<u8>, String> {
    let mut begin = Vec::new();
    file.take(4).read_to_end(&mut begin).map_err(|error| error.to_string())?;
    let problem = match Kind::of(&begin) {
        Kind::Pcapng => return Ok(begin),
        Kind::Empty => "it is empty",
        Kind::Classic => "it is a classic pcap, which has no decisions",
        Kind::Other => "it is no capture",
    };
    Err(format!("{problem}: expected a capture that Hopwise wrote, in pcapng"))
}

impl Blocks {
    fn next(&mut self, take: &mut impl FnMut(Block<'_>) -> bool) -> Result<bool, Stop> {
        if self.is_at_end()? {
            return Ok(false);
        }
        let begins = self.at;
        let kind = self.word()?;
        if kind == SECTION {
            return self.section(begins, take);
        }
        let len = self.word()? as usize;
        let damaged = || Stop::End(End::Damaged(begins));
        let body = len.checked_sub(12).filter(|body| body.is_multiple_of(4)).ok_or_else(damaged)?;
        let longest = match kind {
            PACKET => LONGEST,
            BLOCK_TYPE => LONGEST_BLOCK,
            _ => 0,
        };
        if longest == 0 {
            self.pass(body)?;
        } else if body <= longest {
            self.read_body(body)?;
        } else {
            return Err(damaged());
        }
        if self.word()? as usize != len {
            return Err(damaged());
        }
        match kind {
            PACKET => Ok(take(Block::Packet(self.packet().ok_or_else(damaged)?))),
            BLOCK_TYPE => Ok(take(Block::Log(&self.body))),
            _ => Ok(true),
        }
    }

    fn is_at_end(&mut self) -> io::Result<bool> {
        use std::io::BufRead;
        Ok(self.input.fill_buf()?.is_empty())
    }

    /// A section's header names the order of bytes, also of its own length.
    fn section(&mut self, begins: u64, take: &mut impl FnMut(Block<'_>) -> bool) -> Result<bool, Stop> {
        let mut words = [0; 8];
        self.fill(&mut words)?;
        let (len, order) = words.split_at(4);
        self.is_big_endian = u32::from_be_bytes(to_four(order)) == BYTE_ORDER;
        let damaged = || Stop::End(End::Damaged(begins));
        if !self.is_big_endian && u32::from_le_bytes(to_four(order)) != BYTE_ORDER {
            return Err(damaged());
        }
        let len = self.number(to_four(len)) as usize;
        let rest = len.checked_sub(16).filter(|rest| *rest <= LONGEST).ok_or_else(damaged)?;
        self.read_body(rest)?;
        if self.word()? as usize != len {
            return Err(damaged());
        }
        const APPLICATION: u16 = 4;
        let application = self.option(12, APPLICATION).unwrap_or_default();
        Ok(take(Block::Section(String::from_utf8_lossy(application).into_owned())))
    }

    fn packet(&self) -> Option<Packet> {
        let word = |nth: usize| Some(self.number(to_four(self.body.get(nth * 4..nth * 4 + 4)?)));
        let at = u64::from(word(1)?) << 32 | u64::from(word(2)?);
        let options = 20 + (word(3)? as usize).checked_next_multiple_of(4)?;
        const FLAGS: u16 = 2;
        const ID: u16 = 5;
        let flags =
            self.option(options, FLAGS).and_then(|value| value.first_chunk()).map(|word| self.number(*word));
        let id = self.option(options, ID).and_then(|value| value.first_chunk()).map_or(0, |id| {
            if self.is_big_endian { u64::from_be_bytes(*id) } else { u64::from_le_bytes(*id) }
        });
        Some(Packet { at, id, has_left: flags.is_some_and(|flags| flags & 3 == 2) })
    }

    /// The value of the first option with that code, in the options from there on.
    fn option(&self, mut from: usize, wanted: u16) -> Option<&[u8]> {
        let half = |at: usize| {
            let bytes = *self.body.get(at..)?.first_chunk()?;
            Some(if self.is_big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
        };
        loop {
            let (code, len) = (half(from)?, usize::from(half(from + 2)?));
            if code == wanted {
                return self.body.get(from + 4..from + 4 + len);
            }
            if code == 0 {
                return None;
            }
            from += 4 + len.next_multiple_of(4);
        }
    }

    fn read_body(&mut self, len: usize) -> io::Result<()> {
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        // The length may be a lie: memory is taken as bytes come.
        let read = (&mut self.input).take(len as u64).read_to_end(&mut body)?;
        self.at += read as u64;
        self.body = body;
        if read < len { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    fn pass(&mut self, len: usize) -> io::Result<()> {
        let passed = io::copy(&mut (&mut self.input).take(len as u64), &mut io::sink())?;
        self.at += passed;
        if passed < len as u64 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.input.read_exact(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn word(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.fill(&mut bytes)?;
        Ok(self.number(bytes))
    }

    fn number(&self, bytes: [u8; 4]) -> u32 {
        if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }
}

fn to_four(bytes: &[u8]) -> [u8; 4] {
    std::array::from_fn(|nth| bytes[nth])
}
