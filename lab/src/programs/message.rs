//! A program's bytes: any number of them, after a header with its request to the other end.

use hopwise_core::Instant;
use hopwise_core::narrow::as_usize;

use super::seen::ConnOf;
use super::sockets::{Platform, Sockets};

/// Bytes written at a time.
static CHUNK: [u8; 1 << 16] = [0; 1 << 16];
/// Bytes of a request that are written with its header.
const FIRST: usize = 1024;
/// The length of the whole message, and of the wanted response.
pub(super) const HEADER: usize = 8;
pub(super) const ENDLESS: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageHeader {
    /// Length of the message, with the header.
    pub(super) bytes: u32,
    pub(super) answer: u32,
}

impl MessageHeader {
    pub(super) fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(&self.bytes.to_be_bytes());
        bytes[4..].copy_from_slice(&self.answer.to_be_bytes());
        bytes
    }

    /// Reads the first bytes of the input, which may lie in two pieces.
    pub(super) fn read((first, second): (&[u8], &[u8])) -> Option<MessageHeader> {
        let mut bytes = [0; HEADER];
        if first.len() + second.len() < HEADER {
            return None;
        }
        bytes.iter_mut().zip(first.iter().chain(second)).for_each(|(to, from)| *to = *from);
        let [a, b, c, d, e, f, g, h] = bytes;
        Some(MessageHeader {
            bytes: u32::from_be_bytes([a, b, c, d]),
            answer: u32::from_be_bytes([e, f, g, h]),
        })
    }
}

/// The state of the connection's sending side when all is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    StaysOpen,
    Shuts,
}

#[derive(Debug)]
pub(super) struct ProgramMessage {
    header: Option<MessageHeader>,
    len: u64,
    written: u64,
    then: Then,
    has_shut: bool,
}

impl ProgramMessage {
    pub(super) fn new(header: Option<MessageHeader>, len: u64, then: Then) -> ProgramMessage {
        ProgramMessage { header, len, written: 0, then, has_shut: false }
    }

    /// Adds bytes that follow.
    pub(super) fn extend(&mut self, bytes: u64) {
        self.len += bytes;
    }

    pub(super) fn shut(&mut self) {
        self.then = Then::Shuts;
    }

    /// True if all was written, and the sending side has its final state.
    pub(super) fn is_done(&self) -> bool {
        self.written == self.len && (self.then == Then::StaysOpen || self.has_shut)
    }

    /// Writes what there is room for.
    pub(super) fn write<P: Platform>(&mut self, now: Instant, node: &mut P, conn: ConnOf<P>) {
        node.with(now, |sockets| {
            let mut first = [0; FIRST];
            while self.written < self.len {
                let offered = self.offer(&mut first);
                let Some(taken) = sockets.send(now, conn, offered) else { return };
                let is_full = taken < offered.len();
                self.written += taken as u64;
                if is_full {
                    return;
                }
            }
            if self.then == Then::Shuts && !self.has_shut {
                self.has_shut = sockets.shutdown(now, conn);
            }
        });
    }

    fn offer<'a>(&self, first: &'a mut [u8; FIRST]) -> &'a [u8] {
        let left = self.len - self.written;
        let up_to = |most: usize| usize::try_from(left).unwrap_or(most).min(most);
        match self.header {
            Some(header) if self.written < HEADER as u64 => {
                first[..HEADER].copy_from_slice(&header.to_bytes());
                let from = as_usize(self.written);
                &first[from..from + up_to(FIRST - from)]
            }
            _ => &CHUNK[..up_to(CHUNK.len())],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_wherever_the_buffer_wraps() {
        let header = MessageHeader { bytes: 200, answer: 70_000 };
        let bytes = header.to_bytes();
        for cut in 0..=HEADER {
            assert_eq!(MessageHeader::read(bytes.split_at(cut)), Some(header));
        }
        assert_eq!(MessageHeader::read((&bytes[..7], &[])), None);
    }
}
