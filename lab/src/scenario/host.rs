//! `host:` as hosts get it: settings by name with their values in words, commands, and what a world does not have.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::schema::{HostConfig, ScenarioFile};
use crate::located::{Document, Refusal, YamlPath, one_of};
use crate::world::World;

/// The settings of hosts in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostPlan {
    /// Settings by name, with their values in words: `on`, `off`, or a number.
    pub settings: Vec<(String, String)>,
    before: BTreeMap<String, String>,
    after: BTreeMap<String, String>,
    /// The time between the changes and the run.
    pub settle: Duration,
}

/// The name of all nodes among commands.
const ALL: &str = "all";
/// The setting that simulated radios take.
const SIMULATED: &str = "rts_threshold";
/// The settings that only drivers of radios have.
const OF_DRIVERS: [&str; 5] =
    ["fragmentation", "short_retries", "long_retries", "coverage_class", "power_save"];

impl HostPlan {
    /// True if nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.settings.is_empty() && self.before.is_empty() && self.after.is_empty()
    }

    /// The commands before the run at a node, each with the command that undoes it. An empty one does nothing.
    pub fn commands(&self, node: &str) -> Vec<(&str, &str)> {
        let pair = |name| (self.before.get(name), self.after.get(name));
        let pairs = [ALL, node].map(pair).into_iter().filter(|pair| *pair != (None, None));
        pairs
            .map(|(before, after)| (before.map_or("", String::as_str), after.map_or("", String::as_str)))
            .collect()
    }

    /// The plan of a file whose nodes have these names.
    pub(super) fn read(
        document: &Document,
        file: &ScenarioFile,
        nodes: &[String],
    ) -> Result<HostPlan, Box<Refusal>> {
        let Some(host) = &file.host else { return Ok(HostPlan::default()) };
        let names: Vec<_> = [ALL].into_iter().chain(nodes.iter().map(String::as_str)).collect();
        for (key, commands) in [("before", &host.before), ("after", &host.after)] {
            if let Some(odd) = commands.keys().find(|name| !names.contains(&name.as_str())) {
                let at = YamlPath::root().key("host").key(key).key(odd);
                return Err(document.refuse_key(
                    &at,
                    format!("no node is called `{odd}`"),
                    &one_of(odd, &names),
                ));
            }
        }
        let mut settings = given(host);
        settings.retain(|(name, _)| file.world.0 == World::Mesh || name != SIMULATED);
        let settle = host.settle.map_or(Duration::ZERO, |time| time.0);
        Ok(HostPlan { settings, before: host.before.clone(), after: host.after.clone(), settle })
    }
}

/// Simulated radios take the threshold that drivers would.
pub(super) fn simulate(file: &mut ScenarioFile) {
    let threshold = file.host.as_ref().and_then(|host| host.rts_threshold);
    if let Some(threshold) = threshold.filter(|_| file.world.0 != World::Mesh) {
        file.radio.rts_threshold = threshold;
    }
}

/// The settings by name, with their values in words.
fn given(host: &HostConfig) -> Vec<(String, String)> {
    let keys = serde_json::to_value(host).expect("nothing in it but texts and numbers");
    let mut all = Vec::new();
    for (name, value) in keys.as_object().into_iter().flatten() {
        match (name.as_str(), value) {
            ("before" | "after" | "settle", _) | (_, Value::Null) => {}
            (_, Value::Object(switches)) => {
                all.extend(switches.iter().map(|(name, value)| (name.clone(), in_words(value))));
            }
            _ => all.push((name.clone(), in_words(value))),
        }
    }
    all
}

fn in_words(value: &Value) -> String {
    match value {
        Value::Bool(is_on) => (if *is_on { "on" } else { "off" }).to_owned(),
        Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        value => value.to_string(),
    }
}

/// Refuses what the hosts of this world do not have.
pub(super) fn check(document: &Document, file: &ScenarioFile) -> Result<(), Box<Refusal>> {
    let Some(host) = &file.host else { return Ok(()) };
    let at = YamlPath::root().key("host");
    let is_part =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    let is_switch = |name: &&String| name.starts_with("net.") && name.split('.').all(is_part);
    if let Some(odd) = host.sysctl.keys().find(|name| !is_switch(name)) {
        let accepted = "a switch of the network, such as net.ipv4.tcp_slow_start_after_idle";
        let at = at.key("sysctl").key(odd);
        return Err(document.refuse_key(&at, format!("`{odd}` is no such switch"), accepted));
    }
    let given = document.value_at("host").and_then(serde_yaml::Value::as_mapping);
    for key in given.into_iter().flat_map(|keys| keys.keys()).filter_map(serde_yaml::Value::as_str) {
        let (problem, accepted) = match file.world.0 {
            World::Sim if key == "txqueuelen" => {
                ("the simulation has no hosts", "radio.queue_packets, or world: netns")
            }
            World::Sim if key != SIMULATED => {
                ("the simulation has no hosts", "rts_threshold, or world: netns, hwsim or mesh")
            }
            World::Netns if OF_DRIVERS.contains(&key) => {
                ("radios have no driver in the world netns", "no such key, or world: hwsim or mesh")
            }
            _ => continue,
        };
        return Err(document.refuse_key(&at.key(key), problem, accepted));
    }
    Ok(())
}
