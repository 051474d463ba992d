//! What a firewall may decide by about a SYN: all that it sees of it, but for the numbers that each SYN of a host has
//! anew.
//!
//! Anyone can send a SYN in the name of a host. A firewall may drop it for what its sender chose: its port of
//! destination, an option, its data, its hop limit, or the sender's address on the link. That says nothing of the
//! host's own SYNs if they look otherwise. Of a number that each SYN has anew counts whether it is 0.

use std::hash::BuildHasher;
use std::sync::LazyLock;

use super::{CAUGHT, HELD};
use crate::nfqueue::socket::QueuedPacket;

/// The longest address on a link, with its length.
const SENDER: usize = 12;
/// Nobody outside can look for SYNs with equal digests.
#[expect(clippy::disallowed_types, reason = "no run of a seed has a firewall")]
static KEY: LazyLock<std::hash::RandomState> = LazyLock::new(Default::default);

/// A digest of all that SYNs have in common that a firewall does not tell from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Likeness(u64);

impl Likeness {
    /// The likeness of SYNs that these bytes describe.
    pub fn of(bytes: &[u8]) -> Likeness {
        Likeness(KEY.hash_one(bytes))
    }

    /// The packet is a whole SYN behind an IP header of this length.
    pub(super) fn of_syn(queued: &QueuedPacket<'_>, ip_len: usize) -> Likeness {
        let (ip, segment) = queued.packet.split_at(ip_len.min(queued.packet.len()));
        let mut sender = queued.sender.to_vec();
        sender.resize(SENDER, 0);
        let mark = queued.mark & !(HELD | CAUGHT);
        let numbers = [queued.interface, queued.port, mark, queued.priority].map(u32::to_be_bytes).concat();
        Likeness::of(&[numbers, sender, ip_in_common(ip), tcp_in_common(segment)].concat())
    }
}

/// Leaves of a number whether it is 0.
fn blank(bytes: &mut [u8], range: std::ops::Range<usize>) {
    if let Some([own @ .., last]) = bytes.get_mut(range) {
        *last = u8::from(*last != 0 || own.iter().any(|byte| *byte != 0));
        own.fill(0);
    }
}

/// A header without the identification, the flow label and the checksum.
fn ip_in_common(header: &[u8]) -> Vec<u8> {
    let mut header = header.to_vec();
    if header.first().is_some_and(|byte| byte >> 4 == 4) {
        blank(&mut header, 4..6);
        blank(&mut header, 10..12);
    } else if let Some(class) = header.get(1).map(|high| high & 0xf0) {
        header[1] &= 0x0f;
        blank(&mut header, 1..4);
        header[1] |= class;
    }
    header
}

/// A segment without the source port, the sequence number, the checksum and the time. Ports below 1024 stay: hosts
/// choose them on purpose, and firewalls have rules for them.
fn tcp_in_common(segment: &[u8]) -> Vec<u8> {
    const CHOSEN: u16 = 1024;
    const TIMESTAMPS: u8 = 8;
    /// The kind, the length, and the sender's own time, which its peer's follows (RFC 7323 §3.2).
    const TIME: std::ops::Range<usize> = 2..6;
    let mut segment = segment.to_vec();
    for own in [4..8, 16..18] {
        blank(&mut segment, own);
    }
    if matches!(segment[..], [high, low, ..] if u16::from_be_bytes([high, low]) >= CHOSEN) {
        blank(&mut segment, 0..2);
    }
    let header = tcp_header(&segment).to_vec();
    for (at, _) in options(&header).into_iter().filter(|(_, kind)| *kind == TIMESTAMPS) {
        blank(&mut segment[..header.len()], at + TIME.start..at + TIME.end);
    }
    segment
}

/// The header of a whole segment, with its options.
pub(super) fn tcp_header(segment: &[u8]) -> &[u8] {
    let words = segment.get(12).map_or(0, |words| usize::from(words >> 4));
    segment.get(..words * 4).unwrap_or_default()
}

