//! The one contract of everything that handles packets: endpoints, mesh nodes, proxies and test fixtures.

use std::fmt::Debug;
use std::net::IpAddr;
use std::time::Duration;

use crate::Instant;
use crate::trace::TraceEvent;

/// One of a machine's links, numbered by whoever configured it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u16);

/// Something that handles packets without doing I/O.
///
/// 1. `now` never decreases.
/// 2. A driver makes one mutation, then calls [`poll_transmit`](Machine::poll_transmit) for each link that has
///    room until it answers `None`, then drains the trace, then waits until
///    [`poll_timeout`](Machine::poll_timeout). A full radio never stops a wire.
/// 3. `poll_timeout` is pure, absolute and complete; it is silent only about work that waits for room.
/// 4. A timeout may come early, late or twice.
/// 5. Inside there is no clock, randomness, thread, shared lock, log, or iteration in hash order. Keys are given at
///    construction.
/// 6. Machines name neighbours by IP address; links resolve them.
/// 7. A frame that could not be delivered comes back with its packet. Each transmit carries an id that joins
///    trace, capture and link events.
pub trait Machine {
    fn handle_packet(&mut self, now: Instant, rx: &Rx<'_>);
    fn handle_link_event(&mut self, now: Instant, link: LinkId, event: &LinkEvent<'_>);
    fn handle_timeout(&mut self, now: Instant);
    /// Appends the next packet for `link` to `out`, which the caller has cleared. It is called only when the link has
    /// room.
    fn poll_transmit(
        &mut self,
        now: Instant,
        link: LinkId,
        payload: Payload,
        out: &mut Vec<u8>,
    ) -> Option<Transmit>;
    /// The end of the packet that was polled last as [`Payload::Lent`], in two pieces. It is there up to the next
    /// mutation, and empty where `out` has the whole packet.
    fn lent(&self) -> (&[u8], &[u8]);
    fn poll_timeout(&self) -> Option<Instant>;
    /// The machine owns its ring of events; the driver empties it.
    fn drain_trace(&mut self, sink: &mut dyn FnMut(&TraceEvent));
    /// Says whether the trace will be read. A trace that will not be read need not be kept; drops are counted all the
    /// same.
    fn keep_trace(&mut self, is_kept: bool);
}

/// The place of a packet's payload when a machine hands it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// In the packet.
    Inline,
    /// It may stay in the machine's buffer, for [`Machine::lent`] to show: the link takes a packet in pieces.
    Lent,
}

/// A packet that a link hands in.
#[derive(Clone, Copy, Debug)]
pub struct Rx<'a> {
    pub link: LinkId,
    /// The neighbour that sent it, where the link knows.
    pub from: Option<IpAddr>,
    pub cast: Cast,
    /// Payload bytes per segment when the link coalesced several into one read.
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

/// To whom the frame around a packet was addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cast {
    ToUs,
    ToAll,
    Overheard,
}

/// What goes with a packet that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    pub to: NextHop,
    pub class: QueueClass,
    /// Payload bytes per segment when the link is to cut the packet into several.
    pub segment_bytes: Option<u16>,
    /// Joins trace, capture and link events.
    pub id: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextHop {
    /// The link decides itself (TUN, a wire).
    Link,
    Neighbour(IpAddr),
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueClass {
    Data,
    Routing,
}

/// What a link layer tells.
#[derive(Clone, Copy, Debug)]
pub enum LinkEvent<'a> {
    /// Hands the packet back, for local repair or salvage. Queued packets for that neighbour are the node's own
    /// to purge.
    NotDelivered {
        to: IpAddr,
        id: u64,
        packet: &'a [u8],
    },
    Delivered {
        id: u64,
    },
    Signal {
        from: IpAddr,
        dbm: i8,
    },
    GoingDown {
        peer: IpAddr,
        rtt: Duration,
        outage: Duration,
        /// When it is expected to be gone; zero where nobody knows.
        within: Duration,
    },
    Gone {
        peer: IpAddr,
    },
    Up {
        peer: IpAddr,
    },
}
