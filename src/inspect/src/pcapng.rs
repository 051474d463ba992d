//! The parts of pcapng that readers of whole captures and of blocks share. The types of blocks are the crate's.

use pcap_file::pcapng::blocks;

/// The types of a section header and of an interface description.
pub(super) const SECTION: u32 = blocks::SECTION_HEADER_BLOCK;
pub(super) const INTERFACE: u32 = blocks::INTERFACE_DESCRIPTION_BLOCK;

/// No block of a node's capture is longer.
pub(super) const LONGEST: usize = 1 << 20;

/// The magic numbers of classic captures, with times in microseconds and in nanoseconds.
const CLASSIC: [u32; 2] = [0xa1b2_c3d4, 0xa1b2_3c4d];

/// The kind of a file, by its first four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CaptureKind {
    Empty,
    Pcapng,
    Classic,
    Other,
}

impl CaptureKind {
    /// The kind of a file that begins so. Only a file of fewer bytes may show fewer than four.
    pub(super) fn of(begin: &[u8]) -> CaptureKind {
        let Some(word) = begin.first_chunk().copied() else {
            return if begin.is_empty() { CaptureKind::Empty } else { CaptureKind::Other };
        };
        // Classic captures have either order of bytes. A section's type reads alike in both.
        match u32::from_be_bytes(word) {
            SECTION => CaptureKind::Pcapng,
            number if CLASSIC.iter().any(|magic| [number, number.swap_bytes()].contains(magic)) => {
                CaptureKind::Classic
            }
            _ => CaptureKind::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_shows_its_kind_by_its_first_bytes_in_either_order() {
        for (begin, kind) in [
            (&[][..], CaptureKind::Empty),
            (&[0x0a, 0x0d, 0x0d], CaptureKind::Other),
            (&[0x0a, 0x0d, 0x0d, 0x0a], CaptureKind::Pcapng),
            (&[0x0a, 0x0d, 0x0d, 0x0a, 7], CaptureKind::Pcapng),
            (&[0xa1, 0xb2, 0xc3, 0xd4], CaptureKind::Classic),
            (&[0xd4, 0xc3, 0xb2, 0xa1], CaptureKind::Classic),
            (&[0xa1, 0xb2, 0x3c, 0x4d], CaptureKind::Classic),
            (&[0x4d, 0x3c, 0xb2, 0xa1], CaptureKind::Classic),
            (b"plai", CaptureKind::Other),
        ] {
            assert_eq!(CaptureKind::of(begin), kind, "{begin:02x?}");
        }
    }
}
