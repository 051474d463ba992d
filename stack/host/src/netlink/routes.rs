//! Finds the routes that the kernel has for a subnet.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use futures_util::{StreamExt, TryStreamExt};
use hopwise_core::ip::Prefix;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteType,
};
use rtnetlink::{Handle, IpVersion, RouteMessageBuilder};

use super::{DeviceSettings, NetlinkError, NetlinkResult, device, kernel};

/// The metrics of IPv6 routes without one: of a route (IP6_RT_PRIO_USER) and of an address (IP6_RT_PRIO_ADDRCONF). IPv4
/// routes get 0.
const METRIC_V6: u32 = 1024;
const METRIC_V6_OF_ADDRESS: u32 = 256;

/// A subnet whose traffic shall go to a device, and the metric of its route.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubnetRoute {
    subnet: Prefix,
    metric: u32,
}

impl SubnetRoute {
    /// The subnets that need a route to the device. Single addresses are in the kernel's own table, which comes first.
    /// Link-local subnets exist on each interface.
    pub(super) fn all_of(settings: &DeviceSettings) -> Vec<SubnetRoute> {
        let has_subnet = |address: &&Prefix| **address != Prefix::host(address.address());
        let is_link_local =
            |address| matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
        let by_addresses = settings.addresses.iter().filter(has_subnet);
        let by_addresses = by_addresses.map(|subnet| SubnetRoute::new(*subnet, METRIC_V6_OF_ADDRESS));
        let by_routes = settings.routes.iter().map(|subnet| SubnetRoute::by_route(*subnet));
        by_addresses.chain(by_routes).filter(|wanted| !is_link_local(wanted.subnet.address())).collect()
    }

    fn by_route(subnet: Prefix) -> SubnetRoute {
        SubnetRoute::new(subnet, METRIC_V6)
    }

    fn new(subnet: Prefix, metric_v6: u32) -> SubnetRoute {
        SubnetRoute { subnet, metric: if subnet.address().is_ipv6() { metric_v6 } else { 0 } }
    }

    fn family(&self) -> AddressFamily {
        if self.subnet.address().is_ipv6() { AddressFamily::Inet6 } else { AddressFamily::Inet }
    }

    /// Returns whether the route is to this subnet, with any metric. If two routes are, the smaller metric takes all
    /// traffic.
    fn is_of(&self, there: &RouteMessage) -> bool {
        let to = there.attributes.iter().find_map(|attribute| match attribute {
            RouteAttribute::Destination(RouteAddress::Inet(to)) => Some(IpAddr::V4(*to)),
            RouteAttribute::Destination(RouteAddress::Inet6(to)) => Some(IpAddr::V6(*to)),
            _ => None,
        });
        let header = &there.header;
        // The kernel reports a default route without a destination.
        let is_default = header.destination_prefix_length == 0;
        header.address_family == self.family()
            // The kernel lists cached facts of a destination, such as its path MTU, among the routes.
            && !header.flags.contains(RouteFlags::Cloned)
            && header.table == RouteHeader::RT_TABLE_MAIN
            && header.tos == 0
            && header.destination_prefix_length == self.subnet.bits()
            && (is_default || to == Some(network_of(&self.subnet)))
    }

    fn is_taken_by(&self, there: &RouteMessage, index: u32) -> bool {
        self.is_of(there)
            && match there.header.kind {
                // A route through several devices has no device here.
                RouteType::Unicast => !devices_of(there).eq([index]),
                // With a larger metric, it applies only when there is no other route.
                RouteType::BlackHole | RouteType::Unreachable | RouteType::Prohibit | RouteType::Throw => {
                    metric_of(there) <= self.metric
                }
                _ => false,
            }
    }
}

/// Refuses a subnet with a route elsewhere. Otherwise our route would cut off the hosts behind that one, or get no
/// traffic.
pub(super) async fn check_free(handle: &Handle, index: u32, wanted: &[SubnetRoute]) -> NetlinkResult {
    let look = |there: &RouteMessage| match wanted.iter().find(|wanted| wanted.is_taken_by(there, index)) {
        Some(taken) => {
            Err(NetlinkError::RouteTaken { subnet: taken.subnet, of: holder(there, &taken.subnet) })
        }
        None => Ok(()),
    };
    each_like(handle, wanted, look).await
}

