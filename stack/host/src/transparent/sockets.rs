//! The kernel's list of TCP sockets: whether a caught SYN has reached its listener.
//!
//! A caught SYN still has to pass the `input` chains of the machine's firewall. A chain that drops it leaves no trace
//! but the missing socket. The files are opened before a daemon gives up its privileges.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A connection: its host, and the destination.
type Ends = (SocketAddr, SocketAddr);

/// The lists of both versions of IP, as the kernel has them now.
#[derive(Debug)]
pub struct Sockets(Vec<File>);

impl Sockets {
    /// The lists of this network namespace. A kernel without IPv6 has no list of it.
    pub(super) fn open() -> io::Result<Sockets> {
        let lists = [File::open("/proc/self/net/tcp")?];
        Ok(Sockets(lists.into_iter().chain(File::open("/proc/self/net/tcp6")).collect()))
    }

    /// Those of the connections that have a socket here, from the first SYN on.
    pub fn having(&self, wanted: &BTreeSet<Ends>) -> io::Result<BTreeSet<Ends>> {
        let mut found = BTreeSet::new();
        for mut list in &self.0 {
            let mut text = String::new();
            list.rewind()?;
            list.read_to_string(&mut text)?;
            found.extend(text.lines().filter_map(ends).filter(|ends| wanted.contains(ends)));
        }
        Ok(found)
    }
}

/// The connection of a line: after its number come the local and the remote end.
fn ends(line: &str) -> Option<Ends> {
    let mut words = line.split_whitespace().skip(1);
    let (local, remote) = (end(words.next()?)?, end(words.next()?)?);
    Some((remote, local))
}

/// Reads an address, by words of 32 bits as this machine stores them, and a port.
fn end(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let word = |nth: usize| {
        let digits = address.get(nth * 8..nth * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    let address: IpAddr = match address.len() {
        8 => Ipv4Addr::from(word(0)?).into(),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?].concat();
            Ipv6Addr::from(<[u8; 16]>::try_from(words).ok()?).into()
        }
        _ => return None,
    };
    Some(SocketAddr::new(address, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_connection_of_either_version_is_found_and_a_listener_alone_is_none() {
        let sockets = Sockets::open().expect("proc is mounted");
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(any) else { continue };
            let to = listener.local_addr().expect("it is bound");
            let client = TcpStream::connect(to).expect("it listens");
            let stands = (client.local_addr().expect("it is bound"), to);
            let other = (SocketAddr::new(to.ip(), 1), to);
            let found = sockets.having(&BTreeSet::from([stands, other])).expect("a list");
            assert_eq!(found, BTreeSet::from([stands]));
        }
    }

    #[test]
    fn a_line_of_no_connection_is_passed_over() {
        for line in ["", "  sl  local_address rem_address   st", "0: 0100007F:1F90", "0: xx:1 yy:2"] {
            assert_eq!(ends(line), None, "{line}");
        }
    }
}
