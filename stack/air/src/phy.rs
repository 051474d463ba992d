//! The costs of a physical layer: slots, gaps, preambles and rates.
//!
//! Not modelled: EDCA, A-MPDU, 802.11n and later.

use crate::rules::MacRules;

/// A rate, with the SINR that it needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Bits per second.
    pub bits_per_second: u64,
    /// The ratio of powers by which a frame must exceed the sum of all others that overlap it (`rules: standard`).
    pub(crate) sinr: f64,
}

/// The translation of a frame's bits to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// DSSS and CCK: a preamble with its header, then bits at the rate.
    Dsss {
        /// Nanoseconds of the preamble and its header, before the first bit of the frame.
        preamble_ns: u64,
    },
    /// ERP-OFDM: 20 µs of preamble and SIGNAL, symbols of 4 µs, 6 µs of signal extension.
    ErpOfdm,
}

/// A profile of a physical layer: its times, and its rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phy {
    /// The name by which scenarios choose it.
    pub name: &'static str,
    /// The translation of frames to airtime.
    pub coding: Coding,
    /// A slot of the backoff, in nanoseconds.
    pub(crate) slot_ns: u64,
    /// The gap before an answer, in nanoseconds.
    pub(crate) sifs_ns: u64,
    /// The rate of data frames without rate control.
    pub data: Rate,
    /// The rate of RTS, CTS, ACK and broadcasts.
    pub basic: Rate,
    /// The least contention window and the largest one, which backoffs are drawn from.
    pub cw: (u16, u16),
    /// Bytes of a data frame beside its packet.
    pub(crate) data_overhead: u32,
}

const DSSS_1: Rate = Rate { bits_per_second: 1_000_000, sinr: 2.511_886_431_509_58 };
const DSSS_2: Rate = Rate { bits_per_second: 2_000_000, sinr: 5.011_872_336_272_72 };
const CCK_5: Rate = Rate { bits_per_second: 5_500_000, sinr: 7.943_282_347_242_82 };
const CCK_11: Rate = Rate { bits_per_second: 11_000_000, sinr: 10.0 };
const OFDM_6: Rate = Rate { bits_per_second: 6_000_000, sinr: 3.981_071_705_534_97 };
const OFDM_9: Rate = Rate { bits_per_second: 9_000_000, sinr: 6.025_595_860_743_58 };
const OFDM_12: Rate = Rate { bits_per_second: 12_000_000, sinr: 7.943_282_347_242_82 };
const OFDM_18: Rate = Rate { bits_per_second: 18_000_000, sinr: 12.022_644_346_174_1 };
const OFDM_24: Rate = Rate { bits_per_second: 24_000_000, sinr: 25.118_864_315_095_8 };
const OFDM_36: Rate = Rate { bits_per_second: 36_000_000, sinr: 50.118_723_362_727_2 };
const OFDM_48: Rate = Rate { bits_per_second: 48_000_000, sinr: 158.489_319_246_111 };
const OFDM_54: Rate = Rate { bits_per_second: 54_000_000, sinr: 251.188_643_150_958 };
static OFDM: [Rate; 8] = [OFDM_6, OFDM_9, OFDM_12, OFDM_18, OFDM_24, OFDM_36, OFDM_48, OFDM_54];

/// All profiles by their names. SINR in dB: 4, 7, 9, 10 for DSSS and CCK; 6, 7.8, 9, 10.8, 14, 17, 22, 24 for OFDM.
static PROFILES: [Phy; 15] = [
    dsss("dsss-1mbps", DSSS_1, LONG_NS),
    dsss("dsss-2mbps", DSSS_2, LONG_NS),
    dsss("dsss-5.5mbps", CCK_5, LONG_NS),
    dsss("dsss-11mbps", CCK_11, LONG_NS),
    // A short preamble has no form at 1 Mbit/s; control frames take the long one's rate no lower than 2.
    short("dsss-2mbps-short", DSSS_2),
    short("dsss-5.5mbps-short", CCK_5),
    short("dsss-11mbps-short", CCK_11),
    ofdm("ofdm-6mbps", OFDM_6),
    ofdm("ofdm-9mbps", OFDM_9),
    ofdm("ofdm-12mbps", OFDM_12),
    ofdm("ofdm-18mbps", OFDM_18),
    ofdm("ofdm-24mbps", OFDM_24),
    ofdm("ofdm-36mbps", OFDM_36),
    ofdm("ofdm-48mbps", OFDM_48),
    ofdm("ofdm-54mbps", OFDM_54),
];

