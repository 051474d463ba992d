//! The rates of 802.11n (HT), in frames of the mixed format (IEEE 802.11-2016 §19): one and two streams, 20 and 40 MHz,
//! long and short guard interval. The parameters of EDCA's access categories (table 9-137, for a PHY of OFDM).

use std::fmt;

use hopwise_core::queue::Category;

use crate::phy::profiles::NON_HT;
use crate::phy::vht::Vht;
use crate::phy::{BitForm, Phy, Rate};

/// The fastest MCS of two streams.
pub(crate) const MOST_MCS: u8 = 15;
/// The MCSs of one stream.
const OF_A_STREAM: u8 = 8;

/// The width of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChannelBandwidth {
    Mhz20,
    Mhz40,
    /// 802.11ac alone has it.
    Mhz80,
}

impl ChannelBandwidth {
    pub(super) const ALL: [ChannelBandwidth; 3] =
        [ChannelBandwidth::Mhz20, ChannelBandwidth::Mhz40, ChannelBandwidth::Mhz80];

    /// N_SD, the subcarriers with data.
    pub(super) const fn subcarriers(self) -> u32 {
        match self {
            ChannelBandwidth::Mhz20 => 52,
            ChannelBandwidth::Mhz40 => 108,
            ChannelBandwidth::Mhz80 => 234,
        }
    }

    /// The used part of the subcarriers, with pilots.
    pub(crate) const fn used(self) -> f64 {
        match self {
            ChannelBandwidth::Mhz20 => 56.0 / 64.0,
            ChannelBandwidth::Mhz40 => 114.0 / 128.0,
            ChannelBandwidth::Mhz80 => 242.0 / 256.0,
        }
    }

    pub(crate) const fn mhz(self) -> u32 {
        match self {
            ChannelBandwidth::Mhz20 => 20,
            ChannelBandwidth::Mhz40 => 40,
            ChannelBandwidth::Mhz80 => 80,
        }
    }
}

/// The guard interval of an OFDM symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GuardInterval {
    /// 800 ns: a symbol takes 4 µs.
    #[default]
    Long,
    /// 400 ns: a symbol takes 3.6 µs.
    Short,
}

impl GuardInterval {
    /// The time of a symbol.
    pub(super) const fn symbol_ns(self) -> u64 {
        match self {
            GuardInterval::Long => 4_000,
            GuardInterval::Short => 3_600,
        }
    }

    /// The guard intervals that are no shorter.
    pub(super) const fn not_shorter(self) -> &'static [GuardInterval] {
        match self {
            GuardInterval::Long => &[GuardInterval::Long],
            GuardInterval::Short => &[GuardInterval::Long, GuardInterval::Short],
        }
    }
}

/// The rate of an HT frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ht {
    pub(crate) mcs: u8,
    pub(crate) width: ChannelBandwidth,
    pub(crate) guard: GuardInterval,
}

/// Coded bits on a subcarrier, and the data bits among twelve coded ones, by the MCS of a stream. 802.11ac has the last
/// two.
pub(super) const CODES: [(u32, u32); 10] =
    [(1, 6), (2, 6), (2, 9), (4, 6), (4, 9), (6, 8), (6, 9), (6, 10), (8, 9), (8, 10)];

/// The SINR for one error in ten frames of 1,500 bytes, by the curves of `channel/curves/soft.rs`.
pub(super) const SINR: [f64; 10] =
    [1.1536, 2.3073, 4.3149, 9.1035, 19.1398, 52.2365, 71.4898, 94.7796, 258.1586, 352.3737];

impl Ht {
    pub(crate) const fn rate(self) -> Rate {
        let bits_per_second = self.bits_per_symbol() as u64 * 1_000_000_000 / self.guard.symbol_ns();
        let sinr = SINR[self.of_stream() as usize] * self.streams() as f64;
        Rate { bits_per_second, sinr, form: BitForm::Ht(self) }
    }

    /// The MCS of each of its streams.
    pub(crate) const fn of_stream(self) -> u8 {
        self.mcs % OF_A_STREAM
    }

