//! What a firewall may decide by about a SYN: all that it sees of it, but for the numbers that each SYN of a host has
//! anew.
//!
//! Anyone can send a SYN in the name of a host. A firewall may drop it for what its sender chose: its port of
//! destination, an option, its hop limit, or the sender's address on the link. That says nothing of the host's own SYNs
//! if they look otherwise.

use crate::nfqueue::socket::QueuedPacket;

/// The numbers of interface and port, an address on the link, the packet's length, and the longest headers of IPv6 and
/// TCP.
const LEN: usize = 4 + 4 + 12 + 4 + 40 + 60;
const SENDER: usize = 12;

/// All that SYNs have in common that a firewall does not tell from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Likeness([u8; LEN]);

impl Likeness {
    /// The likeness of SYNs that these bytes describe. Bytes beyond the longest description do not count.
    pub fn of(bytes: &[u8]) -> Likeness {
        let mut own = [0; LEN];
        own.iter_mut().zip(bytes).for_each(|(own, byte)| *own = *byte);
        Likeness(own)
    }

    /// The packet is a whole SYN behind an IP header of this length.
    pub(super) fn of_syn(queued: &QueuedPacket<'_>, ip_len: usize) -> Likeness {
        let (ip, segment) = queued.packet.split_at(ip_len.min(queued.packet.len()));
        let mut sender = queued.sender.to_vec();
        sender.resize(SENDER, 0);
        let len = u32::try_from(queued.packet.len()).unwrap_or(u32::MAX);
        let numbers = [queued.interface, queued.port, len].map(u32::to_be_bytes).concat();
        Likeness::of(&[numbers, sender, ip_in_common(ip), tcp_in_common(segment)].concat())
    }
}

fn blank(bytes: &mut [u8], range: std::ops::Range<usize>) {
    if let Some(range) = bytes.get_mut(range) {
        range.fill(0);
    }
}

/// A header without the identification, the flow label and the checksum.
fn ip_in_common(header: &[u8]) -> Vec<u8> {
    let mut header = header.to_vec();
    if header.first().is_some_and(|byte| byte >> 4 == 4) {
        blank(&mut header, 4..6);
        blank(&mut header, 10..12);
    } else if let Some([high, low @ ..]) = header.get_mut(1..4) {
        *high &= 0xf0;
        low.fill(0);
    }
    header
}

/// A header without the source port, the sequence number, the checksum and the time. Ports below 1024 stay: hosts
/// choose them on purpose, and firewalls have rules for them.
fn tcp_in_common(segment: &[u8]) -> Vec<u8> {
    const FIXED: usize = 20;
    const CHOSEN: u16 = 1024;
    const TIMESTAMPS: u8 = 8;
    let len = segment.get(12).map_or(0, |words| usize::from(words >> 4) * 4).min(segment.len());
    let mut header = segment[..len].to_vec();
    for own in [4..8, 16..18] {
        blank(&mut header, own);
    }
    if matches!(header[..], [high, low, ..] if u16::from_be_bytes([high, low]) >= CHOSEN) {
        blank(&mut header, 0..2);
    }
    let mut at = FIXED;
    while let Some(kind) = header.get(at).copied().filter(|kind| *kind != 0) {
        let len = if kind == 1 { 1 } else { usize::from(header.get(at + 1).copied().unwrap_or(0)) };
        if len == 0 {
            break;
        }
        if kind == TIMESTAMPS {
            blank(&mut header, at + 2..at + len);
        }
        at += len;
    }
    header
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
        packet.extend([0x9c, 0x40, 0x13, 0x88, 0, 0, 0, 7, 0, 0, 0, 0, 0x90, 2, 0xff, 0xff, 0, 0, 0, 0]);
        packet.extend([2, 4, 5, 180, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0]);
        if let Some(byte) = packet.get_mut(turned) {
            *byte ^= 0x10;
        }
        let queued =
            QueuedPacket { id: 1, mark: 0, interface, port, sender: &[0, 6, 0, 0, 2], packet: &packet };
        Likeness::of_syn(&queued, header.len())
    }

    #[test]
    fn syns_are_alike_that_differ_in_numbers_of_their_own_alone() {
        let mut v6 = [0; 40];
        (v6[0], v6[6], v6[7]) = (0x60, 6, 64);
        for (header, of_ip) in [(&V4[..], &[4, 5, 10, 11][..]), (&v6[..], &[2, 3])] {
            let of_tcp = [0, 1, 4, 5, 6, 7, 16, 17].into_iter().chain(26..34).map(|at| header.len() + at);
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
