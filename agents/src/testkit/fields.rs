//! The tables of `docs/own-agent.md` about what a receiver agent sees, asks for and answers, from the text of the code.

use std::fmt::Write;

use super::book;

const PAGE: &str = "docs/own-agent.md";
const RECEIVER: &str = include_str!("../../../stack/core/src/agent/receiver.rs");
const PATH: &str = include_str!("../../../stack/core/src/agent/path.rs");
const NEEDS: &str = include_str!("../../../stack/core/src/agent/needs.rs");
const HOLD: &str = include_str!("../receiver/hold.rs");

/// The documented items of a block, such as the fields of a struct, each with the line that follows its comment.
fn items<'a>(source: &'a str, head: &str) -> Vec<(&'a str, String)> {
    let (before, block) = source.split_once(&format!("{head} {{\n")).unwrap_or_else(|| panic!("no {head}"));
    // An enumeration with names stands in a macro, and so further to the right.
    let indent = before.rsplit('\n').next().expect("a line");
    let (mut said, mut found) = (String::new(), Vec::new());
    for line in block.lines().map(|line| line.strip_prefix(indent).unwrap_or(line)) {
        if line == "}" {
            break;
        }
        let Some(line) = line.strip_prefix("    ").filter(|line| !line.starts_with([' ', '}', '#'])) else {
            continue;
        };
        match line.strip_prefix("/// ") {
            Some(comment) => said = [said.as_str(), comment].join(if said.is_empty() { "" } else { " " }),
            None => found.push((line, plain(&std::mem::take(&mut said)))),
        }
    }
    assert!(found.iter().all(|(_, said)| !said.is_empty()), "{head} has an item without a comment");
    found
}

/// A comment without the links of rustdoc.
fn plain(comment: &str) -> String {
    let (mut text, mut rest) = (String::new(), comment);
    while let Some((before, link)) = rest.split_once("[`") {
        let (name, after) = link.split_once("`]").expect("the name of a link ends");
        let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
        let _ = write!(text, "{before}`{name}`");
        rest = target.map_or(after, |(_, after)| after);
    }
    text + rest
}

/// The fields of a struct, written as an agent reads them.
fn fields(rows: &mut String, source: &str, head: &str, at: &str) {
    for (line, said) in items(source, head) {
        let field = line.strip_prefix("pub ").and_then(|field| field.strip_suffix(','));
        let (name, kind) = field.and_then(|field| field.split_once(": ")).expect("a public field");
        // The fields of these have rows of their own.
        if !["owed", "path", "rtt"].contains(&name) || kind.starts_with("Option") {
            writeln!(rows, "| `{at}.{name}` | `{kind}` | {said} |").expect("a text grows");
        }
    }
}

#[test]
fn the_book_shows_what_an_agent_sees() {
    let mut seen = "| field | type | what it is |\n|---|---|---|\n".to_owned();
    fields(&mut seen, RECEIVER, "pub struct Arrival", "arrival");
    for (line, said) in items(RECEIVER, "pub enum Class") {
        writeln!(seen, "| | `Class::{}` | {said} |", line.split([' ', ',']).next().expect("a name"))
            .expect("a text grows");
    }
    fields(&mut seen, RECEIVER, "pub struct RecvView<'a>", "view");
    fields(&mut seen, RECEIVER, "pub struct Owed", "view.owed");
    fields(&mut seen, PATH, "pub struct Path", "view.path");
    fields(&mut seen, PATH, "pub struct Rtt", "view.path.rtt");
    book::holds(PAGE, "| field |", &[seen]);
}

#[test]
fn the_book_shows_what_an_agent_may_ask_for() {
    let mut asked = "| need | what the connection finds out |\n|---|---|\n".to_owned();
    for (line, said) in items(NEEDS, "pub struct Needs") {
        let name = line.strip_prefix("pub ").and_then(|field| field.split_once(':')).expect("a field").0;
        writeln!(asked, "| `{name}` | {said} |").expect("a text grows");
    }
    book::holds(PAGE, "| need |", &[asked]);
}

#[test]
fn the_book_shows_how_an_agent_answers() {
    let mut answers = "| answer | what follows |\n|---|---|\n".to_owned();
    let of_impl = items(HOLD, "impl Decision");
    for (line, said) in items(HOLD, "pub enum Decision").into_iter().chain(of_impl) {
        let name = line.strip_prefix("pub const ").or_else(|| line.strip_prefix("pub fn ")).unwrap_or(line);
        let arguments = match line.starts_with("pub fn ") {
            true => "(why, until)",
            false => "",
        };
        let name: String = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        writeln!(answers, "| `Decision::{name}{arguments}` | {said} |").expect("a text grows");
    }
    book::holds(PAGE, "| answer |", &[answers]);
}
