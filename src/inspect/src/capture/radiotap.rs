//! The radiotap header of a captured frame: the fields that Hopwise needs, and the airtime that follows from them.

use hopwise_air::phy::{Band, Coding, Phy, Rate};
use hopwise_air::radiotap::{BAND_5_GHZ, HAS_FCS, OFDM, SHORT_PREAMBLE, rate_of_mcs, rate_of_vht};

use super::packets::FCS;

const FLAGS: usize = 1;
const RATE: usize = 2;
const CHANNEL: usize = 3;
const MCS: usize = 19;
const AMPDU: usize = 20;
const VHT: usize = 21;
/// The alignment of each field and its bytes, by its bit in the word of what is present.
const FIELDS: [(usize, usize); 22] = [
    (8, 8),
    (1, 1),
    (1, 1),
    (2, 4),
    (1, 2),
    (1, 1),
    (1, 1),
    (2, 2),
    (2, 2),
    (2, 2),
    (1, 1),
    (1, 1),
    (1, 1),
    (1, 1),
    (2, 2),
    (2, 2),
    (1, 1),
    (1, 1),
    (4, 8),
    (1, 3),
    (4, 8),
    (2, 12),
];
/// In a word of what is present: another such word follows.
const MORE: u32 = 31;

/// The fields of a header that matter here. Flags that are absent are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Radiotap {
    /// Length of the header; the frame follows it.
    pub(super) len: usize,
    flags: u8,
    /// In units of 500 kbit/s; none for a frame of 802.11n or 802.11ac.
    pub(super) rate: Option<u8>,
    channel: u16,
    /// The rate of a frame of 802.11n or 802.11ac.
    fine_rate: Option<Rate>,
    /// The frame is one of several of an A-MPDU.
    is_in_aggregate: bool,
}

impl Radiotap {
    pub(super) fn read(bytes: &[u8]) -> Option<Radiotap> {
        let len = usize::from(u16::from_le_bytes(*bytes.get(2..)?.first_chunk()?));
        let header = bytes.get(..len)?;
        let word = |at: usize| Some(u32::from_le_bytes(*header.get(at..)?.first_chunk()?));
        let present = word(4)?;
        let mut at = 4;
        while word(at)? >> MORE != 0 {
            at += 4;
        }
        at += 4;
        let mut found = Radiotap { len, ..Radiotap::default() };
        for (bit, (alignment, bytes)) in
            FIELDS.into_iter().enumerate().filter(|(bit, _)| present >> bit & 1 != 0)
        {
            at = at.next_multiple_of(alignment);
            let field = header.get(at..at + bytes)?;
            at += bytes;
            match bit {
                FLAGS => found.flags = field[0],
                RATE => found.rate = Some(field[0]).filter(|rate| *rate > 0),
                CHANNEL => found.channel = u16::from_le_bytes([field[2], field[3]]),
                MCS => found.fine_rate = rate_of_mcs(*field.first_chunk()?),
                AMPDU => found.is_in_aggregate = true,
                VHT => found.fine_rate = rate_of_vht(*field.first_chunk()?),
                _ => {}
            }
        }
        Some(found)
    }

    pub(super) fn has_fcs(self) -> bool {
        self.flags & HAS_FCS != 0
    }

    pub(super) fn has_short_preamble(self) -> bool {
        self.flags & SHORT_PREAMBLE != 0
    }

    fn is_of_5_ghz(self) -> bool {
        self.channel & BAND_5_GHZ != 0
    }

    pub(super) fn is_ofdm(self) -> bool {
        self.channel & OFDM != 0
    }
}

/// Radiotap's unit of rates, in bits per second.
const RATE_UNIT: u64 = 500_000;

