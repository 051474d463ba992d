//! Enough of Rust's lexical grammar to find functions and braces. Comments, strings and characters are skipped: a brace
//! inside one does not count.

/// A word, a literal (its text is left out) or one character of punctuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    /// The line in which the token begins, counted from 1.
    pub(crate) line: usize,
}

/// The text of a literal's token; no word and no punctuation looks like it.
pub(crate) const LITERAL: &str = "\"\"";

pub(crate) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer { rest: source, line: 1 };
    let mut found = Vec::new();
    while let Some(first) = lexer.rest.chars().next() {
        let line = lexer.line;
        if let Some(text) = lexer.token(first) {
            found.push(Token { text, line });
        }
    }
    found
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Lexer<'a> {
    /// Consumes at least one character; `None` for skipped text.
    fn token(&mut self, first: char) -> Option<&'a str> {
        if self.rest.starts_with("//") {
            self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
            return None;
        }
        if self.rest.starts_with("/*") {
            self.block_comment();
            return None;
        }
        match first {
            '"' => self.string(),
            '\'' => self.quote(),
            _ if is_word(first) => self.word(),
            _ if first.is_whitespace() => {
                self.take(first.len_utf8());
                None
            }
            _ => Some(self.take(first.len_utf8())),
        }
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    /// Block comments nest.
    fn block_comment(&mut self) {
        let mut depth = 0;
        while !self.rest.is_empty() {
            if self.rest.starts_with("/*") {
                depth += 1;
                self.take(2);
            } else if self.rest.starts_with("*/") {
                depth -= 1;
                self.take(2);
            } else {
                self.skip();
            }
            if depth == 0 {
                return;
            }
        }
    }

    fn skip(&mut self) {
        let bytes = self.rest.chars().next().map_or(0, char::len_utf8);
        self.take(bytes);
    }

    fn string(&mut self) -> Option<&'a str> {
        self.take(1);
        self.until_unescaped('"')
    }

    fn until_unescaped(&mut self, end: char) -> Option<&'a str> {
        while let Some(next) = self.rest.chars().next() {
            self.skip();
            match next {
                '\\' => self.skip(),
                _ if next == end => break,
                _ => {}
            }
        }
        Some(LITERAL)
    }

    /// A character, or a lifetime, which has no closing quote.
    fn quote(&mut self) -> Option<&'a str> {
        self.take(1);
        let mut ahead = self.rest.chars();
        let (first, second) = (ahead.next(), ahead.next());
        if first == Some('\\') || second == Some('\'') { self.until_unescaped('\'') } else { self.word() }
    }

    /// A word or a number; or the prefix of a raw, byte or C string, and then the string.
    fn word(&mut self) -> Option<&'a str> {
        let end = self.rest.find(|next| !is_word(next)).unwrap_or(self.rest.len());
        let word = self.take(end);
        let raw = matches!(word, "r" | "br" | "cr");
        match self.rest.chars().next() {
            Some('"') if raw => self.raw_string(0),
            Some('"') if matches!(word, "b" | "c") => self.string(),
            Some('\'') if word == "b" => self.quote(),
            Some('#') if raw => {
                let hashes = self.rest.bytes().take_while(|byte| *byte == b'#').count();
                if self.rest[hashes..].starts_with('"') {
                    self.take(hashes);
                    self.raw_string(hashes)
                } else {
                    // A raw identifier: `r#fn` is a name and no keyword.
                    self.take(hashes);
                    self.word();
                    Some(LITERAL)
                }
            }
            _ => Some(word),
        }
    }

    fn raw_string(&mut self, hashes: usize) -> Option<&'a str> {
        self.take(1);
        let end = format!("\"{}", "#".repeat(hashes));
        let bytes = self.rest.find(&end).map_or(self.rest.len(), |at| at + end.len());
        self.take(bytes);
        Some(LITERAL)
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[test]
fn braces_inside_comments_strings_and_characters_are_passed_over() {
    for source in ["a // } {\n b", "a /* } /* { */ } */\n b", "a /** } */ \nb", "a\n//! {\nb"] {
        assert_eq!(texts(source), ["a", "b"], "{source}");
    }
    for literal in [
        r#""{""#,
        r#""\"{""#,
        r#""\\""#,
        r##"r"\""##,
        r###"r#"{"}"#"###,
        r####"r##"{"#}"##"####,
        r#"b"}""#,
        r#"br"}""#,
        r#"c"}""#,
        "'{'",
        r"'\''",
        r"'\\'",
        r"'\u{7d}'",
        "b'{'",
        r"b'\''",
        "'µ'",
        "\"µ{\n\"",
        "r#fn",
    ] {
        assert_eq!(texts(&format!("a = {literal};b")), ["a", "=", LITERAL, ";", "b"], "{literal}");
    }
}

#[test]
fn a_lifetime_is_no_character() {
    assert_eq!(texts("&'a str, '{', 'static {"), ["&", "a", "str", ",", LITERAL, ",", "static", "{"]);
    assert_eq!(texts("<'_>"), ["<", "_", ">"]);
}

#[test]
fn lines_are_counted_through_strings_and_comments() {
    let found = tokens("a\n\"x\ny\" /* \n\n */ b\nr\"\n\n\" c // \nd");
    let places: Vec<_> = found.iter().map(|token| (token.text, token.line)).collect();
    assert_eq!(places, [("a", 1), (LITERAL, 2), ("b", 5), (LITERAL, 6), ("c", 8), ("d", 9)]);
}

#[test]
fn unclosed_text_ends_with_the_file() {
    for source in ["\"a", "/* a", "r#\"a\"", "'\\", "b'", "'", "\"\\"] {
        assert!(texts(source).len() <= 1, "{source}");
    }
}

#[cfg(test)]
fn texts(source: &str) -> Vec<&str> {
    tokens(source).iter().map(|token| token.text).collect()
}
