//! `hopwise keys explain`: what one key of a file means, in every kind of file that has it.

use clap::Args;
use hopwise_agents::spec::nearest;
use hopwise_lab::keys::Key;
use serde::Serialize;

use super::FileKind;
use super::example::Example;
use hopwise_daemon::failure::{Failure, say};
use hopwise_daemon::table;

/// Explain a key of a file: its values, unit, range, default, effect and an example
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise keys explain radio.rts_threshold
  hopwise keys explain mtu                       # the end of a path is enough: every key that ends so
  hopwise keys explain links.0.kind --json

Keys of scenarios, of the files of `hopwise node`, `route`, `proxy` and `mesh up`, and of inventories. `hopwise keys
schema --markdown` prints the keys of a kind of file. The first kind that has a section describes it for all kinds.")]
pub(super) struct Arguments {
    /// Path of the key in its file, or the end of a path; numbers of list entries may stand in it
    #[arg(value_name = "KEY")]
    key: String,
    /// Print a JSON list on standard output
    #[arg(long)]
    json: bool,
}

/// A key in one kind of file.
#[derive(Debug, Serialize)]
struct Found {
    file: &'static str,
    #[serde(flatten)]
    key: Key,
    example: Option<Example>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let found = find(&arguments.key).map_err(|accepted| {
        Failure::refused("KEY", format!("no file has a key `{}`: {accepted}", arguments.key))
    })?;
    if arguments.json {
        let json = serde_json::to_string_pretty(&found).map_err(Failure::during("print"))?;
        return say(&json);
    }
    say(&found.iter().map(text).collect::<Vec<_>>().join("\n\n"))
}

/// The keys with a path or, if there is none, with an end of a path; the error suggests the nearest key.
fn find(asked: &str) -> Result<Vec<Found>, String> {
    let wanted = steps(asked);
    let all_of = |keys: fn(FileKind) -> Vec<Key>| -> Vec<(FileKind, Key)> {
        FileKind::ALL.iter().flat_map(|&kind| keys(kind).into_iter().map(move |key| (kind, key))).collect()
    };
    let all = all_of(FileKind::keys);
    // Keys with a fixed meaning come before keys of random values: `from` is mostly a node.
    for some in [&all, &all_of(FileKind::keys_by_chance)] {
        let found = among(some, &wanted);
        if !found.is_empty() {
            return Ok(found);
        }
    }
    // The same name elsewhere is nearer than any other name.
    let named = all.iter().find(|(_, key)| wanted.last().is_some_and(|last| last == key.name()));
    let begun = |asked: &str, of: fn(&Key) -> &str| {
        let longer = |(_, key): &&(FileKind, Key)| asked.len() > 2 && of(key).starts_with(asked);
        all.iter().find(longer).map(|(_, key)| key.path.as_str())
    };
    // The last word of a path says little without the words before it: `max` in `hops.max`.
    let alone = || wanted.last().filter(|last| wanted.len() == 1 || last.len() > 3);
    let begun = || {
        begun(asked, |key| &key.path)
            .or_else(|| begun(wanted.last().filter(|_| wanted.len() == 1)?, Key::name))
    };
    let names = || all.iter().flat_map(|(_, key)| [key.path.as_str(), key.name()]);
    let near = || nearest(asked, names()).or_else(|| nearest(alone()?, names()));
    let meant = named.map(|(_, key)| key.path.as_str()).or_else(begun).or_else(near);
    Err(meant.map_or_else(
        || "`hopwise keys schema FILE-KIND --markdown` lists all keys".to_owned(),
        |name| format!("did you mean `{name}`?"),
    ))
}

/// The keys with a path or, if there is none, with an end of a path.
fn among(all: &[(FileKind, Key)], wanted: &[String]) -> Vec<Found> {
    let with = |is_it: &dyn Fn(&[String]) -> bool| -> Vec<Found> {
        let those = all.iter().filter(|(_, key)| is_it(&steps(&key.path)));
        let found = |(kind, key): &(FileKind, Key)| Found {
            file: kind.name(),
            key: key.clone(),
            example: kind.example(&key.path),
        };
        those.map(found).collect()
    };
    let exact = with(&|steps| is_same(steps, wanted));
    if !exact.is_empty() {
        return exact;
    }
    with(&|steps| steps.len() > wanted.len() && is_same(&steps[steps.len() - wanted.len()..], wanted))
}

/// The names on a path, without the places in lists.
fn steps(path: &str) -> Vec<String> {
    let each =
        path.split('.').map(|step| step.trim_end_matches("[]")).filter(|step| step.parse::<u32>().is_err());
    each.map(|step| step.split('[').next().unwrap_or(step).to_owned()).collect()
}

/// `NAME` in a path of ours stands for any name.
fn is_same(ours: &[String], asked: &[String]) -> bool {
    ours.len() == asked.len() && ours.iter().zip(asked).all(|(ours, asked)| ours == asked || ours == "NAME")
}

fn text(found: &Found) -> String {
    let Found { file, key, example } = found;
    let mut lines = vec![format!("{} (file of kind {file})", key.path)];
    lines.push(table::hanging("  ", &key.meaning));
    let mut row = |name: &str, value: &str| {
        if !value.is_empty() {
            lines.push(table::hanging(&format!("  {name:<8} "), value));
        }
    };
    row("value", &key.value.replace('`', ""));
    for choice in &key.choices {
        row("", &format!("{}: {}", choice.word, choice.meaning));
    }
    row("unit", key.unit.as_deref().unwrap_or_default());
    row("range", key.range.as_deref().unwrap_or_default());
    row(
        "default",
        if key.required { "none: it is required" } else { key.default.as_deref().unwrap_or_default() },
    );
    // An example that is broken into lines cannot be copied.
    lines.extend(example.iter().map(|example| format!("  {:<8} {}", "example", example.line)));
    lines.join("\n")
}

#[cfg(test)]
mod tests;
