//! A network namespace of one command's own, which takes no privileges: a user namespace gives them inside.
//!
//! Two processes take part. The inner one enters the namespaces, makes the device, hands its descriptor out over a
//! socket, waits, and becomes the command. The outer one stays where it is and serves the device as a link. A device
//! stays in its namespace wherever its descriptor goes, so that no process has to move back.
//!
//! The device is a TUN. If the user may not open `/dev/net/tun`, it is one end of a veth pair, and the descriptor is a
//! packet socket on the other end. The kernel removes all of it with the two processes.

mod enter;
mod handover;
mod link;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};

use hopwise_core::ip::Prefix;

use crate::link::LinkError;
use crate::namespace::set_switch;
use crate::netlink::{self, DeviceSettings, NetlinkError};
use crate::raw::socket::PacketSocket;
use crate::tun_fast;

pub use enter::{Forbidden, enter};
pub use handover::{Given, InnerEnd, Outer, inner, pair};
pub use link::{Datagram, DatagramSink, DatagramWriter, Enclosed};

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
#[derive(Debug, thiserror::Error)]
pub enum EnclosureError {
    /// The system forbids it.
    #[error("{0}")]
    Forbidden(Forbidden),
    /// A step failed.
    #[error("{doing}: {error}")]
    Step {
        /// The attempt, in a few words.
        doing: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// The kernel refused a setting of the device.
    #[error("{DEVICE}: {0}")]
    Device(NetlinkError),
    /// The reason that the inner process gave.
    #[error("{0}")]
    Said(String),
}

impl EnclosureError {
    fn step(doing: &'static str) -> impl FnOnce(io::Error) -> EnclosureError {
        move |error| EnclosureError::Step { doing, error }
    }
}

/// The Ethernet address of the command's end of a pair. The kernel sends all frames of a device without ARP to the
/// device's own address.
const NEAR_MAC: [u8; 6] = [0x02, b'h', b'o', b'p', 0, 0];

/// The bytes of a socket's data that wait to leave: least, at first and most. By default they would grow to megabytes,
/// for segments are 64 KiB long. A slow path outside would then carry for minutes what the command has sent.
const SEND_BUFFER: &str = "4096 131072 524288";

/// The kernel's queue for the outer side. A packet may have 64 KiB.
const QUEUE_PACKETS: u32 = 8192;

/// Makes the device, and takes it and the loopback up.
fn make() -> Result<(OwnedFd, Kind), EnclosureError> {
    netlink::set_up("lo", true).map_err(EnclosureError::Device)?;
    // The command has the larger buffers if /proc/sys cannot be written.
    let _ = set_switch("ipv4/tcp_wmem", SEND_BUFFER);
    let made = match tun_fast::with_offload(DEVICE) {
        Ok(fd) => (fd, Kind::Tun),
        // A closed /dev/net/tun, or none at all.
        Err(LinkError::System { .. }) => (make_pair()?, Kind::Pair),
        Err(error) => return Err(EnclosureError::Said(error.to_string())),
    };
    let mac = (made.1 == Kind::Pair).then_some(NEAR_MAC);
    let settings = DeviceSettings {
        mtu: Some(MTU),
        mac,
        queue_packets: Some(QUEUE_PACKETS),
        addresses: both(INNER_V4, INNER_V6, (V4_BITS, V6_BITS)),
        routes: everywhere(),
    };
    netlink::configure(DEVICE, &settings).map_err(EnclosureError::Device)?;
    let nonblocking = rustix::io::ioctl_fionbio(made.0.as_fd(), true);
    nonblocking
        .map_err(|error| EnclosureError::Step { doing: "make it non-blocking", error: error.into() })?;
    Ok(made)
}

/// A pair whose near end resolves no addresses: all its packets cross, whatever their next hop is.
fn make_pair() -> Result<OwnedFd, EnclosureError> {
    netlink::make_pair(DEVICE, FAR_END).map_err(EnclosureError::Device)?;
    // The far end is a wire, and its kernel has nothing to say there. If it speaks, nothing answers.
    let _ = set_switch(&format!("ipv6/conf/{FAR_END}/disable_ipv6"), "1");
    let far = DeviceSettings { mtu: Some(MTU), ..DeviceSettings::default() };
    netlink::configure(FAR_END, &far).map_err(EnclosureError::Device)?;
    netlink::resolve_nothing(DEVICE).map_err(EnclosureError::Device)?;
    let (socket, _) = PacketSocket::open(FAR_END).map_err(|error| EnclosureError::Said(error.to_string()))?;
    Ok(socket.into_descriptor())
}
