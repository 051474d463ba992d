//! AODVv2's constants, named as in the draft's section on timers, each a setting.

use std::time::Duration;

use crate::constants::{Form, MOST_PACKETS, MOST_ROUTES, OFF, constants};
use crate::on_demand::Key;

constants! {
    /// Constants of AODVv2, with the names and defaults of draft-ietf-manet-aodvv2-16.
    Settings of "AODVv2";
    /// Time for which a route stays active after its last use
    active_interval: Duration = Form::time(1).is(5_000),
    /// Time without use after which a route becomes invalid
    max_idletime: Duration = Form::time(1).is(200_000),
    /// Time for which sequence numbers are remembered. A node that lost its own sends no requests or replies for this
    /// time
    max_seqnum_lifetime: Duration = Form::time(1).is(300_000),
    /// Time for which requests of a neighbour behind a one-way link are ignored
    max_blacklist_time: Duration = Form::time(0).is(200_000),
    /// Time for which the same route error is not repeated
    rerr_timeout: Duration = Form::time(0).is(3_000),
    /// Time for which a route request or reply is remembered, so that copies are recognised
    rtemsg_entry_time: Duration = Form::time(1).is(12_000),
    /// Time to wait for the reply to a route request
    rreq_wait_time: Duration = Form::time(1).is(2_000),
    /// Time after a failed route discovery before the next one for the same destination
    rreq_holddown_time: Duration = Form::time(0).is(10_000),
    /// Time to wait for an RREP_Ack
    rrep_ack_sent_timeout: Duration = Form::time(1).is(1_000),
    /// Number of route requests for a destination after which the packets for it are dropped
    discovery_attempts_max: u8 = Form::count("requests", 1, 10).is(3),
    /// Number of retries of an RREP that is not acknowledged
    rrep_retries: u8 = Form::count("retries", 0, 10).is(2),
    /// Largest number of hops of a route
    max_hopcount: u8 = Form::count("hops", 1, 250).is(20),
    /// Largest number of route requests that a node originates per second
    rreq_ratelimit: u32 = Form::per_second("requests").is(10),
    /// Largest number of route errors that a node originates per second
    rerr_ratelimit: u32 = Form::per_second("errors").is(10),
    /// Largest number of route requests of one originator that are forwarded per second
    relay_ratelimit: u32 = Form::per_second("requests").is(20),
    /// Largest number of messages per second that a node accepts from one neighbour. For all neighbours together the
    /// limit is four times this
    message_ratelimit: u32 = Form::per_second("messages").is(500),
    /// Largest number of messages per second that a node sends in answer to one neighbour. For all neighbours together
    /// the limit is four times this
    answer_ratelimit: u32 = Form::per_second("messages").is(200),
    /// Nodes ask the next hops of active routes for an RREP_Ack, so that broken links are found
    hello: bool = Form::Switch
        .is(OFF)
        .means("false in world sim, whose link layer reports losses, otherwise true"),
    /// Time between two probes of a next hop
    hello_interval: Duration = Form::time(1).is(1_000),
    /// Number of unanswered probes in a row after which a link counts as broken
    allowed_hello_loss: u8 = Form::count("probes", 1, 250).is(2),
    /// Largest number of packets that wait for routes at a node
    buffer_packets: u32 = Form::count("packets", 1, MOST_PACKETS).is(64),
    /// Longest time that a packet waits for a route
    buffer_time: Duration = Form::time(1).is(30_000),
    /// Largest random delay of a multicast message that is forwarded, as in RFC 5148
    jitter: Duration = Form::time(0).is(10),
    /// Time between two removals of expired routes
    sweep_interval: Duration = Form::time(1).is(1_000),
    /// Largest number of routes in the table of a node
    most_routes: u32 = Form::count("routes", 16, MOST_ROUTES).is(16_384),
    /// Nodes sign their routing messages with a built-in key, not with `key`; only in world sim
    signed: bool = Form::Switch.is(OFF),
    /// A node's route requests and replies tell the node at the route's other end the RCV.NXT of their connections.
    /// Sender agent `pgy` uses it; in a scenario only in world sim
    ack_seq: bool = Form::Switch.is(OFF),
    /// Secret text, the same at all nodes, to sign the sequence numbers that `ack_seq` adds
    key: Option<Key> = Form::Key.unset("none, and they are not signed"),
}
