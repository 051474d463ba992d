//! The daemon's control socket: it answers `hopwise status` on a thread of its own.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};

use hopwise_core::StationAddress;
use hopwise_host::Clock;
use hopwise_host::nl80211::Board;
use hopwise_lab::version;

use hopwise_daemon::control::BoundSocket;
use hopwise_daemon::failure::Failure;
use hopwise_daemon::stations::{InterfaceSnapshot, RouteSnapshot, RoutingSnapshot};
use hopwise_node::control::{Request, Response};

/// The daemon's facts for the control socket, as it last told them.
#[derive(Clone, Debug, Default)]
pub(super) struct StatusBoard(Arc<Mutex<RouteFacts>>);

#[derive(Clone, Debug, Default)]
pub(super) struct RouteFacts {
    /// The neighbours' addresses, as the daemon last read them from the kernel.
    pub(super) neighbours: BTreeMap<StationAddress, Ipv4Addr>,
    /// The number of valid routes, and the first of them.
    pub routes_valid: usize,
    pub routes: Vec<RouteSnapshot>,
}

impl StatusBoard {
    pub(super) fn set(&self, facts: RouteFacts) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = facts;
    }

    fn read(&self) -> RouteFacts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The parts of an answer.
pub(super) struct StatusSource {
    pub address: Ipv4Addr,
    pub(super) clock: Clock,
    pub(super) boards: Vec<Board>,
    pub interfaces: Vec<String>,
    pub(super) told: StatusBoard,
}

impl StatusSource {
    pub(super) fn answer(&self, request: &Request) -> Response {
        match request {
            Request::Status => Response::Routing(Box::new(self.snapshot())),
            _ => Response::Refused { problem: "a routing daemon answers `hopwise status` alone".to_owned() },
        }
    }

    fn snapshot(&self) -> RoutingSnapshot {
        let (now, RouteFacts { neighbours, routes_valid, routes }) = (self.clock.now(), self.told.read());
        let who_has = |station| neighbours.get(&station).map(|neighbour| IpAddr::V4(*neighbour));
        let shown = |board: &Board| InterfaceSnapshot::of(&board.read(), now, who_has);
        RoutingSnapshot {
            address: self.address,
            pid: std::process::id(),
            version: version::with_commit().to_owned(),
            interfaces: self.interfaces.clone(),
            stations: self.boards.iter().map(shown).collect(),
            routes_valid,
            routes,
        }
    }
}

/// Answers until the process ends.
pub(super) fn serve(bound: &BoundSocket, known: StatusSource) -> Result<(), Failure> {
    bound.serve_beside(move |request| known.answer(&request))
}
