//! The keys of a scenario, as files have them and as `hopwise keys schema` prints them. Checks that need
//! several keys are in `check.rs`.

mod arms;
mod claims;
mod host;
mod queue;
mod radio;
mod run;
mod traffic;

use std::collections::BTreeMap;
use std::time::Duration;

use hopwise_air::dcf::MacRules;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::routing::RoutingConfig;
use crate::rules::Rule;
use crate::tcp::Tcp;
use crate::units::{Rate, Share, Time};
use crate::words::{Word, words};
use crate::world::World;
pub(super) use arms::{ArmConfig, Arms};
pub use claims::{Bound, Claim, Measure, PointCombination, Premise, Stated};
pub(super) use host::HostConfig;
pub(super) use radio::RadioConfig;
pub(super) use run::{MatrixConfig, RunConfig};
pub(super) use traffic::{Drawn, GAPS, REQUESTS, SEGMENT_BYTES, TRANSFERS, TrafficFlows, TrafficKind};

/// Lengths in metres, at most 10,000 km.
const METRES: &str = "above 0 to 10000000";
/// Slopes of signals in dB a second.
const SLOPES: &str = "0.1 to 1000000";
/// Errors of signals in dB.
const ERRORS: &str = "0 to 40";

/// A scenario: positions of nodes, traffic, and the agents on trial.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "A scenario of Hopwise")]
pub(super) struct ScenarioFile {
    /// Title of the scenario, as reports print it (default: none).
    pub(super) title: Option<String>,
    /// World that the scenario runs in (default sim, the simulated radio in virtual time).
    #[serde(default)]
    pub(super) world: Word<World>,
    /// Positions of the nodes.
    pub(super) topology: Topology,
    /// Random waypoint movement of the nodes in a rectangle with one corner at (0, 0) (default: nodes stand still).
    pub(super) mobility: Option<Mobility>,
    /// 802.11 radio of every node.
    #[serde(default)]
    pub(super) radio: RadioConfig,
    /// Channel between the radios: path loss, fading, losses and outages.
    #[serde(default)]
    pub(super) channel: ChannelConfig,
    /// Rules of the 802.11 MAC.
    #[serde(default)]
    pub(super) mac: Mac,
    /// Routing protocol and its constants. Those of AODV stand here, those of other protocols in sections of their own.
    #[serde(default)]
    pub(super) routing: RoutingConfig,
    /// TCP settings of all nodes. Arms with the kernel's TCP take only `segment_bytes` and `nagle`, also as the profile
    /// sets them.
    #[serde(default)]
    pub(super) tcp: Tcp,
    /// Flows between nodes.
    pub(super) traffic: Vec<TrafficFlows>,
    /// Rules that choose agents for single connections, in place of the agents of the arm (default: none). The first
    /// rule that matches applies. Only in world sim.
    #[serde(default)]
    pub(super) rules: Vec<Rule<String>>,
    /// Gateway between a wire and the radio (default: none). The base-station agent of an arm runs there. In the keys
    /// of `gateway` a fade is an outage of a radio link of the gateway, from `channel.outages` or `channel.links`.
    /// `channel.fading` makes none. Only in worlds sim and netns.
    pub(super) gateway: Option<GatewayConfig>,
    /// Settings of the hosts of a live world during a run (default: as they are).
    pub(super) host: Option<HostConfig>,
    /// Arms of the trial by name: the agents and settings that are compared. The first one is the baseline unless
    /// `run.baseline` names another.
    pub(super) arms: Arms,
    /// Length of a run, number of seeds, and condition that ends the trial.
    pub(super) run: RunConfig,
    /// Values that the trial varies (default: one point, the file as it stands). Each entry is the path of a key, such
    /// as `topology.hops`, with a list of values. Each combination of values is a point.
    pub(super) matrix: Option<MatrixConfig>,
    /// Settings that a paper leaves open, in the form of `matrix`: paths of keys, each with a list of usual values. The
    /// trial has each point under each combination of them. `hopwise claims` judges each claim under each combination
    /// (default: none). Its entry `named` has names for values, as `window 20: { tcp.recv_buffer: 20000B }`.
    pub(super) sweep: Option<MatrixConfig>,
    /// Statements of a paper that this scenario tests. `hopwise claims` checks them (default: none).
    #[serde(default)]
    pub(super) claims: Vec<Claim>,
}

