//! A process of a live run, with its pipe and its log.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

use hopwise_lab::folder;

#[derive(Debug)]
pub(super) struct Process {
    /// The node's name.
    pub name: String,
    pub(super) does: Does,
    /// On another host, behind ssh.
    pub(super) is_far: bool,
    pub(super) child: Child,
    /// A daemon ends in order when this is closed.
    pub(super) input: Option<ChildStdin>,
    /// The standard error of a daemon or of ssh, in memory.
    pub(super) log: Option<File>,
}

hopwise_core::named! {
    /// What a process does. Its name is that of the subcommand that does it.
    pub(in crate::live) enum Does {
        Programs = "part",
        Routing = "route",
        Carrying = "node",
        Proxying = "proxy",
    }
}

impl Does {
    /// The folder of logs. A gateway may have a log of its routing as well.
    fn logs(self) -> &'static str {
        if self == Does::Proxying { "proxy" } else { "routing" }
    }

    /// The attempt, for a failure.
    pub(super) fn doing(self) -> &'static str {
        match self {
            Does::Programs => "run a node's programs",
            Does::Routing => "run a node's routing",
            Does::Carrying => "carry the TCP of a node's host",
            Does::Proxying => "run a gateway's proxy",
        }
    }
}

impl Process {
    /// A process that ends by itself says why in its last line.
    pub(super) fn cause(&self, status: ExitStatus) -> String {
        let said = self.log().unwrap_or_default();
        match said.lines().rfind(|line| !line.trim().is_empty()).filter(|_| status.code().is_some()) {
            Some(line) => format!("{status}: {}", line.trim()),
            None => status.to_string(),
        }
    }

    fn log(&self) -> io::Result<String> {
        let Some(log) = &self.log else { return Ok(String::new()) };
        let mut bytes = vec![0; usize::try_from(log.metadata()?.len()).unwrap_or(usize::MAX)];
        log.read_exact_at(&mut bytes, 0)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Writes the log of a daemon to a folder of the results.
    pub(super) fn keep_log(&self, results: &Path) -> io::Result<Option<PathBuf>> {
        if self.log.is_none() || self.is_far {
            return Ok(None);
        }
        let file = log_of(self.does, &self.name);
        folder::make(results, self.does.logs())?;
        folder::write(results, &file, self.log()?)?;
        Ok(Some(results.join(file)))
    }
}

/// The file of a daemon's log, below the folder of results.
pub(super) fn log_of(does: Does, name: &str) -> PathBuf {
    Path::new(does.logs()).join(format!("{name}.log"))
}

/// This program, also if its file has been replaced meanwhile. Its streams are ours.
pub(super) fn ourselves() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("hopwise").stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}
