//! Observers of a driver at work: captures and metrics.

use hopwise_core::trace::TraceEvent;
use hopwise_core::{Instant, LinkId};

use crate::frames::EthernetHeader;

/// Sees each packet and each trace event, on the driver's thread or on the thread of a program that sends. It must be
/// quick and must not wait: copy into a bounded queue, and count what does not fit.
///
/// Trace events of a packet that leaves come before it. Trace events of a packet that arrived come after it.
pub trait Observer: Send {
    /// Called before each iteration and each step of a program. While no observer watches, none gets packets, and no
    /// trace is kept.
    fn is_watching(&self) -> bool {
        true
    }
    /// Returns whether each packet that comes is to have a time of its own, read after it came. Only an observer that
    /// [watches](Observer::is_watching) is asked. Without such a time, several packets share one from before. The
    /// sender's capture may then have a packet later than the receiver's capture.
    fn takes_times(&self) -> bool {
        false
    }
    /// A packet that the machine got or sent.
    fn on_packet(&mut self, seen: &SeenPacket<'_>);
    /// An event of the machine's trace.
    fn on_trace(&mut self, event: &TraceEvent);
    /// A frame by which a link finds its neighbours (ARP or NDP); `packet` begins after the Ethernet header.
    fn on_own_frame(&mut self, _seen: &SeenPacket<'_>) {}
}

/// A packet on its way between machine and link.
#[derive(Clone, Copy, Debug)]
pub struct SeenPacket<'a> {
    /// The time of the driver's iteration, or the packet's [own](Observer::takes_times).
    pub at: Instant,
    /// The machine's number for the link.
    pub link: LinkId,
    /// In or out.
    pub direction: Direction,
    /// The number by which [`TraceEvent::packet`] names it. Incoming and outgoing packets are numbered apart. A frame
    /// of the link's own has 0.
    pub id: u64,
    /// Payload bytes per segment, of a coalesced read or write.
    pub segment_bytes: Option<u16>,
    /// The header before the packet, on links that frame.
    pub ethernet: Option<EthernetHeader>,
    /// The whole IP packet.
    pub packet: &'a [u8],
}

/// The direction of a packet, seen from the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From a link to the machine.
    In,
    /// From the machine to a link.
    Out,
}
