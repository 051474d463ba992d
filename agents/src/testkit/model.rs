//! The operation model of agents: random events in any order, and conditions that hold after each event. It runs
//! against every registered agent. A case that fails is kept in `proptest-regressions` and replayed.

use std::fmt::Debug;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::{
    AckRequest, AckRequestForm, Allowance, By, Class, HopSource, LossKind, PathEvent, Recovered, SentKind,
    Turn,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::receiver::{Carried, ReceiverBench};
use super::sender::Bench;
use super::specs;
use crate::Profile;
use crate::descriptor::Descriptor;
use crate::registry::Registry;
use crate::sender::train::SharedPath;
use crate::spec::SenderList;

#[derive(Clone, Debug)]
enum Heard {
    Arrival {
        class: Class,
        carried: Carried,
        after: Duration,
    },
    /// The next deadline, this much too late.
    Deadline {
        late: Duration,
    },
    /// A deadline that the agent has not set, before the real one.
    Early {
        after: Duration,
    },
    Decided {
        by: By,
        after: Duration,
    },
    Shown {
        cwnd: Option<u16>,
        hops: Option<u8>,
        rtt: Option<Duration>,
    },
}

fn any_time() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        (0..2_000_000u64).prop_map(Duration::from_nanos),
        (0..700u64).prop_map(Duration::from_millis),
        (0..600u64).prop_map(Duration::from_secs),
    ]
}

fn any_class() -> impl Strategy<Value = Class> {
    prop_oneof![
        6 => Just(Class::InOrder),
        1 => Just(Class::FillsHole),
        2 => Just(Class::OutOfOrder),
        1 => Just(Class::Duplicate),
    ]
}

fn any_carried() -> impl Strategy<Value = Carried> {
    let (octet, rtt) = (any::<Option<u8>>(), prop::option::of(any_time()));
    let form = prop::sample::select(vec![AckRequest::Rate as fn(u8) -> AckRequest, AckRequest::After]);
    let parts = (1..=65_535u32, any::<bool>(), any::<bool>(), octet, form, rtt);
    parts.prop_map(|(bytes, push, ce, octet, form, rtt)| Carried {
        bytes,
        push,
        ce,
        ack_request: octet.map(form),
        rtt,
    })
}

fn any_heard() -> impl Strategy<Value = Heard> {
    let decided_by = prop_oneof![Just(By::Forced), Just(By::Piggyback)];
    prop_oneof![
        6 => (any_class(), any_carried(), any_time())
            .prop_map(|(class, carried, after)| Heard::Arrival { class, carried, after }),
        3 => any_time().prop_map(|late| Heard::Deadline { late }),
        1 => any_time().prop_map(|after| Heard::Early { after }),
        1 => (decided_by, any_time()).prop_map(|(by, after)| Heard::Decided { by, after }),
        1 => (any::<Option<u16>>(), any::<Option<u8>>(), prop::option::of(any_time()))
            .prop_map(|(cwnd, hops, rtt)| Heard::Shown { cwnd, hops, rtt }),
    ]
}

impl ReceiverBench {
    fn hear(&mut self, heard: &Heard) {
        match *heard {
            Heard::Arrival { class, carried, after } => {
                self.pass(after);
                self.arrive(class, carried);
            }
            Heard::Deadline { late } => {
                if let Some((due, who)) = self.next_deadline() {
                    self.now = self.now.max(due) + late;
                    if who == "timer" {
                        self.time_out()
                    } else {
                        self.force(By::Forced)
                    };
                }
            }
            Heard::Early { after } => {
                self.pass(after);
                let (acks, due) = (self.acks, self.agent.deadline());
                self.time_out();
                assert!(self.acks == acks || due.is_some_and(|due| due <= self.now), "nothing was due");
            }
            Heard::Decided { by, after } => {
                self.pass(after);
                self.force(by);
            }
            Heard::Shown { cwnd, hops, rtt } => {
                self.show(cwnd, hops, rtt);
                self.path.rtt.smoothed = rtt;
            }
        }
        let due = self.agent.deadline();
        assert_eq!(due, self.agent.deadline(), "asking for the deadline changes it");
        let begins = self.owed.since.unwrap_or(Instant::ZERO);
        assert!(due.is_none_or(|due| due >= begins), "due {due:?} before what it waits for, {begins:?}");
        self.agent.gauges(&mut |name, _| assert!(!name.is_empty()));
    }

    /// Lets time pass, but not beyond the next deadline.
    fn pass(&mut self, time: Duration) {
        let to = self.now + time;
        self.now = self.next_deadline().map_or(to, |(due, _)| self.now.max(to.min(due)));
    }

    /// Without further segments an agent falls silent: it acknowledges what it holds, and its repeats end.
    fn falls_silent(&mut self) {
        for _ in 0..16 {
            let Some((due, who)) = self.next_deadline() else {
                assert_eq!(self.owed.segments, 0, "silent with segments held");
                return;
            };
            self.now = self.now.max(due);
            if who == "timer" {
                self.time_out()
            } else {
                self.force(By::Forced)
            };
        }
        panic!("still acknowledging after 16 deadlines without a segment");
    }
}

