//! How long, how often, and over which values: `run:` and `matrix:`.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use crate::units::{Share, Time};

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario) struct RunConfig {
    /// From the first flow's start.
    pub(in crate::scenario) duration: Time,
    /// Of which this is not counted.
    #[serde(default = "no_time")]
    pub(in crate::scenario) warmup: Time,
    /// So many runs of each arm.
    #[serde(default = "five")]
    pub(in crate::scenario) seeds: u32,
    /// Arms that surely differ by less are said not to differ.
    #[serde(default = "three_per_cent")]
    pub(in crate::scenario) margin: Share,
    /// When the trial ends.
    #[serde(default)]
    pub(in crate::scenario) stop: StopName,
    /// The arm that others are compared with; the first where nothing is said.
    pub(in crate::scenario) baseline: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::scenario) enum StopName {
    /// After all seeds.
    #[default]
    AllSeeds,
    /// When there is a verdict on every arm, and after all seeds at the latest.
    WhenSure,
}

fn no_time() -> Time {
    Time(Duration::ZERO)
}

fn five() -> u32 {
    5
}

fn three_per_cent() -> Share {
    Share(30_000)
}

/// Read by hand in `matrix.rs`, since any path may be a key.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub(in crate::scenario) struct MatrixConfig(pub(in crate::scenario) serde_yaml::Mapping);

impl JsonSchema for MatrixConfig {
    fn schema_name() -> Cow<'static, str> {
        "Matrix".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let values = json_schema!({ "type": "array", "minItems": 1 });
        // Paths may be cut: topology: { hops: [1, 4] }.
        let paths = json_schema!({ "type": ["array", "object"], "minItems": 1, "minProperties": 1 });
        json_schema!({
            "type": "object",
            "description": "Paths with the values that they take, such as topology.hops: [1, 4, 8]; all are crossed.",
            "properties": {
                "together": {
                    "description": "Groups of paths whose values go together, first with first.",
                    "type": "array",
                    "items": { "type": "object", "minProperties": 1, "additionalProperties": values.clone() },
                },
                "exclude": {
                    "description": "Points that are left out: those that have all values of an entry.",
                    "type": "array",
                    "items": { "type": "object", "minProperties": 1 },
                },
            },
            "additionalProperties": paths,
        })
    }
}
