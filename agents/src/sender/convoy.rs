//! `convoy`: sends what a radio puts into an aggregate at once, and one aggregate after the other.
//!
//! Source: our own; `docs/notebook/edge.md` has the rule and what it brings. The receiver agent `convoy` obeys it.
//!
//! Rule: segments leave in bursts, back to back. Each carries the number of segments that are still to come before an
//! ACK is due. A survey is a burst of zeros: the receiver acknowledges each run of segments that arrive together. The
//! first bursts are surveys, of 10 segments and then of twice the longest run, at most 96, until two bring no longer
//! run. Three surveys in a row that lose a segment do not fit into a queue: the next ones have at most three quarters
//! of their segments, and an eighth more after each survey without a loss. A survey without a run of four counts as one
//! in doubt, and as three if all of its segments came alone. More than eight in doubt make the flow one of `train`.
//! Later A is the middle one of the last five surveys' longest runs. They have 2 A segments and come after 1, 2, 4
//! ACKs, in the end after each 64th. Whole: a burst has A segments, and the next one leaves when its ACK is in. Paced:
//! a burst has .4 A segments, and the next burst leaves a gap later. The bursts of 100 ms are a group and share an ACK;
//! a group has at most ten bursts and 255 segments. The queue is what a group's round trip has above the least one of
//! 10 s, in segments at the gap. Each ACK changes the gap by .03 (queue − A)/A of itself, at most 1 % down and 10 % up.
//! It begins near what a whole aggregate carried, and is .93 of itself after each ACK until A segments queue. That
//! queue takes two such steps back, and so does each loss before. Other losses take nothing. All flows between two
//! hosts together have in flight a group and a burst, or what the empty path holds and a burst. A flow begins with
//! whole bursts. Over more than three hops it tries the other way after 1 s, 32 s and 512 s, for 1 s, and keeps paced
//! bursts if they bring 5 % more. It does so at once if its way comes to bring 5 % less than the other one last did. A
//! second that brings 5 % more than the figure before it decides nothing, and neither does the first one of a way. Over
//! up to three hops it tries paced bursts behind a wire alone; a slow host may stand for the wire. A wire shows where
//! an aggregate takes the air for less than .87 of its mean round trip since the last survey, or for less than .6 if
//! data came from the peer since then. Its air time is what a survey's further segments add to that mean, in parts of
//! A, but at least what the mean has above the least round trip of any segment. The first gap is half of this air time.
//! A group beside what the path holds is in flight. Surveys come as in the beginning again once A segments queue. All
//! flows between two hosts share this knowledge and take turns, each of them for a burst or for a group.
//!
//! Deviations: with a peer that takes no requests for ACKs after a number of segments, a flow is one of `cubic`: one of
//! `train` carries less over radios that aggregate. The RTO is at least 300 ms then, too, as with `train`: it is set
//! before the peer is known.

mod aggregate;
mod comparison;
mod constants;
mod paced;
mod path_state;
mod wire;

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use hopwise_core::agent::{
    AckRequest, AckRequestForm, Acked, Allowance, CWND_GAUGE, DataNote, EnsembleMember, Loss, Recovered,
    Recovering, Reduction, SendView, SenderAgent, Sent, SentKind, Tunables, Turn,
};
use hopwise_core::{Instant, Seq, ignores};

use super::cubic::Cubic;
use super::train::{SharedPath, Train};
use super::window::{is_without_flight, mss_of};
use crate::descriptor::{Descriptor, Make};
use crate::param::{Args, Form, ON, Switch, params};
use crate::truncate;
use comparison::Regime;
use constants::FIRST_SEGMENTS;
pub(crate) use path_state::PathState;
use path_state::{Kind, Plan, Survey};

params! {
    /// send bursts in turn with the other flows of this host to the same peer
    turns: Switch = Form::Switch.is(ON),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "convoy",
    rule: "sends a whole aggregate for each ACK, or parts of them at a gap that follows their RTT; else as `train`",
    source: "our own, see `docs/notebook/edge.md`",
    params: Params::TABLE,
    shorthand: None,
    make: Make::Member(|args, shared| Box::new(Convoy::new(args, shared))),
};

