//! A connection's knowledge of its path, and the events of routing.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use crate::{LinkFacts, Seq};

/// Kept by the connection, read by both kinds of agents. A hop is a link: neighbours are 1 apart.
#[derive(Clone, Debug, Default)]
pub struct Path {
    /// The number of links of the way there, and its source; None while unknown.
    pub hops_to_peer: Option<(u8, HopSource)>,
    /// The same of the way back. The hop limit of arriving segments gives this one alone.
    pub hops_from_peer: Option<(u8, HopSource)>,
    /// The bit rate of our own link on the way there, if routing knows it.
    pub link_bps: Option<NonZeroU64>,
    /// The facts about that link, if a driver tells them; connections over one link share them. They are of `at`, which
    /// lies up to a second back. [`LinkFacts::since`] shows what has happened since an earlier one: retries, losses,
    /// airtime.
    pub link: Option<Arc<LinkFacts>>,
    /// The round trip over both ways.
    pub rtt: Rtt,
    /// Arrivals of data from the peer, a count that wraps.
    pub data_arrivals: u32,
}

impl Path {
    /// The bit rate of our own link on the way there: that of its driver, or else that of routing.
    pub fn bit_rate(&self) -> Option<u64> {
        let of_driver = self.link.as_ref().and_then(|facts| facts.tx_bitrate_bps).filter(|bps| *bps > 0);
        of_driver.or(self.link_bps.map(NonZeroU64::get))
    }
}

crate::named! {
    /// The source of a number of hops.
    pub enum HopSource {
        /// The routing protocol of this node.
        Routing = "routing",
        /// The hop limit of arriving segments, for want of another source.
        Ttl = "ttl",
        /// A number in the configuration.
        Config = "config",
    }
}

/// At a pure receiver, samples come from the SYN exchange and from echoed timestamps. Those contain the peer's waiting
/// time, so they only serve as a minimum, or as a coarse value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rtt {
    /// The newest sample; None before the first.
    pub latest: Option<Duration>,
    /// SRTT of RFC 6298 §2; None before the first sample.
    pub smoothed: Option<Duration>,
    /// RTTVAR of RFC 6298 §2; zero before the first sample.
    pub variance: Duration,
    /// The smallest sample so far; None before the first.
    pub min: Option<Duration>,
}

/// News of routing about the way to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEvent {
    /// There is no route any more.
    RouteFailed,
    /// There is a route, for the first time or again.
    RouteFound,
    /// The route now has another number of hops.
    HopsChanged,
    /// A routing message reports that the peer's `rcv_nxt` has reached this number.
    AckSeq(Seq),
}

/// An agent's answer to news of routing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathReaction {
    /// No change.
    None,
    /// Stops the RTO, keeps cwnd and sends probes, if data is in flight. Any acceptable ACK thaws, and the RTO is armed
    /// again at its old value.
    Freeze {
        /// The time between two probes, at least 10 ms.
        probe_every: Duration,
    },
    /// No data below this number goes again. The number must lie within the data in flight, or it has no effect.
    RaiseHighestAck(Seq),
    /// The same, and a timeout with nothing in flight above the number sends nothing again: new data goes on from one
    /// segment. The peer's window then counts from the number, and neither RTO nor ssthresh changes. The owner of cwnd
    /// hears of a timeout without data in flight. If less than a segment could leave, it is a timeout like others.
    TakeAsAcknowledged(Seq),
}
