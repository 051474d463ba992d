//! A UDP socket on one interface, for messages to single neighbours and to all. Its packets show them with IP and UDP
//! headers, because a message's TTL and addresses matter to routing.
#![expect(
    unsafe_code,
    reason = "a datagram's TTL and destination come as control messages that no crate here reads"
)]

use std::io;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use hopwise_core::endpoint::Neighbours;
use hopwise_core::narrow::{as_u16, as_u32};
use hopwise_core::wire::{IpHeader, IpView, UdpView, protocol, udp};
use hopwise_core::{Cast, Instant, Transmit};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, ipproto, socket_with, sockopt};

use crate::counters::{LinkDrop, LinkTally};
use crate::link::{Arrived, Link, LinkProperties, MAX_PACKET, Received, Sent};
use crate::{netlink, sys};

/// Room for a TTL and a destination.
const CONTROL_BYTES: usize = 128;
/// The longest message of UDP over IPv4.
const MOST_BYTES: usize = 65_535 - 28;

/// The socket for routing messages on one interface.
#[derive(Debug)]
pub struct ControlSocket {
    port: u16,
    everyone: Ipv4Addr,
    socket: UdpSocket,
    message: Vec<u8>,
    packet: Vec<u8>,
    tally: LinkTally,
}

/// The facts about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MessageFacts {
    bytes: usize,
    from: SocketAddrV4,
    /// The destination address in the packet: ours, or the address of all neighbours.
    to: Ipv4Addr,
    ttl: u8,
}

