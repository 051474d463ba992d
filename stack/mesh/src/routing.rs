//! The seam between the node and a routing protocol: the protocol's inputs, and the orders that it may give.

use std::fmt::{self, Debug, Formatter};
use std::net::{IpAddr, Ipv4Addr};

use hopwise_core::agent::{Path, PathEvent};
use hopwise_core::endpoint::PathSeam;
use hopwise_core::trace::DropReason;
use hopwise_core::{Cast, Instant, LinkId, NextHop, QueueClass, Rx};

/// The context of each call into a protocol.
#[derive(Clone, Copy)]
pub struct Cx<'a> {
    /// The time of the call.
    pub now: Instant,
    /// The arrivals at the node's own connections, for messages that carry them.
    pub endpoint: &'a dyn PathSeam,
}

/// A neighbour, and the link to it.
pub type Hop = (LinkId, IpAddr);

/// A packet that needs a next hop.
#[derive(Clone, Copy, Debug)]
pub struct RoutedPacket<'a> {
    /// The source of the packet.
    pub src: IpAddr,
    /// The destination of the packet.
    pub dst: IpAddr,
    /// The neighbour that sent it; `None` if the node itself did.
    pub from: Option<IpAddr>,
    /// The hop limit with which the packet will leave.
    pub hop_limit: u8,
    /// The node's number for the packet, which link events repeat.
    pub id: u64,
    /// The whole IP packet.
    pub packet: &'a [u8],
}

/// The protocol's decision on a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoutingVerdict {
    /// The packet leaves as it is.
    Forward {
        /// The link to the next hop.
        link: LinkId,
        /// The next hop on it.
        via: NextHop,
    },
    /// The packet leaves like this, with the protocol's own header in it.
    Wrapped {
        /// The link to the next hop.
        link: LinkId,
        /// The next hop on it.
        via: NextHop,
        /// The whole packet in its new form.
        packet: Vec<u8>,
    },
    /// The protocol has kept a copy until it knows a route.
    Keep,
    /// The packet goes no further, for this reason.
    Drop(DropReason),
}

/// The fate of a packet that a link gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undelivered {
    /// The packet is lost.
    Drop,
    /// The protocol has kept a copy.
    Kept,
}

/// A received message of the protocol.
#[derive(Clone, Copy, Debug)]
pub struct ControlMessage<'a> {
    /// The link on which it came.
    pub link: LinkId,
    /// The neighbour that sent it; `None` where the link does not say.
    pub from: Option<IpAddr>,
    /// For this node alone, or for all.
    pub cast: Cast,
    /// The source address of the IP packet.
    pub src: IpAddr,
    /// The destination address of the IP packet.
    pub dst: IpAddr,
    /// The hop limit with which it arrived.
    pub hop_limit: u8,
    /// The UDP payload.
    pub message: &'a [u8],
}

/// An action for the node, which polls until there is none left.
#[derive(Debug)]
pub enum RoutingOrder {
    /// A whole IP packet: a message of the protocol, or a packet that it kept.
    Send {
        /// The link to send it on.
        link: LinkId,
        /// The next hop on that link.
        to: NextHop,
        /// Data or routing, for the order in the queue.
        class: QueueClass,
        /// The bytes of the packet.
        packet: Vec<u8>,
    },
    /// Packets for this next hop are dropped from the queue, as far as `what` says.
    Purge {
        /// The link whose queue is searched.
        link: LinkId,
        /// The next hop of the packets.
        via: IpAddr,
        /// The packets that are dropped.
        what: Purged,
    },
    /// Data packets for this next hop leave the queue and are routed again.
    Reroute {
        /// The link whose queue is searched.
        link: LinkId,
        /// The next hop of the packets.
        via: IpAddr,
    },
    /// News for the node's own connections to that peer; with `ports` (the peer's, ours), for that one alone.
    Tell {
        /// The other end of the connections.
        peer: IpAddr,
        /// The peer's port and ours; `None`: all connections to the peer.
        ports: Option<(u16, u16)>,
        /// The change of the path.
        event: PathEvent,
        /// The facts of the path after the change.
        path: Path,
    },
    /// Counts and traces a packet that it had kept.
    Dropped {
        /// The reason for the drop.
        reason: DropReason,
        /// The node's number for the packet.
        id: u64,
    },
}

/// The packets for a next hop that leave its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purged {
    /// All data packets.
    Data,
    /// Data packets from other nodes to this destination.
    PassedOn(IpAddr),
    /// Data packets and messages of the protocol.
    All,
}

/// A routing protocol. It sees connections only through the path seam, and links only as numbers.
///
/// Its messages use a UDP port, or it puts its own header behind the IP header ([`Routing::header`]).
pub trait Routing: Debug + Send {
    /// The UDP port of its messages, if they have one.
    fn port(&self) -> Option<u16> {
        None
    }
    /// Decides on a packet that needs a next hop.
    fn route(&mut self, cx: &Cx<'_>, packet: &RoutedPacket<'_>) -> RoutingVerdict;
    /// Takes a received message of the protocol.
    fn handle_control(&mut self, cx: &Cx<'_>, control: &ControlMessage<'_>);
    /// The IP protocol of the header that all of its packets have, if they have one.
    fn header(&self) -> Option<u8> {
        None
    }
    /// Takes a packet with that header, for any destination, but none that was overheard. Returns a packet for this
    /// node itself, without the header. The protocol sends on or drops all other packets.
    fn handle_wrapped(&mut self, _cx: &Cx<'_>, _rx: &Rx<'_>) -> Option<Vec<u8>> {
        None
    }
    /// A frame between other nodes, for protocols that overhear.
    fn on_overheard(&mut self, _now: Instant, _rx: &Rx<'_>) {}
    /// The next hop has acknowledged a packet in a frame of this bit rate.
    fn on_delivered(&mut self, _now: Instant, _link: LinkId, _to: IpAddr, _kbps: u32) {}
    /// The link gave the packet up.
    fn on_undelivered(&mut self, _cx: &Cx<'_>, _hop: Hop, _packet: &RoutedPacket<'_>) -> Undelivered {
        Undelivered::Drop
    }
    /// Does what is due by now.
    fn handle_timeout(&mut self, cx: &Cx<'_>);
    /// When the protocol has to act next.
    fn poll_timeout(&self) -> Option<Instant>;
    /// The next order that is due by `now`.
    fn poll_order(&mut self, now: Instant) -> Option<RoutingOrder>;
    /// The link and next hop that a packet to `dst` would take now.
    fn next_hop(&self, now: Instant, dst: IpAddr) -> Option<(LinkId, IpAddr)>;
    /// The path facts for connections to `peer`.
    fn path(&self, peer: IpAddr) -> Path;
    /// Counters for results: discoveries and route failures.
    fn counts(&self) -> (u64, u64);
    /// The sequence numbers from which a later start may go on, each with its node. They hold only if nothing is sent
    /// after this call. Protocols that lose nothing by a restart have none.
    fn numbers(&self) -> Vec<(Ipv4Addr, u32)> {
        Vec::new()
    }
    /// Goes on from the numbers of an earlier start. Returns whether that spares the wait of a node that lost them.
    fn go_on_from(&mut self, _now: Instant, _numbers: &[(Ipv4Addr, u32)]) -> bool {
        false
    }
}

impl Debug for Cx<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cx").field("now", &self.now).finish_non_exhaustive()
    }
}
