//! Ethernet's header, and its addresses for groups. By hand: it is 14 bytes, and smoltcp would come with its features
//! into each build.

use std::net::{IpAddr, Ipv6Addr};

pub(crate) const ETHERNET: usize = 14;
pub(crate) type Mac = [u8; 6];
pub(crate) const BROADCAST: Mac = [0xff; 6];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Ipv4,
    Ipv6,
    Arp,
    Other,
}

impl Protocol {
    /// The protocol of an IP packet.
    pub(crate) fn of(packet: &[u8]) -> Protocol {
        if packet.first().is_some_and(|first| first >> 4 == 4) { Protocol::Ipv4 } else { Protocol::Ipv6 }
    }

    fn number(self) -> u16 {
        match self {
            Protocol::Ipv4 => 0x0800,
            Protocol::Ipv6 => 0x86dd,
            Protocol::Arp => 0x0806,
            Protocol::Other => 0xffff,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) to: Mac,
    pub(crate) from: Mac,
    pub(crate) protocol: Protocol,
}

impl Frame {
    pub(crate) fn parse(frame: &[u8]) -> Option<Frame> {
        let header = frame.get(..ETHERNET)?;
        let number = u16::from_be_bytes([header[12], header[13]]);
        let known = [Protocol::Ipv4, Protocol::Ipv6, Protocol::Arp];
        let protocol = known.into_iter().find(|known| known.number() == number);
        let (to, from) = (header[..6].try_into().ok()?, header[6..12].try_into().ok()?);
        Some(Frame { to, from, protocol: protocol.unwrap_or(Protocol::Other) })
    }
}

pub(crate) fn header(to: Mac, from: Mac, protocol: Protocol) -> [u8; ETHERNET] {
    let mut header = [0; ETHERNET];
    header[..6].copy_from_slice(&to);
    header[6..12].copy_from_slice(&from);
    header[12..].copy_from_slice(&protocol.number().to_be_bytes());
    header
}

/// RFC 2464 §7.
pub(crate) fn multicast(group: Ipv6Addr) -> Mac {
    let [.., a, b, c, d] = group.octets();
    [0x33, 0x33, a, b, c, d]
}

/// The Ethernet address for a packet that has no single next hop.
pub(crate) fn everyone(packet: &[u8]) -> Mac {
    match destination(packet) {
        Some(IpAddr::V6(group)) => multicast(group),
        // RFC 1112 §6.4.
        Some(IpAddr::V4(group)) if group.is_multicast() => {
            let [_, b, c, d] = group.octets();
            [0x01, 0x00, 0x5e, b & 0x7f, c, d]
        }
        _ => BROADCAST,
    }
}

fn destination(packet: &[u8]) -> Option<IpAddr> {
    if packet.first()? >> 4 == 6 {
        let octets: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
        Some(IpAddr::from(octets))
    } else {
        let octets: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
        Some(IpAddr::from(octets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_addresses_of_their_own() {
        assert_eq!(multicast("ff02::1:ff00:2".parse().unwrap()), [0x33, 0x33, 0xff, 0, 0, 2]);
        let mut packet = vec![0x45; 20];
        packet[16..20].copy_from_slice(&[224, 128, 0, 251]);
        assert_eq!(everyone(&packet), [1, 0, 0x5e, 0, 0, 251]);
        packet[16..20].copy_from_slice(&[10, 0, 0, 255]);
        assert_eq!(everyone(&packet), BROADCAST);
    }

    #[test]
    fn a_frame_that_was_cut_off_is_none() {
        let frame = header([1; 6], [2; 6], Protocol::Arp);
        assert_eq!(Frame::parse(&frame), Some(Frame { to: [1; 6], from: [2; 6], protocol: Protocol::Arp }));
        assert_eq!(Frame::parse(&frame[..13]), None);
    }
}
