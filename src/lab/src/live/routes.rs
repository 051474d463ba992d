//! The routing of a live run, made from the scenario: the configurations of each node's `hopwise route`, and of the
//! gateway's `hopwise proxy`.

use std::path::PathBuf;

use hopwise_core::narrow::as_u32;
use hopwise_lab::live::address_of_tcp;
use hopwise_lab::live::air::{LiveStation, stations};
use hopwise_lab::scenario::Prepared;
use hopwise_lab::sim::Plan;
use hopwise_mesh::LiveRouter;

use crate::air::netns::stations::{ServedAddresses, name_of};
use hopwise_daemon::failure::Failure;
use hopwise_part::v4;
use hopwise_router::proxy::trial;
use hopwise_router::route::config::{NodeFile, text};

/// True if daemons find the routes. Otherwise the kernels have the shortest ones from the beginning, or find paths
/// themselves.
pub(super) fn are_found(plan: &Plan) -> bool {
    plan.routing.protocol.live == LiveRouter::Daemon
}

/// The configuration of a gateway's proxy, with the arm's agent; none without such an agent.
pub(super) fn proxy_of(plan: &Plan) -> Option<(u32, String)> {
    let (gateway, agent) = (plan.gateway.as_ref()?.node, plan.arm.base_station.as_deref()?);
    let stations = stations(plan);
    let devices = &stations.get(gateway as usize)?.devices;
    let device = |is_radio| devices.iter().find(|device| device.is_radio == is_radio);
    let [wire, radio] = [device(false)?, device(true)?].map(|device| name_of(device.link, device.is_radio));
    let is_mobile = |node: &u32| *node != gateway && plan.positions[*node as usize].is_some();
    let mobiles = (0..as_u32(plan.positions.len())).filter(is_mobile);
    let mobiles: Vec<_> = mobiles.map(|node| address_of_tcp(&plan.arm, node)).collect();
    // The fence of a routing daemon lets no packets in by further devices.
    let by = if are_found(plan) { "nfqueue" } else { "tun" };
    Some((gateway, trial::text((&wire, &radio, by), agent, &mobiles)))
}

/// The configuration of a node's daemon. It serves what is behind the node, too.
pub(super) fn config_of(
    prepared: &Prepared,
    node: u32,
    station: &LiveStation,
    socket: Option<PathBuf>,
) -> Result<String, Failure> {
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
        nodes: socket.into_iter().collect(),
    };
    text(file, &prepared.routing).map_err(|error| failed(&error))
}
