//! Serves the nodes of a world in real time: runs a user's program meanwhile, and warns when the radios fall behind.

use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode};
use std::time::Duration;
use std::{io, thread};

use hopwise_air::Live;
use hopwise_core::{Instant, Machine};
use hopwise_host::wait_for;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use hopwise_daemon::failure::Failure;
use hopwise_daemon::live_by_the_clock;
use hopwise_daemon::signals::RingAtDrop;

/// The time that a program has to end.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// A descriptor that can be rung.
pub(super) fn bell() -> Result<OwnedFd, Failure> {
    let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    bell.map_err(Failure::during("make a descriptor"))
}

/// Does `work` on a thread of its own, and serves meanwhile. The bell that `serve` gets rings once the work is over,
/// also after a panic.
pub(super) fn serve_beside<S, T: Send>(
    work: impl FnOnce() -> T + Send,
    serve: impl FnOnce(&OwnedFd) -> S,
) -> Result<(S, T), Failure> {
    let over = bell()?;
    thread::scope(|scope| {
        let direct = || {
            let _over = RingAtDrop(&over);
            work()
        };
        // It begins before the nodes have their priority, which the work shall not have.
        let directing = thread::Builder::new().name("director".into()).spawn_scoped(scope, direct);
        let directing = directing.map_err(Failure::during("start a thread"))?;
        let served = serve(&over);
        Ok((served, directing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))))
    })
}

/// Runs the program and waits for its end. Once one of `ends` is readable, the program is told to end.
pub(super) fn play(program: &[String], ends: &[&OwnedFd]) -> Result<ExitCode, Failure> {
    let Some((name, words)) = program.split_first() else { return Ok(ExitCode::SUCCESS) };
    let failed = |error: io::Error| Failure::failed("run the command", format_args!("`{name}`: {error}"));
    let mut process = Command::new(name).args(words).spawn().map_err(failed)?;
    let id = Pid::from_child(&process);
    let ended = pidfd_open(id, PidfdFlags::empty()).map_err(|error| failed(error.into()))?;
    let bells: Vec<_> = [&ended].into_iter().chain(ends.iter().copied()).collect();
    if waited(&bells, Duration::MAX).is_some_and(|nth| nth > 0) {
        let _ = kill_process(id, Signal::TERM);
        if waited(&[&ended], ENDS_WITHIN).is_none() {
            let _ = process.kill();
        }
    }
    status_of(&mut process).map_err(failed)
}

/// Waits for one of these, and returns its index.
pub(super) fn waited(bells: &[&OwnedFd], most: Duration) -> Option<usize> {
    let mut ready: Vec<_> = bells.iter().map(|bell| PollFd::new(*bell, PollFlags::IN)).collect();
    loop {
        match wait_for(&mut ready, most.min(Duration::from_secs(3_600))) {
            Ok(0) if most != Duration::MAX => return None,
            Ok(0) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
            Ok(_) => return ready.iter().position(|bell| !bell.revents().is_empty()),
        }
    }
}

/// As shells give it: 128 and the signal, where one ended it.
fn status_of(process: &mut Child) -> io::Result<ExitCode> {
    let status = process.wait()?;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// The pause between two warnings.
const SAY_EVERY: Duration = Duration::from_secs(1);

/// The delay of a medium in real time.
#[derive(Debug, Default)]
pub(super) struct Lag {
    say_at: Instant,
}

impl Lag {
    /// Asks for a priority in real time, on this thread.
    pub(super) fn begin() -> Lag {
        live_by_the_clock();
        Lag::default()
    }

    /// Says by how much the radios were late at the worst since the last warning, once a second.
    pub(super) fn look<M: Machine>(&mut self, live: &mut Live<M>, now: Instant) {
        if self.say_at > now {
            return;
        }
        let Some(worst) = live.take_worst() else { return };
        let all = live.lateness();
        let (ms, left_out_s) = (worst.as_secs_f64() * 1e3, all.left_out.as_secs_f64());
        tracing::warn!(
            "behind real time by up to {ms:.0} ms ({} times so far, {left_out_s:.1} s left out)",
            all.times
        );
        self.say_at = now + SAY_EVERY;
    }
}
