//! A miniature of a connection's sending side. It keeps the state that the view shows. Its path loses only what a test
//! declares lost.

use std::collections::VecDeque;
use std::time::Duration;

use hopwise_core::agent::{
    AckRequestForm, Acked, Allowance, Count, DataNote, DupAck, FastEnd, FastRetransmit, Loss, LossKind, Path,
    PathEvent, PathReaction, Recovered, Recovering, Reduction, SendView, SenderAgent, SenderAgents, Sent,
    SentKind, Tunables, Turn,
};
use hopwise_core::{Instant, Seq};

use crate::Profile;
use crate::sender::train::SharedPath;
use crate::spec::{self, SenderList};

pub(crate) const MSS: u32 = 1_000;

/// A list of sender agents, and the state of the connection that they serve.
#[derive(Debug)]
pub(crate) struct Bench {
    agents: SenderAgents,
    pub(crate) now: Instant,
    pub(crate) mss: u32,
    pub(crate) snd_una: Seq,
    /// The number to which routing has raised it, as far as an agent believed routing.
    highest_ack: Seq,
    pub(crate) flight: Count,
    /// The departures of the segments in flight.
    left: VecDeque<Instant>,
    lost_bytes: u32,
    pub(crate) unsent_bytes: u64,
    pub(crate) snd_wnd: u32,
    pub(crate) path: Path,
    pub(crate) recovering: Option<Recovering>,
    pub(crate) ack_requests: Option<AckRequestForm>,
    pub(crate) turn: Turn,
    pub(crate) app_limited: bool,
    /// True if ACKs echo a congestion mark.
    pub(crate) ece: bool,
}

impl Bench {
    pub(crate) fn new(spec: &str) -> Bench {
        Bench::with_profile(spec, Profile::Modern)
    }

    pub(crate) fn with_profile(spec: &str, profile: Profile) -> Bench {
        Bench::beside(spec, profile, &SharedPath::default())
    }

    /// Makes a flow that shares its knowledge of the path.
    pub(crate) fn beside(spec: &str, profile: Profile, shared: &SharedPath) -> Bench {
        Bench::of(&spec::parse_senders(spec).expect("a spec in a test"), profile, shared)
    }

    pub(super) fn of(list: &SenderList, profile: Profile, shared: &SharedPath) -> Bench {
        let snd_una = Seq(u32::MAX - 5_000);
        Bench {
            agents: list.make(profile, || shared.clone()),
            now: Instant::ZERO,
            mss: MSS,
            snd_una,
            highest_ack: snd_una,
            flight: Count::default(),
            left: VecDeque::new(),
            lost_bytes: 0,
            unsent_bytes: u64::from(MSS),
            snd_wnd: 10_000_000,
            path: Path::default(),
            recovering: None,
            ack_requests: Some(AckRequestForm::After),
            turn: Turn::Free,
            app_limited: false,
            ece: false,
        }
    }

    pub(crate) fn with_rtt(mut self, rtt: Duration) -> Bench {
        self.path.rtt.smoothed = Some(rtt);
        self.path.rtt.variance = rtt / 8;
        self
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        self.now += time;
    }

    /// One transmission that carries this many segments.
    pub(crate) fn send(&mut self, segments: u32) {
        let carried = self.count(segments);
        self.flight.segments += carried.segments;
        self.flight.bytes += carried.bytes;
        self.left.extend((0..segments).map(|_| self.now));
        self.sent(carried, SentKind::New);
    }

    pub(crate) fn sent(&mut self, carried: Count, kind: SentKind) {
        let sent = Sent::new(self.now, carried, kind);
        self.each(|agent, view| agent.on_sent(&sent, view));
    }

    /// Sends segment by segment until the allowance is used up. Returns their number.
    pub(crate) fn fill(&mut self) -> u32 {
        let room = self.allowed().flight_bytes.saturating_sub(self.flight.bytes) / u64::from(self.mss);
        let room = u32::try_from(room).expect("a finite window");
        (0..room).for_each(|_| self.send(1));
        room
    }

    pub(crate) fn ack(&mut self, segments: u32) {
        self.ack_bytes(u64::from(segments) * u64::from(self.mss));
    }

    pub(crate) fn ack_bytes(&mut self, bytes: u64) {
        let flight_before = self.flight;
        let bytes = bytes.min(self.flight.bytes);
        self.flight.bytes -= bytes;
        self.flight.segments =
            u32::try_from(self.flight.bytes / u64::from(self.mss)).expect("a small flight");
        self.snd_una += u32::try_from(bytes).expect("a small flight");
        self.highest_ack = self.highest_ack.max(self.snd_una);
        let newly = Count { segments: flight_before.segments.saturating_sub(self.flight.segments), bytes };
        let mut acked = Acked::new(self.now, newly, flight_before);
        (acked.rtt, acked.ece) = (self.path.rtt.smoothed, self.ece);
        acked.newest_sent_at = self.left.drain(..self.left.len().min(newly.segments as usize)).next_back();
        self.each(|agent, view| agent.on_acked(&acked, view));
    }

