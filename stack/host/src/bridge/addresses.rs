//! The Ethernet addresses of the packets of a flow, for each direction.
//!
//! A bridge carries a frame with its own addresses. A packet that is held, or sent again, therefore gets the addresses
//! of the flow's own frames in that direction. A frame that another host forges changes the addresses of its own flow
//! alone.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hopwise_core::wire::protocol;

use crate::raw::ethernet::{Frame, Mac, Protocol};

/// An address and a port; 0 where a fragment has none.
pub(super) type End = (IpAddr, u16);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Flow {
    pub(super) mobile: End,
    pub(super) fixed: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    ToMobile,
    FromMobile,
}

impl Way {
    /// The flow of a packet with these ends.
    pub(super) fn flow(self, (src, dst): (End, End)) -> Flow {
        match self {
            Way::ToMobile => Flow { mobile: dst, fixed: src },
            Way::FromMobile => Flow { mobile: src, fixed: dst },
        }
    }
}

/// A frame's destination and source.
pub(super) type Addresses = (Mac, Mac);

#[derive(Clone, Copy, Debug, Default)]
struct Ways {
    to_mobile: Option<Addresses>,
    from_mobile: Option<Addresses>,
}

/// The addresses of known flows. A flow is forgotten after frames of `MOST` to twice as many other flows.
#[derive(Debug, Default)]
pub(super) struct Learned {
    fresh: BTreeMap<Flow, Ways>,
    old: BTreeMap<Flow, Ways>,
}

const MOST: usize = 16_384;

impl Learned {
    pub(super) fn learn(&mut self, flow: Flow, way: Way, frame: &Frame) {
        if self.fresh.len() >= MOST && !self.fresh.contains_key(&flow) {
            self.old = std::mem::take(&mut self.fresh);
        }
        let old = &self.old;
        let ways = self.fresh.entry(flow).or_insert_with(|| old.get(&flow).copied().unwrap_or_default());
        let addresses = Some((frame.to, frame.from));
        match way {
            Way::ToMobile => ways.to_mobile = addresses,
            Way::FromMobile => ways.from_mobile = addresses,
        }
    }

    /// The addresses of a direction. Before its first frame, those of the other direction serve, swapped.
    pub(super) fn of(&self, flow: Flow, way: Way) -> Option<Addresses> {
        let Ways { to_mobile, from_mobile } = self.fresh.get(&flow).or_else(|| self.old.get(&flow))?;
        let (same, other) = match way {
            Way::ToMobile => (to_mobile, from_mobile),
            Way::FromMobile => (from_mobile, to_mobile),
        };
        same.or_else(|| other.map(|(to, from)| (from, to)))
    }
}

/// The source and destination of a TCP packet. Like the kernel's block, it reads the first header alone.
pub(super) fn tcp_ends(protocol: Protocol, packet: &[u8]) -> Option<(End, End)> {
    let (tcp, src, dst): (usize, IpAddr, IpAddr) = match protocol {
        Protocol::Ipv4 if *packet.get(9)? == protocol::TCP => {
            let header = usize::from(packet[0] & 0xf) * 4;
            let is_first = u16::from_be_bytes([packet[6], packet[7]]) & 0x1fff == 0;
            let tcp = if is_first { header } else { usize::MAX };
            (tcp, bytes::<4>(packet, 12)?.into(), bytes::<4>(packet, 16)?.into())
        }
        Protocol::Ipv6 if *packet.get(6)? == protocol::TCP => {
            (40, bytes::<16>(packet, 8)?.into(), bytes::<16>(packet, 24)?.into())
        }
        _ => return None,
    };
    let port = |at: usize| bytes(packet, at).map_or(0, u16::from_be_bytes);
    Some(((src, port(tcp)), (dst, port(tcp.saturating_add(2)))))
}

