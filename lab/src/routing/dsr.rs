//! `routing.dsr`: DSR's constants, named as in RFC 4728 where it names them.

use hopwise_mesh::dsr::Settings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::{INSTANTLY, MOST_PACKETS, SHORTEST, check_numbers, check_times};
use crate::located::{Document, Place, Refusal};
use crate::units::Time;

/// Constants of DSR, named and with defaults as in RFC 4728.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DsrConfig {
    /// Hop limit of a route request that crosses the network (default 255).
    pub discovery_hop_limit: u8,
    /// Largest random delay of a request that is forwarded (default 10ms).
    pub broadcast_jitter: Time,
    /// Lifetime of a route in the cache (default 300s).
    pub route_cache_timeout: Time,
    /// Routes in the cache that the node asked for (default 30).
    pub cache_asked: u32,
    /// Routes in the cache that were only overheard (default 64).
    pub cache_overheard: u32,
    /// Longest time that a packet waits for a route (default 30s).
    pub send_buffer_timeout: Time,
    /// Packets that wait for routes at one node (default 64).
    pub send_buffer_packets: u32,
    /// Nodes whose requests are remembered (default 64).
    pub request_table_size: u32,
    /// Requests of each node that are remembered (default 16).
    pub request_table_ids: u32,
    /// Requests for one destination before it is given up (default 16).
    pub max_request_rexmt: u8,
    /// Time between the first two requests for a destination, doubled after each (default 500ms).
    pub request_period: Time,
    /// Longest time between two requests for a destination (default 10s).
    pub max_request_period: Time,
    /// The first request asks only neighbours (default true).
    pub nonprop_request: bool,
    /// Time to wait for answers of neighbours (default 30ms).
    pub nonprop_request_timeout: Time,
    /// Nodes on the way may answer a request from their cache (default true).
    pub reply_from_cache: bool,
    /// Delay of an answer from the cache for each hop of its route, plus a random part (default 1ms).
    pub reply_delay: Time,
    /// Nodes read frames for other nodes, for routes, errors and shortcuts (default true).
    pub promiscuous: bool,
    /// Time for which the same shortcut is not reported again (default 1s).
    pub grat_reply_holdoff: Time,
    /// Number of times that a packet may be salvaged (default 15).
    pub max_salvage_count: u8,
    /// The next request carries the last route error (RFC 4728, section 3.4.5; default true).
    pub spread_errors: bool,
    /// Requests and replies carry what has arrived at their ends, for the sender agent `pgy` (default false).
    pub ack_seq: bool,
    /// Time for which requests of a neighbour behind a one-way link are ignored (default 5s).
    pub blacklist_timeout: Time,
    /// Route requests that a node originates per second; 0: no limit (default 10).
    pub rreq_ratelimit: u32,
    /// Route errors that a node originates per second; 0: no limit (default 10).
    pub rerr_ratelimit: u32,
    /// Requests of any one node that are forwarded per second; 0: no limit (default 20).
    pub relay_ratelimit: u32,
    /// Hop limit of data packets (default 64).
    pub data_hop_limit: u8,
}

impl Default for DsrConfig {
    fn default() -> DsrConfig {
        let settings = Settings::default();
        DsrConfig {
            discovery_hop_limit: settings.discovery_hop_limit,
            broadcast_jitter: Time(settings.broadcast_jitter),
            route_cache_timeout: Time(settings.route_cache_timeout),
            cache_asked: settings.cache_asked,
            cache_overheard: settings.cache_overheard,
            send_buffer_timeout: Time(settings.send_buffer_timeout),
            send_buffer_packets: settings.send_buffer_packets,
            request_table_size: settings.request_table_size,
            request_table_ids: settings.request_table_ids,
            max_request_rexmt: settings.max_request_rexmt,
            request_period: Time(settings.request_period),
            max_request_period: Time(settings.max_request_period),
            nonprop_request: settings.nonprop_request,
            nonprop_request_timeout: Time(settings.nonprop_request_timeout),
            reply_from_cache: settings.reply_from_cache,
            reply_delay: Time(settings.reply_delay),
            promiscuous: settings.promiscuous,
            grat_reply_holdoff: Time(settings.grat_reply_holdoff),
            max_salvage_count: settings.max_salvage_count,
            spread_errors: settings.spread_errors,
            ack_seq: settings.ack_seq,
            blacklist_timeout: Time(settings.blacklist_timeout),
            rreq_ratelimit: settings.rreq_ratelimit,
            rerr_ratelimit: settings.rerr_ratelimit,
            relay_ratelimit: settings.relay_ratelimit,
            data_hop_limit: settings.data_hop_limit,
        }
    }
}

