//! The names of agents in the JSON Schema. Editors complete them; the schema accepts any other spec too.

use hopwise_agents::registry::{self, Kind};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

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

pub(crate) fn receiver(_: &mut SchemaGenerator) -> Schema {
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
