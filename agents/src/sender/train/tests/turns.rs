//! The turns that `train` wants, and its behaviour where other flows take turns with it.

use std::time::Duration;

use hopwise_core::agent::{AckRequestForm, HopSource, LossKind, Turn};

use super::{RTT, bench, gap_us, may_go_on, segments, train};
use crate::Profile;
use crate::sender::train::SharedPath;
use crate::testkit::sender::{Bench, MSS};

/// A turn is for one train; the next train has another name.
#[test]
fn a_train_is_named_by_where_it_begins_until_its_ack_is_in() {
    let mut bench = bench();
    let first = bench.snd_una;
    assert_eq!(bench.wanted_turn(), Some(first));
    train(&mut bench);
    let second = bench.snd_una;
    assert_eq!(bench.wanted_turn(), Some(second));
    bench.send(1);
    assert_eq!(bench.wanted_turn(), Some(second));
    bench.send(1);
    bench.ack(1);
    assert_eq!(bench.wanted_turn(), Some(second), "the last one is still to come");
    bench.ack(1);
    assert_eq!(bench.wanted_turn(), Some(second + 2 * MSS));
}

#[test]
fn who_has_little_or_probes_or_cannot_ask_waits_for_nobody() {
    let mut bench = bench();
    bench.unsent_bytes = 4 * u64::from(MSS);
    assert_eq!(bench.wanted_turn(), None);
    bench.unsent_bytes += 1;
    assert!(bench.wanted_turn().is_some());
    bench.ack_requests = None;
    assert_eq!(bench.wanted_turn(), None);
    bench.ack_requests = Some(AckRequestForm::Rate);
    bench.send(1);
    bench.lose(LossKind::Timeout { nth: 1 });
    assert_eq!(bench.wanted_turn(), None);
    bench.flight = bench.count(1);
    bench.ack(1);
    assert!(bench.wanted_turn().is_some());
    let mut off = Bench::new("train:turns=off");
    off.unsent_bytes = 1_000_000;
    assert_eq!(off.wanted_turn(), None);
}

/// A flow ends the train that it has begun: the last segments of a train do not count as few.
#[test]
fn the_end_of_a_train_needs_the_turn_that_its_beginning_had() {
    let mut bench = bench();
    (0..4).for_each(|_| drop(train(&mut bench)));
    let began = bench.snd_una;
    bench.unsent_bytes = 8 * u64::from(MSS);
    for left in (0..8).rev() {
        bench.send(1);
        bench.unsent_bytes = left * u64::from(MSS);
        assert_eq!(bench.wanted_turn(), Some(began), "{left} are left");
    }
}

/// Flows of one host that take turns over one path.
struct Together {
    flows: Vec<Bench>,
    shared: SharedPath,
}

fn member(spec: &str, shared: &SharedPath) -> Bench {
    let mut flow = Bench::beside(spec, Profile::Modern, shared).with_rtt(RTT);
    flow.unsent_bytes = 1_000_000;
    flow
}

impl Together {
    fn new(flows: usize) -> Together {
        let shared = SharedPath::default();
        let flows = (0..flows).map(|_| member("train", &shared)).collect();
        let mut together = Together { flows, shared };
        for (flow, nth) in together.flows.iter_mut().zip(1..) {
            flow.snd_una += nth * 1_000_000;
            flow.turn = Turn::Waiting;
        }
        together
    }

    /// The next train of this flow leaves, up to its last segment. Returns its length.
    fn leave(&mut self, nth: usize) -> u32 {
        self.pass_time();
        let flow = &mut self.flows[nth];
        flow.turn = Turn::Holding;
        flow.share();
        let (train, mut segments) = (flow.wanted_turn(), 0);
        while may_go_on(flow) && flow.wanted_turn() == train {
            flow.now = flow.now.max(flow.allowed().new_from);
            flow.send(1);
            flow.share();
            segments += 1;
        }
        flow.turn = Turn::Waiting;
        segments
    }

    /// Its ACK is in after `rtt`. Returns whether the holder is to look again.
    fn arrive(&mut self, nth: usize, rtt: Duration) -> bool {
        self.pass_time();
        let flow = &mut self.flows[nth];
        flow.path.rtt.smoothed = Some(rtt);
        flow.ack(flow.flight.segments);
        flow.share()
    }

    fn train(&mut self, nth: usize, rtt: Duration) -> u32 {
        let segments = self.leave(nth);
        self.flows[nth].wait(rtt);
        self.arrive(nth, rtt);
        segments
    }

    fn pass_time(&mut self) {
        let now = self.flows.iter().map(|flow| flow.now).max().expect("flows");
        self.flows.iter_mut().for_each(|flow| flow.now = now);
    }

    /// Two flows over four hops that are never quite empty, after they have begun to make no pause.
    fn flowing() -> Together {
        let mut together = Together::new(2);
        for flow in &mut together.flows {
            flow.path.hops_to_peer = Some((4, HopSource::Routing));
        }
        for nth in 0..6 {
            together.train(nth % 2, RTT);
        }
        together.train(0, RTT * 4);
        for nth in 0..200 {
            let flow = &mut together.flows[nth % 2];
            if flow.allowed_segments() > segments(flow) {
                return together;
            }
            together.train(nth % 2, RTT * 2);
        }
        panic!("it is not tried to make no pause");
    }
}

/// The path does not change with the flow that sends.
#[test]
fn what_each_train_finds_out_holds_for_the_trains_of_all() {
    let (mut alone, mut together) = (bench(), Together::new(3));
    for nth in 0..8 {
        let sent = train(&mut alone);
        assert_eq!(together.train(nth % 3, RTT) as usize, sent.len(), "train {nth}");
        assert_eq!(gap_us(&together.flows[nth % 3]), gap_us(&alone), "train {nth}");
    }
}

