//! Words, numbers and times of a script, and the problems in them.

use std::fmt;

/// The problem of a line, written for its author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem(String);

impl Problem {
    pub(crate) fn new(text: impl Into<String>) -> Problem {
        Problem(text.into())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub(crate) type Read<T> = Result<T, Problem>;

/// Makes a [`Problem`] as `format!` makes a string.
macro_rules! problem {
    ($($text:tt)*) => { $crate::engine::text::Problem::new(format!($($text)*)) };
}
pub(crate) use problem;

/// The words of a line, read from left to right.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    words: Vec<String>,
    at: usize,
}

impl Words {
    /// Splits at blanks, but not inside brackets or quotes; `#` begins a comment.
    pub(crate) fn split(line: &str) -> Read<Words> {
        let mut words = Vec::new();
        let (mut word, mut depth, mut quoted) = (String::new(), 0_usize, false);
        for character in line.chars() {
            let inside = quoted || depth > 0;
            match character {
                '#' if !inside && word.is_empty() => break,
                '"' => quoted = !quoted,
                '[' | '(' if !quoted => depth += 1,
                ']' | ')' if !quoted && depth == 0 => return Err(problem!("`{character}` closes nothing")),
                ']' | ')' if !quoted => depth -= 1,
                _ => {}
            }
            match character {
                '"' => {}
                blank if blank.is_whitespace() && !inside => {
                    words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
                }
                other => word.push(other),
            }
        }
        if quoted || depth > 0 {
            return Err(problem!("a bracket or a quote is not closed"));
        }
        words.extend((!word.is_empty()).then_some(word));
        Ok(Words { words, at: 0 })
    }

    pub(crate) fn peek(&self) -> Option<&str> {
        self.words.get(self.at).map(String::as_str)
    }

    pub(crate) fn next(&mut self) -> Option<&str> {
        self.at += 1;
        self.words.get(self.at - 1).map(String::as_str)
    }

    /// The next word, which has to be there.
    pub(crate) fn want(&mut self, what: &str) -> Read<&str> {
        self.next().ok_or_else(|| problem!("{what} is missing at the end of the line"))
    }

    /// Takes the next word if it is this one.
    pub(crate) fn take(&mut self, word: &str) -> bool {
        let is_it = self.peek() == Some(word);
        self.at += usize::from(is_it);
        is_it
    }

    /// The words from here on, as one text.
    pub(crate) fn rest(&self) -> String {
        self.words[self.at.min(self.words.len())..].join(" ")
    }

    pub(crate) fn finish(&self) -> Read<()> {
        match self.peek() {
            None => Ok(()),
            Some(word) => Err(problem!("`{word}` is not understood here")),
        }
    }

    /// Cuts off ` -> OUTCOME` from the end.
    pub(crate) fn take_outcome(&mut self) -> Option<String> {
        let arrow = self.words.iter().position(|word| word == "->")?;
        let outcome = self.words[arrow + 1..].join(" ");
        self.words.truncate(arrow);
        Some(outcome)
    }
}

/// `key=value`.
pub(crate) fn pair(word: &str) -> Read<(&str, &str)> {
    word.split_once('=').ok_or_else(|| problem!("`{word}`: expected key=value"))
}

/// `12`, `65_535`, `0xff`, `2^32-1000`.
pub(crate) fn number(text: &str) -> Read<u64> {
    let wrong = || problem!("`{text}` is no number");
    if let Some(power) = text.strip_prefix("2^") {
        let end = power.find(['-', '+']).unwrap_or(power.len());
        let (exponent, rest) = power.split_at(end);
        let base = 1_u64.checked_shl(exponent.parse().map_err(|_| wrong())?).ok_or_else(wrong)?;
        return match rest.split_at_checked(1) {
            None => Ok(base),
            Some(("-", less)) => base.checked_sub(number(less)?).ok_or_else(wrong),
            Some((_, more)) => Ok(base + number(more)?),
        };
    }
    let digits = text.replace('_', "");
    match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).map_err(|_| wrong()),
        None => digits.parse().map_err(|_| wrong()),
    }
}

/// A number that fits a header's field.
pub(crate) fn field<T: TryFrom<u64>>(text: &str) -> Read<T> {
    T::try_from(number(text)?).map_err(|_| problem!("`{text}` is too large"))
}

/// A sequence number as scripts write them: relative to the initial one, perhaps below it.
pub(crate) fn sequence(text: &str) -> Read<u32> {
    match text.strip_prefix('-') {
        Some(below) => Ok((field::<u32>(below)?).wrapping_neg()),
        None => field(text),
    }
}

