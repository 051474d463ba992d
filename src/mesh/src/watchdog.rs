//! Ends a daemon that hangs, the proxy or `hopwise thin`. Packets then go on without it, as they do when it is killed.
//!
//! The watcher holds a descriptor of the daemon's process, so that no other process can be killed in its place. A
//! daemon that only lacks a processor is not killed: it would lack one after its next start as well.

use std::fs;
use std::io::{self, Read};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

use hopwise_daemon::failure::Failure;
use hopwise_daemon::log;
use hopwise_daemon::privileges::{Privileges, forbid_tracing};
use hopwise_daemon::watchdog::{Watcher, comes_again, stand_by};

/// Starts the watcher. The daemon also works without one.
pub(crate) fn start(patience: Duration) -> Option<Watcher> {
    let own = pidfd_open(getpid(), PidfdFlags::empty()).map_err(io::Error::from);
    let words = command(patience, getpid());
    let started = own.and_then(|own| Watcher::start(&words.each_ref().map(String::as_str), own));
    started.inspect_err(|error| tracing::warn!(%error, "nothing watches whether the daemon hangs")).ok()
}

/// The command that watches a daemon.
fn command(patience: Duration, daemon: Pid) -> [String; 4] {
    ["proxy".into(), "watch".into(), format!("{}us", patience.as_micros()), daemon.to_string()]
}

fn failed(error: io::Error) -> Failure {
    Failure::failed("watch the daemon", error)
}

/// The watcher's side: standard input brings beats, standard output is the daemon's process, and `process` its number.
pub(crate) fn run(patience: Duration, process: i32, alone: bool) -> Result<(), Failure> {
    log::begin();
    // The watcher runs as the daemon's user, which may end the daemon without further privileges.
    let narrowed = Privileges::of_helper().and_then(|privileges| privileges.narrow(&[]));
    narrowed.map_err(Failure::during("watch the daemon"))?;
    forbid_tracing().map_err(failed)?;
    log::flow().map_err(failed)?;
    let daemon = Pid::from_raw(process).ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
    if alone {
        return watch(patience, daemon);
    }
    let command = command(patience, daemon);
    let words: Vec<_> = command.iter().map(String::as_str).chain(["--alone"]).collect();
    stand_by(&words, "ends a daemon that hangs").map_err(failed)
}

fn watch(patience: Duration, daemon: Pid) -> Result<(), Failure> {
    let mut beats = io::stdin().lock();
    let mut buffer = [0; 64];
    loop {
        let (before, mut is_said) = (used_by(daemon), false);
        while !comes_again(&beats, patience).map_err(failed)? {
            let used = before.and_then(|before| used_by(daemon)?.checked_sub(before));
            if !only_lacks_a_processor(used, is_runnable(daemon), patience) {
                tracing::error!(?patience, "the daemon hangs and is killed: packets go on without it");
                let killed = pidfd_send_signal(io::stdout(), Signal::KILL);
                return killed.map_err(|error| failed(error.into()));
            }
            if !std::mem::replace(&mut is_said, true) {
                tracing::warn!(?patience, ?used, "other programs leave the daemon too little processor time");
            }
        }
        if beats.read(&mut buffer).map_err(failed)? == 0 {
            return Ok(());
        }
    }
}

/// Returns whether a silent process wants to run and has not got far: a turn of its loop takes less.
fn only_lacks_a_processor(used: Option<Duration>, is_runnable: bool, patience: Duration) -> bool {
    is_runnable && used.is_some_and(|used| used < patience / 2)
}

/// The processor time of a process until now.
fn used_by(process: Pid) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    Some(Stat::of(&stat)?.used)
}

/// Returns whether a thread of the process runs, or waits for a processor alone.
fn is_runnable(process: Pid) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let mut stats = threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    stats.any(|stat| Stat::of(&stat).is_some_and(|stat| stat.state == 'R'))
}

/// A file `stat` of proc(5).
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: char,
    used: Duration,
}

/// The unit of times there (USER_HZ is 100).
const TICK: Duration = Duration::from_millis(10);

impl Stat {
    fn of(text: &str) -> Option<Stat> {
        // The name of the program, in parentheses, may have any characters.
        let mut fields = text.rsplit_once(") ")?.1.split(' ');
        let state = fields.next()?.chars().next()?;
        let (user, system): (u32, u32) = (fields.nth(10)?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(Stat { state, used: TICK * user.checked_add(system)? })
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_that_works_can_run_and_one_that_waits_cannot() {
        let line = "7 (a) R 1 (b)) S 1 7 7 0 -1 4194560 90 0 0 0 12 30 0 0 20 0 1 0 5 8 9";
        assert_eq!(Stat::of(line), Some(Stat { state: 'S', used: TICK * 42 }));
        assert_eq!(Stat::of("7 (a) S 1"), None);
        assert!(is_runnable(getpid()) && used_by(getpid()).is_some());
        let mut waits = Command::new("cat").stdin(Stdio::piped()).spawn().expect("cat runs");
        let process = Pid::from_child(&waits);
        while is_runnable(process) {
            std::thread::yield_now();
        }
        drop(waits.stdin.take());
        waits.wait().expect("a child");
        assert!(!is_runnable(process) && used_by(process).is_none());
    }

    #[test]
    fn a_silent_daemon_is_spared_only_while_it_could_run_and_gets_no_processor() {
        let second = Duration::from_secs(1);
        let some = |ms| Some(Duration::from_millis(ms));
        let spared = |used, is_runnable| only_lacks_a_processor(used, is_runnable, second);
        assert!(spared(some(120), true) && spared(some(0), true));
        assert!(!spared(some(900), true), "it runs round in circles");
        assert!(!spared(some(0), false) && !spared(some(120), false), "it waits, or was stopped");
        assert!(!spared(None, true), "nothing is known");
    }
}
