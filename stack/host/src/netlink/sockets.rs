//! Finds facts about this machine's own TCP sockets in the kernel (linux/inet_diag.h).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::netlink::SOCK_DIAG;

use super::ask::{ask, open};
use super::message::{NetlinkMessage, word};
use super::own::{interfaces, is_own_address};
use hopwise_core::narrow::as_u8;

/// The type of a request for sockets of a family, and of its replies (SOCK_DIAG_BY_FAMILY).
pub(super) const BY_FAMILY: u16 = 20;
const ANY_STATE: u32 = u32::MAX;
/// Matches sockets of any age (INET_DIAG_NOCOOKIE).
const NO_COOKIE: [u8; 8] = [0xff; 8];
/// The offset of the TCP state in struct inet_diag_msg.
const STATE: usize = 1;
/// The state of a listener. Without a socket of these two ends, the kernel replies with a listener at ours.
const LISTEN: u8 = 10;
/// ESTABLISHED, FIN-WAIT-1, FIN-WAIT-2, CLOSE-WAIT, LAST-ACK and CLOSING.
const SYNCHRONISED: [u8; 6] = [1, 4, 5, 8, 9, 11];
/// The offset of the user that made the socket.
const USER: usize = 64;
/// The offset of the socket's inode; 0 once no program holds it.
const INODE: usize = 68;
/// The offset of the number of bytes that are written and not acknowledged.
const WRITE_QUEUE: usize = 60;

/// Returns whether all programs that held the TCP socket have closed it. The FIN alone does not show this: a shutdown
/// for writing sends one, too. Sockets of other machines or namespaces are unknown here, and count as open.
pub fn is_abandoned(local: SocketAddr, remote: SocketAddr) -> bool {
    asked(local, remote, [INODE]).is_ok_and(|inode| inode == Some([0]))
}

/// The user whose program made the TCP socket. `None` for sockets of other machines or namespaces. Older kernels report
/// root as the user of a closed socket, which also gives `None`.
pub fn user_of(local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    let [user, inode] = asked(local, remote, [USER, INODE]).ok()??;
    (inode != 0 || user != 0).then_some(user)
}

/// Returns whether the TCP socket has data that its peer has not acknowledged.
pub fn is_unacknowledged(local: SocketAddr, remote: SocketAddr) -> bool {
    asked(local, remote, [WRITE_QUEUE]).is_ok_and(|bytes| bytes.is_some_and(|[bytes]| bytes > 0))
}

/// Returns whether this machine has the connection, and would answer a SYN of it by asking the peer (RFC 5961). One in
/// TIME-WAIT does not.
pub fn is_connected(local: SocketAddr, remote: SocketAddr) -> io::Result<bool> {
    let state = |[head]: [u32; 1]| head.to_ne_bytes()[STATE];
    Ok(asked(local, remote, [0])?.map(state).is_some_and(|state| SYNCHRONISED.contains(&state)))
}

