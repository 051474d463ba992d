//! The clients that the proxy accepts, their login, and their allowed targets.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hopwise_core::ip::Prefix;
use hopwise_host::netlink::owns_address;
use hopwise_lab::rules::Network;

use super::protocol::{Login, Method};
use super::translated;
use crate::config::{self, Allow, NodeConfig, Socks5};

#[derive(Clone, Debug, Default)]
pub(crate) struct AccessRules {
    /// Passwords by name; without any, clients need no login.
    pub(super) users: BTreeMap<String, String>,
    pub(super) allow: Allow,
}

impl AccessRules {
    pub(crate) fn new(config: &Socks5) -> AccessRules {
        AccessRules { users: config.users.clone(), allow: config.allow.clone() }
    }

    /// Returns whether any machine that reaches the proxy may use it.
    pub(crate) fn is_open(&self) -> bool {
        self.users.is_empty() && self.allow.clients.is_none()
    }

    pub(super) fn takes(&self, client: IpAddr) -> bool {
        self.allow.clients.as_ref().is_none_or(|networks| has(networks, client.to_canonical()))
    }

    pub(super) fn method(&self) -> Method {
        if self.users.is_empty() { Method::None } else { Method::Password }
    }

    pub(super) fn knows(&self, login: &Login) -> bool {
        let password = self.users.iter().find(|(name, _)| name.as_bytes() == login.name);
        password.is_some_and(|(_, password)| is_same(password.as_bytes(), &login.password))
    }

    /// Returns whether the file allows this target. Without a list that is any address, except those that mean this
    /// machine, this link or a cloud's metadata service. The file has to name those by a network of their own.
    pub(super) fn leads_to(&self, target: IpAddr) -> bool {
        leads_to(self.allow.targets.as_deref(), target)
    }
}

/// The same for a list of networks.
pub(crate) fn leads_to(networks: Option<&[Network]>, target: IpAddr) -> bool {
    let target = target.to_canonical();
    match networks {
        None => !is_near(target),
        Some(networks) if is_near(target) => {
            let near: Vec<Network> =
                networks.iter().copied().filter(|network| is_within_near(network.0)).collect();
            has(&near, target)
        }
        Some(networks) => has(networks, target),
    }
}

fn has(networks: &[Network], address: IpAddr) -> bool {
    networks.iter().any(|network| network.0.contains(address))
}

/// This machine, this link, and EC2's metadata service over IPv6; over IPv4 that address is link-local.
const NEAR: [(IpAddr, u8); 8] = [
    (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8),
    (IpAddr::V4(Ipv4Addr::LOCALHOST), 8),
    (IpAddr::V4(Ipv4Addr::new(169, 254, 0, 0)), 16),
    (IpAddr::V4(Ipv4Addr::BROADCAST), 32),
    (IpAddr::V6(Ipv6Addr::UNSPECIFIED), 128),
    (IpAddr::V6(Ipv6Addr::LOCALHOST), 128),
    (IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)), 10),
    (IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)), 128),
];

fn is_near(address: IpAddr) -> bool {
    is_within_near(Prefix::host(address))
}

/// Returns whether all of a network is near. A network that merely contains near addresses, such as 0.0.0.0/0, does not
/// name them. An IPv6 address that leads to an IPv4 address counts as that IPv4 address.
fn is_within_near(network: Prefix) -> bool {
    is_within_nearest(network) || translated::inner(network).any(is_within_nearest)
}

fn is_within_nearest(network: Prefix) -> bool {
    NEAR.iter().any(|(address, bits)| {
        let range = Prefix::new(*address, *bits);
        network.bits() >= *bits && range.is_ok_and(|range| range.contains(network.address()))
    })
}

/// Compares in constant time, wherever the two differ.
fn is_same(known: &[u8], said: &[u8]) -> bool {
    let differs = known.iter().zip(said).fold(0, |differs, (a, b)| differs | (a ^ b));
    known.len() == said.len() && differs == 0
}

