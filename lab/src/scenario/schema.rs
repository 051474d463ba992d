//! The keys of a scenario, as files have them and as `hopwise schema` prints them. What no key can say alone is checked
//! in `check.rs`.

mod arms;
mod claims;
mod run;
mod traffic;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::routing::RoutingConfig;
use crate::rules::Rule;
use crate::units::{Rate, Share, Time};
pub(super) use arms::Arms;
pub use claims::{Bound, Claim, Measure, Over};
pub(super) use run::{MatrixConfig, RunConfig, StopName};
pub(super) use traffic::{DirectionName, Drawn, Traffic, TrafficKind};

/// A scenario: where nodes stand, what flows, and which agents are on trial.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "A scenario of Hopwise")]
pub(super) struct ScenarioFile {
    /// For people.
    pub(super) title: Option<String>,
    /// Where it runs.
    #[serde(default)]
    pub(super) world: World,
    pub(super) topology: Topology,
    pub(super) mobility: Option<Mobility>,
    #[serde(default)]
    pub(super) radio: RadioConfig,
    #[serde(default)]
    pub(super) channel: ChannelConfig,
    #[serde(default)]
    pub(super) mac: Mac,
    #[serde(default)]
    pub(super) routing: RoutingConfig,
    #[serde(default)]
    pub(super) tcp: Tcp,
    pub(super) traffic: Vec<Traffic>,
    /// Which agents a connection gets before it comes to the arm's; peers are nodes, addresses or networks.
    #[serde(default)]
    pub(super) rules: Vec<Rule<String>>,
    pub(super) gateway: Option<GatewayConfig>,
    pub(super) arms: Arms,
    pub(super) run: RunConfig,
    pub(super) matrix: Option<MatrixConfig>,
    /// What a paper says of it, for `hopwise claims`.
    #[serde(default)]
    pub(super) claims: Vec<Claim>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum World {
    #[default]
    Sim,
}

impl World {
    pub(super) fn name(self) -> &'static str {
        match self {
            World::Sim => "sim",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Shape {
    Chain,
    Cross,
    Grid,
    Random,
    File,
    /// An ns-2 movement file.
    Movements,
}

/// Where nodes stand. Which keys there are depends on the kind.
// Checked by hand: a tagged enum would lose their places.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Topology {
    pub(super) kind: Shape,
    /// Of a chain.
    pub(super) hops: Option<u32>,
    /// Between neighbours; 200 where nothing is said.
    pub(super) spacing_m: Option<f64>,
    /// Hops from the centre of a cross to each of its ends.
    pub(super) arm: Option<u32>,
    pub(super) rows: Option<u32>,
    pub(super) columns: Option<u32>,
    pub(super) nodes: Option<u32>,
    pub(super) width_m: Option<f64>,
    pub(super) height_m: Option<f64>,
    pub(super) file: Option<String>,
    /// A wire before the first node.
    pub(super) wired: Option<Wired>,
}

/// Random waypoint, in a rectangle from (0, 0) on; a random topology's own where none is given.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Mobility {
    /// The slowest and the fastest.
    pub(super) speed_mps: [f64; 2],
    /// At each place.
    #[serde(default = "no_time")]
    pub(super) pause: Time,
    pub(super) width_m: Option<f64>,
    pub(super) height_m: Option<f64>,
    /// Who stays, and where: a name with `[x, y]` in metres.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) still: BTreeMap<String, [f64; 2]>,
}

/// A node on a wire, before the first one that has a radio.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Wired {
    pub(super) rate: Rate,
    pub(super) delay: Time,
    /// At each end; the radio's where nothing is said.
    pub(super) queue_packets: Option<u32>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RadioConfig {
    pub(super) profile: String,
    pub(super) queue_packets: u32,
    pub(super) rts_threshold: Threshold,
    pub(super) when_full: WhenFullName,
    pub(super) rate: RateName,
    /// Neighbours ask for each other's addresses on the air; else they know them.
    pub(super) arp: bool,
}

impl Default for RadioConfig {
    fn default() -> RadioConfig {
        RadioConfig {
            profile: "dsss-2mbps".to_owned(),
            queue_packets: 50,
            rts_threshold: Threshold(Some(0)),
            when_full: WhenFullName::Drop,
            rate: RateName::Fixed,
            arp: false,
        }
    }
}

/// From how many bytes on a packet is announced by RTS; `off`: none is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Threshold(pub(super) Option<u32>);

impl<'de> Deserialize<'de> for Threshold {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Threshold, D::Error> {
        // YAML 1.1 reads `off` as false.
        match serde_yaml::Value::deserialize(from)? {
            serde_yaml::Value::Bool(false) => Ok(Threshold(None)),
            serde_yaml::Value::String(text) if text == "off" => Ok(Threshold(None)),
            serde_yaml::Value::Number(number) => number
                .as_u64()
                .and_then(|bytes| u32::try_from(bytes).ok())
                .map(|bytes| Threshold(Some(bytes)))
                .ok_or_else(|| de::Error::custom(format_args!("`{number}`, expected bytes, or off"))),
            _ => Err(de::Error::custom("wrong threshold, expected bytes, or off")),
        }
    }
}

impl Serialize for Threshold {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(bytes) => to.serialize_u32(bytes),
            None => to.serialize_str("off"),
        }
    }
}