/// The interface of a route, and its address, if the route belongs to an address in this subnet.
fn holder(there: &RouteMessage, subnet: &Prefix) -> Option<(String, Prefix)> {
    let index = devices_of(there).next()?;
    let is_in = |own: &Prefix| own.bits() == subnet.bits() && network_of(own) == network_of(subnet);
    let address = device::addresses(index).ok()?.into_iter().map(|own| own.prefix).find(is_in)?;
    Some((device::device(index).ok()?.name, address))
}

/// Those of these routes that the device does not have.
pub(super) async fn missing(handle: &Handle, index: u32, routes: &[Prefix]) -> NetlinkResult<Vec<Prefix>> {
    let wanted: Vec<_> = routes.iter().map(|route| SubnetRoute::by_route(*route)).collect();
    let mut missing = routes.to_vec();
    let look = |there: &RouteMessage| {
        let is_there = |wanted: &SubnetRoute| {
            wanted.is_of(there) && metric_of(there) == wanted.metric && devices_of(there).eq([index])
        };
        missing.retain(|route| !is_there(&SubnetRoute::by_route(*route)));
        Ok(())
    };
    each_like(handle, &wanted, look).await?;
    Ok(missing)
}

/// Looks at each route of the families of these.
async fn each_like(
    handle: &Handle,
    wanted: &[SubnetRoute],
    mut look: impl FnMut(&RouteMessage) -> NetlinkResult,
) -> NetlinkResult {
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        if !wanted.iter().any(|wanted| wanted.family() == family) {
            continue;
        }
        // With a destination, the kernel would return the route of one packet alone.
        let mut asked = RouteMessage::default();
        asked.header.address_family = family;
        let mut routes = Box::pin(handle.route().get(asked).execute());
        while let Some(there) = routes.next().await {
            look(&there.map_err(kernel("list the routes"))?)?;
        }
    }
    Ok(())
}

fn metric_of(route: &RouteMessage) -> u32 {
    let metric = route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Priority(metric) => Some(*metric),
        _ => None,
    });
    metric.unwrap_or(0)
}

fn devices_of(route: &RouteMessage) -> impl Iterator<Item = u32> {
    route.attributes.iter().filter_map(|attribute| match attribute {
        RouteAttribute::Oif(index) => Some(*index),
        _ => None,
    })
}

pub(super) fn route_message(index: u32, route: &Prefix) -> NetlinkResult<RouteMessage> {
    let bits = route.bits();
    let network = network_of(route);
    // Without a metric, the kernel would remove the first route that it finds.
    let metric = SubnetRoute::by_route(*route).metric;
    new_route(network, bits, |route| route.output_interface(index).priority(metric))
}

/// A route to a network, with what `complete` adds.
pub(crate) fn new_route(
    network: IpAddr,
    bits: u8,
    complete: impl FnOnce(RouteMessageBuilder<IpAddr>) -> RouteMessageBuilder<IpAddr>,
) -> NetlinkResult<RouteMessage> {
    let route = RouteMessageBuilder::<IpAddr>::new().destination_prefix(network, bits);
    route.map(|route| complete(route).build()).map_err(|error| NetlinkError::System {
        doing: "write a route",
        error: io::Error::new(io::ErrorKind::InvalidInput, error.to_string()),
    })
}

/// All routes of a version of IP.
pub(crate) async fn all_of(handle: &Handle, version: IpVersion) -> NetlinkResult<Vec<RouteMessage>> {
    let any = match version {
        IpVersion::V4 => RouteMessageBuilder::<Ipv4Addr>::new().build(),
        IpVersion::V6 => RouteMessageBuilder::<Ipv6Addr>::new().build(),
    };
    handle.route().get(any).execute().try_collect().await.map_err(kernel("list the routes"))
}

/// The network of a prefix: the kernel refuses routes with host bits.
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
