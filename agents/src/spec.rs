//! The language of specs, which name agents in YAML, on the command line, in the API and in results.
//!
//! ```text
//! spec  = name [ "(" spec ")" ] [ ":" arg { "," arg } ]     delayed:d=3,hold=200ms   dup-count(delayed)
//! arg   = key "=" value | value | switch                    limit:4
//! list  = spec | "[" [ item { "," item } ] "]"              [newreno, "limit:4"]
//! item  = spec without a comma | quoted spec                ["delayed:d=3,hold=200ms", immediate]
//! ```
//!
//! `name:as-printed` sets what the agent's paper prints. A value alone sets the parameter that the agent declares as
//! its shorthand. The name of a switch alone turns the switch on. Lists follow YAML: a comma ends an item unless the
//! item is quoted. Specs print in canonical form: parameters stand in the order of their table, and defaults are left
//! out. A parameter whose default depends on the profile is always printed once it is given.

mod accepted;
mod error;
mod list;
mod parse;
mod role;

pub use accepted::InForce;
pub use error::{Problem, SpecError};
pub use list::{MOST_SENDERS, MOST_SHADOWS, SenderList, ShadowList, join};
pub use parse::nearest;

use crate::registry;
use accepted::AgentSpec;
use role::{AtBaseStation, Receiver};

/// Reads the spec of a receiver agent. A list is refused, even one of a single item.
pub fn parse_receiver(spec: &str) -> Result<ReceiverSpec, SpecError> {
    AgentSpec::parse_among(registry::in_force(), spec)
}

/// Reads the spec of a base-station agent. A list is refused, even one of a single item.
pub fn parse_base_station(spec: &str) -> Result<BaseStationSpec, SpecError> {
    AgentSpec::parse_among(registry::in_force(), spec)
}

/// Reads a list of sender agents; a spec without brackets is a list of one. Refuses repeated agents, and agents that
/// set a recovery setting differently.
pub fn parse_senders(spec: &str) -> Result<SenderList, SpecError> {
    SenderList::parse_among(registry::in_force(), spec)
}

/// Reads a list of receiver agents that only watch. It may be empty.
pub fn parse_shadows(spec: &str) -> Result<ShadowList, SpecError> {
    ShadowList::parse(spec)
}

/// The senders of a list one by one, in canonical form. A list with agents that this program does not know is one text.
pub fn senders_of(list: &str) -> Vec<String> {
    parse_senders(list).map_or_else(|_| vec![list.to_owned()], |list| list.each())
}

/// The canonical form of a receiver spec.
pub fn validate_receiver(spec: &str) -> Result<String, SpecError> {
    parse_receiver(spec).map(|parsed| parsed.to_string())
}

/// The canonical form of a base-station spec.
pub fn validate_base_station(spec: &str) -> Result<String, SpecError> {
    parse_base_station(spec).map(|parsed| parsed.to_string())
}

/// The canonical form of a list of senders, such as `[newreno, limit:4]`.
pub fn validate_senders(spec: &str) -> Result<String, SpecError> {
    parse_senders(spec).map(|parsed| parsed.to_string())
}

/// The canonical form of a list of shadows.
pub fn validate_shadows(spec: &str) -> Result<String, SpecError> {
    parse_shadows(spec).map(|parsed| parsed.to_string())
}

/// A spec that names a receiver agent.
pub type ReceiverSpec = AgentSpec<Receiver>;

/// A spec that names a base-station agent.
pub type BaseStationSpec = AgentSpec<AtBaseStation>;

#[cfg(test)]
mod tests;