/// A burst that has left waits for its ACK. The connection bounds how long.
const UNTIL_ACKED: Duration = Duration::from_secs(3600);

/// Groups under way that are remembered: more are a queue in which further round trips tell nothing new.
const MOST_ASKED: usize = 64;

/// The first segment of a group waits for the ACK of its last one, behind a queue.
const LEAST_RTO: Duration = Duration::from_millis(300);

/// The agent that sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Driver {
    /// The radio aggregates, or may do so.
    Own,
    /// It does not.
    Train,
    /// The peer cannot be asked.
    Cubic,
}

/// The burst under way, or the last one of this flow.
#[derive(Clone, Copy, Debug)]
struct Burst {
    plan: Plan,
    began: Seq,
    end: Seq,
    /// The bursts of the group that shares an ACK, its number among them, and the beginning of the group.
    parts: u32,
    nth: u32,
    group: Seq,
    sent: u32,
    lost: bool,
}

#[derive(Debug)]
pub(crate) struct Convoy {
    takes_turns: bool,
    shared: SharedPath,
    train: Box<Train>,
    cubic: Box<Cubic>,
    /// The handshake's round trip, with which `train` begins.
    handshake: Option<Duration>,
    burst: Option<Burst>,
    survey: Option<Survey>,
    /// The arrivals of data from the peer until the last survey.
    data_arrivals: u32,
    /// The ends of bursts and groups under way whose round trips show the path.
    asked: VecDeque<Seq>,
    last_sent: Option<Instant>,
    /// The end of the data that has left.
    newest: Option<Seq>,
    newest_mss: u32,
    /// The part of the shared count of bytes in flight that is of this flow.
    counted: u64,
}

impl Drop for Convoy {
    fn drop(&mut self) {
        self.count_flight(0);
    }
}

impl Convoy {
    fn new(args: &Args, shared: SharedPath) -> Convoy {
        let takes_turns = Params::of(args).turns == Switch::On;
        Convoy {
            takes_turns,
            train: Box::new(Train::standard(args.profile, takes_turns, shared.clone())),
            cubic: Box::new(Cubic::standard(args.profile)),
            shared,
            handshake: None,
            burst: None,
            survey: None,
            data_arrivals: 0,
            asked: VecDeque::new(),
            last_sent: None,
            newest: None,
            newest_mss: 0,
            counted: 0,
        }
    }

    /// Tells the other flows how much of this one is in flight.
    fn count_flight(&mut self, bytes: u64) {
        let before = mem::replace(&mut self.counted, bytes);
        self.shared.path(|path| path.in_flight = path.in_flight + bytes - before);
    }

    fn driver(&self, view: &SendView<'_>) -> Driver {
        match (view.ack_requests, self.shared.path(|path| path.kind)) {
            (Some(AckRequestForm::After), Kind::Singles) => Driver::Train,
            (Some(AckRequestForm::After), _) => Driver::Own,
            _ => Driver::Cubic,
        }
    }

    /// The burst that takes the next new segment: the one under way, or one that begins with it.
    fn next_burst(&self, view: &SendView<'_>) -> Burst {
        let last = self.burst.filter(|burst| burst.began <= view.snd_nxt);
        if let Some(burst) = last.filter(|burst| burst.is_open(view)) {
            return burst;
        }
        // A group that has begun is ended, since only its last segment requests an ACK.
        let (plan, parts, nth, group) = match last.filter(|last| last.nth + 1 < last.parts) {
            Some(last) => (last.plan, last.parts, last.nth + 1, last.group),
            None => {
                let plan = self.shared.path(|path| path.plan());
                (plan, Convoy::parts(&plan, view), 0, view.snd_nxt)
            }
        };
        let bytes = u64::from(plan.segments) * mss_of(view);
        let end = view.snd_nxt + u32::try_from(bytes).unwrap_or(u32::MAX / 2);
        Burst { plan, began: view.snd_nxt, end, parts, nth, group, sent: 0, lost: false }
    }

