//! `host:` as hosts get it: settings by name with their values in words, commands, and what a world does not have.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::schema::{HostConfig, ScenarioFile};
use crate::located::{Checked, Document, YamlPath, one_of};
use crate::units::Time;
use crate::words::OrOff;
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
/// The keys that every kernel has. A Wi-Fi stack or batman-adv has the rest.
const OF_KERNELS: [&str; 8] = ["txqueuelen", "gro", "gso", "tso", "sysctl", "before", "after", "settle"];
/// Ends of names: forwarding of all interfaces sets each interface, and the end of IPv6 removes addresses.
const WIDE_ENDS: [&str; 3] = [".ip_forward", ".all.forwarding", ".disable_ipv6"];
/// The keys of a simulation in place of those of a host.
const IN_SIMULATION: [(&str, &str); 6] = [
    ("txqueuelen", "radio.queue_packets"),
    ("txq_limit", "radio.queue.packets"),
    ("aql_limit", "radio.queue.aql_low and radio.queue.aql_high"),
    ("mesh_path_refresh_time", "routing.hwmp.path_refresh_time"),
    ("mesh_hwmp_active_path_timeout", "routing.hwmp.active_path_timeout"),
    ("orig_interval", "routing.batman.orig_interval"),
];

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
    pub(super) fn read(document: &Document, file: &ScenarioFile, nodes: &[String]) -> Checked<HostPlan> {
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

/// Returns whether hosts get settings or commands; a simulated radio gets its threshold by itself.
pub(super) fn changes_hosts(host: &HostConfig) -> bool {
    let has_commands = !host.before.is_empty() || !host.after.is_empty();
    has_commands || given(host).iter().any(|(name, _)| name != SIMULATED)
}

/// The settings by name, with their values in words.
fn given(host: &HostConfig) -> Vec<(String, String)> {
    let keys = serde_json::to_value(host).expect("nothing in it but texts and numbers");
    let mut all = Vec::new();
    for (name, value) in keys.as_object().into_iter().flatten() {
        match (name.as_str(), value) {
            ("before" | "after" | "settle", _) | (_, Value::Null) => {}
            (_, Value::Object(switches)) => {
                all.extend(switches.iter().map(|(name, value)| (name.clone(), in_words(value, true))));
            }
            _ => all.push((name.clone(), in_words(value, false))),
        }
    }
    all
}

/// A switch of the kernel has numbers for on and off, and its texts are no times.
fn in_words(value: &Value, is_switch: bool) -> String {
    match value {
        Value::Bool(is_on) if is_switch => u8::from(*is_on).to_string(),
        Value::Bool(is_on) => (if *is_on { "on" } else { "off" }).to_owned(),
        Value::String(text) => match text.parse::<Time>() {
            Ok(time) if !is_switch => format!("{}us", time.0.as_micros()),
            _ => text.split_whitespace().collect::<Vec<_>>().join(" "),
        },
        value => value.to_string(),
    }
}

/// Refuses what the hosts of this world do not have.
pub(super) fn check(document: &Document, file: &ScenarioFile) -> Checked {
    let Some(host) = &file.host else { return Ok(()) };
    let at = YamlPath::root().key("host");
    let is_part =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    let is_switch = |name: &str| name.starts_with("net.") && name.split('.').all(is_part);
    for (name, value) in &host.sysctl {
        let (problem, accepted) = if !is_switch(name) {
            ("is no such switch", "a switch of the network, such as net.ipv4.tcp_slow_start_after_idle")
        } else if name.starts_with("net.ipv6.conf.all.") || WIDE_ENDS.iter().any(|end| name.ends_with(end)) {
            let accepted =
                "a switch of one interface, such as net.ipv4.conf.wlan0.forwarding, or `before` and `after`";
            ("changes more than itself, and its old value does not bring that back", accepted)
        } else if !(value.is_number() || value.is_bool() || value.is_string()) {
            ("has a list or nothing", "a number or a text, such as \"4096 131072 6291456\"")
        } else {
            continue;
        };
        return Err(document.refuse_key(
            &at.key("sysctl").key(name),
            format!("`{name}` {problem}"),
            accepted,
        ));
    }
    if let Some(odd) = host.fragmentation.and_then(OrOff::on).filter(|size| size % 2 == 1) {
        let problem = format!("{odd} is odd, and the kernel takes even sizes alone");
        return Err(document.refuse(&at.key("fragmentation"), problem, "an even number of bytes, or off"));
    }
    let given = document.value_at("host").and_then(serde_yaml::Value::as_mapping);
    for key in given.into_iter().flat_map(|keys| keys.keys()).filter_map(serde_yaml::Value::as_str) {
        let is_of_kernels = OF_KERNELS.contains(&key);
        let worlds = if is_of_kernels { "netns, hwsim or mesh" } else { "hwsim or mesh" };
        let (problem, instead) = match file.world.0 {
            _ if key == SIMULATED => continue,
            World::Sim if key == "settle" => continue,
            World::Sim => {
                let found = IN_SIMULATION.iter().find(|(of_host, _)| *of_host == key);
                (
                    "the simulation has no hosts",
                    found.map_or("no such key", |(_, of_simulation)| of_simulation),
                )
            }
            World::Netns if !is_of_kernels => ("radios have no driver in the world netns", "no such key"),
            _ => continue,
        };
        return Err(document.refuse_key(&at.key(key), problem, &format!("{instead}, or world: {worlds}")));
    }
    Ok(())
}
