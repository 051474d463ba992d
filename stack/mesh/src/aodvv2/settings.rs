//! AODVv2's constants, named as in the draft's section on timers, each a setting.

use std::time::Duration;

use crate::on_demand::Key;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A route is active for so long after it was used.
    pub active_interval: Duration,
    /// Unused for so long, a route is gone.
    pub max_idletime: Duration,
    /// How long numbers are remembered, and how long a node that has lost its own keeps quiet.
    pub max_seqnum_lifetime: Duration,
    pub max_blacklist_time: Duration,
    /// How long the same error is not told again.
    pub rerr_timeout: Duration,
    /// How long a request is remembered.
    pub rtemsg_entry_time: Duration,
    pub rreq_wait_time: Duration,
    pub rreq_holddown_time: Duration,
    pub rrep_ack_sent_timeout: Duration,
    pub discovery_attempts_max: u8,
    pub rrep_retries: u8,
    /// No way is longer.
    pub max_hopcount: u8,
    /// Requests that a node begins in a second; 0: no limit.
    pub rreq_ratelimit: u32,
    pub rerr_ratelimit: u32,
    /// Requests in a second that are passed on of any one node; 0: no limit.
    pub relay_ratelimit: u32,
    /// Messages in a second that are taken of any one neighbour, and a quarter of those that are taken of all; 0: no
    /// limit.
    pub message_ratelimit: u32,
    /// The same of what is said because of a neighbour's message: answers, and what is passed on.
    pub answer_ratelimit: u32,
    /// Whether next hops in use are asked for a sign of life, where no link layer tells of losses.
    pub hello: bool,
    pub hello_interval: Duration,
    pub allowed_hello_loss: u8,
    /// Packets that wait for routes, and for how long.
    pub buffer_packets: u32,
    pub buffer_time: Duration,
    /// The longest that a message passed on to everyone waits, so that neighbours do not answer at once (RFC 5148).
    pub jitter: Duration,
    pub sweep_interval: Duration,
    pub most_routes: u32,
    /// Whether simulated nodes sign their messages, by a key that all of them have. Daemons are given
    /// theirs in `Trust`.
    pub signed: bool,
    /// Whether messages carry what has arrived here (S1 of TCP-pgy), and are believed.
    pub ack_seq: bool,
    /// Without it nobody's `ack_seq` is believed but who has the same.
    pub key: Option<Key>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            active_interval: Duration::from_secs(5),
            max_idletime: Duration::from_secs(200),
            max_seqnum_lifetime: Duration::from_secs(300),
            max_blacklist_time: Duration::from_secs(200),
            rerr_timeout: Duration::from_secs(3),
            rtemsg_entry_time: Duration::from_secs(12),
            rreq_wait_time: Duration::from_secs(2),
            rreq_holddown_time: Duration::from_secs(10),
            rrep_ack_sent_timeout: Duration::from_secs(1),
            discovery_attempts_max: 3,
            rrep_retries: 2,
            max_hopcount: 20,
            rreq_ratelimit: 10,
            rerr_ratelimit: 10,
            relay_ratelimit: 20,
            message_ratelimit: 500,
            answer_ratelimit: 200,
            hello: false,
            hello_interval: Duration::from_secs(1),
            allowed_hello_loss: 2,
            buffer_packets: 64,
            buffer_time: Duration::from_secs(30),
            jitter: Duration::from_millis(10),
            sweep_interval: Duration::from_secs(1),
            most_routes: 16_384,
            signed: false,
            ack_seq: false,
            key: None,
        }
    }
}
