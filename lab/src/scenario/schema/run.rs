//! `run:` and `matrix:`, the length and number of runs and the values that a trial varies.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use crate::scenario::point::Stop;
use crate::statistics::GOODPUT;
use crate::units::{Share, Time, number};
use crate::words::one_or_more;

/// Length of a run, number of seeds, and condition that ends the trial.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario) struct RunConfig {
    /// Length of a run, counted from the start of the first flow.
    #[schemars(extend("x-range" = "above 0s to 72h"))]
    pub(in crate::scenario) duration: Time,
    /// Time that results leave out, counted from the start of the first flow; shorter than duration (default 0s).
    #[serde(default)]
    pub(in crate::scenario) warmup: Time,
    /// Number of seeds; each arm runs once with each seed at each point (default 5).
    #[serde(default = "number::<u32, 5>")]
    #[schemars(extend("x-range" = "1 to 100000", "x-unit" = "seeds"))]
    pub(in crate::scenario) seeds: u32,
    /// Largest relative difference that does not matter (default 3%). Arms that surely differ by less have the verdict
    /// "no difference".
    #[serde(default = "three_per_cent")]
    #[schemars(extend("x-range" = "less than 100%"))]
    pub(in crate::scenario) margin: Share,
    /// Condition that ends the trial (default all-seeds).
    #[serde(default)]
    pub(in crate::scenario) stop: Stop,
    /// Arm that the others are compared with (default: the first arm).
    pub(in crate::scenario) baseline: Option<String>,
    /// Figure that decides the verdicts, such as completion-p95, or a list of figures (default goodput-kbps). A figure
    /// is a column of records.csv of which either more or less is better. docs/statistics.md lists them.
    #[serde(default = "goodput")]
    pub(in crate::scenario) figure: Figures,
}

/// Names of figures, as the file has them.
#[derive(Clone, Debug)]
pub(in crate::scenario) struct Figures(pub(in crate::scenario) Vec<String>);

fn goodput() -> Figures {
    Figures(vec![GOODPUT.name.to_owned()])
}

impl<'de> Deserialize<'de> for Figures {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Figures, D::Error> {
        one_or_more(from, "a figure such as completion-p95, or a list of them").map(Figures)
    }
}

impl JsonSchema for Figures {
    fn schema_name() -> Cow<'static, str> {
        "FigureNames".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let one = json_schema!({ "type": "string" });
        json_schema!({
            "description": "A figure, or a list of them.",
            "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }],
        })
    }
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
            "description": "Paths of keys in this file, each with a list of values, such as topology.hops: [1, 4]. \
                            Each combination of values is a point.",
            "properties": {
                "together": {
                    "description": "Groups of paths that change together, with lists that are equally long. A point \
                                    has the first value of each list, or the second of each, and so on (default: \
                                    none).",
                    "type": "array",
                    "items": { "type": "object", "minProperties": 1, "additionalProperties": values.clone() },
                },
                "exclude": {
                    "description": "Points that are left out (default: none). An entry excludes each point that has \
                                    all values of the entry.",
                    "type": "array",
                    "items": { "type": "object", "minProperties": 1 },
                },
            },
            "additionalProperties": paths,
        })
    }
}
