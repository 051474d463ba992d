//! The rates of 802.11ac (VHT, IEEE 802.11-2016 §21): one and two streams, 20, 40 and 80 MHz, long and short guard
//! interval. There is one user, no STBC, and the code is the convolutional one.

use super::ht::{CODES, ChannelBandwidth, GuardInterval, SINR};
use super::{BitForm, Rate};

/// The most data bits of an encoder in a symbol: 540 Mbit/s with the long guard interval, 600 with the short one.
const OF_AN_ENCODER: u32 = 2_160;
/// SERVICE, and the tail of each encoder.
const SERVICE_BITS: u64 = 16;
const TAIL_BITS: u64 = 6;

/// The rate of a VHT frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vht {
    pub(crate) mcs: u8,
    pub(crate) streams: u8,
    pub(crate) width: ChannelBandwidth,
    pub(crate) guard: GuardInterval,
}

impl Vht {
    pub(crate) const fn rate(self) -> Rate {
        let bits_per_second = self.bits_per_symbol() as u64 * 1_000_000_000 / self.guard.symbol_ns();
        // Table values are for 20 MHz: wider channels have more of their subcarriers in use.
        let used = self.width.used() / ChannelBandwidth::Mhz20.used();
        let sinr = SINR[self.mcs as usize] * self.streams as f64 * used;
        Rate { bits_per_second, sinr, form: BitForm::Vht(self) }
    }

    /// The rate that a frame claims; none for a combination that the standard does not have, or no station here.
    pub(crate) fn checked_rate(self) -> Option<Rate> {
        let is_known = usize::from(self.mcs) < CODES.len() && (1..=2).contains(&self.streams);
        (is_known && self.is_valid()).then(|| self.rate())
    }

    /// N_CBPS.
    const fn coded_bits_per_symbol(self) -> u32 {
        self.streams as u32 * self.width.subcarriers() * CODES[self.mcs as usize].0
    }

    /// N_DBPS.
    const fn bits_per_symbol(self) -> u32 {
        self.coded_bits_per_symbol() * CODES[self.mcs as usize].1 / 12
    }

    /// N_ES.
    const fn encoders(self) -> u32 {
        self.bits_per_symbol().div_ceil(OF_AN_ENCODER)
    }

    /// Returns whether the standard has the combination: each encoder takes whole blocks of its code a symbol
    /// (§21.5.1).
    pub(super) const fn is_valid(self) -> bool {
        let (of_block, coded_block) = match CODES[self.mcs as usize].1 {
            6 => (1, 2),
            8 => (2, 3),
            9 => (3, 4),
            _ => (5, 6),
        };
        let (coded, encoders) = (self.coded_bits_per_symbol(), self.encoders());
        let is_whole = coded.is_multiple_of(coded_block * encoders);
        is_whole && (coded / coded_block * of_block).is_multiple_of(of_block * encoders)
    }

    /// The preamble, to the first symbol of data: L-STF, L-LTF and L-SIG, VHT-SIG-A, VHT-STF, a VHT-LTF for each
    /// stream, VHT-SIG-B.
    pub(crate) const fn preamble_ns(self) -> u64 {
        20_000 + 8_000 + 4_000 + 4_000 * self.streams as u64 + 4_000
    }

    /// The time of an A-MPDU of `bytes` (equations 21-104 and 21-105). A PPDU ends with a whole number of 4 µs whatever
    /// its guard interval.
    pub(crate) fn airtime_ns(self, bytes: u32) -> u64 {
        let bits = SERVICE_BITS + 8 * u64::from(bytes) + TAIL_BITS * u64::from(self.encoders());
        let symbols = bits.div_ceil(u64::from(self.bits_per_symbol()));
        self.preamble_ns() + (self.guard.symbol_ns() * symbols).div_ceil(4_000) * 4_000
    }

    /// All rates that are no wider, of no shorter guard interval, of no more streams and of no finer MCS. Each group
    /// has one width, one guard interval and one number of streams.
    pub(super) fn groups(self) -> Vec<Vec<Rate>> {
        let widths = ChannelBandwidth::ALL.into_iter().take_while(|width| *width as u8 <= self.width as u8);
        let guards = self.guard.not_shorter();
        let guarded = widths.flat_map(|width| guards.iter().map(move |guard| (width, *guard)));
        let all = guarded.flat_map(|(width, guard)| (1..=self.streams).map(move |n| (width, guard, n)));
        all.map(|(width, guard, streams)| Vht { width, guard, streams, ..self }.up_to_this().collect())
            .collect()
    }

    /// The slower rates with this number of streams, and this rate.
    pub(super) fn up_to_this(self) -> impl DoubleEndedIterator<Item = Rate> {
        let all = (0..=self.mcs).map(move |mcs| Vht { mcs, ..self });
        all.filter(|vht| vht.is_valid()).map(Vht::rate)
    }
}

const LACKING: &str = "IEEE 802.11 has no MCS 9 with one or two streams in 20 MHz, since its symbols would not have a \
                       whole number of bits";