impl JsonSchema for Threshold {
    fn schema_name() -> Cow<'static, str> {
        "Threshold".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Packets of at least so many bytes are announced by RTS; off: none is.",
            "anyOf": [{ "type": "integer", "minimum": 0, "maximum": u32::MAX }, { "enum": ["off", false] }],
        })
    }
}

/// `arf`: data takes the profile's rate or a slower one, by what became of the frames before.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RateName {
    #[default]
    Fixed,
    Arf,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum WhenFullName {
    #[default]
    Drop,
    Hold,
}

/// What the air does beside the distance.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ChannelConfig {
    pub(super) path_loss: PathLossName,
    /// Of log-distance.
    pub(super) exponent: Option<f64>,
    pub(super) shadowing_db: f64,
    pub(super) asymmetric: bool,
    pub(super) fading: FadingName,
    /// How fast power changes; twice the speed over the wavelength at the most.
    pub(super) doppler_hz: Option<f64>,
    /// Of Rician fading: the direct ray's power over that of all others.
    pub(super) k: Option<f64>,
    pub(super) loss: Share,
    pub(super) outages: Vec<OutageConfig>,
    /// Sentences such as `link n3-n4 down from 10 s to 20 s`.
    pub(super) links: Vec<String>,
    /// OFDM's frames are then understood by their SNR.
    pub(super) noise_dbm: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PathLossName {
    #[default]
    TwoRay,
    LogDistance,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FadingName {
    #[default]
    None,
    Rayleigh,
    Rician,
}

/// `{ from: n3, to: n4, begins: 10s, ends: 20s }`
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OutageConfig {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) begins: Time,
    pub(super) ends: Time,
    /// Frames the other way still arrive.
    #[serde(default)]
    pub(super) one_way: bool,
}

/// The node between a wire and a radio, where an arm's base-station agent runs, and how well it foresees fades.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct GatewayConfig {
    /// `n0` where nothing is said.
    pub(super) node: Option<String>,
    /// So long before a fade it is told of; 0s: never.
    pub(super) lead: Time,
    /// By how much the told duration is off at most.
    pub(super) error: Share,
    /// So many fades come untold.
    pub(super) missing: Share,
    /// So many are told of that never come.
    pub(super) false_alarms: u32,
    /// How long it takes to see that a link is gone, or back.
    pub(super) late: Time,
    /// Who says it: the truth with these errors, or a predictor by the signal before each outage.
    pub(super) source: SourceName,
    /// For a predictor: by so many dB a second the signal falls before an outage.
    pub(super) slope_db_s: f64,
    /// By how much each sample is off by itself, and by what lasts: one standard deviation.
    pub(super) noise_db: f64,
    pub(super) shadow_db: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SourceName {
    #[default]
    Truth,
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

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Mac {
    pub(super) rules: RulesName,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RulesName {
    #[default]
    Standard,
    Ns2,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Tcp {
    pub(super) profile: TcpProfile,
    pub(super) sack: Option<bool>,
    pub(super) timestamps: Option<bool>,
    pub(super) ecn: Option<bool>,
    pub(super) nagle: Option<bool>,
    pub(super) rto_min: Option<Time>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TcpProfile {
    #[default]
    Modern,
    Ns2,
}

fn no_time() -> Time {
    Time(Duration::ZERO)
}
