//! `snoop`: resends what the radio has lost, and hides the loss from the sender.
//!
//! Source: Balakrishnan, Seshan, Amir and Katz, Improving TCP/IP Performance over Wireless Networks (snoop).
//!
//! Rule: copies of data for the mobile are kept until it acknowledges them. The first duplicate ACK for kept data
//! passes, and makes the base station resend that data. Further duplicates are dropped. Data that is not acknowledged
//! within max(srtt + 4·rttvar, tick) is resent, too, each packet at most `tries` times.
//!
//! Deviations: each flow has one timer, for its oldest packet, which doubles with each try. A SACK with other blocks
//! than before counts as a duplicate. After a fade the oldest packet is resent at once.

use std::time::Duration;

use hopwise_core::agent::{
    BaseStationAgent, Because, Fate, FlowView, Kind, LinkNews, Order, Orders, Passing, Says, Side,
};
use hopwise_core::trace::DropReason;
use hopwise_core::{Instant, Seq};

use crate::descriptor::{Descriptor, Make};
use crate::param::{Args, Form, params};

params! {
    /// copies that are kept at the most
    packets: u32 = Form::count("packets", 1, 10_000).is(100),
    /// each is sent again at most so often
    tries: u32 = Form::count("times", 1, 100).is(10),
    /// the timer's least
    tick: Duration = Form::millis(1, 10_000).is(100),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "snoop",
    rule: "sends again itself what the radio has lost, and keeps duplicate ACKs for it from the sender",
    source: "Balakrishnan et al., snoop",
    params: Params::TABLE,
    shorthand: None,
    make: Make::BaseStation(|args| Snoop::new(args).into()),
};

/// Invariant 1: the timer runs only while something is kept.
#[derive(Debug)]
pub(crate) struct Snoop {
    set: Params,
    /// The number that the mobile expects next, the duplicate ACKs for it, and how often it was resent.
    asked: Option<Seq>,
    duplicates: u32,
    tries: u32,
    due: Option<Instant>,
    resent: u64,
}

impl Snoop {
    fn new(args: &Args) -> Snoop {
        Snoop { set: Params::of(args), asked: None, duplicates: 0, tries: 0, due: None, resent: 0 }
    }

    fn timeout(&self, view: &FlowView) -> Duration {
        let measured = view.to_mobile.smoothed.map(|srtt| srtt + 4 * view.to_mobile.variance);
        measured.unwrap_or_default().max(self.set.tick) * (1 << self.tries.min(6))
    }

    fn arm(&mut self, now: Instant, kept: u32, view: &FlowView) {
        self.due = (kept > 0 && self.tries < self.set.tries).then(|| now + self.timeout(view));
    }

    fn resend(&mut self, now: Instant, because: Because, view: &FlowView, orders: &mut Orders) {
        let (Some(seq), true) = (view.acked, self.tries < self.set.tries) else { return };
        self.tries += 1;
        self.resent += 1;
        orders.give(Order::Resend { seq, because });
        self.arm(now, view.cached_packets, view);
    }

    fn on_duplicate(&mut self, now: Instant, view: &FlowView, orders: &mut Orders) -> Fate {
        if view.cached_packets == 0 {
            return Fate::Forward;
        }
        self.duplicates += 1;
        if self.duplicates == 1 {
            self.resend(now, Because::Hole, view, orders);
            return Fate::Forward;
        }
        Fate::Drop(DropReason::Suppressed)
    }
}

impl BaseStationAgent for Snoop {
    fn on_segment(&mut self, passing: &Passing<'_>, view: &FlowView, orders: &mut Orders) -> Fate {
        let now = passing.now;
        match (passing.from, passing.kind) {
            (Side::Fixed, _) if passing.len > 0 => {
                if view.cached_packets >= self.set.packets {
                    return Fate::Forward;
                }
                if self.due.is_none() {
                    self.arm(now, view.cached_packets + 1, view);
                }
                Fate::Copy(Because::Hole)
            }
            (Side::Mobile, Kind::Ack(Says::Again | Says::Blocks)) => self.on_duplicate(now, view, orders),
            (Side::Mobile, _) => {
                if let (Some(below), true) = (view.acked, self.asked != view.acked) {
                    orders.give(Order::Forget { below });
                    (self.asked, self.duplicates, self.tries) = (Some(below), 0, 0);
                    let is_all = view.data_end.is_none_or(|end| end <= below);
                    self.arm(now, if is_all { 0 } else { view.cached_packets }, view);
                }
                Fate::Forward
            }
            (Side::Fixed, _) => Fate::Forward,
        }
    }

    fn on_link(&mut self, now: Instant, news: LinkNews, view: &FlowView, orders: &mut Orders) {
        match news {
            LinkNews::GoingDown { .. } => {}
            LinkNews::Gone => self.due = None,
            LinkNews::Up => {
                (self.tries, self.duplicates) = (0, 0);
                self.resend(now, Because::Up, view, orders);
            }
        }
    }

    fn on_deadline(&mut self, now: Instant, view: &FlowView, orders: &mut Orders) {
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            self.resend(now, Because::TimedOut, view, orders);
        }
    }

    fn on_overflow(&mut self, _: Instant) {
        self.due = None;
    }

    fn deadline(&self) -> Option<Instant> {
        self.due
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("resent", self.resent);
        sink("most_packets", self.set.packets.into());
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::base_station::Desk;

    #[test]
    fn a_duplicate_ack_lets_the_hole_be_filled_and_the_second_one_goes_no_further() {
        let mut desk = Desk::new("snoop");
        for packet in 1..=4 {
            assert_eq!(desk.data(packet, packet), "copy (hole)");
        }
        assert_eq!(desk.ack(20, 2), "forget 2000; forward");
        assert_eq!(desk.ack(21, 2), "resend 2000 (hole); forward");
        assert_eq!(desk.ack(22, 2), "drop (suppressed)");
        assert_eq!(desk.ack(40, 5), "forget 5000; forward");
        assert_eq!(desk.deadline(), None);
    }

    #[test]
    fn what_nobody_acknowledges_is_sent_again_ten_times_at_most_and_ever_later() {
        let mut desk = Desk::new("snoop");
        desk.ack(0, 1);
        assert_eq!(desk.data(1, 1), "copy (hole)");
        let mut times = Vec::new();
        while let Some(at) = desk.deadline() {
            assert_eq!(desk.timer(at), "resend 1000 (timed-out)");
            times.push(at);
        }
        assert_eq!(times.len(), 10);
        assert_eq!(times[..3], [101, 301, 701]);
    }

    #[test]
    fn after_a_fade_the_oldest_packet_is_sent_again_at_once() {
        let mut desk = Desk::new("snoop");
        desk.ack(0, 1);
        desk.data(1, 1);
        assert_eq!(desk.gone(10), "");
        assert_eq!(desk.deadline(), None);
        assert_eq!(desk.up(5_000), "resend 1000 (up)");
    }

    #[test]
    fn no_more_copies_are_kept_than_were_allowed() {
        let mut desk = Desk::new("snoop:packets=2");
        assert_eq!(desk.data(1, 1), "copy (hole)");
        assert_eq!(desk.data(2, 2), "copy (hole)");
        assert_eq!(desk.data(3, 3), "forward");
    }
}
