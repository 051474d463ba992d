//! What a scenario says of the trials that it is for: a cell of its matrix, and when a trial ends.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A cell of a trial's matrix: the paths that vary, each with its value. Empty where there is no matrix.
pub type Point = BTreeMap<String, Value>;

/// When a trial ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// After all seeds.
    #[default]
    AllSeeds,
    /// When there is a verdict on every arm, and after all seeds at the latest.
    WhenSure,
}

/// A value as people write it.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
