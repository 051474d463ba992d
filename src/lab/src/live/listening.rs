//! The messages of a process of a live run, and the files that it hands over between them.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::ChildStdout;
use std::sync::mpsc::Sender;

use hopwise_host::own_file::begin_own;
use hopwise_lab::live::part::PartMessage;

/// The problem of a process whose output has ended too soon.
pub(super) const EARLY: &str = "it has ended early";

/// No message is as long. Results of all flows of a node are one.
const LONGEST_LINE: u64 = 64 << 20;

/// A message of a process, or the end of its output.
pub(super) type ProcessMessage = (usize, Result<PartMessage, String>);

/// The place of a process.
#[derive(Clone, Debug)]
pub(super) enum ProcessPlace {
    Here,
    /// On another host, with the file that gets its capture.
    Far {
        capture: Option<PathBuf>,
    },
}

impl ProcessPlace {
    pub(super) fn is_far(&self) -> bool {
        matches!(self, ProcessPlace::Far { .. })
    }
}

/// Hands on the messages of a process until its last one.
pub(super) fn listen(nth: usize, output: ChildStdout, say: &Sender<ProcessMessage>, place: &ProcessPlace) {
    let mut output = BufReader::new(output);
    loop {
        let says = match next_line(&mut output) {
            Ok(line) if line.is_empty() => break,
            Ok(line) => serde_json::from_str(&line).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let says = match (says, place) {
            (Ok(PartMessage::File { bytes }), ProcessPlace::Far { capture: Some(path) }) => {
                match take_file(&mut output, bytes, path) {
                    Ok(()) => continue,
                    Err(error) => Err(format!("{}: {error}", path.display())),
                }
            }
            (says, _) => says,
        };
        // A process on another host tells its time after its results.
        let is_last = match &says {
            Ok(says) => {
                matches!(
                    says,
                    PartMessage::Ended(_)
                        | PartMessage::Routed(_)
                        | PartMessage::Carried(_)
                        | PartMessage::Proxied(_)
                ) && !place.is_far()
            }
            Err(_) => true,
        };
        if say.send((nth, says)).is_err() || is_last {
            return;
        }
    }
    let _ = say.send((nth, Err(EARLY.to_owned())));
}

/// The next line, or what comes before the end.
fn next_line(output: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    output.take(LONGEST_LINE).read_line(&mut line)?;
    if line.len() as u64 == LONGEST_LINE && !line.ends_with('\n') {
        let problem = format!("a line is too long, expected less than {} MiB", LONGEST_LINE >> 20);
        return Err(io::Error::other(problem));
    }
    Ok(line)
}

/// The most bytes that another host may add to the folder of this file: half of what is free there.
fn room_for(path: &Path) -> io::Result<u64> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let disk = rustix::fs::statvfs(folder.unwrap_or(Path::new(".")))?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize) / 2)
}

/// Takes the bytes that follow a line. Only a whole file gets its name.
fn take_file(output: &mut impl Read, bytes: u64, path: &Path) -> io::Result<()> {
    let room = room_for(path)?;
    if bytes > room {
        let problem = format!("it has {bytes} bytes, expected at most half of what is free, {room}");
        return Err(io::Error::other(problem));
    }
    let part = path.with_extension("part");
    let copied = io::copy(&mut output.take(bytes), &mut begin_own(&part, 0o644)?)?;
    if copied < bytes { Err(io::ErrorKind::UnexpectedEof.into()) } else { fs::rename(&part, path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_an_end_and_a_file_without_room_are_refused() {
        let mut lines = &b"one\ntwo"[..];
        let mut next = || next_line(&mut lines).expect("it is short");
        assert_eq!([next(), next(), next()], ["one\n", "two", ""]);
        let endless = next_line(&mut BufReader::new(io::repeat(b' ')));
        let said = endless.expect_err("it has no end").to_string();
        assert_eq!(said, "a line is too long, expected less than 64 MiB");
        let path = std::env::temp_dir().join(format!("hopwise-room-{}.pcapng", std::process::id()));
        let said = take_file(&mut io::repeat(b' '), u64::MAX, &path).expect_err("no disk has so much");
        assert!(
            said.to_string().starts_with("it has 18446744073709551615 bytes, expected at most"),
            "{said}"
        );
        assert!(!path.with_extension("part").exists());
    }

    #[test]
    fn a_file_that_ends_early_gets_no_name() {
        let path = std::env::temp_dir().join(format!("hopwise-taken-{}.pcapng", std::process::id()));
        assert!(take_file(&mut &b"abc"[..], 4, &path).is_err());
        assert!(!path.exists());
        let mut output = &b"abcd rest"[..];
        take_file(&mut output, 4, &path).expect("it is whole");
        assert_eq!((fs::read(&path).expect("it is there"), output), (b"abcd".to_vec(), &b" rest"[..]));
        fs::remove_file(&path).expect("it is there");
        let _ = fs::remove_file(path.with_extension("part"));
    }
}
