//! DSR's constants (RFC 4728 §9), each a setting.

use std::time::Duration;

use crate::constants::{Form, MOST_PACKETS, OFF, ON, constants};

constants! {
    /// Constants of DSR, with the names and defaults of RFC 4728.
    Settings of "DSR";
    /// Hop limit of a route request that crosses the network
    discovery_hop_limit: u8 = Form::count("hops", 1, 255).is(255),
    /// Largest random delay before a route request is forwarded
    broadcast_jitter: Duration = Form::time(0).is(10),
    /// Lifetime of a route in the cache
    route_cache_timeout: Duration = Form::time(1).is(300_000),
    /// Largest number of cached routes that the node itself has requested or used
    cache_asked: u32 = Form::count("routes", 1, MOST_PACKETS).is(30),
    /// Largest number of cached routes that the node has only overheard
    cache_overheard: u32 = Form::count("routes", 0, MOST_PACKETS).is(64),
    /// Longest time that a packet waits for a route
    send_buffer_timeout: Duration = Form::time(1).is(30_000),
    /// Largest number of packets that wait for routes at a node
    send_buffer_packets: u32 = Form::count("packets", 1, MOST_PACKETS).is(64),
    /// Largest number of nodes whose route requests are remembered
    request_table_size: u32 = Form::count("nodes", 1, MOST_PACKETS).is(64),
    /// Largest number of remembered route requests of each node
    request_table_ids: u32 = Form::count("requests", 1, MOST_PACKETS).is(16),
    /// Number of times that the request for a destination is repeated before the search is given up
    max_request_rexmt: u8 = Form::count("repeats", 0, 250).is(16),
    /// Time between the first two network-wide requests for a destination. It doubles with each further request
    request_period: Duration = Form::time(1).is(500),
    /// Longest time between two network-wide requests for a destination
    max_request_period: Duration = Form::time(1).is(10_000),
    /// The first request for a destination goes to neighbours only
    nonprop_request: bool = Form::Switch.is(ON),
    /// Time to wait for replies of neighbours before the request goes to the whole network
    nonprop_request_timeout: Duration = Form::time(1).is(30),
    /// Nodes on the way may answer a request from their cache
    reply_from_cache: bool = Form::Switch.is(ON),
    /// A reply from the cache waits H * (h - 1 + r), as in RFC 4728: H is this time, h the hops, r random from 0 to 1
    reply_delay: Duration = Form::time(0).is(1),
    /// Nodes also read frames for other nodes, and learn routes, errors and shortcuts from them
    promiscuous: bool = Form::Switch.is(ON),
    /// Shortest time between two gratuitous replies with the same shorter route to the same source
    grat_reply_holdoff: Duration = Form::time(0).is(1_000),
    /// Largest number of times that a packet is salvaged: sent along another route after a broken link
    max_salvage_count: u8 = Form::count("times", 0, 15).is(15),
    /// A source repeats the last route error in its next route request, as in RFC 4728, section 3.4.4
    spread_errors: bool = Form::Switch.is(ON),
    /// A node's route requests and replies tell the node at the route's other end the RCV.NXT of their connections.
    /// Sender agent `pgy` uses it; only in world sim
    ack_seq: bool = Form::Switch.is(OFF),
    /// With `ack_seq`, replies of the destination itself carry RCV.NXT too. Requests always do
    ack_seq_in_replies: bool = Form::Switch.is(ON),
    /// Time for which requests of a neighbour behind a one-way link are ignored
    blacklist_timeout: Duration = Form::time(0).is(5_000),
    /// Largest number of route requests that a node originates per second
    rreq_ratelimit: u32 = Form::per_second("requests").is(10),
    /// Largest number of route errors that a node originates per second
    rerr_ratelimit: u32 = Form::per_second("errors").is(10),
    /// Largest number of route requests of one originator that are forwarded per second
    relay_ratelimit: u32 = Form::per_second("requests").is(20),
    /// Hop limit of data packets
    data_hop_limit: u8 = Form::count("hops", 1, 255).is(64),
}
