//! `routing.dymo`: AODVv2's constants, named as in draft-ietf-manet-aodvv2-16 where it names them.

use hopwise_mesh::aodvv2::Settings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::{INSTANTLY, MOST_PACKETS, SHORTEST, check_numbers, check_times};
use super::{MOST_ROUTES, check_key, key_of};
use crate::located::{Document, Place, Refusal};
use crate::units::Time;

/// Constants of AODVv2, named and with defaults as in draft-ietf-manet-aodvv2-16.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DymoConfig {
    /// Time after its last use for which a route is active (default 5s).
    pub active_interval: Time,
    /// Time without use after which an idle route expires (default 200s).
    pub max_idletime: Time,
    /// Time for which sequence numbers are remembered, and for which a node that lost its own stays silent
    /// (default 300s).
    pub max_seqnum_lifetime: Time,
    /// Time for which a neighbour behind a one-way link is ignored (default 200s).
    pub max_blacklist_time: Time,
    /// Time for which the same route error is not repeated (default 3s).
    pub rerr_timeout: Time,
    /// Time for which a route message is remembered (default 12s).
    pub rtemsg_entry_time: Time,
    /// Time to wait for the answer to a request (default 2s).
    pub rreq_wait_time: Time,
    /// Time for which a destination that was not found is not searched again (default 10s).
    pub rreq_holddown_time: Time,
    /// Time to wait for an RREP_Ack (default 1s).
    pub rrep_ack_sent_timeout: Time,
    /// Requests for one destination before it is given up (default 3).
    pub discovery_attempts_max: u8,
    /// Retries of an RREP that is not acknowledged (default 2).
    pub rrep_retries: u8,
    /// Largest number of hops of a route (default 20).
    pub max_hopcount: u8,
    /// Route requests that a node originates per second; 0: no limit (default 10).
    pub rreq_ratelimit: u32,
    /// Route errors that a node originates per second; 0: no limit (default 10).
    pub rerr_ratelimit: u32,
    /// Requests of any one node that are forwarded per second; 0: no limit (default 20).
    pub relay_ratelimit: u32,
    /// Messages of any one neighbour accepted per second; 0: no limit (default 500).
    pub message_ratelimit: u32,
    /// Messages sent per second because of any one neighbour's messages; 0: no limit (default 200).
    pub answer_ratelimit: u32,
    /// Probes of next hops in use (default: off in simulations, whose link layer reports losses, and on in
    /// daemons).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hello: Option<bool>,
    /// Time between two probes of a next hop (default 1s).
    pub hello_interval: Time,
    /// Probes without an answer before a link counts as broken (default 2).
    pub allowed_hello_loss: u8,
    /// Packets that wait for routes at one node (default 64).
    pub buffer_packets: u32,
    /// Longest time that a packet waits for a route (default 30s).
    pub buffer_time: Time,
    /// Largest random delay of a multicast message that is forwarded (RFC 5148; default 10ms).
    pub jitter: Time,
    /// Time between two searches for expired routes (default 1s).
    pub sweep_interval: Time,
    /// Largest number of routes in a table (default 16384).
    pub most_routes: u32,
    /// Simulated nodes sign their messages with one common key (default false).
    pub signed: bool,
    /// Messages carry what has arrived at their ends, for the sender agent `pgy` (default false).
    pub ack_seq: bool,
    /// Any text, the same at all nodes, that signs what `ack_seq` adds to messages.
    #[serde(skip_serializing)]
    pub key: Option<String>,
}

impl Default for DymoConfig {
    fn default() -> DymoConfig {
        let settings = Settings::default();
        DymoConfig {
            active_interval: Time(settings.active_interval),
            max_idletime: Time(settings.max_idletime),
            max_seqnum_lifetime: Time(settings.max_seqnum_lifetime),
            max_blacklist_time: Time(settings.max_blacklist_time),
            rerr_timeout: Time(settings.rerr_timeout),
            rtemsg_entry_time: Time(settings.rtemsg_entry_time),
            rreq_wait_time: Time(settings.rreq_wait_time),
            rreq_holddown_time: Time(settings.rreq_holddown_time),
            rrep_ack_sent_timeout: Time(settings.rrep_ack_sent_timeout),
            discovery_attempts_max: settings.discovery_attempts_max,
            rrep_retries: settings.rrep_retries,
            max_hopcount: settings.max_hopcount,
            rreq_ratelimit: settings.rreq_ratelimit,
            rerr_ratelimit: settings.rerr_ratelimit,
            relay_ratelimit: settings.relay_ratelimit,
            message_ratelimit: settings.message_ratelimit,
            answer_ratelimit: settings.answer_ratelimit,
            hello: None,
            hello_interval: Time(settings.hello_interval),
            allowed_hello_loss: settings.allowed_hello_loss,
            buffer_packets: settings.buffer_packets,
            buffer_time: Time(settings.buffer_time),
            jitter: Time(settings.jitter),
            sweep_interval: Time(settings.sweep_interval),
            most_routes: settings.most_routes,
            signed: settings.signed,
            ack_seq: settings.ack_seq,
            key: None,
        }
    }
}

