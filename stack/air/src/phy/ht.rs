//! The rates of 802.11n (HT), in frames of the mixed format (IEEE 802.11-2016 §19): one and two streams, 20 and 40 MHz,
//! long and short guard interval.

use std::fmt;

use super::profiles::NON_HT;
use super::vht::Vht;
use super::{Form, Rate};

/// The fastest MCS of two streams.
pub(super) const MOST_MCS: u8 = 15;
/// The MCSs of one stream.
const OF_A_STREAM: u8 = 8;

/// The width of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    Mhz20,
    Mhz40,
    /// 802.11ac alone has it.
    Mhz80,
}

impl Width {
    pub(super) const ALL: [Width; 3] = [Width::Mhz20, Width::Mhz40, Width::Mhz80];

    /// N_SD, the subcarriers with data.
    pub(super) const fn subcarriers(self) -> u32 {
        match self {
            Width::Mhz20 => 52,
            Width::Mhz40 => 108,
            Width::Mhz80 => 234,
        }
    }

    /// The used part of the subcarriers, with pilots.
    pub(crate) const fn used(self) -> f64 {
        match self {
            Width::Mhz20 => 56.0 / 64.0,
            Width::Mhz40 => 114.0 / 128.0,
            Width::Mhz80 => 242.0 / 256.0,
        }
    }

    pub(crate) const fn mhz(self) -> u32 {
        match self {
            Width::Mhz20 => 20,
            Width::Mhz40 => 40,
            Width::Mhz80 => 80,
        }
    }
}

/// The guard interval of an OFDM symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guard {
    /// 800 ns: a symbol takes 4 µs.
    #[default]
    Long,
    /// 400 ns: a symbol takes 3.6 µs.
    Short,
}

impl Guard {
    /// The time of a symbol.
    pub(super) const fn symbol_ns(self) -> u64 {
        match self {
            Guard::Long => 4_000,
            Guard::Short => 3_600,
        }
    }
}

/// The rate of an HT frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ht {
    pub(crate) mcs: u8,
    pub(crate) width: Width,
    pub(crate) guard: Guard,
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
        Rate { bits_per_second, sinr, form: Form::Ht(self) }
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
        let up_to = |all: &[Width]| all.iter().position(|width| *width == self.width).unwrap_or(0);
        let widths = [Width::Mhz20, Width::Mhz40];
        let guards =
            if self.guard == Guard::Short { &[Guard::Long, Guard::Short][..] } else { &[Guard::Long] };
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

    /// The slower rates of as many streams, and this one.
    pub(super) fn up_to_this(self) -> impl DoubleEndedIterator<Item = Rate> {
        (self.mcs - self.of_stream()..=self.mcs).map(move |mcs| Ht { mcs, ..self }.rate())
    }
}

impl Rate {
    /// Returns whether a frame at this rate is one of 802.11n or 802.11ac.
    pub(crate) const fn is_ht(self) -> bool {
        matches!(self.form, Form::Ht(_) | Form::Vht(_))
    }

    /// The MCS of each stream; none without 802.11n.
    pub(crate) const fn mcs_of_stream(self) -> Option<u8> {
        match self.form {
            Form::Ht(ht) => Some(ht.of_stream()),
            Form::Vht(vht) => Some(vht.mcs),
            Form::Legacy | Form::NonHt => None,
        }
    }

    /// The spatial streams; one without 802.11n.
    pub(crate) const fn streams(self) -> u32 {
        match self.form {
            Form::Ht(ht) => ht.streams(),
            Form::Vht(vht) => vht.streams as u32,
            Form::Legacy | Form::NonHt => 1,
        }
    }

    /// The rate of an answer: the highest mandatory rate of OFDM whose constellation and code are no finer (IEEE
    /// 802.11-2016 §10.7.6.5.2). Without HT all answers go at the basic rate, which the profile gives.
    pub(crate) const fn answer(self) -> Rate {
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
        let short = |guard| if guard == Guard::Short { ", short" } else { "" };
        match self.form {
            Form::Ht(Ht { mcs, width, guard }) => {
                let width = if width == Width::Mhz40 { " of 40 MHz" } else { "" };
                write!(f, "MCS {mcs}{width}{}", short(guard))
            }
            Form::Vht(Vht { mcs, streams, width, guard }) => {
                write!(f, "VHT-MCS {mcs} x {streams} of {} MHz{}", width.mhz(), short(guard))
            }
            Form::Legacy | Form::NonHt => {
                let tenths = self.bits_per_second / 100_000;
                match tenths % 10 {
                    0 => write!(f, "{} Mbit/s", tenths / 10),
                    rest => write!(f, "{}.{rest} Mbit/s", tenths / 10),
                }
            }
        }
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
        assert_eq!((mbps(20, Guard::Long), mbps(40, Guard::Long)), (twice(of_20), twice(of_40)));
        let short = mbps(20, Guard::Short);
        assert_eq!((short[0], short[7], short[15]), (7.2, 72.2, 144.4));
        assert_eq!(mbps(40, Guard::Short)[15], 300.0);
    }

    /// By hand, from equations 19-90 and 19-91: the preamble, whole symbols, and 6 µs at 2.4 GHz.
    #[test]
    fn frames_take_what_the_standards_formulas_give() {
        let us = |phy: &Phy, bytes| phy.airtime_ns(bytes, phy.data) / 1_000;
        for (name, guard, bytes, at_2_4) in [
            // 12326 bits in symbols of 26, 104 and 260.
            ("ht20-mcs0", Guard::Long, 1_538, 36 + 475 * 4 + 6),
            ("ht20-mcs3", Guard::Long, 1_538, 36 + 119 * 4 + 6),
            ("ht20-mcs7", Guard::Long, 1_538, 36 + 48 * 4 + 6),
            ("ht20-mcs7", Guard::Long, 78, 36 + 3 * 4 + 6),
            // 48 symbols of 3.6 µs are 172.8 µs, which end with the 44th of 4.
            ("ht20-mcs7", Guard::Short, 1_538, 36 + 44 * 4 + 6),
            // Two streams have two HT-LTFs, and symbols of 520 bits; 40 MHz has symbols of 540, and of 1080.
            ("ht20-mcs15", Guard::Long, 1_538, 40 + 24 * 4 + 6),
            ("ht40-mcs7", Guard::Long, 1_538, 36 + 23 * 4 + 6),
            ("ht40-mcs15", Guard::Long, 1_538, 40 + 12 * 4 + 6),
            // The longest PSDU: 524302 bits.
            ("ht20-mcs7", Guard::Long, 65_535, 36 + 2_017 * 4 + 6),
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
}
