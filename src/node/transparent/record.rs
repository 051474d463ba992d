//! A file beside the control socket that lists the carried connections, for the start after a kill.
//!
//! Each connection has a line of fixed length, which is written when it begins and blanked when it ends.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hopwise_host::own_file::open_own;
use parking_lot::Mutex;

use super::decisions::Ends;
use crate::daemon::state;

/// Two addresses of IPv6 with their ports, and the words between them.
const LINE: usize = 104;
/// The connections that the log names.
const MOST_NAMED: usize = 3;
/// Lines of a whole file: more than the seats of any node.
const LONGEST: u64 = 2 * 65_536 * LINE as u64;

#[derive(Clone, Debug)]
pub(super) struct Record(Option<Arc<Lines>>);

#[derive(Debug)]
struct Lines {
    file: File,
    path: PathBuf,
    /// By line.
    taken: Mutex<Vec<bool>>,
}

/// The line of a connection, blanked when this is dropped.
#[derive(Debug)]
pub(super) struct Line(Option<(Arc<Lines>, usize)>);

impl Record {
    /// Begins the file, and logs the connections that one before it has cut.
    pub(super) fn begin(control: Option<&Path>) -> Record {
        let Some(control) = control else { return Record(None) };
        let mut name = control.as_os_str().to_owned();
        name.push(".carried");
        let path = PathBuf::from(name);
        tell_of(&read(&path).unwrap_or_default());
        match state::write(&path, "") {
            Ok(file) => Record(Some(Arc::new(Lines { file, path, taken: Mutex::default() }))),
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "the next start cannot say what a kill has cut");
                Record(None)
            }
        }
    }

    pub(super) fn add(&self, (from, to): Ends) -> Line {
        let Some(lines) = &self.0 else { return Line(None) };
        let mut taken = lines.taken.lock();
        let free = taken.iter().position(|taken| !taken).unwrap_or_else(|| {
            taken.push(false);
            taken.len() - 1
        });
        taken[free] = true;
        lines.write(free, &format!("{from} to {to}"));
        Line(Some((Arc::clone(lines), free)))
    }
}

impl Lines {
    fn write(&self, nth: usize, text: &str) {
        let line = format!("{text:<width$}\n", width = LINE - 1);
        let at = u64::try_from(nth * LINE).unwrap_or(u64::MAX);
        // A full disk costs the next start's words alone.
        let _ = self.file.write_all_at(line.as_bytes(), at);
    }
}

impl Drop for Lines {
    /// It goes in an orderly end, if the daemon may still remove it.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some((lines, nth)) = self.0.take() {
            let mut taken = lines.taken.lock();
            lines.write(nth, "");
            taken[nth] = false;
        }
    }
}

fn read(path: &Path) -> io::Result<Vec<String>> {
    let mut text = String::new();
    open_own(path, OpenOptions::new().read(true))?.take(LONGEST).read_to_string(&mut text)?;
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

fn tell_of(cut: &[String]) {
    if !cut.is_empty() {
        let named = cut[..cut.len().min(MOST_NAMED)].join(", ");
        let more = if cut.len() > MOST_NAMED { ", …" } else { "" };
        tracing::warn!(
            connections = cut.len(),
            "the node before this one did not end in order, and cut the connections that it carried: {named}{more}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_the_connections_that_are_carried_now() {
        let folder = std::env::temp_dir().join(format!("hopwise-carried-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let control = folder.join("a.sock");
        let path = folder.join("a.sock.carried");
        let ends = |port: u16| -> Ends {
            let long = "[fd01:1111:2222:3333:4444:5555:6666:7777]";
            (
                format!("{long}:{port}").parse().expect("an address"),
                format!("{long}:65535").parse().expect("too"),
            )
        };
        let record = Record::begin(Some(&control));
        let lines: Vec<_> = (1..=3).map(|port| record.add(ends(port))).collect();
        let listed = || read(&path).expect("it is ours");
        assert_eq!(listed().len(), 3);
        drop(lines.into_iter().nth(1));
        assert!(listed().is_empty());
        let (_first, _second) = (record.add(ends(4)), record.add(ends(5)));
        assert_eq!(listed(), [4, 5].map(|port| format!("{} to {}", ends(port).0, ends(port).1)));
        assert_eq!(std::fs::metadata(&path).expect("it is there").len(), 3 * LINE as u64);
        std::fs::remove_dir_all(folder).expect("it is there");
    }
}
