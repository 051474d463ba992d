//! The options of a DSR Options header, once they are read.

use std::net::Ipv4Addr;

/// Requests a route to `target` (§6.2). The IP source is its origin, and `addresses` are the nodes that passed it on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteRequest {
    /// The number of the request; with the originator it identifies the copies of one request.
    pub id: u16,
    /// The node that is sought.
    pub target: Ipv4Addr,
    /// The nodes that passed the request on, in that order.
    pub addresses: Vec<Ipv4Addr>,
}

/// A route for the IP destination (§6.3), which is not in it. The last address is the route's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteReply {
    /// The last step leads out of the network.
    pub is_last_external: bool,
    /// The nodes of the route after its origin, in their order.
    pub addresses: Vec<Ipv4Addr>,
}

/// The reason of a route error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteErrorReason {
    /// The source of the error cannot reach this neighbour.
    Unreachable(Ipv4Addr),
    /// The source of the error does not know an option that it had to process.
    NotSupported {
        /// The number of that option.
        option: u8,
    },
    /// Other errors are passed on and have no effect here.
    Other {
        /// The number of the error's type.
        kind: u8,
    },
}

/// Names the link that is gone (§6.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteError {
    /// The number of times that the packet had been salvaged.
    pub salvage: u8,
    /// The node that found the error.
    pub src: Ipv4Addr,
    /// The node that is informed: the source of the packet.
    pub dst: Ipv4Addr,
    /// The error that it found.
    pub problem: RouteErrorReason,
}

/// The route of a packet (§6.7), without its ends. It leads from the IP source to the IP destination. For a salvaged
/// packet it begins at its first address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRoute {
    /// The first step leads in from outside the network.
    pub(crate) is_first_external: bool,
    /// The last step leads out of the network.
    pub(crate) is_last_external: bool,
    /// The number of times that the packet was salvaged.
    pub salvage: u8,
    /// Addresses that the packet has still to visit.
    pub segments_left: u8,
    /// The nodes between the two ends, in the order of the route.
    pub addresses: Vec<Ipv4Addr>,
}

/// The arrivals at a node, flow by flow, as `on_demand::ack_seq` writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrivalsOption {
    /// The node at which they arrived.
    pub of: Ipv4Addr,
    /// The bytes that `on_demand::ack_seq` writes and reads.
    pub flows: Vec<u8>,
}

/// An option of the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DsrOption {
    /// A request for a route.
    Request(RouteRequest),
    /// A route, in answer to a request.
    Reply(RouteReply),
    /// The news of a lost link.
    Error(RouteError),
    /// A request for an acknowledgement of this packet by the next hop.
    AckRequest {
        /// The number that the acknowledgement repeats.
        id: u16,
    },
    /// The acknowledgement of a packet.
    Ack {
        /// The number of the request that it answers.
        id: u16,
        /// The node that took the packet.
        src: Ipv4Addr,
        /// The node that had asked for the acknowledgement.
        dst: Ipv4Addr,
    },
    /// The route of the packet.
    Route(SourceRoute),
    /// Arrivals of TCP flows at a node.
    Arrivals(ArrivalsOption),
    /// An option that no node has to know: it goes on as it came.
    Unknown {
        /// The option's number.
        kind: u8,
        /// Its bytes behind number and length.
        data: Vec<u8>,
    },
}
