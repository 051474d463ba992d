//! A script: lines, each perhaps with a time first.

use super::text::{Problem, Read, Words, problem, time};

#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// Counted from 1.
    pub(crate) number: usize,
    pub(crate) text: String,
    pub(crate) when: When,
    pub(crate) words: Words,
}

/// When a line happens. Times are on the script's clock, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Now,
    /// A time after the line before.
    After(u64),
    /// A range of times for an expected packet, counted from the line before.
    Within(u64, u64),
    At(u64),
}

/// All lines with content.
pub(crate) fn read(text: &str) -> Result<Vec<Line>, (usize, Problem)> {
    let mut lines = Vec::new();
    for (before, text) in text.lines().enumerate() {
        lines.extend(read_line(before + 1, text).map_err(|problem| (before + 1, problem))?);
    }
    Ok(lines)
}

pub(crate) fn read_line(number: usize, text: &str) -> Read<Option<Line>> {
    let mut words = Words::split(text)?;
    let Some(first) = words.peek() else { return Ok(None) };
    let when = read_when(first)?;
    if when != When::Now {
        words.next();
    }
    Ok(Some(Line { number, text: text.trim().to_owned(), when, words }))
}

fn read_when(word: &str) -> Read<When> {
    if let Some(at) = word.strip_prefix('@') {
        return Ok(When::At(time(at)?));
    }
    let Some(after) = word.strip_prefix('+') else { return Ok(When::Now) };
    match after.split_once("..") {
        None => Ok(When::After(time(after)?)),
        Some((least, most)) => match (time(least)?, time(most)?) {
            (least, most) if least <= most => Ok(When::Within(least, most)),
            _ => Err(problem!("`{word}` ends before it begins")),
        },
    }
}

/// The names in a `>` or `<` word: `>b` goes to the peer `b`.
pub(crate) fn arrow(word: &str) -> Option<(Arrow, &str)> {
    let (arrow, name) = word.split_at_checked(1)?;
    match arrow {
        "<" => Some((Arrow::In, name)),
        ">" => Some((Arrow::Out, name)),
        _ => None,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrow {
    In,
    Out,
}

#[test]
fn a_line_has_its_number_its_time_and_its_words() {
    let lines = read("# title\n\n+10ms > S seq 0 # why\nconnect\n@2s\n+1s..2s > . seq 1\n").unwrap();
    let seen: Vec<_> = lines.iter().map(|line| (line.number, line.when, line.words.peek())).collect();
    assert_eq!(
        seen,
        [
            (3, When::After(10_000_000), Some(">")),
            (4, When::Now, Some("connect")),
            (5, When::At(2_000_000_000), None),
            (6, When::Within(1_000_000_000, 2_000_000_000), Some(">")),
        ]
    );
    assert_eq!(read("x\n+1 y").unwrap_err().0, 2);
    assert!(read("+2s..1s > x").is_err());
    assert_eq!((arrow("<b"), arrow(">"), arrow("x")), (Some((Arrow::In, "b")), Some((Arrow::Out, "")), None));
}
