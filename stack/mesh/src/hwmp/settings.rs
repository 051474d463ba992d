//! Constants of HWMP and of mesh peering, each a setting, with the defaults of Linux's mac80211.

use std::time::Duration;

use crate::constants::{Form, MOST_PACKETS, constants};

constants! {
    /// Constants of HWMP and of mesh peering (IEEE 802.11s), with the defaults of Linux's mac80211.
    Settings of "Hwmp";
    /// Time between two beacons of a node, by which neighbours find each other
    beacon_interval: Duration = Form::time(10).is(1_024),
    /// Largest number of peers of a node
    max_peer_links: u32 = Form::count("peers", 1, 255).is(32),
    /// Time without a confirmation after which a node opens a peering again
    retry_timeout: Duration = Form::time(1).is(100),
    /// Number of times that a node opens a peering again
    max_retries: u8 = Form::count("times", 0, 16).is(3),
    /// Time that a node whose peering was confirmed waits for the other side to open it
    confirm_timeout: Duration = Form::time(1).is(100),
    /// Time after a failed peering before the next one
    holding_timeout: Duration = Form::time(1).is(100),
    /// Time without any frame of a peer after which its peering ends
    plink_timeout: Duration = Form::time(1_000).is(1_800_000),
    /// Lifetime of a path that a request or a reply has told of
    active_path_timeout: Duration = Form::time(10).is(5_000),
    /// Time before the end of a path from which a packet of the node itself makes it ask again
    path_refresh_time: Duration = Form::time(0).is(1_000),
    /// Wait for the answer to the first request; each later wait is twice as long
    min_discovery_timeout: Duration = Form::time(1).is(100),
    /// Number of requests after the first one that stayed without an answer
    max_preq_retries: u8 = Form::count("requests", 0, 16).is(4),
    /// Least time between two requests of a node
    preq_min_interval: Duration = Form::time(0).is(10),
    /// Least time between two error messages of a node
    perr_min_interval: Duration = Form::time(0).is(102),
    /// Time for which a node keeps its sequence number
    net_diameter_traversal_time: Duration = Form::time(0).is(50),
    /// TTL with which a node sends requests, replies and errors, and so the largest number of hops of a path
    element_ttl: u8 = Form::count("hops", 2, 255).is(31),
    /// Largest number of packets of the node itself that wait for one path; the oldest gives way
    frame_queue: u32 = Form::count("packets", 1, MOST_PACKETS).is(10),
    /// Largest number of paths in the table of a node
    most_paths: u32 = Form::count("paths", 1, 65_536).is(1_024),
    /// Share of lost frames, as a moving average, above which a node gives up all paths over that neighbour
    link_fail_threshold: u8 = Form::count("percent", 0, 100).is(95),
}
