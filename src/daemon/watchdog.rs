//! The watch over a daemon that may hang.
//!
//! The watcher is a process of its own, so that a stopped daemon does not stop the watcher. Beats come over a pipe,
//! whose end means that the daemon has ended.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use hopwise_host::wait_for;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

/// The interval at which the part of a daemon that is watched has to show that it works.
pub(crate) const BEAT_EVERY: Duration = Duration::from_millis(200);
/// The watcher waits for a silence in so many parts, and has to see each: a machine that slept costs one of them.
const PARTS: u32 = 4;

/// The daemon's side of the watcher. The watcher ends with it.
#[derive(Debug)]
pub(crate) struct Watcher {
    process: Child,
    /// Dropped at the end, which the watcher sees.
    beats: Option<ChildStdin>,
}

impl Watcher {
    /// Starts this program with these arguments. Its standard input brings the beats, and its standard output is what
    /// it acts upon.
    pub(crate) fn start(arguments: &[&str], acts_upon: OwnedFd) -> io::Result<Watcher> {
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
    pub(crate) fn beat(&self) -> bool {
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

/// The watcher's side: returns whether a beat or the end of the pipe comes within `patience`.
pub(crate) fn comes_again(beats: &impl AsFd, patience: Duration) -> io::Result<bool> {
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
