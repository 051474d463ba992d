//! The parts of pcapng that readers of whole captures and of blocks share. The types of blocks are the crate's.

use pcap_file::pcapng::blocks;

/// The types of a section header, of an interface description and of an enhanced packet.
pub(super) const SECTION: u32 = blocks::SECTION_HEADER_BLOCK;
pub(super) const INTERFACE: u32 = blocks::INTERFACE_DESCRIPTION_BLOCK;
pub(super) const PACKET: u32 = blocks::ENHANCED_PACKET_BLOCK;

/// No block of a node's capture is longer, except those of the decision log.
pub(super) const LONGEST: usize = 1 << 20;

/// The magic numbers of classic captures, with times in microseconds and in nanoseconds.
const CLASSIC: [u32; 2] = [0xa1b2_c3d4, 0xa1b2_3c4d];

/// The kind of a file, by its first four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Empty,
    Pcapng,
    Classic,
    Other,
}

impl Kind {
    /// The kind of a file that begins so. Only a file of fewer bytes may show fewer than four.
    pub(super) fn of(begin: &[u8]) -> Kind {
        let Some(word) = begin.first_chunk().copied() else {
            return if begin.is_empty() { Kind::Empty } else { Kind::Other };
        };
        // Classic captures have either order of bytes. A section's type reads the same in both.
        match u32::from_be_bytes(word) {
            SECTION => Kind::Pcapng,
            number if CLASSIC.iter().any(|magic| [number, number.swap_bytes()].contains(magic)) => {
                Kind::Classic
            }
            _ => Kind::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_shows_its_kind_by_its_first_bytes_in_either_order() {
        for (begin, kind) in [
            (&[][..], Kind::Empty),
            (&[0x0a, 0x0d, 0x0d], Kind::Other),
            (&[0x0a, 0x0d, 0x0d, 0x0a], Kind::Pcapng),
            (&[0x0a, 0x0d, 0x0d, 0x0a, 7], Kind::Pcapng),
            (&[0xa1, 0xb2, 0xc3, 0xd4], Kind::Classic),
            (&[0xd4, 0xc3, 0xb2, 0xa1], Kind::Classic),
            (&[0xa1, 0xb2, 0x3c, 0x4d], Kind::Classic),
            (&[0x4d, 0x3c, 0xb2, 0xa1], Kind::Classic),
            (b"plai", Kind::Other),
        ] {
            assert_eq!(Kind::of(begin), kind, "{begin:02x?}");
        }
    }
}
