//! What flows: `traffic:`.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};

use crate::units::{Rate, Size, Time};

/// Flows from one node to another. Which keys there are depends on the kind.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario) struct Traffic {
    /// Who opens: first, last, or a node's name such as n3.
    pub(in crate::scenario) from: String,
    pub(in crate::scenario) to: String,
    pub(in crate::scenario) kind: TrafficKind,
    /// Payload of a full segment, or of a datagram.
    #[serde(default = "segment_bytes")]
    pub(in crate::scenario) segment_bytes: u16,
    /// So many alike, each beginning later than the one before.
    #[serde(default = "one")]
    pub(in crate::scenario) flows: u32,
    #[serde(default = "apart")]
    pub(in crate::scenario) apart: Time,
    #[serde(default = "at_once")]
    pub(in crate::scenario) start: Drawn<Time>,
    /// Nothing new begins from then on, and data without end is cut off; on the clock of `start`.
    pub(in crate::scenario) stop: Option<Time>,
    /// It stands in its own row and in no total.
    #[serde(default)]
    pub(in crate::scenario) background: bool,
    /// Of bulk: which way data goes, seen from who opens.
    pub(in crate::scenario) direction: Option<DirectionName>,
    /// Of bulk: transfers of this size, each on a connection of its own; without it data never ends.
    pub(in crate::scenario) bytes: Option<Drawn<Size>>,
    /// Of requests: the size of one, at least 8B.
    pub(in crate::scenario) request: Option<Drawn<Size>>,
    /// Of requests: the size of the answer.
    pub(in crate::scenario) response: Option<Drawn<Size>>,
    /// Between the end of a transfer or an answer and what comes next.
    pub(in crate::scenario) think: Option<Drawn<Time>>,
    /// How many transfers (one where nothing is said) or requests (as many as there is time for).
    pub(in crate::scenario) repeat: Option<u32>,
    /// Of cbr: between datagrams.
    pub(in crate::scenario) every: Option<Drawn<Time>>,
    /// Of cbr, instead of `every`: payload a second.
    pub(in crate::scenario) rate: Option<Rate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::scenario) enum TrafficKind {
    /// TCP that never runs out of data, or transfers of so many bytes.
    Bulk,
    /// TCP, a question and its answer at a time.
    Request,
    /// UDP at intervals.
    Cbr,
    /// UDP, as much as leaves.
    Saturated,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::scenario) enum DirectionName {
    #[default]
    Forth,
    Back,
    Both,
}

/// A value, or one that chance draws: `2s`, `{ mean: 2s }` (exponential), `{ from: 1s, to: 3s }` (evenly).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(in crate::scenario) enum Drawn<T> {
    Fixed(T),
    Mean { mean: T },
    Between { from: T, to: T },
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Drawn<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Drawn<T>, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct ByChance<T> {
            mean: Option<T>,
            from: Option<T>,
            to: Option<T>,
        }
        let value = serde_yaml::Value::deserialize(from)?;
        if !value.is_mapping() {
            return serde_yaml::from_value(value).map(Drawn::Fixed).map_err(D::Error::custom);
        }
        match serde_yaml::from_value(value).map_err(D::Error::custom)? {
            ByChance { mean: Some(mean), from: None, to: None } => Ok(Drawn::Mean { mean }),
            ByChance { mean: None, from: Some(from), to: Some(to) } => Ok(Drawn::Between { from, to }),
            _ => Err(D::Error::custom("neither a mean nor bounds, expected `mean`, or `from` and `to`")),
        }
    }
}

impl<T: JsonSchema> JsonSchema for Drawn<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Drawn{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({
            "description": "A value, or one that chance draws.",
            "anyOf": [
                one,
                {
                    "type": "object", "description": "Exponential.",
                    "properties": { "mean": one }, "required": ["mean"], "additionalProperties": false,
                },
                {
                    "type": "object", "description": "Evenly.",
                    "properties": { "from": one, "to": one }, "required": ["from", "to"],
                    "additionalProperties": false,
                },
            ],
        })
    }
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

fn at_once() -> Drawn<Time> {
    Drawn::Fixed(Time(Duration::ZERO))
}
