//! A connection's knowledge of its path, and the events of routing.

use std::time::Duration;

use crate::Seq;

/// Kept by the connection, read by both kinds of agents. A hop is a link: neighbours are 1 apart.
#[derive(Clone, Copy, Debug, Default)]
pub struct Path {
    pub hops_to_peer: Option<(u8, HopSource)>,
    pub hops_from_peer: Option<(u8, HopSource)>,
    pub link_bps: Option<u64>,
    pub rtt: Rtt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopSource {
    Routing,
    Ttl,
    Config,
}

/// At a pure receiver, samples come from the SYN exchange and from echoed timestamps. Those contain the peer's waiting
/// time, so they only serve as a minimum, or as a coarse value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rtt {
    pub latest: Option<Duration>,
    pub smoothed: Option<Duration>,
    pub variance: Duration,
    pub min: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEvent {
    RouteFailed,
    RouteFound,
    HopsChanged,
    /// A routing message reports that the peer's `rcv_nxt` has reached this number.
    AckSeq(Seq),
}

/// `Freeze` stops the RTO, keeps cwnd and sends probes. Any acceptable ACK thaws, and the RTO is armed again at its old
/// value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathReaction {
    None,
    Freeze { probe_every: Duration },
    RaiseHighestAck(Seq),
}
