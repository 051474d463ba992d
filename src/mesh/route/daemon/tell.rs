//! The news that the daemon tells once a second: to its control socket, and to the nodes.

use std::collections::BTreeMap;

use hopwise_core::{Instant, LinkId};

use super::Daemon;
use crate::daemon::routes::{MOST_SHOWN, RouteSnapshot};
use crate::mesh::route::status::Facts;

impl Daemon {
    /// Tells the control socket the neighbours and the routes, and the nodes the bit rates of links to next hops.
    pub(super) fn tell(&mut self, now: Instant) {
        let has_stations = self.ports.iter().any(|port| port.stations.is_some());
        if !has_stations && self.config.control.is_none() {
            return;
        }
        let mut neighbours = BTreeMap::new();
        let mut rates = BTreeMap::new();
        for port in &self.ports {
            let Some(stations) = &port.stations else { continue };
            let of_port = self.installed.neighbours(port.index);
            for facts in stations.facts() {
                if let (Some(neighbour), Some(bps)) = (of_port.get(&facts.station), facts.tx_bitrate_bps) {
                    rates.insert((port.link, *neighbour), bps);
                }
            }
            neighbours.extend(of_port);
        }
        let router = self.driver.machine_mut();
        let valid = router.protocol().routes(now);
        if has_stations {
            let rated = valid
                .iter()
                .filter_map(|(dst, via, link, _)| Some(((*dst).into(), *rates.get(&(*link, *via))?)));
            router.seam().set_rates(&rated.collect());
        }
        let name =
            |link: LinkId| self.ports.iter().find(|port| port.link == link).map(|port| port.name.clone());
        let shown = valid.iter().take(MOST_SHOWN).map(|(to, via, link, hops)| RouteSnapshot {
            to: *to,
            via: *via,
            interface: name(*link).unwrap_or_default(),
            hops: *hops,
        });
        self.told.set(Facts { neighbours, routes_valid: valid.len(), routes: shown.collect() });
    }
}
