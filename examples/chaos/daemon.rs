//! A daemon of Hopwise: started, signalled, killed and inspected.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Resource, Signal, getrlimit, kill_process};

use crate::inside::within;
use crate::place::Namespace;
use crate::{Run, WAIT};

/// The command of a daemon. Not every daemon takes every signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Air,
    Route,
    Node,
    Proxy,
    Thin,
}

#[derive(Debug)]
pub(crate) struct Daemon {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) place: Option<Namespace>,
    /// The words after `hopwise`.
    words: Vec<String>,
    log: PathBuf,
    /// Its clock's distance from the machine's, as libfaketime reads it.
    offset: PathBuf,
    /// Words for `ip` in its namespace once it is ready.
    after: Vec<String>,
    child: Option<Child>,
    /// Its descriptors when it was ready for the first time.
    descriptors: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Started {
    Ready,
    /// The daemon ended and was not ready.
    Ended(ExitStatus),
    Silent,
}

/// The memory and descriptors of a daemon, and its user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Takes {
    pub(crate) rss_kb: u64,
    pub(crate) descriptors: usize,
    pub(crate) user: u32,
    pub(crate) group: u32,
}

impl Daemon {
    pub(crate) fn new(
        kind: Kind,
        name: &str,
        place: Option<Namespace>,
        words: &[&str],
        folder: &Path,
    ) -> Daemon {
        let plain = name.replace('/', "-");
        Daemon {
            name: name.to_owned(),
            kind,
            place,
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            log: folder.join(format!("{plain}.log")),
            offset: folder.join(format!("{plain}.clock")),
            after: Vec::new(),
            child: None,
            descriptors: None,
        }
    }

    /// The same daemon, with words for `ip` once it is ready.
    pub(crate) fn then(mut self, words: &str) -> Daemon {
        self.after.push(words.to_owned());
        self
    }

    fn command(&self, run: &Run) -> Command {
        let hopwise = run.hopwise.to_string_lossy();
        let words: Vec<&str> =
            std::iter::once(&*hopwise).chain(self.words.iter().map(String::as_str)).collect();
        let Some(place) = &self.place else {
            let mut command = Command::new(words[0]);
            command.args(&words[1..]);
            return command;
        };
        let mut command = place.command(&words);
        if let Some(library) = &run.faketime {
            command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", &self.offset);
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("FAKETIME_CACHE_DURATION", "1");
            command.env("FAKETIME_DISABLE_SHM", "1");
        }
        command
    }

    /// Starts it and waits until it is ready, or has ended.
    pub(crate) fn start(&mut self, run: &Run) -> Result<Started, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.name);
        if !self.offset.exists() {
            fs::write(&self.offset, "+0").map_err(failed)?;
        }
        let mut log = OpenOptions::new().create(true).append(true).open(&self.log).map_err(failed)?;
        writeln!(log, "--- start").map_err(failed)?;
        let from = log.metadata().map_err(failed)?.len();
        let mut command = self.command(run);
        // The daemon gets a group of its own, since a terminal's SIGINT is for this program.
        command.process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = self.child.insert(command.spawn().map_err(failed)?);
        let (mut ended, log) = (None, &self.log);
        let is_ready =
            || fs::read(log).is_ok_and(|text| says_ready(&text[(from as usize).min(text.len())..]));
        let answered = within(WAIT, || {
            ended = child.try_wait().ok().flatten();
            ended.is_some() || is_ready()
        });
        if let Some(status) = ended {
            self.child = None;
            return Ok(Started::Ended(status));
        }
        if !answered {
            return Ok(Started::Silent);
        }
        if let Some(place) = &self.place {
            for words in &self.after {
                let words: Vec<_> = std::iter::once("ip").chain(words.split(' ')).collect();
                let _ = place.output(&words);
            }
        }
        self.descriptors = self.descriptors.or(self.takes().map(|takes| takes.descriptors));
        Ok(Started::Ready)
    }

    pub(crate) fn is_up(&self) -> bool {
        self.child.is_some()
    }

    pub(crate) fn tell(&self, signal: Signal) {
        if let Some(child) = &self.child {
            let _ = kill_process(Pid::from_child(child), signal);
        }
    }

    /// Lets it open no further descriptor, or as many as this program may. Returns false if it could not be told.
    pub(crate) fn limit_descriptors(&self, is_at_limit: bool) -> bool {
        let Some((child, takes)) = self.child.as_ref().zip(self.takes()) else { return true };
        let most =
            if is_at_limit { Some(takes.descriptors as u64) } else { getrlimit(Resource::Nofile).current };
        let most = most.map_or("unlimited".to_owned(), |most| most.to_string());
        let mut prlimit = Command::new("prlimit");
        prlimit.args([format!("--pid={}", child.id()), format!("--nofile={most}:")]);
        // The user of a process may limit it, and root may not everywhere.
        prlimit.uid(takes.user).gid(takes.group);
        prlimit.output().is_ok_and(|done| done.status.success())
    }

    pub(crate) fn kill(&mut self) {
        self.tell(Signal::KILL);
        if let Some(mut child) = self.child.take() {
            let _ = child.wait();
        }
    }

    /// Lets it end. Returns its status, or `None` if it does not end.
    pub(crate) fn end(&mut self) -> Option<ExitStatus> {
        self.tell(Signal::CONT);
        self.tell(Signal::TERM);
        let mut child = self.child.take()?;
        let mut status = None;
        within(WAIT, || {
            status = child.try_wait().ok().flatten();
            status.is_some()
        });
        if status.is_none() {
            let _ = child.kill();
            let _ = child.wait();
        }
        status
    }

    /// The status of one that has ended by itself.
    pub(crate) fn has_died(&mut self) -> Option<ExitStatus> {
        let status = self.child.as_mut()?.try_wait().ok().flatten()?;
        self.child = None;
        Some(status)
    }

    /// Sets its clock this many seconds off the machine's.
    pub(crate) fn set_clock(&self, seconds: i64) {
        // Renamed into place, since it is read at any time.
        let new = self.offset.with_extension("new");
        if fs::write(&new, format!("{seconds:+}")).is_ok() {
            let _ = fs::rename(&new, &self.offset);
        }
    }

    pub(crate) fn takes(&self) -> Option<Takes> {
        let id = self.child.as_ref()?.id();
        let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let rss_kb = rss.trim().trim_end_matches("kB").trim().parse().ok()?;
        let descriptors = fs::read_dir(format!("/proc/{id}/fd")).ok()?.count();
        let number = |of: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(of))?;
            line.split_whitespace().next()?.parse().ok()
        };
        Some(Takes { rss_kb, descriptors, user: number("Uid:")?, group: number("Gid:")? })
    }

    /// Its descriptors when it was ready for the first time.
    pub(crate) fn first_descriptors(&self) -> Option<usize> {
        self.descriptors
    }

    pub(crate) fn log(&self) -> String {
        fs::read(&self.log).map_or(String::new(), |text| String::from_utf8_lossy(&text).into_owned())
    }

    /// The end of its log, for a report.
    pub(crate) fn last_words(&self) -> String {
        let log = self.log();
        let lines: Vec<_> = log.lines().rev().take(8).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n    ")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
    }
}

fn says_ready(text: &[u8]) -> bool {
    text.windows(5).any(|word| word == b"ready")
}
