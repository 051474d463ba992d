//! `delayed-dupacks`: holds third and later duplicate ACKs, in case the link fills the hole by itself.
//!
//! Source: Vaidya, Mehta, Perkins and Montenegro, Delayed Duplicate Acknowledgements (delayed dupacks).
//!
//! Rule: the first two duplicate ACKs for a hole pass. Later ones are held for d. They are dropped if the hole fills
//! before then, and go on if it does not.
//!
//! Deviations: the original runs at the mobile. Here the base station waits, which the sender cannot tell apart.

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::{
    BaseStationAgent, Because, Fate, FlowView, Kind, Order, Orders, Passing, Says, Side,
};
use hopwise_core::trace::DropReason;

use crate::descriptor::{Descriptor, Make};
use crate::param::{Form, params};

params! {
    /// time that duplicate ACKs wait
    d: Duration = Form::millis(1, 10_000).is(100),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "delayed-dupacks",
    rule: "holds third and later duplicate ACKs for d, and drops them when the hole fills before",
    source: "Vaidya et al., delayed dupacks",
    params: Params::TABLE,
    shorthand: Some("d"),
    make: Make::BaseStation(|args| DelayedDupacks { d: Params::of(args).d, duplicates: 0, due: None }.into()),
};

/// Invariant 1: `due` is `Some` exactly while duplicates are held.
#[derive(Debug)]
pub(crate) struct DelayedDupacks {
    d: Duration,
    duplicates: u32,
    due: Option<Instant>,
}

impl BaseStationAgent for DelayedDupacks {
    fn on_segment(&mut self, passing: &Passing<'_>, view: &FlowView, orders: &mut Orders) -> Fate {
        if passing.from == Side::Fixed {
            return Fate::Forward;
        }
        let Kind::Ack(says) = passing.kind else {
            self.due = None;
            return Fate::Forward;
        };
        match says {
            Says::Again | Says::Blocks => {
                self.duplicates += 1;
                if self.duplicates < 3 {
                    return Fate::Forward;
                }
                self.due = self.due.or(Some(passing.now + self.d));
                Fate::Hold(Because::Hole)
            }
            Says::More => {
                self.duplicates = 0;
                self.due = None;
                if view.held_acks > 0 {
                    orders.give(Order::Discard { of: Side::Mobile, reason: DropReason::Suppressed });
                }
                Fate::Forward
            }
            Says::Window => {
                self.due = None;
                Fate::Forward
            }
            Says::Less => Fate::Forward,
        }
    }

    fn on_deadline(&mut self, now: Instant, _: &FlowView, orders: &mut Orders) {
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            orders.release_all(Side::Mobile, Because::TimedOut);
        }
    }

    fn on_overflow(&mut self, _: Instant) {
        self.due = None;
    }

    fn deadline(&self) -> Option<Instant> {
        self.due
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("duplicates", self.duplicates.into());
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::base_station::Desk;

    #[test]
    fn the_third_duplicate_waits_and_is_dropped_when_the_hole_fills() {
        let mut desk = Desk::new("delayed-dupacks:50ms");
        (1..=6).for_each(|packet| drop(desk.data(packet, packet)));
        assert_eq!(desk.ack(10, 2), "forward");
        assert_eq!([desk.ack(11, 2), desk.ack(12, 2)], ["forward", "forward"]);
        assert_eq!([desk.ack(13, 2), desk.ack(14, 2)], ["hold (hole)", "hold (hole)"]);
        assert_eq!(desk.deadline(), Some(63));
        assert_eq!(desk.ack(30, 7), "discard mobile (suppressed); forward");
        assert_eq!(desk.deadline(), None);
    }

    #[test]
    fn duplicates_go_on_when_the_hole_stays() {
        let mut desk = Desk::new("delayed-dupacks");
        (1..=6).for_each(|packet| drop(desk.data(packet, packet)));
        (10..14).for_each(|at| drop(desk.ack(at, 2)));
        assert_eq!(desk.timer(113), "release all mobile (timed-out)");
        assert_eq!(desk.deadline(), None);
    }
}
