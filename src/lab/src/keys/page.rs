//! The keys of a kind of file as a page for readers: a table for each block.

use std::fmt::Write;

use hopwise_lab::keys::Key;

use super::FileKind;
use super::shared::{Section, block_of, block_with, described_by, described_elsewhere, is_within};

impl FileKind {
    /// The name of its page in the book, without its ending.
    pub(super) fn page(self) -> String {
        if self == FileKind::Scenario { "scenario".to_owned() } else { format!("keys-{}", self.name()) }
    }

    fn noun(self) -> &'static str {
        match self {
            FileKind::Scenario => "a scenario",
            FileKind::Node => "a node",
            FileKind::Route => "a routing daemon",
            FileKind::Proxy => "a proxy",
            FileKind::Inventory => "an inventory",
            FileKind::Mesh => "a mesh's interfaces",
            FileKind::Thin => "thinned ACKs",
        }
    }
}

/// The whole of `docs/scenario.md` and its siblings.
pub(super) fn of(kind: FileKind) -> String {
    let keys = kind.keys();
    let elsewhere = described_elsewhere(kind);
    let is_elsewhere = |path: &str| elsewhere.iter().any(|(section, _)| is_within(path, &section.block));
    let mut blocks: Vec<(&str, Vec<&Key>)> = Vec::new();
    for key in &keys {
        let block = block_with(key);
        match blocks.iter_mut().find(|(known, _)| *known == block) {
            Some((_, of)) => of.push(key),
            None => blocks.push((block, vec![key])),
        }
    }
    let mut text = head(kind);
    for (block, of) in &blocks {
        if let Some((section, first)) = elsewhere.iter().find(|(section, _)| section.block == *block) {
            heading(block, &keys, &mut text);
            text.push_str(&pointer(section, first));
        } else if !is_elsewhere(block) {
            heading(block, &keys, &mut text);
            also(kind, block, &mut text);
            text.push_str("| key | value | default | meaning | example |\n|---|---|---|---|---|\n");
            of.iter().for_each(|key| row(kind, key, &keys, &mut text));
        }
    }
    text
}

/// The title of a block and the meaning of its key.
fn heading(block: &str, keys: &[Key], text: &mut String) {
    let title = if block.is_empty() { "The file".to_owned() } else { format!("`{block}`") };
    write!(text, "\n## {title}\n\n").expect("a text grows");
    let path = block.trim_end_matches(".NAME").trim_end_matches("[]");
    if let Some(key) = keys.iter().find(|key| key.path == path) {
        write!(text, "{}\n\n", cell(&key.meaning)).expect("a text grows");
    }
}

/// A sentence about the place that describes the keys of a block, and the keys there that this file does not take.
fn pointer(section: &Section, first: &Section) -> String {
    let (page, of) = if first.kind == section.kind {
        (String::new(), String::new())
    } else {
        (format!("{}.md", first.kind.page()), format!(" of {}", first.kind.noun()))
    };
    let link = format!("[`{}`{of}]({page}#{})", first.block, anchor(&first.block));
    let left_out: Vec<_> = section.left_out().iter().map(|path| format!("`{path}`")).collect();
    let but = left_out.split_last().map_or_else(String::new, |(last, before)| match before {
        [] => format!(", without {last}"),
        _ => format!(", without {} and {last}", before.join(", ")),
    });
    format!("The keys are those of {link}{but}.\n")
}

/// A sentence about other places with the keys of a block.
fn also(kind: FileKind, block: &str, text: &mut String) {
    for section in described_by(kind, block) {
        let whose = if section.kind == kind { String::new() } else { format!(" of {}", section.kind.noun()) };
        let which = if section.left_out().is_empty() { "these keys" } else { "most of these keys" };
        write!(text, "`{}`{whose} has {which} too.\n\n", section.block).expect("a text grows");
    }
}

fn head(kind: FileKind) -> String {
    let of = match kind {
        FileKind::Scenario => {
            "`run.duration` and `run.warmup` begin with the first flow. All other times at which something happens \
             count from time 0 of the simulation. A run is one arm with one seed at one point; a trial is all runs. \
             The [glossary](glossary.md) explains the terms; [agents](agents.md) lists the agents and their specs. \
             `{ mean: 2s }` draws from an exponential distribution, `{ from: 1s, to: 3s }` from a uniform one. \
             `traffic[]` is an entry of the list `traffic`"
        }
        FileKind::Node => "`links[]` is an entry of the list `links`",
        FileKind::Route => "`routing.dymo` is the section `dymo` in `routing`",
        FileKind::Proxy => "`rules[]` is an entry of the list `rules`",
        FileKind::Inventory => "`hosts[]` is an entry of the list `hosts`",
        FileKind::Mesh => "`interfaces[]` is an entry of the list `interfaces`",
        FileKind::Thin => "`rules[]` is an entry of the list `rules`",
    };
    let command = if kind == FileKind::default() { String::new() } else { format!(" {}", kind.name()) };
    let paragraph = format!(
        "This page is what `hopwise keys schema{command} --markdown` prints; a test keeps it so. \
         `hopwise keys schema{command}` prints the schema itself, with which editors complete and check files. \
         `hopwise keys explain KEY` prints one key. {of}; `NAME` stands for any name. A time, size, rate or share has \
         its unit: 100ms, 1.5s, 64KiB, 11mbit, 1%. Units of time are ns, us, ms, s, min and h; of size B, kB, MB, GB, \
         KiB, MiB and GiB; of rate bit, kbit, mbit and gbit; of a share % and ppm. `(kind: chain)` after a meaning \
         says: the key belongs to that value of `kind`. Beside another value it is refused."
    );
    // At blanks alone: a link broken between its two brackets is none.
    let width = textwrap::Options::new(120).word_separator(textwrap::WordSeparator::AsciiSpace);
    format!("# Keys of {}\n\n{}\n", kind.noun(), textwrap::fill(&paragraph, width))
}

fn row(kind: FileKind, key: &Key, all: &[Key], text: &mut String) {
    let below = block_of(key, all);
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
