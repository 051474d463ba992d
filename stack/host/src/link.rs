//! What carries packets: one trait, and what it answers.

use std::error::Error;
use std::fmt::{self, Debug};
use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

use hopwise_core::endpoint::{LinkConfig, Neighbours, Offload};
use hopwise_core::ip::Prefix;
use hopwise_core::tcp::AckMerge;
use hopwise_core::wire::Checksums;
use hopwise_core::{Cast, Instant, LinkEvent, LinkId, Transmit};

use crate::counters::{LinkCounters, LinkDrop};
use crate::frames::{EthernetHeader, Framing, KeptFrame};

/// A packet is never longer than its 16-bit length field says.
pub const MAX_PACKET: usize = 65_535 + 40;

/// Reads and writes whole IP packets without ever blocking. What a link changes in the system it takes back when it
/// is dropped.
pub trait Link: Send + Debug {
    fn name(&self) -> &str;
    fn mtu(&self) -> u16;
    /// Whether packets need a neighbour's address.
    fn neighbours(&self) -> Neighbours;
    /// Whether it is given bundles of segments.
    fn offload(&self) -> Offload {
        Offload::None
    }
    /// Whether it cuts those bundles; for one that does not, the driver does.
    fn cuts(&self) -> bool {
        true
    }
    /// Whether it finishes the checksums of TCP segments that leave, and vouches for those that come.
    fn checksums(&self) -> Checksums {
        Checksums::Verify
    }
    /// `Read` where packets that are read in a row came at one instant, as from a kernel at the other end. The last ACK
    /// then says all that the others do.
    fn ack_merge(&self) -> AckMerge {
        AckMerge::Off
    }
    /// What becomes readable when a packet has come, and writable when there is room again; a link without one is
    /// asked again when its [`poll_timeout`](Link::poll_timeout) says so.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
    /// The next packet, written to the beginning of `into`, which has room for [`MAX_PACKET`] bytes. Links that read
    /// batches keep the rest of one.
    fn receive(&mut self, now: Instant, into: &mut [u8]) -> Received;
    /// A link that answers [`Sent::Full`] has not taken the packet; it is offered again when there is room.
    fn transmit(&mut self, now: Instant, transmit: &Transmit, packet: &[u8]) -> Sent;
    /// Whether it takes packets in pieces, which saves a copy; then nobody cuts bundles for it.
    fn gathers(&mut self) -> Option<&mut dyn Gather> {
        None
    }
    /// No more packets for now: what was gathered into a batch leaves. Room that a full batch lacked may come of it.
    fn flush(&mut self, now: Instant);
    /// When [`handle_timeout`](Link::handle_timeout) is due, after which [`receive`](Link::receive) is tried.
    fn poll_timeout(&self) -> Option<Instant>;
    fn handle_timeout(&mut self, now: Instant);
    /// What stands around its packets.
    fn framing(&self) -> Framing {
        Framing::Ip
    }
    /// The header that a packet would get now, of a link that frames.
    fn ethernet_of(&self, _transmit: &Transmit, _packet: &[u8]) -> Option<EthernetHeader> {
        None
    }
    /// Whether frames are to be kept for [`drain_frames`](Link::drain_frames).
    fn keep_frames(&mut self, _are_kept: bool) {}
    /// The frames, in their order, that the driver has not handed over itself.
    fn drain_frames(&mut self, _sink: &mut dyn FnMut(&KeptFrame)) {}
    /// What the link layer tells the machine.
    fn drain_events(&mut self, sink: &mut dyn FnMut(&LinkEvent<'_>));
    /// Whether there is something in the system that takes CAP_NET_ADMIN to take back.
    fn takes_back(&self) -> bool {
        false
    }
    fn counters(&self) -> LinkCounters;
}

/// A link that takes a packet in pieces.
pub trait Gather {
    /// [`transmit`](Link::transmit) of what `pieces` are together, of which the first holds the headers.
    fn transmit_pieces(&mut self, transmit: &Transmit, pieces: [&[u8]; 3]) -> Sent;
}

/// What a link had to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    Packet(Arrived),
    /// Something came and was dropped, and counted; more may be there.
    Dropped,
    Nothing,
    /// The device does not exist any more.
    Gone,
}

/// What goes with a packet that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    pub bytes: usize,
    pub from: Option<IpAddr>,
    pub cast: Cast,
    /// Payload bytes per segment of a coalesced read.
    pub segment_bytes: Option<u16>,
    /// What stood before it, on links that frame.
    pub ethernet: Option<EthernetHeader>,
}

impl Arrived {
    /// From a link that names no neighbours.
    pub fn new(bytes: usize) -> Arrived {
        Arrived { bytes, from: None, cast: Cast::ToUs, segment_bytes: None, ethernet: None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    Taken,
    /// Taken, and leaves once its neighbour's address is known: then it is among the frames that are kept.
    Waits,
    Full,
    /// Dropped and counted.
    Refused(LinkDrop),
}

/// The part of an endpoint's configuration that describes a link.
pub fn describe(link: &dyn Link, id: LinkId, addresses: Vec<Prefix>) -> LinkConfig {
    LinkConfig {
        neighbours: link.neighbours(),
        offload: link.offload(),
        checksums: link.checksums(),
        ack_merge: link.ack_merge(),
        ..LinkConfig::wire(id.0, link.mtu(), addresses)
    }
}

/// Why a link could not be opened.
#[derive(Debug)]
pub enum LinkError {
    /// What was attempted, on which device, and what the system said.
    System {
        doing: &'static str,
        device: String,
        error: io::Error,
        /// The capabilities that it takes, which are named where they are missing.
        takes: &'static str,
    },
    Configure {
        device: String,
        error: crate::netlink::NetlinkError,
    },
    /// A setting that cannot work.
    Setting {
        device: String,
        what: &'static str,
    },
}

impl LinkError {
    pub(crate) fn system(doing: &'static str, device: &str, error: impl Into<io::Error>) -> LinkError {
        LinkError::System { doing, device: device.to_owned(), error: error.into(), takes: "CAP_NET_ADMIN" }
    }

    /// The same of a link that takes other rights than a TUN.
    pub(crate) fn taking(mut self, rights: &'static str) -> LinkError {
        if let LinkError::System { takes, .. } = &mut self {
            *takes = rights;
        }
        self
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::System { doing, device, error, takes } => {
                write!(f, "{device}: {doing}: {error}")?;
                match error.kind() {
                    io::ErrorKind::PermissionDenied => write!(f, " (it takes {takes})"),
                    io::ErrorKind::ResourceBusy => f.write_str(" (another process has it open)"),
                    _ => Ok(()),
                }
            }
            LinkError::Configure { device, error } => write!(f, "{device}: {error}"),
            LinkError::Setting { device, what } => write!(f, "{device}: {what}"),
        }
    }
}

impl Error for LinkError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            LinkError::System { error, .. } => Some(error),
            LinkError::Configure { error, .. } => Some(error),
            LinkError::Setting { .. } => None,
        }
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
    }
}
