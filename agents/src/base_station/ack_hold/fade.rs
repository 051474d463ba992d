//! The plan for a fade, and its progress.

use std::collections::VecDeque;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::FlowView;

use super::HoldTarget;
use crate::base_station::plan::{
    self, Ask, Choice, LONGEST_OUTAGE_S, LONGEST_RTO_S, Mode, Model, Plan, Stakes, Timer,
};

/// The settings of all plans.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plans {
    pub(super) mode: Mode,
    pub(super) margin: f64,
    pub(super) over: f64,
    /// The most duplicates of each held ACK.
    pub(super) duplicates: u32,
}

/// The most ACKs of a flow that a plan spreads; all further ACKs wait until the link is back. The time for a plan grows
/// with them, and a peer decides how many there are.
const MOST_PLANNED_ACKS: u32 = 1_024;

/// The finest tick of a sender's clock.
const LEAST_S: f64 = 0.001;

impl Plans {
    /// The sender's RTT and its variation. Until the flow has shown them, the link layer's RTT stands in.
    fn rtt_s(rtt: Duration, view: &FlowView) -> (f64, f64) {
        let known = view.whole.smoothed.or(view.to_mobile.smoothed);
        let rtt_s = known.unwrap_or(rtt).as_secs_f64();
        let rttvar_s = if known.is_some() { view.whole.variance.as_secs_f64() } else { rtt_s / 2.0 };
        (rtt_s.clamp(LEAST_S, LONGEST_RTO_S), rttvar_s.clamp(LEAST_S, LONGEST_RTO_S))
    }

    fn ask(&self, acks: u32, outage_s: f64, rtt: Duration, view: &FlowView) -> Option<Ask> {
        let (rtt_s, rttvar_s) = Plans::rtt_s(rtt, view);
        let acks = acks.min(MOST_PLANNED_ACKS);
        let ask = Ask::new(acks, outage_s.clamp(LEAST_S, LONGEST_OUTAGE_S), rtt_s, rttvar_s);
        ask.and_then(|ask| ask.with_margin(self.margin)).ok()
    }

    fn stakes(view: &FlowView) -> Stakes {
        Stakes { window_segments: view.window_segments().max(1), cache_segments: u32::MAX }
    }

    /// The most duplicates of an ACK that a plan may count on. Real senders restart no timer for a duplicate (RFC 6298
    /// §5.3), and their plans have none.
    fn most_duplicates(&self) -> u32 {
        match self.mode {
            Mode::Paper | Mode::Corrected => self.duplicates,
            Mode::Cumulative | Mode::Kick | Mode::Hopwise => 0,
        }
    }

    /// The outage that is planned for.
    fn outage_s(&self, outage: Duration) -> f64 {
        (outage.as_secs_f64() * self.over).min(LONGEST_OUTAGE_S)
    }

    /// Decides whether ACKs are held from now on. An ACK is expected for every second segment in flight.
    pub(super) fn worth_holding(
        &self,
        outage: Duration,
        model: Model,
        rtt: Duration,
        view: &FlowView,
    ) -> HoldTarget {
        match self.mode {
            Mode::Kick => HoldTarget::Nothing,
            Mode::Paper | Mode::Corrected | Mode::Cumulative => HoldTarget::Acks,
            Mode::Hopwise => {
                let acks = (view.window_segments() / 2).max(1);
                let ask = self.ask(acks, self.outage_s(outage), rtt, view);
                let planned = ask.map(|ask| plan::plan(self.mode, &ask, model, &Plans::stakes(view)));
                match planned.map(|plan| plan.choice) {
                    Some(Choice::Pace | Choice::Hold) => HoldTarget::Acks,
                    Some(Choice::Kick) | None => HoldTarget::Nothing,
                }
            }
        }
    }

    /// The time until which the first held ACK can wait.
    pub(super) fn patient_until(
        &self,
        now: Instant,
        model: Model,
        rtt: Duration,
        view: &FlowView,
    ) -> Instant {
        let (rtt_s, rttvar_s) = Plans::rtt_s(rtt, view);
        let rto_s = Timer::new(model.sender, rtt_s, rttvar_s).rto_s();
        now + seconds(rto_s * self.margin)
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// A planned release, and the sender's timer after it.
#[derive(Clone, Copy, Debug)]
struct Release {
    at: Instant,
    timer: Timer,
    /// It is a duplicate; the ACK itself waits on.
    is_ahead: bool,
}

/// The releases that are due.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Due {
    pub(super) packets: u32,
    /// Then a duplicate of the next ACK goes ahead of it.
    pub(super) duplicate: bool,
}

impl Due {
    /// These, then others.
    pub(super) fn and(self, then: Due) -> Due {
        Due {
            packets: self.packets + then.packets,
            duplicate: then.duplicate || self.duplicate && then.packets == 0,
        }
    }

