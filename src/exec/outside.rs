//! Addresses of the command's network that stand for something on this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hopwise_host::enclosure::{OUTER_V4, OUTER_V6};

/// The port of name servers.
pub(super) const DNS: u16 = 53;

/// The far end of the command's device is this machine's loopback, and its port 53 the machine's own name server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outside {
    server: Option<SocketAddr>,
}

impl Outside {
    pub(super) fn new(server: Option<SocketAddr>) -> Outside {
        Outside { server }
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

    #[test]
    fn the_far_end_is_this_machine_and_its_name_server_and_all_else_is_itself() {
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let outside = Outside::new(Some(at("127.0.0.53:53")));
        assert_eq!(outside.here(at("198.18.0.2:80")), Some(at("127.0.0.1:80")));
        assert_eq!(outside.here(at("198.18.0.2:53")), Some(at("127.0.0.53:53")));
        assert_eq!(outside.here(SocketAddr::new(OUTER_V6.into(), 80)), Some(at("[::1]:80")));
        assert_eq!(outside.here(at("10.7.0.3:53")), None);
        assert_eq!(Outside::new(None).here(at("198.18.0.2:53")), Some(at("127.0.0.1:53")));
    }
}