#[test]
fn who_comes_later_begins_with_what_the_others_know() {
    let mut together = Together::new(2);
    for _ in 0..5 {
        together.train(0, RTT);
    }
    let (gap, length) = (gap_us(&together.flows[0]), segments(&together.flows[0]));
    together.flows[1].path.rtt.latest = Some(RTT);
    assert_eq!((u64::from(together.leave(1)), gap_us(&together.flows[1])), (length, gap));
}

/// Flows that take turns must not steer a flow that takes none.
#[test]
fn who_takes_no_turns_takes_nothing_over() {
    let mut together = Together::new(2);
    for _ in 0..5 {
        together.train(0, RTT);
    }
    let other = &mut together.flows[1];
    other.turn = Turn::Free;
    other.share();
    assert_eq!(gap_us(other), 0);
}

/// Segments of two flows are as far apart as segments of one flow.
#[test]
fn the_next_ones_first_segment_leaves_a_gap_after_the_last_one_of_the_train_before() {
    let mut together = Together::flowing();
    together.leave(0);
    let (left, next) = (together.flows[0].now, &mut together.flows[1]);
    next.turn = Turn::Holding;
    next.share();
    let after = next.allowed().new_from.since(left);
    assert_eq!(after.as_micros(), u128::from(gap_us(&together.flows[0])));
}

#[test]
fn with_a_pause_a_turn_ends_with_the_ack_and_without_one_with_the_last_segment() {
    let mut together = Together::new(2);
    for nth in 0..4 {
        together.train(nth % 2, RTT);
    }
    let began = together.flows[0].wanted_turn();
    together.leave(0);
    assert_eq!(together.flows[0].wanted_turn(), began);
    let mut together = Together::flowing();
    let began = together.flows[0].wanted_turn();
    together.leave(0);
    assert_ne!(together.flows[0].wanted_turn(), began);
    assert!(together.flows[0].flight.segments > 0, "its ACK is not in");
}

/// This is the bound of a lone flow: one train that arrives, and one that follows.
#[test]
fn two_trains_of_all_are_under_way_at_the_most() {
    let mut together = Together::flowing();
    together.leave(0);
    let began = together.flows[1].wanted_turn();
    together.leave(1);
    together.flows[1].turn = Turn::Holding;
    assert_eq!(together.flows[1].wanted_turn(), began, "the one before it is still under way");
    assert!(!may_go_on(&mut together.flows[1]));
    assert!(together.arrive(0, RTT * 2), "the holder is to look again");
    let flow = &mut together.flows[1];
    flow.share();
    assert_ne!(flow.wanted_turn(), began);
}

/// The trial is judged by what all flows get together.
#[test]
fn a_trial_without_pauses_is_everybodys() {
    let mut together = Together::flowing();
    for nth in 0..2 {
        together.leave(nth);
        let flow = &mut together.flows[nth];
        assert!(flow.allowed_segments() > segments(flow), "{nth}");
        together.arrive(nth, RTT * 2);
    }
}

/// A path that holds many segments has room for the next flow's train as soon as this one has left.
#[test]
fn on_a_wire_the_next_train_waits_for_no_ack() {
    let mut together = Together::new(2);
    for nth in 0..20 {
        together.train(nth % 2, RTT);
    }
    let began = together.flows[0].wanted_turn();
    together.leave(0);
    assert_ne!(together.flows[0].wanted_turn(), began, "{} us", gap_us(&together.flows[0]));
    assert!(together.flows[0].flight.segments > 0);
}

/// Such a flow has nothing left for which other flows would have to wait.
#[test]
fn on_a_wire_who_has_said_all_has_no_turn() {
    let mut together = Together::new(2);
    for nth in 0..20 {
        together.train(nth % 2, RTT);
    }
    let most = segments(&together.flows[0]);
    let flow = &mut together.flows[0];
    flow.turn = Turn::Holding;
    flow.share();
    flow.unsent_bytes = u64::from(6 * MSS);
    assert!(most > 6 && flow.wanted_turn().is_some());
    for _ in 0..6 {
        flow.now = flow.now.max(flow.allowed().new_from);
        flow.unsent_bytes -= u64::from(MSS);
        flow.send(1);
        flow.share();
    }
    assert_eq!((flow.unsent_bytes, flow.wanted_turn()), (0, None));
}

/// Findings of flows with other parameters belong to another rule.
#[test]
fn flows_with_other_parameters_keep_to_their_own() {
    for other in ["train:most=8", "train:span=200ms", "train:compete=off"] {
        let mut together = Together::new(2);
        let mut alone = Together::new(1);
        let unlike = &mut together.flows[1];
        *unlike = member(other, &together.shared);
        for nth in 0..30 {
            together.train(usize::from(nth % 4 == 3), RTT * 3);
            if nth % 4 != 3 {
                alone.train(0, RTT * 3);
            }
        }
        let [flow, alike] = [&together, &alone].map(|all| (segments(&all.flows[0]), gap_us(&all.flows[0])));
        assert_eq!(flow, alike, "beside {other}");
    }
}

/// A train that ends for want of data shows little of what the path carries.
#[test]
fn a_short_train_ends_nobodys_trial() {
    let mut together = Together::flowing();
    let flow = &mut together.flows[0];
    flow.turn = Turn::Holding;
    flow.unsent_bytes = 0;
    flow.send(1);
    together.arrive(0, RTT);
    let flow = &mut together.flows[1];
    flow.share();
    assert!(flow.allowed_segments() > segments(flow));
}
