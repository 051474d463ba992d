//! The bytes of a connection: every place of every stream has its own, and a test sees a byte out of place.

/// One direction of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    key: u64,
}

/// The byte at `at` was not what had been sent there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) at: u64,
}

impl Stream {
    pub(super) fn new(seed: u64, connection: usize, direction: usize) -> Stream {
        Stream { key: seed.rotate_left(17) ^ ((connection as u64) << 1 | direction as u64) }
    }

    fn byte(self, at: u64) -> u8 {
        let mixed = (at ^ self.key.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.key;
        (mixed.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 56) as u8
    }

    /// Writes the stream from `at` over `out`.
    pub(super) fn fill(self, at: u64, out: &mut [u8]) {
        for (place, byte) in (at..).zip(out) {
            *byte = self.byte(place);
        }
    }

    pub(super) fn check(self, at: u64, data: &[u8]) -> Result<(), Wrong> {
        match (at..).zip(data).find(|(place, byte)| self.byte(*place) != **byte) {
            None => Ok(()),
            Some((at, _)) => Err(Wrong { at }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_that_moved_or_changed_is_seen() {
        let stream = Stream::new(7, 1, 0);
        let mut data = [0; 500];
        stream.fill(40, &mut data);
        assert_eq!(stream.check(40, &data), Ok(()));
        assert!(stream.check(41, &data).is_err());
        data[123] ^= 1;
        assert_eq!(stream.check(40, &data), Err(Wrong { at: 163 }));
    }

    #[test]
    fn connections_and_directions_carry_different_bytes() {
        let mut data = [0; 64];
        Stream::new(7, 1, 0).fill(0, &mut data);
        for other in [Stream::new(7, 1, 1), Stream::new(7, 2, 0), Stream::new(8, 1, 0)] {
            assert!(other.check(0, &data).is_err());
        }
    }
}
