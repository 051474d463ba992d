//! Sequence numbers: 32 bits that wrap, compared as in RFC 9293 §3.4.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A TCP sequence number. `a < b` means that `b` is at most 2^31 - 1 ahead of `a`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Seq(pub u32);

impl Seq {
    /// `self - earlier` if `self` is not before `earlier`, else 0.
    pub const fn bytes_since(self, earlier: Seq) -> u32 {
        let distance = self.0.wrapping_sub(earlier.0);
        if distance <= u32::MAX / 2 { distance } else { 0 }
    }

    /// The later of two numbers that are less than 2^31 apart.
    #[must_use]
    pub fn max(self, other: Seq) -> Seq {
        if self < other { other } else { self }
    }

    /// The earlier of two numbers that are less than 2^31 apart.
    #[must_use]
    pub fn min(self, other: Seq) -> Seq {
        if self < other { self } else { other }
    }
}

/// The wrapping order. It is not a total order, so `Ord` is deliberately absent.
impl PartialOrd for Seq {
    fn partial_cmp(&self, other: &Seq) -> Option<std::cmp::Ordering> {
        Some((self.0.wrapping_sub(other.0) as i32).cmp(&0))
    }
}

impl Add<u32> for Seq {
    type Output = Seq;

    fn add(self, rhs: u32) -> Seq {
        Seq(self.0.wrapping_add(rhs))
    }
}

impl AddAssign<u32> for Seq {
    fn add_assign(&mut self, rhs: u32) {
        *self = *self + rhs;
    }
}

impl Sub<u32> for Seq {
    type Output = Seq;

    fn sub(self, rhs: u32) -> Seq {
        Seq(self.0.wrapping_sub(rhs))
    }
}

/// The wrapped distance; meaningful if `self` is known not to be before `rhs`.
impl Sub<Seq> for Seq {
    type Output = u32;

    fn sub(self, rhs: Seq) -> u32 {
        self.0.wrapping_sub(rhs.0)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_both_wraps() {
        for base in [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_fff0, u32::MAX] {
            let early = Seq(base);
            let late = early + 100;
            assert!(early < late, "{base:#x}");
            assert!(late > early);
            assert_eq!(late - early, 100);
            assert_eq!(early.bytes_since(late), 0);
            assert_eq!(early.max(late), late);
            assert_eq!(early.min(late), early);
        }
    }
}
