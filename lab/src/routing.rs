//! `routing:` of scenarios and of `hopwise route`: the protocol, its rules, and the constants of protocols by the
//! registry of [`hopwise_mesh`]. No protocol is named here.

mod given;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use hopwise_mesh::constants::{Constant, ConstantValue, ConstantValues, OnlySimulated, RuleSet};
use hopwise_mesh::{LiveRouter, PROTOCOLS, RoutingProtocol};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use crate::located::{Checked, Document, YamlPath, either};
use crate::sim::RoutingPlan;
use crate::words::{Word, Words, words};
use given::{NamedKey, Section};

/// Routing protocol and constants. Those of a flat protocol stand in the section itself, those of other protocols in
/// sections of their own.
#[derive(Clone, Debug, Default)]
pub struct RoutingConfig {
    protocol: Word<&'static RoutingProtocol>,
    rules: Word<RuleSet>,
    /// The constants that the file gives, by the protocol's name.
    given: BTreeMap<&'static str, ConstantValues>,
}

impl Words for &'static RoutingProtocol {
    const NAME: &'static str = "Protocol";
    const ABOUT: &'static str = "Routing protocol.";

    fn all() -> Vec<(&'static str, Self, &'static str)> {
        PROTOCOLS.iter().map(|protocol| (protocol.name, *protocol, protocol.summary)).collect()
    }
}

words! {
    /// Rule set of AODV.
    RuleSet as "AodvRules" {
        /// RFC 3561.
        "rfc3561" => Standard,
        /// AODV as ns-2 has it; only in world sim.
        "ns2" => Ns2,
    }
}

/// The protocols with constants in a section of their own.
fn sections() -> impl Iterator<Item = &'static RoutingProtocol> {
    PROTOCOLS.iter().copied().filter(|protocol| !protocol.is_flat && !protocol.constants.is_empty())
}

/// The protocol with constants beside its name.
fn flat() -> &'static RoutingProtocol {
    PROTOCOLS.iter().find(|protocol| protocol.is_flat).expect("invariant: the registry has a flat protocol")
}

/// True if a key of the section `routing` has an effect under this protocol.
pub fn takes(protocol: &RoutingProtocol, key: &str) -> bool {
    key == "protocol"
        || sections().find(|other| other.name == key).map_or(protocol.is_flat, |of| of == protocol)
}

/// The keys with an effect under this protocol, for a message about a key without.
pub fn effective_keys(protocol: &RoutingProtocol) -> String {
    let others: Vec<_> = sections().map(|other| other.name).collect();
    let flat = flat().name;
    if protocol.is_flat {
        format!("protocol: {} beside it", either(&others))
    } else if protocol.constants.is_empty() {
        format!("protocol: {flat} beside it")
    } else {
        format!("constants in the section {}, or protocol: {flat} beside it", protocol.name)
    }
}

/// The names of the protocols that are so.
pub fn names(is_so: impl Fn(&RoutingProtocol) -> bool) -> Vec<&'static str> {
    PROTOCOLS.iter().filter(|protocol| is_so(protocol)).map(|protocol| protocol.name).collect()
}

impl RoutingConfig {
    /// The protocol.
    pub fn protocol(&self) -> &'static RoutingProtocol {
        self.protocol.0
    }

    /// The rules that nodes follow.
    pub fn rules(&self) -> RuleSet {
        self.rules.0
    }

    /// The constants that the file gives to the protocol in force.
    pub fn given(&self) -> ConstantValues {
        let mut given = self.given.get(self.protocol().name).cloned().unwrap_or_default();
        given.rules = self.rules();
        given
    }

    /// The place of the protocol's constants; `at` is where the section stands.
    pub fn place(&self, at: &YamlPath) -> YamlPath {
        if self.protocol().is_flat { at.clone() } else { at.key(self.protocol().name) }
    }

    /// The section with the constants of the protocol filled in.
    pub fn in_force(&self) -> RoutingConfig {
        let (protocol, mut constants) = (self.protocol(), self.given());
        for constant in protocol.constants {
            let is_used = constant.is_used_under(constants.rules);
            if let Some(value) = protocol.value(&constants, constant.name).filter(|_| is_used) {
                constants.set(constant.name, value);
            }
        }
        let flat = self.given.get_key_value(flat().name).map(|(name, given)| (*name, given.clone()));
        RoutingConfig { given: flat.into_iter().chain([(protocol.name, constants)]).collect(), ..*self }
    }

    /// The section as a daemon has it: the constants of its protocol, and hellos unless the file turns them off: a link
    /// layer that never sends to a neighbour reports no loss of it.
    pub fn of_daemon(&self) -> RoutingConfig {
        if self.protocol().daemon.is_none() {
            return self.clone();
        }
        let mut given = self.given();
        if given.get("hello").is_none() {
            given.set("hello", ConstantValue::Switch(true));
        }
        RoutingConfig { given: BTreeMap::from([(self.protocol().name, given)]), ..*self }
    }

    /// The first part of the section that only simulations obey, and its place; `at` is where the section stands.
    pub fn only_simulated(&self, at: &YamlPath) -> Option<(OnlySimulated, YamlPath)> {
        let (protocol, given) = (self.protocol(), self.given());
        match protocol.live {
            LiveRouter::Nobody => return None,
            LiveRouter::Daemon => {}
            _ => return Some((OnlySimulated::Protocol, at.key("protocol"))),
        }
        if protocol.has_rule_sets() && given.rules == RuleSet::Ns2 {
            return Some((OnlySimulated::Rules, at.key("rules")));
        }
        let of = |(name, value)| {
            let why =
                protocol.constant(name)?.only_simulated.filter(|_| value != ConstantValue::Switch(false))?;
            Some((why, self.place(at).key(name)))
        };
        given.iter().find_map(of)
    }

    /// The protocol with its constants, which do not contradict each other; `at` is where the section stands.
    pub fn plan(&self, document: &Document, at: &YamlPath) -> Checked<RoutingPlan> {
        let (constants, at) = (self.given(), self.place(at));
        // A key signs the additions of `ack_seq` to messages, and nothing else.
        if constants.get("key").is_some() && !constants.is_on("ack_seq") {
            let accepted = "ack_seq: true beside it, whose messages it signs";
            return Err(document.refuse_key(&at.key("key"), "`key` changes nothing here", accepted));
        }
        if constants.is_on("signed") && constants.rules == RuleSet::Ns2 && self.protocol().has_rule_sets() {
            let problem = "the rules of ns-2 have no signatures";
            return Err(document.refuse(&at.key("signed"), problem, "rules: rfc3561"));
        }
        Ok(RoutingPlan { protocol: self.protocol(), constants })
    }
}

