//! The facts of each link, as a station's driver knows them. Without a book nothing is counted.
//!
//! A CTS or an ACK has no transmitter address (IEEE 802.11-2016 §9.3.1.3, §9.3.1.4): it shows that the station lives,
//! and its power is no station's signal.

use std::collections::BTreeMap;
use std::time::Duration;

use hopwise_core::{Instant, LinkFacts, StationAddress};

use super::station::{PacketInService, Reception};
use super::{Dcf, EVERYONE, Frame, FrameKind, PacketOutcome};
use crate::frames::mac_of;
use crate::radiotap::dbm;

/// A new frame's part of the average signal.
const NEW_PART: f64 = 0.125;

/// A station's book of its links, by the other station.
#[derive(Debug, Default)]
pub(super) struct Book(BTreeMap<u32, LinkBook>);

#[derive(Clone, Copy, Debug, Default)]
struct LinkBook {
    heard_ns: Option<u64>,
    power_w: Option<f64>,
    average_w: f64,
    tx_packets: u64,
    tx_retries: u64,
    tx_failed: u64,
    rx_packets: u64,
    rx_bytes: u64,
    tx_bps: Option<u64>,
    tx_ns: u64,
    rx_ns: u64,
}

impl Dcf {
    /// Keeps the facts of every link from now on.
    pub(crate) fn keep_facts(&mut self) {
        self.books = self.stations.iter().map(|_| Book::default()).collect();
    }

    /// A station's facts about its links, by the number of the other station; none where no books are kept.
    pub(crate) fn facts(&self, now: u64, station: u32) -> Vec<LinkFacts> {
        let links = self.books.get(station as usize).map(|book| &book.0);
        links.into_iter().flatten().map(|(other, link)| link.facts(now, *other)).collect()
    }

    fn link(&mut self, n: usize, other: u32) -> Option<&mut LinkBook> {
        Some(self.books.get_mut(n)?.0.entry(other).or_default())
    }

    /// The station's frame goes on the air.
    pub(super) fn book_sent(&mut self, n: usize) {
        let Frame { to, airtime_ns, .. } = self.stations[n].frame;
        if self.books.is_empty() || to == EVERYONE {
            return;
        }
        // A CTS of the station to itself is for the receiver of what follows.
        let receiver = self.stations[n].service.filter(|_| to as usize == n).map(|service| service.to);
        if let Some(link) = self.link(n, receiver.unwrap_or(to)) {
            link.tx_ns += airtime_ns;
        }
    }

    /// A packet has gone, or was given up.
    pub(super) fn book_done(
        &mut self,
        n: usize,
        service: &PacketInService,
        outcome: PacketOutcome,
        tries: u32,
    ) {
        if service.to == EVERYONE {
            return;
        }
        if let Some(link) = self.link(n, service.to) {
            link.tx_packets += 1;
            link.tx_retries += u64::from(tries.saturating_sub(1));
            link.tx_failed += u64::from(outcome == PacketOutcome::GivenUp);
            link.tx_bps = Some(service.rate.bits_per_second);
        }
    }

    /// A frame for this station, or for all, was decoded.
    pub(super) fn book_heard(&mut self, n: usize, from: u32, heard: &Reception) {
        let Frame { kind, bytes, .. } = self.stations[from as usize].frame;
        let Some(link) = self.link(n, from) else { return };
        link.heard_ns = Some(heard.until);
        link.rx_ns += heard.until - heard.began;
        if matches!(kind, FrameKind::Cts | FrameKind::Ack) {
            return;
        }
        link.rx_bytes += u64::from(bytes);
        let before = link.power_w.replace(heard.power_w).map_or(heard.power_w, |_| link.average_w);
        link.average_w = before + NEW_PART * (heard.power_w - before);
    }

    /// A packet has arrived, which is no repetition of one.
    pub(super) fn book_packet(&mut self, n: usize, from: u32) {
        if let Some(link) = self.link(n, from) {
            link.rx_packets += 1;
        }
    }
}

