//! The processes of a live run: programs on the nodes that have some, and routing daemons. They end with this, whatever
//! happens.

mod process;

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use hopwise_host::{Behind, Clock, Namespace, run_behind, wait_to_read};
use hopwise_lab::folder;
use hopwise_lab::live::part::{BEGIN, CLOCK, NodePart, NodeResults, PartMessage};
use rustix::fs::{MemfdFlags, memfd_create};

pub(super) use process::Does;
use process::{Process, log_of, ourselves};

use super::listening::{EARLY, ProcessMessage, ProcessPlace, listen};
use hopwise_daemon::failure::Failure;
use hopwise_node::fleet::report::ClockReport;
use hopwise_node::fleet::ssh::bound_answers;

/// The pause between two looks at the user's wish to end.
const LISTENS_FOR: Duration = Duration::from_millis(100);
/// The folder in which daemons keep their state. Each has one of its own, so that nothing of it outlives its process.
const STATE: &str = "/run/hopwise";
/// The messages there and back by which a clock is read; the fastest one counts.
const EXCHANGES: u32 = 8;

/// The processes of one run.
#[derive(Debug)]
pub(super) struct Children {
    all: Vec<Process>,
    /// The folder for results, which gets the log of a daemon that fails.
    out: PathBuf,
    say: Sender<ProcessMessage>,
    hear: Receiver<ProcessMessage>,
    /// The process on another host that fell silent.
    silent: Option<usize>,
}

/// A process on another host.
#[derive(Debug)]
pub(super) struct Far<'a> {
    /// The node's name.
    pub name: &'a str,
    /// The file that gets its capture.
    pub capture: Option<PathBuf>,
}

/// A host's clock, by messages there and back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchanged {
    pub(super) clock: ClockReport,
    /// Our time of day, in seconds since 1970.
    pub(super) at_s: f64,
}

impl Children {
    pub(super) fn new(out: &Path) -> Children {
        let (say, hear) = channel();
        Children { all: Vec::new(), out: out.to_owned(), say, hear, silent: None }
    }

