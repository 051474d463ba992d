//! Examples of keys: places in files that come with Hopwise, which tests read as the commands do.

use serde::Serialize;
use serde_json::json;
use serde_yaml::Value;

use super::FileKind;

macro_rules! files {
    ($($name:literal)+) => { &[$(($name, include_str!(concat!("../../", $name)))),+] };
}

impl FileKind {
    /// The files with examples, by their names; the first one with a key has its example.
    pub(super) fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            FileKind::Scenario => files! {
                "configs/quickstart.yaml" "configs/chain.yaml" "configs/mixed.yaml" "configs/moving.yaml"
                "configs/base-station.yaml" "configs/routing/walkers.yaml" "configs/keys/scenario.yaml"
                "configs/keys/aodv.yaml" "configs/keys/dymo.yaml" "configs/keys/dsr.yaml"
                "configs/keys/gpsr.yaml" "configs/keys/batman.yaml" "configs/keys/batman-brief.yaml"
                "configs/keys/hwmp.yaml" "configs/keys/hwmp-brief.yaml"
                "configs/keys/grid.yaml" "configs/keys/random.yaml" "configs/keys/cross.yaml"
                "configs/keys/positions.yaml" "configs/today.yaml" "configs/keys/fq-codel.yaml"
                "configs/keys/amsdu.yaml" "configs/live/transparent.yaml" "configs/field.yaml"
                "configs/thin.yaml" "configs/keys/host.yaml" "configs/recipes/retries.yaml"
            },
            FileKind::Node => {
                files! { "configs/node.yaml" "configs/keys/node.yaml" "configs/keys/raw.yaml" "configs/keys/pcap.yaml" }
            }
            FileKind::Route => {
                files! {
                    "configs/route.yaml" "configs/keys/route.yaml" "configs/keys/route-dymo.yaml"
                    "configs/keys/route-brief.yaml"
                }
            }
            FileKind::Proxy => {
                files! { "configs/proxy.yaml" "configs/keys/proxy.yaml" "configs/keys/queue.yaml" }
            }
            FileKind::Thin => files! { "configs/keys/thin.yaml" },
            FileKind::Inventory => files! { "configs/inventory.yaml" "configs/keys/inventory.yaml" },
            FileKind::Mesh => {
                files! { "configs/mesh.yaml" "configs/keys/mesh.yaml" "configs/keys/mesh-brief.yaml" }
            }
        }
    }

    /// The example of a key.
    pub(super) fn example(self, path: &str) -> Option<Example> {
        let steps: Vec<&str> = path.split('.').collect();
        self.files().iter().find_map(|(file, text)| {
            let whole: Value = serde_yaml::from_str(text).ok()?;
            let (line, value) = shown(&whole, &steps)?;
            Some(Example { file, line, value })
        })
    }
}

/// An example of a key.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Example {
    /// The file that has it.
    file: &'static str,
    /// The place in the file, in one line: `links: [{ mtu: 1500 }]`.
    pub(super) line: String,
    pub(super) value: String,
}

/// The longest example.
const LONGEST: usize = 100;

/// The place in one line, and the value there. Long blocks are no examples.
fn shown(value: &Value, steps: &[&str]) -> Option<(String, String)> {
    let Some((step, rest)) = steps.split_first() else {
        let value = flow(value);
        return (value.len() <= LONGEST && value != "null").then(|| (value.clone(), value));
    };
    let (key, is_list) = step.strip_suffix("[]").map_or((*step, false), |key| (key, true));
    let mapping = value.as_mapping()?;
    let all = mapping.iter().filter_map(|(name, value)| Some((name.as_str()?, value)));
    all.filter(|(name, _)| key == "NAME" || *name == key).find_map(|(name, value)| {
        let end = |inner: String| if rest.is_empty() { inner } else { format!("{{ {inner} }}") };
        let (inner, last) = if is_list {
            let (of, last) = value.as_sequence()?.iter().find_map(|one| shown(one, rest))?;
            (format!("[{}]", end(of)), last)
        } else {
            let (of, last) = shown(value, rest)?;
            (end(of), last)
        };
        Some((format!("{}: {inner}", flow(&Value::from(name))), last))
    })
}

/// A value in one line.
fn flow(value: &Value) -> String {
    match value {
        Value::Mapping(of) => {
            let each: Vec<_> =
                of.iter().map(|(key, value)| format!("{}: {}", flow(key), flow(value))).collect();
            format!("{{ {} }}", each.join(", "))
        }
        Value::Sequence(of) => format!("[{}]", of.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::String(text) => {
            let is_plain = |text: &str| {
                let read = serde_yaml::from_str::<Value>(&format!("{{ {text}: [{text}] }}"));
                read.is_ok_and(|read| {
                    read.get(text).is_some_and(|of| of.get(0).and_then(Value::as_str) == Some(text))
                })
            };
            if is_plain(text) { text.clone() } else { json!(text).to_string() }
        }
        other => serde_yaml::to_string(other).unwrap_or_default().trim_end().to_owned(),
    }
}

#[cfg(test)]
mod tests;
