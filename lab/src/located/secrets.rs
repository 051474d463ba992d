//! Passwords and keys in a file: no error shows them, since errors end in logs.

use std::ops::Range;

use super::tree::Node;
use super::{Step, YamlPath};

/// Keys of YAML whose values are secrets, with all that stands within them.
const SECRET: [&str; 3] = ["key", "keys", "users"];

/// Said in place of an error that quotes a secret.
pub(super) const PROBLEM: &str = "what stands here does not fit, and is not shown: it may be a secret";
pub(super) const ACCEPTED: &str = "in quotes where it could be read as a number";

pub(super) fn is_secret(path: &YamlPath) -> bool {
    path.0.iter().any(|step| matches!(step, Step::Key(key) if SECRET.contains(&key.as_str())))
}

/// The text with stars for what is secret. Everything keeps its place.
pub(super) fn hidden(text: &str, root: &Node) -> String {
    let mut spans = Vec::new();
    root.spans_below(&SECRET, &mut spans);
    with_stars(text, &spans)
}

/// The same of a text that is no YAML: whatever follows the first of these keys may belong to it.
pub(super) fn hidden_from_first(text: &str) -> String {
    let is_of_name = |letter: char| letter.is_alphanumeric() || "_-".contains(letter);
    let begins = |key: &&str| {
        let mut found = text.match_indices(*key).filter(|(at, _)| !text[..*at].ends_with(is_of_name));
        found.find_map(|(at, _)| {
            let behind = at + key.len();
            let rest = text[behind..].trim_start_matches(['"', '\'', ' ']);
            rest.starts_with(':').then_some(behind)
        })
    };
    let first = SECRET.iter().filter_map(begins).min();
    first
        .map_or_else(|| text.to_owned(), |first| with_stars(text, std::slice::from_ref(&(first..text.len()))))
}

fn with_stars(text: &str, spans: &[Range<usize>]) -> String {
    let mut hidden = String::with_capacity(text.len());
    for (at, letter) in text.char_indices() {
        let is_hidden = spans.iter().any(|span| span.contains(&at));
        if is_hidden && !letter.is_whitespace() && !":{}[],".contains(letter) {
            hidden.extend(std::iter::repeat_n('*', letter.len_utf8()));
        } else {
            hidden.push(letter);
        }
    }
    hidden
}
