//! The outer side of the device: a link for TCP, and a side door for UDP.
//!
//! An endpoint takes datagrams to its own addresses alone, and a command sends datagrams everywhere. The link hands
//! each to a sink, and a writer puts answers on the device. One write is one packet, so that both may write at once.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use hopwise_core::wire::{IpHeader, IpView, UdpView, protocol, udp};
use hopwise_core::{Instant, Transmit};
use tun_rs::{VIRTIO_NET_HDR_LEN, VirtioNetHdr};

use super::NEAR_MAC;
use super::{DEVICE, Given, Kind, MTU};
use crate::counters::{LinkDrop, LinkTally};
use crate::link::{Arrived, Gather, Link, LinkProperties, Received, Sent};
use crate::tun::{on_read_error, on_write_error};
use crate::vnet::{IncomingBundle, arrive, header_for, shifted};

/// An Ethernet header: two addresses and a type.
const ETHERNET: usize = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
const UDP_HEADER: usize = 8;

/// A datagram of the command, or one for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Its sender.
    pub from: SocketAddr,
    /// Its receiver.
    pub to: SocketAddr,
    /// The data.
    pub payload: Vec<u8>,
}

/// Takes the command's datagrams, on the thread that drives the link. It must not wait.
pub type DatagramSink = Box<dyn FnMut(Datagram) + Send>;

/// The link on the device of a command.
pub struct Enclosed {
    device: Arc<CommandDevice>,
    sink: DatagramSink,
    tally: LinkTally,
    /// UDP datagrams of one bundle.
    incoming: IncomingBundle,
}

/// Puts datagrams for the command on its device.
#[derive(Clone, Debug)]
pub struct DatagramWriter(Arc<CommandDevice>);

#[derive(Debug)]
struct CommandDevice {
    fd: OwnedFd,
    kind: Kind,
}

impl Enclosed {
    /// The link on a device that was handed out, and the writer of datagrams.
    pub fn new(given: Given, sink: DatagramSink) -> (Enclosed, DatagramWriter) {
        let device = Arc::new(CommandDevice { fd: given.fd, kind: given.kind });
        let writer = DatagramWriter(Arc::clone(&device));
        let (tally, incoming) = (LinkTally::new(DEVICE), IncomingBundle::default());
        (Enclosed { device, sink, tally, incoming }, writer)
    }

    /// Hands a datagram to the sink; all other packets go to the machine.
    fn sort(&mut self, packet: &[u8], segment_bytes: Option<u16>) -> Received {
        let ip = match IpView::parse(packet) {
            Ok(ip) if ip.protocol == protocol::UDP && ip.fragment.is_none() => ip,
            // The machine drops a malformed packet, with its own reason.
            _ => return Received::Packet(Arrived { segment_bytes, ..Arrived::new(packet.len()) }),
        };
        if let Ok(datagram) = UdpView::parse(ip.src, ip.dst, ip.payload) {
            (self.sink)(Datagram {
                from: SocketAddr::new(ip.src, datagram.src_port),
                to: SocketAddr::new(ip.dst, datagram.dst_port),
                payload: datagram.payload.to_vec(),
            });
        }
        // The machine has nothing to do with it.
        Received::Dropped
    }
}

hopwise_core::shown!(Enclosed: device);

impl CommandDevice {
    /// Reads a packet without its Ethernet header. `None` for a frame of another protocol.
    fn read(&self, header: &mut [u8], into: &mut [u8]) -> io::Result<Option<usize>> {
        let mut ethernet = [0; ETHERNET];
        let frame = match self.kind {
            Kind::Tun => &mut ethernet[..0],
            Kind::Pair => &mut ethernet[..],
        };
        let before = header.len() + frame.len();
        let mut parts = [IoSliceMut::new(header), IoSliceMut::new(frame), IoSliceMut::new(into)];
        let bytes = rustix::io::readv(&self.fd, &mut parts)?.saturating_sub(before);
        let kind = [ethernet[ETHERNET - 2], ethernet[ETHERNET - 1]];
        let is_ip = self.kind == Kind::Tun || kind == IPV4 || kind == IPV6;
        Ok(is_ip.then_some(bytes))
    }

