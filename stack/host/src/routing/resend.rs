//! Sends whole IP packets of any source through one interface, by the kernel's routes there.

use std::io;
use std::net::{IpAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, netdevice, sendto, socket_with,
};

use crate::sys;

/// True if the device is gone or has no route. Other errors are about one packet: it is too large, the local firewall
/// drops it, or there is no room.
pub fn is_link_lost(error: &io::Error) -> bool {
    let lost = [Errno::NETDOWN, Errno::NODEV, Errno::NXIO, Errno::NETUNREACH, Errno::HOSTUNREACH];
    error.raw_os_error().is_some_and(|code| lost.contains(&Errno::from_raw_os_error(code)))
}

/// Raw sockets for IPv4 and IPv6 that are bound to one interface.
#[derive(Debug)]
pub struct Resender {
    device: String,
    /// The number of the device that the sockets are bound to.
    index: u32,
    v4: OwnedFd,
    /// `None` if the kernel has no IPv6.
    v6: Option<OwnedFd>,
}

impl Resender {
    /// Opens the sockets; this takes CAP_NET_RAW.
    pub fn open(device: &str) -> io::Result<Resender> {
        let open = |family| {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let fd = socket_with(family, SocketType::RAW, flags, Some(ipproto::RAW))?;
            sys::bind_to_device(fd.as_fd(), device)?;
            io::Result::Ok(fd)
        };
        let v4 = open(AddressFamily::INET)?;
        let index = netdevice::name_to_index(&v4, device)?;
        Ok(Resender { device: device.to_owned(), index, v4, v6: open(AddressFamily::INET6).ok() })
    }

    /// Returns whether the interface is there. A device that was made anew under its name does not count.
    pub(crate) fn has_device(&self) -> bool {
        netdevice::name_to_index(&self.v4, &self.device).is_ok_and(|index| index == self.index)
    }

    /// Sends a whole IP packet. An interface that is gone gives an error that `is_link_lost` finds.
    pub fn send(&self, dst: impl Into<IpAddr>, packet: &[u8]) -> io::Result<()> {
        Ok(self.try_send(dst.into(), packet)?)
    }

    /// The socket for packets to such a destination.
    pub(crate) fn socket(&self, dst: IpAddr) -> Option<BorrowedFd<'_>> {
        let fd = if dst.is_ipv4() { Some(&self.v4) } else { self.v6.as_ref() };
        fd.map(AsFd::as_fd)
    }

    pub(crate) fn set_mark(&self, mark: libc::c_int) -> io::Result<()> {
        let mut both = [Some(&self.v4), self.v6.as_ref()].into_iter().flatten();
        both.try_for_each(|fd| sys::set_option(fd.as_fd(), (libc::SOL_SOCKET, libc::SO_MARK), mark))
    }

    /// Enlarges the room for packets that have not left, if the kernel allows it.
    pub(crate) fn make_room(&self, bytes: libc::c_int) {
        for fd in [Some(&self.v4), self.v6.as_ref()].into_iter().flatten() {
            // Less room works, too.
            let _ = sys::set_option(fd.as_fd(), (libc::SOL_SOCKET, libc::SO_SNDBUFFORCE), bytes);
        }
    }

    fn try_send(&self, dst: IpAddr, packet: &[u8]) -> Result<(), Errno> {
        let done = match (dst, &self.v6) {
            (IpAddr::V4(dst), _) => sendto(&self.v4, packet, SendFlags::DONTWAIT, &SocketAddrV4::new(dst, 0)),
            (IpAddr::V6(dst), Some(fd)) => {
                sendto(fd, packet, SendFlags::DONTWAIT, &SocketAddrV6::new(dst, 0, 0, 0))
            }
            (IpAddr::V6(_), None) => Err(Errno::AFNOSUPPORT),
        };
        done.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_one_packet_say_nothing_of_the_link() {
        for (code, is_lost) in [
            (libc::ENETDOWN, true),
            (libc::ENODEV, true),
            (libc::ENXIO, true),
            (libc::ENETUNREACH, true),
            (libc::EHOSTUNREACH, true),
            (libc::EMSGSIZE, false),
            (libc::EPERM, false),
            (libc::ENOBUFS, false),
            (libc::EINVAL, false),
        ] {
            assert_eq!(is_link_lost(&io::Error::from_raw_os_error(code)), is_lost, "{code}");
        }
        assert!(!is_link_lost(&io::ErrorKind::NotFound.into()));
    }
}
