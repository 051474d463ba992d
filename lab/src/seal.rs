//! Checksums in the files of a trial: the last member of an object, `sum`, is the SHA-256 of the text before it.
//!
//! It finds changes by a disk or an editor. It is no signature: an attacker can compute it anew.

use sha2::{Digest, Sha256};

use crate::hex;

const NAME: &str = "\"sum\"";

/// The reason why a text is not the written one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// There is no checksum at the end.
    #[error("it has no checksum (`sum`)")]
    Missing,
    /// The checksum belongs to another text.
    #[error("it was changed since it was written: its checksum (`sum`) is another")]
    Other,
}

/// The object with its sum; `json` is one object, compact or pretty.
pub fn seal(json: &str) -> String {
    let whole = json.trim_end();
    let body = whole.strip_suffix('}').unwrap_or(whole).trim_end();
    let sum = sum(body);
    if json.contains('\n') {
        format!("{body},\n  {NAME}: \"{sum}\"\n}}")
    } else {
        format!("{body},{NAME}:\"{sum}\"}}")
    }
}

/// Checks a text that was sealed.
pub fn check(text: &str) -> Result<(), SealError> {
    let at = text.rfind(NAME).ok_or(SealError::Missing)?;
    let (before, tail) = text.split_at(at);
    let body = before.trim_end().strip_suffix(',').ok_or(SealError::Missing)?;
    let tail: String = tail.chars().filter(|letter| !letter.is_whitespace()).collect();
    if tail == format!("{NAME}:\"{}\"}}", sum(body)) { Ok(()) } else { Err(SealError::Other) }
}

/// The SHA-256 of a text in hexadecimal digits.
pub fn sum(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_stays_json_and_is_known_again() {
        let value = serde_json::json!({ "a": 1, "b": { "sum": "no" }, "c": "\"sum\"" });
        for text in [value.to_string(), serde_json::to_string_pretty(&value).expect("JSON")] {
            let sealed = seal(&text);
            let read: serde_json::Value = serde_json::from_str(&sealed).expect("JSON");
            assert_eq!((check(&sealed), &read["b"]), (Ok(()), &value["b"]));
            assert_eq!(check(&(sealed.clone() + "\n")), Ok(()), "the end of a line");
            assert_ne!(check(&text), Ok(()));
        }
    }

    #[test]
    fn each_digit_counts() {
        let sealed = seal("{\"bytes\":1330000}");
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] ^= 1;
            let changed = String::from_utf8_lossy(&changed);
            assert!(check(&changed).is_err(), "{changed}");
        }
        assert_eq!(check("{\"bytes\":1330000}"), Err(SealError::Missing));
    }
}
