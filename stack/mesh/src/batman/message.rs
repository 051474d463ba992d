//! Originator messages (OGM), as the daemon batmand writes them (version 5). Wireshark reads them as `bat`.

use std::net::Ipv4Addr;

const VERSION: u8 = 5;
/// The bytes of a message without announced networks, of which ours has none.
pub(super) const OGM_BYTES: usize = 18;
/// The bytes of an announced network: its address and the length of its prefix.
const NETWORK_BYTES: usize = 5;

/// The receiver is not to use this message: its sender has a better way.
const NOT_BEST: u8 = 0x80;
/// The originator is a neighbour of the sender.
const DIRECT_LINK: u8 = 0x40;

/// An originator message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ogm {
    pub(super) is_not_best: bool,
    pub(super) is_direct_link: bool,
    pub(super) ttl: u8,
    pub(super) seq: u16,
    pub(super) originator: Ipv4Addr,
    /// The node from which the sender has this message.
    pub(super) previous: Ipv4Addr,
    /// Quality of the path to the originator (TQ), in parts of 255.
    pub(super) quality: u8,
}

impl Ogm {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut flags = 0;
        if self.is_not_best {
            flags |= NOT_BEST;
        }
        if self.is_direct_link {
            flags |= DIRECT_LINK;
        }
        // No gateway: its class and port are 0.
        out.extend([VERSION, flags, self.ttl, 0]);
        out.extend(self.seq.to_be_bytes());
        out.extend([0, 0]);
        out.extend(self.originator.octets());
        out.extend(self.previous.octets());
        out.extend([self.quality, 0]);
    }
}

/// The messages of a packet; `None` if it is not whole.
pub(super) fn read_all(mut packet: &[u8]) -> Option<Vec<Ogm>> {
    let mut ogms = Vec::new();
    while !packet.is_empty() {
        let (head, rest) = packet.split_at_checked(OGM_BYTES)?;
        let address = |at: usize| Some(Ipv4Addr::from(*head.get(at..)?.first_chunk::<4>()?));
        if head[0] != VERSION {
            return None;
        }
        ogms.push(Ogm {
            is_not_best: head[1] & NOT_BEST != 0,
            is_direct_link: head[1] & DIRECT_LINK != 0,
            ttl: head[2],
            seq: u16::from_be_bytes([head[4], head[5]]),
            originator: address(8)?,
            previous: address(12)?,
            quality: head[16],
        });
        packet = rest.get(usize::from(head[17]) * NETWORK_BYTES..)?;
    }
    Some(ogms)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OGM: Ogm = Ogm {
        is_not_best: false,
        is_direct_link: true,
        ttl: 49,
        seq: 513,
        originator: Ipv4Addr::new(10, 0, 0, 1),
        previous: Ipv4Addr::new(10, 0, 0, 2),
        quality: 225,
    };

    #[test]
    fn messages_are_read_as_they_were_written_and_in_their_order() {
        let others = [OGM, Ogm { is_not_best: true, is_direct_link: false, ..OGM }, Ogm { ttl: 1, ..OGM }];
        let mut packet = Vec::new();
        others.iter().for_each(|ogm| ogm.write(&mut packet));
        assert_eq!(packet.len(), 3 * OGM_BYTES);
        assert_eq!(packet[..18], [5, 64, 49, 0, 2, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 225, 0]);
        assert_eq!(read_all(&packet), Some(others.to_vec()));
    }

    #[test]
    fn announced_networks_are_passed_over() {
        let mut packet = Vec::new();
        OGM.write(&mut packet);
        packet[17] = 2;
        packet.extend([10, 1, 0, 0, 16, 10, 2, 0, 0, 16]);
        OGM.write(&mut packet);
        assert_eq!(read_all(&packet), Some(vec![OGM, OGM]));
    }

    #[test]
    fn a_packet_that_is_not_whole_or_of_another_version_has_no_message() {
        let mut packet = Vec::new();
        OGM.write(&mut packet);
        for len in 1..packet.len() {
            assert_eq!(read_all(&packet[..len]), None, "{len} bytes");
        }
        packet[17] = 1;
        assert_eq!(read_all(&packet), None, "a network is missing");
        packet[17] = 0;
        packet[0] = 4;
        assert_eq!(read_all(&packet), None);
    }
}
