//! What agents that hold segments share. An agent decides until when a segment waits, and `hold` keeps the deadline.

use std::fmt::Debug;

use hopwise_core::Instant;
use hopwise_core::agent::{
    AckDecided, AckNote, AckRule, AckVerdict, Arrival, Basis, By, Class, Needs, ReceiverAgent, RecvView, Why,
};

/// The longest hold that a setting may name. The ledger allows no longer one.
pub const LONGEST_MS: u64 = 490;

/// The decision on a segment.
#[derive(Clone, Copy, Debug)]
pub enum Decision {
    /// An ACK leaves at once.
    Now(Why),
    /// The segment waits until then. A hold that runs already moves its end to that time.
    Hold {
        /// The end of the hold.
        until: Instant,
        /// The reason, for the trace.
        why: Why,
    },
    /// The segment waits until then. A hold that runs already keeps its own end.
    Join {
        /// The end of the hold, if this segment begins it.
        until: Instant,
        /// The reason, for the trace.
        why: Why,
    },
}

impl Decision {
    /// The answer to a segment that is not in order.
    pub const AT_ONCE: Decision = Decision::Now(Why::plain(AckRule::NotInOrder));

    /// An ACK leaves at once if what waits reaches the count in `why`. Otherwise the segment joins the hold, which ends
    /// at `until`.
    pub fn counted(why: Why, until: Instant) -> Decision {
        if why.have >= why.want { Decision::Now(why) } else { Decision::Join { until, why } }
    }

    /// The same, but each segment moves the end of the hold.
    pub fn counted_anew(why: Why, until: Instant) -> Decision {
        if why.have >= why.want { Decision::Now(why) } else { Decision::Hold { until, why } }
    }
}

/// The arrival time of the first waiting segment.
pub fn since(arrival: &Arrival, view: &RecvView<'_>) -> Instant {
    view.owed.since.unwrap_or(arrival.now)
}