    pub(crate) const fn streams(self) -> u32 {
        (self.mcs / OF_A_STREAM + 1) as u32
    }

    /// N_DBPS.
    const fn bits_per_symbol(self) -> u32 {
        let (bits, of_twelve) = CODES[self.of_stream() as usize];
        self.streams() * self.width.subcarriers() * bits * of_twelve / 12
    }

    /// The preamble, to the first symbol of data: L-STF, L-LTF and L-SIG, HT-SIG, HT-STF, an HT-LTF for each stream.
    pub(crate) const fn preamble_ns(self) -> u64 {
        20_000 + 8_000 + 4_000 + 4_000 * self.streams() as u64
    }

    /// The time of a PSDU of `bytes` (equations 19-90 and 19-91), without signal extension. A PPDU ends with a whole
    /// number of 4 µs whatever its guard interval.
    pub(crate) fn airtime_ns(self, bytes: u32) -> u64 {
        let bits = 16 + 8 * u64::from(bytes) + 6;
        let symbols = bits.div_ceil(u64::from(self.bits_per_symbol()));
        self.preamble_ns() + (self.guard.symbol_ns() * symbols).div_ceil(4_000) * 4_000
    }

    /// All rates that are no wider, of no shorter guard interval, of no more streams and of no finer MCS. Each group
    /// has one width, one guard interval and one number of streams.
    pub(super) fn groups(self) -> Vec<Vec<Rate>> {
        let up_to = |all: &[ChannelBandwidth]| all.iter().position(|width| *width == self.width).unwrap_or(0);
        let widths = [ChannelBandwidth::Mhz20, ChannelBandwidth::Mhz40];
        let guards = self.guard.not_shorter();
        let mut groups = Vec::new();
        for width in widths[..=up_to(&widths)].iter().copied() {
            for (guard, stream) in
                guards.iter().flat_map(|guard| (0..=self.mcs / OF_A_STREAM).map(move |s| (*guard, s)))
            {
                let of = |mcs| Ht { mcs: stream * OF_A_STREAM + mcs, width, guard }.rate();
                groups.push((0..=self.of_stream()).map(of).collect());
            }
        }
        groups
    }

    /// The slower rates with this number of streams, and this rate.
    pub(super) fn up_to_this(self) -> impl DoubleEndedIterator<Item = Rate> {
        (self.mcs - self.of_stream()..=self.mcs).map(move |mcs| Ht { mcs, ..self }.rate())
    }
}

impl Rate {
    /// Returns whether a frame at this rate is one of 802.11n or 802.11ac.
    pub(crate) const fn is_ht(self) -> bool {
        matches!(self.form, BitForm::Ht(_) | BitForm::Vht(_))
    }

    /// The MCS of each stream; none without 802.11n.
    pub(crate) const fn mcs_of_stream(self) -> Option<u8> {
        match self.form {
            BitForm::Ht(ht) => Some(ht.of_stream()),
            BitForm::Vht(vht) => Some(vht.mcs),
            BitForm::Legacy | BitForm::NonHt => None,
        }
    }

    /// The spatial streams; one without 802.11n.
    pub(crate) const fn streams(self) -> u32 {
        match self.form {
            BitForm::Ht(ht) => ht.streams(),
            BitForm::Vht(vht) => vht.streams as u32,
            BitForm::Legacy | BitForm::NonHt => 1,
        }
    }

    /// The rate of an answer: the highest mandatory rate of OFDM whose constellation and code are no finer (IEEE
    /// 802.11-2016 §10.7.6.5.2). Without HT all answers go at the basic rate, which the profile gives.
    pub const fn answer(self) -> Rate {
        match self.mcs_of_stream() {
            Some(0) => NON_HT[0],
            Some(1 | 2) => NON_HT[1],
            Some(_) => NON_HT[2],
            None => self,
        }
    }
}

