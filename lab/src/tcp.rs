//! `tcp:` of nodes and scenarios, one block for both: a deployed block can be put on trial as it stands.

use std::ops::RangeInclusive;
use std::time::Duration;

use hopwise_agents::Profile;
use hopwise_core::tcp::{AckMerge, BufferLimits, KeepAlive, TcpConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::located::{Document, Refusal, YamlPath};
use crate::units::{Size, Time};
use crate::words::{Word, Words};

/// Payload of a segment of the profile `ns2`, unless `segment_bytes` gives another size.
const NS2_SEGMENT_BYTES: u16 = 1000;

const SEGMENT_BYTES: RangeInclusive<u64> = 64..=65_495;
const PATH_MTUS: RangeInclusive<u64> = 68..=1500;
const BUFFER_BYTES: RangeInclusive<u64> = 4 << 10..=1 << 30;
/// The bounds of times, in nanoseconds.
const TIMES: RangeInclusive<u64> = 1_000_000..=u64::MAX;
const HOPS: RangeInclusive<u64> = 1..=255;

/// TCP settings of a node, or of all nodes of a scenario: a profile, and keys that replace single settings of it.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tcp {
    /// Profile, which sets the defaults of the other TCP settings and of the agents' parameters (default modern).
    pub profile: Word<Profile>,
    /// Largest payload of a segment in bytes, 64 to 65495; a packet on the link may hold less (default: 1000 in a
    /// scenario and under profile ns2, otherwise as much as the link takes). The `segment_bytes` of a flow replaces it.
    pub segment_bytes: Option<u16>,
    /// Smallest path MTU in bytes, 68 to 1500, that an ICMP message can set over IPv4 (default 552). It has no effect
    /// in a scenario.
    pub least_path_mtu: Option<u16>,
    /// Selective acknowledgements (RFC 2018; default: true under profile modern, false under ns2).
    pub sack: Option<bool>,
    /// Timestamps option (RFC 7323; default: true under profile modern, false under ns2).
    pub timestamps: Option<bool>,
    /// Window scale option, without which a window has at most 65535 bytes (RFC 7323; default true).
    pub window_scale: Option<bool>,
    /// Explicit congestion notification (RFC 3168; default: true under profile modern, false under ns2).
    pub ecn: Option<bool>,
    /// Nagle's algorithm (RFC 9293; default: true under profile modern, false under ns2).
    pub nagle: Option<bool>,
    /// Largest amount of data that a connection keeps until it is acknowledged, 4KiB to 1GiB (default: 4MiB under
    /// profile modern, 4000 segments under ns2).
    pub send_buffer: Option<Size>,
    /// Largest amount of received data that waits for the program, 4KiB to 1GiB; it bounds the window (default: 6MiB
    /// under profile modern, 2000 segments under ns2).
    pub recv_buffer: Option<Size>,
    /// Lower bound of the retransmission timeout (RFC 6298; default 200ms).
    pub rto_min: Option<Time>,
    /// Idle time before the first keep-alive probe, 1ms or more (RFC 9293; default: no probes). More probes follow,
    /// with an eighth of this time between them. Nine unanswered probes end the connection.
    pub keep_alive: Option<Time>,
    /// Longest time that sent data may stay unacknowledged, 1ms or more; then the connection ends (RFC 9293; default
    /// 15min).
    pub user_timeout: Option<Time>,
    /// Treatment of an ACK that still waits for the link when the next one is due (default: `read` for a node whose
    /// links are all TUN devices, otherwise `off`). In a scenario ACKs wait only under `radio.when_full: hold`, while
    /// the queue is full.
    pub ack_merge: Option<Word<AckMerge>>,
    /// Number of hops to peers, 1 to 255, for agents that use it (default: counted from the hop limit of the peers'
    /// packets). The hops of known routes replace it in a scenario.
    pub hops: Option<u8>,
    /// Initial hop limit of the peers' packets, 1 to 255, from which hops are counted (default 64). It has no effect in
    /// a scenario.
    pub peers_hop_limit: Option<u8>,
}