/// The rule of an agent that holds segments. Defaults stand for what an agent leaves out.
pub trait Holds: Debug + Send + 'static {
    /// The reason for an ACK at the end of a hold.
    const AT_END: AckRule = AckRule::Deadline;

    /// The next segment in sequence has arrived: an ACK at once, or a hold until a deadline.
    fn in_order(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> Decision;

    /// A segment has arrived that is out of order, a duplicate, or fills a hole.
    fn not_in_order(&mut self, _: &Arrival, _: &RecvView<'_>) -> Decision {
        Decision::AT_ONCE
    }

    /// A segment of any class has arrived. The decision on it follows.
    fn hear(&mut self, _: &Arrival, _: &RecvView<'_>) {}

    /// A hold has come to its end. Its ACK follows.
    fn ran_out(&mut self, _: &RecvView<'_>) {}

    /// The facts that the connection has to find out for the agent; see [`ReceiverAgent::needs`].
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// The source of the time until `due`; see [`ReceiverAgent::basis`].
    fn basis(&self, _due: Instant, _now: Instant, _: &RecvView<'_>) -> Option<Basis> {
        None
    }

    /// Numbers of the agent's state for `hopwise status` and traces, each with its unit in its name.
    fn gauges(&self, _: &mut dyn FnMut(&'static str, u64)) {}
}

/// The agent of a rule that [`Holds`].
pub fn host<R: Holds>(rule: R) -> Box<dyn ReceiverAgent> {
    Box::new(HoldingReceiver::new(rule))
}

/// Invariant 1: `due` is set only while segments are held.
#[derive(Debug)]
pub(super) struct HoldingReceiver<R> {
    rule: R,
    due: Option<Instant>,
}

impl<R> HoldingReceiver<R> {
    pub(super) fn new(rule: R) -> HoldingReceiver<R> {
        HoldingReceiver { rule, due: None }
    }
}

impl<R: Holds> ReceiverAgent for HoldingReceiver<R> {
    fn needs(&self) -> Needs {
        self.rule.needs()
    }

    fn on_arrival(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> AckVerdict {
        self.rule.hear(arrival, view);
        let decision = match arrival.class {
            Class::InOrder => self.rule.in_order(arrival, view),
            Class::FillsHole | Class::OutOfOrder | Class::Duplicate => self.rule.not_in_order(arrival, view),
        };
        let (until, why) = match decision {
            Decision::Now(why) => return AckVerdict::Now(why),
            Decision::Hold { until, why } => (until, why),
            Decision::Join { until, why } => (self.due.unwrap_or(until), why),
        };
        self.due = Some(until);
        AckVerdict::Hold(why)
    }

    fn on_deadline(&mut self, now: Instant, view: &RecvView<'_>) -> AckVerdict {
        let why = Why::plain(R::AT_END);
        if self.due.take_if(|due| *due <= now).is_none() {
            return AckVerdict::Hold(why);
        }
        self.rule.ran_out(view);
        AckVerdict::Now(why)
    }

    /// Any ACK but a repeat covers what was held.
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
        self.rule.gauges(sink);
    }

    fn basis(&self, now: Instant, view: &RecvView<'_>) -> Option<Basis> {
        self.rule.basis(self.due?, now, view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::receiver::{Carried, ReceiverBench};

    /// A segment waits one ms for each of its bytes. A segment with a push joins the hold that runs.
    #[derive(Debug)]
    struct ByBytes;

    impl Holds for ByBytes {
        fn in_order(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> Decision {
            let until = Instant::from_millis(arrival.bytes.into());
            let why = Why::new(AckRule::Count, view.owed.segments, 9);
            if arrival.push { Decision::Join { until, why } } else { Decision::Hold { until, why } }
        }
    }

    #[test]
    fn a_hold_is_over_once_and_only_a_joining_segment_keeps_its_end() {
        let mut bench = ReceiverBench::new("immediate");
        bench.agent = host(ByBytes);
        let mut due_after = |bytes, push| {
            bench.arrive(Class::InOrder, Carried { bytes, push, ..Carried::PLAIN });
            bench.agent.deadline()
        };
        let ms = |ms| Some(Instant::from_millis(ms));
        assert_eq!(due_after(5, true), ms(5));
        assert_eq!(due_after(9, true), ms(5));
        assert_eq!(due_after(7, false), ms(7));
        assert_eq!(due_after(8, false), ms(8));
        let at = |bench: &mut ReceiverBench, ms| {
            bench.now = Instant::from_millis(ms);
            let now = bench.now;
            bench.asked(|agent, view| agent.on_deadline(now, view))
        };
        assert!(matches!(at(&mut bench, 7), AckVerdict::Hold(_)));
        assert!(matches!(at(&mut bench, 8), AckVerdict::Now(_)));
        assert!(matches!(at(&mut bench, 8), AckVerdict::Hold(_)));
    }

    /// The basis of each hold, for segments that arrive at these times.
    fn basis(spec: &str, at_ms: &[u64]) -> Vec<Option<Basis>> {
        let mut bench = ReceiverBench::new(spec);
        let mut found = Vec::new();
        for at in at_ms {
            bench.now = Instant::from_millis(*at);
            if bench.play_line("in").starts_with("hold") {
                found.push(bench.basis());
            }
        }
        found
    }

    #[test]
    fn a_hold_that_gaps_made_names_them_and_one_that_is_as_long_as_may_be_does_not() {
        let mean = |us| Some(Basis::MeanGap { us });
        let shortest = |us| Some(Basis::ShortestGap { us });
        assert_eq!(basis("ada", &[0, 10, 20]), [None, mean(10_000), mean(10_000)]);
        assert_eq!(basis("ada:hold=11ms", &[0, 10]), [None, None]);
        // The first ACK covers two segments, since so few wait at the start.
        assert_eq!(basis("daa", &[0, 10, 20, 30, 40]).last(), Some(&mean(10_000)));
        assert_eq!(basis("aad", &[0, 10, 40]), [None, shortest(10_000), shortest(10_000)]);
        assert_eq!(basis("aad:hold=12ms", &[0, 10]), [None, None]);
        assert_eq!(basis("adw:least=5", &[0, 10, 40]), [None, shortest(10_000), shortest(10_000)]);
    }

    #[test]
    fn dca_names_the_mean_gap_at_the_segment_that_began_the_hold() {
        let found = basis("dca", &(0..40).map(|nth| nth * 10).collect::<Vec<_>>());
        assert!(found.contains(&Some(Basis::MeanGap { us: 10_000 })), "{found:?}");
        assert!(basis("dca:hold=1ms", &[0, 10, 20, 30]).iter().all(Option::is_none));
    }
}
