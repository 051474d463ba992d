//! `train`: sends trains of segments at a gap that it learns, and waits for one ACK at the end of each.
//!
//! Source: our own; `docs/train.md` says why it works. The receiver agent `train` obeys it.
//!
//! Rule: a train has as many segments as leave in `span` at the gap, at most `most`. In the beginning it has at most
//! twice the segments of the last train. Each segment carries the number of segments that are still to come, itself
//! included. The last one carries 1, which requests an ACK; if the peer knows only ACK-rate requests, R=0 does. A loss
//! takes no window: lost segments leave again within their train, at the gap. Least is the least round trip of a
//! train's last segment, or 2.5 handshakes if that is less. A queue is what this round trip has above least, counted in
//! gaps. The first train has four segments at 0.6 handshakes; if there was none, one segment, whose round trip is the
//! gap. Each train multiplies the gap by 0.75, or by 0.5 if least is above 8 gaps. A queue above 4 or a loss ends the
//! beginning, and adds the queue's time, shared out over the train's segments. From then on each train adds 0.3 of what
//! the queue has above q, shared out likewise, but 15 % at the most. A loss with such a queue adds 3 %, any other loss
//! nothing. Four regimes say when the next train leaves, what q is, and how much a train may take away: Waiting: when
//! the ACK is in. Q is (2.2 gap/least)², at least 0.5 or an 80th of the train, at most 6; 1.5 % and q %. Flowing: at
//! once, with two trains in flight. Q is 16; 10 %. A block of trains (8 and 2 s) tries it after 6 blocks, and it stays
//! if it brings 2 % more. A trial that fails doubles the blocks, up to 96. Over more than three hops it is tried if
//! most of some 8 trains meet a queue above 0.5, over fewer if least is above 0.9 gaps. There it stays if it brings
//! anything; else waiting is tried likewise, and comes back once more than a fifth of some 8 trains lose something.
//! Filling: flowing while least is above 8 gaps, from the beginning on; up to three hops 6 after it. Q is 16, after a
//! loss what was queued, and 0.1 more for each train without one. Beside a train 1.25 times the path's content is in
//! flight, or another train if that is more. A train is at most a third of the peer's window. If it is the part p of
//! what a round trip holds, it adds p² of the step above and p of the queue's growth, and p of a step in the beginning.
//! Sharing, with `compete`: once 8 trains in a row meet more than 16 segments of other flows, until 8 meet fewer than
//! 8. In flight are 0.8 times as many as the others have queued. A segment there counts as least, or from five hops on
//! as four hops' part of it. With `turns`, the flows of a host to one peer send their trains in turn and know their
//! path together (RFC 9040), as one flow would. The next flow's train leaves when this one would send its own. Flows
//! with other parameters take turns, too, but know their own path. A flow waits for no turn, and no flow for it, if it
//! has four segments or fewer, takes a share, probes after a timeout, has a peer that takes no requests, or can send no
//! more without a pause.
//!
//! Deviations: a peer that takes no requests acknowledges by its own rule. A window of one train then slides over the
//! data, at an unchanged gap. After a timeout one segment leaves and requests an ACK, which shows what else is lost.
//! The retransmission timer doubles from the fourth timeout in a row on (RFC 6298 §5.5: from the first). It is as long
//! as a train and its ACK already, and a link that fades takes several segments in a row.

mod constants;
mod gap;
mod length;
mod pause;
mod together;

use std::time::Duration;

use hopwise_core::agent::{
    AckRequest, AckRequestForm, Acked, Allowance, CWND_GAUGE, Count, DataNote, EnsembleMember, Loss,
    LossKind, Recovered, Reduction, SendView, SenderAgent, Sent, SentKind, Tunables, Turn,
};
use hopwise_core::{Instant, Seq, ignores};

use super::window::{is_without_flight, mss_of};
use crate::descriptor::{Descriptor, Make};
use crate::param::{Args, Form, ON, Profile, Switch, params};
use crate::truncate;
use constants::{FIRST_GAP, FIRST_SEGMENTS, HELD_TIMEOUTS, Part, WORTH};
use gap::{Gap, TrainOutcome};
use pause::{Pause, Pausing};
pub(crate) use together::SharedPath;
pub(crate) use together::SharedPaths;
use together::{Member, TrainReport};

