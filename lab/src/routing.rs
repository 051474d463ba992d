//! `routing:` of scenarios and of `hopwise route`: the protocol, its rules, and constants by the protocols' own tables.

mod given;

use std::borrow::Cow;
use std::fmt;

use hopwise_mesh::aodv::{self, AodvRules};
use hopwise_mesh::constants::{Constant, Constants, Value};
use hopwise_mesh::{aodvv2, batman, dsr, gpsr, hwmp};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use crate::located::{Document, Refusal, YamlPath};
use crate::words::{Word, Words};
use given::Named;

pub use given::Given;

/// Routing protocol and its constants. AODV's stand in the section itself, those of other protocols in sections of
/// their own.
#[derive(Clone, Debug, Default)]
pub struct RoutingConfig {
    /// The protocol.
    pub protocol: Protocol,
    /// The rules of AODV.
    pub rules: Word<AodvRules>,
    /// The constants given for AODV.
    pub aodv: Given<aodv::Settings>,
    /// The constants given for DSR.
    pub dsr: Given<dsr::Settings>,
    /// The constants given for GPSR.
    pub gpsr: Given<gpsr::Settings>,
    /// The constants given for DYMO.
    pub dymo: Given<aodvv2::Settings>,
    /// The constants given for B.A.T.M.A.N. IV.
    pub batman: Given<batman::Settings>,
    /// The constants given for HWMP.
    pub hwmp: Given<hwmp::Settings>,
}

/// Routing protocol and its constants. Those of AODV, named as in RFC 3561, stand in this section itself, and `rules`
/// sets their defaults. Other protocols have sections of their own.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "the schema of the keys that are no constants of AODV")]
struct Sections {
    /// Routing protocol (default static).
    #[schemars(default)]
    protocol: Protocol,
    /// Rule set of AODV, which also sets the defaults of its constants (default rfc3561).
    #[schemars(default)]
    rules: Word<AodvRules>,
    /// Constants of DSR (protocol: dsr).
    #[schemars(default)]
    dsr: Given<dsr::Settings>,
    /// Constants of GPSR (protocol: gpsr).
    #[schemars(default)]
    gpsr: Given<gpsr::Settings>,
    /// Constants of AODVv2 (protocol: dymo).
    #[schemars(default)]
    dymo: Given<aodvv2::Settings>,
    /// Constants of B.A.T.M.A.N. IV (protocol: batman).
    #[schemars(default)]
    batman: Given<batman::Settings>,
    /// Constants of HWMP and of mesh peering (protocol: hwmp).
    #[schemars(default)]
    hwmp: Given<hwmp::Settings>,
}

/// Routing protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Paths with the fewest hops, computed once at time 0.
    #[default]
    Static,
    /// AODV (RFC 3561).
    Aodv,
    /// AODVv2 (draft-ietf-manet-aodvv2-16), formerly DYMO.
    Dymo,
    /// DSR (RFC 4728); only in world sim.
    Dsr,
    /// GPSR; only in world sim, because it needs the positions of all nodes.
    Gpsr,
    /// B.A.T.M.A.N. IV, as in Linux's batman-adv; in world hwsim it is the kernel's own.
    Batman,
    /// HWMP, the path selection of 802.11s, as in Linux's mac80211; in world hwsim it is the kernel's own.
    Hwmp,
}

impl Protocol {
    /// True if Linux's kernel has it, below IP.
    pub fn is_the_kernels(self) -> bool {
        matches!(self, Protocol::Batman | Protocol::Hwmp)
    }

    /// True if a key of the section has an effect under this protocol.
    pub fn takes(self, key: &str) -> bool {
        match (self, key) {
            (_, "protocol")
            | (Protocol::Dymo, "dymo")
            | (Protocol::Dsr, "dsr")
            | (Protocol::Gpsr, "gpsr")
            | (Protocol::Batman, "batman")
            | (Protocol::Hwmp, "hwmp") => true,
            (Protocol::Aodv, "dymo" | "dsr" | "gpsr" | "batman" | "hwmp") => false,
            (Protocol::Aodv, _) => true,
            _ => false,
        }
    }
}