const LONG_NS: u64 = 192_000;
const SHORT_NS: u64 = 96_000;
/// Preamble and SIGNAL.
const OFDM_START_NS: u64 = 20_000;

const fn dsss(name: &'static str, data: Rate, preamble_ns: u64) -> Phy {
    let coding = Coding::Dsss { preamble_ns };
    let cw = (31, 1023);
    Phy {
        name,
        coding,
        slot_ns: 20_000,
        sifs_ns: 10_000,
        data,
        basic: DSSS_1,
        cw,
        data_overhead: DATA_OVERHEAD,
    }
}

const fn short(name: &'static str, data: Rate) -> Phy {
    Phy { basic: DSSS_2, ..dsss(name, data, SHORT_NS) }
}

/// In ad hoc mode ERP stations keep the long slot.
const fn ofdm(name: &'static str, data: Rate) -> Phy {
    let coding = Coding::ErpOfdm;
    let cw = (15, 1023);
    Phy {
        name,
        coding,
        slot_ns: 20_000,
        sifs_ns: 10_000,
        data,
        basic: OFDM_6,
        cw,
        data_overhead: DATA_OVERHEAD,
    }
}

/// The MAC header of an ad hoc network, LLC with SNAP, and the FCS.
const DATA_OVERHEAD: u32 = 24 + 8 + 4;
/// ns-2's, which has no LLC and room for a fourth address.
const NS2_DATA_OVERHEAD: u32 = 34;
const FCS_BYTES: u32 = 4;
pub(crate) const RTS_BYTES: u32 = 20;
pub(crate) const CTS_BYTES: u32 = 14;
pub(crate) const ACK_BYTES: u32 = 14;

impl Phy {
    /// The profile of this name.
    pub fn named(name: &str) -> Option<Phy> {
        PROFILES.iter().find(|phy| phy.name == name).copied()
    }

    /// The same profile with the sizes of these rules.
    #[must_use]
    pub fn under(self, rules: MacRules) -> Phy {
        let data_overhead = match rules {
            MacRules::Standard => DATA_OVERHEAD,
            MacRules::Ns2 => NS2_DATA_OVERHEAD,
        };
        Phy { data_overhead, ..self }
    }

    /// The same profile for packets that are whole frames.
    #[must_use]
    pub(crate) fn for_whole_frames(self) -> Phy {
        Phy { data_overhead: FCS_BYTES, ..self }
    }

