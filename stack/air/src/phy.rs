//! The costs of a physical layer: slots, gaps, preambles and rates.

mod ht;
mod profiles;
mod vht;

pub use ht::Contention;
pub use ht::GuardInterval;
pub(crate) use ht::{ChannelBandwidth, Ht, MOST_MCS};
pub use profiles::RateMask;
pub(crate) use vht::Vht;

#[cfg(test)]
pub(crate) use profiles::NON_HT;

use hopwise_core::narrow::as_u32;
use hopwise_core::queue::AirtimeEstimate;

use crate::frame::MacRules;
use profiles::{CCK_5, CCK_11, DSSS_1, DSSS_2, LONG_NS, OFDM, PROFILES};

/// The way in which a frame carries its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BitForm {
    /// DSSS or OFDM, as a station without 802.11n sends and receives it.
    Legacy,
    /// OFDM as a station of 802.11n sends and receives it.
    NonHt,
    /// 802.11n.
    Ht(Ht),
    /// 802.11ac.
    Vht(Vht),
}

/// The band of a channel, which decides the gaps between frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Band {
    /// 2.4 GHz: slots of 20 µs as in every ad hoc network there, SIFS of 10 µs, and 6 µs of signal extension.
    #[default]
    Ghz2,
    /// 5 GHz: slots of 9 µs, SIFS of 16 µs.
    Ghz5,
}

/// A rate, with the SINR that it needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Bits per second.
    pub bits_per_second: u64,
    /// The ratio of powers by which a frame must exceed the sum of all overlapping frames (`rules: standard`).
    pub sinr: f64,
    pub(crate) form: BitForm,
}

impl Rate {
    /// Kilobits per second.
    pub fn kbps(&self) -> u32 {
        as_u32((self.bits_per_second / 1_000) as usize)
    }
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
    /// OFDM at 5 GHz, without signal extension.
    Ofdm,
}

/// A profile of a physical layer: its times, and its rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phy {
    /// The name by which scenarios choose it.
    pub name: &'static str,
    /// The translation of frames to airtime.
    pub coding: Coding,
    /// A slot of the backoff, in nanoseconds.
    pub slot_ns: u64,
    /// The gap before an answer, in nanoseconds.
    pub sifs_ns: u64,
    /// The rate of data frames without rate control.
    pub data: Rate,
    /// The rate of RTS, CTS and ACK.
    pub basic: Rate,
    /// The rate of broadcasts, which all stations understand.
    pub(crate) slowest: Rate,
    /// The slots in the gap before a frame that answers no other.
    pub(crate) aifsn: u8,
    /// The least contention window and the largest one, which backoffs are drawn from.
    pub cw: (u16, u16),
    /// Bytes of a data frame around its packet.
    pub data_overhead: u32,
    /// The rates of data that a rate control may choose.
    pub mask: RateMask,
}

/// The MAC header of an ad hoc network, LLC with SNAP, and the FCS.
const DATA_OVERHEAD: u32 = 24 + 8 + 4;
/// ns-2's, which has no LLC and room for a fourth address.
const NS2_DATA_OVERHEAD: u32 = 34;
pub(crate) const FCS_BYTES: u32 = 4;
/// QoS Control, which frames of 802.11n have.
pub(crate) const QOS_BYTES: u32 = 2;
/// Preamble and SIGNAL of OFDM.
const OFDM_START_NS: u64 = 20_000;
const EXTENSION_NS: u64 = 6_000;
/// A request to send.
pub const RTS_BYTES: u32 = 20;
/// The answer to it.
pub const CTS_BYTES: u32 = 14;
/// An acknowledgement.
pub const ACK_BYTES: u32 = 14;
/// With a compressed bitmap of 64 packets.
pub const BLOCK_ACK_BYTES: u32 = 32;
/// What asks for a block ACK.
pub const BLOCK_ACK_REQ_BYTES: u32 = 24;
/// The bytes before each packet of an A-MPDU.
pub(crate) const DELIMITER_BYTES: u32 = 4;

impl Phy {
    /// The profile of this name.
    pub fn named(name: &str) -> Option<Phy> {
        let of_kind = |phy: &&Phy| phy.kind() == Some(name);
        PROFILES.iter().find(|phy| phy.name == name).or_else(|| PROFILES.iter().rfind(of_kind)).copied()
    }

