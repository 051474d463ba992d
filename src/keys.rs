//! The keys of all files, from the schemas that their types make: for editors, pages and explanations.

use clap::ValueEnum;
use hopwise_lab::keys::{self, Key};
use hopwise_lab::scenario;
use hopwise_mesh::aodv::AodvRules;
use serde_json::Value;

use crate::{fleet, mesh, node, proxy};

mod example;
pub(crate) mod explain;
mod page;
pub(crate) mod schema;

/// A kind of file that a command reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FileKind {
    /// hopwise run, trial, air, …
    #[default]
    Scenario,
    /// hopwise node
    Node,
    /// hopwise route
    Route,
    /// hopwise proxy
    Proxy,
    /// hopwise mesh status, top --fleet
    Inventory,
    /// hopwise mesh up
    Mesh,
}

impl FileKind {
    const ALL: [FileKind; 6] = [
        FileKind::Scenario,
        FileKind::Node,
        FileKind::Route,
        FileKind::Proxy,
        FileKind::Inventory,
        FileKind::Mesh,
    ];

    fn name(self) -> &'static str {
        match self {
            FileKind::Scenario => "scenario",
            FileKind::Node => "node",
            FileKind::Route => "route",
            FileKind::Proxy => "proxy",
            FileKind::Inventory => "inventory",
            FileKind::Mesh => "mesh",
        }
    }

    fn schema(self) -> &'static Value {
        match self {
            FileKind::Scenario => scenario::json_schema(),
            FileKind::Node => node::config::json_schema(),
            FileKind::Route => mesh::route::config::json_schema(),
            FileKind::Proxy => proxy::config::json_schema(),
            FileKind::Inventory => fleet::inventory::json_schema(),
            FileKind::Mesh => mesh::bringup::config::json_schema(),
        }
    }

    /// All keys that a file of this kind may have.
    fn keys(self) -> Vec<Key> {
        let mut keys = keys::keys(self.schema());
        keys.retain(|key| self != FileKind::Route || is_of_daemons(&key.path));
        keys
    }

    /// The keys that say how a value is drawn. They are no values of their own: pages have them with the value.
    fn keys_by_chance(self) -> Vec<Key> {
        keys::keys_by_chance(self.schema())
    }
}

/// Returns whether a routing daemon takes a key; some of `routing` are for simulations alone.
fn is_of_daemons(path: &str) -> bool {
    let Some(key) = path.strip_prefix("routing.") else { return true };
    let simulated = [
        "dsr",
        "gpsr",
        "batman",
        "hwmp",
        "signed",
        "data_hop_limit",
        "rerr_to_source",
        "rerr_discards",
        "dymo.signed",
    ];
    let is_simulated =
        simulated.iter().any(|one| key.strip_prefix(one).is_some_and(|rest| !rest.starts_with('_')));
    !is_simulated && AodvRules::Rfc3561.takes(key)
}

#[cfg(test)]
mod tests;
