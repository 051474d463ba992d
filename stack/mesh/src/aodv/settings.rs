//! AODV's constants (RFC 3561 §10), each a setting, and two profiles of them.

use std::time::Duration;

use crate::constants::{
    ConstantForm, ConstantValues, MOST_PACKETS, MOST_ROUTES, OFF, ON, OnlySimulated, RuleSet, constants,
};
use crate::on_demand::Key;
use hopwise_core::narrow::as_u8;

constants! {
    /// Constants of AODV, named as in RFC 3561. Those that the RFC derives from others are derived unless they are set.
    Settings with rules;
    /// Lifetime of a route after its last use
    active_route_timeout: Duration = ConstantForm::time(1).is(3_000).ns2(10_000),
    /// Lifetime that a destination writes into its own RREPs
    my_route_timeout: Option<Duration> = ConstantForm::time(1).unset("2 * active_route_timeout").ns2(10_000),
    /// Largest number of hops between two nodes that timeouts and TTLs assume
    net_diameter: u8 = ConstantForm::count("hops", 1, 250).is(35).ns2(30),
    /// Estimated time that a packet takes for one hop
    node_traversal_time: Duration = ConstantForm::time(1).is(40).ns2(30),
    /// Number of retries of a route discovery across the network
    rreq_retries: u8 = ConstantForm::count("retries", 0, 10).is(2).ns2(3),
    /// Largest number of route requests that a node originates per second
    rreq_ratelimit: u32 = ConstantForm::per_second("requests").is(10).ns2(0).not_in_ns2(),
    /// Largest number of route errors that a node originates per second
    rerr_ratelimit: u32 = ConstantForm::per_second("errors").is(10).ns2(0).not_in_ns2(),
    /// Largest number of route requests of one originator that are forwarded per second
    relay_ratelimit: u32 = ConstantForm::per_second("requests").is(20).ns2(0),
    /// Largest number of messages per second that a node accepts from one neighbour. For all neighbours together the
    /// limit is four times this
    message_ratelimit: u32 = ConstantForm::per_second("messages").is(500).ns2(0).not_in_ns2(),
    /// Largest number of messages per second that a node sends in answer to one neighbour. For all neighbours together
    /// the limit is four times this
    answer_ratelimit: u32 = ConstantForm::per_second("messages").is(200).ns2(0).not_in_ns2(),
    /// TTL of the first request if the destination was never reached before. With rules: ns2 that request crosses the
    /// network at once
    ttl_start: u8 = ConstantForm::count("hops", 1, 250).is(1).ns2(5),
    /// Increase of the TTL at each retry of the expanding ring search
    ttl_increment: u8 = ConstantForm::count("hops", 1, 250).is(2),
    /// Largest TTL of the expanding ring search, after which the whole network is searched
    ttl_threshold: u8 = ConstantForm::count("hops", 0, 250).is(7),
    /// Hops added to the TTL when the timeout of an expanding ring search is computed
    timeout_buffer: u8 = ConstantForm::count("hops", 0, 255).is(2).not_in_ns2(),
    /// Local repair: the node in front of a broken link searches for the destination, and reports the route as lost
    /// only if it finds none
    local_repair: bool = ConstantForm::Switch.is(ON),
    /// Largest number of hops to a destination for which local repair is tried
    max_repair_ttl: Option<u8> = ConstantForm::count("hops", 0, 255)
        .unset("0.3 * net_diameter, rounded down")
        .not_in_ns2(),
    /// Nodes send hello messages, so that their neighbours notice broken links
    hello: bool = ConstantForm::Switch
        .is(OFF)
        .means("false in world sim, whose link layer reports losses, otherwise true")
        .not_in_ns2(),
    /// Time between two hello messages
    hello_interval: Duration = ConstantForm::time(1).is(1_000).not_in_ns2(),
    /// Number of hello messages, missed in a row, after which a link counts as broken
    allowed_hello_loss: u8 = ConstantForm::count("messages", 1, 250).is(2).not_in_ns2(),
    /// Flag `G` of a route request: a node that answers in place of the destination also sends the destination a route
    /// to the originator
    gratuitous: bool = ConstantForm::Switch.is(OFF),
    /// Flag `D` of a route request: only the destination may answer it
    destination_only: bool = ConstantForm::Switch.is(OFF),
    /// A node that loses a route requests another one at once, if its own packets used that route within
    /// `active_route_timeout`. Without this it does so with its next packet
    search_at_once: bool = ConstantForm::Switch.is(OFF),
    /// Neighbours whose data a node passes on over a route get an RERR about it too, so that errors reach the source of
    /// lost packets; only in world sim. Without this only neighbours that got an RREP for the route do
    rerr_to_source: bool = ConstantForm::Switch.is(OFF).only_simulated(OnlySimulated::Forwarding),
    /// A node that an RERR reaches drops the packets that it passes on and has queued for the destinations named there;
    /// only in world sim. With rules: ns2 it always drops all that it has queued for that neighbour
    rerr_discards: bool = ConstantForm::Switch.is(OFF).not_in_ns2().only_simulated(OnlySimulated::Forwarding),
    /// Flag `A` of an RREP: each RREP requires an RREP-ACK, so that one-way links are found
    rrep_ack: bool = ConstantForm::Switch.is(OFF).not_in_ns2(),
    /// Unicast routing messages are refused unless their TTL shows that a neighbour sent them, as in RFC 5082
    gtsm: bool = ConstantForm::Switch.is(ON).not_in_ns2(),
    /// Largest number of packets that wait for routes at a node
    buffer_packets: u32 = ConstantForm::count("packets", 1, MOST_PACKETS).is(64),
    /// Largest random delay of a broadcast message that is forwarded, as in RFC 5148
    jitter: Duration = ConstantForm::time(0).is(10),
    /// Hop limit of data packets; only in world sim
    data_hop_limit: u8 = ConstantForm::count("hops", 1, 255).is(64).ns2(30).only_simulated(OnlySimulated::HopLimit),
    /// Largest number of routes in the table of a node
    most_routes: u32 = ConstantForm::count("routes", 16, MOST_ROUTES).is(16_384).not_in_ns2(),
    /// Nodes sign their routing messages with a built-in key, not with `key`; only in world sim, with rules: rfc3561
    signed: bool = ConstantForm::Switch.is(OFF).only_simulated(OnlySimulated::Signed),
    /// A node's route requests and replies tell the node at the route's other end the RCV.NXT of their connections.
    /// Sender agent `pgy` uses it; in a scenario only in world sim
    ack_seq: bool = ConstantForm::Switch.is(OFF),
    /// With `ack_seq`, replies of the destination itself carry RCV.NXT too. Requests and gratuitous replies always do
    ack_seq_in_replies: bool = ConstantForm::Switch.is(ON),
    /// Secret text, the same at all nodes, to sign the sequence numbers that `ack_seq` adds
    key: Option<Key> = ConstantForm::Key.unset("none, and they are not signed"),
}

