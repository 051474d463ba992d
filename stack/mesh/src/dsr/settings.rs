//! DSR's constants (RFC 4728 §9), each a setting.

use std::time::Duration;

/// Named as in the RFC, where it names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How far a request goes that crosses the network.
    pub discovery_hop_limit: u8,
    /// The longest that a request passed on waits, so that neighbours do not send at once.
    pub broadcast_jitter: Duration,
    pub route_cache_timeout: Duration,
    /// Ways that are kept which were asked for, and which were only overheard.
    pub cache_asked: u32,
    pub cache_overheard: u32,
    pub send_buffer_timeout: Duration,
    pub send_buffer_packets: u32,
    /// Nodes whose requests are remembered, and how many of each.
    pub request_table_size: u32,
    pub request_table_ids: u32,
    /// Requests for one node before it is given up.
    pub max_request_rexmt: u8,
    /// Between two of them, doubled each time.
    pub request_period: Duration,
    pub max_request_period: Duration,
    /// Whether the first request asks neighbours alone, and how long their answers take.
    pub nonprop_request: bool,
    pub nonprop_request_timeout: Duration,
    /// Whether nodes on the way answer from what they know.
    pub reply_from_cache: bool,
    /// H: such an answer waits as many of it as its route has hops, and less than one more by chance.
    pub reply_delay: Duration,
    /// Whether nodes listen to what is not for them: routes, errors, and shortcuts.
    pub promiscuous: bool,
    /// How long one who told of a shortcut is silent about it.
    pub grat_reply_holdoff: Duration,
    pub max_salvage_count: u8,
    /// Whether the next request carries the last error (§3.4.5).
    pub spread_errors: bool,
    /// S1 of TCP-pgy: requests and replies tell what has arrived at their ends.
    pub ack_seq: bool,
    /// How long a neighbour's requests are not heard that did not take a reply.
    pub blacklist_timeout: Duration,
    /// Requests that a node begins in a second; 0: no limit but the period of each.
    pub rreq_ratelimit: u32,
    pub rerr_ratelimit: u32,
    /// Requests in a second that are passed on of any one node; 0: no limit.
    pub relay_ratelimit: u32,
    /// What packets of ours set out with.
    pub data_hop_limit: u8,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            discovery_hop_limit: 255,
            broadcast_jitter: Duration::from_millis(10),
            route_cache_timeout: Duration::from_secs(300),
            cache_asked: 30,
            cache_overheard: 64,
            send_buffer_timeout: Duration::from_secs(30),
            send_buffer_packets: 64,
            request_table_size: 64,
            request_table_ids: 16,
            max_request_rexmt: 16,
            request_period: Duration::from_millis(500),
            max_request_period: Duration::from_secs(10),
            nonprop_request: true,
            nonprop_request_timeout: Duration::from_millis(30),
            reply_from_cache: true,
            reply_delay: Duration::from_millis(1),
            promiscuous: true,
            grat_reply_holdoff: Duration::from_secs(1),
            max_salvage_count: 15,
            spread_errors: true,
            ack_seq: false,
            blacklist_timeout: Duration::from_secs(5),
            rreq_ratelimit: 10,
            rerr_ratelimit: 10,
            relay_ratelimit: 20,
            data_hop_limit: 64,
        }
    }
}
