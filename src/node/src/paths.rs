//! Path news of a routing daemon on this machine goes to the connections; arrivals go back to the daemon.

use std::net::IpAddr;
use std::num::NonZeroU64;

use hopwise_core::agent::{HopSource, Path, PathEvent};
use hopwise_core::endpoint::PathSeam;
use hopwise_core::{Endpoint, Instant, Seq};
use hopwise_host::Stack;

use super::control::{PathNews, PathWhat, Request, Response};

/// The largest number of news in one request.
const MOST_NEWS: usize = 1_024;

pub(super) fn report(stacks: &[Stack], news: &[PathNews]) -> Response {
    if news.len() > MOST_NEWS {
        return Response::Refused { problem: format!("more than {MOST_NEWS} news at once") };
    }
    for stack in stacks {
        stack.with(|now, endpoint| tell(now, endpoint, news));
    }
    Response::Taken
}

/// The answer of an endpoint without a node around it.
pub fn answer(now: Instant, endpoint: &mut Endpoint, request: Request) -> Response {
    match request {
        Request::Paths { news } => {
            tell(now, endpoint, &news);
            Response::Taken
        }
        Request::Arrivals { peer } => Response::Arrivals { flows: heard(endpoint, peer) },
        _ => Response::Refused { problem: "only a routing daemon is answered here".to_owned() },
    }
}

fn tell(now: Instant, endpoint: &mut Endpoint, news: &[PathNews]) {
    for PathNews { peer, ports, what, hops, link_bps } in news {
        let hops = hops.map(|hops| (hops, HopSource::Routing));
        let link_bps = link_bps.and_then(NonZeroU64::new);
        let path = Path { hops_to_peer: hops, hops_from_peer: hops, link_bps, ..Path::default() };
        endpoint.handle_path(now, *peer, *ports, &event(*what), &path);
    }
}

fn event(what: PathWhat) -> PathEvent {
    match what {
        PathWhat::RouteFound => PathEvent::RouteFound,
        PathWhat::RouteFailed => PathEvent::RouteFailed,
        PathWhat::HopsChanged => PathEvent::HopsChanged,
        PathWhat::AckSeq(seq) => PathEvent::AckSeq(Seq(seq)),
    }
}

pub(super) fn arrivals(stacks: &[Stack], peer: IpAddr) -> Response {
    let mut flows = Vec::new();
    for stack in stacks {
        flows.extend(stack.with(|_, endpoint| heard(endpoint, peer)));
    }
    Response::Arrivals { flows }
}

/// The peer's port, ours, and the sequence number that has arrived.
fn heard(endpoint: &Endpoint, peer: IpAddr) -> Vec<(u16, u16, u32)> {
    let mut flows = Vec::new();
    endpoint.ack_hints(peer, &mut |(theirs, ours), Seq(seq)| flows.push((theirs, ours, seq)));
    flows
}
