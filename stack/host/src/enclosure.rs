//! A network namespace of one command's own, which takes no privileges: a user namespace gives them inside.
//!
//! Two processes take part. The inner one enters the namespaces, makes the device, hands its descriptor out over a
//! socket, waits, and becomes the command. The outer one stays where it is and serves the device as a link. A device
//! stays in its namespace wherever its descriptor goes, so that no process has to move back.
//!
//! The device is a TUN. If the user may not open `/dev/net/tun`, it is one end of a veth pair, and the descriptor is a
//! packet socket on the other end. The kernel removes all of it with the two processes.

mod device;
mod enter;
mod handover;
mod link;

use std::error::Error;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopwise_core::ip::Prefix;

pub use enter::{Forbidden, enter};
pub use handover::{Given, Inner, Outer, inner, pair};
pub use link::{Datagram, DatagramSink, DatagramWriter, Enclosed};

use crate::netlink::NetlinkError;

/// The command's device.
pub const DEVICE: &str = "hop0";
/// The other end of a pair.
const FAR_END: &str = "hop1";
/// The largest that both kinds of device have. A packet of the command is then never cut into fragments.
pub const MTU: u16 = u16::MAX;

/// The two ends of the device: the command's kernel has the first, and the outer side the second. They are of a range
/// for tests of devices (RFC 2544), which no network routes.
pub const INNER_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// See [`INNER_V4`].
pub const OUTER_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
/// The same in a unique local network (RFC 4193).
pub const INNER_V6: Ipv6Addr = Ipv6Addr::new(0xfd68, 0x6f70, 0x7769, 0x7365, 0, 0, 0, 1);
/// See [`INNER_V6`].
pub const OUTER_V6: Ipv6Addr = Ipv6Addr::new(0xfd68, 0x6f70, 0x7769, 0x7365, 0, 0, 0, 2);

const V4_BITS: u8 = 30;
const V6_BITS: u8 = 64;

/// The addresses of the outer side.
pub fn outer_addresses() -> Vec<Prefix> {
    both(OUTER_V4, OUTER_V6, (V4_BITS, V6_BITS))
}

fn inner_addresses() -> Vec<Prefix> {
    both(INNER_V4, INNER_V6, (V4_BITS, V6_BITS))
}

/// The default routes.
fn everywhere() -> Vec<Prefix> {
    both(Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED, (0, 0))
}

fn both(v4: Ipv4Addr, v6: Ipv6Addr, bits: (u8, u8)) -> Vec<Prefix> {
    let both = [Prefix::new(IpAddr::V4(v4), bits.0), Prefix::new(IpAddr::V6(v6), bits.1)];
    both.into_iter().flatten().collect()
}

/// The kind of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A TUN device.
    Tun,
    /// One end of a veth pair.
    Pair,
}

/// The reason why there is no namespace for the command.
#[derive(Debug)]
pub enum EnclosureError {
    /// The system forbids it.
    Forbidden(Forbidden),
    /// A step failed.
    Step {
        /// The attempt, in a few words.
        doing: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// The kernel refused a setting of the device.
    Device(NetlinkError),
    /// The reason that the inner process gave.
    Said(String),
}

impl EnclosureError {
    fn step(doing: &'static str) -> impl FnOnce(io::Error) -> EnclosureError {
        move |error| EnclosureError::Step { doing, error }
    }
}

impl fmt::Display for EnclosureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EnclosureError::Forbidden(forbidden) => write!(f, "{forbidden}"),
            EnclosureError::Step { doing, error } => write!(f, "{doing}: {error}"),
            EnclosureError::Device(error) => write!(f, "{DEVICE}: {error}"),
            EnclosureError::Said(text) => f.write_str(text),
        }
    }
}

impl Error for EnclosureError {}
