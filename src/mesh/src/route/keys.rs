//! The file with the keys of a network: one line each, a number and 64 hexadecimal digits. The first one signs.

use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use hopwise_lab::named;
use hopwise_mesh::aodv::Key;
use hopwise_mesh::{Keys, KeysError};

/// A longer file is no key file.
const MOST_BYTES: u64 = 4_096;
const ACCEPTED: &str = "one line for each key, such as `1 $(openssl rand -hex 32)`: a number from 0 to 255 and 64 \
                        hexadecimal digits";

#[derive(Clone, Debug)]
pub(super) struct KeyFile {
    pub(super) path: PathBuf,
    pub(super) clock_within: Option<Duration>,
    /// The daemon's user, who reads the file again on SIGHUP and thus has to own it. A confined daemon could not look
    /// the user up.
    pub(super) user: u32,
}

/// The text of the file, and the facts that say whether the text is secret.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub(super) text: String,
    /// The permissions of the file.
    pub(super) mode: u32,
    pub(super) owner: u32,
}

impl KeyFile {
    /// Reads the keys; an error is the problem and what would be accepted.
    pub(super) fn read(&self) -> Result<Keys, String> {
        self.take(&self.content().map_err(|error| error.to_string())?)
    }

    fn content(&self) -> io::Result<Content> {
        let file = named::open_file(&self.path)?;
        let facts = file.metadata()?;
        // A byte more shows that the file is too long.
        let text = io::read_to_string(file.take(MOST_BYTES + 1))?;
        Ok(Content { text, mode: facts.mode(), owner: facts.uid() })
    }

    /// Checks and reads the content of the file.
    pub(super) fn take(&self, content: &Content) -> Result<Keys, String> {
        if content.mode & 0o077 != 0 {
            return Err(format!("others may read it; expected `chmod 600 {}`", self.path.display()));
        }
        if content.owner != self.user {
            let (owner, user, path) = (content.owner, self.user, self.path.display());
            return Err(format!(
                "it belongs to user {owner}, and the daemon runs as user {user}, who reads it again on SIGHUP; \
                 expected `chown {user} {path}`"
            ));
        }
        if content.text.len() as u64 > MOST_BYTES {
            return Err(format!("it has more than {MOST_BYTES} bytes; expected {ACCEPTED}"));
        }
        parse(&content.text, self.clock_within)
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
            let user = fs::metadata(&path).expect("it is there").uid();
            KeyFile { path: path.clone(), clock_within: None, user }.read()
        };
        assert!(read(0o640).expect_err("the group may read it").contains("chmod 600"));
        assert!(read(0o600).is_ok());
        fs::remove_file(&path).expect("our own file");
    }

    /// A daemon that leaves root could not read a file of root's again.
    #[test]
    fn a_file_of_another_user_is_refused_with_the_command_that_gives_it() {
        let file = KeyFile { path: "keys".into(), clock_within: None, user: 60_706 };
        let content = |owner| Content { text: line(1, "a"), mode: 0o600, owner };
        assert!(file.take(&content(60_706)).is_ok());
        for other in [0, 1234] {
            let said = file.take(&content(other)).expect_err("the daemon's user may not read it");
            assert!(said.contains("`chown 60706 keys`"), "{said}");
        }
    }
}
