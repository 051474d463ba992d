//! The node's own listeners, which are no targets: through them a client would come again, as another source.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};

use hopwise_host::netlink::owns_address;

use crate::node::config::{self, NodeConfig};

#[derive(Debug, Default)]
pub(crate) struct Own {
    /// The node's addresses over Hopwise. The kernel knows its own.
    addresses: Vec<IpAddr>,
    ports: BTreeSet<u16>,
}

impl Own {
    /// `socks5` is the server's port, which the kernel may have chosen.
    pub(crate) fn new(config: &NodeConfig, socks5: u16) -> Own {
        let of_links = (0..config.links.len()).flat_map(|nth| config.addresses_of(nth));
        let mut ports = config::ports(config);
        ports.insert(socks5);
        Own { addresses: of_links.map(|own| own.address()).collect(), ports }
    }

    /// Returns whether the node listens there, or cannot know it.
    pub(crate) fn listens_at(&self, target: SocketAddr) -> bool {
        self.is_listener(target).unwrap_or(true)
    }

    /// As [`listens_at`](Own::listens_at). An error is a lack of descriptors or memory: the kernel could not be asked
    /// for its addresses.
    pub(super) fn is_listener(&self, target: SocketAddr) -> io::Result<bool> {
        if !self.ports.contains(&target.port()) {
            return Ok(false);
        }
        self.owns(target.ip())
    }

    /// Returns whether packets to an address lead to this node or to its machine, or if it cannot know it.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        self.owns(address).unwrap_or(true)
    }

    fn owns(&self, address: IpAddr) -> io::Result<bool> {
        let address = address.to_canonical();
        Ok(self.addresses.contains(&address) || owns_address(address)?)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn each_own_address_at_a_port_of_the_node_is_its_own() {
        let text = "node: { name: a, address: [10.7.0.2/24, \"fd07::2/64\"] }\n\
                    links: [ { kind: tun, name: hw0, address: [10.8.0.2/24] }, { kind: tun, name: hw1 } ]\n\
                    forwards:\n  - { listen: mesh:8022, to: 127.0.0.1:22 }\n\
                    \x20 - { listen: 127.0.0.1:8080, to: mesh:10.7.0.3:80 }\n\
                    socks5: { listen: 127.0.0.1:0 }\n";
        let config = config::parse(Path::new("node.yaml"), text).expect("it is sound");
        let own = Own::new(&config, 1080);
        let is_own = |text: &str| own.listens_at(text.parse().expect("an address"));
        for own in
            ["10.7.0.2:8022", "[fd07::2]:1080", "[::ffff:10.8.0.2]:8022", "127.3.0.1:8080", "[::1]:1080"]
        {
            assert!(is_own(own), "{own}");
        }
        assert!(own.has([10, 8, 0, 2].into()) && !own.has([10, 8, 0, 3].into()));
        for other in ["10.7.0.2:22", "127.0.0.1:80", "192.0.2.1:1080", "10.7.0.3:8080"] {
            assert!(!is_own(other), "{other}");
        }
    }
}
