//! Devices, addresses and routes, told to the kernel over rtnetlink.

mod carrier;
mod detour;
pub(crate) mod message;
mod on_loan;
mod sockets;

use std::error::Error;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use futures_util::StreamExt;
use netlink_packet_route::AddressFamily as AddressFamilyOfRoute;
use netlink_packet_route::address::{AddressAttribute, AddressFlags};
use netlink_packet_route::link::LinkAttribute;
use netlink_packet_route::route::{RouteAttribute, RouteMessage};
use rtnetlink::{Handle, LinkUnspec, RouteMessageBuilder};
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

use hopwise_core::ip::Prefix;

use crate::namespace::set_switch;

pub use carrier::CarrierWatch;
pub use detour::{Detour, DetourConfig, End};
use on_loan::Added;
pub(crate) use on_loan::{Before, OnLoan};
pub use sockets::is_abandoned;

/// What a device shall have; what it has already stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceSettings {
    pub mtu: Option<u16>,
    /// The address of its own on an Ethernet.
    pub mac: Option<[u8; 6]>,
    /// How many packets the kernel lets wait for it.
    pub queue_packets: Option<u32>,
    /// The kernel's own addresses there.
    pub addresses: Vec<Prefix>,
    /// What the kernel sends there.
    pub routes: Vec<Prefix>,
}

/// What the kernel would not do.
#[derive(Debug)]
pub enum NetlinkError {
    NoDevice(io::Error),
    System {
        doing: &'static str,
        error: io::Error,
    },
    Kernel {
        doing: String,
        error: Box<rtnetlink::Error>,
    },
    /// What is for this subnet goes elsewhere.
    RouteTaken(Prefix),
}

impl fmt::Display for NetlinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetlinkError::NoDevice(error) => write!(f, "there is no such device: {error}"),
            NetlinkError::System { doing, error } => write!(f, "{doing}: {error}"),
            NetlinkError::Kernel { doing, error } => write!(f, "{doing}: {error}"),
            NetlinkError::RouteTaken(route) => write!(
                f,
                "a route to {route} leads elsewhere already (`ip route` shows it): take another subnet, or remove it"
            ),
        }
    }
}

impl Error for NetlinkError {}

/// Sets MTU, addresses and routes of a device and takes it up.
pub fn configure(device: &str, settings: &DeviceSettings) -> Result<(), NetlinkError> {
    apply(device, settings, &mut Added::default())
}

/// Notes what it added also where it fails half-way.
fn apply(device: &str, settings: &DeviceSettings, added: &mut Added) -> Result<(), NetlinkError> {
    let index = index_of(device)?;
    if settings.addresses.iter().any(|prefix| prefix.address().is_ipv6()) {
        keep_addresses(device);
    }
    blocking(async move |handle| {
        let mut link = LinkUnspec::new_with_index(index).up();
        if let Some(mtu) = settings.mtu {
            link = link.mtu(u32::from(mtu));
        }
        if let Some(mac) = settings.mac {
            link = link.address(mac.to_vec());
        }
        if let Some(packets) = settings.queue_packets {
            link = link.append_extra_attribute(LinkAttribute::TxQueueLen(packets));
        }
        let request = handle.link().set(link.build()).execute().await;
        request.map_err(|error| kernel("take it up", error))?;
        for address in &settings.addresses {
            let mut request = handle.address().add(index, address.address(), address.bits());
            if address.address().is_ipv6() {
                // There is nobody on a new device to have the address already, and waiting for that would hold up
                // whoever wants to use it now.
                request.message_mut().attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
            }
            let message = request.message_mut().clone();
            let done = request.execute().await;
            if is_new(done).map_err(|error| kernel(&format!("add address {address}"), error))? {
                added.addresses.push(message);
            }
        }
        for route in &settings.routes {
            let message = route_message(index, route)?;
            let failed = |error| kernel(&format!("add a route to {route}"), error);
            let done = handle.route().add(message.clone()).execute().await;
            if is_new(done).map_err(failed)? {
                added.routes.push(message);
            } else if !leads_here(&handle, &message).await.map_err(failed)? {
                // To take it over would cut off who is reached by it, and to pass it over, us.
                return Err(NetlinkError::RouteTaken(*route));
            }
        }
        Ok(())
    })
}

/// Whether a route that is there leads through the same device as ours would.
async fn leads_here(handle: &Handle, ours: &RouteMessage) -> Result<bool, rtnetlink::Error> {
    // Asked for a destination, the kernel would say which route a packet takes, and not which route is this one.
    let mut asked = RouteMessage::default();
    asked.header.address_family = ours.header.address_family;
    let mut routes = Box::pin(handle.route().get(asked).execute());
    while let Some(there) = routes.next().await {
        let there = there?;
        if is_the_same(&there, ours) {
            return Ok(devices_of(&there).eq(devices_of(ours)));
        }
    }
    Ok(true)
}

