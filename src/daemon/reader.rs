//! Reads one file anew for a daemon whose user may not read it.
//!
//! A process of its own stays root, can open that file's folder and no other, and ends with the daemon. Each byte that
//! it receives is a request for the file.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use caps::Capability;
use clap::Args;
use hopwise_host::confine::Paths;
use hopwise_host::wait_to_read;
use hopwise_lab::named;
use serde::{Deserialize, Serialize};

use super::confine::{Confine, Needs, confine, folders_of};
use super::privileges::Privileges;
use crate::failure::Failure;

/// A larger file is none that a daemon reads.
const LARGEST: u64 = 16 << 20;
/// Time that the other process has.
const WITHIN: Duration = Duration::from_secs(3);
/// Looks at a process that should end, a second in all, and the pause between them.
const LOOKS: u32 = 100;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// The present content of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Found {
    pub(crate) text: String,
    /// The permissions of the file, and its user.
    pub(crate) mode: u32,
    pub(crate) owner: u32,
}

/// The reader of a file that is read again while a daemon runs.
#[derive(Debug)]
pub(crate) struct Reader {
    path: PathBuf,
    other: Option<Other>,
}

/// The process that may read it.
#[derive(Debug)]
struct Other {
    process: Child,
    asks: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// Requests whose answers have not been read: a late answer does not belong to the next request.
    unanswered: u32,
}

impl Reader {
    /// The reader is this process, or another if this one is about to leave root. The other one is confined alike.
    pub(crate) fn new(path: &Path, privileges: &Privileges, how: Confine) -> io::Result<Reader> {
        let other = privileges.leaves_root().then(|| Other::start(path, how)).transpose()?;
        Ok(Reader { path: path.to_owned(), other })
    }

    /// Folders that this process itself has to reach.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        if self.other.is_some() { Vec::new() } else { folders_of(&self.path) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn read(&mut self) -> io::Result<Found> {
        match &mut self.other {
            Some(other) => other.ask(),
            None => find(&self.path),
        }
    }
}

impl Other {
    fn start(path: &Path, how: Confine) -> io::Result<Other> {
        let mut process = Command::new("/proc/self/exe")
            .args(["reread", "--confine", &how.to_string(), "--"])
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Signals of a terminal to the daemon must not reach it.
            .process_group(0)
            .spawn()?;
        let (asks, answers) = (process.stdin.take(), process.stdout.take());
        let answers = BufReader::new(answers.ok_or(io::ErrorKind::BrokenPipe)?);
        Ok(Other { process, asks, answers, unanswered: 0 })
    }

    fn ask(&mut self) -> io::Result<Found> {
        let asks = self.asks.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        asks.write_all(b"?")?;
        self.unanswered += 1;
        let mut line = String::new();
        while self.unanswered > 0 {
            self.wait_for_answer()?;
            line.clear();
            if self.answers.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.unanswered -= 1;
        }
        let answer: Result<Found, String> = serde_json::from_str(&line).map_err(io::Error::other)?;
        answer.map_err(io::Error::other)
    }

    fn wait_for_answer(&self) -> io::Result<()> {
        // Bytes that were read ahead are there.
        if self.answers.buffer().is_empty() {
            wait_to_read(self.answers.get_ref().as_fd(), WITHIN)
        } else {
            Ok(())
        }
    }
}

impl Drop for Other {
    /// It ends when its input does, at once. One that was stopped, or that hangs on its file, must not keep the daemon:
    /// it ends later, by itself. A confined daemon can end no other process.
    fn drop(&mut self) {
        drop(self.asks.take());
        if !ends_soon(&mut self.process) {
            let process = self.process.id();
            tracing::warn!(
                process,
                "the program that reads the keys or rules anew does not end, and is left to itself"
            );
        }
    }
}

/// Returns whether a process ends within a second.
#[expect(clippy::disallowed_methods, reason = "the daemon is at its end, and drives nothing any more")]
fn ends_soon(process: &mut Child) -> bool {
    for _ in 0..LOOKS {
        if !matches!(process.try_wait(), Ok(None)) {
            return true;
        }
        thread::sleep(BETWEEN_LOOKS);
    }
    false
}

/// Reads the file in this process.
pub(crate) fn find(path: &Path) -> io::Result<Found> {
    let file = named::open_file(path)?;
    let facts = file.metadata()?;
    Ok(Found { text: named::bounded(file, LARGEST)?, mode: facts.mode(), owner: facts.uid() })
}

/// Answer with a file each time that standard input brings a byte
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    path: PathBuf,
    /// Confinement of the process: on, log or off
    #[arg(long)]
    confine: Confine,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::failed("read a file for a daemon", error);
    super::log::begin_for_helper();
    let privileges = Privileges::of_helper().map_err(|error| failed(&error))?;
    let needs = Needs {
        capabilities: vec![Capability::CAP_DAC_READ_SEARCH],
        paths: Paths { reads: folders_of(&arguments.path), ..Paths::default() },
        families: Vec::new(),
    };
    let _confined = confine(arguments.confine, &privileges, &needs)?;
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    while input.read(&mut [0; 1]).map_err(|error| failed(&error))? > 0 {
        let found = find(&arguments.path).map_err(|error| error.to_string());
        let line = serde_json::to_string(&found).map_err(|error| failed(&error))?;
        writeln!(output, "{line}").and_then(|()| output.flush()).map_err(|error| failed(&error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader whose process is this program.
    fn reader_of(program: &str) -> Other {
        let mut command = Command::new("sh");
        command.args(["-c", program]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("sh runs");
        let (asks, answers) = (process.stdin.take(), process.stdout.take().expect("it is piped"));
        Other { process, asks, answers: BufReader::new(answers), unanswered: 0 }
    }

    #[test]
    fn a_reader_that_does_not_end_is_left_to_itself() {
        // It would be waited for as long as the test runs, and longer.
        let other = reader_of("exec sleep 86400");
        let id = other.process.id();
        drop(other);
        let status = std::fs::read_to_string(format!("/proc/{id}/stat")).expect("it still runs");
        assert!(status.contains("sleep"), "{status}");
        let ended = Command::new("kill").arg(id.to_string()).status().expect("kill runs");
        assert!(ended.success());
        let mut other = reader_of("cat");
        drop(other.asks.take());
        assert!(ends_soon(&mut other.process));
    }
}
