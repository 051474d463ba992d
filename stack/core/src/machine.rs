//! The common contract of all machines: endpoints, mesh nodes, proxies and test fixtures.

use std::fmt::Debug;
use std::net::IpAddr;
use std::time::Duration;

use crate::Instant;
use crate::trace::TraceEvent;

/// One of a machine's links, numbered by its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u16);

/// A machine handles packets without doing I/O.
///
/// 1. `now` never decreases.
/// 2. A driver makes one mutation, or hands over a bounded number of packets that it has read in a row. It then calls
///    [`poll_transmit`](Machine::poll_transmit) for each link that has room until it returns `None`. It drains the
///    trace and waits until [`poll_timeout`](Machine::poll_timeout). A full radio never stops a wire.
/// 3. `poll_timeout` is pure, absolute and complete; it omits only work that waits for room. It may name an instant at
///    which there is nothing to do yet, but not again once it has passed.
/// 4. A timeout may come early, late or twice.
/// 5. A machine has no clock, randomness, thread, shared lock, log, or iteration in hash order. Its constructor gets
///    the keys.
/// 6. Machines name neighbours by IP address; links resolve them.
/// 7. A frame that could not be delivered comes back with its packet. Each transmit carries an id that joins trace,
///    capture and link events.
pub trait Machine {
    /// Takes a packet that the link has received.
    fn handle_packet(&mut self, now: Instant, rx: &Rx<'_>);
    /// Takes a report of the layer under `link`.
    fn handle_link_event(&mut self, now: Instant, link: LinkId, event: &LinkEvent<'_>);
    /// Does the work that is due, if any is.
    fn handle_timeout(&mut self, now: Instant);
    /// Appends the next packet for `link` to `out`, which the caller has cleared. Call it only if the link has room.
    fn poll_transmit(
        &mut self,
        now: Instant,
        link: LinkId,
        payload: Payload,
        out: &mut Vec<u8>,
    ) -> Option<Transmit>;
    /// The end of the packet that was last polled as [`Payload::Lent`], in two pieces. It is valid until the next
    /// mutation, and empty if `out` has the whole packet, as from a machine that lends nothing.
    fn lent(&self) -> (&[u8], &[u8]) {
        Default::default()
    }
    /// The instant of the next work, or an earlier one; None if only a packet, a report or a call brings more.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Empties the machine's ring of events, if it has a ring.
    fn drain_trace(&mut self, _sink: &mut dyn FnMut(&TraceEvent)) {}
    /// Sets whether the trace will be read. An unread trace need not be kept, but drops are always counted.
    fn keep_trace(&mut self, _is_kept: bool) {}
}

/// The place of a packet's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// In the packet.
    Inline,
    /// The payload may stay in the machine's buffer, for [`Machine::lent`]: the link takes a packet in pieces.
    Lent,
}

/// A packet from a link.
#[derive(Clone, Copy, Debug)]
pub struct Rx<'a> {
    /// The link that received it.
    pub link: LinkId,
    /// The neighbour that sent it, if the link knows it.
    pub from: Option<IpAddr>,
    /// [`Cast::ToUs`] if the link has no addresses.
    pub cast: Cast,
    /// Payload bytes per segment if the link coalesced several into one read.
    pub segment_bytes: Option<u16>,
    /// Whole IP packet.
    pub packet: &'a [u8],
}

impl<'a> Rx<'a> {
    /// A packet to us from a link that names no neighbours, such as TUN or a wire.
    pub fn new(link: LinkId, packet: &'a [u8]) -> Rx<'a> {
        Rx { link, from: None, cast: Cast::ToUs, segment_bytes: None, packet }
    }
}

/// The addressee of the frame around a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cast {
    /// This node alone.
    ToUs,
    /// A broadcast or multicast address of the link.
    ToAll,
    /// Another node. Only routing looks at such packets.
    Overheard,
}

/// The destination and the handling of a packet that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The receiver of the frame.
    pub to: NextHop,
    /// The class in queues on the way to the link.
    pub class: QueueClass,
    /// Payload bytes per segment if the link should cut the packet into several.
    pub segment_bytes: Option<u16>,
    /// Joins trace, capture and link events.
    pub id: u64,
}

/// The receiver of a frame on its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NextHop {
    /// The link decides itself (TUN, a wire).
    Link,
    /// One station, which the link resolves.
    Neighbour(IpAddr),
    /// All stations in range, by broadcast or multicast.
    All,
}

/// A packet's class in the queue of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueClass {
    /// First in, first out; in a full queue it finds no room.
    Data,
    /// A routing message. It goes before all data, and a full queue drops its last packet for it.
    Routing,
}

/// A report of a link layer.
#[derive(Clone, Copy, Debug)]
pub enum LinkEvent<'a> {
    /// Returns the packet, for local repair or salvage. The node itself must purge queued packets for that neighbour.
    NotDelivered {
        /// The neighbour that did not answer.
        to: IpAddr,
        /// [`Transmit::id`].
        id: u64,
        /// The whole IP packet.
        packet: &'a [u8],
    },
    /// The neighbour confirmed the frame, or a broadcast has left.
    Delivered {
        /// [`Transmit::id`].
        id: u64,
        /// The neighbour, and the bit rate of the frame in kbit/s; `None` for a broadcast.
        by: Option<(IpAddr, u32)>,
    },
    /// A frame came with this signal.
    Signal {
        /// The neighbour that sent it.
        from: IpAddr,
        /// The received power.
        dbm: i8,
    },
    /// The link to a neighbour still works, but a fade is expected.
    GoingDown {
        /// The neighbour, a mobile of a base station.
        peer: IpAddr,
        /// The round trip to it; zero if unknown.
        rtt: Duration,
        /// The expected length of the fade.
        outage: Duration,
        /// The expected time until it is gone; zero if unknown.
        within: Duration,
    },
    /// The link to a neighbour is gone.
    Gone {
        /// The neighbour, a mobile of a base station.
        peer: IpAddr,
    },
    /// The link to a neighbour is up, again or still.
    Up {
        /// The neighbour, a mobile of a base station.
        peer: IpAddr,
    },
}
