//! The corpus of a fuzz target is one text file: a line for each input, in hex, with `NAME: ` before it where the case
//! has a name. Lines that begin with `#` are comments. `scripts/fuzz` unpacks it for the fuzzer and adds lines to it.

use std::fs;
use std::path::Path;

/// One input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Case {
    /// Its line in the file, counted from 1.
    pub(crate) line: usize,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) fn read(target: &str) -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fuzz/corpus/{target}.hex"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    parse(&text).unwrap_or_else(|line| panic!("{}:{line}: expected NAME: and bytes in hex", path.display()))
}

/// The inputs, or the number of the first invalid line.
fn parse(text: &str) -> Result<Vec<Case>, usize> {
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.starts_with('#'));
    lines
        .map(|(line, number)| {
            let hex = line.split_once(": ").map_or(line, |(_, hex)| hex);
            Ok(Case { line: number, bytes: bytes(hex).ok_or(number)? })
        })
        .collect()
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let pairs = hex.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()
        }
        _ => None,
    });
    pairs.collect()
}

#[test]
fn an_input_is_a_line_with_or_without_a_name() {
    let case = |line, bytes: &[u8]| Case { line, bytes: bytes.to_vec() };
    let read = parse("# comment\nlost-fin: 00fF\n7a\n\n");
    assert_eq!(read, Ok(vec![case(2, &[0, 255]), case(3, &[0x7a]), case(4, &[])]));
}

#[test]
fn a_line_that_is_no_hex_is_refused() {
    for text in ["00\n0", "00\n0g", "00\nname 00", "00\nname:00", "00\n+1"] {
        assert_eq!(parse(text), Err(2), "{text:?}");
    }
}
