//! Comments on our own link, from the facts that its driver tells: the next packet over that link has what is new in a
//! report.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hopwise_core::{Instant, LinkFacts, StationAddress};

use super::queue::PacketHead;
use crate::first_links::FirstLinks;
use crate::nl80211::EVERY;
use crate::observer::Direction;

/// The facts of each link, and what the file has of them.
#[derive(Debug, Default)]
pub(super) struct CapturedLinks {
    known: Arc<FirstLinks>,
    told: BTreeMap<StationAddress, LinkFacts>,
}

impl CapturedLinks {
    pub(super) fn hear(&mut self, known: &Arc<FirstLinks>) {
        self.known = Arc::clone(known);
        self.told.retain(|station, _| known.values().any(|facts| facts.station == *station));
    }

    /// The comment for a packet, if the facts about its link have changed since the last one that had a comment. No
    /// link has more than one comment in the time between two reports.
    pub(super) fn comment(&mut self, head: &PacketHead, packet: &[u8]) -> Option<String> {
        if self.known.is_empty() {
            return None;
        }
        let facts = self.known.get(&peer(head.direction, packet.get(head.header_len..)?)?)?;
        // The facts may have come after a packet that waited for its reason.
        if facts.at > head.at {
            return None;
        }
        let before = self.told.get(&facts.station);
        if before.is_some_and(|before| facts.at.since(before.at) < EVERY || is_same(before, facts)) {
            return None;
        }
        let said = LinkComment { before, facts, at: head.at }.to_string();
        self.told.insert(facts.station, **facts);
        Some(said)
    }
}

/// The other host of an IP packet, also of one that is not sound.
fn peer(direction: Direction, ip: &[u8]) -> Option<IpAddr> {
    let is_in = direction == Direction::In;
    match ip.first()? >> 4 {
        4 => ip.get(if is_in { 12 } else { 16 }..)?.first_chunk::<4>().map(|octets| (*octets).into()),
        6 => ip.get(if is_in { 8 } else { 24 }..)?.first_chunk::<16>().map(|octets| (*octets).into()),
        _ => None,
    }
}

/// Ages alone are no news.
fn is_same(one: &LinkFacts, other: &LinkFacts) -> bool {
    let ageless = |facts: &LinkFacts| LinkFacts { at: Instant::ZERO, inactive: None, ..*facts };
    ageless(one) == ageless(other)
}

/// For example "link to 02:00:00:00:00:01; signal -61 dBm; 2.0 Mbit/s; 40 packets, 12 retries, 1 lost, airtime 18.2 %
/// in 51 ms; heard 9.000 ms ago; told 7.000 ms ago". Facts that are not known are left out.
struct LinkComment<'a> {
    /// The report in the last comment.
    before: Option<&'a LinkFacts>,
    facts: &'a LinkFacts,
    /// The time of the packet.
    at: Instant,
}

impl fmt::Display for LinkComment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LinkComment { before, facts, at } = *self;
        write!(f, "link to {};", facts.station)?;
        if let Some(dbm) = facts.signal_dbm {
            write!(f, " signal {dbm} dBm;")?;
        }
        if let Some(bps) = facts.tx_bitrate_bps {
            write!(f, " {}.{} Mbit/s;", bps / 1_000_000, bps / 100_000 % 10)?;
        }
        if let Some(happened) = before.and_then(|before| happened(before, facts)) {
            write!(f, " {happened};")?;
        }
        if let Some(heard) = facts.heard_at() {
            write!(f, " heard {} ms ago;", MillisText(at.since(heard)))?;
        }
        write!(f, " told {} ms ago", MillisText(at.since(facts.at)))
    }
}

/// The counts since the last comment.
fn happened(before: &LinkFacts, facts: &LinkFacts) -> Option<String> {
    let change = facts.since(before)?;
    let counts = [(change.tx_packets, "packets"), (change.tx_retries, "retries"), (change.tx_failed, "lost")];
    let mut said = String::new();
    for (count, what) in counts {
        if let Some(count) = count {
            let _ = write!(said, "{count} {what}, ");
        }
    }
    if let Some(permille) = change.airtime_permille() {
        let _ = write!(said, "airtime {}.{} %, ", permille / 10, permille % 10);
    }
    let said = said.strip_suffix(", ")?;
    Some(format!("{said} in {} ms", change.over.as_millis()))
}

struct MillisText(Duration);

impl fmt::Display for MillisText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0.as_millis(), self.0.as_micros() % 1_000)
    }
}

#[cfg(test)]
mod tests {
    use hopwise_core::LinkId;

    use super::*;

