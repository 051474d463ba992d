//! A host behind a node: a network namespace without a name, and a pair of devices that joins it with the node's.

use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::{fmt, io};

use hopwise_core::ip::Prefix;
use rtnetlink::LinkUnspec;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::namespace::{Namespace, NamespaceError, OWN_NAMESPACE};
use crate::netlink::{self, DeviceSettings, NetlinkResult};
use crate::sys;

/// The Ethernet address of both devices. Without ARP the kernel sends all frames of a device to the device's own
/// address.
const MAC: [u8; 6] = [0x02, b'h', b'o', b's', b't', 0];

/// A host behind a node, and the devices between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behind<'a> {
    /// The name of the node's device.
    pub near: &'a str,
    /// The name of the host's device. All its packets go there.
    pub far: &'a str,
    /// The host's address. The node gets a route to it.
    pub address: Ipv4Addr,
    /// The largest packet on the devices.
    pub mtu: u16,
}

/// Runs `work` on a thread of a new host behind a namespace. The host ends with the last process that `work` starts.
/// The devices end with it.
pub fn run_behind<T: Send>(
    namespace: &Namespace,
    host: &Behind<'_>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, NamespaceError> {
    namespace.enter(|| {
        let near = File::open(OWN_NAMESPACE)?;
        sys::enter_own_network()?;
        let far = File::open(OWN_NAMESPACE)?;
        let enter =
            |namespace: &File| move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network));
        let own = [Prefix::host(host.address.into())];
        enter(&near)?;
        netlink::make_pair(host.near, host.far).map_err(failed)?;
        hand_over(host.far, &far).map_err(failed)?;
        furnish((host.near, host.mtu), (&[], &own)).map_err(failed)?;
        enter(&far)?;
        netlink::set_up("lo", true).map_err(failed)?;
        let everywhere = Prefix::new(Ipv4Addr::UNSPECIFIED.into(), 0).map_err(failed)?;
        furnish((host.far, host.mtu), (&own, &[everywhere])).map_err(failed)?;
        Ok(work())
    })
}

fn failed(error: impl fmt::Display) -> io::Error {
    io::Error::other(error.to_string())
}

/// Moves a device of this namespace into another namespace.
fn hand_over(device: &str, to: &File) -> NetlinkResult {
    let index = netlink::index_of(device)?;
    netlink::blocking(async |handle| {
        let link = LinkUnspec::new_with_index(index).setns_by_fd(to.as_raw_fd()).build();
        handle.link().set(link).execute().await.map_err(netlink::kernel("hand a device over"))
    })
}

fn furnish((device, mtu): (&str, u16), (addresses, routes): (&[Prefix], &[Prefix])) -> NetlinkResult {
    netlink::resolve_nothing(device)?;
    let settings = DeviceSettings {
        mtu: Some(mtu),
        mac: Some(MAC),
        addresses: addresses.to_vec(),
        routes: routes.to_vec(),
        ..DeviceSettings::default()
    };
    netlink::configure(device, &settings)
}
