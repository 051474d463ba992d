//! The work of bringing interfaces up: makes the steps, waits for the confirmation, and undoes.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hopwise_host::bringup::{self, Config as Kept, Phase, Plan, Record, Undone};
use hopwise_host::{Clock, wait_for};
use hopwise_lab::located::Document;
use rustix::event::{PollFd, PollFlags};

use super::config::{self, Config};
use super::told::Event;
use crate::daemon::control::Bound;
use crate::failure::Failure;

/// The words of a client, and the time that it has for them.
pub(super) const CONFIRM: &str = "confirm";
pub(super) const REVERT: &str = "revert";
const CLIENT_WITHIN: Duration = Duration::from_secs(2);
const LONGEST_LINE: u64 = 64;

/// The file of this network namespace.
pub(super) fn record_in(folder: &Path) -> Result<PathBuf, Failure> {
    bringup::record_in(folder).map_err(|error| Failure::failed("name the file of old states", error))
}

/// The file, with its lock.
pub(super) fn open(path: &Path) -> Result<Record, Failure> {
    Record::open(path).map_err(|error| {
        let problem = if error.kind() == std::io::ErrorKind::ResourceBusy {
            "another `hopwise mesh up` is at work or waits: `hopwise mesh confirm`, or `hopwise mesh down`"
                .to_owned()
        } else {
            format!("{}: {error}", path.display())
        };
        Failure::failed("open the file of old states", problem)
    })
}

/// The socket on which the confirmation comes.
pub(super) fn socket_beside(record: &Path) -> PathBuf {
    let mut name = record.as_os_str().to_owned();
    name.push(".sock");
    PathBuf::from(name)
}

/// One machine on its way up.
pub(super) struct Work<'a> {
    record: Record,
    tell: &'a mut dyn FnMut(Event),
}