    const STATION: StationAddress = StationAddress([2, 0, 0, 0, 0, 1]);
    const PEER: [u8; 4] = [10, 0, 0, 2];

    fn packet(to: [u8; 4]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 20, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1];
        packet.extend(to);
        packet
    }

    /// The comment of a packet to that host at a time.
    fn comment(links: &mut CapturedLinks, ms: u64, to: [u8; 4]) -> Option<String> {
        let at = Instant::from_millis(ms);
        let head = PacketHead { at, link: LinkId(0), direction: Direction::Out, id: 1, header_len: 0 };
        links.comment(&head, &packet(to))
    }

    fn hear(links: &mut CapturedLinks, facts: LinkFacts) {
        let facts = Arc::new(facts);
        let peers = [2, 3].map(|last| (IpAddr::from([10, 0, 0, last]), Arc::clone(&facts)));
        links.hear(&Arc::new(peers.into()));
    }

    fn facts(ms: u64) -> LinkFacts {
        LinkFacts {
            inactive: Some(Duration::from_millis(2)),
            signal_dbm: Some(-61),
            tx_bitrate_bps: Some(5_500_000),
            tx_packets: Some(ms),
            tx_retries: Some(ms / 10),
            tx_failed: Some(ms / 100),
            tx_duration: Some(Duration::from_millis(ms / 5)),
            ..LinkFacts::new(STATION, Instant::from_millis(ms))
        }
    }

    #[test]
    fn the_next_packet_over_a_link_tells_what_has_changed_there() {
        let mut links = CapturedLinks::default();
        assert_eq!(comment(&mut links, 90, PEER), None);
        hear(&mut links, facts(100));
        assert_eq!(comment(&mut links, 99, PEER), None, "these facts came after it");
        assert_eq!(comment(&mut links, 107, [10, 0, 0, 9]), None, "it goes another way");
        let said =
            "link to 02:00:00:00:00:01; signal -61 dBm; 5.5 Mbit/s; heard 9.000 ms ago; told 7.000 ms ago";
        assert_eq!(comment(&mut links, 107, PEER).as_deref(), Some(said));
        assert_eq!(comment(&mut links, 108, [10, 0, 0, 3]), None, "another peer over the same link");
        hear(&mut links, facts(300));
        let said = "link to 02:00:00:00:00:01; signal -61 dBm; 5.5 Mbit/s; 200 packets, 20 retries, 2 lost, airtime \
                    20.0 % in 200 ms; heard 2.000 ms ago; told 0.000 ms ago";
        assert_eq!(comment(&mut links, 300, PEER).as_deref(), Some(said));
    }

    #[test]
    fn the_other_host_of_a_packet_is_its_source_or_its_destination() {
        let v4 = packet(PEER);
        let v6 = [&[0x60, 0, 0, 0, 0, 0, 6, 64][..], &[1; 16], &[2; 16]].concat();
        let both = |ip: &[u8]| [Direction::In, Direction::Out].map(|direction| peer(direction, ip));
        assert_eq!(both(&v4), [Some([10, 0, 0, 1].into()), Some(PEER.into())]);
        assert_eq!(both(&v6), [Some([1; 16].into()), Some([2; 16].into())]);
        assert_eq!((both(b"no IP"), both(&v4[..15]), both(&[])), ([None; 2], [None; 2], [None; 2]));
    }

    #[test]
    fn a_link_without_news_has_no_comment_and_no_link_more_than_one_in_50_ms() {
        let mut links = CapturedLinks::default();
        let mut comments = 0;
        for ms in 0..1_000 {
            hear(&mut links, facts(ms));
            comments += usize::from(comment(&mut links, ms, PEER).is_some());
        }
        assert_eq!(comments, 20);
        let old = LinkFacts {
            at: Instant::from_millis(2_000),
            inactive: Some(Duration::from_secs(1)),
            ..facts(950)
        };
        hear(&mut links, old);
        assert_eq!(comment(&mut links, 2_001, PEER), None, "it only became older");
    }

    #[test]
    fn a_fact_that_is_not_known_is_not_told() {
        let mut links = CapturedLinks::default();
        for (ms, said) in [(10, "told 0.000 ms ago"), (70, "3 packets in 60 ms; told 0.000 ms ago")] {
            let at = Instant::from_millis(ms);
            hear(&mut links, LinkFacts { tx_packets: Some(ms / 20), ..LinkFacts::new(STATION, at) });
            let said = format!("link to 02:00:00:00:00:01; {said}");
            assert_eq!(comment(&mut links, ms, PEER), Some(said));
        }
    }
}
