//! `routing.dymo`: AODVv2's constants, named as in draft-ietf-manet-aodvv2-16 where it names them.

use hopwise_mesh::aodvv2::Settings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::{INSTANTLY, MOST_PACKETS, SHORTEST, check_numbers, check_times};
use super::{MOST_ROUTES, check_key, key_of};
use crate::located::{Document, Place, Refusal};
use crate::units::Time;

/// What is left out is as the draft has it.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DymoConfig {
    pub active_interval: Time,
    pub max_idletime: Time,
    pub max_seqnum_lifetime: Time,
    pub max_blacklist_time: Time,
    pub rerr_timeout: Time,
    pub rtemsg_entry_time: Time,
    pub rreq_wait_time: Time,
    pub rreq_holddown_time: Time,
    pub rrep_ack_sent_timeout: Time,
    pub discovery_attempts_max: u8,
    pub rrep_retries: u8,
    pub max_hopcount: u8,
    pub rreq_ratelimit: u32,
    pub rerr_ratelimit: u32,
    pub relay_ratelimit: u32,
    pub message_ratelimit: u32,
    pub answer_ratelimit: u32,
    /// Where it is not said: off in simulations, whose link layer tells of losses, and on in daemons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hello: Option<bool>,
    pub hello_interval: Time,
    pub allowed_hello_loss: u8,
    pub buffer_packets: u32,
    pub buffer_time: Time,
    pub jitter: Time,
    pub sweep_interval: Time,
    pub most_routes: u32,
    pub signed: bool,
    pub ack_seq: bool,
    /// Any text; all nodes have the same.
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