    /// The name without its MCS, which stands for the fastest profile of the kind: `ht20`, `vht80-2ss`.
    fn kind(&self) -> Option<&'static str> {
        Some(self.name.split_once("-mcs")?.0)
    }

    /// The names that stand for the fastest profiles of 802.11n and 802.11ac.
    pub fn kinds() -> impl Iterator<Item = &'static str> {
        let mut last = None;
        PROFILES.iter().filter_map(Phy::kind).filter(move |kind| last.replace(*kind) != Some(*kind))
    }

    /// The reason why no profile has this name.
    pub fn why_unnamed(name: &str) -> String {
        match vht::why_absent(name) {
            Some(why) => format!("no profile can be `{name}`: {why}"),
            None => format!("no profile is called `{name}`"),
        }
    }

    /// The same profile with the sizes of these rules.
    #[must_use]
    pub fn under(self, rules: MacRules) -> Phy {
        let data_overhead = match rules {
            MacRules::Standard if self.is_ht() => DATA_OVERHEAD + QOS_BYTES,
            MacRules::Standard => DATA_OVERHEAD,
            MacRules::Ns2 => NS2_DATA_OVERHEAD,
        };
        Phy { data_overhead, ..self }
    }

    /// Returns whether the profile is one of 802.11n, or of 802.11ac, whose stations follow the rules of 802.11n too.
    pub fn is_ht(&self) -> bool {
        self.data.is_ht()
    }

    /// Returns whether the profile is one of 802.11ac.
    pub fn is_vht(&self) -> bool {
        matches!(self.data.form, BitForm::Vht(_))
    }

    /// The same profile of 802.11n or 802.11ac with this guard interval in data frames.
    #[must_use]
    pub fn with_guard(self, guard: GuardInterval) -> Phy {
        match self.data.form {
            BitForm::Ht(ht) => Phy { data: Ht { guard, ..ht }.rate(), ..self },
            BitForm::Vht(vht) => Phy { data: Vht { guard, ..vht }.rate(), ..self },
            BitForm::Legacy | BitForm::NonHt => self,
        }
    }

    /// The same profile of OFDM in this band. 802.11ac has 5 GHz alone.
    #[must_use]
    pub fn in_band(self, band: Band) -> Phy {
        match (self.coding, band) {
            (Coding::Dsss { .. }, _) => self,
            _ if self.is_vht() => self,
            (_, Band::Ghz2) => Phy { coding: Coding::ErpOfdm, slot_ns: 20_000, sifs_ns: 10_000, ..self },
            (_, Band::Ghz5) => Phy { coding: Coding::Ofdm, slot_ns: 9_000, sifs_ns: 16_000, ..self },
        }
    }

    /// The names of all profiles.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PROFILES.iter().map(|phy| phy.name)
    }

    /// The possible rates of data, from the basic rate to the profile's own. Rates of 802.11n and 802.11ac keep the
    /// number of streams.
    pub fn rates(&self) -> impl DoubleEndedIterator<Item = Rate> + use<> {
        let (ht, vht) = match self.data.form {
            BitForm::Ht(ht) => (Some(ht.up_to_this()), None),
            BitForm::Vht(vht) => (None, Some(vht.up_to_this())),
            BitForm::Legacy | BitForm::NonHt => (None, None),
        };
        let legacy: &'static [Rate] = match self.coding {
            _ if self.is_ht() => &[],
            Coding::Dsss { .. } => &[DSSS_1, DSSS_2, CCK_5, CCK_11],
            Coding::ErpOfdm | Coding::Ofdm => &OFDM,
        };
        let (least, most, mask) = (self.basic.bits_per_second, self.data.bits_per_second, self.mask);
        let legacy =
            legacy.iter().copied().filter(move |rate| (least..=most).contains(&rate.bits_per_second));
        let all = legacy.chain(ht.into_iter().flatten()).chain(vht.into_iter().flatten());
        all.filter(move |rate| mask.has(*rate))
    }

    /// The rates among which a control chooses freely, by groups. Those of 802.11n and 802.11ac are grouped by width,
    /// guard interval and streams, none wider, shorter or finer than the profile's.
    pub fn rate_groups(&self) -> Vec<Vec<Rate>> {
        let mut groups = match self.data.form {
            BitForm::Ht(ht) => ht.groups(),
            BitForm::Vht(vht) => vht.groups(),
            BitForm::Legacy | BitForm::NonHt => vec![self.rates().collect()],
        };
        groups.iter_mut().for_each(|rates| rates.retain(|rate| self.mask.has(*rate)));
        groups.retain(|rates| !rates.is_empty());
        groups
    }

    /// The gap before a frame that answers no other, in nanoseconds: DIFS, or AIFS of best effort.
    pub fn difs_ns(&self) -> u64 {
        self.sifs_ns + u64::from(self.aifsn) * self.slot_ns
    }

    /// aRxPHYStartDelay: the preamble with its header, after which the PHY reports a frame to the MAC.
    pub fn start_ns(&self) -> u64 {
        match self.coding {
            Coding::Dsss { preamble_ns } => preamble_ns,
            Coding::ErpOfdm | Coding::Ofdm => OFDM_START_NS,
        }
    }

    /// CTSTimeout and AckTimeout (IEEE 802.11-2016 §10.3.2.7, §10.3.2.9): by then an answer has begun.
    pub fn answer_timeout_ns(&self) -> u64 {
        self.sifs_ns + self.slot_ns + self.start_ns()
    }

    /// SIFS, an ACK at the PHY's slowest mandatory rate (IEEE 802.11-2016 §10.3.2.3.7), DIFS. At 2.4 GHz that rate is
    /// 1 Mbit/s; profiles of OFDM without 802.11n stand for networks that leave it out.
    pub fn eifs_ns(&self) -> u64 {
        let ack_ns = if self.is_ht() && self.coding == Coding::ErpOfdm {
            LONG_NS + u64::from(ACK_BYTES) * 8_000
        } else {
            self.airtime_ns(ACK_BYTES, self.slowest)
        };
        self.sifs_ns + ack_ns + self.difs_ns()
    }

    /// The airtime of a frame of `bytes`.
    pub fn airtime_ns(&self, bytes: u32, rate: Rate) -> u64 {
        let bits = u64::from(bytes) * 8;
        let extension_ns = match self.coding {
            Coding::Dsss { preamble_ns } => {
                return preamble_ns
                    + (bits * 1_000_000_000 + rate.bits_per_second / 2) / rate.bits_per_second;
            }
            Coding::ErpOfdm => EXTENSION_NS,
            Coding::Ofdm => 0,
        };
        match rate.form {
            BitForm::Ht(ht) => return ht.airtime_ns(bytes) + extension_ns,
            BitForm::Vht(vht) => return vht.airtime_ns(bytes) + extension_ns,
            BitForm::Legacy | BitForm::NonHt => {}
        }
        let bits_per_symbol = rate.bits_per_second / 250_000;
        OFDM_START_NS + 4_000 * (16 + bits + 6).div_ceil(bits_per_symbol) + extension_ns
    }

    /// The airtime of a data frame around a packet of `bytes`, at the profile's own rate.
    pub fn data_ns(&self, bytes: u32) -> u64 {
        self.data_at_ns(bytes, self.data)
    }

    pub(crate) fn data_at_ns(&self, bytes: u32, rate: Rate) -> u64 {
        self.airtime_ns(self.psdu_of_one(bytes + self.data_overhead, rate), rate)
    }

    /// The bytes of a PSDU with one MPDU. Under 802.11ac that is an A-MPDU, too.
    pub(crate) fn psdu_of_one(&self, mpdu: u32, rate: Rate) -> u32 {
        if let BitForm::Vht(_) = rate.form { DELIMITER_BYTES + mpdu } else { mpdu }
    }

    /// The airtime of packets in data frames at a rate, as a driver expects it.
    pub fn estimate(&self, rate: Rate, is_aggregated: bool) -> AirtimeEstimate {
        const USUAL: u32 = 1_024;
        let frame_ns = self.airtime_ns(0, rate);
        let usual_ns = self.data_at_ns(USUAL, rate).saturating_sub(frame_ns);
        AirtimeEstimate { frame_ns, usual_ns, is_aggregated }
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

    #[test]
    fn a_name_without_mcs_is_the_fastest_of_its_kind() {
        let fastest = |kind| Phy::named(kind).map(|phy| phy.name);
        assert_eq!(fastest("ht20"), Some("ht20-mcs15"));
        assert_eq!(fastest("vht20-1ss"), Some("vht20-1ss-mcs8"));
        assert_eq!(fastest("vht80-2ss"), Some("vht80-2ss-mcs9"));
        assert_eq!((fastest("vht80"), fastest("dsss")), (None, None));
        let kinds: Vec<_> = Phy::kinds().collect();
        let all =
            ["ht20", "ht40", "vht20-1ss", "vht20-2ss", "vht40-1ss", "vht40-2ss", "vht80-1ss", "vht80-2ss"];
        assert_eq!(kinds, all);
    }
}