impl LinkBook {
    fn facts(&self, now: u64, other: u32) -> LinkFacts {
        LinkFacts {
            inactive: self.heard_ns.map(|heard| Duration::from_nanos(now.saturating_sub(heard))),
            signal_dbm: self.power_w.map(dbm),
            signal_average_dbm: self.power_w.map(|_| dbm(self.average_w)),
            tx_packets: Some(self.tx_packets),
            tx_retries: Some(self.tx_retries),
            tx_failed: Some(self.tx_failed),
            rx_packets: Some(self.rx_packets),
            rx_bytes: Some(self.rx_bytes),
            tx_bitrate_bps: self.tx_bps,
            tx_duration: Some(Duration::from_nanos(self.tx_ns)),
            rx_duration: Some(Duration::from_nanos(self.rx_ns)),
            ..LinkFacts::new(StationAddress(mac_of(other)), Instant(now))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dcf::{FrameCounts, MacConfig};
    use crate::medium::{Position, Radio};
    use crate::phy::Phy;

    /// Three stations in a line, of which each receives its neighbours, and the packets that go through them in order.
    fn carried(packets: &[(u32, u32)]) -> Dcf {
        let positions: Vec<_> = (0..3).map(|n| Some(Position { x: 200.0 * f64::from(n), y: 0.0 })).collect();
        let phy = Phy::named("dsss-2mbps").expect("a profile");
        let mut dcf = Dcf::new(phy, MacConfig::default(), Radio::default(), &positions, 1);
        dcf.keep_facts();
        let mut now = 0;
        for (from, to) in packets {
            dcf.offer(now, *from, *to, 500);
            while !dcf.has_room(*from) {
                now = dcf.next();
                dcf.fire();
                while dcf.next_news().is_some() {}
            }
        }
        dcf
    }

    fn facts(dcf: &Dcf, station: u32, other: u32, at: Instant) -> LinkFacts {
        let address = StationAddress(mac_of(other));
        dcf.facts(at.0, station).into_iter().find(|facts| facts.station == address).expect("a link")
    }

    const AT: Instant = Instant::from_secs(1);

    #[test]
    fn a_packet_that_is_acknowledged_counts_at_both_ends_with_its_airtime() {
        let dcf = carried(&[(0, 1), (0, 1)]);
        let (sender, receiver) = (facts(&dcf, 0, 1, AT), facts(&dcf, 1, 0, AT));
        assert_eq!((sender.tx_packets, sender.tx_retries, sender.tx_failed), (Some(2), Some(0), Some(0)));
        assert_eq!((receiver.rx_packets, receiver.rx_bytes), (Some(2), Some(1_000)));
        assert_eq!(sender.tx_bitrate_bps, Some(2_000_000));
        assert_eq!(receiver.signal_average_dbm, receiver.signal_dbm, "nothing moves");
        // One end has sent what the other one has received, RTS and CTS included.
        assert_eq!((sender.tx_duration, receiver.tx_duration), (receiver.rx_duration, sender.rx_duration));
        let sent = |n| Duration::from_nanos(dcf.stats(n).airtime_ns);
        assert_eq!((sender.tx_duration, receiver.tx_duration), (Some(sent(0)), Some(sent(1))));
        assert_eq!(dcf.stats(0).frames_sent, FrameCounts { rts: 2, data: 2, ..FrameCounts::default() });
        assert!(sender.inactive.is_some_and(|age| age < Duration::from_secs(1)), "the ACK was heard");
        assert_eq!(sender.signal_dbm, None, "an ACK names no transmitter");
    }

    #[test]
    fn a_packet_that_nothing_answers_was_repeated_and_failed() {
        let dcf = carried(&[(0, 2)]);
        let lost = facts(&dcf, 0, 2, AT);
        assert_eq!((lost.tx_packets, lost.tx_retries, lost.tx_failed), (Some(1), Some(6), Some(1)));
        assert_eq!((lost.inactive, lost.rx_packets), (None, Some(0)), "it was never heard");
    }

    #[test]
    fn a_broadcast_is_heard_by_all_in_reach_and_acknowledged_by_none() {
        let dcf = carried(&[(1, EVERYONE)]);
        assert_eq!(dcf.facts(AT.0, 1), []);
        for n in [0, 2] {
            let heard = facts(&dcf, n, 1, AT);
            assert_eq!((heard.rx_packets, heard.tx_packets), (Some(1), Some(0)));
            assert!(heard.signal_dbm.is_some_and(|dbm| (-80..-50).contains(&dbm)), "{heard:?}");
        }
        // Frames between two other stations tell nothing of a station's links.
        assert_eq!(carried(&[(0, 1)]).facts(AT.0, 2), []);
    }

    #[test]
    fn without_a_book_there_are_no_facts() {
        let positions = [Some(Position::default()); 2];
        let phy = Phy::named("dsss-2mbps").expect("a profile");
        let dcf = Dcf::new(phy, MacConfig::default(), Radio::default(), &positions, 1);
        assert_eq!(dcf.facts(0, 0), []);
    }
}
