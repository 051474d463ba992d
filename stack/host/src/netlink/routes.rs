//! Which way the kernel sends what is for a subnet.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use futures_util::StreamExt;
use hopwise_core::ip::Prefix;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::{RouteAttribute, RouteMessage};
use rtnetlink::{Handle, RouteMessageBuilder};

use super::NetlinkError;

/// Whether a route that is there leads through the same device as ours would.
pub(super) async fn leads_here(handle: &Handle, ours: &RouteMessage) -> Result<bool, rtnetlink::Error> {
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
    let usual = (ours.header.address_family == AddressFamily::Inet6).then_some(1024);
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

pub(super) fn route_message(index: u32, route: &Prefix) -> Result<RouteMessage, NetlinkError> {
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
pub(super) fn network_of(prefix: &Prefix) -> IpAddr {
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
}