/// Shape of a topology; it decides which other keys apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Shape {
    /// A line of nodes, numbered from one end: n0, n1, and so on.
    Chain,
    /// Two lines of nodes that cross at the centre, numbered from west to east, then from south to north.
    Cross,
    /// Rows and columns of nodes, numbered row by row.
    Grid,
    /// Nodes at random positions in a rectangle.
    Random,
    /// Positions from a file.
    File,
    /// A movement file of ns-2 or BonnMotion.
    Movements,
}

// Checked by hand: a tagged enum would lose their places.
/// Positions of the nodes. The kind decides which keys apply.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Topology {
    /// Shape of the topology.
    pub(super) kind: Shape,
    /// Number of hops (kind: chain, which requires it). Under static routing a flow crosses at most 64 hops.
    #[schemars(extend("x-range" = "1 to 9999", "x-unit" = "hops"))]
    pub(super) hops: Option<u32>,
    /// Distance between neighbours (kinds: chain, cross, grid; default 200).
    #[schemars(extend("x-range" = METRES))]
    pub(super) spacing_m: Option<f64>,
    /// Number of hops from the node in the centre to each of the four ends (kind: cross, which requires it).
    #[schemars(extend("x-range" = "1 to 2499", "x-unit" = "hops"))]
    pub(super) arm: Option<u32>,
    /// Number of rows; at most 10000 nodes in all (kind: grid, which requires it).
    #[schemars(extend("x-range" = "1 to 10000", "x-unit" = "rows"))]
    pub(super) rows: Option<u32>,
    /// Number of columns; at most 10000 nodes in all (kind: grid, which requires it).
    #[schemars(extend("x-range" = "1 to 10000", "x-unit" = "columns"))]
    pub(super) columns: Option<u32>,
    /// Number of nodes (kind: random, which requires it). Positions are drawn up to 50 times until all nodes are
    /// connected, unless nodes move.
    #[schemars(extend("x-range" = "2 to 10000", "x-unit" = "nodes"))]
    pub(super) nodes: Option<u32>,
    /// Width of the field (kind: random, which requires it).
    #[schemars(extend("x-range" = METRES))]
    pub(super) width_m: Option<f64>,
    /// Height of the field (kind: random, which requires it).
    #[schemars(extend("x-range" = METRES))]
    pub(super) height_m: Option<f64>,
    /// File with a line "x y" in metres for each node (kind: file), or with movements as ns-2's setdest or BonnMotion
    /// writes them (kind: movements; the content decides). BonnMotion packs its file: unpack it with gunzip. The path
    /// is relative to the current directory.
    pub(super) file: Option<String>,
    /// Wire from the first radio node, n0, to a wired node, w0 (default: no wire). World hwsim has none.
    pub(super) wired: Option<Wired>,
}

/// Random waypoint movement in a rectangle with one corner at (0, 0).
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Mobility {
    /// Lowest and highest speed in metres a second, as `[lowest, highest]`. Each leg draws its speed from a uniform
    /// distribution between them.
    #[schemars(extend("x-range" = "above 0 to 1000"))]
    pub(super) speed_mps: [f64; 2],
    /// Pause at each waypoint (default 0s).
    #[serde(default)]
    pub(super) pause: Time,
    /// Width of the rectangle (default: topology.width_m; required if the topology has none).
    #[schemars(extend("x-range" = METRES))]
    pub(super) width_m: Option<f64>,
    /// Height of the rectangle (default: topology.height_m; required if the topology has none).
    #[schemars(extend("x-range" = METRES))]
    pub(super) height_m: Option<f64>,
    /// Nodes that do not move: the name of each with its position `[x, y]` in metres (default: none).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) still: BTreeMap<String, [f64; 2]>,
}

