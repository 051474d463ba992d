//! `dup-count(SPEC)`: reports to the sender how many segments came out of order.
//!
//! Source: TCP-pgy, sender side S2. On a path that loses and reorders ACKs, the sender counts too few duplicate ACKs,
//! or counts them too late. Here the receiver counts, and every ACK carries the count. Any single ACK is then enough.
//!
//! Rule: the count is 0 after a segment that is in order or fills a hole. A segment out of order adds one, and a
//! duplicate changes nothing. The wrapped agent decides when to acknowledge.
//!
//! Parameters: none.
//! Deviations: a duplicate does not count. The paper's text counts segments out of order; its Algorithm 2 counts all
//! that are not in order. A duplicate shows that nothing is missing, and three of them would cause a needless
//! retransmission. A segment that fills a hole ends the count, as in the text and unlike the algorithm. The count stops
//! at 255, the most that the option carries. Without the peer's consent nothing is sent, and the wrapped agent runs
//! alone.

use hopwise_core::Instant;
use hopwise_core::agent::{
    AckDecided, AckNote, AckVerdict, Arrival, Basis, Class, Needs, ReceiverAgent, RecvView,
};

use crate::descriptor::{Descriptor, Make};

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "dup-count",
    rule: "every ACK of the agent inside tells how many segments came out of order since the last in-order one",
    source: "TCP-pgy (S2)",
    params: &[],
    shorthand: None,
    make: Make::ReceiverAround(|_, inner| Box::new(DupCount { inner, count: 0 })),
};

#[derive(Debug)]
pub(crate) struct DupCount {
    inner: Box<dyn ReceiverAgent>,
    count: u8,
}

impl ReceiverAgent for DupCount {
    fn needs(&self) -> Needs {
        self.inner.needs().union(Needs { dup_count: true, ..Needs::default() })
    }

    fn on_arrival(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> AckVerdict {
        match arrival.class {
            Class::InOrder | Class::FillsHole => self.count = 0,
            Class::OutOfOrder => self.count = self.count.saturating_add(1),
            Class::Duplicate => {}
        }
        self.inner.on_arrival(arrival, view)
    }

    fn on_deadline(&mut self, now: Instant, view: &RecvView<'_>) -> AckVerdict {
        self.inner.on_deadline(now, view)
    }

    fn on_ack(&mut self, ack: &AckDecided, view: &RecvView<'_>) {
        self.inner.on_ack(ack, view);
    }

    fn deadline(&self) -> Option<Instant> {
        self.inner.deadline()
    }

    fn basis(&self, now: Instant, view: &RecvView<'_>) -> Option<Basis> {
        self.inner.basis(now, view)
    }

    fn note(&self) -> AckNote {
        AckNote { dup_count: Some(self.count) }
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("dup_count", u64::from(self.count));
        self.inner.gauges(sink);
    }
}

#[cfg(test)]
mod tests {
    use hopwise_core::agent::Class;

    use crate::testkit::receiver::{Carried, ReceiverBench, check};

    #[test]
    fn the_count_is_one_more_out_of_order_and_nought_in_order() {
        check(
            "dup-count(delayed)",
            "0ms  in   -> hold (count 1 of 2)
             1ms  in   -> ack 2 (count 2 of 2) dup_count=0
             2ms  ooo  -> ack 0 (not-in-order) dup_count=1
             3ms  ooo  -> ack 0 (not-in-order) dup_count=2
             4ms  dup  -> ack 0 (not-in-order) dup_count=2
             5ms  ooo  -> ack 0 (not-in-order) dup_count=3
             6ms  fill -> ack 1 (not-in-order) dup_count=0
             7ms  ooo  -> ack 0 (not-in-order) dup_count=1
             8ms  in   -> hold (count 1 of 2)
             108ms timer -> ack 1 (deadline) dup_count=0
             108ms forced -> ack 0 dup_count=0
             900ms wait",
        );
    }

    #[test]
    fn the_count_stops_at_what_its_field_can_carry() {
        let mut bench = ReceiverBench::new("dup-count(immediate)");
        (0..300).for_each(|_| {
            bench.arrive(Class::OutOfOrder, Carried::PLAIN);
        });
        assert_eq!(bench.agent.note().dup_count, Some(255));
        assert_eq!(ReceiverBench::new("immediate").agent.note().dup_count, None);
    }

    #[test]
    fn it_asks_for_the_option() {
        assert!(ReceiverBench::new("dup-count(immediate)").agent.needs().dup_count);
        assert!(!ReceiverBench::new("immediate").agent.needs().dup_count);
    }
}
