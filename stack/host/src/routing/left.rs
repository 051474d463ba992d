//! Host routes that killed daemons left. The kernel removes a route when no device has its source address any more. An
//! interface with the daemon's address keeps the routes.

use std::net::Ipv4Addr;

use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage};

use super::kernel::all_of_ours;
use crate::name_lock::NameLock;
use crate::netlink::{self, NetlinkError, blocking};

/// The name that a daemon holds for its source address while it runs.
const KIND: &str = "routes";

/// Claims the routes of a source address. Without the claim they count as left.
pub(super) fn claim(source: Ipv4Addr) -> Option<NameLock> {
    let claimed = NameLock::of(KIND, &source.to_string());
    claimed.inspect_err(|error| tracing::warn!(%source, %error, "another program has this name")).ok()
}

/// Returns whether a daemon or a trial here has routes of that source address.
pub fn is_claimed(source: Ipv4Addr) -> bool {
    NameLock::of(KIND, &source.to_string()).is_err()
}

/// The number of routes whose daemon is gone.
pub fn left_routes() -> Result<usize, NetlinkError> {
    blocking(async |handle| Ok(left(all_of_ours(&handle).await?).count()))
}

/// Removes the routes whose daemon is gone, and returns their number.
pub fn remove_left_routes() -> Result<usize, NetlinkError> {
    blocking(async |handle| {
        let mut count = 0;
        for route in left(all_of_ours(&handle).await?) {
            let done = handle.route().del(route).execute().await;
            done.map_err(|error| netlink::kernel("remove a route that was left", error))?;
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
