//! `routing:` of scenarios and of `hopwise route`: the protocol, its rules and every constant.

mod bounds;
mod dsr;
mod dymo;
mod gpsr;

use std::time::Duration;

use hopwise_mesh::aodv::{Key, Rules, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::located::{Document, Place, Refusal};
use crate::units::Time;
use bounds::{INSTANTLY, MOST_PACKETS, SHORTEST, check_numbers, check_times};

pub use dsr::DsrConfig;
pub use dymo::DymoConfig;
pub use gpsr::{GpsrConfig, PlanarName};

/// Routing protocol and its constants. The constants here are AODV's, named as in RFC 3561; their defaults
/// come from `rules`. Other protocols have sections of their own.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RoutingConfig {
    /// Routing protocol (default static).
    pub protocol: Protocol,
    /// Rule set of AODV, which also gives its defaults (default rfc3561).
    pub rules: RulesName,
    /// Lifetime of a route after its last use (default 3s; ns2: 10s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_route_timeout: Option<Time>,
    /// Lifetime of a route in the RREP of its destination (default: twice active_route_timeout; ns2: 10s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub my_route_timeout: Option<Time>,
    /// Time for which an invalid route is kept (default: five times active_route_timeout; not in ns2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_period: Option<Time>,
    /// Lifetime of a reverse route to the originator of a request (rules: ns2; default 6s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverse_route_life: Option<Time>,
    /// Time for which a request is remembered (default: twice the time to cross the network and back; ns2:
    /// 6s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_discovery_time: Option<Time>,
    /// Largest number of hops between two nodes (default 35; ns2: 30).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_diameter: Option<u8>,
    /// Estimated time for one hop (default 40ms; ns2: 30ms).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_traversal_time: Option<Time>,
    /// Number of retries of a route discovery across the network (default 2; ns2: 3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rreq_retries: Option<u8>,
    /// Route requests that a node originates per second; 0: no limit (default 10; not in ns2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rreq_ratelimit: Option<u32>,
    /// Route errors that a node originates per second; 0: no limit (default 10; not in ns2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerr_ratelimit: Option<u32>,
    /// Requests of any one node that are forwarded per second; 0: no limit (default 20; ns2: 0).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relay_ratelimit: Option<u32>,
    /// Messages of any one neighbour accepted per second; 0: no limit (default 500; not in ns2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_ratelimit: Option<u32>,
    /// Messages sent per second because of any one neighbour's messages; 0: no limit (default 200; not in
    /// ns2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_ratelimit: Option<u32>,
    /// TTL of the first request of a discovery (default 1; ns2: 5).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_start: Option<u8>,
    /// Increase of the TTL at each retry of the expanding ring search (default 2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_increment: Option<u8>,
    /// Largest TTL of the expanding ring search; then the whole network is searched (default 7).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_threshold: Option<u8>,
    /// Extra hops in the timeout of the expanding ring search (default 2; not in ns2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_buffer: Option<u8>,
    /// Time for which a destination that was not found is not searched again (rules: ns2; default 10s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest: Option<Time>,
    /// Time between two searches for expired routes (default 1s; ns2: 500ms).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweep_interval: Option<Time>,
    /// Repair of a broken route by the node next to the break (default true; not in ns2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_repair: Option<bool>,
    /// Hops added to the TTL of a local repair (default 2; not in ns2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_add_ttl: Option<u8>,
    /// Largest distance to the destination for a local repair, in hops (default: 0.3 net_diameter; not in
    /// ns2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_repair_ttl: Option<u8>,
    /// Hello messages (default: off in simulations, whose link layer reports losses, and on in daemons; not
    /// in ns2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hello: Option<bool>,
    /// Time between two hello messages (default 1s; not in ns2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hello_interval: Option<Time>,
    /// Hello messages that may be missed before a link counts as broken (default 2; not in ns2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_hello_loss: Option<u8>,
    /// Gratuitous RREP to the destination when another node answers, the G flag (default false).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gratuitous: Option<bool>,
    /// Only the destination may answer a request, the D flag (default false).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination_only: Option<bool>,
    /// Every RREP asks for an RREP-ACK, the A flag, so that one-way links are found (default false; not in
    /// ns2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rrep_ack: Option<bool>,
    /// Time to wait for an RREP-ACK (default: node_traversal_time and 10ms; not in ns2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_hop_wait: Option<Time>,
    /// Time for which a neighbour behind a one-way link is ignored (default: all retries of a discovery; not
    /// in ns2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blacklist_timeout: Option<Time>,
    /// Messages from more than one hop away are refused by their TTL (RFC 5082; default true; not in ns2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gtsm: Option<bool>,
    /// Packets that wait for routes at one node (default 64).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_packets: Option<u32>,
    /// Longest time that a packet waits for a route (default 30s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_time: Option<Time>,
    /// Time between packets that leave the buffer together (default 0s; ns2: 10ms).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_gap: Option<Time>,
    /// Largest random delay of a broadcast message that is forwarded (RFC 5148; default 10ms).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Time>,
    /// Hop limit of data packets (default 64; ns2: 30).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_hop_limit: Option<u8>,
    /// Largest number of routes in a table (default 16384; not in ns2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_routes: Option<u32>,
    /// Simulated nodes sign their messages with one common key (default false; not in ns2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed: Option<bool>,
    /// Messages carry what has arrived at their ends, for the sender agent `pgy` (default false).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_seq: Option<bool>,
    /// Any text, the same at all nodes, that signs what `ack_seq` adds to messages.
    #[serde(skip_serializing)]
    pub key: Option<String>,
    /// Constants of DSR (protocol: dsr).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dsr: Option<DsrConfig>,
    /// Constants of GPSR (protocol: gpsr).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpsr: Option<GpsrConfig>,
    /// Constants of AODVv2 (protocol: dymo).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dymo: Option<DymoConfig>,
}

