//! Ethernet's header, its addresses for groups, and VLAN tags. By hand: the header is 14 bytes, and smoltcp would come
//! with its features into each build.
//!
//! The kernel removes a frame's outer tag before a packet socket reads it. It reports the tag by `PACKET_AUXDATA`
//! (packet(7)).

use std::mem::offset_of;
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
pub(crate) struct EthernetFrame {
    pub(crate) to: Mac,
    pub(crate) from: Mac,
    pub(crate) protocol: Protocol,
}

impl EthernetFrame {
    pub(crate) fn parse(frame: &[u8]) -> Option<EthernetFrame> {
        let header = frame.get(..ETHERNET)?;
        let number = u16::from_be_bytes([header[12], header[13]]);
        let known = [Protocol::Ipv4, Protocol::Ipv6, Protocol::Arp];
        let protocol = known.into_iter().find(|known| known.number() == number);
        let (to, from) = (header[..6].try_into().ok()?, header[6..12].try_into().ok()?);
        Some(EthernetFrame { to, from, protocol: protocol.unwrap_or(Protocol::Other) })
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

/// The kind of a frame's outer tag, by IEEE 802.1Q or 802.1ad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    None,
    /// It names no VLAN, but a priority alone (IEEE 802.1Q clause 9.6, VID 0).
    Priority,
    Vlan,
}

/// The low bits of a tag, which name the VLAN.
const VID: u16 = 0xfff;
/// Offsets in a control message of the kernel: its length, two numbers of four bytes, its data.
const LEVEL_AT: usize = size_of::<usize>();
const KIND_AT: usize = LEVEL_AT + 4;
const DATA_AT: usize = KIND_AT + 4;
const BYTES: usize = DATA_AT + size_of::<libc::tpacket_auxdata>();
const WORDS: usize = BYTES.div_ceil(8);

/// Room for one control message, aligned as the kernel wants it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub(super) struct ControlRoom(pub(super) [u64; WORDS]);

impl ControlRoom {
    /// The tag that the kernel has written. All other bytes are zeros.
    pub(super) fn tag(&self) -> Tag {
        let mut written = [0; WORDS * 8];
        for (to, word) in written.chunks_exact_mut(8).zip(self.0) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        read(&written).unwrap_or(Tag::None)
    }
}

fn read(message: &[u8]) -> Option<Tag> {
    let word = |at: usize| Some(u32::from_ne_bytes(message.get(at..at + 4)?.try_into().ok()?));
    let half = |at: usize| Some(u16::from_ne_bytes(message.get(at..at + 2)?.try_into().ok()?));
    let kind = (word(LEVEL_AT)?, word(KIND_AT)?);
    if kind != (libc::SOL_PACKET.cast_unsigned(), libc::PACKET_AUXDATA.cast_unsigned()) {
        return None;
    }
    let status = word(DATA_AT + offset_of!(libc::tpacket_auxdata, tp_status))?;
    let tag = half(DATA_AT + offset_of!(libc::tpacket_auxdata, tp_vlan_tci))?;
    if status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    Some(if tag & VID == 0 { Tag::Priority } else { Tag::Vlan })
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
        assert_eq!(
            EthernetFrame::parse(&frame),
            Some(EthernetFrame { to: [1; 6], from: [2; 6], protocol: Protocol::Arp })
        );
        assert_eq!(EthernetFrame::parse(&frame[..13]), None);
    }

    fn message(status: u32, tag: u16) -> ControlRoom {
        let mut bytes = [0; WORDS * 8];
        bytes[LEVEL_AT..][..4].copy_from_slice(&libc::SOL_PACKET.to_ne_bytes());
        bytes[KIND_AT..][..4].copy_from_slice(&libc::PACKET_AUXDATA.to_ne_bytes());
        let mut put = |at: usize, value: &[u8]| bytes[DATA_AT + at..][..value.len()].copy_from_slice(value);
        put(offset_of!(libc::tpacket_auxdata, tp_status), &status.to_ne_bytes());
        put(offset_of!(libc::tpacket_auxdata, tp_vlan_tci), &tag.to_ne_bytes());
        let mut control = ControlRoom::default();
        for (word, bytes) in control.0.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().unwrap());
        }
        control
    }

    #[test]
    fn a_tag_of_vlan_0_is_a_priority_and_any_other_names_a_vlan() {
        const VALID: u32 = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
        for (status, tag, expected) in [
            (1, 0, Tag::None),
            (1, 100, Tag::None),
            (VALID, 0, Tag::Priority),
            (VALID, 0xe000, Tag::Priority),
            (VALID, 100, Tag::Vlan),
            (VALID, 0xefff, Tag::Vlan),
        ] {
            assert_eq!(message(status, tag).tag(), expected, "{status} {tag}");
        }
    }

    #[test]
    fn where_nothing_or_something_else_is_told_there_is_no_tag() {
        assert_eq!(ControlRoom::default().tag(), Tag::None);
        let mut other = message(libc::TP_STATUS_VLAN_VALID, 100);
        other.0[KIND_AT / 8] ^= u64::MAX;
        assert_eq!(other.tag(), Tag::None);
    }
}
