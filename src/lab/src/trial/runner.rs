//! Makes the runs of a trial, several at a time.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use hopwise_air::frames::Framing;
use hopwise_core::narrow::as_u32;
use hopwise_lab::campaign::{Campaign, Planned};
use hopwise_lab::cost::Meter;
use hopwise_lab::live::guest;
use hopwise_lab::result::RunResult;
use hopwise_lab::scenario::point::Stop;
use hopwise_lab::scenario::{Prepared, Scenario};
use hopwise_lab::sim::{Plan, Simulation, series};
use hopwise_lab::store::Store;

use super::EarlyEnd;
use crate::live::{Director, Fleet, Run, Unmade};
use crate::run::watch::{Epoch, RunWatch, WantedFiles};
use crate::scenario::RunBounds;
use hopwise_daemon::failure::Failure;

#[derive(Debug)]
pub(super) struct How {
    pub(super) jobs: usize,
    pub capture: bool,
    pub(super) bounds: RunBounds,
    /// Readable once the user ends a trial in real time.
    pub(super) ends: Option<OwnedFd>,
    /// No block begins that would probably end after this time.
    pub(super) within: Option<Duration>,
    /// The hosts of the world mesh.
    pub(super) fleet: Option<Fleet>,
}

/// The first block also keeps the series of windows and queue lengths.
const WITH_SERIES: u32 = 1;

/// State of each run of a campaign.
pub(super) struct Runs<'a> {
    scenario: &'a Scenario,
    campaign: &'a Campaign,
    store: &'a Store,
    /// By their index in the campaign.
    pub(super) goodputs: Vec<Option<f64>>,
    /// The figures that decide, of each run.
    figures: Vec<Vec<Option<f64>>>,
    /// The trial ends with this block: it is sure after it, or out of time.
    last: Option<u32>,
    /// The reason why the trial ended.
    pub(super) ended: EarlyEnd,
    /// Blocks up to this one were examined.
    looked: u32,
}

/// The result of one run, with its index.
type Ran = (usize, Result<Made, Unmade>);

/// The figures of a run that its trial needs while it goes on.
struct Made {
    goodput: f64,
    /// Those that decide.
    figures: Vec<Option<f64>>,
}

