//! Requests over a node's control socket, and its answers.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::snapshot::{CaptureSnapshot, Snapshot};
use hopwise_daemon::control::{Answer, Question};
use hopwise_daemon::stations::RoutingSnapshot;
use hopwise_daemon::thin::ThinSnapshot;

pub mod client;

/// A request to the node.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub enum Request {
    Status,
    CaptureStart {
        file: PathBuf,
        /// All links, if none is named.
        links: Vec<String>,
        rotate_bytes: Option<u64>,
        files: u32,
    },
    CaptureStop,
    /// News of routes and of arrivals at peers, from a routing daemon on this machine.
    Paths {
        news: Vec<PathNews>,
    },
    /// A routing daemon's request for the arrivals here from that peer.
    Arrivals {
        peer: IpAddr,
    },
}

impl Question for Request {
    fn is_of_routing(&self) -> bool {
        matches!(self, Request::Paths { .. } | Request::Arrivals { .. })
    }
}

/// A routing daemon's news of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathNews {
    pub peer: IpAddr,
    /// One connection's ports, the peer's and ours, that an `ack-seq` is for.
    pub ports: Option<(u16, u16)>,
    pub what: PathWhat,
    /// Links to the peer, if there is a route.
    pub hops: Option<u8>,
    /// The bit rate of the link to the next hop, if its driver reports one.
    pub link_bps: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathWhat {
    RouteFound,
    RouteFailed,
    HopsChanged,
    AckSeq(u32),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Response {
    Status(Box<Snapshot>),
    /// A routing daemon's answer to the same question.
    Routing(Box<RoutingSnapshot>),
    /// The answer of a daemon that thins ACKs.
    Thin(Box<ThinSnapshot>),
    Capture(CaptureSnapshot),
    /// The connections have the news of paths.
    Taken,
    Arrivals {
        /// For each flow the peer's port, ours, and the sequence number that has arrived.
        flows: Vec<(u16, u16, u32)>,
    },
    Refused {
        problem: String,
    },
}

impl Answer for Response {
    fn refused(problem: String) -> Response {
        Response::Refused { problem }
    }
}
