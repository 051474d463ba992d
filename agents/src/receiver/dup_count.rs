//! `dup-count(SPEC)`: tells the sender how many segments came out of order.
//!
//! Source: TCP-pgy, sender side S2. On a path that loses and reorders ACKs the sender counts too few duplicate
//! ACKs, or too late; here the receiver counts and every ACK carries the count, so that any one of them will do.
//!
//! Rule: the count is 0 after an in-order or hole-filling segment, one more after an out-of-order one, unchanged
//! by a duplicate. When to acknowledge is left to the wrapped agent.
//!
//! Parameters: none. Deviations: the count stops at 255, which is all that the option carries. Without the peer's
//! consent nothing is sent and the wrapped agent runs alone.

use hopwise_core::Instant;
use hopwise_core::agent::{AckDecided, AckNote, AckVerdict, Arrival, Class, Needs, ReceiverAgent, RecvView};

use crate::registry::{Descriptor, Make};

pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "dup-count",
    rule: "tells the number of out-of-order segments since the last in-order one in every ACK of the agent inside",
    source: "TCP-pgy (S2)",
    params: &[],
    shorthand: None,
    make: Make::ReceiverAround(|_, inner| Box::new(DupCount { inner, count: 0 })),
};

#[derive(Debug)]
pub struct DupCount {
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

    fn note(&self) -> AckNote {
        AckNote { dup_count: Some(self.count) }
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("dup_count", u64::from(self.count));
        self.inner.gauges(sink);
    }
}
