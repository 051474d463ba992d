//! Links carry packets: the trait, and the types of its results.

use std::fmt::Debug;
use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

use hopwise_core::endpoint::{LinkConfig, Neighbours, Offload};
use hopwise_core::ip::Prefix;
use hopwise_core::tcp::AckMerge;
use hopwise_core::wire::Checksums;
use hopwise_core::{Cast, Instant, LinkEvent, LinkId, StationAddress, Transmit};

use crate::counters::{LinkCounters, LinkDrop, LinkTally};
use crate::frames::{EthernetHeader, KeptFrame};

/// The 16-bit length field bounds a packet.
pub const MAX_PACKET: usize = 65_535 + 40;

/// Reads and writes whole IP packets without ever blocking. A link undoes its changes to the system when it is dropped.
pub trait Link: Send + Debug {
    /// The properties that stay while it is open.
    fn properties(&self) -> LinkProperties;
    /// The name of its device, and the packets and drops since it was opened.
    fn tally(&self) -> &LinkTally;
    /// The descriptor that is readable when a packet has come, and writable when there is room. A link without one is
    /// polled again after its [`poll_timeout`](Link::poll_timeout).
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
    /// The next packet, written to the beginning of `into`, which has room for [`MAX_PACKET`] bytes. Links that read
    /// batches keep the rest of one.
    fn receive(&mut self, now: Instant, into: &mut [u8]) -> Received;
    /// A link that returns [`Sent::Full`] has not taken the packet; it is offered again when there is room.
    fn transmit(&mut self, now: Instant, transmit: &Transmit, packet: &[u8]) -> Sent;
    /// Returns the interface for packets in pieces, which saves a copy; its bundles are then not cut.
    fn gathers(&mut self) -> Option<&mut dyn Gather> {
        None
    }
    /// Ends a batch: gathered packets leave. This may make room that a full batch lacked.
    fn flush(&mut self, _now: Instant) {}
    /// The time when [`handle_timeout`](Link::handle_timeout) is due. The driver then tries [`receive`](Link::receive).
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    /// Does what is due by now.
    fn handle_timeout(&mut self, _now: Instant) {}
    /// The header that a packet would get now, on a link that frames.
    fn ethernet_of(&self, _transmit: &Transmit, _packet: &[u8]) -> Option<EthernetHeader> {
        None
    }
    /// The station that gets packets for a neighbour, on a link that finds neighbours itself.
    fn station_of(&self, _neighbour: IpAddr) -> Option<StationAddress> {
        None
    }
    /// Sets whether frames are kept for [`drain_frames`](Link::drain_frames).
    fn keep_frames(&mut self, _are_kept: bool) {}
    /// Drains, in order, the frames that the driver has not handed over itself.
    fn drain_frames(&mut self, _sink: &mut dyn FnMut(&KeptFrame)) {}
    /// Drains the link layer's events for the machine.
    fn drain_events(&mut self, _sink: &mut dyn FnMut(&LinkEvent<'_>)) {}
    /// Returns whether its drop has to undo a change that takes CAP_NET_ADMIN.
    fn takes_back(&self) -> bool {
        false
    }
    /// A copy of its tally.
    fn counters(&self) -> LinkCounters {
        self.tally().show()
    }
}

/// The properties of an open link.
#[derive(Clone, Copy, Debug)]
pub struct LinkProperties {
    /// The longest IP packet in bytes.
    pub mtu: u16,
    /// The kind of neighbours: whether packets need a neighbour's address.
    pub neighbours: Neighbours,
    /// The bundles of segments that it is given.
    pub offload: Offload,
    /// True if it cuts bundles into segments. Otherwise, the driver cuts them.
    pub cuts: bool,
    /// `Trust` if it finishes the checksums of outgoing TCP segments and has checked the incoming segments.
    pub checksums: Checksums,
    /// `Read` if packets that are read in a row came at one instant, as from a kernel at the other end. The last ACK
    /// then covers the earlier ones.
    pub ack_merge: AckMerge,
    /// True if the kernel routes its packets, to the machine itself or on.
    pub is_routed: bool,
}

impl LinkProperties {
    /// A link without named neighbours, bundles or a kernel behind it.
    pub const fn plain(mtu: u16) -> LinkProperties {
        LinkProperties {
            mtu,
            neighbours: Neighbours::Implied,
            offload: Offload::None,
            cuts: true,
            checksums: Checksums::Verify,
            ack_merge: AckMerge::Off,
            is_routed: false,
        }
    }

    /// A link that takes bundles of any size in pieces, and whose other end on this machine vouches for checksums.
    pub(crate) const fn bundling(mtu: u16) -> LinkProperties {
        let offload = Offload::Cut { most_bytes: 65_535 };
        let (checksums, ack_merge) = (Checksums::Trust, AckMerge::Read);
        LinkProperties { offload, checksums, ack_merge, ..LinkProperties::plain(mtu) }
    }
}

/// A link that takes a packet in pieces.
pub trait Gather {
    /// [`transmit`](Link::transmit) of the `pieces` together; the first holds the headers.
    fn transmit_pieces(&mut self, transmit: &Transmit, pieces: [&[u8]; 3]) -> Sent;
}

/// The result of a read from a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// A packet is in the buffer.
    Packet(Arrived),
    /// A packet came, was dropped and was counted; more may follow.
    Dropped,
    /// No packet is there now.
    Nothing,
    /// The device does not exist any more.
    Gone,
}

/// The facts about a packet that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// The length of the packet in the buffer.
    pub bytes: usize,
    /// The neighbour that sent it, where the link knows.
    pub from: Option<IpAddr>,
    /// For this host alone, or for all.
    pub cast: Cast,
    /// Payload bytes per segment of a coalesced read.
    pub segment_bytes: Option<u16>,
    /// The header before it, on links that frame.
    pub ethernet: Option<EthernetHeader>,
}