/// A wire between the wired node w0 and the first radio node, n0.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Wired {
    /// Rate of the wire, in both directions.
    #[schemars(extend("x-range" = "above 0bit"))]
    pub(super) rate: Rate,
    /// One-way delay of the wire.
    #[schemars(extend("x-range" = "at most 1h"))]
    pub(super) delay: Time,
    /// Largest number of packets in the queue at each end of the wire, including the one being sent (default:
    /// radio.queue_packets). World netns needs at least 3.
    #[schemars(extend("x-range" = "2 or more"))]
    pub(super) queue_packets: Option<u32>,
}

/// Channel between the radios: path loss, fading, losses and outages.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ChannelConfig {
    /// Model of path loss (default two-ray).
    pub(super) path_loss: PathLossName,
    /// Path loss exponent (required by path_loss: log-distance).
    #[schemars(extend("x-range" = "1 to 8", "x-unit" = "no unit"))]
    pub(super) exponent: Option<f64>,
    /// Standard deviation of log-normal shadowing (default 0).
    #[schemars(extend("x-range" = "0 to 20"))]
    pub(super) shadowing_db: f64,
    /// Each direction of a link has shadowing of its own; shadowing_db must be above 0 (default false).
    pub(super) asymmetric: bool,
    /// Model of fading (default none).
    pub(super) fading: FadingName,
    /// Largest Doppler shift. A higher one makes the signal change faster (required by fading: rayleigh or rician).
    #[schemars(extend("x-range" = "0.001 to 10000"))]
    pub(super) doppler_hz: Option<f64>,
    /// Rician K factor, as a ratio and not in dB: power of the direct ray over the sum of all others (required by
    /// fading: rician).
    #[schemars(extend("x-range" = "0 to 1000000", "x-unit" = "no unit"))]
    pub(super) k: Option<f64>,
    /// Share of frames, control frames and retries included, that each receiver fails to decode. They still occupy the
    /// channel (default 0%).
    pub(super) loss: Share,
    /// Times in which a link carries no frames (default: none).
    pub(super) outages: Vec<OutageConfig>,
    /// Sentences about single links: `link n3-n4 down from 10 s to 20 s`, `link n3->n4 loses 5%` or `link n3->n4 gains
    /// -10 dB` (default: none). Times are in s or ms, from time 0. n3-n4 means both directions. A loss replaces `loss`,
    /// a gain adds to the received power.
    pub(super) links: Vec<String>,
    /// Recording of a field, such as one of `hopwise mesh record` and `hopwise mesh merge`. It replaces path loss,
    /// shadowing, fading and gains of links (default: none). The received power of each link follows its rows: in dB
    /// from one to the next, at most three intervals. A row holds for one and a half intervals elsewhere. Links without
    /// rows carry nothing. Nodes have the names of the topology; if no recorded host has one, hosts are nodes in their
    /// order. Places decide delays alone. Losses and outages apply. Static routes take links by their mean power in the
    /// first 10 s. The path is relative to the current directory.
    pub(super) trace: Option<String>,
    /// Power between nodes that no row of `trace` joins in their direction: none, or path-loss, that of `path_loss`
    /// between their places and too weak for a link (default none). A recorder hears neighbours alone. Nodes further
    /// away keep the carrier busy all the same.
    pub(super) unheard: UnheardName,
    /// Noise power, for profiles of OFDM, 802.11n and 802.11ac. With it, the signal-to-noise ratio decides which frames
    /// arrive (default: no noise).
    #[schemars(extend("x-range" = "-150 to 0"))]
    pub(super) noise_dbm: Option<f64>,
}

/// Power between nodes that no row of a recording joins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum UnheardName {
    /// Frames of one do not reach the other.
    #[default]
    None,
    /// The path loss between their places decides, but the power is too weak for a link.
    PathLoss,
}

/// Model of path loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PathLossName {
    /// Two-ray ground reflection, as in ns-2: radios decode up to 250 m and sense up to 550 m.
    #[default]
    TwoRay,
    /// Free space up to 1 m, then path loss with `exponent`.
    LogDistance,
}

