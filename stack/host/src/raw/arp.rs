//! ARP (RFC 826) for IPv4 over Ethernet.
//!
//! Written by hand: smoltcp reads ARP only with its Ethernet medium, and the smoltcp of our benchmarks has none.

use std::net::{IpAddr, Ipv4Addr};

use super::ethernet::Mac;

const LEN: usize = 28;
/// Ethernet, IPv4, and the lengths of their addresses.
const HEAD: [u8; 6] = [0, 1, 8, 0, 6, 4];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArpPacket {
    pub(crate) is_question: bool,
    pub(crate) sender: IpAddr,
    pub(crate) mac: Mac,
    pub(crate) target: IpAddr,
}

pub(crate) fn parse(packet: &[u8]) -> Option<ArpPacket> {
    let packet = packet.get(..LEN)?;
    if packet[..6] != HEAD || !matches!(packet[6..8], [0, 1 | 2]) {
        return None;
    }
    let mac: Mac = packet[8..14].try_into().ok()?;
    // A group address belongs to no single host.
    if mac[0] & 1 != 0 {
        return None;
    }
    let address = |at: usize| IpAddr::from([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]]);
    Some(ArpPacket { is_question: packet[7] == 1, sender: address(14), mac, target: address(24) })
}

pub(super) fn question(mac: Mac, source: IpAddr, about: IpAddr) -> Vec<u8> {
    write(1, (mac, source), ([0; 6], about))
}

pub(super) fn answer(mac: Mac, ours: IpAddr, to: Mac, asker: IpAddr) -> Vec<u8> {
    write(2, (mac, ours), (to, asker))
}

fn write(operation: u8, sender: (Mac, IpAddr), target: (Mac, IpAddr)) -> Vec<u8> {
    let mut packet = HEAD.to_vec();
    packet.extend_from_slice(&[0, operation]);
    for (mac, address) in [sender, target] {
        packet.extend_from_slice(&mac);
        let IpAddr::V4(address) = address else { return write(operation, nobody(), nobody()) };
        packet.extend_from_slice(&address.octets());
    }
    packet
}

fn nobody() -> (Mac, IpAddr) {
    ([0; 6], Ipv4Addr::UNSPECIFIED.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_and_its_answer_are_read_as_they_were_written() {
        let (a, b): (IpAddr, IpAddr) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        let asked = parse(&question([2; 6], a, b)).unwrap();
        assert_eq!(asked, ArpPacket { is_question: true, sender: a, mac: [2; 6], target: b });
        let answered = parse(&answer([4; 6], b, [2; 6], a)).unwrap();
        assert_eq!(answered, ArpPacket { is_question: false, sender: b, mac: [4; 6], target: a });
    }

    #[test]
    fn what_is_no_arp_of_ours_is_refused() {
        let sound = question([2; 6], "10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        assert_eq!(parse(&sound[..27]), None);
        for (at, byte) in [(1, 6), (3, 6), (4, 8), (7, 3), (8, 1)] {
            let mut broken = sound.clone();
            broken[at] = byte;
            assert_eq!(parse(&broken), None, "byte {at}");
        }
    }
}
