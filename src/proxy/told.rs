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
pub(super) struct ToldStations {
    pub(super) board: Board,
    pub(super) mobiles: BTreeMap<StationAddress, IpAddr>,
}

/// Adds the facts about stations to a status.
pub(super) fn add(mut response: Response, told: &[ToldStations], clock: Clock) -> Response {
    if let Response::Status(status) = &mut response {
        let now = clock.now();
        let shown = |told: &ToldStations| {
            InterfaceSnapshot::of(&told.board.read(), now, |station| told.mobiles.get(&station).copied())
        };
        status.stations = told.iter().map(shown).collect();
    }
    response
}
