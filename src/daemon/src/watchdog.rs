//! The watch over a daemon that may hang.
//!
//! The watcher is a process of its own, so that a stopped daemon does not stop the watcher. Beats come over a pipe,
//! whose end means that the daemon has ended.
//!
//! The watcher may be killed, too. A confined daemon starts no other process. A third process, which does nothing else,
//! waits for the watcher's end and starts it again. Without that process the watcher goes on.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use hopwise_host::wait_for;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

/// The interval at which the part of a daemon that is watched has to show that it works.
pub const BEAT_EVERY: Duration = Duration::from_millis(200);
/// A silence counts after this number of waits in a row without a beat. A machine that slept makes one wait end early,
/// not all.
const PARTS: u32 = 4;

/// Tells a part of a daemon something at an interval, until the part has ended.
pub async fn repeat(every: Duration, tell: impl Fn() -> bool) {
    while tell() {
        tokio::time::sleep(every).await;
    }
}

/// The daemon's side of the watcher. The watcher ends with it.
#[derive(Debug)]
pub struct Watcher {
    process: Child,
    /// Dropped at the end, which the watcher sees.
    beats: Option<ChildStdin>,
}

impl Watcher {
    /// Starts this program with these arguments. Its standard input brings the beats, and its standard output is what
    /// it acts upon.
    pub fn start(arguments: &[&str], acts_upon: OwnedFd) -> io::Result<Watcher> {
        let mut process = Command::new("/proc/self/exe")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::from(acts_upon))
            // Signals of a terminal to the daemon must not reach the watcher.
            .process_group(0)
            .spawn()?;
        let beats = process.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        rustix::io::ioctl_fionbio(&beats, true)?;
        Ok(Watcher { process, beats: Some(beats) })
    }

    /// Returns false once the watcher is gone.
    pub fn beat(&self) -> bool {
        let Some(beats) = &self.beats else { return false };
        // A full pipe has enough beats in it.
        !matches!(rustix::io::write(beats, &[0]), Err(error) if error != Errno::AGAIN)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        drop(self.beats.take());
        // It may have ended by itself.
        let _ = self.process.wait();
    }
}

/// Starts the watcher again whenever it was killed, until the daemon has ended. The watcher is this program with these
/// arguments. The first watch begins with the first beat, since a daemon's start may take long. `named` says in the log
/// what the watcher does.
pub fn stand_by(arguments: &[&str], named: &str) -> io::Result<()> {
    if io::stdin().read(&mut [0])? == 0 {
        return Ok(());
    }
    loop {
        let ended = Command::new("/proc/self/exe").args(arguments).status()?;
        if ended.code().is_some() {
            // It has said why, if the daemon has not ended.
            return Ok(());
        }
        tracing::warn!(%ended, "the process that {named} was killed: it is started again");
    }
}

/// The watcher's side: returns whether a beat or the end of the pipe comes within `patience`.
pub fn comes_again(beats: &impl AsFd, patience: Duration) -> io::Result<bool> {
    for _ in 0..PARTS {
        let mut fds = [PollFd::new(beats, PollFlags::IN)];
        match wait_for(&mut fds, patience / PARTS) {
            Ok(0) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done.map(|_| true),
        }
    }
    Ok(false)
}
