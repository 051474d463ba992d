//! The command as a process: its start, the signals that are passed on to it, and its end.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, ExitStatus};

use hopwise_host::enclosure::{self, Given, Outer};
use hopwise_host::readable;
use hopwise_host::signals::{Came, Signals, end_by, is_ignored};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use tokio::io::unix::AsyncFd;

use super::own_files::OwnFiles;
use crate::descriptors;
use hopwise_daemon::failure::Failure;

/// The signals that are for the command. A terminal sends its own to the command, too.
const PASSED_ON: [i32; 7] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2, libc::SIGALRM];
/// Those of them that end `hopwise exec` when the command has ended.
const ENDING: [i32; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];
/// Descriptors for connections and datagrams.
const DESCRIPTORS: u64 = 16_384;

/// The inner process, before it has a network.
#[derive(Debug)]
pub(super) struct Started {
    signals: Signals,
    child: EndingChild,
    outer: Outer,
}

/// The command, which waits for its beginning or runs.
#[derive(Debug)]
pub(super) struct RunningCommand(Started);

/// A process that ends with its guard.
#[derive(Debug)]
struct EndingChild(Child);

impl Drop for EndingChild {
    fn drop(&mut self) {
        // One that has ended has been waited for, and is not killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Started {
    /// Starts the inner process. There must be no second thread yet.
    pub(super) fn new(command: &[OsString], own: &OwnFiles) -> Result<Started, Failure> {
        let failed = Failure::during("start the command");
        let (outer, inner) = enclosure::pair().map_err(failed)?;
        let mut process = Command::new(std::env::current_exe().map_err(failed)?);
        process.args(["enclosed", "--socket", &inner.number().to_string()]);
        if let Some(resolver) = &own.resolver {
            process.arg("--resolver").arg(resolver);
        }
        for (copy, file) in &own.copies {
            process.arg("--copy").args([copy, file]);
        }
        let child = EndingChild(process.arg("--").args(command).spawn().map_err(failed)?);
        // Not before: the command would inherit the mask. A signal that comes earlier ends both.
        let signals = Signals::keep(&PASSED_ON).map_err(failed)?;
        drop(inner);
        descriptors::raise(DESCRIPTORS);
        Ok(Started { signals, child, outer })
    }

    /// Waits for the command's device.
    pub(super) fn take_device(self) -> Result<(Given, RunningCommand), Failure> {
        let given = self.outer.take().map_err(Failure::during("run the command"))?;
        Ok((given, RunningCommand(self)))
    }
}

impl RunningCommand {
    /// Lets the command begin, and passes signals on until it ends. Later signals are for this process.
    pub(super) async fn until_its_end(self) -> Result<(CommandEnd, Afterwards), Failure> {
        let Started { signals, mut child, outer } = self.0;
        let failed = Failure::during("wait for the command");
        let id = Pid::from_child(&child.0);
        let end = pidfd_open(id, PidfdFlags::empty()).map_err(|error| failed(error.into()))?;
        let end = readable(end).map_err(failed)?;
        let has_signal = signals.descriptor().try_clone_to_owned().and_then(readable).map_err(failed)?;
        outer.go().map_err(failed)?;
        loop {
            tokio::select! {
                ended = end.readable() => {
                    let _ = ended.map_err(failed)?;
                    let status = child.0.wait().map_err(failed)?;
                    // Those that ended the command came to both, and were for it.
                    while signals.next().is_some() {}
                    return Ok((CommandEnd(status), Afterwards { signals, has_signal }));
                }
                came = next(&signals, &has_signal) => pass_on(id, came.map_err(failed)?),
            }
        }
    }
}

/// The signals that come after the command's end.
#[derive(Debug)]
pub(super) struct Afterwards {
    signals: Signals,
    has_signal: AsyncFd<OwnedFd>,
}

impl Afterwards {
    /// Waits for a signal that tells this process to end.
    pub(super) async fn told_to_end(&self) -> Result<CommandEnd, Failure> {
        loop {
            let came = next(&self.signals, &self.has_signal).await;
            let number = came.map_err(Failure::during("wait for signals"))?.number;
            if ENDING.contains(&number) && !is_ignored(number) {
                return Ok(CommandEnd(ExitStatus::from_raw(number)));
            }
        }
    }
}

async fn next(signals: &Signals, has_signal: &AsyncFd<OwnedFd>) -> io::Result<Came> {
    loop {
        if let Some(came) = signals.next() {
            return Ok(came);
        }
        has_signal.readable().await?.clear_ready();
    }
}

/// The command has a signal of the terminal already.
fn pass_on(id: Pid, came: Came) {
    if !came.by_kernel
        && let Some(signal) = Signal::from_named_raw(came.number)
    {
        // A command that has just ended needs none.
        let _ = kill_process(id, signal);
    }
}

/// The end of the command, or of this process in its place.
#[derive(Debug)]
pub(super) struct CommandEnd(ExitStatus);

impl CommandEnd {
    /// Ends this process as the command ended, or returns the status that it shall have.
    pub(super) fn pass_on(&self) -> ExitCode {
        if let Some(number) = self.0.signal() {
            end_by(number);
            // As a shell counts them.
            return ExitCode::from(u8::try_from(128 + number).unwrap_or(u8::MAX));
        }
        ExitCode::from(self.0.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
    }
}
