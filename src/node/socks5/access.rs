//! The clients that the proxy accepts, their login, and their allowed targets.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopwise_core::ip::Prefix;
use hopwise_lab::rules::Network;

use super::protocol::{Login, Method};
use super::translated;
use crate::node::config::{Allow, Socks5};

#[derive(Clone, Debug, Default)]
pub(crate) struct Access {
    /// Passwords by name; without any, clients need no login.
    pub(super) users: BTreeMap<String, String>,
    pub(super) allow: Allow,
}

impl Access {
    pub(crate) fn new(config: &Socks5) -> Access {
        Access { users: config.users.clone(), allow: config.allow.clone() }
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
/// name them. IPv6 addresses that lead to IPv4 ones count as those.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn access(clients: Option<&[&str]>, targets: Option<&[&str]>) -> Access {
        let networks = |texts: &[&str]| {
            let network = |text: &&str| Network(text.parse().expect("a network"));
            texts.iter().map(network).collect::<Vec<_>>()
        };
        Access {
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
        let access = Access { users: [("a".to_owned(), "pass".to_owned())].into(), ..Access::default() };
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
}
