//! The kernel's TCP as a measurement uses it: its algorithm, its segments' size, and its counters (TCP_INFO).

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};

use crate::sys;

/// The options of a connection or listener of the kernel. A listener hands them on to its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelTcp<'a> {
    /// The algorithm of congestion control.
    pub algorithm: &'a str,
    /// Payload of a full segment; none leaves it to the path.
    pub segment_bytes: Option<u16>,
    /// Small segments wait while data is unacknowledged (Nagle's algorithm).
    pub nagle: bool,
}

/// The options of a segment with timestamps, which the kernel takes from its maximum segment size.
const OPTION_BYTES: u16 = 12;
const BACKLOG: i32 = 128;

impl KernelTcp<'_> {
    /// Fails if this kernel does not have the algorithm.
    pub fn check(&self) -> io::Result<()> {
        self.socket().map(drop)
    }

    /// A listener at all addresses.
    pub fn listen(&self, port: u16) -> io::Result<OwnedFd> {
        let fd = self.socket()?;
        sockopt::set_socket_reuseaddr(&fd, true)?;
        rustix::net::bind(&fd, &SocketAddr::from(([0, 0, 0, 0], port)))?;
        rustix::net::listen(&fd, BACKLOG)?;
        Ok(fd)
    }

    /// A connection that is being opened. It is writable once it is open.
    pub fn connect(&self, to: SocketAddr) -> io::Result<OwnedFd> {
        let fd = self.socket()?;
        match rustix::net::connect(&fd, &to) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(fd),
            Err(error) => Err(error.into()),
        }
    }

    fn socket(&self) -> io::Result<OwnedFd> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd =
            rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        sockopt::set_tcp_congestion(&fd, self.algorithm)?;
        sockopt::set_tcp_nodelay(&fd, !self.nagle)?;
        if let Some(bytes) = self.segment_bytes {
            let most = i32::from(bytes + OPTION_BYTES);
            sys::set_option(fd.as_fd(), (libc::IPPROTO_TCP, libc::TCP_MAXSEG), most)?;
        }
        Ok(fd)
    }
}

/// Counters of a connection. A counter is absent where the kernel is too old for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelInfo {
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// Payload bytes that the peer has acknowledged.
    pub bytes_acked: Option<u64>,
    /// Segments with data, retransmissions included.
    pub data_segments: Option<u32>,
    /// Segments that were sent again, since the beginning of the connection.
    pub retransmissions: u32,
    /// All segments.
    pub segments: Option<u32>,
    /// All segments that came.
    pub segments_received: Option<u32>,
    /// Segments that came with data.
    pub data_segments_received: Option<u32>,
    /// Retransmission timeouts (Linux 6.7).
    pub timeouts: Option<u32>,
}

impl KernelInfo {
    /// Reads the counters of a TCP socket.
    pub fn of(connection: BorrowedFd<'_>) -> io::Result<KernelInfo> {
        let mut bytes = [0; 512];
        let len = sys::option(connection, (libc::IPPROTO_TCP, libc::TCP_INFO), &mut bytes)?;
        KernelInfo::read(&bytes[..len]).ok_or_else(|| io::Error::other("the kernel's answer is too short"))
    }

    /// Reads the kernel's `struct tcp_info`, which grows at its end.
    fn read(bytes: &[u8]) -> Option<KernelInfo> {
        let half = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let long = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        Some(KernelInfo {
            rtt: Duration::from_micros(word(68)?.into()),
            retransmissions: word(100)?,
            bytes_acked: long(120),
            segments: word(136),
            segments_received: word(140),
            data_segments_received: word(152),
            data_segments: word(156),
            timeouts: half(240).map(u32::from),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn counters_of_the_kernel_are_those_of_what_was_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut sender = TcpStream::connect(listener.local_addr().expect("its address")).expect("it listens");
        let (mut receiver, _) = listener.accept().expect("it has connected");
        for _ in 0..3 {
            sender.write_all(&[7; 100]).expect("it is open");
            receiver.read_exact(&mut [0; 100]).expect("it is open");
        }
        let info = KernelInfo::of(sender.as_fd()).expect("it is TCP");
        assert_eq!(info.data_segments, Some(3));
        assert!(
            info.segments > Some(3) && info.retransmissions == 0 && info.rtt > Duration::ZERO,
            "{info:?}"
        );
        let other = KernelInfo::of(receiver.as_fd()).expect("it is TCP");
        assert_eq!(other.data_segments_received, Some(3));
        assert!(other.segments_received >= Some(3) && info.data_segments_received == Some(0), "{other:?}");
        assert_eq!(info.bytes_acked.map(|bytes| bytes >= 200), Some(true), "{info:?}");
    }

    #[test]
    fn what_an_old_kernel_does_not_tell_is_absent() {
        assert_eq!(KernelInfo::read(&[0; 100]), None);
        let old = KernelInfo::read(&[0; 160]).expect("it has all that is needed");
        assert_eq!((old.data_segments, old.timeouts), (Some(0), None));
        let mut new = [0; 248];
        new[240..248].copy_from_slice(&[7_u16.to_ne_bytes(), [9, 9], [9, 9], [9, 9]].concat());
        assert_eq!(KernelInfo::read(&new).and_then(|info| info.timeouts), Some(7), "and not their time");
    }

    #[test]
    fn an_algorithm_that_the_kernel_does_not_have_is_an_error() {
        let tcp = KernelTcp { algorithm: "no-such", segment_bytes: None, nagle: true };
        assert!(tcp.check().is_err() && tcp.listen(0).is_err());
    }
}
