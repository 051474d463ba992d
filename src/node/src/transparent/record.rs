//! A file beside the control socket that lists the carried connections, for the start after a kill.
//!
//! Each connection has a line of fixed length, which is written when it begins and blanked when it ends. A thread of
//! its own writes, since a disk may stand still: connections never wait for it. A kill loses the lines that were not
//! written yet.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use hopwise_host::own_file::open_own;
use parking_lot::{Condvar, Mutex};

use super::decisions::Ends;
use hopwise_daemon::own_files;

/// Two addresses of IPv6 with their ports, and the words between them.
const LINE: usize = 104;
/// The connections that the log names.
const MOST_NAMED: usize = 3;
/// Lines of a whole file: more than the seats of any node.
const LONGEST: u64 = 2 * 65_536 * LINE as u64;

#[derive(Clone, Debug)]
pub(super) struct Record(Option<Arc<Kept>>);

#[derive(Debug)]
struct Kept {
    path: PathBuf,
    /// Until the first connection. The writing thread begins with it, and has no privilege that the daemon has dropped.
    file: Mutex<Option<File>>,
    lines: Arc<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    now: Mutex<Now>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Now {
    /// By line; a blank one is free.
    carried: Vec<Option<Ends>>,
    unwritten: BTreeSet<usize>,
    is_over: bool,
}

/// The line of a connection, blanked when this is dropped.
#[derive(Debug)]
pub(super) struct Line(Option<(Arc<Kept>, usize)>);

impl Record {
    /// Begins the file, and logs the connections that one before it has cut.
    pub(super) fn begin(control: Option<&Path>) -> Record {
        let Some(control) = control else { return Record(None) };
        let mut name = control.as_os_str().to_owned();
        name.push(".carried");
        let path = PathBuf::from(name);
        tell_of(&read(&path).unwrap_or_default());
        match own_files::write(&path, "") {
            Ok(file) => {
                let file = Mutex::new(Some(file));
                Record(Some(Arc::new(Kept { path, file, lines: Arc::default() })))
            }
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "the next start cannot say what a kill has cut");
                Record(None)
            }
        }
    }

    pub(super) fn add(&self, ends: Ends) -> Line {
        let Some(kept) = &self.0 else { return Line(None) };
        if let Some(file) = kept.file.lock().take() {
            kept.begin_to_write(file);
        }
        Line(Some((Arc::clone(kept), kept.lines.add(ends))))
    }
}

impl Kept {
    fn begin_to_write(&self, file: File) {
        let lines = Arc::clone(&self.lines);
        let write = move || {
            lines.write(|at, line| {
                // A full disk costs the next start's words alone.
                let _ = file.write_all_at(line, at);
            });
        };
        if let Err(error) = thread::Builder::new().name("carried".into()).spawn(write) {
            tracing::warn!(%error, "the next start cannot say what a kill has cut");
        }
    }
}

impl Drop for Kept {
    /// The file goes in an orderly end, if the daemon may still remove it. No end waits for a write.
    fn drop(&mut self) {
        self.lines.now.lock().is_over = true;
        self.lines.changed.notify_one();
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Lines {
    fn add(&self, ends: Ends) -> usize {
        let mut now = self.now.lock();
        let free = now.carried.iter().position(Option::is_none).unwrap_or_else(|| {
            now.carried.push(None);
            now.carried.len() - 1
        });
        now.carried[free] = Some(ends);
        self.is_changed(&mut now, free);
        free
    }

    fn blank(&self, nth: usize) {
        let mut now = self.now.lock();
        now.carried[nth] = None;
        self.is_changed(&mut now, nth);
    }

    fn is_changed(&self, now: &mut Now, nth: usize) {
        now.unwritten.insert(nth);
        self.changed.notify_one();
    }

    /// Writes changed lines until the end, each at its place in bytes.
    fn write(&self, mut write: impl FnMut(u64, &[u8])) {
        while let Some((nth, ends)) = self.next() {
            let text = ends.map_or_else(String::new, |(from, to)| format!("{from} to {to}"));
            let line = format!("{text:<width$}\n", width = LINE - 1);
            write(u64::try_from(nth * LINE).unwrap_or(u64::MAX), line.as_bytes());
        }
    }

    /// Waits for a line to write; `None` at the end.
    fn next(&self) -> Option<(usize, Option<Ends>)> {
        let mut now = self.now.lock();
        loop {
            if now.is_over {
                return None;
            }
            if let Some(nth) = now.unwritten.pop_first() {
                return Some((nth, now.carried[nth]));
            }
            self.changed.wait(&mut now);
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some((kept, nth)) = self.0.take() {
            kept.lines.blank(nth);
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

    fn ends(port: u16) -> Ends {
        let long = "[fd01:1111:2222:3333:4444:5555:6666:7777]";
        (format!("{long}:{port}").parse().expect("an address"), format!("{long}:65535").parse().expect("too"))
    }

    #[test]
    fn the_file_has_the_connections_that_are_carried_now() {
        let folder = std::env::temp_dir().join(format!("hopwise-carried-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let control = folder.join("a.sock");
        let path = folder.join("a.sock.carried");
        let record = Record::begin(Some(&control));
        let lines: Vec<_> = (1..=3).map(|port| record.add(ends(port))).collect();
        let await_listed = |ports: &[u16]| {
            let expected: Vec<_> =
                ports.iter().map(|port| format!("{} to {}", ends(*port).0, ends(*port).1)).collect();
            while read(&path).expect("it is ours") != expected {
                thread::yield_now();
            }
        };
        await_listed(&[1, 2, 3]);
        drop(lines.into_iter().nth(1));
        await_listed(&[]);
        let (_first, _second) = (record.add(ends(4)), record.add(ends(5)));
        await_listed(&[4, 5]);
        assert_eq!(std::fs::metadata(&path).expect("it is there").len(), 3 * LINE as u64);
        std::fs::remove_dir_all(folder).expect("it is there");
    }

    #[test]
    fn connections_come_and_go_while_the_disk_stands_still() {
        let lines = Arc::new(Lines::default());
        let (moves, stands) = std::sync::mpsc::channel();
        let (wrote, written) = std::sync::mpsc::channel();
        let writer = Arc::clone(&lines);
        let writing = thread::spawn(move || {
            writer.write(|at, line| {
                stands.recv().expect("the disk moves in the end");
                wrote.send((at, line[0])).expect("the test waits");
            });
        });
        assert_eq!(lines.add(ends(1)), 0);
        while !lines.now.lock().unwritten.is_empty() {
            thread::yield_now();
        }
        // The write of the first line stands still.
        assert_eq!((lines.add(ends(2)), lines.add(ends(3))), (1, 2));
        lines.blank(0);
        lines.blank(1);
        assert_eq!(lines.add(ends(4)), 0);
        (0..4).for_each(|_| moves.send(()).expect("it writes"));
        let line = |_| written.recv().expect("four lines are written");
        let place = |nth: usize| (nth * LINE) as u64;
        let all: Vec<_> = (0..4).map(line).collect();
        assert_eq!(all, [(0, b'['), (0, b'['), (place(1), b' '), (place(2), b'[')]);
        lines.now.lock().is_over = true;
        lines.changed.notify_one();
        writing.join().expect("it ends");
    }
}