fn bytes<const N: usize>(packet: &[u8], at: usize) -> Option<[u8; N]> {
    packet.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(to: u8, from: u8) -> Frame {
        Frame { to: [to; 6], from: [from; 6], protocol: Protocol::Ipv4 }
    }

    fn end(last: u8, port: u16) -> End {
        (IpAddr::from([10, 9, 0, last]), port)
    }

    #[test]
    fn each_way_has_the_addresses_of_its_own_frames_and_else_those_of_the_way_back() {
        let flow = Way::ToMobile.flow((end(1, 80), end(2, 4_000)));
        assert_eq!(flow, Way::FromMobile.flow((end(2, 4_000), end(1, 80))));
        let mut learned = Learned::default();
        assert_eq!(learned.of(flow, Way::ToMobile), None);
        learned.learn(flow, Way::FromMobile, &frame(1, 2));
        assert_eq!(learned.of(flow, Way::FromMobile), Some(([1; 6], [2; 6])));
        assert_eq!(learned.of(flow, Way::ToMobile), Some(([2; 6], [1; 6])));
        learned.learn(flow, Way::ToMobile, &frame(2, 3));
        assert_eq!(learned.of(flow, Way::ToMobile), Some(([2; 6], [3; 6])));
        assert_eq!(learned.of(flow, Way::FromMobile), Some(([1; 6], [2; 6])));
    }

    #[test]
    fn what_somebody_else_sends_in_a_mobile_s_name_moves_no_packet_to_it() {
        let flow = Way::ToMobile.flow((end(1, 80), end(2, 4_000)));
        let mut learned = Learned::default();
        learned.learn(flow, Way::ToMobile, &frame(2, 1));
        // First to another end, then to the same one.
        for fixed in [end(222, 6), end(1, 80)] {
            learned.learn(Flow { fixed, ..flow }, Way::FromMobile, &frame(0xde, 0xad));
            assert_eq!(learned.of(flow, Way::ToMobile), Some(([2; 6], [1; 6])));
        }
    }

    #[test]
    fn flows_that_are_heard_stay_and_there_is_room_for_no_more_than_twice_as_many() {
        let mut learned = Learned::default();
        let flow =
            |nth: usize| Flow { mobile: (IpAddr::from((nth as u128).to_be_bytes()), 1), fixed: end(1, 2) };
        for nth in 0..5 * MOST {
            learned.learn(flow(nth), Way::ToMobile, &frame(1, 2));
            if nth % (MOST / 2) == 0 {
                learned.learn(flow(0), Way::FromMobile, &frame(3, 4));
            }
        }
        assert_eq!(learned.of(flow(0), Way::ToMobile), Some(([1; 6], [2; 6])));
        assert_eq!(learned.of(flow(1), Way::ToMobile), None);
        assert!(learned.fresh.len() <= MOST && learned.old.len() <= MOST);
    }

    #[test]
    fn tcp_is_known_by_its_first_header_and_nothing_else_is_taken() {
        let mut v4 = vec![0; 24];
        (v4[0], v4[9]) = (0x45, 6);
        v4[12..20].copy_from_slice(&[10, 9, 0, 1, 10, 9, 0, 2]);
        v4[20..24].copy_from_slice(&[0, 80, 1, 0]);
        assert_eq!(tcp_ends(Protocol::Ipv4, &v4), Some((end(1, 80), end(2, 256))));
        assert_eq!(tcp_ends(Protocol::Ipv4, &v4[..20]), Some((end(1, 0), end(2, 0))));
        assert_eq!(tcp_ends(Protocol::Arp, &v4), None);
        assert_eq!(tcp_ends(Protocol::Ipv4, &v4[..19]), None);
        // A later fragment has no ports.
        v4[7] = 9;
        assert_eq!(tcp_ends(Protocol::Ipv4, &v4), Some((end(1, 0), end(2, 0))));
        v4[9] = 17;
        assert_eq!(tcp_ends(Protocol::Ipv4, &v4), None);
        let mut v6 = vec![0; 44];
        (v6[0], v6[6], v6[41]) = (0x60, 6, 7);
        assert!(tcp_ends(Protocol::Ipv6, &v6).is_some_and(|(src, _)| src.1 == 7));
        // A fragment, for example, which the kernel carries.
        v6[6] = 44;
        assert_eq!(tcp_ends(Protocol::Ipv6, &v6), None);
    }
}