/// Routing protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Shortest paths, computed once.
    #[default]
    Static,
    /// AODV (RFC 3561).
    Aodv,
    /// AODVv2 (draft-ietf-manet-aodvv2-16), formerly DYMO.
    Dymo,
    /// DSR (RFC 4728); only in simulations.
    Dsr,
    /// GPSR; only in simulations, because it needs the positions of all nodes.
    Gpsr,
}

impl Protocol {
    /// True if a key of the section has an effect under this protocol.
    pub fn takes(self, key: &str) -> bool {
        match (self, key) {
            (_, "protocol")
            | (Protocol::Dymo, "dymo")
            | (Protocol::Dsr, "dsr")
            | (Protocol::Gpsr, "gpsr") => true,
            (Protocol::Static | Protocol::Dymo | Protocol::Dsr | Protocol::Gpsr, _)
            | (Protocol::Aodv, "dymo" | "dsr" | "gpsr") => false,
            (Protocol::Aodv, _) => true,
        }
    }
}

/// Rule set of AODV.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RulesName {
    /// RFC 3561.
    #[default]
    Rfc3561,
    /// AODV as ns-2 has it.
    Ns2,
}

impl RulesName {
    /// True if AODV uses a key of the section under these rules.
    pub fn takes(self, key: &str) -> bool {
        const NS2_ALONE: [&str; 2] = ["reverse_route_life", "rest"];
        const RFC3561_ALONE: [&str; 17] = [
            "delete_period",
            "rreq_ratelimit",
            "rerr_ratelimit",
            "timeout_buffer",
            "local_repair",
            "local_add_ttl",
            "max_repair_ttl",
            "hello",
            "hello_interval",
            "allowed_hello_loss",
            "rrep_ack",
            "next_hop_wait",
            "blacklist_timeout",
            "most_routes",
            "gtsm",
            "message_ratelimit",
            "answer_ratelimit",
        ];
        match self {
            RulesName::Rfc3561 => !NS2_ALONE.contains(&key),
            RulesName::Ns2 => !RFC3561_ALONE.contains(&key),
        }
    }
}

const MOST_ROUTES: u32 = 1 << 20;

fn set<T>(own: Option<T>, value: &mut T) {
    if let Some(own) = own {
        *value = own;
    }
}

fn time(own: Option<Time>) -> Option<Duration> {
    own.map(|time| time.0)
}

/// A key signs what `ack_seq` adds to messages and nothing else.
fn check_key(
    document: &Document,
    place: &Place,
    (key, ack_seq): (Option<&str>, Option<bool>),
) -> Result<(), Box<Refusal>> {
    let Some(key) = key else { return Ok(()) };
    let place = place.key("key");
    if key.trim().is_empty() {
        return Err(document.refuse(&place, "the key is empty", "a text that others cannot guess"));
    }
    if ack_seq != Some(true) {
        let problem = "`key` changes nothing here";
        return Err(document.refuse_key(&place, problem, "ack_seq: true beside it, whose messages it signs"));
    }
    Ok(())
}

fn key_of(text: &str) -> Key {
    Key::new(Sha256::digest(text.as_bytes()).into())
}

impl RoutingConfig {
    /// The section with the defaults of the protocol filled in.
    pub fn in_force(&self) -> RoutingConfig {
        let mut config = self.clone();
        config.dymo = (self.protocol == Protocol::Dymo).then(|| self.dymo.clone().unwrap_or_default());
        config.dsr = (self.protocol == Protocol::Dsr).then(|| self.dsr.clone().unwrap_or_default());
        config.gpsr = (self.protocol == Protocol::Gpsr).then(|| self.gpsr.clone().unwrap_or_default());
        config
    }

