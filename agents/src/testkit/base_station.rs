//! A test desk for base-station agents. It plays a flow of 1000-byte segments step by step, as a proxy would show it.
//! The agent's answer to each step is one line: its orders, then the packet's fate.

use std::collections::VecDeque;
use std::time::Duration;

use hopwise_core::agent::{
    ALL_PACKETS, AdvertisedWindow, BaseStationAgent, BaseStationMaker, Dialect, Fate, FlowView, Kind,
    LinkNews, Order, Orders, Passing, Rtt, Says, Side,
};
use hopwise_core::wire::Flags;
use hopwise_core::{Instant, Seq};

use crate::StandardAgents;

const SEGMENT: u32 = 1_000;
/// The mobile's window, unless a step sets another.
const WINDOW: u32 = 100_000;

pub(crate) struct Desk {
    agent: Box<dyn BaseStationAgent>,
    pub(crate) view: FlowView,
    window: u32,
    acks: VecDeque<Seq>,
    cache: VecDeque<Seq>,
}

impl Desk {
    /// A flow with an RTT of 50 ms that varies by 5 ms, with timestamps, and with a sender that looks like Linux.
    pub(crate) fn new(spec: &str) -> Desk {
        let ms = Duration::from_millis;
        let rtt = |smoothed, variance| Rtt {
            latest: Some(ms(smoothed)),
            smoothed: Some(ms(smoothed)),
            variance: ms(variance),
            min: Some(ms(smoothed)),
        };
        let mut view = FlowView::default();
        (view.has_timestamps, view.has_sack, view.is_whole) = (true, true, true);
        (view.dialect, view.to_mobile, view.whole) = (Dialect::Linux, rtt(10, 1), rtt(50, 5));
        let agent = StandardAgents::default().base_station(spec).expect("a spec")().agent();
        Desk { agent, view, window: WINDOW, acks: VecDeque::new(), cache: VecDeque::new() }
    }

    /// The fixed end's nth segment, which begins at number n·1000.
    pub(crate) fn data(&mut self, at_ms: u32, nth: u32) -> String {
        let seq = Seq(nth * SEGMENT);
        let end = seq + SEGMENT;
        self.view.data_end = Some(self.view.data_end.map_or(end, |known| known.max(end)));
        self.view.mss = SEGMENT;
        self.pass(at_ms, Side::Fixed, (seq, SEGMENT), Seq(1), Kind::Data)
    }

    /// The mobile acknowledges all data before its nth segment.
    pub(crate) fn ack(&mut self, at_ms: u32, nth: u32) -> String {
        self.window(at_ms, nth, self.window)
    }

    pub(crate) fn window(&mut self, at_ms: u32, nth: u32, window: u32) -> String {
        let ack = Seq(nth * SEGMENT);
        let says = match self.view.acked {
            Some(known) if ack < known => Says::Less,
            Some(known) if ack == known && window == self.window => Says::Again,
            Some(known) if ack == known => Says::Window,
            _ => Says::More,
        };
        self.window = window;
        self.view.acked = Some(self.view.acked.map_or(ack, |known| known.max(ack)));
        let edge = ack + window;
        self.view.promised = Some(self.view.promised.map_or(edge, |known| known.max(edge)));
        self.pass(at_ms, Side::Mobile, (Seq(1), 0), ack, Kind::Ack(says))
    }

    /// The mobile ends the connection.
    pub(crate) fn fin(&mut self, at_ms: u32, nth: u32) -> String {
        self.pass(at_ms, Side::Mobile, (Seq(1), 0), Seq(nth * SEGMENT), Kind::Control)
    }

    fn pass(&mut self, at_ms: u32, from: Side, (seq, len): (Seq, u32), ack: Seq, kind: Kind) -> String {
        let now = at(at_ms);
        let flags = if kind == Kind::Control { Flags::FIN | Flags::ACK } else { Flags::ACK };
        let mut passing = Passing::new(now, from, kind, seq, len);
        (passing.ack, passing.flags, passing.window) = (Some(ack), flags, self.window);
        let mut orders = Orders::new();
        let fate = self.agent.on_segment(&passing, &self.view, &mut orders);
        let mut lines = self.obey(now, &orders);
        lines.push(self.settle(&passing, fate));
        lines.join("; ")
    }

    pub(crate) fn going_down(&mut self, at_ms: u32, outage_ms: u64) -> String {
        self.going_down_within(at_ms, outage_ms, 0)
    }

    pub(crate) fn going_down_within(&mut self, at_ms: u32, outage_ms: u64, within_ms: u64) -> String {
        let [outage, within] = [outage_ms, within_ms].map(Duration::from_millis);
        self.tell(at_ms, LinkNews::GoingDown { rtt: Duration::from_millis(10), outage, within })
    }

