//! The addresses of nodes in a network of routers, and their names in its log.

use std::net::{IpAddr, Ipv4Addr};

pub(crate) fn address(node: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, node as u8 + 1)
}

/// An address behind a router, which serves it.
pub(crate) fn behind(router: Ipv4Addr) -> Ipv4Addr {
    let [_, _, third, last] = router.octets();
    Ipv4Addr::new(10, 77, third, last)
}

pub(super) fn node_of(address: Ipv4Addr) -> usize {
    usize::from(address.octets()[3]) - 1
}

/// The number of a node as text.
pub(crate) fn short(address: IpAddr) -> String {
    let IpAddr::V4(v4) = address else { return address.to_string() };
    (i32::from(v4.octets()[3]) - 1).to_string()
}