    /// A round trip of a bulk transfer. Everything allowed is sent, and then acknowledged `per_ack` segments at a time.
    pub(crate) fn round(&mut self, per_ack: u32) {
        self.fill();
        self.wait(self.path.rtt.smoothed.unwrap_or(Duration::from_millis(100)));
        let mut left = self.flight.segments;
        while left > 0 {
            let segments = left.min(per_ack);
            self.ack(segments);
            self.fill();
            left -= segments;
        }
    }

    pub(crate) fn dup_ack(&mut self, seen: u32, dup_count: Option<u8>) -> Option<FastRetransmit> {
        let mut dup = DupAck::new(self.now, seen);
        dup.dup_count = dup_count;
        self.each(|agent, view| agent.on_dup_ack(&dup, view)).into_iter().flatten().next()
    }

    /// The owner's answer; the other agents give none.
    pub(crate) fn lose(&mut self, kind: LossKind) -> Reduction {
        let loss = Loss::new(self.now, kind, self.flight);
        let answers = self.each(|agent, view| agent.on_loss(&loss, view));
        let [Some(reduction), others @ ..] = answers.as_slice() else { panic!("the owner did not answer") };
        assert!(others.iter().all(Option::is_none), "only the owner answers");
        match kind {
            LossKind::Fast => {
                self.lost_bytes = self.lost_bytes.wrapping_add(self.mss);
                self.recovering = Some(Recovering::Fast { ssthresh: reduction.ssthresh });
            }
            LossKind::Timeout { .. } => {
                let lost_bytes = u32::try_from(self.flight.bytes).expect("a small flight");
                self.lost_bytes = self.lost_bytes.wrapping_add(lost_bytes);
                self.left.clear();
                self.recovering = Some(Recovering::AfterTimeout);
                self.flight = Count::default();
                self.highest_ack = self.snd_una;
            }
            LossKind::Marked => {}
        }
        *reduction
    }

    pub(crate) fn recover(&mut self, end: Recovered) {
        self.recovering = None;
        self.each(|agent, view| agent.on_recovered(end, view));
    }

    pub(crate) fn allowed(&mut self) -> Allowance {
        self.narrowed(Allowance::UNLIMITED)
    }

    pub(crate) fn allowed_segments(&mut self) -> u64 {
        self.allowed().flight_bytes / u64::from(self.mss)
    }

    pub(crate) fn holds_new_data(&mut self) -> bool {
        self.allowed().new_from > self.now
    }

    /// The allowance that the list leaves of `so_far`. Each agent's contract is checked on the way.
    pub(crate) fn narrowed(&mut self, so_far: Allowance) -> Allowance {
        let now = self.now;
        let mut allowed = so_far;
        self.each(|agent, view| {
            let narrower = agent.narrow(now, view, allowed);
            assert_eq!(narrower, agent.narrow(now, view, allowed), "asking changes the answer of {agent:?}");
            assert!(narrower.is_within(&allowed), "{agent:?} widens {allowed:?} to {narrower:?}");
            allowed = narrower;
        });
        allowed
    }

    /// The burst for which the owner wants a turn.
    pub(crate) fn wanted_turn(&mut self) -> Option<Seq> {
        let (now, path) = (self.now, self.path.clone());
        let view = self.view(&path);
        let member = self.agents.owner.member()?;
        let wanted = member.wanted_turn(now, &view);
        assert_eq!(wanted, member.wanted_turn(now, &view), "asking changes the answer");
        wanted
    }

    /// The owner takes over what the other flows know, and adds its own knowledge.
    pub(crate) fn share(&mut self) -> bool {
        let path = self.path.clone();
        let view = self.view(&path);
        self.agents.owner.member_mut().is_some_and(|member| member.share(&view))
    }

    pub(crate) fn note(&mut self) -> DataNote {
        self.note_at(self.snd_nxt())
    }

    /// The note on the segment that begins at `first`. Below snd_nxt that is a retransmission.
    pub(crate) fn note_at(&mut self, first: Seq) -> DataNote {
        let (mut note, allowed) = (DataNote::default(), self.allowed());
        self.each(|agent, view| agent.note(first, view, &allowed, &mut note));
        note
    }

