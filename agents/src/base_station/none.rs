//! `none`: forwards everything.
//!
//! Source: RFC 1812 §5, the work of every router.
//!
//! Rule: every packet goes on in the order of arrival; the losses of the link stay lost.
//!
//! Deviations: none.

use hopwise_core::agent::{BaseStationAgent, Fate, FlowView, Orders, Passing, Requires};

use crate::descriptor::{Descriptor, Make};

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "none",
    rule: "forwards everything, as a router does",
    source: "RFC 1812 §5",
    params: &[],
    shorthand: None,
    make: Make::BaseStation(|_| Nothing::default().into()),
};

#[derive(Debug, Default)]
pub(crate) struct Nothing {
    pub(super) requires: Requires,
}

impl BaseStationAgent for Nothing {
    fn requires(&self) -> Requires {
        self.requires
    }

    fn on_segment(&mut self, _: &Passing<'_>, _: &FlowView, _: &mut Orders) -> Fate {
        Fate::Forward
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::base_station::Desk;

    #[test]
    fn everything_goes_on_whatever_the_link_does() {
        let mut desk = Desk::new("none");
        assert_eq!(desk.data(0, 1), "forward");
        assert_eq!(desk.going_down(5, 1_000), "");
        assert_eq!(desk.ack(10, 2), "forward");
        assert_eq!(desk.gone(20), "");
        assert_eq!(desk.data(30, 2), "forward");
        assert_eq!(desk.up(40), "");
    }
}
