//! `pgy` (TCP-pgy): believes routing, and any single ACK, about what has arrived.
//!
//! Source: Kim and Yoo, *TCP Performance Improvement Considering ACK Loss in Ad Hoc Networks* (TCP-pgy).
//!
//! Rule: S1: a routing message with the receiver's next number raises highest_ack to it, if it lies above snd_una and
//! not above snd_nxt. Segments below highest_ack are not sent again. The message gives no RTT sample, and neither grows
//! nor opens a window. New data waits for an ACK above the number, so that late ACKs below it let no burst go. S2: a
//! duplicate ACK whose dup_count is `dups` or more begins a fast retransmit, however few came. `dup-count(…)` at the
//! receiver sends that count. Duplicate ACKs are then not counted here.
//!
//! Deviations: the paper's S1 carries no ports and checks nothing. Here a message names a flow, and a number that is
//! not in flight is ignored. The paper would wait for ever if the last ACK is lost. Here a second timeout without an
//! ACK above snd_una sets highest_ack back to it. It would also wait for ever once all data is acknowledged up to the
//! number, as nothing is left to be acknowledged above it. Here one new segment leaves when nothing is in flight, and
//! its ACK lies above. It also leaves an RTO after the last one, or 1 s if that is longer. Probes do not wait, nor do
//! the two segments by which F-RTO asks whether a timeout was needless. With SACK, its blocks show a loss as well as
//! the count does. A fast retransmit is honoured once a window. The paper leaves open what a timeout does where routing
//! has reported all data as arrived. By `timeout=last` it sends the last segment again, backs off and halves, as any
//! timeout does. By `timeout=new` it does as ns-2: data below the number counts as acknowledged. It sends no segment
//! again and goes on with new data from one segment. The peer's window counts from the number, and RTO and ssthresh
//! stay. ns-2 would send nothing more at the end of the data. Here the last segment then goes again. New data that is
//! lost twice brings the number into doubt, which ns-2 never does.

use std::time::Duration;

use hopwise_core::agent::{
    Acked, Allowance, DupAck, FastRetransmit, PathEvent, PathReaction, SendView, SenderAgent,
};
use hopwise_core::{Instant, Seq, ignores};

use crate::descriptor::{Descriptor, Make};
use crate::param::{Args, Form, choices, params};

/// It begins anew with each question, so that only the connection ends the wait: after an RTO or 1 s.
const HOLD: Duration = Duration::from_secs(1);

choices! {
    Sends { Last = "last", New = "new" }
}

params! {
    /// the dup_count that is a loss
    dups: u8 = Form::count("segments", 1, 255).is(3),
    /// choice of a timeout once routing has reported all data as arrived: the last segment again, or new data
    timeout: Sends = Sends::FORM.is(0),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "pgy",
    rule: "takes ACK numbers from routing messages (S1), and a loss from the count in any one ACK (S2)",
    source: "TCP-pgy (Kim, Yoo)",
    params: Params::TABLE,
    shorthand: None,
    make: Make::Narrower(|args| Box::new(Pgy::new(args))),
};

#[derive(Debug)]
pub(crate) struct Pgy {
    dups: u8,
    timeout: Sends,
    /// The number from routing, until an ACK lies above it.
    told: Option<Seq>,
    raised: u64,
}

impl Pgy {
    fn new(args: &Args) -> Pgy {
        let Params { dups, timeout } = Params::of(args);
        Pgy { dups, timeout, told: None, raised: 0 }
    }
}

impl SenderAgent for Pgy {
    ignores!(tune, on_sent, on_loss, on_recovered, note);

    hopwise_core::needs!(dup_count);

    fn on_acked(&mut self, _: &Acked, view: &SendView<'_>) {
        self.told = self.told.filter(|told| view.snd_una <= *told);
    }

    fn on_dup_ack(&mut self, dup: &DupAck, _: &SendView<'_>) -> Option<FastRetransmit> {
        dup.dup_count.filter(|count| *count >= self.dups).map(|_| FastRetransmit)
    }

    fn on_path(&mut self, event: &PathEvent, view: &SendView<'_>) -> PathReaction {
        match *event {
            PathEvent::AckSeq(seq) if view.snd_una < seq && seq <= view.snd_nxt => {
                self.raised += 1;
                self.told = Some(seq.max(view.highest_ack));
                match self.timeout {
                    Sends::Last => PathReaction::RaiseHighestAck(seq),
                    Sends::New => PathReaction::TakeAsAcknowledged(seq),
                }
            }
            _ => PathReaction::None,
        }
    }

    /// The number holds until a timeout brings it into doubt, which sets highest_ack back below it.
    fn narrow(&self, now: Instant, view: &SendView<'_>, so_far: Allowance) -> Allowance {
        let is_believed = self.told.is_some_and(|told| told <= view.highest_ack);
        if is_believed && view.flight.bytes > 0 {
            Allowance { new_from: so_far.new_from.max(now + HOLD), ..so_far }
        } else {
            so_far
        }
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("ack_seq_taken", self.raised);
    }
}

