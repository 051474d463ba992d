//! Pages of the book that tests write from the program, such as the help of every command.

use std::fmt::Write;

use clap::Command;

mod results;
mod shown;
mod trace;

pub(crate) use shown::{refusals, refused};

const HEAD: &str = "\
# Commands

This page is what `hopwise COMMAND --help` prints; a test keeps it so. Exit status 0: the work is done. 1: the work
failed. 2: the input was refused; the error says where, and what would be accepted.
";

/// The page of all commands.
pub(crate) fn commands(mut whole: Command) -> String {
    whole.build();
    let mut text = HEAD.to_owned();
    text.push_str("\n| command | what it does |\n|---|---|\n");
    for one in shown(&whole) {
        let name = one.get_name();
        let about = one.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(text, "| [`{name}`](#hopwise-{name}) | {about} |").expect("a text grows");
    }
    shown(&whole).for_each(|one| add(one, &mut text));
    text
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help")
}

fn add(command: &Command, text: &mut String) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let help = command.clone().render_long_help().to_string();
    let lines: Vec<_> = help.lines().map(str::trim_end).collect();
    write!(text, "\n## {name}\n\n```text\n{}\n```\n", lines.join("\n").trim()).expect("a text grows");
    shown(command).for_each(|one| add(one, text));
}
