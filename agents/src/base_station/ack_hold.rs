//! `ack-hold`: holds the mobile's ACKs when its link is about to fade, and releases them so that the sender waits.
//!
//! Source: Bhutani, A Near-Optimal Scheme for TCP ACK Pacing to Maintain Throughput in Wireless Networks (ack
//! holding).
//!
//! Rule: while the link is going down, the mobile's ACKs are held; data for it goes on and is copied. When the link is
//! gone, data is cached up to the window that the mobile has promised. The held ACKs are then released by a plan, so
//! that the sender's timer never runs out. When the link is back, the remaining ACKs go to the sender and the cached
//! data to the mobile, both in order. If no ACK remained, the newest is repeated. In mode `kick` no ACK is held: the
//! cache and that last step remain. In mode `hopwise` the sender's own rules decide which of the two loses less. An ACK
//! with data, and every flag that may not wait, takes the held ACKs along.
//!
//! Deviations: the printed search is mode `paper` alone, since it stops where the sender times out at once. An outage
//! that lasts longer than its forecast is taken to last as long again. The remaining ACKs, for which there is `over`,
//! are planned for that time if they can cover it. If none remains, a kick answers the outage. The paper leaves out the
//! time between the forecast and the fade. If the forecast says when the link will be gone, one ACK is released before
//! each end of the sender's timer until then. A link that is not gone by then, or within `patience`, gives all ACKs
//! back before the sender would time out. With `guard=off` they wait for it as in the paper, at most `patience`. The
//! paper allows two duplicates of each held ACK where its constraints need them, and does not say how they are spread.
//! Here all ACKs have as few as the plan needs, at most `duplicates`, right before the ACK itself. In the paper, data
//! that comes while the link is out may move the plan by its timestamps; here ACKs of the mobile and news of the link
//! do.

mod fade;
mod learnt;

use std::time::Duration;

use hopwise_core::agent::{
    BaseStationAgent, Because, Fate, FlowView, Kind, LinkNews, Order, Orders, Passing, Requires, Says, Side,
};
use hopwise_core::{Instant, Seq};

use super::plan::{Mode, Sender};
use crate::descriptor::{Descriptor, Make};
use crate::param::{Args, Form, ON, Switch, params};
use fade::{Gone, Plans};
use learnt::{Learnt, SenderTraits};

const AUTO: Form = Form::Choice(&["auto", "on", "off"]);
const SENDERS: &[&str] = &["auto", "textbook", "rfc6298", "linux", "freebsd"];

params! {
    /// plan for the release of held ACKs
    mode: &'static str = Form::Choice(Mode::NAMES).is(4),
    /// which part of an RTO an ACK waits
    margin: f64 = Form::ratio(100, 1_000).is(800),
    /// a forecast outage is taken to be so many times as long
    over: f64 = Form::ratio(1_000, 10_000).is(1_200),
    /// longest time from the first sign of a fade until the link is gone
    patience: Duration = Form::millis(10, 60_000).is(2_000),
    /// give held ACKs back before the sender's timer ends, if the link is not gone by then
    guard: Switch = Form::Switch.is(ON),
    /// duplicates of each held ACK that may leave before it, in modes paper and corrected, if the sender's timer would
    /// run out without; the paper allows 2
    duplicates: u32 = Form::count("duplicates", 0, 2).is(0),
    /// system whose retransmission timer the fixed end is taken to have; auto: judged by its SYN and behaviour
    sender: &'static str = Form::Choice(SENDERS).is(0),
    /// the fixed end sends tail loss probes
    tlp: &'static str = AUTO.is(0),
    /// the fixed end finds lost retransmissions by time (RACK)
    rack: &'static str = AUTO.is(0),
    /// the fixed end undoes one needless timeout (F-RTO, Eifel)
    frto: &'static str = AUTO.is(0),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "ack-hold",
    rule: "holds the mobile's ACKs through a fade and caches data for it, or says the newest ACK again after it",
    source: "Bhutani, ACK holding",
    params: Params::TABLE,
    shorthand: None,
    make: Make::BaseStation(|args| AckHold::new(args).into()),
};

#[derive(Clone, Copy, Debug, PartialEq)]
enum HoldTarget {
    Acks,
    Nothing,
}

/// The link layer's forecast for a link that is going down.
#[derive(Clone, Copy, Debug)]
struct Down {
    rtt: Duration,
    outage: Duration,
    within: Duration,
}

