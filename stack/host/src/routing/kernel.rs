//! Routes to single hosts in the kernel's main table. A mark makes them ours: after a crash they are found again. All
//! daemons have the same mark, but the source address is this daemon's alone.

use std::io;
use std::net::Ipv4Addr;

use hopwise_core::ip::Prefix;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::link::LinkAttribute;
use netlink_packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteScope};
use rtnetlink::{Handle, RouteMessageBuilder};
use tokio::runtime::Runtime;

use super::left::claim;
use crate::name_lock::NameLock;
use crate::netlink::{self, NetlinkError, OURS};

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
    pub fn open(source: Ipv4Addr) -> Result<KernelRoutes, NetlinkError> {
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

    /// Sets a route, and replaces another one of ours. A route of another program to that host stays, and the result is
    /// `RouteTaken`.
    pub fn set(&self, dst: Ipv4Addr, route: HostRoute) -> Result<(), NetlinkError> {
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
    fn add(&self, dst: Ipv4Addr, route: HostRoute) -> Result<bool, NetlinkError> {
        let request = self.handle.route().add(self.message(dst, Some(route)));
        let done = netlink::is_new(self.runtime.block_on(request.execute()));
        done.map_err(|error| netlink::kernel(&format!("add a route to {dst}"), error))
    }

    /// Removes a route of ours; it succeeds if the route is gone already.
    pub fn remove(&self, dst: Ipv4Addr) -> Result<(), NetlinkError> {
        let done = self.runtime.block_on(self.handle.route().del(self.message(dst, None)).execute());
        match done {
            Err(rtnetlink::Error::NetlinkError(message)) if message.raw_code() == -libc::ESRCH => Ok(()),
            done => done.map_err(|error| netlink::kernel(&format!("remove the route to {dst}"), error)),
        }
    }

    /// The kernel's neighbours on that device, with their Ethernet addresses.
    pub fn neighbours(&self, device: u32) -> Result<Vec<(Ipv4Addr, [u8; 6])>, NetlinkError> {
        use futures_util::TryStreamExt;
        let asked = self.handle.neighbours().get().set_address_family(AddressFamily::Inet).execute();
        let all: Vec<_> = self
            .runtime
            .block_on(asked.try_collect())
            .map_err(|error| netlink::kernel("list the neighbours", error))?;
        Ok(all.iter().filter(|known| known.header.ifindex == device).filter_map(neighbour).collect())
    }

    /// The largest packet that a device carries in one piece.
    pub fn mtu(&self, device: u32) -> Result<u16, NetlinkError> {
        use futures_util::TryStreamExt;
        let asked = self.handle.link().get().match_index(device).execute();
        let found: Vec<_> = self
            .runtime
            .block_on(asked.try_collect())
            .map_err(|error| netlink::kernel("ask for a device's MTU", error))?;
        let mtu = found.iter().flat_map(|link| &link.attributes).find_map(|attribute| match attribute {
            LinkAttribute::Mtu(mtu) => Some(*mtu),
            _ => None,
        });
        Ok(mtu.map_or(u16::MAX, |mtu| u16::try_from(mtu).unwrap_or(u16::MAX)))
    }

    /// Removes every route of ours.
    pub fn clear(&self) -> Result<(), NetlinkError> {
        self.runtime.block_on(async {
            for route in self.ours().await? {
                // A route may be gone already.
                let _ = self.handle.route().del(route).execute().await;
            }
            Ok(())
        })
    }

    async fn ours(&self) -> Result<Vec<RouteMessage>, NetlinkError> {
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
pub(super) async fn all_of_ours(handle: &Handle) -> Result<Vec<RouteMessage>, NetlinkError> {
    use futures_util::TryStreamExt;
    let any = RouteMessageBuilder::<Ipv4Addr>::new().build();
    let all: Vec<RouteMessage> = handle
        .route()
        .get(any)
        .execute()
        .try_collect()
        .await
        .map_err(|error| netlink::kernel("list the routes", error))?;
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
