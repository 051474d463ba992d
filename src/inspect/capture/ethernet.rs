//! Ethernet frames of a node's capture.

use std::net::Ipv4Addr;

use hopwise_core::StationAddress;

const HEADER: usize = 14;
const ARP: [u8; 2] = [0x08, 0x06];
/// RFC 826: the kinds of both addresses, and their lengths.
const ETHERNET_AND_IPV4: [u8; 6] = [0, 1, 0x08, 0, 6, 4];

/// The payload of the frame.
pub(super) fn payload(frame: &[u8]) -> &[u8] {
    frame.get(HEADER..).unwrap_or_default()
}

/// An ARP request or reply in words.
pub(super) fn arp(frame: &[u8]) -> Option<String> {
    if frame.get(12..HEADER)? != ARP {
        return None;
    }
    let packet = payload(frame);
    if packet.get(..6)? != ETHERNET_AND_IPV4 {
        return Some("ARP".to_owned());
    }
    let address = |at: usize| -> Option<Ipv4Addr> {
        let octets: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
        Some(Ipv4Addr::from(octets))
    };
    let (sender, target) = (address(14)?, address(24)?);
    let mac = StationAddress(*packet.get(8..)?.first_chunk()?);
    match packet.get(6..8)? {
        [0, 1] => Some(format!("ARP: {sender} at {mac} asks for {target}")),
        [0, 2] => Some(format!("ARP: {sender} is at {mac}")),
        _ => Some("ARP".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(operation: u8) -> Vec<u8> {
        let mut frame = [[0xff; 6], [2; 6]].concat();
        frame.extend(ARP);
        frame.extend(ETHERNET_AND_IPV4);
        frame.extend([0, operation]);
        frame.extend([2; 6]);
        frame.extend([10, 0, 0, 1]);
        frame.extend([0; 6]);
        frame.extend([10, 0, 0, 2]);
        frame
    }

    #[test]
    fn a_question_names_both_ends_and_an_answer_its_sender() {
        let question = "ARP: 10.0.0.1 at 02:02:02:02:02:02 asks for 10.0.0.2";
        assert_eq!(arp(&frame(1)).as_deref(), Some(question));
        assert_eq!(arp(&frame(2)).as_deref(), Some("ARP: 10.0.0.1 is at 02:02:02:02:02:02"));
    }

    #[test]
    fn a_frame_that_was_cut_off_is_none() {
        assert!((0..frame(1).len()).all(|len| arp(&frame(1)[..len]).is_none()));
        assert!(payload(&[0; 13]).is_empty());
    }
}
