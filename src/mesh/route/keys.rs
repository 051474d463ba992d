//! The file with the keys of a network: one line each, a number and 64 hexadecimal digits. The first one signs.

use std::path::PathBuf;
use std::time::Duration;

use hopwise_mesh::aodv::Key;
use hopwise_mesh::{Keys, KeysError};

use crate::daemon::reader::{Found, find};

/// A longer file is no key file.
const MOST_BYTES: usize = 4_096;
const ACCEPTED: &str = "one line for each key, such as `1 $(openssl rand -hex 32)`: a number from 0 to 255 and 64 \
                        hexadecimal digits";

#[derive(Clone, Debug)]
pub(super) struct KeyFile {
    pub(super) path: PathBuf,
    pub(super) clock_within: Option<Duration>,
    /// Users that the file may belong to. A confined daemon could not look them up.
    pub(super) users: Vec<u32>,
}

impl KeyFile {
    /// Reads the keys; an error is the problem and what would be accepted.
    pub(super) fn read(&self) -> Result<Keys, String> {
        self.take(&find(&self.path).map_err(|error| error.to_string())?)
    }

    /// The same for a file that was read.
    pub(super) fn take(&self, found: &Found) -> Result<Keys, String> {
        if found.mode & 0o077 != 0 {
            return Err(format!("others may read it; expected `chmod 600 {}`", self.path.display()));
        }
        // Its owner can always read it, and replace it.
        if !self.users.contains(&found.owner) {
            let owner = found.owner;
            return Err(format!(
                "it belongs to user {owner}: expected a file of root or of the daemon's user"
            ));
        }
        if found.text.len() > MOST_BYTES {
            return Err(format!("it has {} bytes; expected {ACCEPTED}", found.text.len()));
        }
        parse(&found.text, self.clock_within)
    }
}

fn parse(text: &str, clock_within: Option<Duration>) -> Result<Keys, String> {
    let lines = text.lines().zip(1..).map(|(line, nth)| (line.split('#').next().unwrap_or("").trim(), nth));
    let key = |(line, nth): (&str, u32)| key(line).ok_or_else(|| format!("line {nth}: expected {ACCEPTED}"));
    let keys = lines.filter(|(line, _)| !line.is_empty()).map(key).collect::<Result<Vec<_>, _>>()?;
    Keys::new(keys, clock_within).map_err(|error| match error {
        KeysError::NotOneOrTwo => format!("expected one key, or two while they change; {ACCEPTED}"),
        KeysError::SameId => "both keys have the same number; expected two numbers".to_owned(),
    })
}

fn key(line: &str) -> Option<(u8, Key)> {
    let (id, digits) = line.split_once(char::is_whitespace)?;
    let digits = digits.trim();
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&digits[at..at + 2], 16).ok()?;
    }
    Some((id.parse().ok()?, Key::new(bytes)))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::daemon::privileges::Privileges;

    fn line(id: u16, digit: &str) -> String {
        format!("{id} {}\n", digit.repeat(64))
    }

    #[test]
    fn one_key_or_two_are_read_and_comments_are_not() {
        let keys = |keys: &[(u8, u8)]| {
            let keys = keys.iter().map(|(id, byte)| (*id, Key::new([*byte; 32]))).collect();
            Keys::new(keys, None).map_err(|error| format!("{error:?}"))
        };
        assert_eq!(parse(&line(1, "a"), None), keys(&[(1, 0xaa)]));
        let two = format!("# since May\n\n{}  {} # until June", line(2, "B"), line(1, "a").trim());
        assert_eq!(parse(&two, None), keys(&[(2, 0xbb), (1, 0xaa)]));
    }

    #[test]
    fn what_is_no_file_of_keys_is_refused_with_what_would_be_accepted() {
        for (text, problem) in [
            (String::new(), "expected one key, or two"),
            (line(1, "a") + &line(2, "b") + &line(3, "c"), "expected one key, or two"),
            (line(1, "a") + &line(1, "b"), "both keys have the same number"),
            (line(256, "a"), "line 1: expected one line for each key"),
            (line(1, "g"), "line 1: expected"),
            ("\n1 abc\n".to_owned(), "line 2: expected"),
            (line(1, "aa"), "line 1: expected"),
        ] {
            let said = parse(&text, None).expect_err("no keys");
            assert!(said.contains(problem), "{said}");
        }
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let path = std::env::temp_dir().join(format!("hopwise-keys-{}", std::process::id()));
        fs::write(&path, line(1, "a")).expect("the temporary folder can be written");
        let read = |mode| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("our own file");
            KeyFile { path: path.clone(), clock_within: None, users: Privileges::trusted(None) }.read()
        };
        assert!(read(0o640).expect_err("the group may read it").contains("chmod 600"));
        assert!(read(0o600).is_ok());
        fs::remove_file(&path).expect("our own file");
    }

    /// The user that it was copied for can read it, although no other one can.
    #[test]
    fn a_file_of_another_user_is_refused() {
        let path = std::env::temp_dir().join(format!("hopwise-keys-of-another-{}", std::process::id()));
        fs::write(&path, line(1, "a")).expect("the temporary folder can be written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("our own file");
        let found = find(&path).expect("our own file");
        let file = KeyFile { path: path.clone(), clock_within: None, users: Privileges::trusted(None) };
        for (owner, is_taken) in [(found.owner, true), (0, true), (1234, false)] {
            let taken = file.take(&Found { owner, ..found.clone() });
            assert_eq!(taken.is_ok(), is_taken, "{owner}: {taken:?}");
        }
        fs::remove_file(&path).expect("our own file");
    }
}