/// `5.5 Mbit/s`, or `MCS 7 of 40 MHz, short` with a short guard interval; `VHT-MCS 9 x 2 of 80 MHz` with two streams.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |guard| if guard == GuardInterval::Short { ", short" } else { "" };
        match self.form {
            BitForm::Ht(Ht { mcs, width, guard }) => {
                let width = if width == ChannelBandwidth::Mhz40 { " of 40 MHz" } else { "" };
                write!(f, "MCS {mcs}{width}{}", short(guard))
            }
            BitForm::Vht(Vht { mcs, streams, width, guard }) => {
                write!(f, "VHT-MCS {mcs} x {streams} of {} MHz{}", width.mhz(), short(guard))
            }
            BitForm::Legacy | BitForm::NonHt => {
                let tenths = self.bits_per_second / 100_000;
                match tenths % 10 {
                    0 => write!(f, "{} Mbit/s", tenths / 10),
                    rest => write!(f, "{}.{rest} Mbit/s", tenths / 10),
                }
            }
        }
    }
}

/// The numbers by which a category contends for the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contention {
    /// The slots of its AIFS.
    pub aifsn: u8,
    /// The least contention window and the largest one.
    pub cw: (u16, u16),
    /// The time for which it may go on after a success; 0 for one frame.
    pub txop_ns: u64,
}

impl Phy {
    /// The parameters of a category. Those of best effort are the profile's own.
    pub fn contention(&self, category: Category) -> Contention {
        let (least, _) = self.cw;
        // (aCWmin + 1) / 2 − 1 and (aCWmin + 1) / 4 − 1.
        let (half, quarter) = (least.div_ceil(2) - 1, least.div_ceil(4) - 1);
        match category {
            Category::Background => Contention { aifsn: 7, cw: self.cw, txop_ns: 0 },
            Category::BestEffort => Contention { aifsn: self.aifsn, cw: self.cw, txop_ns: 0 },
            Category::Video => Contention { aifsn: 2, cw: (half, least), txop_ns: 3_008_000 },
            Category::Voice => Contention { aifsn: 2, cw: (quarter, half), txop_ns: 1_504_000 },
        }
    }