#[cfg(test)]
mod tests {
    use hopwise_core::agent::{Allowance, FastRetransmit, LossKind, PathEvent, PathReaction};

    use super::HOLD;
    use crate::testkit::sender::Bench;

    #[test]
    fn one_ack_with_a_count_of_three_is_a_loss() {
        let mut bench = Bench::new("[newreno, pgy]");
        bench.fill();
        for (count, expected) in [
            (None, None),
            (Some(0), None),
            (Some(2), None),
            (Some(3), Some(FastRetransmit)),
            (Some(255), Some(FastRetransmit)),
        ] {
            assert_eq!(bench.dup_ack(1, count), expected, "{count:?}");
        }
        assert_eq!(bench.dup_ack(9, None), None, "duplicate ACKs are the connection's to count");
    }

    #[test]
    fn the_count_that_is_a_loss_is_a_setting() {
        let mut bench = Bench::new("[newreno, pgy:dups=2]");
        bench.fill();
        assert_eq!(bench.dup_ack(1, Some(2)), Some(FastRetransmit));
    }

    #[test]
    fn routing_is_believed_within_what_is_in_flight() {
        let mut bench = Bench::new("[newreno, pgy]");
        bench.fill();
        let (una, nxt) = (bench.snd_una, bench.snd_nxt());
        for seq in [una + 1, una + 5_000, nxt] {
            let raised = [PathReaction::None, PathReaction::RaiseHighestAck(seq)];
            assert_eq!(bench.path_event(&PathEvent::AckSeq(seq)), raised);
        }
        for seq in [una - 1, una, nxt + 1] {
            assert_eq!(bench.path_event(&PathEvent::AckSeq(seq)), [PathReaction::None; 2]);
        }
    }

    #[test]
    fn a_timeout_goes_on_with_new_data_only_where_that_is_set() {
        for (spec, goes_on) in [("pgy", false), ("pgy:timeout=last", false), ("pgy:timeout=new", true)] {
            let mut bench = Bench::new(&format!("[newreno, \"{spec}\"]"));
            bench.fill();
            let seq = bench.snd_nxt();
            let reaction = bench.path_event(&PathEvent::AckSeq(seq))[1];
            assert_eq!(reaction == PathReaction::TakeAsAcknowledged(seq), goes_on, "{spec}");
            assert_eq!(reaction == PathReaction::RaiseHighestAck(seq), !goes_on, "{spec}");
            assert_eq!(bench.path_event(&PathEvent::AckSeq(seq + 1))[1], PathReaction::None, "{spec}");
        }
    }

    #[test]
    fn no_news_of_routing_opens_the_window() {
        let mut bench = Bench::new("[newreno, pgy]");
        bench.fill();
        let before = bench.allowed();
        bench.path_event(&PathEvent::AckSeq(bench.snd_nxt()));
        assert_eq!(bench.allowed(), Allowance { new_from: bench.now + HOLD, ..before });
    }

    /// The bench, with ten segments in flight of which routing has told so many.
    fn told(spec: &str, segments: u32) -> Bench {
        let mut bench = Bench::new(spec);
        bench.send(10);
        let seq = bench.snd_una + segments * bench.mss;
        bench.path_event(&PathEvent::AckSeq(seq));
        bench
    }

    #[test]
    fn new_data_waits_for_an_ack_above_the_number() {
        for spec in ["[newreno, pgy]", "[newreno, \"pgy:timeout=new\"]"] {
            let mut bench = told(spec, 6);
            for acked in [0, 2, 4] {
                bench.ack(acked);
                assert!(bench.holds_new_data(), "an ACK {acked} segments further");
            }
            bench.ack(1);
            assert!(!bench.holds_new_data());
            // An older message comes late, and a newer one holds new data back again.
            bench.path_event(&PathEvent::AckSeq(bench.snd_una - 1));
            assert!(!bench.holds_new_data());
            bench.path_event(&PathEvent::AckSeq(bench.snd_una + 1));
            assert!(bench.holds_new_data());
        }
    }

    #[test]
    fn of_two_numbers_the_higher_one_counts() {
        let mut bench = told("[newreno, pgy]", 6);
        bench.path_event(&PathEvent::AckSeq(bench.snd_una + 1));
        bench.ack(5);
        assert!(bench.holds_new_data());
    }

    /// No ACK can lie above the number then.
    #[test]
    fn one_new_segment_leaves_when_nothing_is_in_flight() {
        let mut bench = told("[newreno, pgy]", 10);
        bench.ack(10);
        assert!(!bench.holds_new_data());
        bench.send(1);
        assert!(bench.holds_new_data(), "the second one waits for the ACK of the first");
        bench.ack(1);
        bench.send(1);
        assert!(!bench.holds_new_data());
    }

    #[test]
    fn a_number_in_doubt_holds_nothing_back() {
        let mut bench = told("[newreno, pgy]", 6);
        bench.lose(LossKind::Timeout { nth: 1 });
        bench.send(1);
        assert!(!bench.holds_new_data(), "the bench's timeouts set highest_ack back");
    }
}