#[derive(Clone, Debug)]
enum Felt {
    Waits(Duration),
    Fills,
    Sends {
        segments: u32,
        kind: SentKind,
    },
    Acks {
        bytes: u64,
    },
    DupAck {
        seen: u32,
        dup_count: Option<u8>,
    },
    Loses(LossKind),
    Recovers(Recovered),
    Path {
        event: PathEvent,
        hops: Option<u8>,
        srtt: Option<Duration>,
        link_bps: Option<u64>,
    },
    /// Routing reports that the peer has this many octets from snd_una on. Often that is true.
    PeerHas(u32),
    Shown {
        mss: u32,
        snd_wnd: u32,
        unsent_bytes: u64,
        app_limited: bool,
        ece: bool,
    },
    /// The form of ACK requests that the peer has agreed to.
    Agrees(Option<AckRequestForm>),
    /// The flow's place among the flows to its peer.
    Stands(Turn),
}

fn any_kind() -> impl Strategy<Value = SentKind> {
    prop::sample::select(vec![SentKind::New, SentKind::Resent, SentKind::AfterTimeout, SentKind::Probe])
}

fn any_loss() -> impl Strategy<Value = LossKind> {
    prop_oneof![
        Just(LossKind::Fast),
        Just(LossKind::Marked),
        (1..20u32).prop_map(|nth| LossKind::Timeout { nth })
    ]
}

fn any_path_event() -> impl Strategy<Value = Felt> {
    let event =
        prop_oneof![Just(PathEvent::RouteFailed), Just(PathEvent::RouteFound), Just(PathEvent::HopsChanged),];
    (event, any::<Option<u8>>(), prop::option::of(any_time()), any::<Option<u64>>())
        .prop_map(|(event, hops, srtt, link_bps)| Felt::Path { event, hops, srtt, link_bps })
}

fn any_shown() -> impl Strategy<Value = Felt> {
    let flags = (any::<bool>(), any::<bool>());
    (48..9_000u32, any::<u32>(), 0..1_000_000u64, flags).prop_map(|(mss, snd_wnd, unsent_bytes, flags)| {
        let (app_limited, ece) = flags;
        Felt::Shown { mss, snd_wnd, unsent_bytes, app_limited, ece }
    })
}

fn any_felt() -> impl Strategy<Value = Felt> {
    prop_oneof![
        2 => any_time().prop_map(Felt::Waits),
        4 => Just(Felt::Fills),
        1 => (1..45u32, any_kind()).prop_map(|(segments, kind)| Felt::Sends { segments, kind }),
        6 => (0..100_000u64).prop_map(|bytes| Felt::Acks { bytes }),
        1 => (1..300u32, any::<Option<u8>>()).prop_map(|(seen, dup_count)| Felt::DupAck { seen, dup_count }),
        1 => any_loss().prop_map(Felt::Loses),
        1 => prop_oneof![Just(Recovered::Full), Just(Recovered::Undone)].prop_map(Felt::Recovers),
        1 => any_path_event(),
        1 => prop_oneof![4 => 0..20_000u32, 1 => any::<u32>()].prop_map(Felt::PeerHas),
        1 => any_shown(),
        1 => prop::sample::select(vec![Some(AckRequestForm::After), Some(AckRequestForm::Rate), None])
            .prop_map(Felt::Agrees),
        1 => prop::sample::select(vec![Turn::Free, Turn::Alone, Turn::Waiting, Turn::Holding])
            .prop_map(Felt::Stands),
    ]
}

impl Bench {
    fn feel(&mut self, felt: &Felt) {
        match *felt {
            Felt::Waits(time) => self.wait(time),
            // The model's flight stays small, however large the window is.
            Felt::Fills => {
                let room = self.allowed_segments().saturating_sub(u64::from(self.flight.segments));
                (0..room.min(50)).for_each(|_| self.send(1));
            }
            Felt::Sends { segments, kind } => self.sent(self.count(segments), kind),
            Felt::Acks { bytes } => self.ack_bytes(bytes),
            Felt::DupAck { seen, dup_count } => {
                self.dup_ack(seen, dup_count);
            }
            Felt::Loses(kind) => {
                let reduction = self.lose(kind);
                assert!(reduction.ssthresh >= 2 * u64::from(self.mss), "{reduction:?}");
            }
            Felt::Recovers(end) => self.recover(end),
            Felt::Path { event, hops, srtt, link_bps } => {
                self.path.hops_to_peer = hops.map(|hops| (hops, HopSource::Ttl));
                self.path.hops_from_peer = self.path.hops_to_peer.filter(|(hops, _)| hops.is_multiple_of(2));
                self.path.rtt.smoothed = srtt;
                self.path.link_bps = link_bps.and_then(std::num::NonZeroU64::new);
                self.path_event(&event);
            }
            Felt::PeerHas(octets) => {
                self.path_event(&PathEvent::AckSeq(self.snd_una + octets));
            }
            Felt::Shown { mss, snd_wnd, unsent_bytes, app_limited, ece } => {
                (self.mss, self.snd_wnd, self.unsent_bytes) = (mss, snd_wnd, unsent_bytes);
                (self.app_limited, self.ece) = (app_limited, ece);
            }
            Felt::Agrees(form) => self.ack_requests = form,
            Felt::Stands(turn) => self.turn = turn,
        }
        self.holds();
    }

