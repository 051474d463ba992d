//! Progress of a trial: a bar and a live table on a terminal, and plain lines elsewhere.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use hopwise_lab::campaign::Campaign;
use hopwise_lab::plain;
use hopwise_lab::scenario::point::{MatrixPoint, plain as plain_value};
use indicatif::{HumanDuration, MultiProgress, ProgressBar, ProgressState, ProgressStyle};

use hopwise_daemon::failure;

/// The most points that have a column.
const MOST: usize = 8;

/// Between two plain lines, after the first.
const PAUSE: Duration = Duration::from_secs(10);

pub(super) struct TrialProgress<'a> {
    campaign: &'a Campaign,
    total: usize,
    /// Results from before this program started.
    there: usize,
    done: usize,
    began: Instant,
    printed: Instant,
    /// Sum and number of goodputs by point and arm.
    means: BTreeMap<(usize, usize), (f64, u32)>,
    /// The time of the trial, which ends then at the latest.
    within: Option<Duration>,
    terminal: Option<Terminal>,
}

struct Terminal {
    bar: ProgressBar,
    /// The points above the arms' means, where there are several.
    head: Option<ProgressBar>,
    /// A line for each arm.
    arms: Vec<ProgressBar>,
}

impl<'a> TrialProgress<'a> {
    pub(super) fn new(
        campaign: &'a Campaign,
        known: &[Option<f64>],
        within: Option<Duration>,
        is_terminal: bool,
    ) -> TrialProgress<'a> {
        let there = known.iter().flatten().count();
        let terminal = is_terminal.then(|| Terminal::new(campaign, there));
        let now = clock();
        let (means, total) = (BTreeMap::new(), known.len());
        let mut progress = TrialProgress {
            campaign,
            total,
            there,
            done: 0,
            began: now,
            printed: now,
            means,
            within,
            terminal,
        };
        for (nth, goodput) in known.iter().enumerate() {
            goodput.iter().for_each(|goodput| progress.count(nth, *goodput));
        }
        if there > 0 {
            progress.say(&format!("{there} of {total} runs are there already"));
        }
        progress
    }

    fn count(&mut self, nth: usize, goodput: f64) {
        let run = &self.campaign.runs[nth];
        let (sum, number) = self.means.entry((run.point, run.arm)).or_default();
        *sum += goodput;
        *number += 1;
    }

    pub(super) fn on_run(&mut self, nth: usize, goodput: f64) {
        self.done += 1;
        self.count(nth, goodput);
        if let Some(terminal) = &self.terminal {
            terminal.bar.inc(1);
            if self.done == 1 {
                terminal.bar.set_style(with_time_left(self.within));
            }
            for (arm, line) in terminal.arms.iter().enumerate() {
                line.set_message(plain::text(&self.line(arm)));
            }
        } else if self.done == 1 || clock().duration_since(self.printed) >= PAUSE {
            self.printed = clock();
            self.say(&self.state());
        }
    }

    /// `12 of 40 runs, about 30 s left`
    fn state(&self) -> String {
        let left = self.total - self.there - self.done;
        let spent = self.began.elapsed();
        let each_s = spent.as_secs_f64() / self.done.max(1) as f64;
        let left_s =
            time_left(Duration::from_secs_f64(each_s * left as f64), spent, self.within).as_secs_f64();
        let done = self.there + self.done;
        format!("{done} of {} runs, about {left_s:.0} s left", self.total)
    }

    /// An arm with its means at the first few points.
    fn line(&self, arm: usize) -> String {
        let points = self.campaign.trial.points.len();
        let mean = |point: usize| match self.means.get(&(point, arm)) {
            Some((sum, number)) => format!("{:>8.1}", sum / f64::from(*number)),
            None => format!("{:>8}", "-"),
        };
        let means: Vec<_> = (0..points.min(MOST)).map(mean).collect();
        let more = if points > MOST { " …" } else { "" };
        format!("{:<16} {}{more} kbit/s", self.campaign.trial.arms[arm], means.join(" "))
    }

    fn say(&self, what: &str) {
        match &self.terminal {
            Some(terminal) => terminal.bar.println(plain::text(what)),
            None => failure::remark(what),
        }
    }

    pub(super) fn end(&self) {
        if let Some(terminal) = &self.terminal {
            terminal.head.iter().chain(&terminal.arms).for_each(ProgressBar::finish_and_clear);
            terminal.bar.finish_and_clear();
        } else if self.done > 0 {
            self.say(&self.state());
        }
    }
}

/// The values of the points above the columns of their means, after the keys that they set.
fn heads(points: &[MatrixPoint]) -> String {
    let last = |path: &String| path.rsplit('.').next().unwrap_or(path).to_owned();
    let keys: Vec<_> = points.iter().take(1).flat_map(|point| point.keys()).map(last).collect();
    let values = |point: &MatrixPoint| point.values().map(plain_value).collect::<Vec<_>>().join("/");
    let heads: Vec<_> =
        points.iter().take(MOST).map(|point| format!("{:>8}", plain::cut(&values(point), 8))).collect();
    format!("{:<16} {}", plain::cut(&keys.join("/"), 16), heads.join(" "))
}

/// The time that runs take, or what is left of the trial's time if that is less.
fn time_left(runs: Duration, spent: Duration, within: Option<Duration>) -> Duration {
    within.map_or(runs, |within| runs.min(within.saturating_sub(spent)))
}

fn with_time_left(within: Option<Duration>) -> ProgressStyle {
    let left = move |state: &ProgressState, line: &mut dyn fmt::Write| {
        let left = time_left(state.eta(), state.elapsed(), within);
        // The line is in memory.
        let _ = write!(line, "{:#}", HumanDuration(left));
    };
    bar("{bar:40} {pos} of {len} runs, {left} left").with_key("left", left)
}

fn bar(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Terminal {
    fn new(campaign: &Campaign, there: usize) -> Terminal {
        let both = MultiProgress::new();
        let bar = both.add(ProgressBar::new(campaign.runs.len() as u64).with_position(there as u64));
        bar.reset_eta();
        // Before the first run has ended, its duration is unknown.
        bar.set_style(self::bar("{bar:40} {pos} of {len} runs"));
        bar.enable_steady_tick(Duration::from_millis(500));
        let line = || both.add(ProgressBar::new(0).with_style(self::bar("{msg}")));
        let head = (campaign.trial.points.len() > 1).then(line);
        if let Some(head) = &head {
            head.set_message(plain::text(&heads(&campaign.trial.points)));
        }
        Terminal { bar, head, arms: campaign.trial.arms.iter().map(|_| line()).collect() }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "who waits lives in real time; nothing that is kept depends on it"
)]
fn clock() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_never_more_than_the_trial_has() {
        let [none, some, much] = [0, 20, 300].map(Duration::from_secs);
        assert_eq!(time_left(much, some, None), much);
        assert_eq!(time_left(much, some, Some(some * 2)), some);
        assert_eq!(time_left(some, some, Some(much)), some);
        assert_eq!(time_left(some, much, Some(some)), none);
    }

    #[test]
    fn columns_of_means_are_headed_by_what_their_points_set() {
        let point = |hops: u32, queue: u32| {
            MatrixPoint::from(
                [("topology.hops", hops), ("radio.queue_packets", queue)]
                    .map(|(k, v)| (k.to_owned(), v.into())),
            )
        };
        let heads = heads(&[point(4, 10), point(12, 50)]);
        assert_eq!(heads, "queue_packets/h…     10/4    50/12");
    }
}