params! {
    /// the longest train; a receiver holds its ACK for as long
    span: Duration = Form::millis(1, 480).is(460),
    /// the most segments of a train
    most: u32 = Form::count("segments", 1, 65_535).is(64),
    /// take a share by force where others keep a queue
    compete: Switch = Form::Switch.is(ON),
    /// send trains in turn with the other flows of this host to the same peer
    turns: Switch = Form::Switch.is(ON),
    /// leave out one mechanism, so that what it brings can be measured
    without: Part = Part::FORM.is(0),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "train",
    rule: "sends trains at a gap that follows the RTT of their last segment, one ACK each, one in flight",
    source: "our own, see `docs/train.md`",
    params: Params::TABLE,
    shorthand: None,
    make: Make::Member(|args, shared| Box::new(Train::new(args, shared))),
};

/// Sequence numbers compare correctly within 2 GiB; this is half of that.
const MOST_AHEAD: u32 = 1 << 30;
/// A train that has left waits for its ACK. The connection bounds how long.
const UNTIL_ACKED: Duration = Duration::from_secs(3600);
/// The largest R of an ACK-rate request.
const MOST_RATE: u32 = 127;

#[derive(Debug)]
pub(crate) struct Train {
    without: Part,
    span_s: f64,
    most: u32,
    takes_turns: bool,
    gap: Gap,
    pause: Pause,
    /// The length of a train in segments.
    segments: u32,
    /// The beginning of the train under way; `None` before the first one.
    began: Option<Seq>,
    /// The new data that has left in it.
    sent: Count,
    /// True if its last segment has carried 1.
    has_asked: bool,
    lost: bool,
    rtt: Option<Duration>,
    /// True after a probe of data that had left before: an ACK may be for either copy.
    is_ambiguous: bool,
    /// True while one segment leaves alone, and nothing else before its ACK.
    is_probing: bool,
    last_sent: Option<Instant>,
    /// The end of the data that has left.
    newest: Option<Seq>,
    newest_mss: u32,
    together: Member,
}

impl Train {
    fn new(args: &Args, shared: SharedPath) -> Train {
        let set = Params::of(args);
        Train {
            span_s: set.span.as_secs_f64(),
            most: set.most,
            takes_turns: set.turns == Switch::On,
            without: set.without,
            gap: Gap::new(set.without, set.compete == Switch::On),
            pause: Pause::new(set.without),
            segments: 1,
            began: None,
            sent: Count::default(),
            has_asked: false,
            lost: false,
            rtt: None,
            is_ambiguous: false,
            is_probing: false,
            last_sent: None,
            newest: None,
            newest_mss: 0,
            together: Member::of(shared),
        }
    }

    /// One with the parameters that a spec leaves out, but for turns.
    pub(super) fn standard(profile: Profile, takes_turns: bool, shared: SharedPath) -> Train {
        Train { takes_turns, ..Train::new(&Args::standard(Params::TABLE, profile), shared) }
    }

    /// Returns whether a train has left.
    pub(super) fn has_begun(&self) -> bool {
        self.began.is_some()
    }

    fn gap(&self) -> Duration {
        Duration::from_nanos(truncate::to_u64(self.gap.seconds * 1e9))
    }

    /// The train has arrived, and its findings are learnt.
    fn arrive(&mut self, now: Instant, end: Seq, view: &SendView<'_>) {
        // Data that left behind the train already belongs to the next one.
        let began = if end < view.snd_nxt { end.max(view.snd_una) } else { view.snd_una };
        let over = view.snd_nxt.bytes_since(began);
        let next = Count { segments: over.div_ceil(view.mss.max(1)), bytes: over.into() };
        let sent = Count {
            segments: self.sent.segments.saturating_sub(next.segments),
            bytes: self.sent.bytes.saturating_sub(next.bytes),
        };
        let full = u64::from(sent.segments) * mss_of(view);
        // A train that had too little data does not prove that the path carries more.
        let is_telling = 2 * sent.segments > self.segments && 4 * sent.bytes >= 3 * full;
        let outcome = TrainOutcome {
            rtt_s: self.rtt.filter(|_| is_telling).map(|rtt| rtt.as_secs_f64()),
            segments: f64::from(sent.segments.max(1)),
            lost: self.lost,
        };
        let news = TrainReport {
            at: now,
            outcome: (is_telling || self.lost).then_some(outcome),
            bytes: is_telling.then_some(sent.bytes),
        };
        // A flow that had too little data shows the other flows nothing of the path.
        if news.outcome.is_some() || !takes_turns(view) {
            self.learn(&news, view);
        }
        self.together.news = Some(news);
        (self.began, self.sent) = (Some(began), next);
        (self.lost, self.is_ambiguous, self.rtt) = (false, false, None);
    }

    fn learn(&mut self, news: &TrainReport, view: &SendView<'_>) {
        if let Some(outcome) = &news.outcome {
            self.gap.on_train(outcome);
            self.segments = self.next_segments(view);
        }
        self.weigh_pause(news, view);
    }

