//! The routing of a live run: the configuration of each node's `hopwise route`, made from the scenario.

use hopwise_lab::live::air::LiveStation;
use hopwise_lab::scenario::Prepared;
use hopwise_lab::sim::Plan;
use hopwise_mesh::LiveRouter;

use crate::air::netns::stations::{ServedAddresses, name_of};
use hopwise_daemon::failure::Failure;
use hopwise_part::v4;
use hopwise_router::route::config::{NodeFile, text};

/// True if daemons find the routes. Otherwise the kernels have the shortest ones from the beginning, or find paths
/// themselves.
pub(super) fn are_found(plan: &Plan) -> bool {
    plan.routing.protocol.live == LiveRouter::Daemon
}

/// The configuration of a node's daemon. It serves what is behind the node, too.
pub(super) fn config_of(prepared: &Prepared, node: u32, station: &LiveStation) -> Result<String, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        let name = prepared.name_of(node);
        Failure::failed("configure the routing of a node", format_args!("{name}: {error}"))
    };
    let devices = station.devices.iter();
    let file = NodeFile {
        address: v4(station.address).ok_or_else(|| failed(&"it has no IPv4 address"))?,
        serves: ServedAddresses::of(&prepared.plan.arm).behind(node).into_iter().filter_map(v4).collect(),
        network: hopwise_lab::live::NETWORK,
        interfaces: devices.map(|device| name_of(device.link, device.is_radio)).collect(),
    };
    text(file, &prepared.routing).map_err(|error| failed(&error))
}
