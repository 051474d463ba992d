//! Passwords and keys in a file: no error shows them, since errors end in logs.

use std::ops::Range;

use super::tree::YamlNode;
use super::{PathStep, YamlPath};

/// Keys of YAML whose values are secrets, with all that stands within them. A name with one of these endings, or with
/// one of these words in it, is taken for a slip: its value was meant for such a key.
const SECRET: [&str; 3] = ["key", "keys", "users"];
const WORDS: [&str; 5] = ["passw", "passphrase", "secret", "psk", "token"];
/// A key of a network has 64 hexadecimal digits. A word with this many is shown nowhere.
const FEWEST_DIGITS: usize = 32;

/// Said in place of an error that quotes a secret.
pub(super) const PROBLEM: &str = "the value does not fit, and is not shown: it may be a secret";
pub(super) const ACCEPTED: &str = "in quotes where it could be read as a number";

pub(super) fn is_secret(path: &YamlPath) -> bool {
    path.0.iter().any(|step| matches!(step, PathStep::Key(key) if is_name(key)))
}

/// Returns whether a key of YAML has a secret for its value, or was meant to.
fn is_name(key: &str) -> bool {
    let key = key.to_lowercase();
    SECRET.iter().any(|name| key.ends_with(name)) || WORDS.iter().any(|word| key.contains(word))
}

/// The text with stars for what is secret. Everything keeps its place. A text without keys is no configuration, and may
/// be a file of secrets.
pub(super) fn hidden(text: &str, root: &YamlNode) -> String {
    let mut spans = Vec::new();
    root.spans_below(&is_name, &mut spans);
    if root.is_leaf() {
        spans.push(0..text.len());
    }
    with_stars(text, &spans)
}

/// The same of a text that is no YAML: whatever follows the first of these keys may belong to it.
pub(super) fn hidden_from_first(text: &str) -> String {
    let is_of_name = |letter: &char| letter.is_alphanumeric() || ['_', '-'].contains(letter);
    let begins = |(colon, _): (usize, &str)| {
        let before = text[..colon].trim_end_matches(['"', '\'', ' ']);
        let letters: usize = before.chars().rev().take_while(is_of_name).map(char::len_utf8).sum();
        is_name(&before[before.len() - letters..]).then_some(before.len())
    };
    let first = text.match_indices(':').find_map(begins);
    first
        .map_or_else(|| text.to_owned(), |first| with_stars(text, std::slice::from_ref(&(first..text.len()))))
}

/// The text with stars for words that look like keys. It keeps its length.
pub(super) fn without_keys(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for word in text.split_inclusive(|letter: char| !letter.is_ascii_hexdigit()) {
        let digits = word.bytes().take_while(u8::is_ascii_hexdigit).count();
        let hidden = if digits < FEWEST_DIGITS { 0 } else { digits };
        shown.extend(std::iter::repeat_n('*', hidden));
        shown.push_str(&word[hidden..]);
    }
    shown
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