    /// The reaction of each agent of the list.
    pub(crate) fn path_event(&mut self, event: &PathEvent) -> Vec<PathReaction> {
        let reactions = self.each(|agent, view| agent.on_path(event, view));
        for reaction in &reactions {
            if let PathReaction::RaiseHighestAck(to) | PathReaction::TakeAsAcknowledged(to) = *reaction {
                assert!(self.snd_una < to && to <= self.snd_nxt(), "{to:?} is not in flight");
                self.highest_ack = self.highest_ack.max(to);
            }
        }
        reactions
    }

    /// The recovery settings after all agents of the list have tuned them.
    pub(crate) fn tunables(&mut self) -> Tunables {
        let (rto_min, fast_end) = (Duration::from_millis(200), FastEnd::FullAck);
        let mut tunables = Tunables { dup_threshold: 3, rto_min, rto_factor: 1, rto_held: 0, fast_end };
        self.each(|agent, _| agent.tune(&mut tunables));
        tunables
    }

    pub(crate) fn snd_nxt(&self) -> Seq {
        self.snd_una + u32::try_from(self.flight.bytes).expect("a small flight")
    }

    pub(crate) fn gauge(&self, wanted: &str) -> Option<u64> {
        let mut found = None;
        for agent in self.agents.all() {
            agent.gauges(&mut |name, value| found = found.or((name == wanted).then_some(value)));
        }
        found
    }

    pub(crate) fn count(&self, segments: u32) -> Count {
        Count { segments, bytes: u64::from(segments) * u64::from(self.mss) }
    }

    fn each<T>(&mut self, mut ask: impl FnMut(&mut dyn SenderAgent, &SendView<'_>) -> T) -> Vec<T> {
        let path = self.path.clone();
        let view = self.view(&path);
        self.agents.all_mut().map(|agent| ask(agent, &view)).collect()
    }

    fn view<'a>(&self, path: &'a Path) -> SendView<'a> {
        let mut view = SendView::new(self.mss, self.snd_una, path);
        (view.highest_ack, view.snd_nxt, view.flight) = (self.highest_ack, self.snd_nxt(), self.flight);
        view.unsent = Count { segments: 1, bytes: self.unsent_bytes };
        (view.snd_wnd, view.recovering) = (self.snd_wnd, self.recovering);
        (view.ack_requests, view.turn) = (self.ack_requests, self.turn);
        (view.app_limited, view.lost_bytes) = (self.app_limited, self.lost_bytes);
        view
    }
}

/// A link with a queue without end, and the way back: the path of a lone flow.
#[derive(Debug)]
pub(crate) struct Bottleneck {
    /// The time from the link to the peer and back.
    base: Duration,
    per_segment: Duration,
    /// Segments that share an ACK.
    per_ack: u32,
    free_at: Instant,
    /// Of each segment under way: its departure from the sender, and from the link.
    under_way: VecDeque<(Instant, Instant)>,
}

impl Bottleneck {
    pub(crate) fn new(base: Duration, per_segment: Duration) -> Bottleneck {
        Bottleneck { base, per_segment, per_ack: 1, free_at: Instant::ZERO, under_way: VecDeque::new() }
    }

    pub(crate) fn with_an_ack_for(mut self, segments: u32) -> Bottleneck {
        self.per_ack = segments;
        self
    }

    /// Runs until so many segments are acknowledged. Returns the segments that wait behind the one on the link then.
    pub(crate) fn carry(&mut self, bench: &mut Bench, segments: u32) -> u32 {
        let mut owed = 0;
        for _ in 0..segments {
            let (sent_at, left_at) = loop {
                let allowed = bench.allowed();
                let has_room = bench.flight.segments == 0
                    || allowed.flight_bytes >= bench.flight.bytes + u64::from(bench.mss);
                let next_ack = self.under_way.front().map(|(_, left_at)| *left_at + self.base);
                let send_at = allowed.new_from.max(bench.now);
                if !has_room || next_ack.is_some_and(|at| at <= send_at) {
                    break self.under_way.pop_front().expect("a full window is under way");
                }
                bench.now = send_at;
                bench.send(1);
                self.free_at = self.free_at.max(bench.now) + self.per_segment;
                self.under_way.push_back((bench.now, self.free_at));
            };
            bench.now = bench.now.max(left_at + self.base);
            owed += 1;
            if owed == self.per_ack || self.under_way.is_empty() {
                bench.path.rtt.smoothed = Some(bench.now.since(sent_at));
                bench.ack(owed);
                owed = 0;
            }
        }
        bench.ack(owed);
        let waiting = self.under_way.iter().filter(|(_, left_at)| *left_at > bench.now + self.per_segment);
        u32::try_from(waiting.count()).expect("a small queue")
    }
}
