//! `delayed`: acknowledge every d-th segment, or when a hold runs out.
//!
//! Source: RFC 9293 §3.8.6.3 with d = 2; Gupta and Bhawnani (delayed ACKs on a chain topology) vary d from 2 to 4.
//!
//! Rule: an in-order segment is held until d of them are unacknowledged, or until `hold` has passed since the
//! first of them. Segments that are out of order, duplicate, or fill a hole are acknowledged at once.
//!
//! | parameter | unit | default | meaning |
//! |---|---|---|---|
//! | d | segments | 2 | acknowledge when so many in-order segments wait |
//! | hold | time | 100ms | the longest that the first of them waits |
//!
//! Deviations: segments are counted, not full-sized segments; a hold of 100 ms is that of the papers' simulations,
//! hosts often use 200 ms. With d > 2 SHLD-19 (an ACK for every second full-sized segment) is broken on purpose.

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::{
    AckDecided, AckNote, AckVerdict, Arrival, By, Class, Needs, ReceiverAgent, RecvView, Rule, Why,
};

use crate::param::{Args, Form, Param, Value};
use crate::registry::{Descriptor, Make};

pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "delayed",
    rule: "acknowledges when d in-order segments wait, or when the hold of the first one runs out",
    source: "RFC 9293 §3.8.6.3",
    params: &[
        Param::new(
            "d",
            Form::count("segments", 2, 65_535),
            Value::Count(2),
            "acknowledge when so many in-order segments are unacknowledged",
        ),
        Param::new(
            "hold",
            Form::millis(1, 490),
            Value::millis(100),
            "the longest that an in-order segment waits for its ACK",
        ),
    ],
    shorthand: Some("d"),
    make: Make::Receiver(|args| Box::new(Delayed::new(args))),
};

/// Invariant 1: `due` is set exactly while in-order segments are held.
#[derive(Debug)]
pub struct Delayed {
    d: u32,
    hold: Duration,
    due: Option<Instant>,
}

impl Delayed {
    fn new(args: &Args) -> Delayed {
        Delayed { d: args.count_u32("d"), hold: args.time("hold"), due: None }
    }

    fn take_in_order(&mut self, now: Instant, view: &RecvView<'_>) -> AckVerdict {
        let why = Why::new(Rule::Count, view.owed.segments, self.d);
        if view.owed.segments >= self.d {
            return AckVerdict::Now(why);
        }
        self.due.get_or_insert(view.owed.since.unwrap_or(now) + self.hold);
        AckVerdict::Hold(why)
    }
}

impl ReceiverAgent for Delayed {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn on_arrival(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> AckVerdict {
        match arrival.class {
            Class::InOrder => self.take_in_order(arrival.now, view),
            Class::FillsHole | Class::OutOfOrder | Class::Duplicate => {
                AckVerdict::Now(Why::plain(Rule::NotInOrder))
            }
        }
    }

    fn on_deadline(&mut self, now: Instant, _: &RecvView<'_>) -> AckVerdict {
        let why = Why::plain(Rule::Deadline);
        if self.due.is_none_or(|due| due > now) {
            return AckVerdict::Hold(why);
        }
        self.due = None;
        AckVerdict::Now(why)
    }

    fn on_ack(&mut self, ack: &AckDecided, _: &RecvView<'_>) {
        if ack.by != By::Repeat {
            self.due = None;
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.due
    }

    fn note(&self) -> AckNote {
        AckNote::default()
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("d_segments", u64::from(self.d));
    }
}
