//! Constants of B.A.T.M.A.N. IV, each a setting, with the defaults of Linux's batman-adv.

use std::time::Duration;

use crate::constants::{Form, ON, constants};

const MOST_ORIGINATORS: u32 = 65_536;

constants! {
    /// Constants of B.A.T.M.A.N. IV, with the defaults of Linux's batman-adv.
    Settings of "Batman";
    /// Time between two originator messages of a node
    orig_interval: Duration = Form::time(40).is(1_000),
    /// Largest random shift of an originator message, to either side
    jitter: Duration = Form::time(0).is(20),
    /// Parts of 255 by which each hop lowers the quality of a path
    hop_penalty: u8 = Form::count("parts", 0, 255).is(30),
    /// Originator messages that a node passes on wait up to 100 ms for others, and share a packet with them
    aggregated_ogms: bool = Form::Switch.is(ON),
    /// TTL with which a node sends its originator messages, and so the largest number of hops of a path
    ttl: u8 = Form::count("hops", 2, 255).is(50),
    /// Time without a message after which a node forgets a neighbour or an originator
    purge_timeout: Duration = Form::time(1_000).is(200_000),
    /// Largest number of originators in the table of a node
    most_originators: u32 = Form::count("originators", 1, MOST_ORIGINATORS).is(4_096),
}
