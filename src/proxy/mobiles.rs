//! The facts about mobiles that a proxy's status tells.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hopwise_core::StationAddress;
use hopwise_host::Clock;
use hopwise_host::nl80211::Board;

use super::control::Response;
use crate::daemon::stations::InterfaceSnapshot;

/// The reports of an interface, and its mobiles by their stations.
#[derive(Clone, Debug)]
pub(super) struct MobileReports {
    pub(super) board: Board,
    pub(super) mobiles: BTreeMap<StationAddress, IpAddr>,
}

/// Adds the facts about stations to a status.
pub(super) fn add(mut response: Response, reports: &[MobileReports], clock: Clock) -> Response {
    if let Response::Status(status) = &mut response {
        let now = clock.now();
        let shown = |of: &MobileReports| {
            InterfaceSnapshot::of(&of.board.read(), now, |station| of.mobiles.get(&station).copied())
        };
        status.stations = reports.iter().map(shown).collect();
    }
    response
}