impl DymoConfig {
    /// The constants in force; `place` is where the section stands.
    pub fn settings(&self, document: &Document, place: &Place) -> Result<Settings, Box<Refusal>> {
        self.check(document, place)?;
        check_key(document, place, (self.key.as_deref(), Some(self.ack_seq)))?;
        Ok(Settings {
            active_interval: self.active_interval.0,
            max_idletime: self.max_idletime.0,
            max_seqnum_lifetime: self.max_seqnum_lifetime.0,
            max_blacklist_time: self.max_blacklist_time.0,
            rerr_timeout: self.rerr_timeout.0,
            rtemsg_entry_time: self.rtemsg_entry_time.0,
            rreq_wait_time: self.rreq_wait_time.0,
            rreq_holddown_time: self.rreq_holddown_time.0,
            rrep_ack_sent_timeout: self.rrep_ack_sent_timeout.0,
            discovery_attempts_max: self.discovery_attempts_max,
            rrep_retries: self.rrep_retries,
            max_hopcount: self.max_hopcount,
            rreq_ratelimit: self.rreq_ratelimit,
            rerr_ratelimit: self.rerr_ratelimit,
            relay_ratelimit: self.relay_ratelimit,
            message_ratelimit: self.message_ratelimit,
            answer_ratelimit: self.answer_ratelimit,
            hello: self.hello.unwrap_or(false),
            hello_interval: self.hello_interval.0,
            allowed_hello_loss: self.allowed_hello_loss,
            buffer_packets: self.buffer_packets,
            buffer_time: self.buffer_time.0,
            jitter: self.jitter.0,
            sweep_interval: self.sweep_interval.0,
            most_routes: self.most_routes,
            signed: self.signed,
            ack_seq: self.ack_seq,
            key: self.key.as_deref().map(key_of),
        })
    }

    fn check(&self, document: &Document, place: &Place) -> Result<(), Box<Refusal>> {
        let times = [
            ("active_interval", self.active_interval, SHORTEST),
            ("max_idletime", self.max_idletime, SHORTEST),
            ("max_seqnum_lifetime", self.max_seqnum_lifetime, SHORTEST),
            ("max_blacklist_time", self.max_blacklist_time, INSTANTLY),
            ("rerr_timeout", self.rerr_timeout, INSTANTLY),
            ("rtemsg_entry_time", self.rtemsg_entry_time, SHORTEST),
            ("rreq_wait_time", self.rreq_wait_time, SHORTEST),
            ("rreq_holddown_time", self.rreq_holddown_time, INSTANTLY),
            ("rrep_ack_sent_timeout", self.rrep_ack_sent_timeout, SHORTEST),
            ("hello_interval", self.hello_interval, SHORTEST),
            ("buffer_time", self.buffer_time, SHORTEST),
            ("jitter", self.jitter, INSTANTLY),
            ("sweep_interval", self.sweep_interval, SHORTEST),
        ];
        check_times(document, place, times.map(|(key, time, least)| (key, Some(time), least)))?;
        let numbers = [
            ("discovery_attempts_max", self.discovery_attempts_max.into(), 1, 10),
            ("rrep_retries", self.rrep_retries.into(), 0, 10),
            ("max_hopcount", self.max_hopcount.into(), 1, 250),
            ("allowed_hello_loss", self.allowed_hello_loss.into(), 1, 250),
            ("buffer_packets", self.buffer_packets, 1, MOST_PACKETS),
            ("most_routes", self.most_routes, 16, MOST_ROUTES),
        ];
        check_numbers(document, place, numbers.map(|(key, n, least, most)| (key, Some(n), least, most)))
    }
}