/// The places and kinds of the options in a header (RFC 9293 §3.1). An option without a sound length ends them.
pub(super) fn options(header: &[u8]) -> Vec<(usize, u8)> {
    const FIXED: usize = 20;
    let (mut at, mut found) = (FIXED, Vec::new());
    while let Some(&kind @ 1..) = header.get(at) {
        found.push((at, kind));
        at += match header.get(at + 1) {
            _ if kind == 1 => 1,
            Some(&len @ 2..) => len.into(),
            _ => break,
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: [u8; 20] = [0x45, 0, 0, 56, 1, 2, 0x40, 0, 64, 6, 3, 4, 10, 1, 0, 2, 10, 2, 0, 2];
    const NOTHING: usize = usize::MAX;

    /// A SYN with an MSS and a timestamp behind this header, with a bit of this byte turned, by this interface and
    /// port.
    fn like(header: &[u8], turned: usize, (interface, port): (u32, u32)) -> Likeness {
        let mut packet = header.to_vec();
        packet.extend([0x9c, 0x40, 0x13, 0x88, 0, 0, 0, 7, 0, 0, 0, 0, 0x90, 2, 0xff, 0xff, 1, 1, 0, 0]);
        packet.extend([2, 4, 5, 180, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0]);
        if let Some(byte) = packet.get_mut(turned) {
            *byte ^= 0x10;
        }
        let sender = &[0, 6, 0, 0, 2];
        let queued = QueuedPacket {
            id: 1,
            mark: 0,
            interface,
            leaves_by: 0,
            port,
            priority: 0,
            sender,
            packet: &packet,
        };
        Likeness::of_syn(&queued, header.len())
    }

    #[test]
    fn syns_are_alike_that_differ_in_numbers_of_their_own_alone() {
        let mut v6 = [0; 40];
        (v6[0], v6[3], v6[6], v6[7]) = (0x60, 1, 6, 64);
        for (header, of_ip) in [(&V4[..], &[4, 5, 10, 11][..]), (&v6[..], &[2, 3])] {
            let of_tcp = [0, 1, 4, 5, 6, 7, 16, 17].into_iter().chain(26..30).map(|at| header.len() + at);
            let own: Vec<_> = of_ip.iter().copied().chain(of_tcp).collect();
            let whole = like(header, NOTHING, (2, 3));
            for at in 0..header.len() + 36 {
                assert_eq!(like(header, at, (2, 3)) == whole, own.contains(&at), "byte {at}");
            }
        }
    }

    #[test]
    fn syns_that_came_another_way_are_not_alike() {
        let whole = like(&V4, NOTHING, (2, 3));
        assert!(like(&V4, NOTHING, (2, 4)) != whole && like(&V4, NOTHING, (4, 3)) != whole);
        let of = |mark, priority| {
            let (interface, port, sender) = (2, 3, &[][..]);
            let queued =
                QueuedPacket { id: 1, mark, interface, leaves_by: 0, port, priority, sender, packet: &V4 };
            Likeness::of_syn(&queued, 20)
        };
        assert!(of(1, 0) != of(0, 0) && of(0, 1) != of(0, 0) && of(HELD, 0) == of(0, 0));
    }

    #[test]
    fn numbers_that_each_syn_has_anew_tell_syns_with_a_zero_there_from_the_rest() {
        let v4 = |own: std::ops::Range<usize>, byte: u8| {
            let mut header = V4;
            header[own].fill(byte);
            ip_in_common(&header)
        };
        for own in [4..6, 10..12] {
            assert!(v4(own.clone(), 0) != v4(own.clone(), 7) && v4(own.clone(), 6) == v4(own, 7));
        }
        let v6 = |label: [u8; 3]| ip_in_common(&[&[0x60][..], &label, &[0; 36]].concat());
        assert!(
            v6([0; 3]) != v6([15, 0, 0]) && v6([1, 0, 0]) == v6([0, 0, 2]) && v6([0x10, 0, 0]) != v6([0; 3])
        );
    }

    #[test]
    fn data_tells_syns_from_each_other() {
        let of_data = |data: u8| tcp_in_common(&[&[0; 12][..], &[0x50, 2, 0, 0, 0, 0, 0, 0, data]].concat());
        assert!(of_data(1) != of_data(2));
    }

    #[test]
    fn ports_that_hosts_choose_on_purpose_tell_syns_from_each_other() {
        let of_port = |port: u16| {
            tcp_in_common(&[&port.to_be_bytes()[..], &[0; 10], &[0x50, 2, 0, 0, 0, 0, 0, 0]].concat())
        };
        assert!(of_port(1024) == of_port(40_000) && of_port(1023) != of_port(1022));
    }

    #[test]
    fn broken_options_end_the_search_for_the_time() {
        for options in [&[8][..], &[8, 0], &[5, 0, 8, 10], &[8, 40], &[3, 255]] {
            let mut segment = vec![0; 20];
            segment.extend_from_slice(options);
            segment.resize(24, 0);
            segment[12] = 0x60;
            assert_eq!(tcp_in_common(&segment).len(), 24, "{options:?}");
        }
        assert!(tcp_in_common(&[]).is_empty() && ip_in_common(&[]).is_empty());
    }
}
