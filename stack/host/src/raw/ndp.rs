//! The part of NDP (RFC 4861) that finds neighbours: solicitations and advertisements.
//!
//! Written by hand, as ARP is: smoltcp reads NDP only with its Ethernet medium.

use std::net::{IpAddr, Ipv6Addr};

use hopwise_core::narrow::as_u32;
use hopwise_core::wire::{IpHeader, IpView, Sum, protocol};

use super::ethernet::Mac;

pub(super) const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// A router would have decremented it: the message comes from this link (RFC 4861 §7.1).
const HOP_LIMIT: u8 = 255;
const SOURCE_MAC: u8 = 1;
const TARGET_MAC: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NdpPacket {
    pub(crate) is_question: bool,
    /// The source of a solicitation; unspecified while it only checks for a duplicate address.
    pub(crate) asker: Ipv6Addr,
    pub(crate) target: Ipv6Addr,
    /// The owner of `mac`.
    pub(crate) sender: Option<Ipv6Addr>,
    pub(crate) mac: Option<Mac>,
}

/// Reads a message; `None` for all other packets and for malformed messages.
pub(crate) fn parse(packet: &[u8]) -> Option<NdpPacket> {
    if packet.get(6) != Some(&protocol::ICMPV6) {
        return None;
    }
    let ip = IpView::parse(packet).ok()?;
    let (IpAddr::V6(src), IpAddr::V6(_)) = (ip.src, ip.dst) else { return None };
    let body = ip.payload;
    let kind = *body.first()?;
    let is_message = matches!(kind, SOLICITATION | ADVERTISEMENT) && body.len() >= 24 && body[1] == 0;
    let sum = Sum::pseudo_header(ip.src, ip.dst, protocol::ICMPV6, as_u32(body.len())).add(body).finish();
    if !is_message || ip.hop_limit != HOP_LIMIT || sum != 0 {
        return None;
    }
    let target: [u8; 16] = body[8..24].try_into().ok()?;
    let target = Ipv6Addr::from(target);
    let is_question = kind == SOLICITATION;
    let mac = option(&body[24..], if is_question { SOURCE_MAC } else { TARGET_MAC });
    let sender = if is_question { (!src.is_unspecified()).then_some(src) } else { Some(target) };
    (!target.is_multicast()).then_some(NdpPacket { is_question, asker: src, target, sender, mac })
}

/// Finds an option. Their lengths are in units of eight bytes.
fn option(mut options: &[u8], wanted: u8) -> Option<Mac> {
    loop {
        let (kind, len) = (*options.first()?, usize::from(*options.get(1)?) * 8);
        let option = options.get(..len).filter(|option| !option.is_empty())?;
        if kind == wanted && len == 8 {
            return option[2..8].try_into().ok().filter(|mac: &Mac| mac[0] & 1 == 0);
        }
        options = &options[len..];
    }
}

/// RFC 4291 §2.7.1.
pub(super) fn solicited_node(about: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b] = about.segments();
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | (a & 0xff), b)
}

pub(super) fn question(mac: Mac, source: Ipv6Addr, about: Ipv6Addr) -> Vec<u8> {
    write(SOLICITATION, [0; 4], about, (SOURCE_MAC, mac), (source, solicited_node(about)))
}

/// An advertisement with the override flag. It is solicited, or goes to all nodes when the source has no address yet.
pub(super) fn answer(mac: Mac, ours: Ipv6Addr, asker: Ipv6Addr) -> Vec<u8> {
    let (flags, to) = if asker.is_unspecified() { (0x20, ALL_NODES) } else { (0x60, asker) };
    write(ADVERTISEMENT, [flags, 0, 0, 0], ours, (TARGET_MAC, mac), (ours, to))
}

fn write(
    kind: u8,
    flags: [u8; 4],
    target: Ipv6Addr,
    (option, mac): (u8, Mac),
    (src, dst): (Ipv6Addr, Ipv6Addr),
) -> Vec<u8> {
    let mut body = vec![kind, 0, 0, 0];
    body.extend_from_slice(&flags);
    body.extend_from_slice(&target.octets());
    body.extend_from_slice(&[option, 1]);
    body.extend_from_slice(&mac);
    let (src, dst) = (IpAddr::V6(src), IpAddr::V6(dst));
    let sum = Sum::pseudo_header(src, dst, protocol::ICMPV6, as_u32(body.len())).add(&body).finish();
    body[2..4].copy_from_slice(&sum.to_be_bytes());
    let ip = IpHeader { hop_limit: HOP_LIMIT, ..IpHeader::plain(src, dst, protocol::ICMPV6) };
    let mut packet = Vec::new();
    ip.emit(body.len(), &mut packet);
    packet.extend_from_slice(&body);
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    #[test]
    fn a_question_and_its_answer_are_read_as_they_were_written() {
        let (a, b) = (address("fd00::1"), address("fd00::2"));
        let asked = parse(&question([2; 6], a, b)).unwrap();
        assert_eq!((asked.is_question, asked.asker, asked.target), (true, a, b));
        assert_eq!((asked.sender, asked.mac), (Some(a), Some([2; 6])));
        let answered = parse(&answer([4; 6], b, a)).unwrap();
        assert_eq!((answered.is_question, answered.sender, answered.mac), (false, Some(b), Some([4; 6])));
    }

    #[test]
    fn a_group_for_questions_has_the_last_three_bytes() {
        assert_eq!(solicited_node(address("fd00::12:3456:789a")), address("ff02::1:ff56:789a"));
    }

    #[test]
    fn what_came_from_afar_or_was_spoilt_is_none() {
        let sound = question([2; 6], address("fd00::1"), address("fd00::2"));
        let mut far = sound.clone();
        far[7] = 64;
        assert_eq!(parse(&far), None);
        for at in 40..sound.len() {
            let mut spoilt = sound.clone();
            spoilt[at] ^= 1;
            assert_eq!(parse(&spoilt), None, "byte {at}");
        }
        for len in 0..sound.len() {
            assert_eq!(parse(&sound[..len]), None);
        }
    }
}
