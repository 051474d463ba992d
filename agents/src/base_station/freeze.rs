//! `freeze`: sends the sender a window of zero before a fade, and the old window again after it.
//!
//! Source: Goff, Moronski, Phatak and Gupta, Freeze-TCP.
//!
//! Rule: when the link is going down, an ACK in the mobile's name closes the window. The mobile's own ACKs are replaced
//! by ACKs with a window of zero. When the link is up again, the mobile's newest number leaves with the window as it
//! was, until that has left twice.
//!
//! Deviations: the original runs at the mobile, which knows its window. The base station writes ACKs in the mobile's
//! name, and never with a number that the mobile has not sent. The forecast decides how early the window closes; the
//! original wants one RTT. The original opens the window with three ACKs. At most two copies of one ACK leave a base
//! station, and the mobile's own ACK is the first of them if it went on. Another fade before the mobile's next ACK
//! closes nothing, since no ACK could open the window again. ACKs are altered, which `ack-hold` never does.

use hopwise_core::Instant;
use hopwise_core::agent::{
    AdvertisedWindow, BaseStationAgent, Fate, FlowView, Kind, LinkNews, Order, Orders, Passing, Says, Side,
};
use hopwise_core::trace::DropReason;

use crate::descriptor::{Descriptor, Make};

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "freeze",
    rule: "closes the sender's window before a fade, and opens it with a duplicate ACK after it",
    source: "Goff et al., Freeze-TCP",
    params: &[],
    shorthand: None,
    make: Make::BaseStation(|_| Freeze::default().into()),
};

/// The most copies of an ACK that the base station lets leave.
const COPIES: u8 = 2;

#[derive(Debug, Default)]
pub(crate) struct Freeze {
    is_frozen: bool,
}

/// Sends the mobile's newest number with this window.
fn say(view: &FlowView, window: AdvertisedWindow, copies: u8, orders: &mut Orders) {
    if let Some(number) = view.acked {
        orders.give(Order::Acknowledge { number, window, copies });
    }
}

impl BaseStationAgent for Freeze {
    fn on_segment(&mut self, passing: &Passing<'_>, view: &FlowView, orders: &mut Orders) -> Fate {
        match (passing.from, passing.kind) {
            (Side::Mobile, Kind::Ack(says)) if self.is_frozen && says != Says::Less => {
                say(view, AdvertisedWindow::Zero, 1, orders);
                Fate::Drop(DropReason::Replaced)
            }
            _ => Fate::Forward,
        }
    }

    fn on_link(&mut self, _: Instant, news: LinkNews, view: &FlowView, orders: &mut Orders) {
        match news {
            LinkNews::GoingDown { .. } | LinkNews::Gone => {
                if !std::mem::replace(&mut self.is_frozen, true) {
                    say(view, AdvertisedWindow::Zero, 1, orders);
                }
            }
            LinkNews::Up => {
                if std::mem::replace(&mut self.is_frozen, false) {
                    say(view, AdvertisedWindow::AsBefore, COPIES, orders);
                }
            }
        }
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("frozen", self.is_frozen.into());
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::base_station::Desk;

    #[test]
    fn the_window_closes_before_the_fade_and_opens_after_it() {
        let mut desk = Desk::new("freeze");
        (1..=4).for_each(|packet| drop(desk.data(packet, packet)));
        assert_eq!(desk.ack(10, 2), "forward");
        assert_eq!(desk.going_down(20, 1_000), "say 2000 zero x1");
        assert_eq!(desk.ack(25, 3), "say 3000 zero x1; drop (replaced)");
        assert_eq!(desk.gone(30), "");
        assert_eq!(desk.up(1_000), "say 3000 as-before x2");
        assert_eq!(desk.ack(1_010, 5), "forward");
    }

    #[test]
    fn a_flow_that_nobody_has_acknowledged_is_left_alone() {
        let mut desk = Desk::new("freeze");
        desk.data(1, 1);
        assert_eq!([desk.gone(5), desk.up(9)], ["", ""]);
    }
}
