//! Watches the IPv4 packets that pass an interface, in and out: their addresses and protocol alone.
#![expect(unsafe_code, reason = "no crate wraps packet sockets")]

use std::io;
use std::mem;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use hopwise_core::narrow::as_u32;
use rustix::net::SocketType;

use crate::netlink;
use crate::raw::socket::{bind, packet_socket};

/// An IPv4 header without options.
const HEADER: usize = 20;
/// Room for packets between two reads. Packets beyond it are missed, which does no harm.
const BUFFER_BYTES: libc::c_int = 1 << 18;
/// The packets of one look, more than the room holds: all that came before it are among them. Those that a flood adds
/// meanwhile wait.
const AT_ONCE: usize = 1_024;

/// The watch of one interface.
#[derive(Debug)]
pub struct InterfaceWatch {
    fd: OwnedFd,
}

/// A packet that passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassingPacket {
    /// The source of the packet.
    pub src: Ipv4Addr,
    /// The destination of the packet.
    pub dst: Ipv4Addr,
    /// The IP protocol of its payload.
    pub protocol: u8,
    /// True if it came in, false if it leaves.
    pub came_in: bool,
}

impl InterfaceWatch {
    /// Begins to watch; this takes CAP_NET_RAW.
    pub fn open(device: &str) -> io::Result<InterfaceWatch> {
        let index = netlink::index_of(device).map_err(io::Error::other)?;
        let fd = packet_socket(SocketType::DGRAM)?;
        crate::sys::set_option(fd.as_fd(), (libc::SOL_SOCKET, libc::SO_RCVBUF), BUFFER_BYTES)?;
        bind(&fd, index)?;
        Ok(InterfaceWatch { fd })
    }

    /// Hands over the packets that have passed since the last call.
    pub fn look(&self, sink: &mut dyn FnMut(PassingPacket)) {
        let mut header = [0; HEADER];
        for _ in 0..AT_ONCE {
            // SAFETY: plain data for which zeros are a value.
            let mut from: libc::sockaddr_ll = unsafe { mem::zeroed() };
            let mut from_len = as_u32(size_of::<libc::sockaddr_ll>());
            // SAFETY: the buffer and the address are of those lengths and outlive the call; the rest of a packet is cut
            // off.
            let bytes = unsafe {
                let (into, from) = (header.as_mut_ptr().cast(), (&raw mut from).cast());
                let fd = self.fd.as_raw_fd();
                libc::recvfrom(fd, into, HEADER, libc::MSG_DONTWAIT, from, &raw mut from_len)
            };
            if bytes < 0 {
                return;
            }
            // The socket does not give the protocol: a packet that begins like IPv4 counts as IPv4.
            if bytes as usize == HEADER && header[0] >> 4 == 4 {
                let address =
                    |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
                let came_in = from.sll_pkttype != libc::PACKET_OUTGOING;
                sink(PassingPacket { src: address(12), dst: address(16), protocol: header[9], came_in });
            }
        }
    }
}

impl AsFd for InterfaceWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn a_look_ends_beside_a_flood_that_does_not() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: a look beside a flood: packet sockets take root");
            return;
        }
        let watch = InterfaceWatch::open("lo").expect("root may");
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let send = || drop(socket.send_to(&[0; 20], socket.local_addr().expect("bound")));
        send();
        let mut seen = 0;
        // Each packet causes another one, which is seen at both ends of the loopback.
        watch.look(&mut |_| {
            seen += 1;
            send();
        });
        assert!((2..=AT_ONCE).contains(&seen), "{seen}");
        let mut rest = 0;
        watch.look(&mut |_| rest += 1);
        assert!(rest > 0, "the others have waited");
    }
}