#[derive(Debug)]
enum FadePhase {
    Clear,
    /// The link still works. Until `until`, copies are kept, and ACKs wait if `holds` says so.
    Going {
        holds: HoldTarget,
        rtt: Duration,
        outage: Duration,
        until: Instant,
        /// The time by which the forecast has the link gone, and the end of patience.
        expected: Instant,
        latest: Instant,
    },
    Gone(Gone),
}

/// Invariant 1: ACKs wait only in `Going` with `HoldTarget::Acks` and in `Gone`.
#[derive(Debug)]
pub(crate) struct AckHold {
    plans: Plans,
    patience: Duration,
    guard: Switch,
    phase: FadePhase,
    learnt: Learnt,
}

/// Reads a switch; `None` stands for `auto`, which is found out.
fn said(switch: &str) -> Option<bool> {
    match switch {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

impl AckHold {
    fn new(args: &Args) -> AckHold {
        let set = Params::of(args);
        let mode = Mode::named(set.mode).unwrap_or(Mode::Hopwise);
        AckHold {
            plans: Plans { mode, margin: set.margin, over: set.over, duplicates: set.duplicates },
            patience: set.patience,
            guard: set.guard,
            phase: FadePhase::Clear,
            learnt: Learnt::new(SenderTraits {
                sender: Sender::named(set.sender),
                tlp: said(set.tlp),
                rack: said(set.rack),
                frto: said(set.frto),
            }),
        }
    }

    fn take_mobile(&mut self, passing: &Passing<'_>, view: &FlowView, orders: &mut Orders) -> Fate {
        if let (Some(acked), true) = (view.acked, view.cached_packets > 0) {
            orders.give(Order::Forget { below: acked });
        }
        let Kind::Ack(says) = passing.kind else { return Fate::Forward };
        if says == Says::Less {
            return Fate::Forward;
        }
        match &mut self.phase {
            FadePhase::Going { holds: HoldTarget::Acks, .. } => Fate::Hold(Because::GoingDown),
            FadePhase::Gone(gone) if gone.holds == HoldTarget::Acks => {
                let model = self.learnt.model(view);
                gone.replan(passing.now, view.held_acks + 1, &self.plans, model, view);
                Fate::Hold(Because::Gone)
            }
            _ => Fate::Forward,
        }
    }

    fn take_fixed(&mut self, passing: &Passing<'_>, view: &FlowView) -> Fate {
        // Data beyond the window that the mobile has promised is not cached: no honest sender sends it.
        let is_promised = view.promised.is_none_or(|edge| passing.end() <= edge);
        match &mut self.phase {
            FadePhase::Going { .. } if passing.len > 0 && is_promised => Fate::Copy(Because::GoingDown),
            FadePhase::Gone(_) if is_promised => {
                self.learnt.see_in_fade(passing, view);
                Fate::Hold(Because::Gone)
            }
            _ => Fate::Forward,
        }
    }

    fn on_going_down(&mut self, now: Instant, down: Down, view: &FlowView) {
        let Down { rtt, outage, within } = down;
        let model = self.learnt.model(view);
        match &mut self.phase {
            FadePhase::Gone(gone) => {
                gone.forecast(now, outage, &self.plans);
                if gone.holds == HoldTarget::Acks {
                    gone.replan(now, view.held_acks, &self.plans, model, view);
                }
            }
            FadePhase::Going { outage: known, expected, .. } => (*known, *expected) = (outage, now + within),
            FadePhase::Clear => {
                let holds = self.plans.worth_holding(outage, model, rtt, view);
                let latest = now + self.patience;
                let until = match holds {
                    HoldTarget::Acks if self.guard == Switch::On => {
                        self.plans.patient_until(now, model, rtt, view).min(latest)
                    }
                    HoldTarget::Acks | HoldTarget::Nothing => latest,
                };
                let expected = now + within;
                self.phase = FadePhase::Going { holds, rtt, outage, until, expected, latest };
            }
        }
    }

    fn on_gone(&mut self, now: Instant, view: &FlowView, orders: &mut Orders) {
        let (holds, outage) = match self.phase {
            // The fade is sudden: nothing is held, and no forecast says how long it lasts.
            FadePhase::Clear => (HoldTarget::Nothing, Duration::ZERO),
            FadePhase::Going { holds, outage, .. } => (holds, outage),
            FadePhase::Gone(_) => return,
        };
        self.learnt.begin_fade(now, view);
        let mut gone = Gone::new(now, holds, outage, &self.plans);
        if holds == HoldTarget::Acks {
            let model = self.learnt.model(view);
            gone.replan(now, view.held_acks, &self.plans, model, view);
            if gone.holds == HoldTarget::Nothing {
                orders.release_all(Side::Mobile, Because::Gone);
            }
        }
        self.phase = FadePhase::Gone(gone);
    }

    fn on_up(&mut self, now: Instant, view: &FlowView, orders: &mut Orders) {
        let phase = std::mem::replace(&mut self.phase, FadePhase::Clear);
        if view.held_acks > 0 {
            orders.release_all(Side::Mobile, Because::Up);
        }
        match phase {
            FadePhase::Gone(_) => {
                orders.release_all(Side::Fixed, Because::Up);
                if view.held_acks == 0 {
                    orders.give(Order::Repeat { because: Because::Up });
                }
                self.learnt.end_fade(now, view);
            }
            FadePhase::Going { .. } => forget_all(view.data_end, orders),
            FadePhase::Clear => {}
        }
    }
}

fn forget_all(data_end: Option<Seq>, orders: &mut Orders) {
    if let Some(below) = data_end {
        orders.give(Order::Forget { below });
    }
}

impl BaseStationAgent for AckHold {
    fn requires(&self) -> Requires {
        Requires { timestamps: true, beginning: false }
    }

    fn on_segment(&mut self, passing: &Passing<'_>, view: &FlowView, orders: &mut Orders) -> Fate {
        match passing.from {
            Side::Mobile => self.take_mobile(passing, view, orders),
            Side::Fixed => self.take_fixed(passing, view),
        }
    }

    fn on_link(&mut self, now: Instant, news: LinkNews, view: &FlowView, orders: &mut Orders) {
        match news {
            LinkNews::GoingDown { rtt, outage, within } => {
                self.on_going_down(now, Down { rtt, outage, within }, view);
            }
            LinkNews::Gone => self.on_gone(now, view, orders),
            LinkNews::Up => self.on_up(now, view, orders),
        }
    }

    fn on_deadline(&mut self, now: Instant, view: &FlowView, orders: &mut Orders) {
        self.learnt.on_deadline(now, view);
        match &mut self.phase {
            FadePhase::Gone(gone) => {
                let mut due = gone.take_due(now);
                if gone.runs_long(now, &self.plans) {
                    let mut left = *view;
                    left.held_acks = view.held_acks.saturating_sub(due.packets);
                    left.passed_at = if due.is_some() { Some(now) } else { view.passed_at };
                    gone.spread(now, left.held_acks, &self.plans, self.learnt.model(view), &left);
                    due = due.and(gone.take_due(now));
                }
                let because = Because::Planned;
                if due.packets > 0 {
                    orders.give(Order::Release { of: Side::Mobile, packets: due.packets, because });
                }
                if due.duplicate {
                    orders.give(Order::Duplicate { because });
                }
            }
            FadePhase::Going { holds, rtt, until, expected, latest, .. } if *until <= now => {
                if *holds == HoldTarget::Acks && now <= *expected && now < *latest {
                    // One ACK restarts the sender's timer.
                    if view.held_acks > 0 {
                        let (of, because) = (Side::Mobile, Because::Planned);
                        orders.give(Order::Release { of, packets: 1, because });
                    }
                    let model = self.learnt.model(view);
                    *until = self.plans.patient_until(now, model, *rtt, view).min(*latest);
                } else if *holds == HoldTarget::Acks {
                    orders.release_all(Side::Mobile, Because::FalseAlarm);
                    // The fade may still come: copies are kept for a while, but ACKs no longer wait.
                    (*holds, *until) = (HoldTarget::Nothing, now + self.patience);
                } else {
                    forget_all(view.data_end, orders);
                    self.phase = FadePhase::Clear;
                }
            }
            _ => {}
        }
    }

    fn on_overflow(&mut self, _now: Instant) {
        match &mut self.phase {
            FadePhase::Gone(gone) => gone.hold_nothing(),
            FadePhase::Going { holds, .. } => *holds = HoldTarget::Nothing,
            FadePhase::Clear => {}
        }
    }

    fn takes_back(&self) -> bool {
        !matches!(self.phase, FadePhase::Clear)
    }

    fn deadline(&self) -> Option<Instant> {
        let of_phase = match &self.phase {
            FadePhase::Clear => None,
            FadePhase::Going { until, .. } => Some(*until),
            FadePhase::Gone(gone) => gone.next(),
        };
        match (of_phase, self.learnt.deadline()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        let phase = match &self.phase {
            FadePhase::Clear => 0,
            FadePhase::Going { .. } => 1,
            FadePhase::Gone(_) => 2,
        };
        sink("phase", phase);
        self.learnt.gauges(sink);
    }
}

#[cfg(test)]
mod tests;
