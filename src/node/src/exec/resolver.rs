//! The command's `/etc/resolv.conf`. A name server at this machine's loopback, or on one of its links, is out of the
//! command's reach: its file then names the far end of its device, which stands for that server.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use hopwise_host::enclosure::{OUTER_V4, OUTER_V6};
use rustix::net::{AddressFamily, SocketType, netdevice, socket};

const FILE: &str = "/etc/resolv.conf";

/// The server that the far end's port 53 stands for, and the command's file, if it needs one. Without a file, the C
/// library asks the loopback; there is nothing then that the command's could cover.
pub(super) fn for_command() -> Option<(SocketAddr, String)> {
    replaced(&fs::read_to_string(FILE).ok()?)
}

/// A name server of the machine's.
#[derive(Clone, Copy, Debug)]
struct NameServer {
    at: SocketAddr,
    /// The command has none of this machine's links.
    is_on_a_link: bool,
}

/// The first server, and the command's file, if one of the servers is out of its reach or none is named.
fn replaced(text: &str) -> Option<(SocketAddr, String)> {
    let servers: Vec<_> = text.lines().filter_map(server).collect();
    let is_far = |server: &NameServer| server.is_on_a_link || server.at.ip().is_loopback();
    if !servers.is_empty() && !servers.iter().any(is_far) {
        return None;
    }
    let first = servers.first().map_or(SocketAddr::from(([127, 0, 0, 1], DNS)), |server| server.at);
    let others = text.lines().filter(|line| server(line).is_none());
    let mut own = format!("nameserver {OUTER_V4}\n");
    others.for_each(|line| own.extend([line, "\n"]));
    Some((first, own))
}

fn server(line: &str) -> Option<NameServer> {
    let mut words = line.split_whitespace();
    let named = (words.next() == Some("nameserver")).then(|| words.next()).flatten()?;
    let Some((ip, link)) = named.split_once('%') else {
        let ip: IpAddr = named.parse().ok()?;
        return Some(NameServer { at: SocketAddr::new(ip, DNS), is_on_a_link: false });
    };
    // The system refuses a datagram to link 0, as it does without that link.
    let link = link.parse().ok().or_else(|| index(link)).unwrap_or(0);
    let at = SocketAddrV6::new(ip.parse().ok()?, DNS, 0, link).into();
    Some(NameServer { at, is_on_a_link: true })
}

fn index(link: &str) -> Option<u32> {
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None).ok()?;
    netdevice::name_to_index(any, link).ok()
}

// Addresses of the command's network that stand for something on this machine.

/// The port of name servers.
pub(super) const DNS: u16 = 53;

/// The far end of the command's device is this machine's loopback, and its port 53 the machine's own name server.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoopbackEnd {
    server: Option<SocketAddr>,
}

impl LoopbackEnd {
    pub(super) fn new(server: Option<SocketAddr>) -> LoopbackEnd {
        LoopbackEnd { server }
    }

    /// The place on this machine that an address of the command stands for.
    pub(super) fn here(self, to: SocketAddr) -> Option<SocketAddr> {
        let loopback = match to.ip() {
            IpAddr::V4(v4) if v4 == OUTER_V4 => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(v6) if v6 == OUTER_V6 => IpAddr::V6(Ipv6Addr::LOCALHOST),
            _ => return None,
        };
        let server = self.server.filter(|_| to.port() == DNS);
        Some(server.unwrap_or(SocketAddr::new(loopback, to.port())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_server_at_the_loopback_is_replaced_and_the_rest_of_the_file_stays() {
        let stub = "# stub\nnameserver 127.0.0.53\noptions edns0 trust-ad\nsearch mesh\n";
        let (server, own) = replaced(stub).expect("the command cannot reach it");
        assert_eq!(server, at("127.0.0.53:53"));
        assert_eq!(own, "nameserver 198.18.0.2\n# stub\noptions edns0 trust-ad\nsearch mesh\n");
        let (server, _) = replaced("search mesh\n").expect("the C library asks the loopback");
        assert_eq!(server, at("127.0.0.1:53"));
        assert_eq!(replaced("nameserver 10.0.0.1\nnameserver fd00::1\n"), None);
    }

    #[test]
    fn a_server_on_a_link_is_replaced_and_keeps_its_link() {
        for (named, link) in [("lo", 1), ("7", 7), ("no-such-link", 0)] {
            let replaced = replaced(&format!("nameserver fe80::1%{named}\nnameserver 10.0.0.1\n"));
            let (server, own) = replaced.expect("the command cannot reach it");
            assert_eq!(server, at(&format!("[fe80::1%{link}]:53")));
            assert_eq!(own, "nameserver 198.18.0.2\n");
        }
    }

    #[test]
    fn the_far_end_is_this_machine_and_its_name_server_and_all_else_is_itself() {
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let outside = LoopbackEnd::new(Some(at("127.0.0.53:53")));
        assert_eq!(outside.here(at("198.18.0.2:80")), Some(at("127.0.0.1:80")));
        assert_eq!(outside.here(at("198.18.0.2:53")), Some(at("127.0.0.53:53")));
        assert_eq!(outside.here(SocketAddr::new(OUTER_V6.into(), 80)), Some(at("[::1]:80")));
        assert_eq!(outside.here(at("10.7.0.3:53")), None);
        assert_eq!(LoopbackEnd::new(None).here(at("198.18.0.2:53")), Some(at("127.0.0.1:53")));
    }
}