    /// The names of all profiles.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PROFILES.iter().map(|phy| phy.name)
    }

    /// The possible rates of data, from the basic rate to the profile's own.
    pub fn rates(&self) -> impl DoubleEndedIterator<Item = Rate> + use<> {
        let all: &'static [Rate] = match self.coding {
            Coding::Dsss { .. } => &[DSSS_1, DSSS_2, CCK_5, CCK_11],
            Coding::ErpOfdm => &OFDM,
        };
        let (least, most) = (self.basic.bits_per_second, self.data.bits_per_second);
        all.iter().copied().filter(move |rate| (least..=most).contains(&rate.bits_per_second))
    }

    /// The gap before a frame that answers no other, in nanoseconds: SIFS and two slots.
    pub(crate) fn difs_ns(&self) -> u64 {
        self.sifs_ns + 2 * self.slot_ns
    }

    /// aRxPHYStartDelay: the preamble with its header, after which the PHY reports a frame to the MAC.
    pub fn start_ns(&self) -> u64 {
        match self.coding {
            Coding::Dsss { preamble_ns } => preamble_ns,
            Coding::ErpOfdm => OFDM_START_NS,
        }
    }

    /// CTSTimeout and AckTimeout (IEEE 802.11-2016 §10.3.2.7, §10.3.2.9): by then an answer has begun.
    pub(crate) fn answer_timeout_ns(&self) -> u64 {
        self.sifs_ns + self.slot_ns + self.start_ns()
    }

    /// SIFS, an ACK at the basic rate, DIFS.
    pub(crate) fn eifs_ns(&self) -> u64 {
        self.sifs_ns + self.ack_ns() + self.difs_ns()
    }

    /// The airtime of a frame of `bytes`.
    pub fn airtime_ns(&self, bytes: u32, rate: Rate) -> u64 {
        let bits = u64::from(bytes) * 8;
        match self.coding {
            Coding::Dsss { preamble_ns } => {
                preamble_ns + (bits * 1_000_000_000 + rate.bits_per_second / 2) / rate.bits_per_second
            }
            Coding::ErpOfdm => {
                let bits_per_symbol = rate.bits_per_second / 250_000;
                OFDM_START_NS + 4_000 * (16 + bits + 6).div_ceil(bits_per_symbol) + 6_000
            }
        }
    }

    /// The airtime of a data frame around a packet of `bytes`, at the profile's own rate.
    pub fn data_ns(&self, bytes: u32) -> u64 {
        self.data_at_ns(bytes, self.data)
    }

    pub(crate) fn data_at_ns(&self, bytes: u32, rate: Rate) -> u64 {
        self.airtime_ns(bytes + self.data_overhead, rate)
    }

    /// The airtime of an RTS, in nanoseconds.
    pub fn rts_ns(&self) -> u64 {
        self.airtime_ns(RTS_BYTES, self.basic)
    }

    /// The airtime of a CTS, in nanoseconds.
    pub fn cts_ns(&self) -> u64 {
        self.airtime_ns(CTS_BYTES, self.basic)
    }

    /// The airtime of an ACK, in nanoseconds.
    pub fn ack_ns(&self) -> u64 {
        self.airtime_ns(ACK_BYTES, self.basic)
    }

    /// The time from the RTS's first bit to the ACK's last: without DIFS, backoff and propagation.
    pub fn exchange_ns(&self, bytes: u32) -> u64 {
        self.rts_ns() + self.cts_ns() + self.data_ns(bytes) + self.ack_ns() + 3 * self.sifs_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange_us(profile: &str, bytes: u32) -> [u64; 2] {
        let phy = Phy::named(profile).expect("a profile");
        [MacRules::Standard, MacRules::Ns2].map(|rules| (phy.under(rules).exchange_ns(bytes) + 500) / 1_000)
    }

    #[test]
    fn exchanges_take_what_their_frames_and_gaps_take() {
        assert_eq!(exchange_us("dsss-11mbps", 40), [1_237, 1_236]);
        assert_eq!(exchange_us("dsss-11mbps", 1_040), [1_965, 1_963]);
        assert_eq!(exchange_us("dsss-2mbps", 40), [1_486, 1_478]);
        assert_eq!(exchange_us("dsss-2mbps", 1_040), [5_486, 5_478]);
    }

    #[test]
    fn an_answer_has_begun_after_sifs_a_slot_and_its_preamble() {
        let timeout_us = |name| Phy::named(name).map(|phy| phy.answer_timeout_ns() / 1_000);
        assert_eq!(timeout_us("dsss-2mbps"), Some(10 + 20 + 192));
        assert_eq!(timeout_us("dsss-11mbps-short"), Some(10 + 20 + 96));
        assert_eq!(timeout_us("ofdm-54mbps"), Some(10 + 20 + 20));
    }

    #[test]
    fn eifs_is_364_us_at_1_mbit_per_second() {
        assert_eq!(Phy::named("dsss-2mbps").map(|phy| phy.eifs_ns()), Some(364_000));
    }

    #[test]
    fn ofdm_frames_end_with_whole_symbols_and_their_extension() {
        let phy = Phy::named("ofdm-54mbps").expect("a profile");
        // 22 bits of service and tail with 1536 B are 57 symbols of 216 bits.
        assert_eq!(phy.data_ns(1_500), 20_000 + 57 * 4_000 + 6_000);
        assert_eq!(phy.ack_ns(), 20_000 + 6 * 4_000 + 6_000);
    }

    #[test]
    fn data_may_go_at_every_rate_from_the_basic_one_to_the_profiles_own() {
        let mbps = |name| -> Vec<_> {
            let phy = Phy::named(name).expect("a profile");
            phy.rates().map(|rate| rate.bits_per_second / 100_000).collect()
        };
        assert_eq!(mbps("dsss-11mbps"), [10, 20, 55, 110]);
        assert_eq!(mbps("dsss-5.5mbps-short"), [20, 55]);
        assert_eq!(mbps("ofdm-24mbps"), [60, 90, 120, 180, 240]);
        assert_eq!(mbps("dsss-1mbps"), [10]);
    }

    #[test]
    fn names_of_profiles_are_their_own() {
        let mut names: Vec<_> = Phy::names().collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PROFILES.len());
        assert_eq!(Phy::named("dsss-3mbps"), None);
    }
}
