//! The control bits of RFC 9293 §3.1, with the two of RFC 3168.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// The flags octet of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// The sender has no more data. It takes a sequence number.
    pub const FIN: Flags = Flags(0x01);
    /// Begins the connection. It takes a sequence number.
    pub const SYN: Flags = Flags(0x02);
    /// There is no such connection, or no longer.
    pub const RST: Flags = Flags(0x04);
    /// The receiver should pass the data on without delay.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgment number is valid.
    pub const ACK: Flags = Flags(0x10);
    /// The urgent pointer is valid (RFC 9293 §3.8.5).
    pub const URG: Flags = Flags(0x20);
    /// Echoes a congestion mark. On a SYN it offers ECN (RFC 3168 §6.1).
    pub const ECE: Flags = Flags(0x40);
    /// The sender has reduced its window. On a SYN it offers ECN (RFC 3168 §6.1).
    pub const CWR: Flags = Flags(0x80);

    /// Returns whether all bits of `other` are set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags less those of `other`.
    #[must_use]
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// Returns whether at least one bit of `other` is set.
    pub const fn intersects(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Flags;

    fn bitor(self, rhs: Flags) -> Flags {
        Flags(self.0 | rhs.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, rhs: Flags) {
        *self = *self | rhs;
    }
}

/// The notation of packet dumps: `S.` is SYN and ACK, `none` is no flag.
impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LETTERS: [(Flags, &str); 8] = [
            (Flags::SYN, "S"),
            (Flags::FIN, "F"),
            (Flags::RST, "R"),
            (Flags::PSH, "P"),
            (Flags::ACK, "."),
            (Flags::URG, "U"),
            (Flags::ECE, "E"),
            (Flags::CWR, "W"),
        ];
        if *self == Flags::default() {
            return f.pad("none");
        }
        LETTERS
            .iter()
            .filter(|(flag, _)| self.contains(*flag))
            .try_for_each(|(_, letter)| f.write_str(letter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_print_as_packet_dumps_write_them() {
        assert_eq!((Flags::SYN | Flags::ACK).to_string(), "S.");
        assert_eq!((Flags::ACK | Flags::PSH).to_string(), "P.");
        assert_eq!((Flags::FIN | Flags::PSH | Flags::ACK | Flags::URG).to_string(), "FP.U");
        assert_eq!((Flags::SYN | Flags::ECE | Flags::CWR).to_string(), "SEW");
        assert_eq!(Flags::RST.to_string(), "R");
        assert_eq!(Flags::default().to_string(), "none");
    }

    #[test]
    fn contains_asks_for_all_and_intersects_for_one() {
        let mut flags = Flags::SYN;
        flags |= Flags::ACK;
        assert!(flags.contains(Flags::SYN | Flags::ACK));
        assert!(!flags.contains(Flags::SYN | Flags::FIN));
        assert!(flags.intersects(Flags::SYN | Flags::FIN));
        assert!(!flags.intersects(Flags::RST | Flags::FIN));
    }
}
