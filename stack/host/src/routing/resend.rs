//! Sends whole IPv4 packets of anybody through one interface, by the kernel's routes there.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, sendto, socket_with};

use crate::sys;

#[derive(Debug)]
pub struct Resender {
    fd: OwnedFd,
}

impl Resender {
    pub fn open(device: &str) -> io::Result<Resender> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(AddressFamily::INET, SocketType::RAW, flags, Some(ipproto::RAW))?;
        sys::bind_to_device(fd.as_fd(), device)?;
        Ok(Resender { fd })
    }

    pub fn send(&self, dst: Ipv4Addr, packet: &[u8]) -> io::Result<()> {
        sendto(&self.fd, packet, SendFlags::DONTWAIT, &SocketAddrV4::new(dst, 0))?;
        Ok(())
    }
}