    pub(crate) fn gone(&mut self, at_ms: u32) -> String {
        self.tell(at_ms, LinkNews::Gone)
    }

    pub(crate) fn up(&mut self, at_ms: u32) -> String {
        self.tell(at_ms, LinkNews::Up)
    }

    pub(crate) fn tell(&mut self, at_ms: u32, news: LinkNews) -> String {
        let mut orders = Orders::new();
        self.agent.on_link(at(at_ms), news, &self.view, &mut orders);
        self.obey(at(at_ms), &orders).join("; ")
    }

    pub(crate) fn timer(&mut self, at_ms: u64) -> String {
        let now = Instant::from_millis(at_ms);
        let mut orders = Orders::new();
        self.agent.on_deadline(now, &self.view, &mut orders);
        let lines = self.obey(now, &orders).join("; ");
        assert!(self.agent.deadline().is_none_or(|due| due > now), "the deadline stays due");
        lines
    }

    pub(crate) fn overflow(&mut self, at_ms: u32) {
        self.acks.clear();
        self.view.held_acks = 0;
        self.agent.on_overflow(at(at_ms));
    }

    /// The deadline in milliseconds, rounded up.
    pub(crate) fn deadline(&self) -> Option<u64> {
        self.agent.deadline().map(|due| due.0.div_ceil(1_000_000))
    }

    pub(crate) fn held(&self) -> usize {
        self.acks.len()
    }

    fn obey(&mut self, now: Instant, orders: &Orders) -> Vec<String> {
        orders.iter().filter_map(|order| self.obey_one(now, order)).collect()
    }

    fn obey_one(&mut self, now: Instant, order: Order) -> Option<String> {
        let line = match order {
            Order::Release { of, packets, because } => {
                let held = if of == Side::Mobile { &mut self.acks } else { &mut self.cache };
                let count = held.len().min(packets as usize);
                let last = held.drain(..count).next_back();
                if let (Side::Mobile, Some(ack)) = (of, last) {
                    (self.view.passed, self.view.passed_at) = (Some(ack), Some(now));
                }
                let number = if packets == ALL_PACKETS { "all".to_owned() } else { packets.to_string() };
                format!("release {number} {} ({})", of.name(), because.name())
            }
            Order::Discard { of, reason } => {
                if of == Side::Mobile {
                    self.acks.clear();
                } else {
                    self.cache.clear();
                }
                format!("discard {} ({})", of.name(), reason.name())
            }
            Order::Forget { below } => {
                self.cache.retain(|seq| *seq + SEGMENT > below);
                format!("forget {below}")
            }
            Order::Repeat { because } => format!("repeat ({})", because.name()),
            Order::Duplicate { because } => {
                let ack = *self.acks.front().expect("an ACK waits");
                (self.view.passed, self.view.passed_at) = (Some(ack), Some(now));
                format!("duplicate ({})", because.name())
            }
            Order::Resend { seq, because } => format!("resend {seq} ({})", because.name()),
            Order::Acknowledge { number, window, copies } => {
                assert!(
                    self.view.acked.is_some_and(|acked| number <= acked),
                    "the mobile never said {number}"
                );
                let window = if window == AdvertisedWindow::Zero { "zero" } else { "as-before" };
                format!("say {number} {window} x{copies}")
            }
        };
        self.count();
        Some(line)
    }

    fn settle(&mut self, passing: &Passing<'_>, fate: Fate) -> String {
        let line = match fate {
            Fate::Forward => {
                if passing.from == Side::Mobile && passing.kind != Kind::Ack(Says::Less) {
                    self.acks.clear();
                }
                "forward".to_owned()
            }
            Fate::Replace(because) => format!("replace ({})", because.name()),
            Fate::Hold(because) | Fate::Copy(because) => {
                match passing.from {
                    Side::Mobile => self.acks.extend(passing.ack),
                    Side::Fixed if !self.cache.contains(&passing.seq) => self.cache.push_back(passing.seq),
                    Side::Fixed => {}
                }
                let verb = if matches!(fate, Fate::Hold(_)) { "hold" } else { "copy" };
                format!("{verb} ({})", because.name())
            }
            Fate::Drop(reason) => format!("drop ({})", reason.name()),
        };
        let goes_on = matches!(fate, Fate::Forward | Fate::Replace(_) | Fate::Copy(_));
        if let (Side::Mobile, Some(ack), true) = (passing.from, passing.ack, goes_on) {
            (self.view.passed, self.view.passed_at) = (Some(ack), Some(passing.now));
        }
        self.count();
        line
    }

    fn count(&mut self) {
        self.view.held_acks = self.acks.len() as u32;
        self.view.cached_packets = self.cache.len() as u32;
        self.view.cached_bytes = SEGMENT * self.view.cached_packets;
    }
}

fn at(ms: u32) -> Instant {
    Instant::from_millis(ms.into())
}