    fn write(&self, header: &VirtioNetHdr, [head, a, b]: [&[u8]; 3]) -> io::Result<()> {
        let mut described = [0; VIRTIO_NET_HDR_LEN];
        let ethernet = ethernet_for(head);
        let frame = if self.kind == Kind::Pair { &ethernet[..] } else { &[] };
        let shift = u16::try_from(frame.len()).unwrap_or(0);
        shifted(*header, shift).encode(&mut described)?;
        rustix::io::writev(&self.fd, &[&described[..], frame, head, a, b].map(IoSlice::new))?;
        Ok(())
    }
}

/// A frame to the command's end. The sender's address is no device's.
fn ethernet_for(packet: &[u8]) -> [u8; ETHERNET] {
    let mut frame = [0; ETHERNET];
    frame[..6].copy_from_slice(&NEAR_MAC);
    frame[6..12].copy_from_slice(&NEAR_MAC);
    frame[11] ^= 1;
    let is_v6 = packet.first().is_some_and(|first| first >> 4 == 6);
    frame[12..].copy_from_slice(if is_v6 { &IPV6 } else { &IPV4 });
    frame
}

impl Link for Enclosed {
    fn properties(&self) -> LinkProperties {
        LinkProperties { is_routed: true, ..LinkProperties::bundling(MTU) }
    }

    fn tally(&self) -> &LinkTally {
        &self.tally
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.device.fd.as_fd())
    }

    fn receive(&mut self, _now: Instant, into: &mut [u8]) -> Received {
        if let Some(bytes) = self.incoming.next(into) {
            return self.sort(&into[..bytes], None);
        }
        let mut header = [0; VIRTIO_NET_HDR_LEN];
        let bytes = match self.device.read(&mut header, into) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return self.tally.lost(LinkDrop::NotIp),
            Err(error) => return on_read_error(error, &mut self.tally),
        };
        match arrive(&header, (into, bytes), &mut self.incoming, &mut self.tally) {
            Received::Packet(arrived) => self.sort(&into[..arrived.bytes], arrived.segment_bytes),
            dropped => dropped,
        }
    }

    fn gathers(&mut self) -> Option<&mut dyn Gather> {
        Some(self)
    }

    fn transmit(&mut self, _now: Instant, transmit: &Transmit, packet: &[u8]) -> Sent {
        self.transmit_pieces(transmit, [packet, &[], &[]])
    }
}

impl Gather for Enclosed {
    fn transmit_pieces(&mut self, transmit: &Transmit, pieces: [&[u8]; 3]) -> Sent {
        let header = header_for(pieces[0], transmit.segment_bytes);
        match self.device.write(&header, pieces) {
            Ok(()) => self.tally.taken(pieces.iter().map(|piece| piece.len()).sum()),
            Err(error) => on_write_error(error, &mut self.tally),
        }
    }
}

impl DatagramWriter {
    /// Writes a datagram, unless it has no room on the device. Both addresses are of one family.
    pub fn write(&self, datagram: &Datagram) -> io::Result<()> {
        let (from, to) = (datagram.from, datagram.to);
        let ip = IpHeader::plain(from.ip(), to.ip(), protocol::UDP);
        let bytes = UDP_HEADER + datagram.payload.len();
        if ip.len() + bytes > usize::from(MTU) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut packet = Vec::with_capacity(ip.len() + bytes);
        ip.emit(bytes, &mut packet);
        udp::emit(from.ip(), to.ip(), (from.port(), to.port()), &datagram.payload, &mut packet);
        self.0.write(&VirtioNetHdr::default(), [&packet, &[], &[]])
    }
}
