//! `growing`: waits for one segment more before each ACK, and begins again where data is missing.
//!
//! Source: our own, for `docs/own-agent.md`.
//!
//! Rule: an ACK waits for n in-order segments, or until `hold` has passed since the first of them. n begins at 1 and
//! grows by one with each ACK that has come to it, up to `most`. A segment that is not in order is acknowledged at
//! once, and n is 1 again.
//!
//! Deviations: from nothing, since no paper has it.

use hopwise::agent::{
    AckRule, Arrival, Brief, Decision, Descriptor, Form, Holds, LONGEST_MS, Make, RecvView, Why, host,
    params, since,
};

params! {
    /// the most segments that an ACK waits for
    most: u32 = Form::count("segments", 1, 65_535).is(8),
    /// the longest that an in-order segment waits for its ACK
    hold: Brief = Form::millis(1, LONGEST_MS).is(100),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "growing",
    rule: "waits for one segment more before each ACK, and begins again where data is missing",
    source: "our own",
    params: Params::TABLE,
    shorthand: Some("most"),
    make: Make::Receiver(|args| host(Growing { params: Params::of(args), wanted: 1 })),
};

#[derive(Debug)]
struct Growing {
    params: Params,
    wanted: u32,
}

impl Holds for Growing {
    fn in_order(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> Decision {
        let why = Why::new(AckRule::Count, view.owed.segments, self.wanted);
        if why.have >= why.want {
            self.wanted = (self.wanted + 1).min(self.params.most);
        }
        Decision::counted(why, since(arrival, view) + self.params.hold.time())
    }

    fn not_in_order(&mut self, _: &Arrival, _: &RecvView<'_>) -> Decision {
        self.wanted = 1;
        Decision::AT_ONCE
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("wanted_segments", u64::from(self.wanted));
    }
}

#[cfg(test)]
mod tests {
    use super::DESCRIPTOR;
    use hopwise::testkit;

    #[test]
    fn each_ack_waits_for_one_segment_more_up_to_the_most() {
        testkit::of(&DESCRIPTOR).check(
            "growing:3",
            "0ms  in -> ack 1 (count 1 of 1)
             10ms in -> hold (count 1 of 2)
             20ms in -> ack 2 (count 2 of 2)
             30ms in -> hold (count 1 of 3)
             40ms in -> hold (count 2 of 3)
             50ms in -> ack 3 (count 3 of 3)
             60ms in -> hold (count 1 of 3)
             160ms timer -> ack 1 (deadline)
             170ms wait",
        );
    }

    #[test]
    fn missing_data_lets_it_begin_again() {
        testkit::of(&DESCRIPTOR).check(
            "growing",
            "0ms  in  -> ack 1 (count 1 of 1)
             10ms in  -> hold (count 1 of 2)
             20ms ooo -> ack 1 (not-in-order)
             30ms in  -> ack 1 (count 1 of 1)
             40ms wait",
        );
    }

    #[test]
    fn it_keeps_its_contract() {
        testkit::of(&DESCRIPTOR).survives_any_order_of_events();
    }
}
