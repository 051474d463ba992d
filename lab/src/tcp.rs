//! `tcp:` of nodes and scenarios, one block for both: a deployed block can be put on trial as it stands.

use std::time::Duration;

use hopwise_agents::Profile;
use hopwise_core::tcp::{AckMerge, BufferLimits, KeepAlive, TcpConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Size, Time};
use crate::words::{Word, words};

/// Payload of a segment of the profile `ns2`, unless `segment_bytes` gives another size.
const NS2_SEGMENT_BYTES: u16 = 1000;

/// Sizes of buffers.
const BUFFERS: &str = "4KiB to 1GiB";

/// TCP settings of a node, or of all nodes of a scenario: a profile, and keys that replace single settings of it.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tcp {
    /// Profile, which sets the defaults of the other TCP settings and of the agents' parameters (default modern).
    pub profile: Word<Profile>,
    /// Largest payload of a segment (default: 1000 in a scenario and under profile ns2, otherwise as much as the link
    /// takes). The link's MTU, less headers and options, may allow less. The `segment_bytes` of a flow replaces it.
    #[schemars(extend("x-range" = "64 to 65495"))]
    pub segment_bytes: Option<u16>,
    /// Smallest path MTU that an ICMP message can set over IPv4 (default 552). It has no effect in a scenario.
    #[schemars(extend("x-range" = "68 to 1500"))]
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
    /// Largest amount of data that a connection keeps until it is acknowledged (default: 4MiB under profile modern,
    /// 4000 segments under ns2).
    #[schemars(extend("x-range" = BUFFERS))]
    pub send_buffer: Option<Size>,
    /// Largest amount of received data that waits for the program; it bounds the receive window (default: 6MiB under
    /// profile modern, 2000 segments under ns2).
    #[schemars(extend("x-range" = BUFFERS))]
    pub recv_buffer: Option<Size>,
    /// Lower bound of the retransmission timeout (default 200ms; RFC 6298 has 1s). A sender agent may change it.
    pub rto_min: Option<Time>,
    /// Idle time before the first keep-alive probe (RFC 9293; default: no probes). More probes follow, with an eighth
    /// of this time between them. Nine unanswered probes end the connection.
    #[schemars(extend("x-range" = "1ms or more"))]
    pub keep_alive: Option<Time>,
    /// Longest time that sent data may stay unacknowledged; then the connection ends (RFC 9293; default 15min).
    #[schemars(extend("x-range" = "1ms or more"))]
    pub user_timeout: Option<Time>,
    /// Treatment of an ACK that still waits for the link when the next one is due (default: `read` for a node whose
    /// links are all TUN devices, otherwise `off`, also in a scenario). In a scenario ACKs wait only under
    /// `radio.when_full: hold`, while the queue is full.
    pub ack_merge: Option<Word<AckMerge>>,
    /// Number of hops to peers, for agents that use it (default: counted from the hop limit of the peers' packets). In
    /// world sim the length of a known route replaces it.
    #[schemars(extend("x-range" = "1 to 255", "x-unit" = "hops"))]
    pub hops: Option<u8>,
    /// Initial hop limit of the peers' packets, from which hops are counted (default 64). It has no effect in a
    /// scenario.
    #[schemars(extend("x-range" = "1 to 255", "x-unit" = "hops"))]
    pub peers_hop_limit: Option<u8>,
}

words! {
    /// Profile of TCP settings.
    Profile as "TcpProfile" {
        /// Current RFCs: SACK, RACK-TLP, PRR, ECN, timestamps, window scaling and Nagle's algorithm.
        "modern" => Modern,
        /// The TCP of ns-2 in papers of its time. Its window is fixed. It has no SACK, RACK, ECN, timestamps or Nagle's
        /// algorithm.
        "ns2" => Ns2,
    }
    /// Treatment of an ACK that still waits for the link when the next one is due.
    AckMerge as "AckMerge" {
        /// Each ACK for data in order is sent, except one that a FIN or a waiting SACK makes redundant.
        "off" => Off,
        /// The later ACK replaces the one that waits, if both acknowledge data in order.
        "read" => Read,
    }
}

impl Tcp {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::keys;

    /// Keys whose default is no value of a file: it depends on the link, or is none. The profile sets all other values.
    const WITHOUT_VALUE: [&str; 5] = ["profile", "segment_bytes", "keep_alive", "ack_merge", "hops"];

    /// The default in these words under each profile, as a file gives it.
    fn values(words: &str) -> [(&str, String); 2] {
        let (modern, ns2) = words.split_once(" under profile modern, ").unwrap_or((words, words));
        [("modern", modern), ("ns2", ns2.trim_end_matches(" under ns2"))].map(|(profile, value)| {
            let segments =
                value.strip_suffix(" segments").map(|count| count.parse::<u32>().expect("a count"));
            let bytes = segments.map(|count| format!("{}B", count * u32::from(NS2_SEGMENT_BYTES)));
            (profile, bytes.unwrap_or_else(|| value.to_owned()))
        })
    }

    fn config(text: &str) -> TcpConfig {
        serde_yaml::from_str::<Tcp>(text).unwrap_or_else(|error| panic!("{text}: {error}")).config()
    }

    #[test]
    fn the_defaults_that_the_schema_tells_are_those_of_the_profiles() {
        let schema = serde_json::to_value(schemars::schema_for!(Tcp)).expect("JSON");
        let keys = keys(&schema);
        let with_value = keys.iter().filter(|key| !WITHOUT_VALUE.contains(&key.path.as_str()));
        let mut compared = 0;
        for key in with_value {
            for (profile, value) in values(key.default.as_deref().expect("the schema tells it")) {
                let without = config(&format!("profile: {profile}"));
                let with = |value: &str| config(&format!("profile: {profile}\n{}: {value}", key.path));
                assert_eq!(with(&value), without, "{profile}: {} is not {value}", key.path);
                let other = match value.as_str() {
                    "true" => "false".to_owned(),
                    "false" => "true".to_owned(),
                    number => format!("1{number}"),
                };
                assert_ne!(with(&other), without, "{profile}: {} has no effect", key.path);
                compared += 1;
            }
        }
        assert_eq!(compared, 2 * (keys.len() - WITHOUT_VALUE.len()));
    }
}
