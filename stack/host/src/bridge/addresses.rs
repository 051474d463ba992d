//! The Ethernet addresses of the packets of a flow, for each direction.
//!
//! A bridge carries a frame with its own addresses. A packet that is held, or sent again, therefore gets the addresses
//! of the flow's own frames in that direction. A frame that another host forges changes the addresses of its own flow
//! alone.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hopwise_core::wire::{Flags, protocol};

use crate::raw::ethernet::{EthernetFrame, Mac, Protocol};

/// An address and a port; 0 where a fragment has none.
pub(crate) type EndAddress = (IpAddr, u16);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BridgedFlow {
    pub(crate) mobile: EndAddress,
    pub(crate) fixed: EndAddress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowDirection {
    ToMobile,
    FromMobile,
}

impl FlowDirection {
    /// The flow of a packet with these ends.
    pub(crate) fn flow(self, (src, dst): (EndAddress, EndAddress)) -> BridgedFlow {
        match self {
            FlowDirection::ToMobile => BridgedFlow { mobile: dst, fixed: src },
            FlowDirection::FromMobile => BridgedFlow { mobile: src, fixed: dst },
        }
    }
}

/// A frame's destination and source.
pub(crate) type FrameAddresses = (Mac, Mac);

#[derive(Clone, Copy, Debug, Default)]
struct FlowAddresses {
    to_mobile: Option<FrameAddresses>,
    from_mobile: Option<FrameAddresses>,
    /// By direction: a segment was seen that neither opens a connection nor refuses one.
    goes_on: [bool; 2],
}

impl FlowAddresses {
    fn see(&mut self, direction: FlowDirection, frame: &EthernetFrame, goes_on: bool) {
        let addresses = Some((frame.to, frame.from));
        match direction {
            FlowDirection::ToMobile => self.to_mobile = addresses,
            FlowDirection::FromMobile => self.from_mobile = addresses,
        }
        self.goes_on[direction as usize] |= goes_on;
    }

    /// Returns whether both ends go on with it. Other segments may be made up, or answer one that is.
    fn is_mutual(&self) -> bool {
        self.goes_on == [true; 2]
    }
}

/// A flow is forgotten after frames of `MOST` to `2 * MOST` later flows.
#[derive(Debug, Default)]
struct RecentFlows {
    fresh: BTreeMap<BridgedFlow, FlowAddresses>,
    old: BTreeMap<BridgedFlow, FlowAddresses>,
}

const MOST: usize = 16_384;

impl RecentFlows {
    fn get(&self, flow: &BridgedFlow) -> Option<&FlowAddresses> {
        self.fresh.get(flow).or_else(|| self.old.get(flow))
    }

    fn put(&mut self, flow: BridgedFlow, addresses: FlowAddresses) {
        if self.fresh.len() >= MOST && !self.fresh.contains_key(&flow) {
            self.old = std::mem::take(&mut self.fresh);
        }
        self.fresh.insert(flow, addresses);
    }
}

/// The addresses of known flows. Flows with which both ends go on have a store of their own: no number of made-up flows
/// displaces them.
#[derive(Debug, Default)]
pub(crate) struct LearnedAddresses {
    mutual: RecentFlows,
    others: RecentFlows,
}

impl LearnedAddresses {
    pub(crate) fn learn(
        &mut self,
        flow: BridgedFlow,
        direction: FlowDirection,
        frame: &EthernetFrame,
        goes_on: bool,
    ) {
        if let Some(addresses) = self.mutual.fresh.get_mut(&flow) {
            return addresses.see(direction, frame, goes_on);
        }
        let mut addresses = self.get(&flow).copied().unwrap_or_default();
        addresses.see(direction, frame, goes_on);
        if addresses.is_mutual() { &mut self.mutual } else { &mut self.others }.put(flow, addresses);
    }

    fn get(&self, flow: &BridgedFlow) -> Option<&FlowAddresses> {
        self.mutual.get(flow).or_else(|| self.others.get(flow))
    }

    /// The addresses of a direction. Before its first frame, the addresses of the opposite direction serve, swapped.
    pub(crate) fn of(&self, flow: BridgedFlow, direction: FlowDirection) -> Option<FrameAddresses> {
        let FlowAddresses { to_mobile, from_mobile, .. } = self.get(&flow)?;
        let (same, other) = match direction {
            FlowDirection::ToMobile => (to_mobile, from_mobile),
            FlowDirection::FromMobile => (from_mobile, to_mobile),
        };
        same.or_else(|| other.map(|(to, from)| (from, to)))
    }
}

/// The source and destination of a TCP packet.
pub(crate) fn tcp_ends(protocol: Protocol, packet: &[u8]) -> Option<(EndAddress, EndAddress)> {
    let tcp = tcp_at(protocol, packet)?;
    let (src, dst): (IpAddr, IpAddr) = match protocol {
        Protocol::Ipv4 => (bytes::<4>(packet, 12)?.into(), bytes::<4>(packet, 16)?.into()),
        _ => (bytes::<16>(packet, 8)?.into(), bytes::<16>(packet, 24)?.into()),
    };
    let port = |at: usize| bytes(packet, at).map_or(0, u16::from_be_bytes);
    Some(((src, port(tcp)), (dst, port(tcp.saturating_add(2)))))
}

/// Returns whether a TCP packet goes on with a connection: it is no SYN and no RST.
pub(crate) fn goes_on(protocol: Protocol, packet: &[u8]) -> bool {
    let flags = tcp_at(protocol, packet).and_then(|tcp| packet.get(tcp.checked_add(FLAGS)?));
    flags.is_some_and(|flags| !Flags(*flags).intersects(Flags::SYN | Flags::RST))
}

/// The place of the flags in a TCP header (RFC 9293 §3.1).
const FLAGS: usize = 13;

/// The place of the TCP header, beyond all packets for a later fragment. Like the kernel's block, it reads the first
/// header alone.
fn tcp_at(protocol: Protocol, packet: &[u8]) -> Option<usize> {
    match protocol {
        Protocol::Ipv4 if *packet.get(9)? == protocol::TCP => {
            let is_first = u16::from_be_bytes([packet[6], packet[7]]) & 0x1fff == 0;
            Some(if is_first { usize::from(packet[0] & 0xf) * 4 } else { usize::MAX })
        }
        Protocol::Ipv6 if *packet.get(6)? == protocol::TCP => Some(40),
        _ => None,
    }
}

fn bytes<const N: usize>(packet: &[u8], at: usize) -> Option<[u8; N]> {
    packet.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(to: u8, from: u8) -> EthernetFrame {
        EthernetFrame { to: [to; 6], from: [from; 6], protocol: Protocol::Ipv4 }
    }

    fn end(last: u8, port: u16) -> EndAddress {
        (IpAddr::from([10, 9, 0, last]), port)
    }

    #[test]
    fn each_way_has_the_addresses_of_its_own_frames_and_else_those_of_the_way_back() {
        let flow = FlowDirection::ToMobile.flow((end(1, 80), end(2, 4_000)));
        assert_eq!(flow, FlowDirection::FromMobile.flow((end(2, 4_000), end(1, 80))));
        let mut learned = LearnedAddresses::default();
        assert_eq!(learned.of(flow, FlowDirection::ToMobile), None);
        learned.learn(flow, FlowDirection::FromMobile, &frame(1, 2), true);
        assert_eq!(learned.of(flow, FlowDirection::FromMobile), Some(([1; 6], [2; 6])));
        assert_eq!(learned.of(flow, FlowDirection::ToMobile), Some(([2; 6], [1; 6])));
        learned.learn(flow, FlowDirection::ToMobile, &frame(2, 3), true);
        assert_eq!(learned.of(flow, FlowDirection::ToMobile), Some(([2; 6], [3; 6])));
        assert_eq!(learned.of(flow, FlowDirection::FromMobile), Some(([1; 6], [2; 6])));
    }

    #[test]
    fn what_somebody_else_sends_in_a_mobile_s_name_moves_no_packet_to_it() {
        let flow = FlowDirection::ToMobile.flow((end(1, 80), end(2, 4_000)));
        let mut learned = LearnedAddresses::default();
        learned.learn(flow, FlowDirection::ToMobile, &frame(2, 1), true);
        // First to another end, then to the same one.
        for fixed in [end(222, 6), end(1, 80)] {
            learned.learn(BridgedFlow { fixed, ..flow }, FlowDirection::FromMobile, &frame(0xde, 0xad), true);
            assert_eq!(learned.of(flow, FlowDirection::ToMobile), Some(([2; 6], [1; 6])));
        }
    }

    fn nth_flow(nth: usize) -> BridgedFlow {
        BridgedFlow { mobile: (IpAddr::from((nth as u128).to_be_bytes()), 1), fixed: end(1, 2) }
    }

    #[test]
    fn flows_that_are_heard_stay_and_there_is_room_for_no_more_than_twice_as_many() {
        for is_mutual in [false, true] {
            let mut learned = LearnedAddresses::default();
            for nth in 0..5 * MOST {
                learned.learn(nth_flow(nth), FlowDirection::ToMobile, &frame(1, 2), is_mutual);
                learned.learn(nth_flow(nth), FlowDirection::FromMobile, &frame(3, 4), is_mutual);
                if nth % (MOST / 2) == 0 {
                    learned.learn(nth_flow(0), FlowDirection::FromMobile, &frame(3, 4), is_mutual);
                }
            }
            assert_eq!(learned.of(nth_flow(0), FlowDirection::ToMobile), Some(([1; 6], [2; 6])));
            assert_eq!(learned.of(nth_flow(1), FlowDirection::ToMobile), None);
            for recent in [learned.mutual, learned.others] {
                assert!(recent.fresh.len() <= MOST && recent.old.len() <= MOST);
            }
        }
    }

    /// A made-up ACK is answered by a RST, and a made-up SYN by a SYN.
    #[test]
    fn made_up_flows_do_not_push_out_a_quiet_one_with_which_both_ends_go_on() {
        let mut learned = LearnedAddresses::default();
        learned.learn(nth_flow(0), FlowDirection::ToMobile, &frame(1, 2), false);
        learned.learn(nth_flow(0), FlowDirection::FromMobile, &frame(3, 4), true);
        learned.learn(nth_flow(0), FlowDirection::ToMobile, &frame(1, 2), true);
        for nth in 1..5 * MOST {
            let (made_up, answer) = if nth % 2 == 0 { (true, false) } else { (false, false) };
            learned.learn(nth_flow(nth), FlowDirection::FromMobile, &frame(5, 6), made_up);
            learned.learn(nth_flow(nth), FlowDirection::ToMobile, &frame(7, 8), answer);
        }
        assert_eq!(learned.of(nth_flow(0), FlowDirection::ToMobile), Some(([1; 6], [2; 6])));
        assert_eq!(learned.of(nth_flow(0), FlowDirection::FromMobile), Some(([3; 6], [4; 6])));
    }

    #[test]
    fn a_segment_goes_on_with_a_connection_unless_it_opens_or_refuses_one() {
        let mut v4 = vec![0; 40];
        (v4[0], v4[9]) = (0x45, 6);
        let mut v6 = vec![0; 60];
        (v6[0], v6[6]) = (0x60, 6);
        for (flags, goes) in [(Flags::ACK, true), (Flags::SYN, false), (Flags::RST | Flags::ACK, false)] {
            (v4[20 + FLAGS], v6[40 + FLAGS]) = (flags.0, flags.0);
            assert_eq!(goes_on(Protocol::Ipv4, &v4), goes);
            assert_eq!(goes_on(Protocol::Ipv6, &v6), goes);
        }
        v4[20 + FLAGS] = Flags::ACK.0;
        assert!(!goes_on(Protocol::Ipv4, &v4[..30]));
        // A later fragment has data at the place of this byte.
        v4[7] = 9;
        assert!(!goes_on(Protocol::Ipv4, &v4));
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
