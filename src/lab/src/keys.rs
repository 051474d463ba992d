//! `hopwise keys`: the keys of all files, from the schemas that their types make, for editors, pages and explanations.

use clap::{Args, Subcommand, ValueEnum};
use hopwise_lab::keys::{Key, for_editors};
use hopwise_lab::routing::takes;
use hopwise_lab::{keys, scenario};
use hopwise_mesh::PROTOCOLS;
use hopwise_mesh::constants::Constant;
use serde_json::Value;

use hopwise_daemon::failure::{Failure, say};
use hopwise_node::fleet;
use hopwise_router::proxy;

mod example;
mod explain;
mod page;
mod shared;

/// Explain a key of a configuration file, or print the file's JSON Schema
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise keys explain radio.rts_threshold
  hopwise keys schema > scenario.schema.json")]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Explain(explain::Arguments),
    Schema(SchemaArguments),
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.action {
        Action::Explain(arguments) => explain::run(arguments),
        Action::Schema(arguments) => print_schema(arguments),
    }
}

hopwise_core::named! {
    /// A kind of file that a command reads.
    #[derive(Default, ValueEnum)]
    pub(crate) enum FileKind {
        /// hopwise run, trial, air, …
        #[default]
        Scenario = "scenario",
        /// hopwise node
        Node = "node",
        /// hopwise route
        Route = "route",
        /// hopwise proxy
        Proxy = "proxy",
        /// hopwise mesh status, status --watch --fleet
        Inventory = "inventory",
        /// hopwise mesh up
        Mesh = "mesh",
        /// hopwise thin --config
        Thin = "thin",
    }
}

impl FileKind {
    fn schema(self) -> &'static Value {
        match self {
            FileKind::Scenario => scenario::json_schema(),
            FileKind::Node => hopwise_node::config::json_schema(),
            FileKind::Route => hopwise_router::route::config::json_schema(),
            FileKind::Proxy => proxy::config::json_schema(),
            FileKind::Inventory => fleet::inventory::json_schema(),
            FileKind::Mesh => hopwise_router::bringup::config::json_schema(),
            FileKind::Thin => hopwise_router::thin::config::json_schema(),
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
    let (section, name) = key.split_once('.').unwrap_or((key, key));
    let Some(protocol) = PROTOCOLS.iter().find(|protocol| takes(protocol, section) && section != "protocol")
    else {
        return true;
    };
    let is_obeyed = |constant: &Constant| constant.only_simulated.is_none();
    protocol.daemon.is_some() && protocol.constant(name).is_none_or(is_obeyed)
}

/// Print the JSON Schema of a kind of file, for completion and checks in editors
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise keys schema > scenario.schema.json
  hopwise keys schema node > node.schema.json
  hopwise keys schema --markdown | less

An editor with a YAML language server finds the schema by the first line of a file:
  # yaml-language-server: $schema=scenario.schema.json")]
struct SchemaArguments {
    /// Kind of file
    #[arg(value_name = "FILE-KIND", default_value = "scenario")]
    kind: FileKind,
    /// Print tables for readers in place of the schema: docs/scenario.md and its siblings
    #[arg(long)]
    markdown: bool,
}

fn print_schema(arguments: &SchemaArguments) -> Result<(), Failure> {
    if arguments.markdown {
        return say(page::of(arguments.kind).trim_end());
    }
    say(&format!("{:#}", for_editors(arguments.kind.schema())))
}

#[cfg(test)]
mod tests;