/// A key of the section.
enum SectionKey {
    Protocol,
    Rules,
    Section(&'static RoutingProtocol),
    Constant(&'static Constant),
}

impl SectionKey {
    fn named(name: &str) -> Result<SectionKey, Vec<&'static str>> {
        let section = || sections().find(|protocol| protocol.name == name).map(SectionKey::Section);
        let key = match name {
            "protocol" => Some(SectionKey::Protocol),
            "rules" => Some(SectionKey::Rules),
            _ => section().or_else(|| flat().constant(name).map(SectionKey::Constant)),
        };
        key.ok_or_else(|| {
            let sections = sections().map(|protocol| protocol.name);
            let constants = flat().constants.iter().map(|constant| constant.name);
            ["protocol", "rules"].into_iter().chain(sections).chain(constants).collect()
        })
    }
}

impl<'de> Deserialize<'de> for RoutingConfig {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<RoutingConfig, D::Error> {
        struct WholeSection;

        impl<'de> Visitor<'de> for WholeSection {
            type Value = RoutingConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("keys with values, such as { protocol: aodv }")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RoutingConfig, A::Error> {
                let mut config = RoutingConfig::default();
                while let Some(key) = map.next_key_seed(NamedKey(SectionKey::named))? {
                    match key {
                        SectionKey::Protocol => config.protocol = map.next_value()?,
                        SectionKey::Rules => config.rules = map.next_value()?,
                        SectionKey::Section(of) => {
                            config.given.insert(of.name, map.next_value_seed(Section(of))?);
                        }
                        SectionKey::Constant(constant) => {
                            given::read(config.given.entry(flat().name).or_default(), constant, &mut map)?;
                        }
                    }
                }
                Ok(config)
            }
        }

        from.deserialize_map(WholeSection)
    }
}

impl Serialize for RoutingConfig {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("protocol", &self.protocol)?;
        map.serialize_entry("rules", &self.rules)?;
        for (name, given) in &self.given {
            let written = given::written(given);
            if *name == flat().name {
                written.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
            } else if !given.is_empty() {
                map.serialize_entry(name, &written)?;
            }
        }
        map.end()
    }
}

/// Routing protocol and its constants. Those of AODV, named as in RFC 3561, stand in this section itself, and `rules`
/// sets their defaults. Other protocols have sections of their own.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "the schema of the keys that are no protocol's")]
struct CommonKeys {
    /// Routing protocol (default static).
    #[schemars(default)]
    protocol: Word<&'static RoutingProtocol>,
    /// Rule set of AODV, which also sets the defaults of its constants (default rfc3561).
    #[schemars(default)]
    rules: Word<RuleSet>,
}

impl JsonSchema for RoutingConfig {
    fn schema_name() -> Cow<'static, str> {
        "RoutingConfig".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = CommonKeys::json_schema(generator);
        let mut constants = given::properties(flat(), generator);
        for protocol in sections() {
            constants.insert(protocol.name.to_owned(), given::section_schema(protocol, generator).to_value());
        }
        if let Some(properties) =
            schema.ensure_object().get_mut("properties").and_then(|all| all.as_object_mut())
        {
            properties.extend(constants);
        }
        schema
    }
}
