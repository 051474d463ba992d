//! The keys of a kind of file as a page for readers: a table for each block.

use std::fmt::Write;

use hopwise_lab::keys::Key;

use super::FileKind;

/// The whole of `docs/scenario.md` and its siblings.
pub(super) fn of(kind: FileKind) -> String {
    let keys = kind.keys();
    let mut blocks: Vec<(&str, Vec<&Key>)> = Vec::new();
    for key in &keys {
        let block = key.path.rsplit_once('.').map_or("", |(block, _)| block);
        match blocks.iter_mut().find(|(known, _)| *known == block) {
            Some((_, of)) => of.push(key),
            None => blocks.push((block, vec![key])),
        }
    }
    let mut text = head(kind);
    for (block, of) in &blocks {
        let heading = if block.is_empty() { "The file".to_owned() } else { format!("`{block}`") };
        write!(text, "\n## {heading}\n\n").expect("a text grows");
        if let Some(key) =
            keys.iter().find(|key| key.path == block.trim_end_matches(".NAME").trim_end_matches("[]"))
        {
            write!(text, "{}\n\n", cell(&key.meaning)).expect("a text grows");
        }
        text.push_str("| key | value | default | meaning | example |\n|---|---|---|---|---|\n");
        for key in of {
            row(kind, key, &keys, &mut text);
        }
    }
    text
}

fn head(kind: FileKind) -> String {
    let (name, of) = match kind {
        FileKind::Scenario => (
            "a scenario",
            "`run.duration` and `run.warmup` begin with the first flow. All other times at which something happens \
             count from time 0 of the simulation. A run is one arm with one seed at one point; a trial is all runs. \
             The [glossary](glossary.md) explains the terms; [agents](agents.md) lists the agents and their specs. \
             `{ mean: 2s }` draws from an exponential distribution, `{ from: 1s, to: 3s }` from a uniform one. \
             `traffic[]` is an entry of the list `traffic`",
        ),
        FileKind::Node => ("a node", "`links[]` is an entry of the list `links`"),
        FileKind::Route => ("a routing daemon", "`routing.dymo` is the section `dymo` in `routing`"),
        FileKind::Proxy => ("a proxy", "`rules[]` is an entry of the list `rules`"),
        FileKind::Inventory => ("an inventory", "`hosts[]` is an entry of the list `hosts`"),
        FileKind::Mesh => ("a mesh's interfaces", "`interfaces[]` is an entry of the list `interfaces`"),
    };
    let command = if kind == FileKind::default() { String::new() } else { format!(" {}", kind.name()) };
    let paragraph = format!(
        "This page is what `hopwise schema{command} --markdown` prints; a test keeps it so. \
         `hopwise schema{command}` prints the schema itself, with which editors complete and check files. \
         `hopwise explain-key KEY` prints one key. {of}; `NAME` stands for any name. A time, size, rate or share has \
         its unit: 100ms, 1.5s, 64KiB, 11mbit, 1%. Units of time are ns, us, ms, s, min and h; of size B, kB, MB, GB, \
         KiB, MiB and GiB; of rate bit, kbit, mbit and gbit; of a share % and ppm. `(kind: chain)` after a meaning \
         says: the key belongs to that value of `kind`. Beside another value it is refused."
    );
    // At blanks alone: a link broken between its two brackets is none.
    let width = textwrap::Options::new(120).word_separator(textwrap::WordSeparator::AsciiSpace);
    format!("# Keys of {name}\n\n{}\n", textwrap::fill(&paragraph, width))
}

fn row(kind: FileKind, key: &Key, all: &[Key], text: &mut String) {
    let block = |ending: &str| format!("{}{ending}", key.path);
    let below = ["", "[]", ".NAME"]
        .map(block)
        .into_iter()
        .find(|block| all.iter().any(|other| other.path.rsplit_once('.').is_some_and(|(of, _)| of == block)));
    let mut value = below.map_or_else(
        || key.value.clone(),
        |block| key.value.replace("keys", &format!("[keys](#{})", anchor(&block))),
    );
    if let Some(range) = key.limits() {
        write!(value, ", {range}").expect("a text grows");
    }
    let default = if key.required { "required" } else { key.default.as_deref().unwrap_or_default() };
    let mut meaning = key.meaning.clone();
    for choice in &key.choices {
        write!(meaning, " `{}`: {}", choice.word, choice.meaning).expect("a text grows");
    }
    let name = key.name();
    let example = kind.example(&key.path).map(|example| format!("`{}`", example.value));
    let cells = [&format!("`{name}`"), &value, default, &meaning, &example.unwrap_or_default()]
        .map(|text: &str| cell(text));
    writeln!(text, "| {} |", cells.join(" | ")).expect("a text grows");
}

/// A text in one line, as a cell of a table holds it.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// The name by which links find a heading.
fn anchor(path: &str) -> String {
    path.to_lowercase().chars().filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter)).collect()
}