/// Model of fading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FadingName {
    /// No fading.
    #[default]
    None,
    /// Rayleigh fading with `doppler_hz`.
    Rayleigh,
    /// Rician fading with `doppler_hz` and `k`.
    Rician,
}

/// Outage of a link, such as `{ from: n3, to: n4, begins: 10s, ends: 20s }`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OutageConfig {
    /// Node at one end of the link.
    pub(super) from: String,
    /// Node at the other end of the link.
    pub(super) to: String,
    /// Start of the outage, from time 0 of the simulation.
    pub(super) begins: Time,
    /// End of the outage, from time 0 of the simulation.
    pub(super) ends: Time,
    /// The outage affects only frames from `from` to `to` (default false).
    #[serde(default)]
    pub(super) one_way: bool,
    /// Longest random delay of the whole outage, drawn anew for each seed (default 0s).
    #[serde(default, skip_serializing_if = "Time::is_zero")]
    pub(super) shift: Time,
}

/// Gateway between a wire and the radio (default: none). The base-station agent of an arm runs there. In the keys of
/// `gateway` a fade is an outage of a radio link of the gateway, from `channel.outages` or `channel.links`.
/// `channel.fading` makes none. Only in worlds sim and netns.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct GatewayConfig {
    /// Name of the gateway, a node with a wire and a radio (default n0).
    pub(super) node: Option<String>,
    /// Time from a warning to the fade that it announces. With 0s no fade has a warning, but false alarms still come
    /// (source: truth; default 200ms).
    pub(super) lead: Time,
    /// A warning tells how long its fade will last. This is the largest error of that length, as a share of it (source:
    /// truth; default 0%).
    pub(super) error: Share,
    /// Share of fades without a warning (source: truth; default 0%).
    pub(super) missing: Share,
    /// Number of warnings without a fade in one run, over all nodes that have fades (source: truth; default 0).
    #[schemars(extend("x-range" = "0 to 10000", "x-unit" = "warnings"))]
    pub(super) false_alarms: u32,
    /// Delay until the gateway notices that a link went down or came back (source: truth; default 0s).
    pub(super) late: Time,
    /// Source of the forecast (default truth).
    pub(super) source: SourceName,
    /// Slope of the predictor's signal before and after an outage; frames do not feel it (source: predictor; default
    /// 20).
    #[schemars(extend("x-range" = SLOPES))]
    pub(super) slope_db_s: f64,
    /// Standard deviation of the error of each signal sample, one every 20 ms (source: predictor; default 2).
    #[schemars(extend("x-range" = ERRORS))]
    pub(super) noise_db: f64,
    /// Standard deviation of a slower error of the signal, which lasts for half a second (source: predictor; default
    /// 0).
    #[schemars(extend("x-range" = ERRORS))]
    pub(super) shadow_db: f64,
}

/// Source of the forecast of fades.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SourceName {
    /// The outages of the scenario, with the errors that the keys of `gateway` set.
    #[default]
    Truth,
    /// A predictor, as in `hopwise proxy`, forecasts from a made-up signal that falls before each outage.
    Predictor,
}

impl Default for GatewayConfig {
    fn default() -> GatewayConfig {
        GatewayConfig {
            node: None,
            lead: Time(Duration::from_millis(200)),
            error: Share(0),
            missing: Share(0),
            false_alarms: 0,
            late: Time(Duration::ZERO),
            source: SourceName::Truth,
            slope_db_s: 20.0,
            noise_db: 2.0,
            shadow_db: 0.0,
        }
    }
}

/// Rules of the 802.11 MAC.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Mac {
    /// Rule set of the MAC (default standard).
    pub(super) rules: Word<MacRules>,
}

words! {
    /// Rule set of the MAC.
    MacRules as "MacRules" {
        /// IEEE 802.11.
        "standard" => Standard,
        /// The MAC of ns-2, with other timeouts, captures and sizes of frames.
        "ns2" => Ns2,
    }
}