    fn weigh_pause(&mut self, news: &TrainReport, view: &SendView<'_>) {
        let before = self.pause.pausing;
        if self.gap.share().is_some() {
            // A block would measure the other flows, and not what the pause is worth.
            return self.pause.on_break();
        }
        if self.gap.is_starting() {
            let flows = self.gap.is_long() && self.without != Part::Flowing;
            self.pause.begin(if flows { Pausing::Off } else { Pausing::On });
        } else if let Some(bytes) = news.bytes {
            // A loss on a long path comes from a full queue. It does not show overload on the air.
            let is_lossy = news.outcome.is_some_and(|outcome| outcome.lost) && !self.gap.is_long();
            self.pause.on_train(news.at, bytes, is_lossy, self.worth());
        } else {
            self.pause.on_break();
        }
        if self.pause.pausing != before {
            self.gap.turn(self.pause.pausing);
            self.segments = self.next_segments(view);
        }
    }

    /// The ratio of goodput that leaving the pause out must bring; `None` if the answer is known. A calm path keeps its
    /// pause unless it is short: nothing overloads that. A long path has none for good, and a short one keeps none.
    fn worth(&self) -> Option<f64> {
        let is_short = self.gap.is_short();
        let (worth, left_out) = if is_short { (1.0, Part::ShortTrials) } else { (WORTH, Part::Trials) };
        let is_open = match self.pause.pausing {
            Pausing::On if is_short => self.gap.is_alone(),
            Pausing::On => self.gap.is_long() || self.gap.is_noisy(),
            Pausing::Off => !self.gap.is_long() && !is_short,
        };
        (is_open && self.without != Part::Flowing && self.without != left_out).then_some(worth)
    }

    /// Returns whether a flow without pauses has sent its last train. It lacks data or window for more, and no flow
    /// waits for the ACK.
    fn has_said_all(&self, view: &SendView<'_>) -> bool {
        let ready = self.ready(view).bytes_since(view.snd_nxt);
        self.pause.pausing == Pausing::Off && self.has_asked && u64::from(ready) < mss_of(view)
    }

    /// The end of the data that may leave now: it is there, and the peer has room for it.
    fn ready(&self, view: &SendView<'_>) -> Seq {
        let unsent = u32::try_from(view.unsent.bytes).unwrap_or(u32::MAX / 2);
        (view.snd_nxt + unsent).min(view.snd_una + view.snd_wnd)
    }
}

/// Returns whether other flows want turns, too.
fn takes_turns(view: &SendView<'_>) -> bool {
    matches!(view.turn, Turn::Waiting | Turn::Holding)
}

impl SenderAgent for Train {
    ignores!(on_dup_ack, on_path);

    /// Trains are held for half a second, so the timer is long already. Doubled, it outlasts what it waits for. It does
    /// double in the end, so that a dead path is not flooded.
    fn tune(&self, tunables: &mut Tunables) {
        tunables.rto_held = tunables.rto_held.max(HELD_TIMEOUTS);
    }

    hopwise_core::needs!(ack_after, ack_rate, rtt);

    fn on_sent(&mut self, sent: &Sent, view: &SendView<'_>) {
        self.last_sent = Some(sent.now);
        self.newest_mss = view.mss;
        // A tail probe may be new data.
        let is_new = sent.kind == SentKind::New || self.newest.is_some_and(|newest| newest < view.snd_nxt);
        self.newest = Some(view.snd_nxt);
        if !is_new {
            // A retransmission after a loss gives no round trip, but a probe may give one.
            self.is_ambiguous |= sent.kind == SentKind::Probe;
            return;
        }
        let bytes = u32::try_from(sent.carried.bytes).unwrap_or(0);
        if let (None, Some(handshake)) = (self.began, view.path.rtt.latest) {
            self.segments = self.length(view);
            if self.without != Part::HandshakeGap && self.gap.seconds == 0.0 {
                self.gap.begin(FIRST_GAP * handshake.as_secs_f64());
                self.together.is_newer |= view.turn != Turn::Free;
            }
        }
        self.began.get_or_insert(view.snd_nxt - bytes);
        self.sent.segments = self.sent.segments.saturating_add(sent.carried.segments);
        self.sent.bytes = self.sent.bytes.saturating_add(sent.carried.bytes);
        let train = self.next_train(view);
        self.has_asked = self.left(view.snd_nxt, self.end_after(view.snd_nxt - 1, train, view), view) == 0;
    }

