//! The ranks of destinations. Strangers can make a node answer addresses that no node has. Within a rank
//! lanes take turns.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hopwise_core::wire::{IpView, protocol};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// The packet only answers one that any node may have sent.
    Answer,
    /// A stranger may have caused it. Programs answer datagrams from any address. A neighbour can send in the name of a
    /// node behind this one, and the kernel hands both on alike.
    Unsure,
    /// A program of this node began a connection to it.
    Sure,
}

/// The rank and lane that a packet gives its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) rank: Rank,
    pub(crate) lane: Lane,
}

impl Wish {
    /// The wish for a local repair of a route that other nodes use.
    pub(crate) const SURE: Wish = Wish { rank: Rank::Sure, lane: Lane::OTHERS };
    /// The wish of a waiting packet that is only forwarded.
    pub(crate) const PASSED_ON: Wish = Wish { rank: Rank::Unsure, lane: Lane::OTHERS };

    /// `is_own`: its source is this node itself; `is_known`: its destination has been found before; `is_named`: a
    /// stranger's packet has named both ends lately.
    pub(crate) fn of(packet: &[u8], is_own: bool, is_known: bool, is_named: bool) -> Wish {
        let is_answer = is_answer(packet);
        let Ok(view) = IpView::parse(packet) else { return Wish { rank: Rank::Answer, lane: Lane::OTHERS } };
        let is_datagram = view.protocol == protocol::UDP;
        let rank = match (is_answer && !is_known, is_own && !is_datagram) {
            (true, _) => Rank::Answer,
            (false, false) => Rank::Unsure,
            (false, true) => Rank::Sure,
        };
        let source = match view.src {
            IpAddr::V4(src) => src.to_bits(),
            IpAddr::V6(_) => 0,
        };
        // A program answers from the port that it listens on.
        let is_first = view.fragment.is_none_or(|fragment| fragment.offset == 0);
        let port = view.payload.first_chunk().filter(|_| is_datagram && is_first);
        let port = port.map_or(0, |port| u16::from_be_bytes(*port));
        let lane = Lane([
            source,
            is_named.into(),
            view.protocol.into(),
            port.into(),
            u32::from(is_known) << 1 | u32::from(is_answer),
        ]);
        Wish { rank, lane }
    }
}

/// ICMP messages that begin an exchange: solicitation (RFC 1256), echo, time stamp (RFC 792), and mask (RFC 950).
const ICMP_REQUESTS: [u8; 4] = [8, 10, 13, 17];
const RST: u8 = 0x04;
const SYN_AND_ACK: u8 = 0x12;

/// Returns whether an operating system sends such a packet by itself, to any claimed source: ICMP replies and errors, a
/// RST, a SYN-ACK. A program's answer over UDP looks like the beginning of an exchange.
pub(crate) fn is_answer(packet: &[u8]) -> bool {
    let Ok(view) = IpView::parse(packet) else { return true };
    let is_first = view.fragment.is_none_or(|fragment| fragment.offset == 0);
    match view.protocol {
        protocol::ICMP => !is_first || view.payload.first().is_none_or(|kind| !ICMP_REQUESTS.contains(kind)),
        protocol::TCP if is_first => {
            view.payload.get(13).is_none_or(|flags| flags & RST != 0 || flags & SYN_AND_ACK == SYN_AND_ACK)
        }
        _ => false,
    }
}

/// The largest number of remembered lanes, and how many requests back they are remembered.
const MOST_REMEMBERED: usize = 4_096;
const REQUESTS_REMEMBERED: u64 = 512;

/// The source of a packet, from the widest level to the narrowest: its address, whether a stranger's packet has named
/// both ends, its protocol, its UDP port, and whether the destination is known. Lanes share out turns and room on each
/// level, so that a flood in one lane leaves each other lane its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lane(pub(crate) [u32; Lane::LEVELS]);

impl Lane {
    pub(crate) const LEVELS: usize = 5;
    /// The lane of packets that are only forwarded.
    pub(crate) const OTHERS: Lane = Lane([0; Lane::LEVELS]);

    /// The wider lanes that this one is a part of, and itself.
    fn widths(self) -> [(usize, Lane); Lane::LEVELS] {
        std::array::from_fn(|level| {
            let mut wide = Lane::OTHERS;
            wide.0[..=level].copy_from_slice(&self.0[..=level]);
            (level, wide)
        })
    }
}

/// The last requests of lanes.
#[derive(Debug, Default)]
pub(crate) struct ServedLanes {
    at: BTreeMap<(Rank, usize, Lane), u64>,
    requests: u64,
}

impl ServedLanes {
    /// The last request of the lane on each level. The lane with the least has waited longest.
    pub(crate) fn last(&self, rank: Rank, lane: Lane) -> [u64; Lane::LEVELS] {
        lane.widths().map(|(level, lane)| self.at.get(&(rank, level, lane)).copied().unwrap_or(0))
    }

    pub(crate) fn note(&mut self, rank: Rank, lane: Lane) {
        self.requests += 1;
        let requests = self.requests;
        self.at.extend(lane.widths().map(|(level, lane)| ((rank, level, lane), requests)));
        if self.at.len() > MOST_REMEMBERED {
            self.at.retain(|_, at| *at + REQUESTS_REMEMBERED > requests);
        }
    }
}

