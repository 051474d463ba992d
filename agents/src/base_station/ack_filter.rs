//! `ack-filter`: of a flow's pure ACKs that wait for a link, only the newest leaves.
//!
//! Source: RFC 3449 §5.2.1 (ACK filtering).
//!
//! Rule: a pure ACK that acknowledges more takes the place of the flow's last one that still waits for room on its
//! link. Duplicates pass, and so do ACKs with other SACK blocks or another window, and all packets with data or a flag.
//! Both directions are filtered, so that uploads of mobiles gain if the radio is the bottleneck.
//!
//! Deviations: an ACK that acknowledges more may also carry another window; the newer window is then the better one.

use hopwise_core::agent::{BaseStationAgent, Because, Fate, FlowView, Kind, Orders, Passing, Says, Side};
use hopwise_core::wire::Flags;

use crate::descriptor::{Descriptor, Make};

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "ack-filter",
    rule: "lets only the newest go of a flow's pure ACKs that wait for a link",
    source: "RFC 3449 §5.2.1",
    params: &[],
    shorthand: None,
    make: Make::BaseStation(|_| AckFilter::default().into()),
};

#[derive(Debug, Default)]
pub(crate) struct AckFilter {
    /// The highest ACK number of the fixed end, whose ACKs arrive without a class.
    fixed_acked: Option<hopwise_core::Seq>,
    filtered: u64,
}

impl AckFilter {
    fn says_more(&mut self, passing: &Passing<'_>) -> bool {
        if passing.from == Side::Mobile {
            return passing.kind == Kind::Ack(Says::More);
        }
        let is_pure = passing.len == 0 && passing.flags == Flags::ACK && passing.sack.is_empty();
        let is_more = self.fixed_acked.is_none_or(|known| passing.ack.is_some_and(|ack| ack > known));
        if is_more {
            self.fixed_acked = passing.ack.or(self.fixed_acked);
        }
        is_pure && is_more
    }
}

impl BaseStationAgent for AckFilter {
    fn on_segment(&mut self, passing: &Passing<'_>, _: &FlowView, _: &mut Orders) -> Fate {
        if passing.sack.is_empty() && self.says_more(passing) {
            self.filtered += 1;
            return Fate::Replace(Because::Newer);
        }
        Fate::Forward
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("filtered", self.filtered);
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::base_station::Desk;

    #[test]
    fn only_an_ack_that_says_more_takes_another_one_s_place() {
        let mut desk = Desk::new("ack-filter");
        (1..=4).for_each(|packet| drop(desk.data(packet, packet)));
        assert_eq!(desk.ack(10, 2), "replace (newer)");
        assert_eq!(desk.ack(11, 2), "forward");
        assert_eq!(desk.window(12, 2, 9_000), "forward");
        assert_eq!(desk.ack(13, 4), "replace (newer)");
        assert_eq!(desk.ack(14, 3), "forward");
    }
}