    /// The constants in force; `place` is where the section stands.
    pub fn aodv(&self, document: &Document, place: &Place) -> Result<Settings, Box<Refusal>> {
        self.check(document, place)?;
        check_key(document, place, (self.key.as_deref(), self.ack_seq))?;
        if self.signed == Some(true) && self.rules == RulesName::Ns2 {
            let problem = "the rules of ns-2 have no signatures";
            return Err(document.refuse(&place.key("signed"), problem, "rules: rfc3561"));
        }
        let mut settings = Settings::of(match self.rules {
            RulesName::Rfc3561 => Rules::Rfc3561,
            RulesName::Ns2 => Rules::Ns2,
        });
        self.set_times(&mut settings);
        set(self.net_diameter, &mut settings.net_diameter);
        set(self.rreq_retries, &mut settings.rreq_retries);
        set(self.rreq_ratelimit, &mut settings.rreq_ratelimit);
        set(self.rerr_ratelimit, &mut settings.rerr_ratelimit);
        set(self.relay_ratelimit, &mut settings.relay_ratelimit);
        set(self.message_ratelimit, &mut settings.message_ratelimit);
        set(self.answer_ratelimit, &mut settings.answer_ratelimit);
        set(self.ttl_start, &mut settings.ttl_start);
        set(self.ttl_increment, &mut settings.ttl_increment);
        set(self.ttl_threshold, &mut settings.ttl_threshold);
        set(self.timeout_buffer, &mut settings.timeout_buffer);
        set(self.local_repair, &mut settings.local_repair);
        set(self.local_add_ttl, &mut settings.local_add_ttl);
        set(self.max_repair_ttl.map(Some), &mut settings.max_repair_ttl);
        set(self.hello, &mut settings.hello);
        set(self.allowed_hello_loss, &mut settings.allowed_hello_loss);
        set(self.gratuitous, &mut settings.gratuitous);
        set(self.destination_only, &mut settings.destination_only);
        set(self.rrep_ack, &mut settings.rrep_ack);
        set(self.gtsm, &mut settings.gtsm);
        set(self.buffer_packets, &mut settings.buffer_packets);
        set(self.data_hop_limit, &mut settings.data_hop_limit);
        set(self.most_routes, &mut settings.most_routes);
        set(self.signed, &mut settings.signed);
        set(self.ack_seq, &mut settings.ack_seq);
        settings.key = self.key.as_deref().map(key_of);
        Ok(settings)
    }

    fn set_times(&self, settings: &mut Settings) {
        set(time(self.active_route_timeout), &mut settings.active_route_timeout);
        set(time(self.my_route_timeout).map(Some), &mut settings.my_route_timeout);
        set(time(self.delete_period).map(Some), &mut settings.delete_period);
        set(time(self.reverse_route_life), &mut settings.reverse_route_life);
        set(time(self.path_discovery_time).map(Some), &mut settings.path_discovery_time);
        set(time(self.node_traversal_time), &mut settings.node_traversal_time);
        set(time(self.rest), &mut settings.rest);
        set(time(self.sweep_interval), &mut settings.sweep_interval);
        set(time(self.hello_interval), &mut settings.hello_interval);
        set(time(self.next_hop_wait).map(Some), &mut settings.next_hop_wait);
        set(time(self.blacklist_timeout).map(Some), &mut settings.blacklist_timeout);
        set(time(self.buffer_time), &mut settings.buffer_time);
        set(time(self.buffer_gap), &mut settings.buffer_gap);
        set(time(self.jitter), &mut settings.jitter);
    }

    fn check(&self, document: &Document, place: &Place) -> Result<(), Box<Refusal>> {
        let times = [
            ("active_route_timeout", self.active_route_timeout, SHORTEST),
            ("my_route_timeout", self.my_route_timeout, SHORTEST),
            ("delete_period", self.delete_period, SHORTEST),
            ("reverse_route_life", self.reverse_route_life, SHORTEST),
            ("path_discovery_time", self.path_discovery_time, SHORTEST),
            ("node_traversal_time", self.node_traversal_time, SHORTEST),
            ("rest", self.rest, INSTANTLY),
            ("sweep_interval", self.sweep_interval, SHORTEST),
            ("hello_interval", self.hello_interval, SHORTEST),
            ("next_hop_wait", self.next_hop_wait, SHORTEST),
            ("blacklist_timeout", self.blacklist_timeout, INSTANTLY),
            ("buffer_time", self.buffer_time, SHORTEST),
            ("buffer_gap", self.buffer_gap, INSTANTLY),
            ("jitter", self.jitter, INSTANTLY),
        ];
        check_times(document, place, times)?;
        let numbers = [
            ("net_diameter", self.net_diameter.map(u32::from), 1, 250),
            ("ttl_start", self.ttl_start.map(u32::from), 1, 250),
            ("ttl_increment", self.ttl_increment.map(u32::from), 1, 250),
            ("ttl_threshold", self.ttl_threshold.map(u32::from), 0, 250),
            ("rreq_retries", self.rreq_retries.map(u32::from), 0, 10),
            ("allowed_hello_loss", self.allowed_hello_loss.map(u32::from), 1, 250),
            ("data_hop_limit", self.data_hop_limit.map(u32::from), 1, 255),
            ("buffer_packets", self.buffer_packets, 1, MOST_PACKETS),
            ("most_routes", self.most_routes, 16, MOST_ROUTES),
        ];
        check_numbers(document, place, numbers)
    }
}