impl Words for AodvRules {
    const NAME: &'static str = "AodvRules";
    const ABOUT: &'static str = "Rule set of AODV.";
    const ALL: &'static [(&'static str, AodvRules, &'static str)] = &[
        ("rfc3561", AodvRules::Rfc3561, "RFC 3561."),
        ("ns2", AodvRules::Ns2, "AODV as ns-2 has it; only in world sim."),
    ];
}

/// A part of the section that only simulations obey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnlySimulated {
    /// No daemon here speaks it, and kernels do not put its headers into packets.
    Protocol,
    /// Kernels and daemons follow the RFC alone.
    Rules,
    /// The keys of daemons are in a file of their own.
    Signed,
    /// The data that daemons forward belongs to others.
    HopLimit,
    /// The kernel forwards: daemons see neither whose packets these are nor those that wait.
    Forwarding,
}

impl RoutingConfig {
    /// The section with the constants of the protocol filled in.
    pub fn in_force(&self) -> RoutingConfig {
        let mut config = RoutingConfig { aodv: self.aodv.clone(), ..RoutingConfig::default() };
        (config.protocol, config.rules) = (self.protocol, self.rules);
        let Word(rules) = self.rules;
        match self.protocol {
            Protocol::Static => {}
            Protocol::Aodv => config.aodv = self.aodv.filled(self.of_rules(), |name| rules.takes(name)),
            Protocol::Dymo => config.dymo = self.dymo.filled(Default::default(), |_| true),
            Protocol::Dsr => config.dsr = self.dsr.filled(Default::default(), |_| true),
            Protocol::Gpsr => config.gpsr = self.gpsr.filled(Default::default(), |_| true),
            Protocol::Batman => config.batman = self.batman.filled(Default::default(), |_| true),
            Protocol::Hwmp => config.hwmp = self.hwmp.filled(Default::default(), |_| true),
        }
        config
    }

    /// The section as a daemon has it: the constants of its protocol, and hellos unless the file turns them off: a link
    /// layer that never sends to a neighbour reports no loss of it.
    pub fn of_daemon(&self) -> RoutingConfig {
        let (protocol, rules) = (self.protocol, self.rules);
        let nothing = RoutingConfig { protocol, rules, ..RoutingConfig::default() };
        let hello = ("hello", Value::Switch(true));
        match protocol {
            Protocol::Aodv => RoutingConfig { aodv: self.aodv.clone().or(hello), ..nothing },
            Protocol::Dymo => RoutingConfig { dymo: self.dymo.clone().or(hello), ..nothing },
            Protocol::Static | Protocol::Dsr | Protocol::Gpsr | Protocol::Batman | Protocol::Hwmp => {
                self.clone()
            }
        }
    }

    /// The first part of the section that only simulations obey, and its place; `at` is where the section stands.
    pub fn only_simulated(&self, at: &YamlPath) -> Option<(OnlySimulated, YamlPath)> {
        match self.protocol {
            Protocol::Dsr | Protocol::Gpsr | Protocol::Batman | Protocol::Hwmp => {
                Some((OnlySimulated::Protocol, at.key("protocol")))
            }
            Protocol::Aodv if self.rules.0 == AodvRules::Ns2 => Some((OnlySimulated::Rules, at.key("rules"))),
            Protocol::Aodv if self.aodv.is_on("signed") => Some((OnlySimulated::Signed, at.key("signed"))),
            Protocol::Aodv if self.aodv.has("data_hop_limit") => {
                Some((OnlySimulated::HopLimit, at.key("data_hop_limit")))
            }
            Protocol::Aodv if self.aodv.is_on("rerr_to_source") => {
                Some((OnlySimulated::Forwarding, at.key("rerr_to_source")))
            }
            Protocol::Aodv if self.aodv.is_on("rerr_discards") => {
                Some((OnlySimulated::Forwarding, at.key("rerr_discards")))
            }
            Protocol::Dymo if self.dymo.is_on("signed") => {
                Some((OnlySimulated::Signed, at.key("dymo").key("signed")))
            }
            Protocol::Static | Protocol::Aodv | Protocol::Dymo => None,
        }
    }

