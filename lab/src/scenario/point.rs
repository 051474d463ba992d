//! Parts of a scenario about its trials: a cell of its matrix, and the condition that ends a trial.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plain::line;

/// A cell of a trial's matrix: the paths that vary, each with its value. Empty where there is no matrix.
pub type MatrixPoint = BTreeMap<String, Value>;

/// Condition that ends a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "StopName")]
pub enum Stop {
    /// The trial ends after all seeds.
    #[default]
    AllSeeds,
    /// The trial ends when no comparison is undecided, at the latest after all seeds. The file needs at least two arms.
    WhenSure,
}

/// A value in the form that people write, in one line.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => line(text),
        other => other.to_string(),
    }
}