/// The time that a frame takes on the air with its preamble, in nanoseconds. A frame of an A-MPDU takes its bits alone:
/// the whole aggregate has the preamble. None without a rate.
pub(super) fn airtime_ns(bytes: &[u8]) -> Option<u64> {
    let header = Radiotap::read(bytes)?;
    let fcs = if header.has_fcs() { 0 } else { FCS };
    let len = u32::try_from(bytes.len().checked_sub(header.len)? + fcs).ok()?;
    if let Some(rate) = header.fine_rate {
        let alone = Phy::named("ht20")?.in_band(if header.is_of_5_ghz() { Band::Ghz5 } else { Band::Ghz2 });
        let bits = u64::from(len) * 8;
        let in_aggregate = bits * 1_000_000_000 / rate.bits_per_second;
        return Some(if header.is_in_aggregate { in_aggregate } else { alone.airtime_ns(len, rate) });
    }
    let rate = u64::from(header.rate?);
    let mut phy = Phy::named(if header.has_short_preamble() { "dsss-2mbps-short" } else { "dsss-2mbps" })?;
    if header.is_ofdm() {
        phy.coding = if header.is_of_5_ghz() { Coding::Ofdm } else { Coding::ErpOfdm };
    }
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
        // At 5 GHz there is no extension.
        assert_eq!(airtime_ns(&frame(0x10, 48, 0x0140, 14)), Some(28_000));
    }

    /// Flags, a channel at 5 GHz and a further field at its place, with 1500 bytes behind it.
    fn fine(bit: usize, field: &[u8], more: u32) -> Vec<u8> {
        let present = 1 << FLAGS | 1 << CHANNEL | 1 << bit | more;
        let mut bytes = vec![0, 0, 0, 0];
        bytes.extend(present.to_le_bytes());
        bytes.extend([0x10, 0, 0x24, 0x14, 0x40, 0x01]);
        bytes.extend(field);
        bytes[2] = u8::try_from(bytes.len()).expect("a short header");
        bytes.resize(bytes.len() + 1500, 0);
        bytes
    }

    #[test]
    fn a_frame_of_802_11n_or_802_11ac_takes_the_time_of_its_rate() {
        // MCS 7 over 20 MHz: 36 µs of preamble, 47 symbols of 260 bits for 12,022 bits.
        assert_eq!(airtime_ns(&fine(MCS, &[0x0f, 0, 7], 0)), Some(36_000 + 47 * 4_000));
        assert_eq!(airtime_ns(&fine(MCS, &[0x07, 0, 7], 0)), Some(36_000 + 47 * 4_000), "of most drivers");
        // MCS 15 over 40 MHz with the short guard interval: 300 Mbit/s.
        assert_eq!(airtime_ns(&fine(MCS, &[0x0f, 5, 15], 0)), Some(40_000 + 44_000));
        for field in [[0x0f, 0, 16], [0x0f, 0, 255], [0x00, 0, 7]] {
            assert_eq!(airtime_ns(&fine(MCS, &field, 0)), None, "{field:?}");
        }
        // In an A-MPDU: 12,000 bits at 65 Mbit/s. Its field has three bytes before it, and 8 of its own.
        let in_aggregate = fine(MCS, &[0x0f, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 1 << AMPDU);
        assert_eq!(airtime_ns(&in_aggregate), Some(12_000 * 1_000 / 65));
        // MCS 9 of two streams over 80 MHz: 780 Mbit/s, 3,120 bits a symbol.
        let vht = |width, of_user| fine(VHT, &[0x44, 0, 0, width, of_user, 0, 0, 0, 0, 0, 0, 0], 0);
        assert_eq!(airtime_ns(&vht(4, 0x92)), Some(44_000 + 4 * 4_000));
        for (width, of_user) in [(11, 0x92), (4, 0x93), (4, 0x90), (4, 0xa1), (0, 0x91)] {
            assert_eq!(airtime_ns(&vht(width, of_user)), None, "{width} {of_user}");
        }
    }

    #[test]
    fn headers_that_are_cut_off_have_no_airtime() {
        let bytes = frame(0x10, 2, 0x00a0, 14);
        assert!((0..22).all(|len| airtime_ns(&bytes[..len]).is_none()));
    }
}