    /// The key of the constants that the file gives to a protocol of the kernel.
    pub fn constants_of_the_kernels(&self) -> Option<&'static str> {
        match self.protocol {
            Protocol::Batman if !self.batman.is_empty() => Some("batman"),
            Protocol::Hwmp if !self.hwmp.is_empty() => Some("hwmp"),
            _ => None,
        }
    }

    fn of_rules(&self) -> aodv::Settings {
        aodv::Settings::of(self.rules.0)
    }

    /// AODV's constants in force; `at` is where the section stands.
    pub fn aodv(&self, document: &Document, at: &YamlPath) -> Result<aodv::Settings, Box<Refusal>> {
        let settings = self.aodv.over(self.of_rules(), document, at)?;
        if settings.signed && self.rules.0 == AodvRules::Ns2 {
            let problem = "the rules of ns-2 have no signatures";
            return Err(document.refuse(&at.key("signed"), problem, "rules: rfc3561"));
        }
        Ok(settings)
    }
}

/// A key of the section.
enum Key {
    Protocol,
    Rules,
    Dsr,
    Gpsr,
    Dymo,
    Batman,
    Hwmp,
    Aodv(&'static Constant),
}

impl Key {
    const SECTIONS: [&'static str; 7] = ["protocol", "rules", "dsr", "gpsr", "dymo", "batman", "hwmp"];

    fn named(name: &str) -> Result<Key, Vec<&'static str>> {
        Ok(match name {
            "protocol" => Key::Protocol,
            "rules" => Key::Rules,
            "dsr" => Key::Dsr,
            "gpsr" => Key::Gpsr,
            "dymo" => Key::Dymo,
            "batman" => Key::Batman,
            "hwmp" => Key::Hwmp,
            _ => match aodv::Settings::constant(name) {
                Some(constant) => Key::Aodv(constant),
                None => {
                    return Err(Key::SECTIONS.into_iter().chain(Given::<aodv::Settings>::names()).collect());
                }
            },
        })
    }
}

impl<'de> Deserialize<'de> for RoutingConfig {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<RoutingConfig, D::Error> {
        struct Section;

        impl<'de> Visitor<'de> for Section {
            type Value = RoutingConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("keys with values, such as { protocol: aodv }")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RoutingConfig, A::Error> {
                let mut config = RoutingConfig::default();
                while let Some(key) = map.next_key_seed(Named(Key::named))? {
                    match key {
                        Key::Protocol => config.protocol = map.next_value()?,
                        Key::Rules => config.rules = map.next_value()?,
                        Key::Dsr => config.dsr = map.next_value()?,
                        Key::Gpsr => config.gpsr = map.next_value()?,
                        Key::Dymo => config.dymo = map.next_value()?,
                        Key::Batman => config.batman = map.next_value()?,
                        Key::Hwmp => config.hwmp = map.next_value()?,
                        Key::Aodv(constant) => config.aodv.read(constant, &mut map)?,
                    }
                }
                Ok(config)
            }
        }

        from.deserialize_map(Section)
    }
}

impl Serialize for RoutingConfig {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("protocol", &self.protocol)?;
        map.serialize_entry("rules", &self.rules)?;
        self.aodv.write(&mut map)?;
        if !self.dsr.is_empty() {
            map.serialize_entry("dsr", &self.dsr)?;
        }
        if !self.gpsr.is_empty() {
            map.serialize_entry("gpsr", &self.gpsr)?;
        }
        if !self.dymo.is_empty() {
            map.serialize_entry("dymo", &self.dymo)?;
        }
        if !self.batman.is_empty() {
            map.serialize_entry("batman", &self.batman)?;
        }
        if !self.hwmp.is_empty() {
            map.serialize_entry("hwmp", &self.hwmp)?;
        }
        map.end()
    }
}

impl JsonSchema for RoutingConfig {
    fn schema_name() -> Cow<'static, str> {
        "RoutingConfig".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Sections::json_schema(generator);
        let constants: Vec<_> = Given::<aodv::Settings>::properties(generator).collect();
        if let Some(properties) =
            schema.ensure_object().get_mut("properties").and_then(|all| all.as_object_mut())
        {
            properties.extend(constants);
        }
        schema
    }
}
