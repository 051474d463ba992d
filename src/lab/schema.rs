//! `hopwise schema`: the keys of scenarios, for editors and for readers.

use clap::Args;
use hopwise_lab::scenario::json_schema;

use crate::failure::{Failure, say};

mod markdown;

/// Print the JSON Schema of scenarios, with which editors complete and check them
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise schema > scenario.schema.json
  hopwise schema --markdown | less

An editor with a YAML language server finds the schema by the first line of a scenario:
  # yaml-language-server: $schema=scenario.schema.json")]
pub(crate) struct Arguments {
    /// Print tables for readers in place of the schema: docs/scenario.md
    #[arg(long)]
    markdown: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let schema = json_schema();
    if arguments.markdown {
        return say(markdown::page(&schema).trim_end());
    }
    say(&format!("{schema:#}"))
}
