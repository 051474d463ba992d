//! The names of agents in the JSON Schema. Editors complete them; the schema accepts any other spec too.

use hopwise_agents::registry::{self, Kind};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// One spec of this kind, or none.
fn one(kind: Kind) -> Value {
    let names: Vec<_> = registry::names(kind).collect();
    json!({ "anyOf": [{ "enum": names }, { "type": ["string", "null"] }] })
}

/// One spec of this kind, a list of them, or none.
fn some(kind: Kind) -> Schema {
    let one = one(kind);
    json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
}

pub(crate) fn receiver(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": one(Kind::Receiver)["anyOf"] })
}

pub(crate) fn base_station(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": one(Kind::BaseStation)["anyOf"] })
}

pub(crate) fn senders(_: &mut SchemaGenerator) -> Schema {
    some(Kind::Sender)
}

pub(crate) fn shadows(_: &mut SchemaGenerator) -> Schema {
    some(Kind::Receiver)
}