    fn on_acked(&mut self, acked: &Acked, view: &SendView<'_>) {
        self.is_probing &= acked.newly.bytes == 0;
        let Some(began) = self.began else { return };
        let hops = view.path.hops_to_peer.or(view.path.hops_from_peer).map(|(hops, _)| hops);
        self.gap.hear_path(hops, view.path.rtt.min);
        let end = self.end_told(began, view);
        let is_over = end <= view.snd_una || self.has_asked && view.snd_una == view.snd_nxt;
        // An ACK that was requested, or that reports a hole, was not held. A peer that takes no requests holds every
        // second ACK, so the least round trip is the best.
        if let Some(rtt) = acked.rtt.filter(|_| !self.is_ambiguous) {
            match view.ack_requests {
                None => self.rtt = Some(self.rtt.map_or(rtt, |least| least.min(rtt))),
                _ if is_over || acked.sacked.bytes > 0 => self.rtt = Some(rtt),
                _ => {}
            }
        }
        if is_over {
            self.arrive(acked.now, end, view);
        }
    }

    fn on_loss(&mut self, loss: &Loss, view: &SendView<'_>) -> Option<Reduction> {
        if !is_without_flight(loss) {
            self.lost = true;
            self.is_probing |= matches!(loss.kind, LossKind::Timeout { .. });
        }
        let window = u64::from(self.segments.max(2)) * mss_of(view);
        Some(Reduction { ssthresh: window })
    }

    fn on_recovered(&mut self, end: Recovered, _: &SendView<'_>) {
        if end == Recovered::Undone {
            (self.lost, self.is_probing) = (false, false);
        }
    }

    fn narrow(&self, _: Instant, view: &SendView<'_>, so_far: Allowance) -> Allowance {
        let flight_bytes = so_far.flight_bytes.min(self.window(view));
        let burst_bytes = so_far.burst_bytes.min(view.mss.max(1));
        let Some(last) = self.last_sent else { return Allowance { flight_bytes, burst_bytes, ..so_far } };
        let next = last + self.gap();
        let has_left = view.ack_requests.is_some()
            && view.snd_una != view.snd_nxt
            && self.began.is_some_and(|began| {
                let ahead = if takes_turns(view) && self.is_full() { 0 } else { self.ahead() };
                self.end_of(began, view) + ahead.saturating_mul(view.mss).min(MOST_AHEAD) <= view.snd_nxt
            });
        let new = if has_left { last + UNTIL_ACKED } else { next };
        Allowance {
            flight_bytes,
            new_from: so_far.new_from.max(new),
            resend_from: so_far.resend_from.max(next),
            burst_bytes,
        }
    }

    fn note(&self, first: Seq, view: &SendView<'_>, _: &Allowance, note: &mut DataNote) {
        let train = if self.began.is_some() { self.next_train(view) } else { first };
        let end = self.end_after(first, train, view);
        let own = if first < view.snd_nxt {
            view.mss
        } else {
            view.mss.min(u32::try_from(view.unsent.bytes).unwrap_or(u32::MAX))
        };
        // A segment that leaves alone requests its own ACK.
        let left = if self.is_probing { 1 } else { 1 + self.left(first + own, end, view) };
        note.ack_request = view.ack_requests.map(|form| match form {
            AckRequestForm::After => AckRequest::After(u8::try_from(left).unwrap_or(u8::MAX)),
            AckRequestForm::Rate => AckRequest::Rate(if left == 1 { 0 } else { left.min(MOST_RATE) as u8 }),
        });
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        if self.newest_mss > 0 {
            sink(CWND_GAUGE, u64::from(self.segments) * u64::from(self.newest_mss));
        }
        sink("train_segments", self.segments.into());
        sink("gap_us", truncate::to_u64(self.gap.seconds * 1e6));
        sink("least_rtt_us", truncate::to_u64(self.gap.base_s * 1e6));
    }
}

impl EnsembleMember for Train {
    /// A few segments leave without a turn. A probe with a turn would keep the other flows from sending until its ACK
    /// is in. A wire has room for the trains of all flows.
    fn wanted_turn(&self, _: Instant, view: &SendView<'_>) -> Option<Seq> {
        let is_little = self.sent.bytes + view.unsent.bytes <= u64::from(FIRST_SEGMENTS) * mss_of(view);
        let waits_for_nobody = !self.takes_turns
            || view.ack_requests.is_none()
            || self.is_probing
            || is_little
            || self.has_said_all(view)
            || self.gap.share().is_some();
        (!waits_for_nobody).then(|| self.wanted(view))
    }

    fn share(&mut self, view: &SendView<'_>) -> bool {
        let shared = self.together.shared.clone();
        shared.with(|known| self.share_with_all(known, view))
    }

    fn begin(&mut self) {
        self.together.shared.with(|known| *known = None);
    }
}

#[cfg(test)]
mod tests;
