//! AODV's constants (RFC 3561 §10), each a setting, and two profiles of them.

use std::time::Duration;

use crate::on_demand::Key;

/// Whose rules a node follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    #[default]
    Rfc3561,
    /// What ns-2 2.35 does, its defective local repair included.
    Ns2,
}

/// Named as in the RFC; what the RFC derives from others is derived unless it is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub rules: Rules,
    pub active_route_timeout: Duration,
    pub my_route_timeout: Option<Duration>,
    pub delete_period: Option<Duration>,
    /// How long a way back to who asked lives (`rules: ns2`; RFC 3561 §6.5 computes it).
    pub reverse_route_life: Duration,
    /// How long a request is remembered; twice the time to cross the network and back.
    pub path_discovery_time: Option<Duration>,
    pub net_diameter: u8,
    pub node_traversal_time: Duration,
    pub rreq_retries: u8,
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
    pub ttl_start: u8,
    pub ttl_increment: u8,
    pub ttl_threshold: u8,
    pub timeout_buffer: u8,
    /// How long a destination rests that was not found (`rules: ns2`).
    pub rest: Duration,
    /// Between two looks at the table.
    pub sweep_interval: Duration,
    pub local_repair: bool,
    pub local_add_ttl: u8,
    /// A link that breaks farther from the destination is not mended; .3 of the diameter.
    pub max_repair_ttl: Option<u8>,
    /// Whether neighbours say that they are there; where the link layer tells of losses they need not.
    pub hello: bool,
    pub hello_interval: Duration,
    pub allowed_hello_loss: u8,
    /// Whether the destination is told when a node on the way answered (G).
    pub gratuitous: bool,
    /// Whether only the destination may answer (D).
    pub destination_only: bool,
    /// Whether every RREP is to be acknowledged (A), so that links are found that work one way only.
    pub rrep_ack: bool,
    pub next_hop_wait: Option<Duration>,
    pub blacklist_timeout: Option<Duration>,
    /// Whether messages are refused that may come from beyond a neighbour (RFC 5082; `rules: rfc3561`).
    pub gtsm: bool,
    /// Packets that wait for routes, and for how long.
    pub buffer_packets: u32,
    pub buffer_time: Duration,
    /// Between packets of the buffer that leave at once.
    pub buffer_gap: Duration,
    /// The longest that a message passed on to everyone waits, so that neighbours do not answer at once (RFC 5148).
    pub jitter: Duration,
    /// What packets of ours set out with.
    pub data_hop_limit: u8,
    pub most_routes: u32,
    /// Whether simulated nodes sign their messages, by a key that all of them have (`rules: rfc3561`). Daemons get
    /// theirs in `Trust`.
    pub signed: bool,
    /// Whether messages carry what has arrived here (S1 of TCP-pgy), and are believed.
    pub ack_seq: bool,
    /// Without it nobody's `ack_seq` is believed but who has the same.
    pub key: Option<Key>,
}

impl Settings {
    pub fn rfc3561() -> Settings {
        Settings {
            rules: Rules::Rfc3561,
            active_route_timeout: Duration::from_secs(3),
            my_route_timeout: None,
            delete_period: None,
            reverse_route_life: Duration::from_secs(6),
            path_discovery_time: None,
            net_diameter: 35,
            node_traversal_time: Duration::from_millis(40),
            rreq_retries: 2,
            rreq_ratelimit: 10,
            rerr_ratelimit: 10,
            relay_ratelimit: 20,
            message_ratelimit: 500,
            answer_ratelimit: 200,
            ttl_start: 1,
            ttl_increment: 2,
            ttl_threshold: 7,
            timeout_buffer: 2,
            rest: Duration::ZERO,
            sweep_interval: Duration::from_secs(1),
            local_repair: true,
            local_add_ttl: 2,
            max_repair_ttl: None,
            hello: false,
            hello_interval: Duration::from_secs(1),
            allowed_hello_loss: 2,
            gratuitous: false,
            destination_only: false,
            rrep_ack: false,
            next_hop_wait: None,
            blacklist_timeout: None,
            gtsm: true,
            buffer_packets: 64,
            buffer_time: Duration::from_secs(30),
            buffer_gap: Duration::ZERO,
            jitter: Duration::from_millis(10),
            data_hop_limit: 64,
            most_routes: 16_384,
            signed: false,
            ack_seq: false,
            key: None,
        }
    }

    pub fn ns2() -> Settings {
        Settings {
            rules: Rules::Ns2,
            active_route_timeout: Duration::from_secs(10),
            my_route_timeout: Some(Duration::from_secs(10)),
            path_discovery_time: Some(Duration::from_secs(6)),
            net_diameter: 30,
            node_traversal_time: Duration::from_millis(30),
            rreq_retries: 3,
            rreq_ratelimit: 0,
            rerr_ratelimit: 0,
            relay_ratelimit: 0,
            message_ratelimit: 0,
            answer_ratelimit: 0,
            ttl_start: 5,
            rest: Duration::from_secs(10),
            sweep_interval: Duration::from_millis(500),
            buffer_gap: Duration::from_millis(10),
            data_hop_limit: 30,
            ..Settings::rfc3561()
        }
    }

    pub fn of(rules: Rules) -> Settings {
        match rules {
            Rules::Rfc3561 => Settings::rfc3561(),
            Rules::Ns2 => Settings::ns2(),
        }
    }

    pub fn my_route_timeout(&self) -> Duration {
        self.my_route_timeout.unwrap_or(2 * self.active_route_timeout)
    }

    /// K = 5 times what a neighbour may still believe.
    pub fn delete_period(&self) -> Duration {
        let believed = if self.hello {
            self.active_route_timeout.max(self.hello_interval)
        } else {
            self.active_route_timeout
        };
        self.delete_period.unwrap_or(5 * believed)
    }

    pub fn net_traversal_time(&self) -> Duration {
        2 * self.node_traversal_time * u32::from(self.net_diameter)
    }

    pub fn path_discovery_time(&self) -> Duration {
        self.path_discovery_time.unwrap_or(2 * self.net_traversal_time())
    }

    pub fn ring_traversal_time(&self, ttl: u8) -> Duration {
        2 * self.node_traversal_time * (u32::from(ttl) + u32::from(self.timeout_buffer))
    }

    pub fn next_hop_wait(&self) -> Duration {
        self.next_hop_wait.unwrap_or(self.node_traversal_time + Duration::from_millis(10))
    }

    pub fn blacklist_timeout(&self) -> Duration {
        self.blacklist_timeout.unwrap_or(u32::from(self.rreq_retries) * self.net_traversal_time())
    }

    pub fn max_repair_ttl(&self) -> u8 {
        self.max_repair_ttl.unwrap_or((u16::from(self.net_diameter) * 3 / 10) as u8)
    }

    /// How long a neighbour may be silent.
    pub fn hello_life(&self) -> Duration {
        self.hello_interval * u32::from(self.allowed_hello_loss)
    }
}