/// Reads words of a socket's facts, if it exists. A socket that is bound to an interface is found by that interface
/// only.
fn asked<const WORDS: usize>(
    local: SocketAddr,
    remote: SocketAddr,
    at: [usize; WORDS],
) -> io::Result<Option<[u32; WORDS]>> {
    let socket = open(Some(SOCK_DIAG))?;
    let ask_at = |interface| ask_at(&socket, question(local, remote, interface), at);
    // 0 matches any interface; a link-local address is found by its own only.
    let known = match remote {
        SocketAddr::V6(remote) => remote.scope_id(),
        SocketAddr::V4(_) => 0,
    };
    let found = ask_at(known)?;
    if found.is_some() || !is_own_address(local.ip()) {
        return Ok(found);
    }
    for interface in interfaces()? {
        let found = ask_at(interface)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn ask_at<const WORDS: usize>(
    socket: &OwnedFd,
    question: NetlinkMessage,
    at: [usize; WORDS],
) -> io::Result<Option<[u32; WORDS]>> {
    let mut words = None;
    let asked = ask(socket, question, |heard| {
        if heard.kind == BY_FAMILY && heard.body.get(STATE) != Some(&LISTEN) {
            let all: Option<Vec<u32>> = at.iter().map(|at| word(heard.body, *at)).collect();
            words = all.and_then(|words| words.try_into().ok());
        }
    });
    match asked {
        // There is no such socket.
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        asked => asked.map(|()| words),
    }
}

/// A struct inet_diag_req_v2.
fn question(local: SocketAddr, remote: SocketAddr, interface: u32) -> NetlinkMessage {
    // A listener for both families has IPv4 clients with IPv6 addresses.
    let (from, to) = (local.ip().to_canonical(), remote.ip().to_canonical());
    let family = if from.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    NetlinkMessage::new(BY_FAMILY, 0, 0)
        .fixed(&[as_u8(family as usize), as_u8(libc::IPPROTO_TCP as usize), 0, 0])
        .fixed(&ANY_STATE.to_ne_bytes())
        .fixed(&local.port().to_be_bytes())
        .fixed(&remote.port().to_be_bytes())
        .fixed(&in_16_bytes(from))
        .fixed(&in_16_bytes(to))
        .fixed(&interface.to_ne_bytes())
        .fixed(&NO_COOKIE)
}

fn in_16_bytes(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V6(address) => address.octets(),
        IpAddr::V4(address) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&address.octets());
            bytes
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::time::Duration;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

    use super::*;

    /// A child that another test forks holds all sockets until its exec.
    fn soon(is_so: impl Fn() -> bool) -> bool {
        (0..500).any(|_| {
            std::thread::park_timeout(Duration::from_millis(10));
            is_so()
        })
    }

    #[test]
    fn a_socket_is_abandoned_once_it_is_closed_and_not_when_it_writes_no_more() {
        // A container may have no IPv6.
        for listener in ["127.0.0.1:0", "[::]:0"].into_iter().filter_map(|at| TcpListener::bind(at).ok()) {
            let port = listener.local_addr().expect("it is bound").port();
            let client = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
            let (served, theirs) = listener.accept().expect("it has come");
            let is_abandoned = || is_abandoned(theirs, served.local_addr().expect("it is open"));
            assert!(!is_abandoned());
            client.shutdown(Shutdown::Write).expect("it is open");
            assert!(!is_abandoned());
            drop(client);
            assert!(soon(is_abandoned));
        }
    }

    #[test]
    fn what_nobody_reads_is_not_acknowledged_once_it_fills_what_holds_it() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let mut client = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        let (served, theirs) = listener.accept().expect("it has come");
        let waits = || is_unacknowledged(served.local_addr().expect("it is open"), theirs);
        assert!(!waits());
        served.set_nonblocking(true).expect("it can be set");
        while (&served).write(&[7; 4096]).is_ok() {}
        assert!(waits());
        client.set_read_timeout(Some(Duration::from_millis(100))).expect("it can be set");
        // Its last ACK may be late.
        let is_read = (0..50).any(|_| {
            while client.read(&mut [0; 4096]).is_ok() {}
            !waits()
        });
        assert!(is_read);
    }

    #[test]
    fn a_listener_is_not_taken_for_who_came_to_it() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let at = listener.local_addr().expect("it is bound");
        let client = TcpStream::connect(at).expect("it listens");
        let (served, theirs) = listener.accept().expect("it has come");
        let connected = || is_connected(at, theirs).expect("the kernel answers");
        assert!(connected());
        sockopt::set_socket_linger(&served, Some(Duration::ZERO)).expect("it is open");
        drop((served, client));
        assert!(soon(|| !is_unacknowledged(at, theirs)), "it waits for nobody");
        assert!(soon(|| !connected()), "the listener is no connection");
    }

    /// A program may bind a socket to an interface without any capability.
    #[test]
    fn a_socket_that_is_bound_to_an_interface_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let at = listener.local_addr().expect("it is bound");
        let (family, flags) = (AddressFamily::INET, SocketFlags::CLOEXEC);
        let client = rustix::net::socket_with(family, SocketType::STREAM, flags, None).expect("a socket");
        crate::sys::bind_to_device(client.as_fd(), "lo").expect("it is there");
        rustix::net::connect(&client, &at).expect("it listens");
        let (served, theirs) = listener.accept().expect("it has come");
        let ours = served.local_addr().expect("it is open");
        let (inode, own) = (asked(theirs, ours, [INODE]), rustix::process::geteuid().as_raw());
        assert!(inode.is_ok_and(|inode| inode.is_some_and(|[inode]| inode != 0)));
        assert_eq!(user_of(theirs, ours), Some(own));
        assert!(!is_abandoned(theirs, ours));
        drop(client);
        assert!(soon(|| is_abandoned(theirs, ours)));
    }

    #[test]
    fn a_socket_that_is_not_here_is_not_called_abandoned() {
        let nobody = |port| SocketAddr::from(([192, 0, 2, 1], port));
        assert!(!is_abandoned(nobody(1), nobody(2)));
    }
}
