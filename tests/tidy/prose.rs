//! Comments and help texts in plain English: a sentence opens with its subject or its verb.

use crate::tree::File;

const ODD: [&str; 20] = [
    "who", "whom", "whose", "whoever", "what", "whatever", "where", "wherever", "of", "so", "to", "that",
    "nobody", "nothing", "whether", "how", "neither", "nor", "else", "besides",
];

/// The words of a sentence count from here on; shorter ones are labels.
const SHORTEST: usize = 3;

pub(crate) fn findings(files: &[File]) -> Vec<String> {
    let rust = files.iter().filter(|file| file.is_rust());
    rust.flat_map(|file| odd(&file.text).into_iter().map(|sentence| finding(&file.path, &sentence))).collect()
}

fn finding(path: &str, sentence: &str) -> String {
    format!(
        "{path}: open with the subject or the verb, not with Who, What, Where, Of, So, To, That, ...: {sentence}"
    )
}

fn odd(source: &str) -> Vec<String> {
    sentences(source).into_iter().filter(|sentence| is_odd(sentence)).collect()
}

fn is_odd(sentence: &str) -> bool {
    let first = words(sentence).next().unwrap_or_default();
    let first = first.trim_matches(['`', '\'']).to_ascii_lowercase();
    ODD.contains(&first.as_str()) && !sentence.ends_with('?')
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_word = |character: char| character.is_ascii_alphanumeric() || "'`_./-".contains(character);
    text.split(move |character| !is_word(character)).filter(|word| !word.is_empty())
}

/// The sentences of all `//` comments that stand on lines of their own; code blocks and tables are left out.
fn sentences(source: &str) -> Vec<String> {
    let (mut found, mut paragraph, mut is_code) = (Vec::new(), String::new(), false);
    for line in source.lines() {
        let mut text =
            line.trim().strip_prefix("//").map_or("", |text| text.trim_start_matches(['/', '!', '#']).trim());
        if text.starts_with("```") {
            (text, is_code) = ("", !is_code);
        }
        let (text, is_item) = item(text);
        let is_prose = !is_code && !text.is_empty() && !text.starts_with(['|', '#', '!', '<']);
        if !is_prose || is_item {
            split(&std::mem::take(&mut paragraph), &mut found);
        }
        if is_prose {
            paragraph.push_str(text);
            paragraph.push(' ');
        }
    }
    split(&paragraph, &mut found);
    found
}

/// The text of a line, and whether the line begins an item of a list.
fn item(text: &str) -> (&str, bool) {
    let Some((mark, rest)) = text.split_once(' ') else { return (text, false) };
    let number = mark.strip_suffix('.').unwrap_or_default();
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if is_number || matches!(mark, "-" | "*" | "+") { (rest.trim(), true) } else { (text, false) }
}

/// A sentence ends with its mark where a capital, code or a bracket follows.
fn split(paragraph: &str, found: &mut Vec<String>) {
    let mut keep = |sentence: &str| {
        if words(sentence).nth(SHORTEST - 1).is_some() {
            found.push(sentence.trim().to_owned());
        }
    };
    let mut start = 0;
    for (at, _) in paragraph.match_indices(' ') {
        let begins = |next: char| next.is_ascii_uppercase() || "`*[(".contains(next);
        if paragraph[..at].ends_with(['.', '!', '?', ':', ';']) && paragraph[at + 1..].starts_with(begins) {
            keep(&paragraph[start..at]);
            start = at + 1;
        }
    }
    keep(&paragraph[start..]);
}

#[test]
fn sentences_are_those_of_comments() {
    let source = concat!(
        "//! A file of words. So it is: `Code` is one, and more.\n\nlet a = 1; // not this one here\n",
        "/// Of a line\n    /// and the next.\n/// ```\n/// of some code\n/// ```\n",
        "/// - To the first item.\n/// - Is it so? Not here.\n",
    );
    let expected = [
        "A file of words.",
        "So it is:",
        "`Code` is one, and more.",
        "Of a line and the next.",
        "To the first item.",
        "Is it so?",
    ];
    assert_eq!(sentences(source), expected);
    assert_eq!(odd(source), ["So it is:", "Of a line and the next.", "To the first item."]);
    assert!(!is_odd("What is a question?"));
}
