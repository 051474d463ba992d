//! Directs runs in a live world: makes each where its world is, and again until it keeps its time.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hopwise_core::narrow::as_u32;
use hopwise_host::routing::forget_gone;
use hopwise_host::wait_to_read;
use hopwise_lab::live::guest::{GuestAnswer, GuestOrder};
use hopwise_lab::result::{Live, RunResult};
use hopwise_lab::scenario::Prepared;
use hopwise_lab::world::World;

use super::field::Netns;
use super::in_time::in_time;
use super::mesh::{self, Fleet, LostHost};
use super::play::{Run, play};
use crate::air::hwsim::{self, Session};
use crate::air::netns::stations;
use crate::scenario::RunBounds;
use hopwise_daemon::failure::{self, Failure};
use hopwise_inspect::doctor::STATE;
use hopwise_node::fleet::inventory::Host;
use hopwise_part::algorithms;

/// The reason why there is no result of a run.
#[derive(Debug)]
pub(crate) enum Unmade {
    Failed(Failure),
    /// The run did not count, and another try would end too late.
    OutOfTime(Failure),
    /// A host of a mesh was lost in the run, and did not come back.
    Gone(Failure),
}

impl From<Failure> for Unmade {
    fn from(failure: Failure) -> Unmade {
        Unmade::Failed(failure)
    }
}

impl From<Unmade> for Failure {
    fn from(unmade: Unmade) -> Failure {
        match unmade {
            Unmade::Failed(failure) | Unmade::OutOfTime(failure) | Unmade::Gone(failure) => failure,
        }
    }
}

/// Directs one run after another. Dropping it ends its guest.
#[derive(Debug)]
pub(crate) struct Director<'a> {
    /// The folder for results, in which captures are.
    out: PathBuf,
    bounds: RunBounds,
    /// Readable once the user ends the trial.
    ends: &'a OwnedFd,
    /// Each run ends by then, and none is repeated that would end later.
    until: Option<Instant>,
    guest: Option<Session>,
    /// The hosts of the world mesh.
    fleet: Option<&'a Fleet>,
}

/// Runs that are tried until one keeps its time.
const MOST_TRIES: usize = 5;

/// The time for the end of processes after a lost run.
const GRACE: Duration = Duration::from_secs(3);

/// The longest beginning of the names of namespaces.
const MOST_LETTERS: usize = 60;

/// Refuses a plan that its world cannot play. `scenario` is the scenario's name, and `hosts` are the hosts of the world
/// mesh.
pub(crate) fn check(
    world: World,
    scenario: &str,
    prepared: &Prepared,
    hosts: Option<&[Host]>,
) -> Result<(), Failure> {
    match world {
        World::Sim => Ok(()),
        World::Netns => {
            stations::check(&prefix_of(scenario), prepared)?;
            prepared.plan.arm.algorithm().map_or(Ok(()), |algorithm| {
                // The kernel lets only root use most algorithms, even loaded ones.
                check_user(world)?;
                algorithms::check(algorithm)
            })
        }
        World::Hwsim => hwsim::check(prepared, None),
        World::Mesh => hosts.map_or(Ok(()), |hosts| mesh::check(prepared, hosts)),
    }
}

/// Refuses a user who may not play in that world.
pub(crate) fn check_user(world: World) -> Result<(), Failure> {
    match world {
        World::Netns => stations::check_user("--world sim and hwsim take no root"),
        World::Sim | World::Hwsim | World::Mesh => Ok(()),
    }
}

/// The beginning of the names of namespaces, for a scenario of any name.
fn prefix_of(scenario: &str) -> String {
    let plain = |(nth, letter): (usize, char)| match letter {
        '.' if nth > 0 => '.',
        '-' | '_' => letter,
        _ if letter.is_ascii_alphanumeric() => letter,
        _ => '-',
    };
    scenario.chars().take(MOST_LETTERS).enumerate().map(plain).collect()
}

