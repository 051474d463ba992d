//! Text for a terminal: texts of a file, a peer or a daemon may hold control characters, and must not steer it.

use std::io::{self, StdoutLock, Write};

/// Standard output without the letters that steer a terminal.
pub fn out() -> Plain<StdoutLock<'static>> {
    Plain { to: io::stdout().lock(), held: Vec::new() }
}

/// The same for a text of several lines; each byte of such a letter becomes a `?`: columns and places stay.
pub fn text(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        if steers(letter) {
            plain.extend(std::iter::repeat_n('?', letter.len_utf8()));
        } else {
            plain.push(letter);
        }
    }
    plain
}

/// A text of a file, a peer or a daemon that stands in a line of ours: it begins no line of its own.
pub fn line(text: &str) -> String {
    text.chars().map(|letter| if is_foreign(letter) { '?' } else { letter }).collect()
}

/// A text of a file as a cell of a table in Markdown: it begins no line, column, link, image, code or HTML.
pub fn markdown(text: &str) -> String {
    let is_live = |letter: char| "\\|[]<>&`*@".contains(letter);
    let told = line(text);
    let told = told.chars().flat_map(|letter| is_live(letter).then_some('\\').into_iter().chain([letter]));
    // Renderers make links of bare addresses, too.
    told.collect::<String>().replace("://", r"\://").replace("www.", r"www\.")
}

/// What a name may be, for errors.
pub const NAME: &str =
    "a text of one line, without control characters and without letters that turn the direction of text";

/// The problem of a name that would begin a line, steer a terminal or turn the text behind it.
pub fn problem_of_name(name: &str) -> Option<String> {
    problem_of(name, &[])
}

/// The problem of the first letter that no name has, but for these.
pub(crate) fn problem_of(text: &str, taken: &[char]) -> Option<String> {
    let letter = text.chars().find(|letter| is_foreign(*letter) && !taken.contains(letter))?;
    let what = if letter.is_control() { "a control character" } else { "which parts lines or turns text" };
    Some(format!("there is U+{:04X} in it, {what}", u32::from(letter)))
}

/// Letters that no name has.
fn is_foreign(letter: char) -> bool {
    steers(letter) || matches!(letter, '\n' | '\t')
}

/// The first letters of a text, the last of them `…` if more follow.
pub fn cut(text: &str, longest: usize) -> String {
    if text.chars().nth(longest).is_none() {
        return text.to_owned();
    }
    text.chars().take(longest.saturating_sub(1)).chain(['…']).collect()
}

/// Control characters but ends of lines and tabs, separators of lines, and letters that turn the direction of text.
fn steers(letter: char) -> bool {
    let turns = matches!(
        letter,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    turns || letter.is_control() && letter != '\n' && letter != '\t'
}

/// Passes on all letters that do not steer a terminal.
#[derive(Debug)]
pub struct Plain<W: Write> {
    to: W,
    /// The first bytes of a letter whose last bytes have not come yet.
    held: Vec<u8>,
}

impl<W: Write> Plain<W> {
    fn pass(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        let mut passed = String::with_capacity(all.len());
        let mut chunks = all.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            passed.extend(chunk.valid().chars().filter(|letter| !steers(*letter)));
            match std::str::from_utf8(chunk.invalid()) {
                Err(error) if error.error_len().is_none() && chunks.peek().is_none() => {
                    self.held = chunk.invalid().to_vec();
                }
                Err(_) => passed.push('?'),
                Ok(_) => {}
            }
        }
        self.to.write_all(passed.as_bytes())
    }
}

