//! What a scenario says of the trials that it is for: a cell of its matrix, and when a trial ends.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A cell of a trial's matrix: the paths that vary, each with its value. Empty where there is no matrix.
pub type Point = BTreeMap<String, Value>;

/// Condition that ends a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "StopName")]
pub enum Stop {
    /// The trial ends after all seeds.
    #[default]
    AllSeeds,
    /// The trial ends when every arm has a verdict, at the latest after all seeds; it needs two arms.
    WhenSure,
}

/// A value as people write it.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
