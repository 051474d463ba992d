//! The radiotap header of a captured frame: the fields that Hopwise needs, and the airtime that follows from them.

use hopwise_air::phy::{Coding, Phy};
use hopwise_air::radiotap::{HAS_FCS, OFDM, SHORT_PREAMBLE};

use super::packets::FCS;

const TSFT: u32 = 0;
const FLAGS: u32 = 1;
const RATE: u32 = 2;
const CHANNEL: u32 = 3;
/// In a word of what is present: another such word follows.
const MORE: u32 = 31;

/// The first fields of a header. Flags that are absent are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Radiotap {
    /// Length of the header; the frame follows it.
    pub(super) len: usize,
    flags: u8,
    /// In units of 500 kbit/s; None for a frame of 802.11n.
    pub(super) rate: Option<u8>,
    channel: u16,
}

impl Radiotap {
    pub(super) fn read(bytes: &[u8]) -> Option<Radiotap> {
        let len = usize::from(u16::from_le_bytes(*bytes.get(2..)?.first_chunk()?));
        let header = bytes.get(..len)?;
        let word = |at: usize| Some(u32::from_le_bytes(*header.get(at..)?.first_chunk()?));
        let present = word(4)?;
        let has = |bit: u32| present >> bit & 1 != 0;
        let mut at = 4;
        while word(at)? >> MORE != 0 {
            at += 4;
        }
        at += 4;
        let mut found = Radiotap { len, ..Radiotap::default() };
        if has(TSFT) {
            at = at.next_multiple_of(8) + 8;
        }
        if has(FLAGS) {
            found.flags = *header.get(at)?;
            at += 1;
        }
        if has(RATE) {
            found.rate = Some(*header.get(at)?).filter(|rate| *rate > 0);
            at += 1;
        }
        if has(CHANNEL) {
            at = at.next_multiple_of(2);
            found.channel = u16::from_le_bytes(*header.get(at + 2..)?.first_chunk()?);
        }
        Some(found)
    }

    pub(super) fn has_fcs(self) -> bool {
        self.flags & HAS_FCS != 0
    }

    pub(super) fn has_short_preamble(self) -> bool {
        self.flags & SHORT_PREAMBLE != 0
    }

    pub(super) fn is_ofdm(self) -> bool {
        self.channel & OFDM != 0
    }
}

/// Radiotap's unit of rates, in bits per second.
const RATE_UNIT: u64 = 500_000;

/// The time that a frame takes on the air with its preamble, in nanoseconds. None without a rate, as for a frame of
/// 802.11n.
pub(super) fn airtime_ns(bytes: &[u8]) -> Option<u64> {
    let header = Radiotap::read(bytes)?;
    let rate = u64::from(header.rate?);
    let mut phy = Phy::named(if header.has_short_preamble() { "dsss-2mbps-short" } else { "dsss-2mbps" })?;
    if header.is_ofdm() {
        phy.coding = Coding::ErpOfdm;
    }
    let fcs = if header.has_fcs() { 0 } else { FCS };
    let len = u32::try_from(bytes.len().checked_sub(header.len)? + fcs).ok()?;
    phy.data.bits_per_second = rate * RATE_UNIT;
    Some(phy.airtime_ns(len, phy.data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_further_words_and_at_their_alignment() {
        // Two words of what is present; TSFT at 16, flags at 24, rate at 25, the channel at 26.
        let mut bytes = vec![0, 0, 30, 0, 0x0f, 0, 0, 0x80, 0, 0, 0, 0];
        bytes.resize(24, 9);
        bytes.extend([0x12, 48, 0x6c, 0x09, 0xc0, 0x00]);
        let found = Radiotap::read(&bytes).expect("a header");
        assert_eq!((found.len, found.rate), (30, Some(48)));
        assert!(found.has_fcs() && found.has_short_preamble() && found.is_ofdm());
        // A channel alone.
        let alone = [0, 0, 12, 0, 8, 0, 0, 0, 0x6c, 0x09, 0xa0, 0x00];
        let expected = Radiotap { len: 12, channel: 0xa0, ..Radiotap::default() };
        assert_eq!(Radiotap::read(&alone), Some(expected));
        assert!((0..alone.len()).all(|len| Radiotap::read(&alone[..len]).is_none()));
    }

    #[test]
    fn fields_beyond_the_length_of_the_header_are_none() {
        let bytes = [0, 0, 8, 0, 2, 0, 0, 0, 0x10];
        assert_eq!(Radiotap::read(&bytes), None);
    }

    /// A header with TSFT, flags, rate and channel, and `len` bytes behind it.
    fn frame(flags: u8, rate: u8, channel: u16, len: usize) -> Vec<u8> {
        let mut bytes = vec![0, 0, 22, 0, 0x0f, 0, 0, 0];
        bytes.extend([0; 8]);
        bytes.extend([flags, rate, 0, 0]);
        bytes.extend(channel.to_le_bytes());
        bytes.resize(22 + len, 0);
        bytes
    }

    #[test]
    fn a_frame_takes_its_preamble_and_its_bits() {
        // An ACK at 1 and at 2 Mbit/s, with FCS and without.
        assert_eq!(airtime_ns(&frame(0x10, 2, 0x00a0, 14)), Some(304_000));
        assert_eq!(airtime_ns(&frame(0x12, 4, 0x00a0, 14)), Some(152_000));
        assert_eq!(airtime_ns(&frame(0x02, 4, 0x00a0, 10)), Some(152_000));
        // 20 µs, three symbols and the extension at 24 Mbit/s.
        assert_eq!(airtime_ns(&frame(0x10, 48, 0x00c0, 14)), Some(34_000));
        assert_eq!(airtime_ns(&frame(0x10, 0, 0x00c0, 14)), None);
    }

    #[test]
    fn headers_that_are_cut_off_have_no_airtime() {
        let bytes = frame(0x10, 2, 0x00a0, 14);
        assert!((0..22).all(|len| airtime_ns(&bytes[..len]).is_none()));
    }
}
