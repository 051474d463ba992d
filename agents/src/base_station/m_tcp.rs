//! `m-tcp`: keeps the last acknowledged byte back, so that its ACK can close the window.
//!
//! Source: Brown and Singh, M-TCP: TCP for Mobile Cellular Networks.
//!
//! Rule: the sender gets an ACK for all that the mobile acknowledges but the last byte. When the link is gone, the ACK
//! of the last byte follows with a window of zero, which freezes the sender. Data for the mobile is kept then. When the
//! link is up, that data goes out, and an ACK restores the window. A last byte that nothing follows is acknowledged
//! after `wait`.
//!
//! Deviations: the original splits the connection at the base station. Here ACKs are written anew in the mobile's name,
//! never with a number that the mobile has not sent. `wait` is ours: without it a sender that pauses would time out.
//! ACKs are altered, which `ack-hold` never does.

use std::time::Duration;

use hopwise_core::agent::{
    AdvertisedWindow, BaseStationAgent, Because, Fate, FlowView, Kind, LinkNews, Order, Orders, Passing,
    Says, Side,
};
use hopwise_core::trace::DropReason;
use hopwise_core::{Instant, Seq};

use crate::descriptor::{Descriptor, Make};
use crate::param::{Args, Form, params};

params! {
    /// time that a last byte stays unacknowledged when nothing follows
    wait: Duration = Form::millis(1, 10_000).is(100),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "m-tcp",
    rule: "keeps the last acknowledged byte back, and closes the window with it when the link is gone",
    source: "Brown and Singh, M-TCP",
    params: Params::TABLE,
    shorthand: None,
    make: Make::BaseStation(|args| MTcp::new(args).into()),
};

/// Invariant 1: `due` is `Some` while a last byte is kept back and the link is not gone.
#[derive(Debug)]
pub(crate) struct MTcp {
    wait: Duration,
    due: Option<Instant>,
    is_gone: bool,
}

impl MTcp {
    fn new(args: &Args) -> MTcp {
        MTcp { wait: Params::of(args).wait, due: None, is_gone: false }
    }
}

fn say(number: Option<Seq>, window: AdvertisedWindow, orders: &mut Orders) {
    if let Some(number) = number {
        orders.give(Order::Acknowledge { number, window, copies: 1 });
    }
}

impl BaseStationAgent for MTcp {
    fn on_segment(&mut self, passing: &Passing<'_>, view: &FlowView, orders: &mut Orders) -> Fate {
        if passing.from == Side::Fixed && self.is_gone {
            return Fate::Hold(Because::Gone);
        }
        let (Side::Mobile, Kind::Ack(Says::More)) = (passing.from, passing.kind) else {
            return Fate::Forward;
        };
        // Before the first byte of data there is no byte to keep back.
        if view.mss == 0 {
            return Fate::Forward;
        }
        if self.is_gone {
            say(view.acked, AdvertisedWindow::Zero, orders);
        } else {
            say(view.acked.map(|acked| acked - 1), AdvertisedWindow::AsBefore, orders);
            self.due = Some(passing.now + self.wait);
        }
        Fate::Drop(DropReason::Replaced)
    }

    fn on_link(&mut self, _: Instant, news: LinkNews, view: &FlowView, orders: &mut Orders) {
        match news {
            LinkNews::GoingDown { .. } => {}
            LinkNews::Gone => {
                if !std::mem::replace(&mut self.is_gone, true) {
                    self.due = None;
                    say(view.acked, AdvertisedWindow::Zero, orders);
                }
            }
            LinkNews::Up => {
                if std::mem::replace(&mut self.is_gone, false) {
                    orders.release_all(Side::Fixed, Because::Up);
                    say(view.acked, AdvertisedWindow::AsBefore, orders);
                }
            }
        }
    }

    fn on_deadline(&mut self, now: Instant, view: &FlowView, orders: &mut Orders) {
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            say(view.acked, AdvertisedWindow::AsBefore, orders);
        }
    }

    fn takes_back(&self) -> bool {
        self.is_gone
    }

    fn deadline(&self) -> Option<Instant> {
        self.due
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("gone", self.is_gone.into());
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::base_station::Desk;

    #[test]
    fn all_but_the_last_byte_is_acknowledged_and_the_last_one_when_nothing_follows() {
        let mut desk = Desk::new("m-tcp");
        desk.data(1, 1);
        assert_eq!(desk.ack(10, 2), "say 1999 as-before x1; drop (replaced)");
        assert_eq!(desk.deadline(), Some(110));
        assert_eq!(desk.timer(110), "say 2000 as-before x1");
        assert_eq!(desk.deadline(), None);
    }

    #[test]
    fn the_last_byte_closes_the_window_when_the_link_is_gone() {
        let mut desk = Desk::new("m-tcp");
        desk.data(1, 1);
        desk.ack(10, 2);
        assert_eq!(desk.gone(20), "say 2000 zero x1");
        assert_eq!([desk.gone(21), desk.going_down(22, 9)], ["", ""]);
        assert_eq!(desk.deadline(), None);
        assert_eq!(desk.data(30, 2), "hold (gone)");
        assert_eq!(desk.up(500), "release all fixed (up); say 2000 as-before x1");
    }
}