/// Whether the kernel has no room for both.
fn is_the_same(there: &RouteMessage, ours: &RouteMessage) -> bool {
    let destination = |route: &RouteMessage| {
        let mut attributes = route.attributes.iter();
        attributes.find_map(|attribute| match attribute {
            // A default route has none in what the kernel tells.
            RouteAttribute::Destination(address) if route.header.destination_prefix_length > 0 => {
                Some(address.clone())
            }
            _ => None,
        })
    };
    let metric = |route: &RouteMessage| {
        let mut attributes = route.attributes.iter();
        attributes.find_map(|attribute| match attribute {
            RouteAttribute::Priority(metric) => Some(*metric),
            _ => None,
        })
    };
    // What IPv6 takes where none is given (IP6_RT_PRIO_USER).
    let usual = (ours.header.address_family == AddressFamilyOfRoute::Inet6).then_some(1024);
    there.header.table == ours.header.table
        && there.header.destination_prefix_length == ours.header.destination_prefix_length
        && there.header.tos == ours.header.tos
        && destination(there) == destination(ours)
        && metric(there) == metric(ours).or(usual)
}

/// None where it leads nowhere, or through several.
fn devices_of(route: &RouteMessage) -> impl Iterator<Item = u32> {
    route.attributes.iter().filter_map(|attribute| match attribute {
        RouteAttribute::Oif(index) => Some(*index),
        _ => None,
    })
}

/// Whether something was added that was not there.
fn is_new(added: Result<(), rtnetlink::Error>) -> Result<bool, rtnetlink::Error> {
    match added {
        Ok(()) => Ok(true),
        Err(error) if code_of(&error) == libc::EEXIST => Ok(false),
        Err(error) => Err(error),
    }
}

/// 0 where it was not the kernel that refused.
fn code_of(error: &rtnetlink::Error) -> i32 {
    match error {
        rtnetlink::Error::NetlinkError(error) => -error.raw_code(),
        _ => 0,
    }
}

/// Of a device.
fn keeps_addresses(device: &str) -> String {
    format!("ipv6/conf/{device}/keep_addr_on_down")
}

/// A device that goes down loses its addresses of IPv6 otherwise, and nobody gives them back when it comes up.
fn keep_addresses(device: &str) {
    if let Err(error) = set_switch(&keeps_addresses(device), "1") {
        tracing::warn!(device, %error, "its addresses of IPv6 will go when it goes down");
    }
}

/// Takes a device up or down.
pub fn set_up(device: &str, is_up: bool) -> Result<(), NetlinkError> {
    let index = index_of(device)?;
    blocking(async move |handle| {
        let link = LinkUnspec::new_with_index(index);
        let link = if is_up { link.up() } else { link.down() };
        handle.link().set(link.build()).execute().await.map_err(|error| kernel("set its state", error))
    })
}

/// The device's number.
pub fn index_of(device: &str) -> Result<u32, NetlinkError> {
    let socket = socket()?;
    netdevice::name_to_index(socket.as_fd(), device).map_err(|error| NetlinkError::NoDevice(error.into()))
}

/// What the device of that number is called now.
fn name_of(index: u32) -> Result<String, NetlinkError> {
    let socket = socket()?;
    netdevice::index_to_name(socket.as_fd(), index).map_err(|error| NetlinkError::NoDevice(error.into()))
}

/// Whom one asks about devices.
fn socket() -> Result<OwnedFd, NetlinkError> {
    socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(|error| NetlinkError::System { doing: "open a socket", error: error.into() })
}

fn route_message(index: u32, route: &Prefix) -> Result<RouteMessage, NetlinkError> {
    let bits = route.bits();
    let network = network_of(route);
    RouteMessageBuilder::<IpAddr>::new()
        .destination_prefix(network, bits)
        .map(|builder| builder.output_interface(index).build())
        .map_err(|error| NetlinkError::System {
            doing: "write a route",
            error: io::Error::new(io::ErrorKind::InvalidInput, error.to_string()),
        })
}

/// The kernel refuses routes with host bits.
fn network_of(prefix: &Prefix) -> IpAddr {
    match prefix.address() {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix.bits())).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix.bits())).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    }
}

pub(crate) fn kernel(doing: &str, error: rtnetlink::Error) -> NetlinkError {
    NetlinkError::Kernel { doing: doing.to_owned(), error: Box::new(error) }
}

/// rtnetlink is asynchronous and this is called from anywhere, also from inside a runtime; so it gets a thread and a
/// runtime of its own. Threads inherit the network namespace of the one that made them.
fn blocking<T: Send>(
    work: impl AsyncFnOnce(Handle) -> Result<T, NetlinkError> + Send,
) -> Result<T, NetlinkError> {
    let system = |doing| move |error| NetlinkError::System { doing, error };
    thread::scope(|scope| {
        let worker = thread::Builder::new().name("netlink".into());
        let running = worker.spawn_scoped(scope, || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
            let runtime = runtime.map_err(system("start a runtime"))?;
            runtime.block_on(async {
                let (connection, handle, _) =
                    rtnetlink::new_connection().map_err(system("open a netlink socket"))?;
                tokio::spawn(connection);
                work(handle).await
            })
        });
        let running = running.map_err(system("start a thread"))?;
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_has_no_host_bits() {
        let network = |text: &str| network_of(&text.parse().unwrap()).to_string();
        assert_eq!(network("10.7.3.9/24"), "10.7.3.0");
        assert_eq!(network("10.7.3.9/0"), "0.0.0.0");
        assert_eq!(network("fd07::1:2/64"), "fd07::");
        assert_eq!(network("fd07::1/128"), "fd07::1");
    }

    #[test]
    fn a_device_that_is_not_there_is_named_as_such() {
        assert!(matches!(index_of("nosuchdevice"), Err(NetlinkError::NoDevice(_))));
    }
}