impl<W: Write> Write for Plain<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pass(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

// Texts in a narrow terminal: tables leave out their least columns, and a line names them; sentences break at spaces.

/// Takes the columns with the least turns away until the table is no longer too wide, or no other one may go. Returns
/// them in the order in which they went. `turn` is none for a column that stays.
pub fn without_least<T>(
    shown: &mut Vec<T>,
    turn: impl Fn(&T) -> Option<u8>,
    is_too_wide: impl Fn(&[T]) -> bool,
) -> Vec<T> {
    let mut left_out = Vec::new();
    while is_too_wide(shown) {
        let turns = shown.iter().enumerate().filter_map(|(nth, column)| Some((turn(column)?, nth)));
        let Some((_, nth)) = turns.min() else { break };
        left_out.push(shown.remove(nth));
    }
    left_out
}

/// The line that names what was left out; `json` is the command that has it all.
pub fn no_room(heads: &[impl AsRef<str>], json: &str) -> String {
    let named = heads.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    format!("No room in lines so short: {named}. A wider terminal shows them, and {json} has them.")
}

/// The text behind `lead` in lines of that width, with later lines indented by the lead's. Lines break at spaces
/// alone: a unit such as `Mbit/s` or a name such as `ofdm-12mbps` in two parts misleads.
pub fn wrapped(lead: &str, text: &str, width: usize) -> String {
    let mut lines = String::new();
    let indent = " ".repeat(lead.chars().count());
    let mut line = lead.to_owned();
    let mut is_fresh = true;
    for word in text.split_whitespace() {
        if !is_fresh && line.chars().count() + 1 + word.chars().count() > width {
            lines.push_str(&line);
            lines.push('\n');
            line.clone_from(&indent);
            is_fresh = true;
        }
        if !is_fresh {
            line.push(' ');
        }
        line.push_str(word);
        is_fresh = false;
    }
    lines + &line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(pieces: &[&[u8]]) -> Vec<u8> {
        let mut plain = Plain { to: Vec::new(), held: Vec::new() };
        for piece in pieces {
            plain.write_all(piece).expect("into memory");
        }
        plain.to
    }

    #[test]
    fn nothing_steers_a_terminal_and_all_letters_stay() {
        let title = "\u{1b}]0;owned\u{7}\u{1b}[2Jé\t\u{9b}31mred\r\n¿ß€";
        assert_eq!(written(&[title.as_bytes()]), "]0;owned[2Jé\t31mred\n¿ß€".as_bytes());
        assert_eq!(text("a\u{1b}[2J\u{9b}\n"), "a?[2J??\n");
    }

    #[test]
    fn nothing_turns_the_direction_of_what_follows() {
        for turns in ["\u{61c}", "\u{200e}", "\u{2028}", "\u{202a}", "\u{202e}", "\u{2066}", "\u{2069}"] {
            let said = format!("a{turns}€");
            assert_eq!(written(&[said.as_bytes()]), "a€".as_bytes(), "{turns:?}");
            assert_eq!(text(&said), format!("a{}€", "?".repeat(turns.len())), "{turns:?}");
            let pieces = said.as_bytes().chunks(1).collect::<Vec<_>>();
            assert_eq!(written(&pieces), "a€".as_bytes(), "{turns:?} in pieces");
        }
    }

    #[test]
    fn what_stands_in_a_line_begins_no_other() {
        assert_eq!(line("no\r\nhopwise: all\tfine\u{2028}é"), "no??hopwise: all?fine?é");
    }

    #[test]
    fn what_stands_in_markdown_is_text() {
        let told = markdown("![a](b) [x](javascript:1) \\| <i>&lt; `*\n# c_d");
        assert_eq!(told, r"!\[a\](b) \[x\](javascript:1) \\\| \<i\>\&lt; \`\*?# c_d");
        let told = markdown("http://evil/ HTTPS://e www.evil.de x@y.de é.ww. a: b/c 0.5");
        assert_eq!(told, r"http\://evil/ HTTPS\://e www\.evil.de x\@y.de é.ww. a: b/c 0.5");
    }

    #[test]
    fn a_name_has_one_line_in_one_direction() {
        let problems = [
            ("dca", None),
            ("größer 1;=2", None),
            ("a\nb", Some("there is U+000A in it, a control character")),
            ("\u{7f}", Some("there is U+007F in it, a control character")),
            ("a\u{9b}", Some("there is U+009B in it, a control character")),
            ("a\u{2028}b", Some("there is U+2028 in it, which parts lines or turns text")),
            ("\u{202e}\n", Some("there is U+202E in it, which parts lines or turns text")),
        ];
        for (name, problem) in problems {
            assert_eq!(problem_of_name(name).as_deref(), problem, "{name:?}");
        }
    }

    #[test]
    fn a_longer_text_is_cut_and_says_so() {
        assert_eq!([cut("née", 3), cut("née!", 3), cut("", 0)], ["née", "né…", ""]);
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_such() {
        assert_eq!(written(&[b"a\xffb\xe2\x80", b"c"]), b"a?b?c");
    }

    #[test]
    fn a_letter_may_come_in_two_pieces() {
        let bytes = "a¿\u{85}b".as_bytes();
        for at in 0..bytes.len() {
            assert_eq!(written(&[&bytes[..at], &bytes[at..]]), "a¿b".as_bytes());
        }
    }
}