/// A sequence number as reports write it.
pub(crate) fn show_sequence(number: u32) -> String {
    (number as i32).to_string()
}

pub(crate) fn switch(text: &str) -> Read<bool> {
    match text {
        "on" | "yes" => Ok(true),
        "off" | "no" => Ok(false),
        other => Err(problem!("`{other}`: expected on or off")),
    }
}

const UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Nanoseconds of `100ms`, `1.5s`, `3min`, `2h`.
pub(crate) fn time(text: &str) -> Read<u64> {
    let wrong = || problem!("`{text}` is no time: write 100ms, 1.5s, 3min or 2h");
    let end = text.find(|c: char| c.is_alphabetic()).ok_or_else(wrong)?;
    let (digits, unit) = text.split_at(end);
    let scale = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale).ok_or_else(wrong)?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut nanos = whole.parse::<u64>().map_err(|_| wrong())?.checked_mul(scale).ok_or_else(wrong)?;
    let mut place = scale;
    for digit in fraction.chars() {
        place /= 10;
        nanos += u64::from(digit.to_digit(10).ok_or_else(wrong)?) * place;
    }
    Ok(nanos)
}

/// Seconds, without trailing zeros.
pub(crate) fn show_time(nanos: u64) -> String {
    let text = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
    let text = text.trim_end_matches('0');
    format!("{}s", text.trim_end_matches('.'))
}

/// Pairs of hexadecimal digits.
pub(crate) fn bytes(hex: &str) -> Read<Vec<u8>> {
    let digits: Vec<char> = hex.chars().filter(|c| *c != '_').collect();
    if !digits.len().is_multiple_of(2) {
        return Err(problem!("`{hex}` has half a byte"));
    }
    let byte = |pair: &[char]| {
        let text: String = pair.iter().collect();
        u8::from_str_radix(&text, 16).map_err(|_| problem!("`{hex}` is not hexadecimal"))
    };
    digits.chunks(2).map(byte).collect()
}

/// `a..b` with either end left out, or one number: the allowed values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) least: u64,
    pub(crate) most: u64,
}

impl Range {
    pub(crate) fn read(text: &str) -> Read<Range> {
        let Some((least, most)) = text.split_once("..") else {
            let only = number(text)?;
            return Ok(Range { least: only, most: only });
        };
        let or = |text: &str, default| if text.is_empty() { Ok(default) } else { number(text) };
        Ok(Range { least: or(least, 0)?, most: or(most, u64::MAX)? })
    }

    pub(crate) fn contains(self, value: u64) -> bool {
        self.least <= value && value <= self.most
    }

    /// The only value it has, if it has but one.
    pub(crate) fn only(self) -> Option<u64> {
        (self.least == self.most).then_some(self.least)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.only(), self.most) {
            (Some(only), _) => write!(f, "{only}"),
            (None, u64::MAX) => write!(f, "{}..", self.least),
            (None, most) => write!(f, "{}..{most}", self.least),
        }
    }
}

#[test]
fn words_end_at_blanks_but_not_inside_brackets_and_quotes() {
    let words = |line| Words::split(line).map(|words| words.words);
    assert_eq!(
        words(" > S. [mss 1460, ts 1 2]  win 3 # x").unwrap(),
        [">", "S.", "[mss 1460, ts 1 2]", "win", "3"]
    );
    assert_eq!(words("agents senders=\"[a, b]\"").unwrap(), ["agents", "senders=[a, b]"]);
    assert!(words("[a").is_err() && words("a]").is_err() && words("\"a").is_err());
}

#[test]
fn numbers_and_times_are_read_as_written() {
    assert_eq!(number("2^32-1000"), Ok(4_294_966_296));
    assert_eq!(
        (number("0xff"), number("65_535"), number("2^31+2")),
        (Ok(255), Ok(65_535), Ok(2_147_483_650))
    );
    assert!(number("x").is_err() && number("2^x").is_err() && number("").is_err());
    assert_eq!(time("1.5s"), Ok(1_500_000_000));
    assert_eq!(
        (time("3min"), time("490ms"), time("2h")),
        (Ok(180_000_000_000), Ok(490_000_000), Ok(7_200_000_000_000))
    );
    assert!(time("3").is_err() && time("s").is_err() && time("1x").is_err());
    assert_eq!(show_time(1_500_000_000), "1.5s");
    assert_eq!(sequence("-1"), Ok(u32::MAX));
    assert_eq!(show_sequence(u32::MAX), "-1");
    assert!(Range::read("2..").unwrap().contains(9) && !Range::read("2..4").unwrap().contains(5));
}