    pub(super) fn is_some(self) -> bool {
        self.packets > 0 || self.duplicate
    }
}

/// A link that is gone.
#[derive(Debug)]
pub(super) struct Gone {
    pub(super) holds: HoldTarget,
    began: Instant,
    /// A tick after the forecast has the link back, and the end by the plan, which expects a longer fade.
    foretold: Instant,
    ends: Instant,
    /// The time from which the first plan counts.
    planned_from: Instant,
    releases: VecDeque<Release>,
    /// The duplicates of the oldest waiting ACK that went ahead of it.
    sent_ahead: u32,
    /// The sender's timer after the last release.
    timer: Option<Timer>,
}

impl Gone {
    pub(super) fn new(now: Instant, holds: HoldTarget, outage: Duration, plans: &Plans) -> Gone {
        let (releases, timer) = (VecDeque::new(), None);
        let mut gone = Gone {
            holds,
            began: now,
            foretold: now,
            ends: now,
            planned_from: now,
            releases,
            sent_ahead: 0,
            timer,
        };
        gone.forecast(now, outage, plans);
        gone
    }

    /// The fade lasts for `outage` from now on.
    pub(super) fn forecast(&mut self, now: Instant, outage: Duration, plans: &Plans) {
        self.foretold = now + outage.min(seconds(LONGEST_OUTAGE_S)) + seconds(LEAST_S);
        self.ends = now + seconds(plans.outage_s(outage));
    }

    /// Returns whether the fade outlasts its forecast while releases are planned. It is then taken to last as long
    /// again.
    pub(super) fn runs_long(&mut self, now: Instant, plans: &Plans) -> bool {
        let runs_long = self.foretold <= now && !self.releases.is_empty();
        if runs_long {
            self.forecast(now, now.since(self.began).max(seconds(LEAST_S)), plans);
        }
        runs_long
    }

    /// Plans anew for `acks` waiting ACKs. The view says when the last ACK went on.
    pub(super) fn replan(&mut self, now: Instant, acks: u32, plans: &Plans, model: Model, view: &FlowView) {
        self.releases.clear();
        let Some((from, plan, each)) = self.plan(now, acks, plans, model, view) else { return };
        match plan.choice {
            Choice::Pace => self.follow(from, &plan, each),
            Choice::Hold => {}
            Choice::Kick => self.holds = HoldTarget::Nothing,
        }
    }

    /// Plans anew for an outage that runs long, if the waiting ACKs can cover it. Otherwise the current plan stays:
    /// waits as long as a timer allows are a risk that it does not run.
    pub(super) fn spread(&mut self, now: Instant, acks: u32, plans: &Plans, model: Model, view: &FlowView) {
        if let Some((from, plan, each)) = self.plan(now, acks, plans, model, view)
            && plan.choice == Choice::Pace
            && plan.feasible
        {
            self.releases.clear();
            self.follow(from, &plan, each);
        }
    }

    /// A plan, the time from which it counts, and the duplicates of each ACK in it: as few as keep the sender's timer
    /// from running out, or the most.
    fn plan(
        &mut self,
        now: Instant,
        acks: u32,
        plans: &Plans,
        model: Model,
        view: &FlowView,
    ) -> Option<(Instant, Plan, u32)> {
        let from = view.passed_at.unwrap_or(now);
        let outage_s = self.ends.max(now).since(from).as_secs_f64();
        if self.timer.is_none() {
            self.planned_from = from;
        }
        let waited_s = from.since(self.planned_from).as_secs_f64();
        for each in 0..=plans.most_duplicates() {
            let releases = acks.saturating_mul(1 + each).saturating_sub(self.sent_ahead.min(each));
            let mut ask = plans.ask(releases, outage_s, Duration::ZERO, view)?;
            if let Some(timer) = self.timer {
                ask = ask.under_way(timer, waited_s);
            }
            let plan = plan::plan(plans.mode, &ask, model, &Plans::stakes(view));
            if plan.feasible || each == plans.most_duplicates() {
                return Some((from, plan, each));
            }
        }
        None
    }

    fn follow(&mut self, from: Instant, plan: &Plan, each: u32) {
        let mut ahead = self.sent_ahead.min(each);
        for (at_s, timer) in plan.release_at_s.iter().zip(&plan.timers) {
            let is_ahead = ahead < each;
            ahead = if is_ahead { ahead + 1 } else { 0 };
            self.releases.push_back(Release { at: from + seconds(*at_s), timer: *timer, is_ahead });
        }
    }

    pub(super) fn hold_nothing(&mut self) {
        self.holds = HoldTarget::Nothing;
        self.releases.clear();
    }

    pub(super) fn take_due(&mut self, now: Instant) -> Due {
        let mut due = Due::default();
        while let Some(release) = self.releases.front().copied().filter(|release| release.at <= now) {
            self.releases.pop_front();
            self.timer = Some(release.timer);
            if release.is_ahead {
                self.sent_ahead += 1;
            } else {
                self.sent_ahead = 0;
                due.packets += 1;
            }
            // A duplicate that is due together with its ACK adds nothing.
            due.duplicate = release.is_ahead;
        }
        due
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.releases.front().map(|release| release.at.min(self.foretold))
    }
}