impl Arrived {
    /// A packet from a link that names no neighbours.
    pub fn new(bytes: usize) -> Arrived {
        Arrived { bytes, from: None, cast: Cast::ToUs, segment_bytes: None, ethernet: None }
    }
}

/// The fate of a packet that a link was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The device has it.
    Taken,
    /// Taken, but waits for its neighbour's address. When it leaves, it is among the frames that are kept.
    Waits,
    /// The device has no room: try the packet again when it has.
    Full,
    /// Dropped and counted.
    Refused(LinkDrop),
}

/// The part of an endpoint's configuration that describes a link.
pub fn describe(link: &dyn Link, id: LinkId, addresses: Vec<Prefix>) -> LinkConfig {
    let LinkProperties { mtu, neighbours, offload, checksums, ack_merge, .. } = link.properties();
    LinkConfig { neighbours, offload, checksums, ack_merge, ..LinkConfig::wire(id.0, mtu, addresses) }
}

/// The reason why a link could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The attempt, the device, and the system's error.
    // The kernel would have put a number in the place of `%d`.
    #[error("{}: {doing}: {error}{}", .device.replace("%d", "N"), remedy(.error, .takes))]
    System {
        /// The attempt, such as `create the TUN device`.
        doing: &'static str,
        /// The name of the device.
        device: String,
        /// The system's error.
        #[source]
        error: io::Error,
        /// The capabilities that it needs, for the error message.
        takes: &'static str,
    },
    /// The kernel refused a setting of the device.
    #[error("{device}: {error}")]
    Configure {
        /// The name of the device.
        device: String,
        /// The kernel's refusal.
        #[source]
        error: crate::netlink::NetlinkError,
    },
    /// A setting that cannot work.
    #[error("{device}: {what}")]
    Setting {
        /// The name of the device.
        device: String,
        /// The fault, as a clause about the link.
        what: &'static str,
    },
}

impl LinkError {
    pub(crate) fn system(doing: &'static str, device: &str, error: impl Into<io::Error>) -> LinkError {
        LinkError::System { doing, device: device.to_owned(), error: error.into(), takes: "CAP_NET_ADMIN" }
    }

    /// The same error for a link that needs other capabilities than a TUN device.
    pub(crate) fn taking(mut self, rights: &'static str) -> LinkError {
        if let LinkError::System { takes, .. } = &mut self {
            *takes = rights;
        }
        self
    }

    /// Returns whether another program has the device.
    pub fn is_taken(&self) -> bool {
        matches!(self, LinkError::System { error, .. } if error.kind() == io::ErrorKind::ResourceBusy)
    }

    /// Returns whether the process lacks a right that the link takes.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, LinkError::System { error, .. } if error.kind() == io::ErrorKind::PermissionDenied)
    }
}

/// The remedy that some errors have.
fn remedy(error: &io::Error, takes: &str) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!(" (it takes {takes})"),
        io::ErrorKind::ResourceBusy => " (another process has it open)".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_open_a_link_is_told_the_rights_that_this_one_takes() {
        let refused = || LinkError::system("create the TUN device", "hw0", io::ErrorKind::PermissionDenied);
        let tun = refused().to_string();
        assert!(tun.ends_with(" (it takes CAP_NET_ADMIN)"), "{tun}");
        let raw = refused().taking("CAP_NET_ADMIN and CAP_NET_RAW").to_string();
        assert!(raw.ends_with(" (it takes CAP_NET_ADMIN and CAP_NET_RAW)"), "{raw}");
        let busy = LinkError::system("create the TUN device", "hw0", io::ErrorKind::ResourceBusy);
        assert!(refused().is_forbidden() && !busy.is_forbidden());
        let of_many = LinkError::system("create the TUN device", "hw%d", io::ErrorKind::ResourceBusy);
        assert!(of_many.to_string().starts_with("hwN: "), "{of_many}");
    }
}
