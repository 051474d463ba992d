//! The profiles by their names, and the rates of data that a rate control may choose.

use crate::phy::ht::{ChannelBandwidth, GuardInterval, Ht, MOST_MCS};
use crate::phy::vht::Vht;
use crate::phy::{BitForm, Coding, DATA_OVERHEAD, Phy, QOS_BYTES, Rate};

/// DIFS is SIFS and this many slots.
const DIFS_SLOTS: u8 = 2;
/// AIFSN of best effort (IEEE 802.11-2016 table 9-137).
const BEST_EFFORT_SLOTS: u8 = 3;

const fn legacy(bits_per_second: u64, sinr: f64) -> Rate {
    Rate { bits_per_second, sinr, form: BitForm::Legacy }
}

pub(super) const DSSS_1: Rate = legacy(1_000_000, 2.511_886_431_509_58);
pub(super) const DSSS_2: Rate = legacy(2_000_000, 5.011_872_336_272_72);
pub(super) const CCK_5: Rate = legacy(5_500_000, 7.943_282_347_242_82);
pub(super) const CCK_11: Rate = legacy(11_000_000, 10.0);
const OFDM_6: Rate = legacy(6_000_000, 3.981_071_705_534_97);
const OFDM_9: Rate = legacy(9_000_000, 6.025_595_860_743_58);
const OFDM_12: Rate = legacy(12_000_000, 7.943_282_347_242_82);
const OFDM_18: Rate = legacy(18_000_000, 12.022_644_346_174_1);
const OFDM_24: Rate = legacy(24_000_000, 25.118_864_315_095_8);
const OFDM_36: Rate = legacy(36_000_000, 50.118_723_362_727_2);
const OFDM_48: Rate = legacy(48_000_000, 158.489_319_246_111);
const OFDM_54: Rate = legacy(54_000_000, 251.188_643_150_958);
pub(super) static OFDM: [Rate; 8] = [OFDM_6, OFDM_9, OFDM_12, OFDM_18, OFDM_24, OFDM_36, OFDM_48, OFDM_54];

/// All profiles by their names. SINR in dB: 4, 7, 9, 10 for DSSS and CCK; 6, 7.8, 9, 10.8, 14, 17, 22, 24 for OFDM.
pub(super) static PROFILES: [Phy; 15 + HT_PROFILES + VHT.len()] = with_ht([
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
]);

pub(super) const LONG_NS: u64 = 192_000;
const SHORT_NS: u64 = 96_000;

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
        slowest: DSSS_1,
        aifsn: DIFS_SLOTS,
        cw,
        data_overhead: DATA_OVERHEAD,
        mask: RateMask::ALL,
    }
}

const fn short(name: &'static str, data: Rate) -> Phy {
    Phy { basic: DSSS_2, slowest: DSSS_2, ..dsss(name, data, SHORT_NS) }
}

/// In ad hoc mode ERP stations keep the long slot.
const fn ofdm(name: &'static str, data: Rate) -> Phy {
    let (coding, cw) = (Coding::ErpOfdm, (15, 1023));
    Phy { coding, basic: OFDM_6, slowest: OFDM_6, cw, ..dsss(name, data, LONG_NS) }
}

/// A profile for each MCS of one and of two streams, 20 and 40 MHz wide.
const HT_PROFILES: usize = 2 * (MOST_MCS as usize + 1);

/// Adds the profiles of 802.11n and 802.11ac.
const fn with_ht(before: [Phy; 15]) -> [Phy; 15 + HT_PROFILES + VHT.len()] {
    let mut all = [before[0]; 15 + HT_PROFILES + VHT.len()];
    let mut n = 0;
    while n < 15 {
        all[n] = before[n];
        n += 1;
    }
    let mut mcs = 0;
    while mcs <= MOST_MCS {
        all[15 + mcs as usize] = ht(HT20[mcs as usize], mcs, ChannelBandwidth::Mhz20);
        all[15 + (MOST_MCS + 1 + mcs) as usize] = ht(HT40[mcs as usize], mcs, ChannelBandwidth::Mhz40);
        mcs += 1;
    }
    let mut n = 0;
    while n < VHT.len() {
        all[15 + HT_PROFILES + n] = VHT[n];
        n += 1;
    }
    all
}

/// At 2.4 GHz, where an ad hoc network keeps the long slot, with the long guard interval.
const fn ht(name: &'static str, mcs: u8, width: ChannelBandwidth) -> Phy {
    let data = Ht { mcs, width, guard: GuardInterval::Long }.rate();
    Phy {
        name,
        data,
        basic: data.answer(),
        slowest: NON_HT[0],
        aifsn: BEST_EFFORT_SLOTS,
        data_overhead: DATA_OVERHEAD + QOS_BYTES,
        ..ofdm(name, OFDM_6)
    }
}