    /// Starts the programs of a node inside its namespace, or on a host behind it.
    pub(super) fn start(
        &mut self,
        (namespace, behind): (&Namespace, Option<&Behind<'_>>),
        name: &str,
        part: &NodePart,
    ) -> Result<(), Failure> {
        let failed = |error: &dyn Display| {
            Failure::failed("start the programs of a node", format_args!("{name}: {error}"))
        };
        let spawn = || ourselves().arg(Does::Programs.name()).spawn();
        let started = match behind {
            Some(host) => run_behind(namespace, host, spawn),
            None => namespace.run(spawn),
        };
        let started = started.map_err(|error| failed(&error))?;
        let child = started.map_err(|error| failed(&error))?;
        self.add((name, Does::Programs), (child, None, ProcessPlace::Here), Some(part))
    }

    /// Starts the programs of a node on another host, by a command that reaches it.
    pub(super) fn start_far(
        &mut self,
        mut command: Command,
        far: Far<'_>,
        part: &NodePart,
    ) -> Result<(), Failure> {
        let name = far.name;
        let failed = |error: &dyn Display| {
            Failure::failed("start the programs of a host", format_args!("{name}: {error}"))
        };
        let (log, stderr) = log_in_memory().map_err(|error| failed(&error))?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        bound_answers(&mut command);
        let child = command.spawn().map_err(|error| failed(&error))?;
        let place = ProcessPlace::Far { capture: far.capture };
        self.add((name, Does::Programs), (child, Some(log), place), Some(part))
    }

    /// The number of the process on another host that fell silent, if one did.
    pub(super) fn silent(&self) -> Option<usize> {
        self.silent
    }

    /// Starts a daemon of a node inside its namespace. All that it writes goes with it. A part is its first line.
    pub(super) fn start_daemon(
        &mut self,
        does: Does,
        (namespace, name): (&Namespace, &str),
        (config, part): (&str, Option<&NodePart>),
    ) -> Result<(), Failure> {
        let failed = |error: &dyn Display| Failure::failed(does.doing(), format_args!("{name}: {error}"));
        // A run before, which failed, may have left one.
        let _ = folder::remove(&self.out, log_of(does, name));
        let (log, stderr) = log_in_memory().map_err(|error| failed(&error))?;
        let spawn = || {
            let file = Path::new(STATE).join("daemon.yaml");
            fs::write(&file, config)?;
            ourselves().arg(does.name()).arg(file).arg("--with-trial").stderr(stderr).spawn()
        };
        let started = namespace.run_with_own(Path::new(STATE), spawn).map_err(|error| failed(&error))?;
        let child = started.map_err(|error| failed(&error))?;
        self.add((name, does), (child, Some(log), ProcessPlace::Here), part)
    }

    /// Listens to a process, and tells it its part. From here on it ends with this.
    fn add(
        &mut self,
        (name, does): (&str, Does),
        (mut child, log, place): (Child, Option<File>, ProcessPlace),
        part: Option<&NodePart>,
    ) -> Result<(), Failure> {
        let failed = |error: &dyn Display| Failure::failed(does.doing(), format_args!("{name}: {error}"));
        let (nth, say, output) = (self.all.len(), self.say.clone(), child.stdout.take());
        let input = child.stdin.take();
        self.all.push(Process { name: name.to_owned(), does, is_far: place.is_far(), child, input, log });
        let output = output.ok_or_else(|| failed(&"it has no pipes"))?;
        let listens = thread::Builder::new().name("node".into());
        listens.spawn(move || listen(nth, output, &say, &place)).map_err(|error| failed(&error))?;
        let line = part.map(serde_json::to_string).transpose().map_err(|error| failed(&error))?;
        line.map_or(Ok(()), |line| self.tell(nth, &line))
    }

    fn tell(&mut self, nth: usize, line: &str) -> Result<(), Failure> {
        let Process { name, input, .. } = &mut self.all[nth];
        let Some(input) = input else { return Ok(()) };
        let told = writeln!(input, "{line}").and_then(|()| input.flush());
        let failure = |error: io::Error| Failure::failed("talk to a node", format_args!("{name}: {error}"));
        let failed = told.map_err(failure);
        if failed.is_err() && self.all[nth].is_far {
            self.silent = Some(nth);
        }
        failed
    }

    /// The clocks of all hosts, one host after the other.
    pub(super) fn clocks(&mut self, within: Duration, ends: &OwnedFd) -> Result<Vec<Exchanged>, Failure> {
        (0..self.all.len()).map(|nth| self.clock(nth, (within, ends))).collect()
    }

    fn clock(&mut self, nth: usize, (within, ends): (Duration, &OwnedFd)) -> Result<Exchanged, Failure> {
        let mut best: Option<Exchanged> = None;
        for _ in 0..EXCHANGES {
            let asked = Clock::wall().as_secs_f64();
            self.tell(nth, CLOCK)?;
            let told = self.collect_of((within, ends), &|of| of == nth, |says| match says {
                PartMessage::Clock { at_s } => Some(at_s),
                _ => None,
            })?;
            let at_s = Clock::wall().as_secs_f64();
            let clock = ClockReport::between(asked, told.first().copied().unwrap_or(asked), at_s);
            best = best
                .filter(|best| best.clock.within_ms <= clock.within_ms)
                .or(Some(Exchanged { clock, at_s }));
        }
        best.ok_or_else(|| self.failed(nth, "it does not tell its time"))
    }

    /// Lets all processes begin, daemons first.
    pub(super) fn begin(&mut self) -> Result<(), Failure> {
        (0..self.all.len()).try_for_each(|nth| self.tell(nth, BEGIN))
    }

    /// Waits until every process has opened its sockets.
    pub(super) fn wait_until_ready(&mut self, within: Duration, ends: &OwnedFd) -> Result<(), Failure> {
        let ready = |says| matches!(says, PartMessage::Ready).then_some(());
        self.collect_of((within, ends), &|_| true, ready).map(drop)
    }

    /// Waits for the results of all programs.
    pub(super) fn wait_for_results(
        &mut self,
        within: Duration,
        ends: &OwnedFd,
    ) -> Result<Vec<NodeResults>, Failure> {
        self.collect((within, ends), &[Does::Programs], |says| match says {
            PartMessage::Ended(ended) => Some(ended),
            _ => None,
        })
    }

    /// Ends the daemons of a kind, and waits for their counts.
    pub(super) fn end<T>(
        &mut self,
        limits: (Duration, &OwnedFd),
        which: Does,
        wanted: impl Fn(PartMessage) -> Option<T>,
    ) -> Result<Vec<T>, Failure> {
        let daemons = self.all.iter_mut().filter(|process| process.does == which);
        daemons.for_each(|daemon| daemon.input = None);
        self.collect(limits, &[which], wanted)
    }

    /// One message of that kind from each process of these kinds.
    fn collect<T>(
        &mut self,
        limits: (Duration, &OwnedFd),
        of: &[Does],
        wanted: impl Fn(PartMessage) -> Option<T>,
    ) -> Result<Vec<T>, Failure> {
        let asked: Vec<bool> = self.all.iter().map(|process| of.contains(&process.does)).collect();
        self.collect_of(limits, &|nth| asked[nth], wanted)
    }

    /// One message of the wanted kind from each process that is asked, and no message from the remaining processes.
    #[expect(clippy::disallowed_methods, reason = "the deadline of processes is in real time")]
    fn collect_of<T>(
        &mut self,
        (within, ends): (Duration, &OwnedFd),
        asked: &dyn Fn(usize) -> bool,
        wanted: impl Fn(PartMessage) -> Option<T>,
    ) -> Result<Vec<T>, Failure> {
        let deadline = Instant::now() + within;
        let mut all: Vec<Option<T>> = self.all.iter().map(|_| None).collect();
        while let Some(missing) = (0..all.len()).find(|nth| asked(*nth) && all[*nth].is_none()) {
            let left = deadline.saturating_duration_since(Instant::now());
            let heard = self.hear.recv_timeout(left.min(LISTENS_FOR));
            // A terminal's signal reaches the processes, too: they end because the user wants no more.
            if wait_to_read(ends.as_fd(), Duration::ZERO).is_ok() {
                return Err(Failure::failed("run in real time", "interrupted"));
            }
            match heard {
                Ok((nth, Ok(PartMessage::Refused { problem }))) => return Err(self.failed(nth, &problem)),
                Ok((nth, Ok(says))) => match wanted(says).filter(|_| asked(nth)) {
                    Some(wanted) => all[nth] = Some(wanted),
                    None => return Err(self.failed(nth, "it spoke or ended out of turn")),
                },
                Ok((nth, Err(problem))) => return Err(self.ended(nth, problem)),
                Err(RecvTimeoutError::Timeout) if left > LISTENS_FOR => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    self.note_silent(missing);
                    return Err(self.failed(missing, &format!("nothing came from it within {within:?}")));
                }
            }
        }
        Ok(all.into_iter().flatten().collect())
    }

