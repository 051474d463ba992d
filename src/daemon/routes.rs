//! The routes of a routing daemon in its status.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::table;

/// The largest number of routes that a status lists; of more it has the number.
pub(crate) const MOST_SHOWN: usize = 1000;

/// A valid route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RouteSnapshot {
    pub(crate) to: Ipv4Addr,
    /// The next hop: a neighbour.
    pub(crate) via: Ipv4Addr,
    pub(crate) interface: String,
    pub(crate) hops: u8,
}

const COLUMNS: [&str; 4] = ["route to", "via", "interface", "hops"];

/// The routes for people.
pub(crate) fn table_of(routes: &[RouteSnapshot]) -> Vec<String> {
    let cells = |RouteSnapshot { to, via, interface, hops }: &RouteSnapshot| {
        vec![to.to_string(), via.to_string(), interface.clone(), hops.to_string()]
    };
    if routes.is_empty() {
        return Vec::new();
    }
    table::lines(&COLUMNS, &routes.iter().map(cells).collect::<Vec<_>>())
}

/// The neighbours that routes lead over.
pub(crate) fn neighbours(routes: &[RouteSnapshot]) -> BTreeSet<Ipv4Addr> {
    routes.iter().map(|route| route.via).collect()
}