    /// The bursts that share an ACK: no more than the peer's window has room for.
    fn parts(plan: &Plan, view: &SendView<'_>) -> u32 {
        (view.snd_wnd / (plan.segments * view.mss).max(1)).clamp(1, plan.parts)
    }

    /// The time from which on the next new segment may leave.
    fn new_from(&self, burst: &Burst, view: &SendView<'_>) -> Instant {
        let Some(last) = self.last_sent else { return Instant::ZERO };
        match burst.plan.regime {
            _ if burst.began != view.snd_nxt => Instant::ZERO,
            Regime::Whole if view.snd_una == view.snd_nxt => Instant::ZERO,
            Regime::Whole => last + UNTIL_ACKED,
            // Bursts of other flows keep the gap, too, so that it holds also with nothing of this flow in flight.
            Regime::Paced => self.shared.path(|path| path.paced.next),
        }
    }

    fn window(&self, burst: &Burst, view: &SendView<'_>) -> u64 {
        let (segments, others) = match burst.plan.regime {
            Regime::Whole => (burst.plan.segments, 0),
            Regime::Paced => self.shared.path(|path| (path.paced.window(), path.in_flight - self.counted)),
        };
        (u64::from(segments.max(2)) * mss_of(view)).saturating_sub(others)
    }

    fn leave(&mut self, sent: &Sent, view: &SendView<'_>) {
        self.count_flight(view.flight.bytes);
        self.last_sent = Some(sent.now);
        self.newest_mss = view.mss;
        // A tail probe may be new data.
        let is_new = sent.kind == SentKind::New || self.newest.is_some_and(|newest| newest < view.snd_nxt);
        self.newest = Some(view.snd_nxt);
        if !is_new {
            return;
        }
        let mut before = *view;
        before.snd_nxt = view.snd_nxt - u32::try_from(sent.carried.bytes).unwrap_or(0);
        let mut burst = self.next_burst(&before);
        if burst.began == before.snd_nxt && burst.plan.regime == Regime::Paced {
            self.shared.path(|path| path.paced.leave(sent.now, burst.plan.segments));
        }
        burst.sent += sent.carried.segments;
        if burst.plan.is_survey {
            let (began, end, planned) = (burst.began, burst.end, burst.plan.segments);
            self.shared.path(|path| path.aggregate.ask());
            let longest =
                self.survey.filter(|survey| survey.began == began).map_or(0, |survey| survey.longest);
            self.survey = Some(Survey { began, end, planned, sent: burst.sent, longest });
        } else if view.snd_nxt == burst.end && burst.nth + 1 == burst.parts {
            // The round trip of a whole burst's last segment shows the path.
            if burst.sent == burst.plan.segments && self.asked.len() < MOST_ASKED {
                self.asked.push_back(burst.end);
            }
        }
        self.burst = Some(burst);
    }

    fn hear(&mut self, acked: &Acked, view: &SendView<'_>) {
        self.count_flight(view.flight.bytes);
        self.shared.path(|path| {
            path.wire.on_least(view.path.rtt.min);
            path.on_bytes(acked.now, acked.newly.bytes + acked.sacked.bytes);
        });
        self.hear_survey(acked, view);
        let Some(burst) = self.burst else { return };
        let is_asked = self.take_asked(view.snd_una) == Some(view.snd_una);
        if let Some(round_trip) = acked.rtt.filter(|_| is_asked && !burst.lost) {
            self.shared.path(|path| path.on_ack(acked.now, burst.plan.regime, round_trip));
        }
        if view.app_limited && view.snd_una == view.snd_nxt {
            self.shared.path(|path| path.comparison.on_break());
        }
    }

    /// The last of these ends that is acknowledged.
    fn take_asked(&mut self, una: Seq) -> Option<Seq> {
        let mut last = None;
        while self.asked.front().is_some_and(|end| *end <= una) {
            last = self.asked.pop_front();
        }
        last
    }