impl<'a> Runs<'a> {
    /// The results that the store already has.
    pub(super) fn new(scenario: &'a Scenario, campaign: &'a Campaign, store: &'a Store) -> Runs<'a> {
        let mut runs = Runs {
            scenario,
            campaign,
            store,
            goodputs: vec![None; campaign.runs.len()],
            figures: vec![Vec::new(); campaign.runs.len()],
            last: None,
            ended: EarlyEnd::WithVerdicts,
            looked: 1,
        };
        for (nth, run) in campaign.runs.iter().enumerate() {
            if let Some(record) = store.find(&run.id).filter(|record| campaign.is_of(run, record)) {
                runs.take(nth, Made::of(campaign, &record.result));
            }
        }
        runs.look();
        runs
    }

    fn take(&mut self, nth: usize, Made { goodput, figures }: Made) {
        self.goodputs[nth] = Some(goodput);
        self.figures[nth] = figures;
    }

    fn is_wanted(&self, nth: usize) -> bool {
        self.last.is_none_or(|last| self.campaign.runs[nth].block <= last)
    }

    /// The wanted runs in the order of results.
    pub(super) fn wanted(&self) -> impl Iterator<Item = &Planned> {
        let runs = self.campaign.runs.iter().enumerate();
        runs.filter(|(nth, _)| self.is_wanted(*nth)).map(|(_, run)| run)
    }

    pub(super) fn missing(&self) -> usize {
        (0..self.goodputs.len()).filter(|nth| self.is_wanted(*nth) && self.goodputs[*nth].is_none()).count()
    }

    /// Sets the last block once the trial is sure. Blocks are examined in their order, so that runs that finish early
    /// change nothing.
    fn look(&mut self) {
        if self.campaign.trial.stop == Stop::AllSeeds {
            return;
        }
        let blocks = self.campaign.runs.iter().map(|run| run.block).max().unwrap_or(0);
        let goodput = |nth: usize| self.goodputs[nth];
        while self.last.is_none()
            && self.looked < blocks
            && self.campaign.is_complete(self.looked + 1, &goodput)
        {
            self.looked += 1;
            let known = |nth: usize, figure: usize| self.figures[nth].get(figure).copied().flatten();
            self.last = self.campaign.is_sure(self.looked, &known).then_some(self.looked);
        }
    }

    fn blocks(&self) -> u32 {
        self.campaign.runs.iter().map(|run| run.block).max().unwrap_or(0)
    }

    /// The last block up to which all runs are there.
    fn complete(&self) -> Option<u32> {
        let goodput = |nth: usize| self.goodputs[nth];
        (1..=self.blocks()).take_while(|block| self.campaign.is_complete(*block, &goodput)).last()
    }

    /// Ends the trial without a run. The complete blocks count if the time is up; anything else is a failure.
    fn end_without(&mut self, unmade: Unmade) -> Option<Failure> {
        let ended = match unmade {
            Unmade::OutOfTime(_) => EarlyEnd::InTime,
            Unmade::Gone(_) => EarlyEnd::WithoutHost,
            Unmade::Failed(failure) => return Some(failure),
        };
        let Some(block) = self.complete() else { return Some(unmade.into()) };
        (self.last, self.ended) = (Some(block), ended);
        None
    }

    /// Sets the last block once the time is too short for a further block.
    fn end_in_time(&mut self, budget: &Budget) {
        let runs = &self.campaign.runs;
        let blocks = self.blocks();
        let Some(block) = self.complete().filter(|block| *block < blocks) else { return };
        let left = runs
            .iter()
            .zip(&self.goodputs)
            .filter(|(run, goodput)| run.block == block + 1 && goodput.is_none());
        if self.last.is_none() && !budget.has_time_for(left.count()) {
            (self.last, self.ended) = (Some(block), EarlyEnd::InTime);
        }
    }

    /// Makes all missing runs, and calls `on_run` with each goodput.
    pub(super) fn run(&mut self, how: &How, on_run: &mut dyn FnMut(usize, f64)) -> Result<(), Failure> {
        let order = self.campaign.order();
        let missing: Vec<usize> =
            order.into_iter().filter(|nth| self.is_wanted(*nth) && self.goodputs[*nth].is_none()).collect();
        // Runs in real time need the machine for themselves.
        let jobs = if self.campaign.world.is_live() { 1 } else { how.jobs.min(missing.len()) };
        let mut budget = Budget::new(how.within);
        let work = SharedWork {
            scenario: self.scenario,
            campaign: self.campaign,
            store: self.store,
            how,
            until: budget.until(),
            left: Mutex::new(missing.into_iter()),
            has_enough: AtomicBool::new(false),
        };
        let (say, hear) = mpsc::channel();
        let mut failure = None;
        thread::scope(|scope| {
            for _ in 0..jobs {
                let (work, say) = (&work, say.clone());
                scope.spawn(move || work.go_on(&say));
            }
            drop(say);
            for (nth, ran) in hear {
                match ran {
                    Ok(made) => {
                        let goodput = made.goodput;
                        self.take(nth, made);
                        on_run(nth, goodput);
                        self.look();
                        budget.on_run();
                        self.end_in_time(&budget);
                    }
                    Err(unmade) => failure = failure.take().or(self.end_without(unmade)),
                }
                if failure.is_some() || self.last.is_some() {
                    work.has_enough.store(true, Ordering::Relaxed);
                }
            }
        });
        failure.map_or(Ok(()), Err)
    }
}

impl Made {
    fn of(campaign: &Campaign, result: &RunResult) -> Made {
        Made { goodput: result.total.goodput_kbps, figures: campaign.figures_of(result) }
    }
}

/// The time of a trial.
struct Budget {
    within: Option<Duration>,
    began: Instant,
    done: u32,
}

impl Budget {
    #[expect(clippy::disallowed_methods, reason = "a trial that ends in time needs real time")]
    fn new(within: Option<Duration>) -> Budget {
        Budget { within, began: Instant::now(), done: 0 }
    }

    fn until(&self) -> Option<Instant> {
        self.began.checked_add(self.within?)
    }

    fn on_run(&mut self) {
        self.done += 1;
    }

    /// True if `runs` more runs of the mean duration end in time.
    fn has_time_for(&self, runs: usize) -> bool {
        let (Some(within), spent) = (self.within, self.began.elapsed()) else { return true };
        let each = spent.checked_div(self.done).unwrap_or_default();
        spent + each * as_u32(runs) <= within
    }
}

/// The state that the threads share.
struct SharedWork<'a> {
    scenario: &'a Scenario,
    campaign: &'a Campaign,
    store: &'a Store,
    how: &'a How,
    until: Option<Instant>,
    left: Mutex<std::vec::IntoIter<usize>>,
    has_enough: AtomicBool,
}

/// A panic in one thread ends all threads.
struct Alarm<'a>(&'a AtomicBool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