    /// A segment may leave sooner or later, whatever happened. The bench asserts at each call that answers are pure and
    /// only narrow.
    fn holds(&mut self) {
        let mss = u64::from(self.mss);
        let small = Allowance {
            flight_bytes: 3 * mss,
            new_from: self.now + Duration::from_millis(3),
            resend_from: self.now + Duration::from_millis(2),
            burst_bytes: self.mss,
        };
        for so_far in [Allowance::UNLIMITED, small] {
            let allowed = self.narrowed(so_far);
            assert!(allowed.flight_bytes >= mss, "{allowed:?} lets no segment leave");
            assert!(allowed.burst_bytes >= self.mss, "{allowed:?} lets no segment leave");
            assert!(allowed.new_from != Instant::FAR && allowed.resend_from != Instant::FAR);
        }
        self.note();
        self.wanted_turn();
        self.gauge("none is called this");
    }
}

/// Plays random sequences of events. The cases of the `corpus` come first, a file beside these sources.
#[track_caller]
fn survives<Event: Debug, Specs: Strategy<Value = String>>(
    specs: Specs,
    event: impl Strategy<Value = Event>,
    corpus: Option<&'static str>,
    play: impl Fn(&str, &[Event]),
) {
    let config = match corpus {
        Some(_) => ProptestConfig { source_file: corpus, ..ProptestConfig::default() },
        None => ProptestConfig { failure_persistence: None, ..ProptestConfig::default() },
    };
    let cases = (specs, prop::collection::vec(event, 0..120));
    let survived = TestRunner::new(config).run(&cases, |(spec, events)| {
        play(&spec, &events);
        Ok(())
    });
    survived.unwrap_or_else(|failure| panic!("{failure}"));
}

/// Plays random events on this receiver agent, one of `agents`.
#[track_caller]
pub(super) fn receiver_survives(agents: &Registry, agent: &'static Descriptor, corpus: Option<&'static str>) {
    survives(specs::any_of_receiver(agents, agent), any_heard(), corpus, |spec, events| {
        let mut bench = ReceiverBench::among(agents, spec);
        events.iter().for_each(|heard| bench.hear(heard));
        bench.falls_silent();
    });
}

/// Plays random events on this sender agent, one of `agents`, in lists with further `agents`.
#[track_caller]
pub(super) fn sender_survives(agents: &Registry, agent: &'static Descriptor, corpus: Option<&'static str>) {
    survives(specs::any_senders_with(agents, agent), any_felt(), corpus, |list, events| {
        let list = SenderList::parse_among(agents, list).unwrap_or_else(|error| panic!("{error}"));
        let mut bench = Bench::of(&list, Profile::Modern, &SharedPath::default());
        events.iter().for_each(|felt| bench.feel(felt));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::Kind;
    use crate::{registry, spec};

    /// The committed cases, which all agents share.
    const CORPUS: Option<&str> = Some(file!());

    fn registered(kind: Kind) -> impl Iterator<Item = &'static Descriptor> {
        registry::all().filter(move |agent| agent.kind() == kind)
    }

    #[test]
    fn every_receiver_survives_any_order_of_events() {
        registered(Kind::Receiver).for_each(|agent| receiver_survives(registry::in_force(), agent, CORPUS));
    }

    #[test]
    fn every_sender_survives_any_order_of_events() {
        registered(Kind::Sender).for_each(|agent| sender_survives(registry::in_force(), agent, CORPUS));
    }

    proptest! {
        #[test]
        fn every_accepted_spec_prints_canonically(
            receiver in specs::any_receiver(registry::in_force()),
            senders in specs::any_senders(registry::in_force()),
        ) {
            let canonical = crate::validate_receiver(&receiver).unwrap();
            prop_assert_eq!(&crate::validate_receiver(&canonical).unwrap(), &canonical);
            let parameters = |text: &str| spec::parse_receiver(text).unwrap().parameters(Profile::Ns2);
            prop_assert_eq!(parameters(&receiver), parameters(&canonical));

            let canonical = crate::validate_senders(&senders).unwrap();
            prop_assert_eq!(&crate::validate_senders(&canonical).unwrap(), &canonical);
            let parameters = |text: &str| spec::parse_senders(text).unwrap().parameters(Profile::Ns2);
            prop_assert_eq!(parameters(&senders), parameters(&canonical));
        }
    }
}