// The node's own listeners, which are no targets: through them a client would come again, as another source.

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
        if self.ports.contains(&target.port()) { self.owns(target.ip()) } else { Ok(false) }
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

    fn access(clients: Option<&[&str]>, targets: Option<&[&str]>) -> AccessRules {
        let networks = |texts: &[&str]| {
            let network = |text: &&str| Network(text.parse().expect("a network"));
            texts.iter().map(network).collect::<Vec<_>>()
        };
        AccessRules {
            users: BTreeMap::new(),
            allow: Allow { clients: clients.map(networks), targets: targets.map(networks) },
        }
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    const NEAR_BY: [&str; 10] = [
        "127.0.0.1",
        "127.9.9.9",
        "::1",
        "169.254.169.254",
        "fe80::1",
        "0.0.0.0",
        "::",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "fd00:ec2::254",
    ];

    #[test]
    fn addresses_that_mean_this_machine_or_link_have_to_be_named() {
        let everything: &[&str] = &["0.0.0.0/0", "::/0"];
        for access in [access(None, None), access(None, Some(everything))] {
            for near in NEAR_BY {
                assert!(!access.leads_to(ip(near)), "{near}");
            }
            assert!(access.leads_to(ip("10.9.0.2")) && access.leads_to(ip("fd07::2")));
        }
        let wide = access(None, Some(&["0.0.0.0/7", "126.0.0.0/7", "fe00::/7"]));
        assert!(NEAR_BY.iter().all(|near| !wide.leads_to(ip(near))));
        let named = access(None, Some(&["127.0.0.0/8", "fe80::/10"]));
        assert!(named.leads_to(ip("127.0.0.1")) && named.leads_to(ip("fe80::1")));
        assert!(!named.leads_to(ip("169.254.169.254")) && !named.leads_to(ip("10.9.0.2")));
    }

    #[test]
    fn an_address_that_a_translator_takes_to_one_of_these_has_to_be_named_too() {
        let near = [
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::127.0.0.1",
            "64:ff9b:1:2:3:4:127.0.0.1",
            // From prefixes of 48, 56 and 64 bits.
            "64:ff9b:1:7f00:0:100::",
            "64:ff9b:1:aa7f:0:1::",
            "64:ff9b:1:aaaa:7f:0:100::",
            "64:ff9b:1:a9fe:a9:fe00::",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            // A Teredo client, and a server.
            "2001:0:4136:e378:8000:63bf:80ff:fffe",
            "2001:0:7f00:1:8000:63bf:3fff:fdd2",
        ];
        let far = [
            "::10.9.0.2",
            "64:ff9b::10.9.0.2",
            "64:ff9b:1::10.9.0.2",
            "64:ff9b:1:a09:0:200::",
            "64:ff9b:1:aa0a:9:2::",
            "64:ff9b:1:aaaa:a:900:200::",
            "2002:a09:2::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:db8::127.0.0.1",
        ];
        for access in [access(None, None), access(None, Some(&["::/0", "64:ff9b::/96", "2002::/16"]))] {
            for text in near {
                assert!(!access.leads_to(ip(text)), "{text}");
            }
            for text in far {
                assert!(access.leads_to(ip(text)), "{text}");
            }
        }
        let named = access(None, Some(&["64:ff9b::7f00:0/104", "2002:7f00::/24"]));
        assert!(named.leads_to(ip("64:ff9b::127.9.0.1")) && named.leads_to(ip("2002:7f00:1::")));
        assert!(!named.leads_to(ip("64:ff9b::169.254.169.254")) && !named.leads_to(ip("2002:a9fe:a9fe::")));
    }

    #[test]
    fn clients_come_from_where_the_file_says() {
        let anywhere = access(None, None);
        assert!(anywhere.takes(ip("192.0.2.1")) && anywhere.is_open());
        let some = access(Some(&["10.7.0.0/16"]), None);
        assert!(some.takes(ip("10.7.9.9")) && some.takes(ip("::ffff:10.7.9.9")) && !some.is_open());
        assert!(!some.takes(ip("192.0.2.1")) && !some.takes(ip("127.0.0.1")));
    }

    #[test]
    fn a_password_is_right_as_a_whole() {
        let access =
            AccessRules { users: [("a".to_owned(), "pass".to_owned())].into(), ..AccessRules::default() };
        let knows = |name: &[u8], password: &[u8]| {
            access.knows(&Login { name: name.to_vec(), password: password.to_vec() })
        };
        assert!(knows(b"a", b"pass"));
        for (name, password) in
            [(&b"a"[..], &b"pas"[..]), (b"a", b"passs"), (b"a", b""), (b"b", b"pass"), (b"", b"")]
        {
            assert!(!knows(name, password));
        }
    }

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