    fn hear_survey(&mut self, acked: &Acked, view: &SendView<'_>) {
        let Some(survey) = &mut self.survey else { return };
        let before = view.snd_una - u32::try_from(acked.newly.bytes).unwrap_or(0);
        if survey.began <= before && view.snd_una <= survey.end {
            survey.longest = survey.longest.max(acked.newly.segments + acked.sacked.segments);
        }
        // The data may have run out before the survey's end.
        let is_over = survey.end <= view.snd_una || view.snd_una == view.snd_nxt;
        if let Some(survey) = self.survey.take_if(|_| is_over) {
            let before = mem::replace(&mut self.data_arrivals, view.path.data_arrivals);
            let is_one_way = before == view.path.data_arrivals;
            self.shared.path(|path| path.on_survey(&survey, acked, view.path, is_one_way));
        }
    }

    /// Whole segments that leave before an ACK is due, from the one at `first` on.
    fn left(&self, first: Seq, view: &SendView<'_>) -> u32 {
        let mss = view.mss.max(1);
        let burst = self.next_burst(view);
        let end = burst.end + (burst.parts - 1 - burst.nth) * burst.plan.segments * mss;
        let unsent = u32::try_from(view.unsent.bytes).unwrap_or(u32::MAX / 2);
        let ready = (view.snd_nxt + unsent).min(view.snd_una + view.snd_wnd);
        let after = first + mss.min(unsent);
        1 + end.bytes_since(after).div_ceil(mss).min(ready.bytes_since(after) / mss)
    }

    /// The view with which a flow of `train` begins: it takes the latest round trip for the handshake's.
    fn as_begun<R>(&mut self, view: &SendView<'_>, call: impl FnOnce(&mut Train, &SendView<'_>) -> R) -> R {
        let mut path = view.path.clone();
        path.rtt.latest = self.handshake.or(path.rtt.latest);
        let mut begun = *view;
        begun.path = &path;
        let is_begun = self.train.has_begun();
        call(&mut self.train, if is_begun { view } else { &begun })
    }
}

impl Burst {
    /// Returns whether further segments belong to it: it has room, and not all that left in it has arrived.
    fn is_open(&self, view: &SendView<'_>) -> bool {
        let has_drained = self.began < view.snd_nxt && view.snd_una == view.snd_nxt;
        view.snd_nxt < self.end && !has_drained
    }
}

impl SenderAgent for Convoy {
    ignores!(on_dup_ack, on_path);

    fn tune(&self, tunables: &mut Tunables) {
        self.train.tune(tunables);
        tunables.rto_min = tunables.rto_min.max(LEAST_RTO);
    }

    hopwise_core::needs!(ack_after, rtt);

    fn on_sent(&mut self, sent: &Sent, view: &SendView<'_>) {
        self.handshake = self.handshake.or(view.path.rtt.latest);
        match self.driver(view) {
            Driver::Own => self.leave(sent, view),
            Driver::Train => self.as_begun(view, |train, view| train.on_sent(sent, view)),
            Driver::Cubic => self.cubic.on_sent(sent, view),
        }
    }

    fn on_acked(&mut self, acked: &Acked, view: &SendView<'_>) {
        match self.driver(view) {
            Driver::Own => self.hear(acked, view),
            Driver::Train => self.train.on_acked(acked, view),
            Driver::Cubic => self.cubic.on_acked(acked, view),
        }
    }

    fn on_loss(&mut self, loss: &Loss, view: &SendView<'_>) -> Option<Reduction> {
        match self.driver(view) {
            Driver::Train => return self.train.on_loss(loss, view),
            Driver::Cubic => return self.cubic.on_loss(loss, view),
            Driver::Own => {}
        }
        self.count_flight(view.flight.bytes);
        if let Some(burst) = self.burst.as_mut().filter(|_| !is_without_flight(loss)) {
            burst.lost = true;
            if let Some(survey) = self.survey.take() {
                self.shared.path(|path| path.aggregate.on_lost(survey.planned));
            }
            if burst.plan.regime == Regime::Paced {
                self.shared.path(|path| path.paced.step_back());
            }
        }
        Some(Reduction { ssthresh: self.window(&self.next_burst(view), view) })
    }

