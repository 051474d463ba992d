//! Text for a terminal: texts of a file, a peer or a daemon may hold control characters, and must not steer it.

use std::io::{self, StdoutLock, Write};

/// Standard output without control characters but ends of lines and tabs.
pub fn out() -> Plain<StdoutLock<'static>> {
    Plain { to: io::stdout().lock(), held: false }
}

/// The same for a text; each byte of such a character becomes a `?`: columns and places stay.
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

fn steers(letter: char) -> bool {
    letter.is_control() && letter != '\n' && letter != '\t'
}

/// Passes on all but control characters.
#[derive(Debug)]
pub struct Plain<W: Write> {
    to: W,
    /// True if the last byte begins a control character of two bytes, or another letter.
    held: bool,
}

/// The first byte of U+0080 to U+00BF in UTF-8; those up to U+009F are control characters.
const FIRST: u8 = 0xc2;

impl<W: Write> Plain<W> {
    fn pass(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut passed = Vec::with_capacity(bytes.len() + 1);
        for byte in bytes {
            let was_held = std::mem::take(&mut self.held);
            match byte {
                0x80..=0x9f if was_held => continue,
                _ if was_held => passed.push(FIRST),
                _ => {}
            }
            match byte {
                b'\n' | b'\t' => passed.push(*byte),
                0..=0x1f | 0x7f => {}
                &FIRST => self.held = true,
                _ => passed.push(*byte),
            }
        }
        self.to.write_all(&passed)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn written(pieces: &[&[u8]]) -> Vec<u8> {
        let mut plain = Plain { to: Vec::new(), held: false };
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
    fn a_letter_may_come_in_two_pieces() {
        let bytes = "a¿\u{85}b".as_bytes();
        for at in 0..bytes.len() {
            assert_eq!(written(&[&bytes[..at], &bytes[at..]]), "a¿b".as_bytes());
        }
    }
}
