//! The resolution of neighbours' addresses: questions and answers of ARP and NDP, and the packets that wait for them.

use std::net::IpAddr;

use hopwise_core::Instant;

use super::ethernet::{self, EthernetFrame, Mac, Protocol};
use super::neighbours::NeighbourQuestion;
use super::{Raw, arp, ndp};
use crate::counters::LinkDrop;
use crate::frames::EthernetHeader;
use crate::link::Sent;
use crate::observer::Direction;

impl Raw {
    pub(super) fn take_arp(&mut self, now: Instant, packet: &[u8]) {
        let Some(seen) = arp::parse(packet) else { return self.tally.dropped(LinkDrop::Malformed) };
        let asks_us = self.is_ours(seen.target) && seen.is_question;
        self.learn(now, seen.sender, seen.mac, asks_us);
        if asks_us {
            self.look_at_mac(now);
            let answer = arp::answer(self.own.mac, seen.target, seen.mac, seen.sender);
            self.put_frame(now, seen.mac, Protocol::Arp, &answer);
        }
    }

    /// Returns whether the packet was NDP, and has been handled.
    pub(super) fn take_ndp(&mut self, now: Instant, ethernet: EthernetHeader, packet: &[u8]) -> bool {
        let Some(seen) = ndp::parse(packet) else { return false };
        let Some(EthernetFrame { from, .. }) = EthernetFrame::parse(&ethernet) else { return false };
        self.keep(now, Direction::In, ethernet, packet);
        let target = IpAddr::V6(seen.target);
        if let (Some(sender), Some(mac)) = (seen.sender, seen.mac) {
            self.learn(now, IpAddr::V6(sender), mac, seen.is_question && self.is_ours(target));
        }
        if seen.is_question && self.is_ours(target) {
            self.look_at_mac(now);
            let answer = ndp::answer(self.own.mac, seen.target, seen.asker);
            let to = if seen.asker.is_unspecified() { ethernet::multicast(ndp::ALL_NODES) } else { from };
            self.put_frame(now, to, Protocol::Ipv6, &answer);
        }
        true
    }

    /// Learns a neighbour's address, and sends the packets that waited for it.
    fn learn(&mut self, now: Instant, sender: IpAddr, mac: Mac, asks_us: bool) {
        let waiting = self.neighbours.learn(now, sender, mac, asks_us);
        for (transmit, packet) in waiting {
            // Packets without room in the socket are lost, as on any wire.
            match self.put_packet(mac, &transmit, &packet) {
                Sent::Full => self.tally.dropped(LinkDrop::QueueFull),
                Sent::Taken => self.keep_packet(now, mac, &transmit, &packet),
                Sent::Waits | Sent::Refused(_) => {}
            }
        }
        self.socket.flush(&mut self.tally);
    }

    fn ask(&mut self, now: Instant, question: NeighbourQuestion) {
        let Some(source) = self.source_for(question.about) else { return };
        self.look_at_mac(now);
        match (source, question.about) {
            (IpAddr::V4(source), IpAddr::V4(about)) => {
                let asked = arp::question(self.own.mac, source.into(), about.into());
                self.put_frame(now, question.to.unwrap_or(ethernet::BROADCAST), Protocol::Arp, &asked);
            }
            (IpAddr::V6(source), IpAddr::V6(about)) => {
                let asked = ndp::question(self.own.mac, source, about);
                let group = ethernet::multicast(ndp::solicited_node(about));
                self.put_frame(now, question.to.unwrap_or(group), Protocol::Ipv6, &asked);
            }
            _ => {}
        }
    }

    fn source_for(&self, about: IpAddr) -> Option<IpAddr> {
        self.addresses.iter().copied().find(|address| address.is_ipv4() == about.is_ipv4())
    }

    pub(super) fn work_on_neighbours(&mut self, now: Instant) {
        while let Some(question) = self.neighbours.next_question(now) {
            self.ask(now, question);
        }
        for _ in 0..self.neighbours.take_given_up() {
            self.tally.dropped(LinkDrop::Unresolved);
        }
    }
}
