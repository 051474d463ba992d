//! Scenes of `configs/train`: the scenes that parameters were fitted to, and the scenes that were run only afterwards.

use std::collections::BTreeMap;
use std::fs;

use serde::Deserialize;

use crate::measure::{self, Cell};
use crate::row::{self, Row};

const ARMS: &[&str] = &["train", "delayed", "dca", "tda"];
/// The least ratio to the best of them, and the least mean ratio.
const LEAST: f64 = 0.98;
const LEAST_MEAN: f64 = 1.08;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scene {
    scene: String,
    /// True if flows are alike: their shares must then be alike too.
    #[serde(default)]
    alike: bool,
    set: BTreeMap<String, serde_yaml::Value>,
}

/// A scene under one set of MAC rules.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) sets: Vec<String>,
    is_alike: bool,
}

/// The scenes of a file, under both MAC rules.
pub(crate) fn cases(set: &str) -> Vec<Case> {
    let file = format!("configs/train/{set}.yaml");
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let scenes: Vec<Scene> = serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut cases = Vec::new();
    for scene in &scenes {
        for rules in ["standard", "ns2"] {
            let mut sets = vec![format!("mac.rules={rules}")];
            sets.extend(scene.set.iter().map(|(path, value)| format!("{path}={}", in_a_line(value))));
            cases.push(Case { name: format!("{rules} {}", scene.scene), sets, is_alike: scene.alike });
        }
    }
    cases
}

pub(crate) fn rows(set: &str) -> Vec<Row> {
    let cases = cases(set);
    let cells: Vec<_> = cases.iter().map(|case| Cell { sets: case.sets.clone(), arms: ARMS }).collect();
    let measured = measure::all(&cells);
    let mut rows: Vec<_> = cases
        .iter()
        .zip(measured)
        .map(|(case, means)| {
            let (peer, theirs) = measure::best(&ARMS[1..], &means[1..]);
            Row {
                name: case.name.clone(),
                unit: "kbit/s",
                ours: means[0].kbps,
                peer,
                theirs: theirs.kbps,
                goal: Some(LEAST),
                jain: case.is_alike.then_some(means[0].jain),
            }
            .printed()
        })
        .collect();
    rows.push(row::mean(&format!("mean of the {set} set"), &rows, LEAST_MEAN));
    rows
}

/// JSON is YAML in a line.
fn in_a_line(value: &serde_yaml::Value) -> String {
    serde_json::to_string(value).expect("what was read can be written")
}
