//! `pgy` (TCP-pgy): believes routing, and any single ACK, about what has arrived.
//!
//! Source: Kim and Yoo, *TCP Performance Improvement Considering ACK Loss in Ad Hoc Networks* (TCP-pgy).
//!
//! Rule: S1: a routing message with the receiver's next number raises highest_ack to it, if it lies above snd_una and
//! not above snd_nxt. Segments below highest_ack are not sent again. The message gives no RTT sample, and neither grows
//! nor opens a window: new data waits for ACKs. S2: an ACK whose dup_count is `dups` or more begins a fast retransmit,
//! however few duplicate ACKs came. `dup-count(…)` at the receiver sends that count.
//!
//! Deviations: the paper's S1 carries no ports and checks nothing. Here a message names a flow, and a number that is
//! not in flight is ignored. The paper would wait for ever if the last ACK is lost. Here a second timeout without an
//! ACK above snd_una sets highest_ack back to it. A fast retransmit is honoured once a window.
//! The paper leaves open what a timeout does where routing has reported all data as arrived. By `timeout=last` it sends
//! the last segment again, backs off and halves, as any timeout does. By `timeout=new` it does as ns-2: data below the
//! number counts as acknowledged. It sends no segment again and goes on with new data from one segment. The peer's
//! window counts from the number, and RTO and ssthresh stay. ns-2 would send nothing more at the end of the data. Here
//! the last segment then goes again. New data that is lost twice brings the number into doubt, which ns-2 never does.

use hopwise_core::agent::{DupAck, FastRetransmit, Needs, PathEvent, PathReaction, SendView, SenderAgent};
use hopwise_core::ignores;

use crate::descriptor::{Descriptor, Make};
use crate::param::{Args, Form, choices, params};

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
    raised: u64,
}

impl Pgy {
    fn new(args: &Args) -> Pgy {
        let Params { dups, timeout } = Params::of(args);
        Pgy { dups, timeout, raised: 0 }
    }
}

impl SenderAgent for Pgy {
    ignores!(tune, on_sent, on_acked, on_loss, on_recovered, narrow, note);

    fn needs(&self) -> Needs {
        Needs { dup_count: true, ..Needs::default() }
    }

    fn on_dup_ack(&mut self, dup: &DupAck, _: &SendView<'_>) -> Option<FastRetransmit> {
        dup.dup_count.filter(|count| *count >= self.dups).map(|_| FastRetransmit)
    }

    fn on_path(&mut self, event: &PathEvent, view: &SendView<'_>) -> PathReaction {
        match *event {
            PathEvent::AckSeq(seq) if view.snd_una < seq && seq <= view.snd_nxt => {
                self.raised += 1;
                match self.timeout {
                    Sends::Last => PathReaction::RaiseHighestAck(seq),
                    Sends::New => PathReaction::TakeAsAcknowledged(seq),
                }
            }
            _ => PathReaction::None,
        }
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("ack_seq_taken", self.raised);
    }
}

#[cfg(test)]
mod tests {
    use hopwise_core::agent::{FastRetransmit, PathEvent, PathReaction};

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
        assert_eq!(bench.allowed(), before);
    }
}
