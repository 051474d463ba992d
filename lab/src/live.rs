//! Live worlds: the nodes of a plan are processes in real time, and its programs run over real sockets.
//!
//! This room holds the parts without a device: the plan's radios in real time ([`air`]), an end node's machine, and the
//! messages between a trial and its nodes ([`part`]) or its guest ([`guest`]). The command runs the processes.

pub mod air;
pub mod guest;
mod node;
pub mod part;

use std::net::IpAddr;

pub use node::{LOOK_EVERY, LiveNode};

/// The address of a node's programs, behind the node's kernel; 10.64.0.1 is the first one's.
pub fn address_of_programs(node: u32) -> IpAddr {
    let number = 0x0a40_0001 + node;
    IpAddr::from(number.to_be_bytes())
}
