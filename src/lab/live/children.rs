//! The processes of a live run, one on each node that has programs. They end with this, whatever happens.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use hopwise_host::{Namespace, wait_to_read};
use hopwise_lab::live::part::{Ended, Part, Says};

use crate::failure::Failure;

/// The pause between two looks at the user's wish to end.
const LISTENS_FOR: Duration = Duration::from_millis(100);

/// A message of a process, or the end of its output.
type Heard = (usize, Result<Says, String>);

#[derive(Debug)]
pub(super) struct Children {
    all: Vec<Process>,
    say: Sender<Heard>,
    hear: Receiver<Heard>,
}

#[derive(Debug)]
struct Process {
    /// The node's name.
    name: String,
    child: Child,
    input: ChildStdin,
}

impl Children {
    pub(super) fn new() -> Children {
        let (say, hear) = channel();
        Children { all: Vec::new(), say, hear }
    }

    /// Starts the process of a node inside its namespace.
    pub(super) fn start(&mut self, namespace: &Namespace, name: &str, part: &Part) -> Result<(), Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::failed("start the programs of a node", format_args!("{name}: {error}"))
        };
        let program = std::env::current_exe().map_err(|error| failed(&error))?;
        let spawn = || Command::new(program).arg("part").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let started = namespace.run(spawn).map_err(|error| failed(&error))?;
        let mut child = started.map_err(|error| failed(&error))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err(failed(&"it has no pipes"));
        };
        let nth = self.all.len();
        self.all.push(Process { name: name.to_owned(), child, input });
        let say = self.say.clone();
        let reader = thread::Builder::new().name("node".into());
        reader.spawn(move || listen(nth, output, &say)).map_err(|error| failed(&error))?;
        let line = serde_json::to_string(part).map_err(|error| failed(&error))?;
        self.tell(nth, &line)
    }

    fn tell(&mut self, nth: usize, line: &str) -> Result<(), Failure> {
        let Process { name, input, .. } = &mut self.all[nth];
        let told = writeln!(input, "{line}").and_then(|()| input.flush());
        told.map_err(|error| Failure::failed("talk to a node", format_args!("{name}: {error}")))
    }

    pub(super) fn tell_all(&mut self, line: &str) -> Result<(), Failure> {
        (0..self.all.len()).try_for_each(|nth| self.tell(nth, line))
    }

    /// Waits until every process has opened its sockets.
    pub(super) fn wait_until_ready(&self, within: Duration, ends: &OwnedFd) -> Result<(), Failure> {
        self.collect((within, ends), |says| matches!(says, Says::Ready).then_some(())).map(drop)
    }

    /// Waits for the results of all processes.
    pub(super) fn wait_for_results(&self, within: Duration, ends: &OwnedFd) -> Result<Vec<Ended>, Failure> {
        self.collect((within, ends), |says| match says {
            Says::Ended(ended) => Some(ended),
            _ => None,
        })
    }

    /// One message of that kind from each process.
    #[expect(clippy::disallowed_methods, reason = "the deadline of processes is in real time")]
    fn collect<T>(
        &self,
        (within, ends): (Duration, &OwnedFd),
        wanted: impl Fn(Says) -> Option<T>,
    ) -> Result<Vec<T>, Failure> {
        let deadline = Instant::now() + within;
        let mut all: Vec<Option<T>> = self.all.iter().map(|_| None).collect();
        while let Some(missing) = all.iter().position(Option::is_none) {
            let failed = |nth: usize, problem: &str| {
                Failure::failed("run a node's programs", format_args!("{}: {problem}", self.all[nth].name))
            };
            let left = deadline.saturating_duration_since(Instant::now());
            match self.hear.recv_timeout(left.min(LISTENS_FOR)) {
                Ok((nth, Ok(Says::Refused { problem }))) => return Err(failed(nth, &problem)),
                Ok((nth, Ok(says))) => match wanted(says) {
                    Some(wanted) => all[nth] = Some(wanted),
                    None => return Err(failed(nth, "it spoke out of turn")),
                },
                Ok((nth, Err(problem))) => return Err(failed(nth, &problem)),
                Err(_) if wait_to_read(ends.as_fd(), Duration::ZERO).is_ok() => {
                    return Err(Failure::failed("run in real time", "interrupted"));
                }
                Err(RecvTimeoutError::Timeout) if left > LISTENS_FOR => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return Err(failed(missing, &format!("nothing came from it within {within:?}")));
                }
            }
        }
        Ok(all.into_iter().flatten().collect())
    }
}

fn listen(nth: usize, output: ChildStdout, say: &Sender<Heard>) {
    for line in BufReader::new(output).lines() {
        let says = line.map_err(|error| error.to_string());
        let says = says.and_then(|line| serde_json::from_str(&line).map_err(|error| error.to_string()));
        let is_last = matches!(says, Ok(Says::Ended(_)) | Err(_));
        if say.send((nth, says)).is_err() || is_last {
            return;
        }
    }
    let _ = say.send((nth, Err("it has ended early".to_owned())));
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
