//! An independent reader of captures: it knows pcap, Ethernet, IPv4 and TCP by their places in the bytes, and nothing
//! of the project's own code.

use std::collections::BTreeMap;

/// A TCP segment of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) at_us: u64,
    pub(super) src: [u8; 4],
    pub(super) dst: [u8; 4],
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: u8,
    /// All of the packet but what every router changes: hop limit and header checksum.
    pub(super) bytes: Vec<u8>,
    pub(super) payload: usize,
}

impl Segment {
    pub(super) fn is_pure_ack(&self) -> bool {
        self.flags == 0x10 && self.payload == 0
    }
}

/// What `tcpdump -w` wrote for an Ethernet device.
pub(super) fn segments(file: &[u8]) -> Vec<Segment> {
    let word = |at: usize| file.get(at..at + 4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    assert_eq!(word(0), Some(0xa1b2_c3d4), "a capture in microseconds");
    let (mut at, mut found) = (24, Vec::new());
    while let (Some(seconds), Some(micros), Some(length)) = (word(at), word(at + 4), word(at + 8)) {
        let frame = file.get(at + 16..at + 16 + length as usize).unwrap_or_default();
        let at_us = u64::from(seconds) * 1_000_000 + u64::from(micros);
        found.extend(segment(at_us, frame));
        at += 16 + length as usize;
    }
    found
}

fn segment(at_us: u64, frame: &[u8]) -> Option<Segment> {
    let packet = frame.get(14..)?;
    if frame[12..14] != [8, 0] || packet.first()? >> 4 != 4 || *packet.get(9)? != 6 {
        return None;
    }
    let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    let packet = packet.get(..total)?;
    let tcp = usize::from(packet[0] & 15) * 4;
    let word = |at: usize| packet.get(at..at + 4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]));
    let header = usize::from(packet.get(tcp + 12)? >> 4) * 4;
    let mut bytes = packet.to_vec();
    (bytes[8], bytes[10], bytes[11]) = (0, 0, 0);
    Some(Segment {
        at_us,
        src: packet.get(12..16)?.try_into().ok()?,
        dst: packet.get(16..20)?.try_into().ok()?,
        seq: word(tcp + 4)?,
        ack: word(tcp + 8)?,
        flags: *packet.get(tcp + 13)?,
        payload: total - tcp - header,
        bytes,
    })
}

/// What a proxy must hold to, of what the mobile said (`heard`, on the radio) and what the sender got (`said`, on the
/// wire): nothing said that was not heard, no number before the mobile had said it, no ACK more than twice.
pub(super) fn check(mobile: [u8; 4], heard: &[Segment], said: &[Segment]) -> Result<usize, String> {
    let of_mobile =
        |segments: &[Segment]| segments.iter().filter(|s| s.src == mobile).cloned().collect::<Vec<_>>();
    let (heard, said) = (of_mobile(heard), of_mobile(said));
    let mut times: BTreeMap<&[u8], (u64, usize)> = BTreeMap::new();
    for segment in &heard {
        let (_, count) = times.entry(&segment.bytes).or_insert((segment.at_us, 0));
        *count += 1;
    }
    let mut copies: BTreeMap<&[u8], usize> = BTreeMap::new();
    for segment in &said {
        let Some((first_us, originals)) = times.get(&segment.bytes[..]) else {
            return Err(format!("the sender got what the mobile never said: {segment:?}"));
        };
        if segment.at_us < *first_us {
            return Err(format!("the sender got an ACK before the mobile said it: {segment:?}"));
        }
        let count = copies.entry(&segment.bytes).or_default();
        *count += 1;
        if segment.is_pure_ack() && *count > originals + 1 {
            return Err(format!("the sender got an ACK {count} times: {segment:?}"));
        }
    }
    let highest = |segments: &[Segment]| segments.iter().map(|s| s.ack.wrapping_sub(heard[0].ack)).max();
    match (highest(&heard), highest(&said)) {
        (Some(heard), Some(said)) if said > heard => {
            Err(format!("{said} was acknowledged, and {heard} said"))
        }
        _ => Ok(said.len()),
    }
}

#[test]
fn a_reader_that_finds_nothing_wrong_finds_what_is_wrong() {
    let ack = |at_us, ack: u32| Segment {
        at_us,
        src: [10, 9, 0, 2],
        dst: [10, 8, 0, 1],
        seq: 1,
        ack,
        flags: 0x10,
        bytes: ack.to_be_bytes().to_vec(),
        payload: 0,
    };
    let heard = [ack(10, 100), ack(20, 200)];
    let check = |said: &[Segment]| check([10, 9, 0, 2], &heard, said);
    assert_eq!(check(&[ack(11, 100), ack(30, 200), ack(40, 200)]), Ok(3));
    assert!(check(&[ack(30, 200), ack(31, 200), ack(32, 200)]).is_err_and(|e| e.contains("3 times")));
    assert!(check(&[ack(30, 300)]).is_err_and(|e| e.contains("never said")));
    assert!(check(&[ack(15, 200)]).is_err_and(|e| e.contains("before the mobile said it")));
}