impl Words for Profile {
    const NAME: &'static str = "TcpProfile";
    const ABOUT: &'static str = "Profile of TCP settings.";
    const ALL: &'static [(&'static str, Profile, &'static str)] = &[
        (
            "modern",
            Profile::Modern,
            "Current RFCs: SACK, RACK-TLP, PRR, ECN, timestamps, window scaling and Nagle's algorithm.",
        ),
        (
            "ns2",
            Profile::Ns2,
            "The TCP of ns-2, as papers of its time used it: no SACK, ECN, timestamps or RACK, and a fixed window.",
        ),
    ];
}

impl Words for AckMerge {
    const NAME: &'static str = "AckMerge";
    const ABOUT: &'static str = "Treatment of an ACK that still waits for the link when the next one is due.";
    const ALL: &'static [(&'static str, AckMerge, &'static str)] = &[
        ("off", AckMerge::Off, "Each ACK is sent."),
        (
            "read",
            AckMerge::Read,
            "The later ACK replaces the one that waits, if both acknowledge data in order.",
        ),
    ];
}

impl Tcp {
    /// Refuses values out of their range.
    pub fn check(&self, document: &Document, at: &YamlPath) -> Result<(), Box<Refusal>> {
        let number = |number: Option<u16>| number.map(u64::from);
        let hops = |hops: Option<u8>| hops.map(u64::from);
        let size = |size: Option<Size>| size.map(|size| size.0);
        let time = |time: Option<Time>| time.map(|time| time.nanos());
        let buffer = ("the buffer is out of bounds", "4KiB to 1GiB");
        let (short, far) = (("too short", "1ms or more"), ("no packet would arrive", "1 to 255"));
        for (key, value, range, (problem, accepted)) in [
            (
                "segment_bytes",
                number(self.segment_bytes),
                SEGMENT_BYTES,
                ("out of bounds", "64 to 65495 bytes"),
            ),
            (
                "least_path_mtu",
                number(self.least_path_mtu),
                PATH_MTUS,
                ("the path MTU is out of bounds", "68 to 1500 bytes"),
            ),
            ("send_buffer", size(self.send_buffer), BUFFER_BYTES, buffer),
            ("recv_buffer", size(self.recv_buffer), BUFFER_BYTES, buffer),
            ("keep_alive", time(self.keep_alive), TIMES, short),
            ("user_timeout", time(self.user_timeout), TIMES, short),
            ("hops", hops(self.hops), HOPS, far),
            ("peers_hop_limit", hops(self.peers_hop_limit), HOPS, far),
        ] {
            if value.is_some_and(|value| !range.contains(&value)) {
                return Err(document.refuse(&at.key(key), problem, accepted));
            }
        }
        Ok(())
    }

    /// The settings of a connection.
    pub fn config(&self) -> TcpConfig {
        let mut config = match self.profile.0 {
            Profile::Modern => TcpConfig::modern(),
            Profile::Ns2 => TcpConfig::ns2(self.segment_bytes.unwrap_or(NS2_SEGMENT_BYTES)),
        };
        set(&mut config.segment_bytes, self.segment_bytes);
        set(&mut config.least_path_mtu, self.least_path_mtu);
        set(&mut config.sack, self.sack);
        set(&mut config.timestamps, self.timestamps);
        set(&mut config.window_scale, self.window_scale);
        set(&mut config.ecn, self.ecn);
        set(&mut config.nagle, self.nagle);
        set(&mut config.rto.min, self.rto_min.map(|time| time.0));
        set(&mut config.user_timeout, self.user_timeout.map(|time| time.0));
        set(&mut config.ack_merge, self.ack_merge.map(|merge| merge.0));
        set(&mut config.hops.peers_hop_limit, self.peers_hop_limit);
        config.hops.configured = self.hops;
        limit(&mut config.send_buffer, self.send_buffer);
        limit(&mut config.recv_buffer, self.recv_buffer);
        config.keep_alive = self.keep_alive.map(|idle| {
            let interval = (idle.0 / 8).max(Duration::from_millis(1));
            KeepAlive { idle: idle.0, interval, ..KeepAlive::default() }
        });
        config
    }
}

fn set<T>(key: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *key = value;
    }
}

fn limit(buffer: &mut BufferLimits, size: Option<Size>) {
    if let Some(max) = size.and_then(|size| u32::try_from(size.0).ok()) {
        *buffer = BufferLimits { initial: buffer.initial.min(max), max };
    }
}
