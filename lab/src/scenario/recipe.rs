//! Recipes: scenarios that come with Hopwise. A recipe over a file gives it arms, the figures that decide, and probes.
//! Nodes, radios and flows stay as the file has them.

use std::path::Path;

use hopwise_agents::registry::DEFAULT_SENDERS;
use serde::Serialize;
use serde_yaml::Value;

use super::Scenario;
use crate::located::{Document, LoadError};
use crate::world::{World, kernel_algorithm};

/// The receiver that acknowledges as Linux does.
const LINUX: &str = "linux";

impl Scenario {
    /// Reads a recipe, alone or over a file, and sets `PATH=VALUE`s over it.
    pub fn of_recipe(
        (name, text): (&str, &str),
        file: Option<&Path>,
        sets: &[String],
    ) -> Result<Scenario, LoadError> {
        let recipe = Document::parse(name, text).map_err(LoadError::Refused)?;
        let (name, document) = match file {
            None => (name.to_owned(), recipe.clone()),
            Some(file) => {
                let stem = file.file_stem().unwrap_or_default().to_string_lossy();
                (format!("{stem}-{name}"), Document::load(file)?)
            }
        };
        let mut told = document.clone();
        for assignment in sets {
            told.set("--set", assignment).map_err(LoadError::Refused)?;
        }
        let world = told.value_at("world").and_then(Value::as_str).unwrap_or(World::Sim.name());
        let mut arms = recipe.value_at("arms").cloned().unwrap_or_default();
        let is_changed = world == World::Sim.name() && simulate(&mut arms);
        let mut all = Vec::new();
        if file.is_some() || is_changed {
            all.push(set("arms", &arms));
        }
        if file.is_some() {
            all.extend(over(&recipe, &document));
        }
        all.extend_from_slice(sets);
        Scenario::new(name, document, &all).map_err(LoadError::Refused)
    }
}

fn set(path: &str, value: &impl Serialize) -> String {
    format!("{path}={}", serde_json::to_string(value).unwrap_or_default())
}

/// The figures, the baseline and the probes of a recipe, for a file. A probe is between the ends of the file's first
/// flow, and a file with probes keeps its own.
fn over(recipe: &Document, file: &Document) -> Vec<String> {
    let first = recipe.value_at("arms").and_then(Value::as_mapping).and_then(|arms| arms.keys().next());
    let mut sets =
        vec![set("run.baseline", &recipe.value_at("run.baseline").or(first)), set("claims", &[(); 0])];
    sets.extend(recipe.value_at("run.figure").map(|figures| set("run.figure", figures)));
    let flows =
        |of: &Document| of.value_at("traffic").and_then(Value::as_sequence).cloned().unwrap_or_default();
    let is_probe = |flow: &Value| flow.get("kind").and_then(Value::as_str) == Some("probe");
    let own = flows(file);
    if own.iter().any(is_probe) {
        return sets;
    }
    for (nth, mut probe) in flows(recipe).into_iter().filter(is_probe).enumerate() {
        for end in ["from", "to"] {
            if let Some(name) = own.first().and_then(|flow| flow.get(end)) {
                probe[end] = name.clone();
            }
        }
        sets.push(set(&format!("traffic.{}", own.len() + nth), &probe));
    }
    sets
}

/// Gives arms of the kernel's TCP what the simulation has in its place: Linux's rules by our agents, and the agent of
/// `thin` as the receiver. Returns whether there was such an arm.
fn simulate(arms: &mut Value) -> bool {
    let mut is_changed = false;
    for arm in arms.as_mapping_mut().into_iter().flat_map(serde_yaml::Mapping::values_mut) {
        let sender = arm.get("sender").and_then(Value::as_str).and_then(kernel_algorithm);
        let Some((sender, own)) = sender.map(str::to_owned).zip(arm.as_mapping_mut()) else { continue };
        let thin = own.remove("thin");
        own.insert("receiver".into(), thin.unwrap_or_else(|| LINUX.into()));
        own.insert("sender".into(), if sender == "cubic" { DEFAULT_SENDERS.into() } else { sender.into() });
        is_changed = true;
    }
    is_changed
}
