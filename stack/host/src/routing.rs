//! Linux services for a routing daemon: sockets for its messages, routes in the kernel's table, a view of forwarded
//! packets, a path for waiting packets. It knows no protocol, and undoes its changes.

mod control;
mod kernel;
mod resend;
mod switches;
mod watch;

use std::io;
use std::net::Ipv4Addr;

use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage};

use crate::netlink::{self, NetlinkResult, blocking};
use crate::nft::{OwnedTable, in_a_name};
use crate::own_file::NameLock;
use kernel::all_of_ours;

pub use crate::journal::forget_gone;
pub use control::ControlSocket;
pub use kernel::KernelTable;
pub use kernel::{HostRoute, KernelRoutes};
pub use resend::{Resender, is_link_lost};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use switches::known;
pub use switches::{Switches, left_in, repair};
pub use watch::{InterfaceWatch, PassingPacket};

/// The table of a running fence. Dropping it removes the table.
#[derive(Debug)]
pub struct Fence(OwnedTable);

impl Fence {
    /// Packets that come in by a device of the mesh leave by one of them, or are for a served address. `tun` is the one
    /// that belongs to this daemon alone.
    pub fn set(tun: &str, mesh: &[&str], served: &[Ipv4Addr]) -> io::Result<Fence> {
        OwnedTable::set(&format!("ip hopwise_mesh_{}", in_a_name(tun)), &chains(mesh, served)).map(Fence)
    }

    /// Returns whether the table still exists.
    pub fn stands(&mut self) -> bool {
        self.0.stands()
    }
}

fn chains(mesh: &[&str], served: &[Ipv4Addr]) -> String {
    let mesh: Vec<_> = mesh.iter().map(|device| format!("\"{device}\"")).collect();
    let (mesh, served) = (mesh.join(", "), served.iter().map(Ipv4Addr::to_string).collect::<Vec<_>>());
    let others =
        if served.is_empty() { String::new() } else { format!("ip daddr != {{ {} }} ", served.join(", ")) };
    format!(
        "chain from_mesh {{ type filter hook forward priority filter; policy accept; \
         iifname {{ {mesh} }} oifname != {{ {mesh} }} {others}drop; }}; "
    )
}

/// The name that a daemon holds for its source address while it runs.
const KIND: &str = "routes";

/// Claims the routes of a source address. Without the claim they count as left.
fn claim(source: Ipv4Addr) -> Option<NameLock> {
    let claimed = NameLock::of(KIND, &source.to_string());
    claimed.inspect_err(|error| tracing::warn!(%source, %error, "another program has this name")).ok()
}

/// Returns whether a daemon or a trial here has routes of that source address.
pub fn is_claimed(source: Ipv4Addr) -> bool {
    NameLock::of(KIND, &source.to_string()).is_err()
}

/// The number of routes whose daemon is gone.
pub fn left_routes() -> NetlinkResult<usize> {
    blocking(async |handle| Ok(left(all_of_ours(&handle).await?).count()))
}

/// Removes the routes whose daemon is gone, and returns their number.
pub fn remove_left_routes() -> NetlinkResult<usize> {
    blocking(async |handle| {
        let mut count = 0;
        for route in left(all_of_ours(&handle).await?) {
            let done = handle.route().del(route).execute().await;
            done.map_err(netlink::kernel("remove a route that was left"))?;
            count += 1;
        }
        Ok(count)
    })
}

fn left(routes: Vec<RouteMessage>) -> impl Iterator<Item = RouteMessage> {
    routes.into_iter().filter(|route| {
        let source = source_of(route).filter(|_| route.header.destination_prefix_length == 32);
        source.is_some_and(|source| !is_claimed(source))
    })
}

/// A daemon's own address. Routes that other parts of Hopwise set have none.
fn source_of(route: &RouteMessage) -> Option<Ipv4Addr> {
    route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::PrefSource(RouteAddress::Inet(source)) => Some(*source),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_the_mesh_leaves_by_the_mesh_or_for_a_served_address() {
        let served = ["10.0.0.5", "10.0.0.6"].map(|text| text.parse().expect("an address"));
        let rules = chains(&["wlan0", "hopwise0"], &served);
        let wanted = "iifname { \"wlan0\", \"hopwise0\" } oifname != { \"wlan0\", \"hopwise0\" } \
                      ip daddr != { 10.0.0.5, 10.0.0.6 } drop;";
        assert!(rules.contains(wanted), "{rules}");
        assert_eq!(rules.lines().count(), 1);
        assert!(chains(&["wlan0"], &[]).contains("oifname != { \"wlan0\" } drop;"));
    }
}