impl Settings {
    /// The RFC's values, which are the defaults.
    pub fn rfc3561() -> Settings {
        Settings::default()
    }

    /// The values of ns-2 2.35, and its rules.
    pub fn ns2() -> Settings {
        Settings::of(RuleSet::Ns2)
    }

    /// The defaults under these rules.
    pub fn of(rules: RuleSet) -> Settings {
        Settings::from(&ConstantValues::of(rules))
    }

    pub(crate) fn my_route_timeout(&self) -> Duration {
        self.my_route_timeout.unwrap_or(2 * self.active_route_timeout)
    }

    /// The time for which an invalid route is kept: K = 5 times the longest time that a neighbour may still believe it.
    pub fn delete_period(&self) -> Duration {
        let believed = if self.hello {
            self.active_route_timeout.max(self.hello_interval)
        } else {
            self.active_route_timeout
        };
        5 * believed
    }

    pub(crate) fn net_traversal_time(&self) -> Duration {
        2 * self.node_traversal_time * u32::from(self.net_diameter)
    }

    /// The time for which a route request is remembered, so that copies are recognised.
    pub(crate) fn path_discovery_time(&self) -> Duration {
        match self.rules {
            RuleSet::Standard => 2 * self.net_traversal_time(),
            RuleSet::Ns2 => Duration::from_secs(6),
        }
    }

    pub(crate) fn ring_traversal_time(&self, ttl: u8) -> Duration {
        2 * self.node_traversal_time * (u32::from(ttl) + u32::from(self.timeout_buffer))
    }

    /// The time to wait for an RREP-ACK.
    pub(crate) fn next_hop_wait(&self) -> Duration {
        self.node_traversal_time + Duration::from_millis(10)
    }

    /// The time for which requests of a neighbour behind a one-way link are ignored.
    pub(crate) fn blacklist_timeout(&self) -> Duration {
        u32::from(self.rreq_retries) * self.net_traversal_time()
    }

    pub(crate) fn max_repair_ttl(&self) -> u8 {
        self.max_repair_ttl.unwrap_or(as_u8(usize::from(self.net_diameter) * 3 / 10))
    }

    /// The time for which a neighbour may be silent.
    pub(crate) fn hello_life(&self) -> Duration {
        self.hello_interval * u32::from(self.allowed_hello_loss)
    }
}
