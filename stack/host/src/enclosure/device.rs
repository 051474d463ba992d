//! The command's device and its settings, made inside the namespace.

use std::os::fd::{AsFd, OwnedFd};

use super::{DEVICE, EnclosureError, FAR_END, Kind, MTU, everywhere, inner_addresses};
use crate::link::LinkError;
use crate::namespace::set_switch;
use crate::netlink::{self, DeviceSettings};
use crate::raw::socket::PacketSocket;
use crate::tun_fast;

/// The Ethernet address of the command's end of a pair. The kernel sends all frames of a device without ARP to the
/// device's own address.
pub(super) const NEAR_MAC: [u8; 6] = [0x02, b'h', b'o', b'p', 0, 0];

/// The bytes of a socket's data that wait to leave: least, at first and most. By default they would grow to megabytes,
/// for segments are 64 KiB long. A slow path outside would then carry for minutes what the command has sent.
const SEND_BUFFER: &str = "4096 131072 524288";

/// The kernel's queue for the outer side. A packet may have 64 KiB.
const QUEUE_PACKETS: u32 = 8192;

/// Makes the device, and takes it and the loopback up.
pub(super) fn make() -> Result<(OwnedFd, Kind), EnclosureError> {
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
        addresses: inner_addresses(),
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
    // The far end is a wire, and its kernel has nothing to say there. If it speaks all the same, nothing answers.
    let _ = set_switch(&format!("ipv6/conf/{FAR_END}/disable_ipv6"), "1");
    let far = DeviceSettings { mtu: Some(MTU), ..DeviceSettings::default() };
    netlink::configure(FAR_END, &far).map_err(EnclosureError::Device)?;
    netlink::resolve_nothing(DEVICE).map_err(EnclosureError::Device)?;
    let (socket, _) = PacketSocket::open(FAR_END).map_err(|error| EnclosureError::Said(error.to_string()))?;
    Ok(socket.into_descriptor())
}