    fn note_silent(&mut self, nth: usize) {
        if self.all[nth].is_far {
            self.silent = Some(nth);
        }
    }

    /// The failure of a process whose output has ended.
    fn ended(&mut self, nth: usize, problem: String) -> Failure {
        self.note_silent(nth);
        let process = &mut self.all[nth];
        if problem != EARLY {
            return self.failed(nth, &problem);
        }
        // One whose output has ended is about to end, with a status that a signal no longer changes.
        let _ = process.child.kill();
        let cause =
            process.child.wait().map_or_else(|error| error.to_string(), |status| process.cause(status));
        self.failed(nth, &format!("{EARLY} ({cause})"))
    }

    fn failed(&self, nth: usize, problem: &str) -> Failure {
        let process = &self.all[nth];
        let Process { name, does, .. } = process;
        let kept = match process.keep_log(&self.out) {
            Ok(Some(file)) => format!("; its log is {}", file.display()),
            Ok(None) => String::new(),
            Err(error) => format!("; its log cannot be kept: {error}"),
        };
        Failure::failed(does.doing(), format_args!("{name}: {problem}{kept}"))
    }

    /// Copies the logs of all daemons into the folder of captures.
    pub(super) fn keep_logs(&self, folder: &Path) -> Result<(), Failure> {
        let kept = self.all.iter().try_for_each(|process| process.keep_log(folder).map(drop));
        kept.map_err(Failure::during("keep the logs of routing"))
    }
}

/// A file in memory, and a second handle of it.
fn log_in_memory() -> io::Result<(File, File)> {
    let log = File::from(memfd_create("log", MemfdFlags::CLOEXEC)?);
    log.try_clone().map(|stderr| (log, stderr))
}

impl Drop for Children {
    fn drop(&mut self) {
        for Process { child, .. } in &mut self.all {
            // One that has ended by itself cannot be killed, and is only waited for.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
