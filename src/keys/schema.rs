//! `hopwise schema`: the keys of a kind of file, for editors and for readers.

use clap::Args;
use hopwise_lab::keys::for_editors;

use super::{FileKind, page};
use crate::failure::{Failure, say};

/// Print the JSON Schema of a kind of file, with which editors complete and check it
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise schema > scenario.schema.json
  hopwise schema node > node.schema.json
  hopwise schema --markdown | less

An editor with a YAML language server finds the schema by the first line of a file:
  # yaml-language-server: $schema=scenario.schema.json")]
pub(crate) struct Arguments {
    /// Kind of file
    #[arg(value_name = "FILE-KIND", default_value = "scenario")]
    kind: FileKind,
    /// Print tables for readers in place of the schema: docs/scenario.md and its siblings
    #[arg(long)]
    markdown: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.markdown {
        return say(page::of(arguments.kind).trim_end());
    }
    say(&format!("{:#}", for_editors(arguments.kind.schema())))
}
