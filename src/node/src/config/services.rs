//! `socks5:`, `metrics:` and `bounds:` of a node.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use hopwise_lab::rules::Network;
use hopwise_lab::units::{Size, Time};
use schemars::JsonSchema;
use serde::Deserialize;

/// SOCKS5 proxy for programs of this machine.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Socks5 {
    /// Address and port at which programs of this machine find it. Port 0 is any free one, which the log names.
    pub(crate) listen: SocketAddr,
    /// Number of connections at the same time: seats. A quiet client, or the source with the most, makes room for
    /// another one.
    #[serde(default = "connections")]
    #[schemars(extend("x-range" = "1 to 65536", "x-unit" = "connections"))]
    pub(crate) connections: usize,
    /// Time that a client has to name its target.
    #[serde(default = "Time::millis::<10_000>")]
    #[schemars(extend("x-range" = "100ms or more"))]
    pub(crate) handshake_within: Time,
    /// Least time that a client keeps its seat while it carries nothing and no other seat is free.
    #[serde(default = "reads_within")]
    #[schemars(extend("x-range" = "100ms or more"))]
    pub(crate) reads_within: Time,
    /// Time without data after which a connection is closed.
    #[serde(default = "idle")]
    #[schemars(extend("x-range" = "100ms or more"))]
    pub(crate) idle: Time,
    /// Number of connections of one source at the most (default: `connections`).
    #[schemars(extend("x-range" = "1 or more", "x-unit" = "connections"))]
    pub(crate) per_source: Option<usize>,
    /// Passwords by name, each of 1 to 255 bytes (default: none, and clients need no login).
    #[serde(default)]
    pub(crate) users: BTreeMap<String, String>,
    /// Accepted clients and targets.
    #[serde(default)]
    pub(crate) allow: Allow,
}

/// Accepted clients, and the targets that they may reach.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Allow {
    /// Networks of accepted clients (default: all).
    pub(crate) clients: Option<Vec<Network>>,
    /// Networks of accepted targets (default: all but loopback and link-local ones).
    pub(crate) targets: Option<Vec<Network>>,
}

/// The most that the stacks of the node hold together because of their peers.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Bounds {
    /// Number of connections of any kind; beyond it the source with the most makes room (default 262144).
    #[schemars(extend("x-range" = "1 or more", "x-unit" = "connections"))]
    pub(crate) connections: Option<usize>,
    /// Number of connections that their program has left and that have not ended; the longest stuck is reset first
    /// (default 4096).
    #[schemars(extend("x-range" = "1 or more", "x-unit" = "connections"))]
    pub(crate) orphans: Option<usize>,
    /// Memory of the buffers of such connections (default 32MiB).
    #[schemars(extend("x-range" = "1MiB or more"))]
    pub(crate) orphan_memory: Option<Size>,
    /// Number of connections in TIME-WAIT (default 32768).
    #[schemars(extend("x-range" = "1 or more", "x-unit" = "connections"))]
    pub(crate) time_waits: Option<usize>,
    /// Memory of all send and receive buffers; the connection that stood still longest makes room (default 256MiB).
    #[schemars(extend("x-range" = "1MiB or more"))]
    pub(crate) memory: Option<Size>,
}

/// A quiet session is not wrong, and if seats are scarce the quietest makes room anyhow; Envoy has the same value.
pub(super) fn idle() -> Time {
    Time(Duration::from_secs(3600))
}

pub(super) fn connections() -> usize {
    1024
}

pub(super) fn reads_within() -> Time {
    Time(Duration::from_secs(30))
}

/// Figures for Prometheus.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Metrics {
    /// Address and port at which scrapers find them. Port 0 is any free one, which the log names.
    #[serde(default = "metrics_listen")]
    pub(crate) listen: SocketAddr,
    /// Names in requests of scrapers, beside that of the node, localhost and addresses (default: none).
    #[serde(default)]
    pub(crate) names: Vec<String>,
}

fn metrics_listen() -> SocketAddr {
    SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, 9184))
}