impl SharedWork<'_> {
    fn go_on(&self, say: &Sender<Ran>) {
        let _alarm = Alarm(&self.has_enough);
        let director = |ends| {
            let director = Director::new(self.store.folder().to_owned(), self.how.bounds, ends);
            director.until(self.until).on(self.how.fleet.as_ref())
        };
        let mut director = self.how.ends.as_ref().map(director);
        while !self.has_enough.load(Ordering::Relaxed) {
            let next = self.left.lock().expect("no thread panics with it").next();
            let Some(nth) = next else { return };
            let ran = self.one(&self.campaign.runs[nth], director.as_mut());
            if ran.is_err() {
                // No thread begins another run, which may take an hour, until the failure is heard.
                self.has_enough.store(true, Ordering::Relaxed);
            }
            if say.send((nth, ran)).is_err() {
                return;
            }
        }
    }

    /// Makes one run, from its plan to its record.
    fn one(&self, run: &Planned, director: Option<&mut Director<'_>>) -> Result<Made, Unmade> {
        let prepared = self.campaign.prepare(run).map_err(Failure::Located)?;
        match director {
            Some(director) => self.live(run, &prepared, director),
            None if self.campaign.world.is_live() => {
                Err(Failure::refused("world", "this trial runs in the simulation alone, expected sim").into())
            }
            None => Ok(self.simulated(run, &prepared)?),
        }
    }

    /// Makes one run in real time.
    fn live(&self, run: &Planned, prepared: &Prepared, director: &mut Director<'_>) -> Result<Made, Unmade> {
        let trial = &self.campaign.trial;
        let (point, arm) = (&trial.points[run.point], &trial.arms[run.arm]);
        let folder = self.store.folder().join(captures_of(run));
        if self.how.capture {
            self.store.make(captures_of(run)).map_err(Failure::from)?;
        }
        let meter = Meter::start();
        let asked = Run {
            part: self.scenario.part(point, arm, run.seed),
            world: self.campaign.world,
            prepared,
            repeated: self.store.spoilt(&run.id),
            folder: &folder,
            wanted: guest::KeptFiles { capture: self.how.capture, trace: false },
        };
        let mut on_spoilt = |why: &str| Ok(self.store.note_spoilt(&run.id, why)?);
        let result = director.direct(&asked, &mut on_spoilt)?;
        let made = Made::of(self.campaign, &result);
        let record = self.campaign.record(run, result, None);
        self.store.keep(&record, &meter.stop(0), None).map_err(Failure::from)?;
        Ok(made)
    }

    /// Makes one run in virtual time.
    fn simulated(&self, run: &Planned, prepared: &Prepared) -> Result<Made, Failure> {
        let unbuilt = Failure::during("building the world");
        if self.how.capture {
            self.capture(run, prepared)?;
        }
        let meter = Meter::start();
        let mut simulation = Simulation::new(&prepared.plan).map_err(unbuilt)?;
        let series = (run.block == WITH_SERIES)
            .then(|| series::run(&mut simulation, &prepared.names, series::FrameStretches::Keep));
        simulation.run_until(prepared.plan.end());
        let results = simulation.results();
        let trial = &self.campaign.trial;
        let result = RunResult::new(&trial.scenario, &trial.world, prepared, &results);
        let made = Made::of(self.campaign, &result);
        let name = Store::series_of(&run.id);
        let of_file = series.as_deref().map(|text| (name.as_str(), text));
        let record = self.campaign.record(run, result, of_file);
        self.store.keep(&record, &meter.stop(simulation.world().events()), series.as_deref())?;
        Ok(made)
    }

    /// Repeats the run, so that a capture changes nothing in the kept results.
    fn capture(&self, run: &Planned, prepared: &Prepared) -> Result<(), Failure> {
        let unbuilt = Failure::during("building the world");
        self.store.make(captures_of(run))?;
        let folder = self.store.folder().join(captures_of(run));
        let plan = Plan { trace_events: hopwise_part::TRACE_EVENTS, ..prepared.plan.clone() };
        let mut simulation = Simulation::new(&plan).map_err(unbuilt)?;
        let wanted = WantedFiles { capture: true, frames: false, trace: false };
        let run = (prepared, Epoch::default());
        let watch = RunWatch::begin(wanted, (simulation.world(), Framing::Packet), run, &folder)?;
        watch.capture_ends(simulation.world(), prepared, &folder)?;
        simulation.run_until(prepared.plan.end());
        watch.end()
    }
}

/// The folder of a run's captures, below the trial's.
fn captures_of(run: &Planned) -> PathBuf {
    Path::new("captures").join(&run.id)
}
