//! The work of bringing interfaces up: makes the steps, waits for the confirmation, and undoes.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hopwise_host::bringup::{self, Config as RecordedConfig, Phase, Plan, Record, Undone};
use hopwise_host::{Clock, wait_for};
use hopwise_lab::located::Document;
use rustix::event::{PollFd, PollFlags};

use super::config::{self, BringupConfig};
use super::keep::BringupEvent;
use hopwise_daemon::control::BoundSocket;
use hopwise_daemon::failure::Failure;

/// The words of a client, and the time that it has for them.
pub(super) const CONFIRM: &str = "confirm";
pub(super) const REVERT: &str = "revert";
const CLIENT_WITHIN: Duration = Duration::from_secs(2);
const LONGEST_LINE: u64 = 64;

/// The file of this network namespace.
pub(super) fn record_in(folder: &Path) -> Result<PathBuf, Failure> {
    bringup::record_in(folder, bringup::OF_MESH).map_err(Failure::during("name the file of old states"))
}

/// The file, with its lock.
pub(super) fn open(path: &Path) -> Result<Record, Failure> {
    Record::open(path).map_err(|error| {
        let problem = if error.kind() == ErrorKind::ResourceBusy {
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
pub(super) struct Bringup<'a> {
    record: Record,
    tell: &'a mut dyn FnMut(BringupEvent),
}

impl<'a> Bringup<'a> {
    pub(super) fn begin(
        folder: &Path,
        tell: &'a mut dyn FnMut(BringupEvent),
    ) -> Result<Bringup<'a>, Failure> {
        Ok(Bringup { record: open(&record_in(folder)?)?, tell })
    }

    /// Makes all steps. Without a time for the confirmation they stay. It ends with the last event.
    pub(super) fn run(
        mut self,
        kept: RecordedConfig,
        config: &BringupConfig,
        within: Option<Duration>,
    ) -> Result<(), Failure> {
        let earlier = match self.ready(&kept, config)? {
            Ready::AsWanted => {
                self.ends(BringupEvent::Done { changed: false });
                return Ok(());
            }
            Ready::Free(earlier) => earlier,
        };
        let begun = self.record.begin(kept, earlier.clone(), None);
        begun.map_err(Failure::during("write the file of old states"))?;
        if let Err((doing, problem)) = self.steps(config) {
            let problems = self.go_back(earlier);
            let problem = [vec![problem], problems].concat().join("; ");
            self.ends(BringupEvent::Failed { doing: doing.to_owned(), problem });
            return Ok(());
        }
        match within {
            None => {
                self.record.confirm().map_err(Failure::during("write the file of old states"))?;
                self.ends(BringupEvent::Done { changed: true });
                Ok(())
            }
            Some(within) => self.wait(earlier, within),
        }
    }

    /// Tells the last event. The file is free before: whoever hears of the end may begin anew at once.
    fn ends(self, last: BringupEvent) {
        let Bringup { record, tell } = self;
        drop(record);
        tell(last);
    }

    /// Undoes what is there from before, unless it is as wanted.
    fn ready(&mut self, kept: &RecordedConfig, config: &BringupConfig) -> Result<Ready, Failure> {
        match self.record.phase() {
            Phase::Down => Ok(Ready::Free(None)),
            Phase::Unconfirmed => {
                (self.tell)(BringupEvent::Note(
                    "undoing what an interrupted `hopwise mesh up` left".to_owned(),
                ));
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
                (self.tell)(BringupEvent::Note(format!("{what}: undoing that first")));
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

    fn steps(&mut self, config: &BringupConfig) -> Result<(), (&'static str, String)> {
        let plan = Plan::of(&config.wanted).map_err(|error| ("look at the interfaces", error.to_string()))?;
        for step in &plan.steps {
            (self.tell)(BringupEvent::Step(step.to_string()));
            self.record.make(step).map_err(|error| ("bring the interfaces up", error.to_string()))?;
        }
        Ok(())
    }

    /// Undoes all, and brings the earlier configuration up again. Returns the problems.
    fn go_back(&mut self, earlier: Option<RecordedConfig>) -> Vec<String> {
        let after = self.record.config().map(|config| config.name.clone());
        let mut problems = self.record.undo().problems;
        let Some(earlier) = earlier.filter(|_| problems.is_empty()) else { return problems };
        let read = Document::parse(&earlier.name, &earlier.text).and_then(|document| config::read(&document));
        let done = match read {
            Err(refusal) => Err(refusal.to_string()),
            // The record went with the changes that were undone.
            Ok(config) => open(self.record.path()).map_err(|error| error.to_string()).and_then(|record| {
                self.record = record;
                self.record.begin(earlier, None, after).map_err(|error| error.to_string())?;
                self.steps(&config).map_err(|(_, problem)| problem)?;
                self.record.confirm().map_err(|error| error.to_string())
            }),
        };
        problems.extend(done.err().map(|problem| format!("bring up what was there before: {problem}")));
        problems
    }

    /// Waits for a client's word. Without one, all goes back.
    fn wait(mut self, earlier: Option<RecordedConfig>, within: Duration) -> Result<(), Failure> {
        let socket = match BoundSocket::new(&socket_beside(self.record.path())) {
            Ok(socket) => socket,
            Err(error) => {
                let problems = self.go_back(earlier).join("; ");
                let problem = format!("{error}; {problems}");
                self.ends(BringupEvent::Failed { doing: "listen for the confirmation".to_owned(), problem });
                return Ok(());
            }
        };
        (self.tell)(BringupEvent::Waits { within_s: within.as_secs() });
        let clock = Clock::start();
        let until = clock.now() + within;
        loop {
            let left = until.since(clock.now());
            let mut fds = [PollFd::from_borrowed_fd(socket.listener.as_fd(), PollFlags::IN)];
            match wait_for(&mut fds, left) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
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
                        drop((socket, self.record));
                        answer(client, &KeeperAnswer::default());
                        return Ok(());
                    }
                    Err(error) => answer(client, &KeeperAnswer { problems: vec![error.to_string()] }),
                },
                Some(REVERT) => {
                    // The person asked for the state without any mesh.
                    let problems = self.record.undo().problems;
                    drop((socket, self.record));
                    answer(client, &KeeperAnswer { problems });
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
    Free(Option<RecordedConfig>),
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
pub(super) struct KeeperAnswer {
    pub(super) problems: Vec<String>,
}

fn word(client: &UnixStream) -> Option<String> {
    client.set_nonblocking(false).ok()?;
    client.set_read_timeout(Some(CLIENT_WITHIN)).ok()?;
    let mut line = String::new();
    BufReader::new(client.take(LONGEST_LINE)).read_line(&mut line).ok()?;
    Some(line.trim_end().to_owned())
}

fn answer(mut client: UnixStream, answer: &KeeperAnswer) {
    let _ = client.set_write_timeout(Some(CLIENT_WITHIN));
    let line = serde_json::to_string(answer).unwrap_or_default();
    let _ = writeln!(client, "{line}");
}

/// Sends a word to the process that waits. False if none does; the failure of `doing` has its problems.
pub(super) fn send(record: &Path, word: &str, doing: &'static str) -> Result<bool, Failure> {
    let Ok(mut stream) = UnixStream::connect(socket_beside(record)) else { return Ok(false) };
    let failed = |error: Error| Failure::failed("speak with the process that waits", error);
    let mut line = String::new();
    let asked = writeln!(stream, "{word}").and_then(|()| BufReader::new(stream).read_line(&mut line));
    // Its socket goes when it is killed, before or after it has the word.
    let is_gone = |error: &Error| matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe);
    if asked.as_ref().is_err_and(is_gone) {
        return Ok(false);
    }
    asked.map_err(failed)?;
    let KeeperAnswer { problems } =
        serde_json::from_str(&line).map_err(|error| failed(Error::other(error)))?;
    if problems.is_empty() { Ok(true) } else { Err(Failure::failed(doing, problems.join("; "))) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_process_that_is_killed_before_it_reads_the_word_waits_no_longer() {
        let record = std::env::temp_dir().join(format!("hopwise-killed-{}.up", std::process::id()));
        let socket = socket_beside(&record);
        let listener = UnixListener::bind(&socket).expect("the folder can be written");
        let killed = std::thread::spawn(move || {
            let (client, _) = listener.accept().expect("a client");
            let mut ready = [PollFd::new(&client, PollFlags::IN)];
            wait_for(&mut ready, Duration::from_secs(60)).expect("the word comes");
        });
        assert!(!send(&record, CONFIRM, "confirm").expect("none waits"));
        killed.join().expect("it has ended");
        std::fs::remove_file(socket).expect("it is there");
    }

    /// Whoever hears that it failed begins anew at once.
    #[test]
    fn the_file_is_free_when_a_failure_is_told() {
        let folder = std::env::temp_dir().join(format!("hopwise-bringup-{}", std::process::id()));
        let path = record_in(&folder).expect("it has a name");
        let text = "clock: ignore\ninterfaces: [{ name: none0, mode: wired, mtu: 1400 }]\n".to_owned();
        let config = Document::parse("mesh.yaml", &text).and_then(|document| config::read(&document));
        let config = config.expect("it is sound");
        let mut told = Vec::new();
        let mut tell = |event: BringupEvent| told.push((event.is_last(), open(&path).is_ok()));
        let work = Bringup::begin(&folder, &mut tell).expect("the file is free");
        let kept = RecordedConfig { name: "mesh.yaml".to_owned(), text };
        work.run(kept, &config, Some(Duration::from_secs(60))).expect("it has told the failure");
        assert_eq!(told, [(true, true)]);
        std::fs::remove_dir_all(folder).expect("it is there");
    }
}
