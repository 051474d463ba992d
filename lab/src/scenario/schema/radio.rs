//! `radio:`, the radios of all nodes.

use hopwise_air::dcf::RateControl;
use hopwise_air::phy::{Band, GuardInterval, Phy};
use hopwise_mesh::WhenFull;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::queue::QueueKeys;
use crate::units::{Rate, Time};
use crate::words::{OrOff, Word, words};

/// 802.11 radio of every node.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::scenario) struct RadioConfig {
    /// Physical layer, timing and data rate (default dsss-2mbps). Profiles that end in `-short` have the short
    /// preamble. Control frames and broadcasts have 1 Mbit/s. With `-short` they have 2 Mbit/s, with OFDM 6 Mbit/s.
    /// OFDM is ERP-OFDM with slots of 20 µs. Profiles that begin with `ht` are those of 802.11n: the width of the
    /// channel in MHz, and the MCS. Those with `vht` are of 802.11ac: the width, the streams, and the MCS.
    /// Without the MCS it is the fastest: `vht80-2ss` is `vht80-2ss-mcs9`. Control frames of both go at 6
    /// Mbit/s where data is BPSK, at 12 where it is QPSK, else at 24.
    #[schemars(extend("enum" = Phy::names().chain(Phy::kinds()).collect::<Vec<_>>()))]
    pub(in crate::scenario) profile: String,
    /// Guard interval of data frames, for profiles of 802.11n and 802.11ac (default long).
    pub(in crate::scenario) guard_interval: Option<Word<GuardInterval>>,
    /// Band of the channel, for profiles of 802.11n (default 2.4ghz). Those of 802.11ac have 5 GHz alone.
    pub(in crate::scenario) band: Option<Word<Band>>,
    /// Largest number of packets for one receiver that leave in one aggregate (A-MPDU) and get a block ACK, for
    /// profiles of 802.11n and 802.11ac. off: each packet leaves in a frame of its own (default 64).
    #[schemars(extend("x-range" = "2 to 64", "x-unit" = "packets"))]
    pub(in crate::scenario) ampdu: Option<OrOff<u8>>,
    /// Bytes of the longest A-MSDU: packets for one receiver that share a MAC header, a number and a fate, for profiles
    /// of 802.11n and 802.11ac. Receivers that follow the standard announce 3839 or 7935. off: each packet has a
    /// header of its own, as in Linux unless the driver offers more (default off).
    #[schemars(extend("x-range" = "256 to 7935", "x-unit" = "bytes"))]
    pub(in crate::scenario) amsdu: Option<OrOff<u16>>,
    /// Aggregates may contain A-MSDUs, as in Linux where the driver supports it. Under 802.11n such an A-MSDU has at
    /// most 4065 bytes. Without it only `ampdu: off` leaves room for them (default false).
    pub(in crate::scenario) amsdu_in_ampdu: bool,
    /// Age at which a packet that an aggregate failed to deliver is given up. off: never (default 512ms).
    #[schemars(extend("x-range" = "1ms or more"))]
    pub(in crate::scenario) lifetime: Option<OrOff<Time>>,
    /// Time for which a receiver of aggregates holds a packet back while earlier ones are missing. Then it passes the
    /// packet on and drops what comes late, as Linux does. off: it waits until the sender gives them up (default
    /// 100ms).
    #[schemars(extend("x-range" = "1ms or more"))]
    pub(in crate::scenario) reorder_timeout: Option<OrOff<Time>>,
    /// Queue between the node and its radio (default: drop-tail of `queue_packets`).
    #[serde(skip_serializing_if = "QueueKeys::is_drop_tail")]
    pub(in crate::scenario) queue: QueueKeys,
    /// Largest number of packets in the interface queue, including those that the radio has to send (default 50). Under
    /// fq-codel only wires have it. World netns needs at least 3.
    #[schemars(extend("x-range" = "2 or more"))]
    pub(in crate::scenario) queue_packets: u32,
    /// RTS/CTS precedes each unicast IP packet of at least this size. 0: all packets, off: none (default 0).
    #[schemars(extend("x-range" = "0 to 65536", "x-unit" = "bytes"))]
    pub(in crate::scenario) rts_threshold: OrOff<u32>,
    /// A CTS to the sender itself goes before each data frame for one receiver that no RTS precedes, as near stations
    /// without 802.11n make Linux send it (default false).
    pub(in crate::scenario) cts_to_self: bool,
    /// Behaviour of a full interface queue (default drop).
    pub(in crate::scenario) when_full: Word<WhenFull>,
    /// Rate control of data frames (default fixed).
    pub(in crate::scenario) rate: Word<RateControl>,
    /// Rates of DSSS or OFDM that the rate control may choose (default: all that are no faster than the profile's).
    #[schemars(extend("x-range" = "1mbit to 54mbit"))]
    pub(in crate::scenario) rates: Option<Vec<Rate>>,
    /// Rates of 802.11n or 802.11ac that the rate control may choose, by their index (default: all that are no faster
    /// than the profile's).
    #[schemars(extend("x-range" = "0 to 15", "x-unit" = "no unit"))]
    pub(in crate::scenario) mcs: Option<Vec<u8>>,
    /// Nodes resolve the link addresses of neighbours by ARP on the air (default false: nodes know all link addresses).
    /// In worlds netns and hwsim they always do.
    pub(in crate::scenario) arp: bool,
}

impl Default for RadioConfig {
    fn default() -> RadioConfig {
        RadioConfig {
            profile: "dsss-2mbps".to_owned(),
            guard_interval: None,
            band: None,
            ampdu: None,
            amsdu: None,
            amsdu_in_ampdu: false,
            lifetime: None,
            reorder_timeout: None,
            queue: QueueKeys::default(),
            queue_packets: 50,
            rts_threshold: OrOff::On(0),
            cts_to_self: false,
            when_full: Word(WhenFull::Drop),
            rate: Word(RateControl::Fixed),
            rates: None,
            mcs: None,
            arp: false,
        }
    }
}

words! {
    /// Rate control of data frames.
    RateControl as "RateName" {
        /// The profile's data rate.
        "fixed" => Fixed,
        /// ARF: the profile's data rate or a lower one, chosen by the outcome of earlier frames.
        "arf" => Arf,
        /// Minstrel-HT of Linux: any rate of the profile's kind that is no faster, for each receiver by what came
        /// through lately. Other rates are tried now and then, and RTS precedes the later tries of a frame.
        "minstrel" => Minstrel,
    }
    /// Guard interval of data frames.
    GuardInterval as "GuardName" {
        /// 800 ns: a symbol takes 4 us.
        "long" => Long,
        /// 400 ns: a symbol takes 3.6 us.
        "short" => Short,
    }
    /// Band of the channel.
    Band as "BandName" {
        /// Slots of 20 us, as in every ad hoc network there, and a SIFS of 10 us.
        "2.4ghz" => Ghz2,
        /// Slots of 9 us, a SIFS of 16 us, and no signal extension.
        "5ghz" => Ghz5,
    }
    /// Behaviour of a full interface queue.
    WhenFull as "WhenFullName" {
        /// The queue drops the packet.
        "drop" => Drop,
        /// Packets of the node itself, TCP and UDP, wait until there is room. Forwarded packets are dropped. Only in
        /// world sim.
        "hold" => Hold,
    }
}
