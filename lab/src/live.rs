//! Live worlds: the nodes of a plan are processes in real time, and its programs run over real sockets.
//!
//! This room holds the parts without a device: the plan's radios in real time ([`air`]), an end node's machine, and the
//! messages between a trial and its nodes ([`part`]) or its guest ([`guest`]). Hosts of a mesh have their own radios,
//! and tell what they see of them ([`mesh`]). The command runs the processes.

pub mod air;
pub mod guest;
pub mod mesh;
mod node;
pub mod part;

use std::net::IpAddr;

use crate::sim::{Arm, address_of};
pub use node::{LOOK_EVERY, LiveNode};

/// The network of the nodes' addresses and of their programs'.
pub const NETWORK: &str = "10.0.0.0/9";

/// The address of a node's programs, behind the node's kernel; 10.64.0.1 is the first one's.
pub fn address_of_programs(node: u32) -> IpAddr {
    let number = 0x0a40_0001 + node;
    IpAddr::from(number.to_be_bytes())
}

/// The address of a node's TCP: its programs', or its kernel's in an arm of the kernel.
pub fn address_of_tcp(arm: &Arm, node: u32) -> IpAddr {
    if arm.algorithm().is_some() { address_of(node) } else { address_of_programs(node) }
}

/// The address of the host behind a node, where an arm has one; 10.96.0.1 is the first one's.
pub fn address_of_host(node: u32) -> IpAddr {
    let number = 0x0a60_0001 + node;
    IpAddr::from(number.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use hopwise_core::ip::Prefix;

    use super::*;

    #[test]
    fn the_network_has_the_addresses_of_nodes_and_of_programs() {
        let network: Prefix = NETWORK.parse().expect("a network");
        for node in [0, 199] {
            let all = [address_of(node), address_of_programs(node), address_of_host(node)];
            assert!(all.iter().all(|address| network.contains(*address)));
        }
    }
}
