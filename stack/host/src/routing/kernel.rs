//! Routes to single hosts in the kernel's main table, and the devices that its routes lead to. A mark makes a route
//! ours: after a crash it is found again. All daemons share the mark, but the source address is this daemon's alone.

use std::net::{IpAddr, Ipv4Addr};
use std::{fs, io};

use hopwise_core::ip::Prefix;
use hopwise_core::narrow::as_u8;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::link::LinkAttribute;
use netlink_packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteScope};
use rtnetlink::{Handle, IpVersion, RouteMessageBuilder};
use tokio::runtime::Runtime;

use super::claim;
use crate::netlink::{self, NetlinkError, NetlinkResult, OURS};
use crate::own_file::NameLock;

/// The route to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRoute {
    /// The interface's number.
    pub device: u32,
    /// The host itself, for a neighbour.
    pub next_hop: Ipv4Addr,
}

/// The routes of one daemon. Dropping it removes them.
#[derive(Debug)]
pub struct KernelRoutes {
    runtime: Runtime,
    handle: Handle,
    source: Ipv4Addr,
    /// Tells that the daemon of these routes runs.
    _claim: Option<NameLock>,
}

impl KernelRoutes {
    /// Removes routes that an earlier daemon left. Packets of this machine leave with `source`.
    pub fn open(source: Ipv4Addr) -> NetlinkResult<KernelRoutes> {
        let system = |doing| move |error| NetlinkError::System { doing, error };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        let runtime = runtime.map_err(system("start a runtime"))?;
        let opened = runtime.block_on(async {
            let (connection, handle, _) = rtnetlink::new_connection()?;
            tokio::spawn(connection);
            io::Result::Ok(handle)
        });
        let handle = opened.map_err(system("open a netlink socket"))?;
        let routes = KernelRoutes { runtime, handle, source, _claim: claim(source) };
        routes.clear()?;
        Ok(routes)
    }

    /// Sets a route, and replaces an earlier one of ours. A route of another program to that host stays, and the result
    /// is `RouteTaken`.
    pub fn set(&self, dst: Ipv4Addr, route: HostRoute) -> NetlinkResult {
        if self.add(dst, route)? {
            return Ok(());
        }
        // A replacement by the kernel would take any program's route; a removal takes only ours.
        self.remove(dst)?;
        if self.add(dst, route)? {
            return Ok(());
        }
        Err(NetlinkError::RouteTaken { subnet: Prefix::host(dst.into()), of: None })
    }

    /// Sets a route of ours again that may be gone. Returns whether it was.
    pub fn restore(&self, dst: Ipv4Addr, route: HostRoute) -> io::Result<bool> {
        self.add(dst, route).map_err(|error| match error.code() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::other(error),
        })
    }

    /// Adds a route. Returns false if there was one to that host.
    fn add(&self, dst: Ipv4Addr, route: HostRoute) -> NetlinkResult<bool> {
        let request = self.handle.route().add(self.message(dst, Some(route)));
        let done = netlink::is_new(self.runtime.block_on(request.execute()));
        done.map_err(netlink::kernel(format_args!("add a route to {dst}")))
    }

    /// Removes a route of ours; it succeeds if the route is gone already.
    pub fn remove(&self, dst: Ipv4Addr) -> NetlinkResult {
        let done = self.runtime.block_on(self.handle.route().del(self.message(dst, None)).execute());
        match done {
            Err(rtnetlink::Error::NetlinkError(message)) if message.raw_code() == -libc::ESRCH => Ok(()),
            done => done.map_err(netlink::kernel(format_args!("remove the route to {dst}"))),
        }
    }

    /// The kernel's neighbours on that device, with their Ethernet addresses.
    pub fn neighbours(&self, device: u32) -> NetlinkResult<Vec<(Ipv4Addr, [u8; 6])>> {
        use futures_util::TryStreamExt;
        let asked = self.handle.neighbours().get().set_address_family(AddressFamily::Inet).execute();
        let all: Vec<_> =
            self.runtime.block_on(asked.try_collect()).map_err(netlink::kernel("list the neighbours"))?;
        Ok(all.iter().filter(|known| known.header.ifindex == device).filter_map(neighbour).collect())
    }

    /// The largest packet that a device carries in one piece.
    pub fn mtu(&self, device: u32) -> NetlinkResult<u16> {
        use futures_util::TryStreamExt;
        let asked = self.handle.link().get().match_index(device).execute();
        let found: Vec<_> =
            self.runtime.block_on(asked.try_collect()).map_err(netlink::kernel("ask for a device's MTU"))?;
        let mtu = found.iter().flat_map(|link| &link.attributes).find_map(|attribute| match attribute {
            LinkAttribute::Mtu(mtu) => Some(*mtu),
            _ => None,
        });
        Ok(mtu.map_or(u16::MAX, |mtu| u16::try_from(mtu).unwrap_or(u16::MAX)))
    }

    /// Removes every route of ours.
    pub fn clear(&self) -> NetlinkResult {
        self.runtime.block_on(async {
            for route in self.ours().await? {
                // A route may be gone already.
                let _ = self.handle.route().del(route).execute().await;
            }
            Ok(())
        })
    }

    async fn ours(&self) -> NetlinkResult<Vec<RouteMessage>> {
        let source = RouteAttribute::PrefSource(RouteAddress::Inet(self.source));
        let mut ours = all_of_ours(&self.handle).await?;
        ours.retain(|route| route.attributes.contains(&source));
        Ok(ours)
    }

    fn message(&self, dst: Ipv4Addr, route: Option<HostRoute>) -> RouteMessage {
        let builder = RouteMessageBuilder::<Ipv4Addr>::new().destination_prefix(dst, 32).protocol(OURS);
        let builder = builder.pref_source(self.source);
        match route {
            None => builder.scope(RouteScope::NoWhere).build(),
            Some(HostRoute { device, next_hop }) => {
                let builder = builder.output_interface(device);
                if next_hop == dst {
                    builder.scope(RouteScope::Link).build()
                } else {
                    builder.gateway(next_hop).onlink().build()
                }
            }
        }
    }
}

