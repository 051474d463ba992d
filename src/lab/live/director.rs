//! Directs runs in a live world: makes each where its world is, and again until it keeps its time.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use hopwise_lab::live::guest::{Answer, Order};
use hopwise_lab::result::{Live, RunResult};
use hopwise_lab::world::World;

use super::field::Netns;
use super::play::{Run, play};
use crate::failure::{self, Failure};
use crate::mesh::air::stations;
use crate::mesh::world::hwsim::{self, Session};
use crate::scenario::Bounds;

/// Directs one run after another. Dropping it ends its guest.
#[derive(Debug)]
pub(crate) struct Director<'a> {
    /// The folder for results, in which captures are.
    out: PathBuf,
    bounds: Bounds,
    /// Readable once the user ends the trial.
    ends: &'a OwnedFd,
    guest: Option<Session>,
}

/// Runs that are tried until one keeps its time.
const MOST_TRIES: u32 = 5;

impl Director<'_> {
    pub(crate) fn new(out: PathBuf, bounds: Bounds, ends: &OwnedFd) -> Director<'_> {
        Director { out, bounds, ends, guest: None }
    }

    /// Makes runs until one keeps its time. Its nodes are gone when it returns.
    pub(crate) fn direct(&mut self, run: &Run<'_>) -> Result<RunResult, Failure> {
        match run.world {
            World::Hwsim => hwsim::check(run.prepared, None)?,
            _ => stations::check(&run.part.scenario, run.prepared)?,
        }
        let mut problem = String::new();
        for repeated in 0..MOST_TRIES {
            let mut result = self.once(run)?;
            let Some(live) = &mut result.live else { return Ok(result) };
            live.repeated = repeated;
            let Some(spoilt) = spoilt(live, self.bounds) else { return Ok(result) };
            failure::remark(&format!(
                "{}, seed {}: {spoilt}; the run does not count",
                run.part.arm, run.part.seed
            ));
            problem = spoilt;
        }
        let remedy = match run.world {
            World::Hwsim => "allow more with --late",
            _ => "end other programs, or allow more with --late and --busy",
        };
        Err(Failure::failed(
            "keep the time of a run",
            format_args!("{MOST_TRIES} times: {problem}: {remedy}"),
        ))
    }

    fn once(&mut self, run: &Run<'_>) -> Result<RunResult, Failure> {
        match run.world {
            World::Hwsim => self.in_the_guest(run),
            _ => play(&Netns::open(&run.part.scenario, run.prepared)?, run, (&self.out, self.ends)),
        }
    }

    /// The first run boots the guest.
    fn in_the_guest(&mut self, run: &Run<'_>) -> Result<RunResult, Failure> {
        let failed = |problem: String| Failure::failed("make a run in the guest", problem);
        let guest = match &mut self.guest {
            Some(guest) => guest,
            none => none.insert(Session::start(&self.out, "guest", self.ends)?),
        };
        let capture = run.capture.map(|folder| folder.strip_prefix(&self.out).unwrap_or(folder).to_owned());
        let order = Order { part: run.part.clone(), capture };
        let order = serde_json::to_string(&order).map_err(|error| failed(error.to_string()))?;
        let answer = guest.ask(&order, self.ends)?;
        match serde_json::from_str(&answer) {
            Ok(Answer::Played(result)) => Ok(*result),
            Ok(Answer::Failed { problem }) => Err(failed(problem)),
            Err(error) => Err(failed(format!("its answer: {error}"))),
        }
    }
}

/// The reason why a run does not count, if there is one.
fn spoilt(live: &Live, bounds: Bounds) -> Option<String> {
    let most_ms = bounds.late.as_secs_f64() * 1e3;
    for (what, late_ms) in [("the radios were", live.air_late_ms), ("a program was", live.programs_late_ms)] {
        if late_ms > most_ms {
            return Some(format!("{what} {late_ms:.1} ms late, expected at most {most_ms:.1} ms"));
        }
    }
    let elsewhere = live.busy_elsewhere.filter(|elsewhere| *elsewhere > bounds.busy)?;
    let (used, most) = (elsewhere * 100.0, bounds.busy * 100.0);
    Some(format!("other programs used {used:.0} % of the processors, expected at most {most:.0} %"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_run_beyond_a_bound_does_not_count_and_says_why() {
        let bounds = Bounds { late: Duration::from_millis(5), busy: 0.25 };
        let kept = Live { air_late_ms: 5.0, programs_late_ms: 0.1, busy_elsewhere: Some(0.25), repeated: 0 };
        assert_eq!(spoilt(&kept, bounds), None);
        assert_eq!(spoilt(&Live { busy_elsewhere: None, ..kept }, bounds), None);
        for (live, word) in [
            (Live { air_late_ms: 5.1, ..kept }, "the radios were 5.1 ms late"),
            (Live { programs_late_ms: 7.0, ..kept }, "a program was 7.0 ms late"),
            (Live { busy_elsewhere: Some(0.5), ..kept }, "other programs used 50 % of the processors"),
        ] {
            let said = spoilt(&live, bounds).expect("it is beyond a bound");
            assert!(said.starts_with(word), "{said}");
        }
    }
}