    /// AIFS of a category, in nanoseconds.
    pub fn aifs_ns(&self, category: Category) -> u64 {
        self.sifs_ns + u64::from(self.contention(category).aifsn) * self.slot_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phy::{Band, Phy};

    fn phy(name: &str) -> Phy {
        Phy::named(name).expect("a profile")
    }

    /// Tables 19-27 to 19-30 and 19-34 to 19-37: Mbit/s with the long guard interval.
    #[test]
    fn rates_are_those_of_the_standards_tables() {
        let mbps = |width: u32, guard| -> Vec<f64> {
            (0..=MOST_MCS)
                .map(|mcs| phy(&format!("ht{width}-mcs{mcs}")).with_guard(guard).data.bits_per_second)
                .map(|bits| (bits as f64 / 1e5).round() / 10.0)
                .collect()
        };
        let of_20 = [6.5, 13.0, 19.5, 26.0, 39.0, 52.0, 58.5, 65.0];
        let of_40 = [13.5, 27.0, 40.5, 54.0, 81.0, 108.0, 121.5, 135.0];
        let twice = |of: [f64; 8]| of.into_iter().chain(of.map(|mbps| 2.0 * mbps)).collect::<Vec<_>>();
        assert_eq!(
            (mbps(20, GuardInterval::Long), mbps(40, GuardInterval::Long)),
            (twice(of_20), twice(of_40))
        );
        let short = mbps(20, GuardInterval::Short);
        assert_eq!((short[0], short[7], short[15]), (7.2, 72.2, 144.4));
        assert_eq!(mbps(40, GuardInterval::Short)[15], 300.0);
    }

    /// By hand, from equations 19-90 and 19-91: the preamble, whole symbols, and 6 µs at 2.4 GHz.
    #[test]
    fn frames_take_what_the_standards_formulas_give() {
        let us = |phy: &Phy, bytes| phy.airtime_ns(bytes, phy.data) / 1_000;
        for (name, guard, bytes, at_2_4) in [
            // 12326 bits in symbols of 26, 104 and 260.
            ("ht20-mcs0", GuardInterval::Long, 1_538, 36 + 475 * 4 + 6),
            ("ht20-mcs3", GuardInterval::Long, 1_538, 36 + 119 * 4 + 6),
            ("ht20-mcs7", GuardInterval::Long, 1_538, 36 + 48 * 4 + 6),
            ("ht20-mcs7", GuardInterval::Long, 78, 36 + 3 * 4 + 6),
            // 48 symbols of 3.6 µs are 172.8 µs, which end with the 44th of 4.
            ("ht20-mcs7", GuardInterval::Short, 1_538, 36 + 44 * 4 + 6),
            // Two streams have two HT-LTFs, and symbols of 520 bits; 40 MHz has symbols of 540, and of 1080.
            ("ht20-mcs15", GuardInterval::Long, 1_538, 40 + 24 * 4 + 6),
            ("ht40-mcs7", GuardInterval::Long, 1_538, 36 + 23 * 4 + 6),
            ("ht40-mcs15", GuardInterval::Long, 1_538, 40 + 12 * 4 + 6),
            // The longest PSDU: 524302 bits.
            ("ht20-mcs7", GuardInterval::Long, 65_535, 36 + 2_017 * 4 + 6),
        ] {
            let phy = phy(name).with_guard(guard);
            assert_eq!(us(&phy, bytes), at_2_4, "{name} {guard:?} {bytes}");
            assert_eq!(us(&phy.in_band(Band::Ghz5), bytes), at_2_4 - 6, "{name} {guard:?} {bytes} at 5 GHz");
        }
    }

    /// ACK, RTS and CTS at the mandatory rate that is no finer: 6, 12 or 24 Mbit/s.
    #[test]
    fn answers_go_at_the_mandatory_rate_that_is_no_finer() {
        let us = |mcs| {
            let phy = phy(&format!("ht20-mcs{mcs}"));
            [phy.ack_ns(), phy.cts_ns(), phy.rts_ns()].map(|ns| ns / 1_000)
        };
        for mcs in [0, 8] {
            assert_eq!(us(mcs), [20 + 6 * 4 + 6, 50, 20 + 8 * 4 + 6]);
        }
        for mcs in [1, 2, 9, 10] {
            assert_eq!(us(mcs), [20 + 3 * 4 + 6, 38, 20 + 4 * 4 + 6]);
        }
        for mcs in [3, 7, 11, 15] {
            assert_eq!(us(mcs), [20 + 2 * 4 + 6, 34, 34]);
        }
    }

    #[test]
    fn gaps_are_those_of_the_band() {
        let gaps = |phy: Phy| {
            [phy.sifs_ns, phy.slot_ns, phy.difs_ns(), phy.eifs_ns(), phy.answer_timeout_ns()]
                .map(|ns| ns / 1_000)
        };
        // AIFS of best effort is SIFS and three slots. At 2.4 GHz the slowest mandatory rate is 1 Mbit/s.
        assert_eq!(gaps(phy("ht20-mcs7")), [10, 20, 70, 10 + 304 + 70, 10 + 20 + 20]);
        assert_eq!(gaps(phy("ht20-mcs7").in_band(Band::Ghz5)), [16, 9, 43, 16 + 44 + 43, 16 + 9 + 20]);
    }

    #[test]
    fn categories_have_the_standards_windows_gaps_and_times() {
        let phy = Phy::named("ht20-mcs7").expect("a profile");
        let of = |category| {
            let Contention { aifsn, cw, txop_ns } = phy.contention(category);
            (aifsn, cw, txop_ns / 1_000)
        };
        assert_eq!(
            Category::ALL.map(of),
            [(2, (3, 7), 1_504), (2, (7, 15), 3_008), (3, (15, 1_023), 0), (7, (15, 1_023), 0),]
        );
        assert_eq!(phy.aifs_ns(Category::BestEffort), phy.difs_ns());
    }
}
