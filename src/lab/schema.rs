//! `hopwise schema`: the JSON Schema of scenarios, for editors.

use clap::Args;
use hopwise_lab::scenario::json_schema;

use crate::failure::{Failure, say};

/// Print the JSON Schema of scenarios, with which editors complete and check them
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise schema > scenario.schema.json

An editor with a YAML language server finds the schema by the first line of a scenario:
  # yaml-language-server: $schema=scenario.schema.json")]
pub(crate) struct Arguments {}

pub(crate) fn run(_: &Arguments) -> Result<(), Failure> {
    say(&format!("{:#}", json_schema()))
}