impl<'a> Director<'a> {
    pub(crate) fn new(out: PathBuf, bounds: RunBounds, ends: &'a OwnedFd) -> Director<'a> {
        Director { out, bounds, ends, until: None, guest: None, fleet: None }
    }

    pub(crate) fn on(self, fleet: Option<&'a Fleet>) -> Self {
        Director { fleet, ..self }
    }

    pub(crate) fn until(self, until: Option<Instant>) -> Self {
        Director { until, ..self }
    }

    /// Makes runs until one keeps its time. Its nodes are gone when it returns. `on_spoilt` takes the reason why a run
    /// does not count.
    pub(crate) fn direct(
        &mut self,
        run: &Run<'_>,
        on_spoilt: &mut dyn FnMut(&str) -> Result<(), Failure>,
    ) -> Result<RunResult, Unmade> {
        check(run.world, &run.part.scenario, run.prepared, None)?;
        let mut again: Vec<String> = Vec::new();
        while again.len() < MOST_TRIES {
            let began = now();
            let (spoilt, lost) = match in_time((self.ends, self.until), |ends| self.once(run, ends)) {
                Ok(mut result) => {
                    let Some(live) = &mut result.live else { return Ok(result) };
                    live.repeated = run.repeated + as_u32(again.len());
                    let Some(spoilt) = spoilt(live, self.bounds) else {
                        live.mesh.iter_mut().for_each(|mesh| mesh.again.clone_from(&again));
                        return Ok(result);
                    };
                    (spoilt, None)
                }
                Err(unmade) => match (unmade, self.fleet.and_then(Fleet::take_lost)) {
                    (Unmade::Failed(_), Some(lost)) => (lost.to_string(), Some(lost)),
                    (unmade, _) => return Err(unmade),
                },
            };
            failure::remark(&format!(
                "{}, seed {}: {spoilt}; the run does not count",
                run.part.arm, run.part.seed
            ));
            on_spoilt(&spoilt)?;
            lost.map_or(Ok(()), |lost| self.wait_for(&lost, (began, run)))?;
            if !self.has_time_for(began) {
                let problem = format_args!(
                    "{spoilt}; --for leaves no time to repeat it, and the same command with --resume goes on"
                );
                return Err(Unmade::OutOfTime(Failure::failed("keep the time of a run", problem)));
            }
            again.push(spoilt);
        }
        let remedy = match run.world {
            World::Hwsim => "allow more with --late",
            World::Mesh => "mend the host, or allow more with --late",
            _ => "end other programs, or allow more with --late and --busy",
        };
        let last = again.last().map_or("", String::as_str);
        let problem = format_args!("{MOST_TRIES} times: {last}: {remedy}");
        Err(Failure::failed("keep the time of a run", problem).into())
    }

    /// Waits until a lost host answers, and until what the lost run may have left on hosts has ended by itself.
    fn wait_for(&self, lost: &LostHost, (began, run): (Instant, &Run<'_>)) -> Result<(), Unmade> {
        let is_back = self.fleet.is_some_and(|fleet| fleet.is_back(lost, self.ends));
        if wait_to_read(self.ends.as_fd(), Duration::ZERO).is_ok() {
            return Err(Failure::failed("run in real time", "interrupted").into());
        }
        if !is_back {
            let problem = format_args!(
                "{lost}; --wait is over, and the same command with --resume goes on once the host answers and is in \
                 the mesh"
            );
            return Err(Unmade::Gone(Failure::failed("reach a host", problem)));
        }
        failure::remark(&format!("{} answers again", lost.host.name));
        let over = began + run.prepared.plan.end().since(hopwise_core::Instant::ZERO) + GRACE;
        match wait_to_read(self.ends.as_fd(), over.saturating_duration_since(now())) {
            Ok(()) => Err(Failure::failed("run in real time", "interrupted").into()),
            Err(_) => Ok(()),
        }
    }

    /// True if a try as long as the one that began then ends in time. A guest's seconds may be longer than its host's.
    fn has_time_for(&self, began: Instant) -> bool {
        let now = now();
        self.until.is_none_or(|until| now + (now - began) <= until)
    }

    fn once(&mut self, run: &Run<'_>, ends: &OwnedFd) -> Result<RunResult, Failure> {
        match run.world {
            World::Hwsim => self.in_the_guest(run, ends),
            World::Mesh => match self.fleet {
                Some(fleet) => mesh::play(fleet, run, (&self.out, ends)),
                None => {
                    let problem =
                        "a run in the world mesh needs hosts, expected `hopwise trial` with --inventory";
                    Err(Failure::refused("world", problem))
                }
            },
            _ => {
                let prefix = prefix_of(&run.part.scenario);
                let played = play(&Netns::open(&prefix, run.prepared)?, run, (&self.out, ends));
                if !run.prepared.host.is_empty() {
                    // A process that was ended early has left old values of a namespace that is gone.
                    forget_gone(Path::new(STATE));
                }
                played
            }
        }
    }

    /// The first run boots the guest.
    fn in_the_guest(&mut self, run: &Run<'_>, ends: &OwnedFd) -> Result<RunResult, Failure> {
        let failed = |problem: String| Failure::failed("make a run in the guest", problem);
        let guest = match &mut self.guest {
            Some(guest) => guest,
            none => none.insert(Session::start(&self.out, "guest", ends)?),
        };
        let folder = run.folder.strip_prefix(&self.out).unwrap_or(run.folder).to_owned();
        let order = GuestOrder { part: run.part.clone(), folder, wanted: run.wanted };
        let order = serde_json::to_string(&order).map_err(|error| failed(error.to_string()))?;
        let answer = guest.ask(&order, ends)?;
        match serde_json::from_str(&answer) {
            Ok(GuestAnswer::Played(result)) => Ok(*result),
            Ok(GuestAnswer::Failed { problem }) => Err(failed(problem)),
            Err(error) => Err(failed(format!("its answer: {error}"))),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "runs in real time end in real time")]
fn now() -> Instant {
    Instant::now()
}

/// The reason why a run does not count, if there is one.
fn spoilt(live: &Live, bounds: RunBounds) -> Option<String> {
    if !live.deaf.is_empty() {
        let names = live.deaf.join(", ");
        return Some(format!("{names} did not hear all neighbours before the run, expected all nodes to"));
    }
    let most_ms = bounds.late.as_secs_f64() * 1e3;
    for (what, late_ms) in [("the radios were", live.air_late_ms), ("a program was", live.programs_late_ms)] {
        if late_ms > most_ms {
            return Some(format!("{what} {late_ms:.1} ms late, expected at most {most_ms:.1} ms"));
        }
    }
    let mut rows = live.host.iter().flat_map(|(node, rows)| rows.iter().map(move |row| (node, row)));
    if let Some((node, row)) = rows.find(|(_, row)| row.after != row.wanted) {
        let (name, wanted, after) = (&row.name, &row.wanted, &row.after);
        let expected = "expected no program there that sets it";
        return Some(format!("{name} of {node} moved from {wanted} to {after}, {expected}"));
    }
    if let Some(lost @ 1..) = live.lost {
        return Some(format!("the machine lost {lost} packets that nothing took in time, expected none"));
    }
    let elsewhere = live.busy_elsewhere.filter(|elsewhere| *elsewhere > bounds.busy)?;
    let (used, most) = (elsewhere * 100.0, bounds.busy * 100.0);
    Some(format!("other programs used {used:.0} % of the processors, expected at most {most:.0} %"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hopwise_lab::live::part::SettingRow;
    use hopwise_lab::scenario::Scenario;

    use super::*;
    use crate::scenario::first_arm_unless;

    #[test]
    fn a_scenario_of_any_name_has_namespaces() {
        let scenario =
            Scenario::load(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/chain.yaml")), &[])
                .expect("it is sound");
        let prepared = first_arm_unless(&scenario, None, 1).expect("it has arms");
        let long = "n".repeat(250);
        for name in ["my chain", ".hidden", "größe", "a/b", "-", long.as_str()] {
            check(World::Netns, name, &prepared, None).expect("it has a prefix");
        }
        assert_eq!(prefix_of("my chain"), "my-chain");
        assert_eq!(prefix_of("chain-4_v1.2"), "chain-4_v1.2");
    }

    #[test]
    fn a_run_beyond_a_bound_does_not_count_and_says_why() {
        let bounds = RunBounds { late: Duration::from_millis(5), busy: 0.25 };
        let kept = Live {
            air_late_ms: 5.0,
            programs_late_ms: 0.1,
            busy_elsewhere: Some(0.25),
            lost: Some(0),
            ..Live::default()
        };
        assert_eq!(spoilt(&kept, bounds), None);
        let (off, on) = ("off".to_owned(), "on".to_owned());
        let row = SettingRow { name: "gro".to_owned(), wanted: off, after: on, ..SettingRow::default() };
        let moved = BTreeMap::from([("n1".to_owned(), vec![row])]);
        assert_eq!(spoilt(&Live { busy_elsewhere: None, lost: None, ..kept.clone() }, bounds), None);
        for (live, word) in [
            (Live { air_late_ms: 5.1, ..kept.clone() }, "the radios were 5.1 ms late"),
            (Live { programs_late_ms: 7.0, ..kept.clone() }, "a program was 7.0 ms late"),
            (Live { lost: Some(3), ..kept.clone() }, "the machine lost 3 packets"),
            (
                Live { deaf: vec!["n1".into(), "n3".into()], ..kept.clone() },
                "n1, n3 did not hear all neighbours",
            ),
            (
                Live { host: moved, ..kept.clone() },
                "gro of n1 moved from off to on, expected no program there that sets it",
            ),
            (
                Live { busy_elsewhere: Some(0.5), ..kept.clone() },
                "other programs used 50 % of the processors",
            ),
        ] {
            let said = spoilt(&live, bounds).expect("it is beyond a bound");
            assert!(said.starts_with(word), "{said}");
        }
    }
}