/// The mandatory rates of OFDM, at which stations of 802.11n send control frames: 6, 12 and 24 Mbit/s. Their SINRs are
/// from 802.11n's curves, for one error in ten frames of 1,500 bytes.
pub(crate) const NON_HT: [Rate; 3] =
    [non_ht(6_000_000, 1.0712), non_ht(12_000_000, 2.1424), non_ht(24_000_000, 8.4532)];

const fn non_ht(bits_per_second: u64, sinr: f64) -> Rate {
    Rate { bits_per_second, sinr, form: BitForm::NonHt }
}

const HT20: [&str; MOST_MCS as usize + 1] = [
    "ht20-mcs0",
    "ht20-mcs1",
    "ht20-mcs2",
    "ht20-mcs3",
    "ht20-mcs4",
    "ht20-mcs5",
    "ht20-mcs6",
    "ht20-mcs7",
    "ht20-mcs8",
    "ht20-mcs9",
    "ht20-mcs10",
    "ht20-mcs11",
    "ht20-mcs12",
    "ht20-mcs13",
    "ht20-mcs14",
    "ht20-mcs15",
];
const HT40: [&str; MOST_MCS as usize + 1] = [
    "ht40-mcs0",
    "ht40-mcs1",
    "ht40-mcs2",
    "ht40-mcs3",
    "ht40-mcs4",
    "ht40-mcs5",
    "ht40-mcs6",
    "ht40-mcs7",
    "ht40-mcs8",
    "ht40-mcs9",
    "ht40-mcs10",
    "ht40-mcs11",
    "ht40-mcs12",
    "ht40-mcs13",
    "ht40-mcs14",
    "ht40-mcs15",
];

macro_rules! vht {
    ($($mhz:literal $width:ident $streams:literal: $($mcs:literal)+;)+) => {
        [$($(vht(
            concat!("vht", $mhz, "-", $streams, "ss-mcs", $mcs),
            Vht { mcs: $mcs, streams: $streams, width: ChannelBandwidth::$width, guard: GuardInterval::Long },
        )),+),+]
    };
}

/// The profiles of 802.11ac, with one stream and with two. Some MCSs do not exist in some widths.
const VHT: [Phy; 58] = vht! {
    "20" Mhz20 1: 0 1 2 3 4 5 6 7 8;
    "20" Mhz20 2: 0 1 2 3 4 5 6 7 8;
    "40" Mhz40 1: 0 1 2 3 4 5 6 7 8 9;
    "40" Mhz40 2: 0 1 2 3 4 5 6 7 8 9;
    "80" Mhz80 1: 0 1 2 3 4 5 6 7 8 9;
    "80" Mhz80 2: 0 1 2 3 4 5 6 7 8 9;
};

/// At 5 GHz, with the long guard interval.
const fn vht(name: &'static str, vht: Vht) -> Phy {
    assert!(vht.is_valid(), "the standard has the rate");
    let data = vht.rate();
    let basic = data.answer();
    Phy {
        data,
        basic,
        coding: Coding::Ofdm,
        slot_ns: 9_000,
        sifs_ns: 16_000,
        ..ht(name, 0, ChannelBandwidth::Mhz20)
    }
}

/// The rates without 802.11n, by their place in a mask.
const LEGACY_KBPS: [u32; 12] =
    [1_000, 2_000, 5_500, 11_000, 6_000, 9_000, 12_000, 18_000, 24_000, 36_000, 48_000, 54_000];

/// A set of rates. Rates of 802.11n and 802.11ac go by their MCS, in all widths, guard intervals and streams that have
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateMask(u16);

impl RateMask {
    /// Any rate.
    pub const ALL: RateMask = RateMask(u16::MAX);

    /// These rates alone.
    ///
    /// # Panics
    ///
    /// Without any rate.
    pub fn of(rates: impl IntoIterator<Item = Rate>) -> RateMask {
        let mask = rates.into_iter().fold(0, |mask, rate| mask | bit(rate));
        assert!(mask != 0, "a mask has a rate");
        RateMask(mask)
    }

    pub(super) fn has(self, rate: Rate) -> bool {
        self.0 & bit(rate) != 0
    }
}

fn bit(rate: Rate) -> u16 {
    let place = match rate.form {
        BitForm::Ht(ht) => usize::from(ht.mcs),
        BitForm::Vht(vht) => usize::from(vht.mcs),
        BitForm::Legacy | BitForm::NonHt => {
            LEGACY_KBPS.iter().position(|kbps| *kbps == rate.kbps()).expect("a rate of DSSS or OFDM")
        }
    };
    1 << place
}

impl Rate {
    /// The index of the MCS under 802.11n (0 to 15), or under 802.11ac (0 to 9 of each stream); none without them.
    pub fn mcs(&self) -> Option<u8> {
        match self.form {
            BitForm::Ht(ht) => Some(ht.mcs),
            BitForm::Vht(vht) => Some(vht.mcs),
            BitForm::Legacy | BitForm::NonHt => None,
        }
    }
}