impl DsrConfig {
    /// The constants in force; `place` is where the section stands.
    pub fn settings(&self, document: &Document, place: &Place) -> Result<Settings, Box<Refusal>> {
        self.check(document, place)?;
        Ok(Settings {
            discovery_hop_limit: self.discovery_hop_limit,
            broadcast_jitter: self.broadcast_jitter.0,
            route_cache_timeout: self.route_cache_timeout.0,
            cache_asked: self.cache_asked,
            cache_overheard: self.cache_overheard,
            send_buffer_timeout: self.send_buffer_timeout.0,
            send_buffer_packets: self.send_buffer_packets,
            request_table_size: self.request_table_size,
            request_table_ids: self.request_table_ids,
            max_request_rexmt: self.max_request_rexmt,
            request_period: self.request_period.0,
            max_request_period: self.max_request_period.0,
            nonprop_request: self.nonprop_request,
            nonprop_request_timeout: self.nonprop_request_timeout.0,
            reply_from_cache: self.reply_from_cache,
            reply_delay: self.reply_delay.0,
            promiscuous: self.promiscuous,
            grat_reply_holdoff: self.grat_reply_holdoff.0,
            max_salvage_count: self.max_salvage_count,
            spread_errors: self.spread_errors,
            ack_seq: self.ack_seq,
            blacklist_timeout: self.blacklist_timeout.0,
            rreq_ratelimit: self.rreq_ratelimit,
            rerr_ratelimit: self.rerr_ratelimit,
            relay_ratelimit: self.relay_ratelimit,
            data_hop_limit: self.data_hop_limit,
        })
    }

    fn check(&self, document: &Document, place: &Place) -> Result<(), Box<Refusal>> {
        let times = [
            ("broadcast_jitter", self.broadcast_jitter, INSTANTLY),
            ("route_cache_timeout", self.route_cache_timeout, SHORTEST),
            ("send_buffer_timeout", self.send_buffer_timeout, SHORTEST),
            ("request_period", self.request_period, SHORTEST),
            ("max_request_period", self.max_request_period, SHORTEST),
            ("nonprop_request_timeout", self.nonprop_request_timeout, SHORTEST),
            ("reply_delay", self.reply_delay, INSTANTLY),
            ("grat_reply_holdoff", self.grat_reply_holdoff, INSTANTLY),
            ("blacklist_timeout", self.blacklist_timeout, INSTANTLY),
        ];
        check_times(document, place, times.map(|(key, time, least)| (key, Some(time), least)))?;
        let numbers = [
            ("discovery_hop_limit", self.discovery_hop_limit.into(), 1, 255),
            ("cache_asked", self.cache_asked, 1, MOST_PACKETS),
            ("cache_overheard", self.cache_overheard, 0, MOST_PACKETS),
            ("send_buffer_packets", self.send_buffer_packets, 1, MOST_PACKETS),
            ("request_table_size", self.request_table_size, 1, MOST_PACKETS),
            ("request_table_ids", self.request_table_ids, 1, MOST_PACKETS),
            ("max_request_rexmt", self.max_request_rexmt.into(), 0, 250),
            ("max_salvage_count", self.max_salvage_count.into(), 0, 15),
            ("data_hop_limit", self.data_hop_limit.into(), 1, 255),
        ];
        check_numbers(document, place, numbers.map(|(key, n, least, most)| (key, Some(n), least, most)))
    }
}
