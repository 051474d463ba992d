//! `immediate`: acknowledges every segment.
//!
//! Source: RFC 9293 §3.8.6.3 allows it, and the papers call it plain TCP. Every ACK competes for the channel with the
//! data that it acknowledges. All other agents here try to change that, and this one is their yardstick.
//!
//! Rule: each data segment is acknowledged when it arrives.
//! Parameters: none.
//! Deviations: none.

use hopwise_core::agent::{AckRule, Arrival, RecvView, Why};

use super::hold::{Decision, Holds, host};
use crate::descriptor::{Descriptor, Make};

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "immediate",
    rule: "acknowledges every segment",
    source: "RFC 9293 §3.8.6.3",
    params: &[],
    shorthand: None,
    make: Make::Receiver(|_| host(Immediate)),
};

#[derive(Debug)]
pub(crate) struct Immediate;

impl Holds for Immediate {
    fn in_order(&mut self, _: &Arrival, _: &RecvView<'_>) -> Decision {
        Decision::Now(Why::plain(AckRule::Each))
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::receiver::check;

    #[test]
    fn every_segment_is_acknowledged_when_it_arrives() {
        check(
            "immediate",
            "0ms  in        -> ack 1 (each)
             1ms  in        -> ack 1 (each)
             1ms  in 1B     -> ack 1 (each)
             2ms  ooo       -> ack 0 (not-in-order)
             3ms  dup       -> ack 0 (not-in-order)
             4ms  fill      -> ack 1 (not-in-order)
             900ms wait",
        );
    }
}