/// The routes of all daemons.
pub(super) async fn all_of_ours(handle: &Handle) -> NetlinkResult<Vec<RouteMessage>> {
    let all = netlink::all_of(handle, IpVersion::V4).await?;
    Ok(all.into_iter().filter(|route| route.header.protocol == OURS).collect())
}

fn neighbour(known: &NeighbourMessage) -> Option<(Ipv4Addr, [u8; 6])> {
    let (mut ip, mut ethernet) = (None, None);
    for attribute in &known.attributes {
        match attribute {
            NeighbourAttribute::Destination(NeighbourAddress::Inet(address)) => ip = Some(*address),
            NeighbourAttribute::LinkLayerAddress(address) => ethernet = address.as_slice().try_into().ok(),
            _ => {}
        }
    }
    Some((ip?, ethernet?))
}

impl Drop for KernelRoutes {
    fn drop(&mut self) {
        if let Err(error) = self.clear() {
            tracing::warn!(%error, "routes were left behind");
        }
    }
}

/// The kernel's main table of IPv4, one route a line.
const TABLE: &str = "/proc/thread-self/net/route";

/// The table at one time. It has to be read again and again: netlink does not report the routes that a device loses
/// when it goes down.
#[derive(Clone, Debug)]
pub struct KernelTable(String);

impl KernelTable {
    /// A device's name may be any bytes.
    pub fn read() -> io::Result<KernelTable> {
        Ok(KernelTable(String::from_utf8_lossy(&fs::read(TABLE)?).into_owned()))
    }

    /// The device of the route to an address: the longest prefix counts, and among equals the least metric. Routes to
    /// more than `network` do not count, because the default route leads everywhere.
    pub fn device_towards(&self, address: Ipv4Addr, network: &Prefix) -> Option<&str> {
        let leads_there = |route: &RouteLine<'_>| {
            route.bits >= network.bits() && address.to_bits() & route.mask() == route.to
        };
        let routes = self.lines().filter(leads_there);
        routes.max_by_key(|route| (route.bits, u32::MAX - route.metric)).map(|route| route.device)
    }

    /// Returns whether this network has a route over that device.
    pub fn has_route(&self, network: &Prefix, device: &str) -> bool {
        let IpAddr::V4(address) = network.address() else { return false };
        let is_it = |route: RouteLine<'_>| {
            route.bits == network.bits()
                && address.to_bits() & route.mask() == route.to
                && route.device == device
        };
        self.lines().any(is_it)
    }

    fn lines(&self) -> impl Iterator<Item = RouteLine<'_>> {
        self.0.lines().skip(1).filter_map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            // Addresses are printed as numbers in the machine's byte order.
            let bits = |nth: usize| {
                u32::from_str_radix(words.get(nth)?, 16)
                    .ok()
                    .map(|word| u32::from_be_bytes(word.to_ne_bytes()))
            };
            let (to, bits) = (bits(1)?, as_u8(bits(7)?.count_ones() as usize));
            Some(RouteLine { device: words[0], to, bits, metric: words.get(6)?.parse().ok()? })
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct RouteLine<'t> {
    device: &'t str,
    to: u32,
    /// The length of the prefix.
    bits: u8,
    metric: u32,
}

impl RouteLine<'_> {
    fn mask(&self) -> u32 {
        !u32::MAX.checked_shr(self.bits.into()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn the_longest_prefix_says_where_an_address_is() {
        let table = KernelTable(
            "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                     eth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
                     hop0\t0500000A\t00000000\t0001\t0\t0\t0\tFFFFFFFF\t0\t0\t0\n\
                     mesh\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
                .to_owned(),
        );
        let prefix = |text: &str| text.parse::<Prefix>().expect("a network");
        let device = |text: &str, network: &str| {
            table.device_towards(text.parse().expect("an address"), &prefix(network))
        };
        assert_eq!(device("10.0.0.5", "10.0.0.0/24"), Some("hop0"));
        assert_eq!(device("10.0.0.6", "10.0.0.0/24"), Some("mesh"));
        assert_eq!(device("10.0.0.6", "10.0.0.0/25"), None, "that route leads to more than the network");
        assert_eq!(device("9.9.9.9", "9.0.0.0/8"), None, "only the default route leads there");
        assert_eq!(
            KernelTable("Iface\n".to_owned()).device_towards(Ipv4Addr::LOCALHOST, &prefix("127.0.0.0/8")),
            None
        );
        let has = |network: &str, device: &str| table.has_route(&prefix(network), device);
        assert!(has("10.0.0.0/24", "mesh") && has("10.0.0.9/24", "mesh") && has("10.0.0.5/32", "hop0"));
        assert!(!has("10.0.0.0/24", "hop0") && !has("10.0.0.0/25", "mesh") && !has("10.1.0.0/24", "mesh"));
    }
}