impl ControlSocket {
    /// Opens a port of that interface alone, whatever addresses it has. `everyone` is the address of messages to all:
    /// broadcast, or a group that is joined there.
    pub fn open(device: &str, port: u16, everyone: Ipv4Addr) -> io::Result<ControlSocket> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, Some(ipproto::UDP))?;
        sys::bind_to_device(fd.as_fd(), device)?;
        for option in [libc::IP_RECVTTL, libc::IP_PKTINFO] {
            sys::set_option(fd.as_fd(), (libc::IPPROTO_IP, option), 1)?;
        }
        bind(&fd, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port))?;
        if everyone.is_multicast() {
            let index = netlink::index_of(device).map_err(io::Error::other)?;
            sockopt::set_ip_add_membership_with_ifindex(&fd, &everyone, &Ipv4Addr::UNSPECIFIED, index)?;
            sockopt::set_ip_multicast_loop(&fd, false)?;
        }
        let socket = UdpSocket::from(fd);
        socket.set_broadcast(true)?;
        Ok(ControlSocket {
            port,
            everyone,
            socket,
            message: vec![0; MOST_BYTES],
            packet: Vec::with_capacity(MAX_PACKET),
            tally: LinkTally::new(device),
        })
    }

    /// Reads the next message, if one has come.
    fn read(&mut self) -> io::Result<Option<MessageFacts>> {
        let into = &mut self.message;
        let mut slice = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let mut control = [0_u64; CONTROL_BYTES / 8];
        // SAFETY: both are plain data for which zeros are a value.
        let (mut name, mut header): (libc::sockaddr_in, libc::msghdr) =
            unsafe { (mem::zeroed(), mem::zeroed()) };
        header.msg_name = (&raw mut name).cast();
        header.msg_namelen = as_u32(size_of::<libc::sockaddr_in>());
        header.msg_iov = &raw mut slice;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = CONTROL_BYTES as _;
        // SAFETY: the header names a buffer, an address and room for control messages with their true lengths, and all
        // outlive the call.
        let bytes = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT) };
        if bytes < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
        }
        let from = Ipv4Addr::from_bits(u32::from_be(name.sin_addr.s_addr));
        let (ttl, to) = read_control(&header);
        let from = SocketAddrV4::new(from, u16::from_be(name.sin_port));
        Ok(Some(MessageFacts { bytes: bytes as usize, from, to, ttl }))
    }

    /// Sends the message of a packet with its addresses, ports and TTL. The source is an address of this machine on any
    /// interface.
    fn send_packet(&self, packet: &[u8]) -> io::Result<()> {
        let refused = |_| io::Error::from(io::ErrorKind::InvalidInput);
        let ip = IpView::parse(packet).map_err(refused)?;
        let udp = UdpView::parse(ip.src, ip.dst, ip.payload).map_err(refused)?;
        let (IpAddr::V4(from), IpAddr::V4(to)) = (ip.src, ip.dst) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        self.send(from, SocketAddrV4::new(to, udp.dst_port), ip.hop_limit, udp.payload)
    }

    fn send(&self, from: Ipv4Addr, to: SocketAddrV4, ttl: u8, message: &[u8]) -> io::Result<()> {
        self.socket.set_ttl(ttl.into())?;
        self.socket.set_multicast_ttl_v4(ttl.into())?;
        let mut slice = libc::iovec { iov_base: message.as_ptr().cast_mut().cast(), iov_len: message.len() };
        let mut control = [0_u64; CONTROL_BYTES / 8];
        // SAFETY: all are plain data for which zeros are a value.
        let (mut name, mut header, mut info): (libc::sockaddr_in, libc::msghdr, libc::in_pktinfo) =
            unsafe { (mem::zeroed(), mem::zeroed(), mem::zeroed()) };
        name.sin_family = as_u16(libc::AF_INET as usize);
        name.sin_port = to.port().to_be();
        name.sin_addr.s_addr = to.ip().to_bits().to_be();
        info.ipi_spec_dst.s_addr = from.to_bits().to_be();
        header.msg_name = (&raw mut name).cast();
        header.msg_namelen = as_u32(size_of::<libc::sockaddr_in>());
        header.msg_iov = &raw mut slice;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        // SAFETY: CMSG_SPACE and CMSG_LEN compute; the first control message lies within `control`, which is aligned
        // for it and has room for one `in_pktinfo`.
        unsafe {
            let len = as_u32(size_of::<libc::in_pktinfo>());
            header.msg_controllen = libc::CMSG_SPACE(len) as _;
            let first = libc::CMSG_FIRSTHDR(&raw const header);
            (*first).cmsg_level = libc::IPPROTO_IP;
            (*first).cmsg_type = libc::IP_PKTINFO;
            (*first).cmsg_len = libc::CMSG_LEN(len) as _;
            libc::CMSG_DATA(first).cast::<libc::in_pktinfo>().write_unaligned(info);
        }
        // SAFETY: the header names an address, a message and one control message with their true lengths, and all
        // outlive the call, which reads them alone.
        let sent = unsafe { libc::sendmsg(self.socket.as_raw_fd(), &raw const header, libc::MSG_DONTWAIT) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// TTL and destination; a missing one reads as 0.
fn read_control(header: &libc::msghdr) -> (u8, Ipv4Addr) {
    let (mut ttl, mut to) = (0, Ipv4Addr::UNSPECIFIED);
    // SAFETY: the kernel has written the control messages and their lengths; the macros walk within them, and each is
    // as long as its type says.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(header);
        while !at.is_null() {
            let data = libc::CMSG_DATA(at);
            match ((*at).cmsg_level, (*at).cmsg_type) {
                (libc::IPPROTO_IP, libc::IP_TTL) => {
                    ttl = data.cast::<libc::c_int>().read_unaligned().clamp(0, 255) as u8;
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let info = data.cast::<libc::in_pktinfo>().read_unaligned();
                    to = Ipv4Addr::from_bits(u32::from_be(info.ipi_addr.s_addr));
                }
                _ => {}
            }
            at = libc::CMSG_NXTHDR(header, at);
        }
    }
    (ttl, to)
}

/// A message as the packet that it came in, to that port.
fn write_packet(heard: MessageFacts, port: u16, message: &[u8], packet: &mut Vec<u8>) {
    let (src, dst) = ((*heard.from.ip()).into(), heard.to.into());
    let header = IpHeader { hop_limit: heard.ttl, ..IpHeader::plain(src, dst, protocol::UDP) };
    packet.clear();
    header.emit(8 + message.len(), packet);
    udp::emit(src, dst, (heard.from.port(), port), message, packet);
}

impl Link for ControlSocket {
    fn properties(&self) -> LinkProperties {
        LinkProperties { neighbours: Neighbours::Named, ..LinkProperties::plain(u16::MAX) }
    }

    fn tally(&self) -> &LinkTally {
        &self.tally
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn receive(&mut self, _now: Instant, into: &mut [u8]) -> Received {
        let heard = match self.read() {
            Ok(Some(heard)) => heard,
            Ok(None) => return Received::Nothing,
            Err(error) => {
                tracing::debug!(device = self.tally.name, %error, "nothing was received");
                return Received::Nothing;
            }
        };
        write_packet(heard, self.port, &self.message[..heard.bytes], &mut self.packet);
        into[..self.packet.len()].copy_from_slice(&self.packet);
        self.tally.received.count(self.packet.len());
        let cast = if heard.to == self.everyone { Cast::ToAll } else { Cast::ToUs };
        Received::Packet(Arrived { cast, ..Arrived::new(self.packet.len()) })
    }

    fn transmit(&mut self, _now: Instant, transmit: &Transmit, packet: &[u8]) -> Sent {
        match self.send_packet(packet) {
            Ok(()) => self.tally.taken(packet.len()),
            // A message is worth nothing later: it does not wait for room.
            Err(error) => {
                tracing::debug!(device = self.tally.name, to = ?transmit.to, %error, "message not sent");
                self.tally.refused(LinkDrop::Refused)
            }
        }
    }
}
