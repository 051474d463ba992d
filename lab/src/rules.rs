//! Rules in files, which choose the agents of a connection. Nodes and scenarios read one format. The JSON Schema has
//! the names of agents for editors, and accepts any other spec too.

use std::net::IpAddr;
use std::str::FromStr;

use hopwise_agents::SpecError;
use hopwise_agents::registry::{self, Kind};
use hopwise_core::endpoint::{self, Direction};
use hopwise_core::ip::{Prefix, PrefixError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Value, json};

use crate::located::{Checked, Document, YamlPath};
use crate::words::{Word, words};

/// A rule that chooses agents. The first rule that matches applies. Agents that it does not name are the default ones,
/// which a scenario takes from the arm.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule<P> {
    /// Connections that the rule applies to (default: all).
    #[serde(default = "Match::<P>::every", rename = "match")]
    pub matches: Match<P>,
    /// Receiver agent, which decides when to acknowledge, such as `delayed` (default: the agent of connections without
    /// a rule).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "receiver")]
    pub receiver: Option<String>,
    /// Sender agent, which decides how much to send: a spec such as `cubic`, or a list of specs (default: the agents of
    /// connections without a rule).
    #[serde(default, deserialize_with = "specs", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "senders")]
    pub sender: Option<String>,
    /// Receiver agents that only watch: results count the ACKs that they would have sent. A spec, or a list of specs
    /// (default: the shadows of connections without a rule).
    #[serde(default, deserialize_with = "specs", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shadows")]
    pub shadows: Option<String>,
}

/// Conditions on a connection. A rule applies if all conditions given here hold.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Match<P> {
    /// End of the connection at which the rule applies (default: both).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Word<Direction>>,
    /// Destination port of the connection (default: any). In a scenario the first flow has port 5001, the next one
    /// 5002, and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// End that opens the connection: an address or a network, in a scenario also a node (default: any).
    #[serde(default = "none::<P>", skip_serializing_if = "Option::is_none")]
    pub from: Option<P>,
    /// End that accepts the connection: an address or a network, in a scenario also a node (default: any).
    #[serde(default = "none::<P>", skip_serializing_if = "Option::is_none")]
    pub to: Option<P>,
}

fn none<P>() -> Option<P> {
    None
}

words! {
    /// End of a connection at which a rule applies.
    Direction as "Direction" {
        /// The end that opens the connection.
        "out" => Outgoing,
        /// The end that accepts the connection.
        "in" => Incoming,
    }
}

/// A network such as 10.7.0.0/16, or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String")]
pub struct Network(pub Prefix);

impl FromStr for Network {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Network, PrefixError> {
        text.parse::<IpAddr>().map(Prefix::host).or_else(|_| text.parse()).map(Network)
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Network, D::Error> {
        let text = String::deserialize(from)?;
        let wanted = "a network or an address, such as 10.7.0.0/16 or 10.7.0.2";
        text.parse().map_err(|error| de::Error::custom(format_args!("`{text}`: {error}, expected {wanted}")))
    }
}

impl<P> Match<P> {
    fn every() -> Match<P> {
        Match { direction: None, port: None, from: None, to: None }
    }
}

impl<P> Rule<P> {
    /// The same rule in the core's types; `prefix` gives the addresses of a peer.
    pub fn core(&self, prefix: impl Fn(&P) -> Prefix) -> endpoint::Rule {
        endpoint::Rule {
            matches: endpoint::Match {
                direction: self.matches.direction.map(|direction| direction.0),
                port: self.matches.port,
                from: self.matches.from.as_ref().map(&prefix),
                to: self.matches.to.as_ref().map(&prefix),
            },
            receiver: self.receiver.clone(),
            senders: self.sender.clone(),
            shadows: self.shadows.clone(),
        }
    }

    /// Checks the specs by the grammar of agents.
    pub fn check(&self, document: &Document, at: &YamlPath) -> Checked {
        let refused =
            |key: &str, kind: Kind, error: &SpecError| document.refuse_spec(&at.key(key), kind, error);
        if let Some(spec) = &self.receiver {
            hopwise_agents::validate_receiver(spec)
                .map_err(|error| refused("receiver", Kind::Receiver, &error))?;
        }
        if let Some(specs) = &self.sender {
            hopwise_agents::validate_senders(specs)
                .map_err(|error| refused("sender", Kind::Sender, &error))?;
        }
        if let Some(specs) = &self.shadows {
            hopwise_agents::validate_shadows(specs)
                .map_err(|error| refused("shadows", Kind::Receiver, &error))?;
        }
        Ok(())
    }
}

/// Reads a list of specs from YAML and joins it as the spec grammar writes it.
pub fn specs<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let wrong = || {
        de::Error::custom(
            "wrong specs, expected one such as cubic, or a list such as [newreno, \"limit:4\"]; a spec with a comma \
             or a colon inside [ ] must be quoted",
        )
    };
    match serde_yaml::Value::deserialize(from)? {
        serde_yaml::Value::String(one) => Ok(Some(one)),
        serde_yaml::Value::Sequence(many) => {
            let each = many.iter().map(|one| one.as_str().ok_or_else(wrong));
            Ok(Some(hopwise_agents::spec::join(&each.collect::<Result<Vec<_>, _>>()?)))
        }
        _ => Err(wrong()),
    }
}

/// A spec of this kind.
fn spec(kind: Kind) -> Value {
    let names: Vec<_> = registry::names(kind).collect();
    json!({ "anyOf": [{ "enum": names }, { "type": "string" }] })
}

/// A spec of this kind, or none.
fn one(kind: Kind) -> Schema {
    json_schema!({ "anyOf": [spec(kind), { "type": "null" }] })
}

/// A spec of this kind, a list of them, or none.
fn some(kind: Kind) -> Schema {
    let spec = spec(kind);
    json_schema!({ "anyOf": [spec, { "type": "array", "items": spec }, { "type": "null" }] })
}

/// The schema of a receiver agent's spec.
pub fn receiver(_: &mut SchemaGenerator) -> Schema {
    one(Kind::Receiver)
}

pub(crate) fn base_station(_: &mut SchemaGenerator) -> Schema {
    one(Kind::BaseStation)
}

pub(crate) fn senders(_: &mut SchemaGenerator) -> Schema {
    some(Kind::Sender)
}

pub(crate) fn shadows(_: &mut SchemaGenerator) -> Schema {
    some(Kind::Receiver)
}