impl<'a> Work<'a> {
    pub(super) fn begin(folder: &Path, tell: &'a mut dyn FnMut(Event)) -> Result<Work<'a>, Failure> {
        Ok(Work { record: open(&record_in(folder)?)?, tell })
    }

    /// Makes all steps. Without a time for the confirmation they stay. It ends with the last event.
    pub(super) fn run(
        mut self,
        kept: Kept,
        config: &Config,
        within: Option<Duration>,
    ) -> Result<(), Failure> {
        let earlier = match self.ready(&kept, config)? {
            Ready::AsWanted => {
                (self.tell)(Event::Done { changed: false });
                return Ok(());
            }
            Ready::Free(earlier) => earlier,
        };
        let begun = self.record.begin(kept, earlier.clone());
        begun.map_err(|error| Failure::failed("write the file of old states", error))?;
        if let Err((doing, problem)) = self.steps(config) {
            let problems = self.go_back(earlier);
            let problem = [vec![problem], problems].concat().join("; ");
            (self.tell)(Event::Failed { doing: doing.to_owned(), problem });
            return Ok(());
        }
        match within {
            None => {
                let confirmed = self.record.confirm();
                confirmed.map_err(|error| Failure::failed("write the file of old states", error))?;
                (self.tell)(Event::Done { changed: true });
                Ok(())
            }
            Some(within) => self.wait(earlier, within),
        }
    }

    /// Undoes what is there from before, unless it is as wanted.
    fn ready(&mut self, kept: &Kept, config: &Config) -> Result<Ready, Failure> {
        match self.record.phase() {
            Phase::Down => Ok(Ready::Free(None)),
            Phase::Unconfirmed => {
                (self.tell)(Event::Note("undoing what an interrupted `hopwise mesh up` left".to_owned()));
                let earlier = self.record.earlier().cloned();
                self.undo_or_fail()?;
                Ok(Ready::Free(earlier))
            }
            Phase::Confirmed => {
                let is_same = self.record.config().is_some_and(|earlier| earlier.text == kept.text);
                if is_same && Plan::to_mend(&config.wanted).is_ok_and(|plan| plan.steps.is_empty()) {
                    return Ok(Ready::AsWanted);
                }
                let earlier = self.record.config().cloned();
                let what = if is_same { "the interfaces have changed since" } else { "another file is up" };
                (self.tell)(Event::Note(format!("{what}: undoing that first")));
                self.undo_or_fail()?;
                Ok(Ready::Free(earlier))
            }
        }
    }

    fn undo_or_fail(&mut self) -> Result<(), Failure> {
        let Undone { problems, .. } = self.record.undo();
        if !problems.is_empty() {
            return Err(not_undone(&self.record, &problems));
        }
        // The file went with the changes that were undone.
        self.record = open(self.record.path())?;
        Ok(())
    }

    fn steps(&mut self, config: &Config) -> Result<(), (&'static str, String)> {
        let plan = Plan::of(&config.wanted).map_err(|error| ("look at the interfaces", error.to_string()))?;
        for step in &plan.steps {
            (self.tell)(Event::Step(step.to_string()));
            self.record.make(step).map_err(|error| ("bring the interfaces up", error.to_string()))?;
        }
        Ok(())
    }

    /// Undoes all, and brings the earlier configuration up again. Returns the problems.
    fn go_back(&mut self, earlier: Option<Kept>) -> Vec<String> {
        let after = self.record.config().map(|config| config.name.clone());
        let mut problems = self.record.undo().problems;
        let Some(earlier) = earlier.filter(|_| problems.is_empty()) else { return problems };
        let read = Document::parse(&earlier.name, &earlier.text).and_then(|document| config::read(&document));
        let done = match read {
            Err(refusal) => Err(refusal.to_string()),
            // The record went with the changes that were undone.
            Ok(config) => open(self.record.path()).map_err(|error| error.to_string()).and_then(|record| {
                self.record = record;
                let begun = self.record.begin_again(earlier, after);
                begun.map_err(|error| error.to_string())?;
                self.steps(&config).map_err(|(_, problem)| problem)?;
                self.record.confirm().map_err(|error| error.to_string())
            }),
        };
        problems.extend(done.err().map(|problem| format!("bring up what was there before: {problem}")));
        problems
    }

    /// Waits for a client's word. Without one, all goes back.
    fn wait(mut self, earlier: Option<Kept>, within: Duration) -> Result<(), Failure> {
        let socket = match Bound::new(&socket_beside(self.record.path())) {
            Ok(socket) => socket,
            Err(error) => {
                let problems = self.go_back(earlier).join("; ");
                let problem = format!("{error}; {problems}");
                (self.tell)(Event::Failed { doing: "listen for the confirmation".to_owned(), problem });
                return Ok(());
            }
        };
        (self.tell)(Event::Waits { within_s: within.as_secs() });
        let clock = Clock::start();
        let until = clock.now() + within;
        loop {
            let left = until.since(clock.now());
            let mut fds = [PollFd::from_borrowed_fd(socket.listener.as_fd(), PollFlags::IN)];
            match wait_for(&mut fds, left) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Ok(ready) if ready > 0 => {}
                _ => {
                    self.go_back(earlier);
                    return Ok(());
                }
            }
            let Ok((client, _)) = socket.listener.accept() else { continue };
            match word(&client).as_deref() {
                Some(CONFIRM) => match self.record.confirm() {
                    Ok(()) => {
                        answer(client, &Answer::default());
                        return Ok(());
                    }
                    Err(error) => answer(client, &Answer { problems: vec![error.to_string()] }),
                },
                Some(REVERT) => {
                    // The person asked for the state without any mesh.
                    let problems = self.record.undo().problems;
                    answer(client, &Answer { problems });
                    return Ok(());
                }
                _ => {}
            }
        }
    }
}

enum Ready {
    AsWanted,
    /// No interface is up. The configuration that was confirmed before comes back if this one is not.
    Free(Option<Kept>),
}

/// The failure that names what is left, and the way out.
pub(super) fn not_undone(record: &Record, problems: &[String]) -> Failure {
    let file = record.path().display();
    let problem = format!(
        "{}; the rest is undone. `hopwise mesh down` tries it again, and without {file} it is forgotten",
        problems.join("; ")
    );
    Failure::failed("undo", problem)
}

/// The answer to a client.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Answer {
    pub(super) problems: Vec<String>,
}

fn word(client: &UnixStream) -> Option<String> {
    client.set_nonblocking(false).ok()?;
    client.set_read_timeout(Some(CLIENT_WITHIN)).ok()?;
    let mut line = String::new();
    BufReader::new(client.take(LONGEST_LINE)).read_line(&mut line).ok()?;
    Some(line.trim_end().to_owned())
}

fn answer(mut client: UnixStream, answer: &Answer) {
    let _ = client.set_write_timeout(Some(CLIENT_WITHIN));
    let line = serde_json::to_string(answer).unwrap_or_default();
    let _ = writeln!(client, "{line}");
}

/// Sends a word to the process that waits. `None` if none does.
pub(super) fn send(record: &Path, word: &str) -> Result<Option<Answer>, Failure> {
    let Ok(mut stream) = UnixStream::connect(socket_beside(record)) else { return Ok(None) };
    let failed = |error: std::io::Error| Failure::failed("speak with the process that waits", error);
    writeln!(stream, "{word}").map_err(failed)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).map_err(failed)?;
    let answer = serde_json::from_str(&line).map_err(|error| failed(std::io::Error::other(error)))?;
    Ok(Some(answer))
}
