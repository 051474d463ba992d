//! `tarr`: acknowledges as often as the sender requests.
//!
//! Source: the TCP ACK Rate Request option (draft-ietf-tcpm-ack-rate-request-10).
//!
//! Rule: the sender's request R holds until the next request. An ACK leaves when R in-order segments wait, or when
//! `hold` has passed since the first of them. R = 0 requests one ACK at once and changes nothing after that. Before any
//! request, `d` segments share an ACK. Segments that are out of order, duplicate, or fill a hole are acknowledged at
//! once.
//!
//! Deviations: segments are counted, not full-sized segments. A peer that sends no request gets the ACKs of `delayed`.
//! The handshake does not show whether a peer that knows the option will send requests or only obey them. If data came
//! without a request, `rate-request` is reported as lacking. It is traced when the peer's data is over.

use std::time::Duration;

use hopwise_core::agent::{AckRequest, AckRule, Arrival, RecvView, Why};

use super::hold::{Decision, Holds, LONGEST_MS, host, since};
use crate::descriptor::{Descriptor, Make};
use crate::param::{Args, Form, params};

params! {
    /// in-order segments that share an ACK until the sender asks
    d: u32 = Form::count("segments", 1, 127).is(2),
    /// the longest that an in-order segment waits for its ACK
    hold: Duration = Form::millis(1, LONGEST_MS).is(100),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "tarr",
    rule: "acknowledges every R-th segment, R as the sender asks, and at once when it asks for that",
    source: "draft-ietf-tcpm-ack-rate-request-10",
    params: Params::TABLE,
    shorthand: Some("d"),
    make: Make::Receiver(|args| host(Tarr::new(args))),
};

#[derive(Debug)]
pub(crate) struct Tarr {
    wanted: u32,
    longest: Duration,
}

impl Tarr {
    fn new(args: &Args) -> Tarr {
        let Params { d, hold } = Params::of(args);
        Tarr { wanted: d, longest: hold }
    }
}

impl Holds for Tarr {
    fn hear(&mut self, arrival: &Arrival, _: &RecvView<'_>) {
        if let Some(AckRequest::Rate(rate @ 1..)) = arrival.ack_request {
            self.wanted = u32::from(rate);
        }
    }

    fn in_order(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> Decision {
        if arrival.ack_request == Some(AckRequest::Rate(0)) {
            return Decision::Now(Why::plain(AckRule::Asked));
        }
        let why = Why::new(AckRule::Rate, view.owed.segments, self.wanted);
        Decision::counted(why, since(arrival, view) + self.longest)
    }

    hopwise_core::needs!(ack_rate);

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("r_segments", u64::from(self.wanted));
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::receiver::scripts;

    scripts! {
        a_request_stands_until_the_next_one: "tarr"
            "0ms  in        -> hold (rate 1 of 2)
             1ms  in        -> ack 2 (rate 2 of 2)
             10ms in rate=3 -> hold (rate 1 of 3)
             11ms in        -> hold (rate 2 of 3)
             12ms in        -> ack 3 (rate 3 of 3)
             20ms in        -> hold (rate 1 of 3)
             21ms in rate=1 -> ack 2 (rate 2 of 1)
             22ms in        -> ack 1 (rate 1 of 1)
             900ms wait"

        a_request_for_one_ack_at_once_changes_no_rate: "tarr:d=4"
            "0ms in        -> hold (rate 1 of 4)
             1ms in rate=0 -> ack 2 (asked)
             2ms in        -> hold (rate 1 of 4)
             102ms timer   -> ack 1 (deadline)
             900ms wait"

        what_is_not_in_order_is_acknowledged_at_once_and_its_request_counts: "tarr"
            "0ms in         -> hold (rate 1 of 2)
             1ms ooo rate=3 -> ack 1 (not-in-order)
             2ms dup        -> ack 0 (not-in-order)
             3ms fill       -> ack 1 (not-in-order)
             4ms in         -> hold (rate 1 of 3)
             5ms forced     -> ack 1
             900ms wait"
    }
}
