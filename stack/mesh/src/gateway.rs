//! A node between a wire and a radio whose traffic goes through a proxy first. The proxy takes packets that cross from
//! one side to the other. The node forwards each packet that leaves the proxy as if it had just come in.
//!
//! Also the sources of link news about mobiles: a radio world, a schedule, a carrier, or the stations of an interface.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::net::IpAddr;

use hopwise_core::trace::{DropReason, TraceEvent};
use hopwise_core::wire::IpView;
use hopwise_core::{Cast, Instant, LinkEvent, LinkId, Machine, Payload, Rx};

use crate::node::Node;
use crate::proxy::{Proxy, ProxyConfig, ProxyCounts};

/// The proxy of a node, with the packets that go through it.
#[derive(Debug)]
pub struct Gateway {
    proxy: Proxy,
    fixed: LinkId,
    mobile: LinkId,
    /// The node's own addresses; packets for them do not cross.
    own: Vec<IpAddr>,
    buffer: Vec<u8>,
}

impl Gateway {
    /// `config` is the one that the proxy was made from.
    pub fn new(proxy: Proxy, config: &ProxyConfig, own: Vec<IpAddr>) -> Gateway {
        Gateway { proxy, fixed: config.fixed, mobile: config.mobile, own, buffer: Vec::new() }
    }

    /// The counters of the proxy.
    pub fn counts(&self) -> ProxyCounts {
        self.proxy.counts()
    }

    /// The packets that the proxy has dropped for this reason.
    pub fn drops(&self, reason: DropReason) -> u64 {
        self.proxy.drops(reason)
    }

    /// Gives a packet that came in to the proxy if it crosses, and to the node if not.
    pub fn handle_packet(&mut self, node: &mut Node, now: Instant, rx: &Rx<'_>) {
        if self.crosses(rx) {
            self.proxy.handle_packet(now, rx);
            self.feed(node, now);
        } else {
            node.handle_packet(now, rx);
        }
    }

    fn crosses(&self, rx: &Rx<'_>) -> bool {
        let is_side = rx.link == self.fixed || rx.link == self.mobile;
        let is_for_us = |dst: IpAddr| self.own.contains(&dst) || dst.is_multicast();
        is_side && rx.cast == Cast::ToUs && IpView::parse(rx.packet).is_ok_and(|view| !is_for_us(view.dst))
    }

    /// Gives an event of a link to the proxy and the node, as far as it concerns them.
    pub fn handle_link_event(&mut self, node: &mut Node, now: Instant, link: LinkId, event: &LinkEvent<'_>) {
        match *event {
            LinkEvent::NotDelivered { packet, .. } if link == self.mobile => {
                // A packet that waits for the link to come back is no lost route.
                if !self.proxy.take_back(now, packet) {
                    node.handle_link_event(now, link, event);
                }
            }
            LinkEvent::GoingDown { .. } | LinkEvent::Gone { .. } | LinkEvent::Up { .. } => {
                self.proxy.handle_link_event(now, link, event);
                node.handle_link_event(now, link, event);
            }
            _ => node.handle_link_event(now, link, event),
        }
        self.feed(node, now);
    }

    /// Lets the proxy do what is due, and the node forward what then departs.
    pub fn handle_timeout(&mut self, node: &mut Node, now: Instant) {
        self.proxy.handle_timeout(now);
        self.feed(node, now);
    }

    /// Hands departing packets to the node. Those that waited leave only while their queue has room.
    pub fn feed(&mut self, node: &mut Node, now: Instant) {
        for (out, came_in) in [(self.fixed, self.mobile), (self.mobile, self.fixed)] {
            loop {
                let has_room = node.queue(out).is_none_or(|queue| !queue.is_full());
                if !has_room && !self.proxy.next_is_passing(out) {
                    break;
                }
                let mut packet = std::mem::take(&mut self.buffer);
                packet.clear();
                let transmit = self.proxy.poll_transmit(now, out, Payload::Inline, &mut packet);
                if transmit.is_some() {
                    node.handle_packet(now, &Rx::new(came_in, &packet));
                }
                self.buffer = packet;
                if transmit.is_none() {
                    break;
                }
            }
        }
    }

    /// When the proxy has to act next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.proxy.poll_timeout()
    }

    /// Hands out the proxy's trace.
    pub fn drain_trace(&mut self, sink: &mut dyn FnMut(&TraceEvent)) {
        self.proxy.drain_trace(sink);
    }
}

/// A source of link news. It never waits.
pub trait LinkSource: Debug + Send {
    /// The next event that is known by now.
    fn poll_news(&mut self, now: Instant) -> Option<TimedEvent>;
    /// The time of the next possible event, for sources without a descriptor.
    fn poll_timeout(&self) -> Option<Instant>;
}

/// An event and its time: a signal may be older than the news of it.
#[derive(Clone, Copy, Debug)]
pub struct TimedEvent {
    /// The instant at which it happened or is forecast.
    pub at: Instant,
    /// The change of the link.
    pub event: LinkEvent<'static>,
}

/// Events that are known before their time.
#[derive(Clone, Debug, Default)]
pub struct Schedule(VecDeque<TimedEvent>);

impl Schedule {
    /// Takes the events in any order.
    pub fn new(news: impl IntoIterator<Item = TimedEvent>) -> Schedule {
        let mut news: Vec<TimedEvent> = news.into_iter().collect();
        news.sort_by_key(|timed| timed.at);
        Schedule(news.into())
    }
}

impl LinkSource for Schedule {
    fn poll_news(&mut self, now: Instant) -> Option<TimedEvent> {
        if self.0.front()?.at <= now { self.0.pop_front() } else { None }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.0.front().map(|timed| timed.at)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    #[test]
    fn a_schedule_says_each_thing_once_and_not_before_its_time() {
        let gone = |s, last| {
            let peer = IpAddr::from([10, 0, 0, last]);
            TimedEvent { at: Instant::from_secs(s), event: LinkEvent::Gone { peer } }
        };
        let mut schedule = Schedule::new([gone(2, 1), gone(1, 2), gone(2, 3)]);
        let mut at = |s| {
            let now = Instant::from_secs(s);
            let said = std::iter::from_fn(|| schedule.poll_news(now)).map(|timed| timed.at.as_millis());
            (said.collect::<Vec<_>>(), schedule.poll_timeout().map(Instant::as_millis))
        };
        assert_eq!(at(0), (vec![], Some(1_000)));
        assert_eq!(at(1), (vec![1_000], Some(2_000)));
        assert_eq!(at(9), (vec![2_000, 2_000], None));
    }
}
