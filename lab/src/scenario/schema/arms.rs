//! The arms of a trial, in the order in which the file has them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::rules::{base_station, receiver, senders, shadows, specs};

/// One arm of the trial: its agents and its own settings. Default agents are receiver `delayed` and sender `cubic`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::scenario) struct ArmConfig {
    /// Receiver agent, which decides when to acknowledge (default delayed). `kernel` runs the kernel's TCP, in the
    /// worlds netns and hwsim.
    #[schemars(schema_with = "receiver")]
    pub(in crate::scenario) receiver: Option<String>,
    /// Sender agent, which decides how much to send: a spec such as `cubic`, or a list of specs (default
    /// cubic:hystart=on). `kernel:bbr` is the kernel's TCP with its algorithm bbr, and goes with receiver `kernel`.
    #[serde(deserialize_with = "specs")]
    #[schemars(schema_with = "senders")]
    pub(in crate::scenario) sender: Option<String>,
    /// Receiver agents that only watch: results count the ACKs that they would have sent. A spec, or a list of specs
    /// (default: none).
    #[serde(deserialize_with = "specs")]
    #[schemars(schema_with = "shadows")]
    pub(in crate::scenario) shadows: Option<String>,
    /// Agent at the gateway, which decides what happens to packets around a fade, such as `ack-hold:mode=kick`
    /// (default: the gateway only forwards). The scenario then needs `gateway`.
    #[schemars(schema_with = "base_station")]
    pub(in crate::scenario) base_station: Option<String>,
    /// Programs use the kernel's TCP on a host behind each end of the flows. A transparent node at each end carries it
    /// over Hopwise with the arm's agents (default: false, programs use the arm's TCP themselves). In the worlds netns
    /// and hwsim.
    pub(in crate::scenario) transparent: bool,
    /// Receiver agent by which `hopwise thin` holds and drops ACKs of the kernel's TCP, at each node that receives
    /// (default: the kernel's ACKs leave as they are). It goes with receiver `kernel`, in live worlds.
    #[schemars(schema_with = "receiver")]
    pub(in crate::scenario) thin: Option<String>,
    /// Settings of hosts for this arm, in the form of the file's `host` (default: the file's). `host: { gro: false }`
    /// is `set: { host.gro: false }`.
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub(in crate::scenario) host: BTreeMap<String, serde_yaml::Value>,
    /// Keys of the file with other values for this arm, by path, such as `topology.hops: 12` (default: none). These
    /// cannot be set: `title`, `world`, `arms`, `matrix`, and keys of `run` except `duration` and `warmup`.
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub(in crate::scenario) set: BTreeMap<String, serde_yaml::Value>,
}

#[derive(Clone, Debug)]
pub(in crate::scenario) struct Arms(Vec<(String, ArmConfig)>);

impl Arms {
    pub(in crate::scenario) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The paths that arms set, each once, down to values without keys of their own.
    pub(in crate::scenario) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        for (path, value) in self.0.iter().flat_map(|(_, arm)| &arm.set) {
            leaves(path, value, &mut paths);
        }
        paths
    }

    pub(in crate::scenario) fn find(&self, wanted: &str) -> Option<&ArmConfig> {
        self.0.iter().find(|(name, _)| name == wanted).map(|(_, arm)| arm)
    }
}

fn leaves(path: &str, value: &serde_yaml::Value, paths: &mut Vec<String>) {
    match value.as_mapping() {
        Some(map) => {
            for (key, value) in map {
                leaves(&format!("{path}.{}", key.as_str().unwrap_or_default()), value, paths);
            }
        }
        None if !paths.iter().any(|known| known == path) => paths.push(path.to_owned()),
        None => {}
    }
}

impl<'de> Deserialize<'de> for Arms {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Arms, D::Error> {
        struct ArmsVisitor;

        impl<'de> Visitor<'de> for ArmsVisitor {
            type Value = Arms;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("arms by their names, such as x: { receiver: delayed, sender: [cubic] }")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Arms, M::Error> {
                let mut arms = Vec::new();
                // An arm without a value has the defaults.
                while let Some((name, arm)) = map.next_entry::<String, Option<ArmConfig>>()? {
                    let mut arm = arm.unwrap_or_default();
                    let host = std::mem::take(&mut arm.host).into_iter();
                    arm.set.extend(host.map(|(key, value)| (format!("host.{key}"), value)));
                    arms.push((name, arm));
                }
                Ok(Arms(arms))
            }
        }

        from.deserialize_map(ArmsVisitor)
    }
}

impl JsonSchema for Arms {
    fn schema_name() -> Cow<'static, str> {
        "Arms".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = generator.subschema_for::<BTreeMap<String, Option<ArmConfig>>>();
        let text = "Arms of the trial by name: the agents and settings that are compared. The first one is the \
                    baseline unless `run.baseline` names another.";
        schema.insert("description".to_owned(), text.into());
        schema.insert("minProperties".to_owned(), 1.into());
        schema
    }
}
