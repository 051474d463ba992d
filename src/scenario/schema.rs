//! The keys of a scenario. What no key can say alone is checked in `check.rs`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer, de};

use crate::units::{Rate, Share, Time};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioFile {
    #[expect(dead_code, reason = "for people")]
    pub(super) title: Option<String>,
    #[serde(default)]
    #[expect(dead_code, reason = "there is one world so far, and serde refuses others")]
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
    #[expect(dead_code, reason = "there is one protocol so far, and serde refuses others")]
    pub(super) routing: RoutingConfig,
    #[serde(default)]
    pub(super) tcp: Tcp,
    pub(super) traffic: Vec<Traffic>,
    pub(super) arms: BTreeMap<String, ArmConfig>,
    pub(super) run: RunConfig,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum World {
    #[default]
    Sim,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
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

/// Which keys a shape needs and takes is checked by hand: a tagged enum would lose their places.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Topology {
    pub(super) kind: Shape,
    pub(super) hops: Option<u32>,
    pub(super) spacing_m: Option<f64>,
    /// Hops from the centre of a cross to each of its ends.
    pub(super) arm: Option<u32>,
    pub(super) rows: Option<u32>,
    pub(super) columns: Option<u32>,
    pub(super) nodes: Option<u32>,
    pub(super) width_m: Option<f64>,
    pub(super) height_m: Option<f64>,
    pub(super) file: Option<String>,
    pub(super) wired: Option<Wired>,
}

/// Random waypoint, in a rectangle from (0, 0) on; a random topology's own where none is given.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mobility {
    /// The slowest and the fastest.
    pub(super) speed_mps: [f64; 2],
    #[serde(default = "no_time")]
    pub(super) pause: Time,
    pub(super) width_m: Option<f64>,
    pub(super) height_m: Option<f64>,
}

/// A node on a wire, before the first one that has a radio.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wired {
    pub(super) rate: Rate,
    pub(super) delay: Time,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RadioConfig {
    pub(super) profile: String,
    pub(super) queue_packets: u32,
    pub(super) rts_threshold: Threshold,
    pub(super) when_full: WhenFullName,
    pub(super) rate: RateName,
}

impl Default for RadioConfig {
    fn default() -> RadioConfig {
        RadioConfig {
            profile: "dsss-2mbps".to_owned(),
            queue_packets: 50,
            rts_threshold: Threshold(Some(0)),
            when_full: WhenFullName::Drop,
            rate: RateName::Fixed,
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

/// `arf`: data takes the profile's rate or a slower one, by what became of the frames before.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RateName {
    #[default]
    Fixed,
    Arf,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum WhenFullName {
    #[default]
    Drop,
    Hold,
}

/// What the air does beside the distance.
#[derive(Clone, Debug, Default, Deserialize)]
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PathLossName {
    #[default]
    TwoRay,
    LogDistance,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FadingName {
    #[default]
    None,
    Rayleigh,
    Rician,
}

/// `{ from: n3, to: n4, begins: 10s, ends: 20s }`
#[derive(Clone, Debug, Deserialize)]
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

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Mac {
    pub(super) rules: RulesName,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RulesName {
    #[default]
    Standard,
    Ns2,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RoutingConfig {
    pub(super) protocol: Protocol,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Protocol {
    #[default]
    Static,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Tcp {
    pub(super) profile: TcpProfile,
    pub(super) sack: Option<bool>,
    pub(super) timestamps: Option<bool>,
    pub(super) ecn: Option<bool>,
    pub(super) nagle: Option<bool>,
    pub(super) rto_min: Option<Time>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TcpProfile {
    #[default]
    Modern,
    Ns2,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Traffic {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) kind: TrafficKind,
    /// Payload of a full segment, or of a datagram.
    #[serde(default = "segment_bytes")]
    pub(super) segment_bytes: u16,
    /// So many alike, each beginning later than the one before.
    #[serde(default = "one")]
    pub(super) flows: u32,
    #[serde(default = "apart")]
    pub(super) apart: Time,
    #[serde(default = "no_time")]
    pub(super) start: Time,
    /// Between datagrams (`kind: cbr`).
    pub(super) every: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TrafficKind {
    Bulk,
    Cbr,
    Saturated,
}

fn segment_bytes() -> u16 {
    1000
}

fn one() -> u32 {
    1
}

fn apart() -> Time {
    Time(Duration::from_millis(100))
}

fn no_time() -> Time {
    Time(Duration::ZERO)
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ArmConfig {
    pub(super) receiver: String,
    #[serde(deserialize_with = "specs")]
    pub(super) sender: Vec<String>,
    /// What this arm changes elsewhere in the file, by path.
    #[serde(default)]
    pub(super) set: BTreeMap<String, serde_yaml::Value>,
}

/// A list of specs, or one.
fn specs<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let wrong = || {
        de::Error::custom(
            "wrong senders, expected a spec such as cubic, or a list such as [newreno, \"limit:4\"]; a spec with \
             a comma or a colon inside [ ] must be quoted",
        )
    };
    match serde_yaml::Value::deserialize(from)? {
        serde_yaml::Value::String(one) => Ok(vec![one]),
        serde_yaml::Value::Sequence(many) => {
            many.iter().map(|one| one.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        _ => Err(wrong()),
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunConfig {
    /// From the first flow's start.
    pub(super) duration: Time,
    #[serde(default = "no_time")]
    pub(super) warmup: Time,
    #[serde(default = "five")]
    pub(super) seeds: u32,
}

fn five() -> u32 {
    5
}
