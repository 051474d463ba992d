//! Names of nodes and of their radios.

use std::net::IpAddr;

use hopwise_core::LinkId;

/// Every node's name for its radio; wires follow.
pub(super) const RADIO: LinkId = LinkId(0);

/// The address of a node; 10.0.0.1 is the first one's.
pub fn address_of(node: u32) -> IpAddr {
    let number = 0x0a00_0001 + node;
    IpAddr::from(number.to_be_bytes())
}