    fn on_recovered(&mut self, end: Recovered, view: &SendView<'_>) {
        match self.driver(view) {
            Driver::Own => {}
            Driver::Train => self.train.on_recovered(end, view),
            Driver::Cubic => self.cubic.on_recovered(end, view),
        }
    }

    fn narrow(&self, now: Instant, view: &SendView<'_>, so_far: Allowance) -> Allowance {
        match self.driver(view) {
            Driver::Train => return self.train.narrow(now, view, so_far),
            Driver::Cubic => return self.cubic.narrow(now, view, so_far),
            Driver::Own => {}
        }
        let burst = self.next_burst(view);
        let mut flight = self.window(&burst, view);
        if burst.began != view.snd_nxt {
            // A burst that has begun leaves as a whole.
            flight = flight.max(view.flight.bytes + u64::from(burst.end.bytes_since(view.snd_nxt)));
        }
        Allowance {
            flight_bytes: so_far.flight_bytes.min(flight),
            new_from: so_far.new_from.max(self.new_from(&burst, view)),
            burst_bytes: so_far.burst_bytes.min(view.mss.max(1)),
            ..so_far
        }
    }

    fn note(&self, first: Seq, view: &SendView<'_>, allowed: &Allowance, note: &mut DataNote) {
        match self.driver(view) {
            Driver::Train => return self.train.note(first, view, allowed, note),
            Driver::Cubic => return self.cubic.note(first, view, allowed, note),
            Driver::Own => {}
        }
        // A retransmission is acknowledged with all that it releases.
        let is_asked = first < view.snd_nxt || self.next_burst(view).plan.is_survey;
        let left = if is_asked { 0 } else { self.left(first, view) };
        note.ack_request = Some(AckRequest::After(u8::try_from(left).unwrap_or(u8::MAX)));
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        let path = self.shared.path(|path| *path);
        if path.kind == Kind::Singles {
            return self.train.gauges(sink);
        }
        let plan = path.plan();
        let segments = if plan.regime == Regime::Paced { path.paced.window() } else { plan.segments };
        if self.newest_mss > 0 {
            sink(CWND_GAUGE, u64::from(segments) * u64::from(self.newest_mss));
        }
        sink("aggregate_segments", path.aggregate.segments().into());
        sink("burst_segments", plan.segments.into());
        sink("gap_us", truncate::to_u64(path.paced.gap_s * 1e6));
        sink("least_rtt_us", truncate::to_u64(path.paced.least_s() * 1e6));
    }
}

impl EnsembleMember for Convoy {
    /// A few segments leave without a turn, and so does what a timeout leaves to be probed.
    fn wanted_turn(&self, now: Instant, view: &SendView<'_>) -> Option<Seq> {
        match self.driver(view) {
            Driver::Own => {}
            Driver::Train => return self.train.wanted_turn(now, view),
            Driver::Cubic => return None,
        }
        let burst = self.next_burst(view);
        let is_little = u64::from(burst.sent) * mss_of(view) + view.unsent.bytes
            <= u64::from(FIRST_SEGMENTS) * mss_of(view);
        let is_probing = view.recovering == Some(Recovering::AfterTimeout);
        if !self.takes_turns || is_little || is_probing {
            return None;
        }
        // A whole burst has the turn until its ACK is in.
        let last = self.burst.filter(|last| last.plan.regime == Regime::Whole && view.snd_una < view.snd_nxt);
        Some(last.map_or(burst.group, |last| last.began))
    }

    fn share(&mut self, view: &SendView<'_>) -> bool {
        match self.driver(view) {
            // The others' ACKs move the gap of the flow that has the turn.
            Driver::Own => view.turn != Turn::Free,
            Driver::Train => self.train.share(view),
            Driver::Cubic => false,
        }
    }

    fn begin(&mut self) {
        self.train.begin();
    }
}

#[cfg(test)]
mod tests;