/// The reason why a name that looks like one of a profile has none.
pub(super) fn why_absent(name: &str) -> Option<&'static str> {
    let is_lacking = matches!(name, "vht20-1ss-mcs9" | "vht20-2ss-mcs9");
    is_lacking.then_some(LACKING)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phy::Phy;

    fn vht((mcs, streams, width, guard): (u8, u8, ChannelBandwidth, GuardInterval)) -> Vht {
        Vht { mcs, streams, width, guard }
    }

    /// Tables 21-30 to 21-32, 21-38 to 21-40 and 21-46 to 21-48: N_DBPS of one stream; two streams have twice the bits.
    #[test]
    fn symbols_have_as_many_bits_as_in_the_standards_tables() {
        for (width, of_one) in [
            (ChannelBandwidth::Mhz20, [26, 52, 78, 104, 156, 208, 234, 260, 312, 0]),
            (ChannelBandwidth::Mhz40, [54, 108, 162, 216, 324, 432, 486, 540, 648, 720]),
            (ChannelBandwidth::Mhz80, [117, 234, 351, 468, 702, 936, 1_053, 1_170, 1_404, 1_560]),
        ] {
            for (mcs, bits) in (0..=9).zip(of_one) {
                for streams in [1, 2] {
                    let vht = vht((mcs, streams, width, GuardInterval::Long));
                    assert_eq!(vht.is_valid(), bits > 0, "{vht:?}");
                    assert!(bits == 0 || vht.bits_per_symbol() == bits * u32::from(streams), "{vht:?}");
                    // From 80 MHz with two streams and MCS 7 on.
                    let encoders = if bits * u32::from(streams) > 2_160 { 2 } else { 1 };
                    assert!(bits == 0 || vht.encoders() == encoders, "{vht:?}");
                }
            }
        }
    }

    /// The same tables: Mbit/s.
    #[test]
    fn rates_are_those_of_the_standards_tables() {
        for (mcs, streams, width, long, short) in [
            (0, 1, ChannelBandwidth::Mhz20, 6.5, 7.2),
            (8, 1, ChannelBandwidth::Mhz20, 78.0, 86.7),
            (8, 2, ChannelBandwidth::Mhz20, 156.0, 173.3),
            (9, 1, ChannelBandwidth::Mhz40, 180.0, 200.0),
            (9, 2, ChannelBandwidth::Mhz40, 360.0, 400.0),
            (0, 1, ChannelBandwidth::Mhz80, 29.3, 32.5),
            (6, 2, ChannelBandwidth::Mhz80, 526.5, 585.0),
            (7, 2, ChannelBandwidth::Mhz80, 585.0, 650.0),
            (9, 1, ChannelBandwidth::Mhz80, 390.0, 433.3),
            (9, 2, ChannelBandwidth::Mhz80, 780.0, 866.7),
        ] {
            for (guard, mbps) in [(GuardInterval::Long, long), (GuardInterval::Short, short)] {
                let rate = vht((mcs, streams, width, guard)).rate();
                let found = rate.bits_per_second as f64 / 1e6;
                assert!((found - mbps).abs() < 0.051, "{rate}: {found}");
            }
        }
    }

    /// By hand: the preamble, whole symbols; an A-MPDU of one packet has a delimiter of 4 bytes.
    #[test]
    fn frames_take_what_the_standards_formulas_give() {
        for (name, guard, bytes, us) in [
            // 12358 bits in symbols of 26, 260, 1170 and 2340, the last with two tails.
            ("vht20-1ss-mcs0", GuardInterval::Long, 1_538, 40 + 476 * 4),
            ("vht20-1ss-mcs7", GuardInterval::Long, 1_538, 40 + 48 * 4),
            ("vht80-1ss-mcs7", GuardInterval::Long, 1_538, 40 + 11 * 4),
            ("vht80-2ss-mcs7", GuardInterval::Long, 1_538, 44 + 6 * 4),
            // 48 symbols of 3.6 µs are 172.8 µs, which end with the 44th of 4.
            ("vht20-1ss-mcs7", GuardInterval::Short, 1_538, 40 + 44 * 4),
            // 608 bits and two tails fit one symbol of 3120 bits.
            ("vht80-2ss-mcs9", GuardInterval::Long, 70, 44 + 4),
        ] {
            let phy = Phy::named(name).expect("a profile").with_guard(guard);
            assert_eq!(phy.airtime_ns(phy.psdu_of_one(bytes, phy.data), phy.data) / 1_000, us, "{name}");
        }
    }

    #[test]
    fn answers_and_gaps_are_those_of_5_ghz() {
        for (name, ack_us) in [("vht80-1ss-mcs0", 44), ("vht80-2ss-mcs2", 32), ("vht40-1ss-mcs9", 28)] {
            let phy = Phy::named(name).expect("a profile");
            let gaps = [phy.sifs_ns, phy.slot_ns, phy.difs_ns()].map(|ns| ns / 1_000);
            assert_eq!((phy.ack_ns() / 1_000, gaps), (ack_us, [16, 9, 43]), "{name}");
            assert_eq!(phy.in_band(crate::phy::Band::Ghz2), phy, "there is no other band");
        }
    }

    #[test]
    fn groups_are_no_wider_no_finer_and_without_what_the_standard_lacks() {
        let phy = Phy::named("vht80-2ss-mcs9").expect("a profile").with_guard(GuardInterval::Short);
        let groups = phy.rate_groups();
        let lengths: Vec<_> = groups.iter().map(Vec::len).collect();
        assert_eq!(lengths, [[9; 4], [10; 4], [10; 4]].concat());
        assert_eq!(groups[11].last(), Some(&phy.data));
        assert_eq!(groups.iter().flatten().filter(|rate| rate.streams() == 2).count(), 58);
        assert_eq!(Phy::named("vht40-1ss-mcs3").expect("a profile").rate_groups().len(), 2);
    }
}
