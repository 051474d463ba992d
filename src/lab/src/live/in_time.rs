//! The end of a run whose trial has no more time.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use hopwise_host::wait_for;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};

use super::director::Unmade;
use hopwise_daemon::failure::Failure;
use hopwise_daemon::signals::{RingAtDrop, ring};

/// Longer than any run.
const LONG: Duration = Duration::from_secs(24 * 3600);

/// Does the work with a descriptor of its own that becomes readable with `ends`, or at that instant.
pub(super) fn in_time<T>(
    (ends, until): (&OwnedFd, Option<Instant>),
    work: impl FnOnce(&OwnedFd) -> Result<T, Failure>,
) -> Result<T, Unmade> {
    let bell = || eventfd(0, EventfdFlags::CLOEXEC);
    let failed = Failure::during("make an eventfd");
    let (stop, done) = (bell().map_err(failed)?, bell().map_err(failed)?);
    thread::scope(|scope| {
        let watch = || {
            let is_late = is_late(ends, &done, until);
            ring(&stop);
            is_late
        };
        let watch = scope.spawn(watch);
        // Ends the watch, also after a panic of the work.
        let over = RingAtDrop(&done);
        let worked = work(&stop);
        drop(over);
        let is_late = watch.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        worked.map_err(|failure| match is_late {
            true => Unmade::OutOfTime(no_time(&failure)),
            false => Unmade::Failed(failure),
        })
    })
}

fn no_time(failure: &Failure) -> Failure {
    let problem = format_args!(
        "the time of --for is over, and the same command with --resume goes on (the run ended with: {failure})"
    );
    Failure::failed("end a run", problem)
}

/// Waits for either descriptor. True if the instant came first, where there is one.
#[expect(clippy::disallowed_methods, reason = "a trial that ends in time needs real time")]
fn is_late(ends: &OwnedFd, done: &OwnedFd, until: Option<Instant>) -> bool {
    loop {
        let mut both = [ends, done].map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN));
        let most = until.map_or(LONG, |until| until.saturating_duration_since(Instant::now()));
        match wait_for(&mut both, most) {
            Ok(0) if until.is_some() => return true,
            Ok(0) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use hopwise_host::wait_to_read;

    use super::*;

    fn bell() -> OwnedFd {
        eventfd(0, EventfdFlags::CLOEXEC).expect("a descriptor is left")
    }

    /// Waits as a run does until it is ended, which is a failure of its own.
    fn endless(ends: &OwnedFd) -> Result<(), Failure> {
        wait_to_read(ends.as_fd(), Duration::from_secs(60)).expect("it is ended");
        Err(Failure::failed("run in real time", "interrupted"))
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the end of a trial's time is in real time")]
    fn a_run_ends_with_the_time_of_its_trial_and_the_users_end_is_none_of_it() {
        let ends = bell();
        let late = in_time((&ends, Some(Instant::now())), endless);
        let Err(Unmade::OutOfTime(failure)) = late else { panic!("{late:?}") };
        assert!(
            failure.to_string().contains("run in real time: interrupted"),
            "its own words stay: {failure}"
        );
        let rung = in_time((&ends, None), |own| {
            ring(own);
            let mut outer = [PollFd::from_borrowed_fd(ends.as_fd(), PollFlags::IN)];
            Ok(wait_for(&mut outer, Duration::ZERO).expect("it is a descriptor"))
        });
        assert!(matches!(rung, Ok(0)), "a run that ends itself ends nothing else: {rung:?}");
        let later = Instant::now() + Duration::from_secs(3600);
        assert!(in_time((&ends, Some(later)), |_| Ok(())).is_ok(), "the watch ends with the work");
        ring(&ends);
        for until in [None, Some(later)] {
            assert!(matches!(in_time((&ends, until), endless), Err(Unmade::Failed(_))));
        }
    }
}