/// The first of the most crowded lane: of the source with the most, then of its protocol with the most, and so on. The
/// oldest stand first.
pub(crate) fn most_crowded<const N: usize>(lanes: &[[u32; N]]) -> Option<usize> {
    let narrowed = |left: Vec<usize>, level: usize| {
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        left.iter().for_each(|nth| *counts.entry(lanes[*nth][level]).or_default() += 1);
        let most = counts.values().max().copied();
        let first = left.iter().map(|nth| lanes[*nth][level]).find(|key| counts.get(key).copied() == most)?;
        Some(left.into_iter().filter(|nth| lanes[*nth][level] == first).collect())
    };
    (0..N).try_fold((0..lanes.len()).collect(), narrowed)?.first().copied()
}

#[cfg(test)]
mod tests {
    use hopwise_core::wire::IpHeader;

    use super::*;

    fn packet(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        IpHeader::plain([10, 0, 0, 1].into(), [10, 0, 0, 9].into(), protocol)
            .emit(payload.len(), &mut packet);
        packet.extend(payload);
        packet
    }

    #[test]
    fn what_a_kernel_says_by_itself_is_an_answer() {
        let segment = |flags| [vec![0; 13], vec![flags], vec![0; 6]].concat();
        for (what, packet, expected) in [
            ("an echo", packet(1, &[8; 8]), false),
            ("an echo reply", packet(1, &[0; 8]), true),
            ("an error", packet(1, &[3; 8]), true),
            ("a SYN", packet(6, &segment(0x02)), false),
            ("data", packet(6, &segment(0x18)), false),
            ("a SYN-ACK", packet(6, &segment(0x12)), true),
            ("a RST", packet(6, &segment(0x04)), true),
            ("UDP", packet(17, &[0; 8]), false),
            ("another protocol", packet(253, &[]), false),
            ("no packet", vec![1, 2, 3], true),
        ] {
            assert_eq!(is_answer(&packet), expected, "{what}");
        }
    }

    #[test]
    fn a_wish_is_ranked_by_what_a_stranger_can_cause_and_told_by_who_speaks() {
        let segment = [vec![0; 13], vec![0x02], vec![0; 6]].concat();
        let (reply, syn, datagram) = (packet(1, &[0; 8]), packet(6, &segment), packet(17, &[0, 53, 9, 9]));
        for (what, packet, is_own, is_known, rank, lane) in [
            ("a reply", &reply, true, false, Rank::Answer, [1, 0, 1]),
            ("a reply of a node behind", &reply, false, false, Rank::Answer, [1, 0, 1]),
            ("a reply to a node that is known", &reply, true, true, Rank::Sure, [1, 0, 3]),
            ("the same of a node behind", &reply, false, true, Rank::Unsure, [1, 0, 3]),
            ("a connection", &syn, true, false, Rank::Sure, [6, 0, 0]),
            ("a connection of a node behind", &syn, false, false, Rank::Unsure, [6, 0, 0]),
            ("a datagram", &datagram, true, false, Rank::Unsure, [17, 53, 0]),
            ("a datagram to a node that is known", &datagram, true, true, Rank::Unsure, [17, 53, 2]),
        ] {
            let [protocol, port, last] = lane;
            for is_named in [false, true] {
                let lane = Lane([0x0a00_0001, is_named.into(), protocol, port, last]);
                assert_eq!(Wish::of(packet, is_own, is_known, is_named), Wish { rank, lane }, "{what}");
            }
        }
        assert_eq!(Wish::of(&[1, 2, 3], true, true, false).rank, Rank::Answer);
    }

    #[test]
    fn the_oldest_of_the_most_crowded_lane_gives_way() {
        let lanes = [[1, 6, 1], [1, 17, 1], [1, 17, 2], [2, 6, 1], [2, 6, 2]];
        assert_eq!(most_crowded(&lanes), Some(1), "three of source 1, and two of them datagrams");
        assert_eq!(most_crowded(&lanes[3..]), Some(0));
        assert_eq!(most_crowded(&[[3, 1], [2, 1], [2, 2]]), Some(1));
        assert_eq!(most_crowded::<3>(&[]), None);
    }

    #[test]
    fn lanes_take_turns_at_each_width_and_each_rank_has_its_own() {
        let mut served = ServedLanes::default();
        let (a, b, other) = (Lane([1, 0, 17, 53, 0]), Lane([1, 0, 17, 54, 0]), Lane([2, 0, 6, 0, 0]));
        served.note(Rank::Unsure, a);
        served.note(Rank::Answer, other);
        let mut order = [a, b, other];
        order.sort_by_key(|lane| served.last(Rank::Unsure, *lane));
        assert_eq!(order, [other, b, a]);
        served.note(Rank::Unsure, other);
        order.sort_by_key(|lane| served.last(Rank::Unsure, *lane));
        assert_eq!(order, [b, a, other]);
    }

    #[test]
    fn ever_new_lanes_take_bounded_memory() {
        let mut served = ServedLanes::default();
        (0..100_000).for_each(|n| served.note(Rank::Unsure, Lane([n, n, n, n, n])));
        assert!(served.at.len() <= MOST_REMEMBERED);
    }
}
