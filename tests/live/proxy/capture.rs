//! An independent reader of captures: it reads pcap, Ethernet, both versions of IP and TCP by byte positions. It uses
//! none of the project's own code.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// TCP flags; a RST may come without an acknowledgment.
const ACK: u8 = 0x10;
const SYN: u8 = 0x02;
const FIN: u8 = 0x01;

/// A TCP segment of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) at_us: u64,
    pub(super) src: IpAddr,
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: u8,
    /// The window as it stands in the header.
    pub(super) window: u16,
    pub(super) payload: usize,
    /// The timestamp option's two values, where there is one.
    pub(super) timestamps: Option<[u8; 8]>,
    /// All bytes of the packet but what every router changes: hop limit and IPv4's header checksum.
    pub(super) bytes: Vec<u8>,
}

impl Segment {
    pub(super) fn is_pure_ack(&self) -> bool {
        self.flags == ACK && self.payload == 0
    }

    /// The values by which the other end recognises old segments: the number after it, and its clock.
    fn age(&self) -> [u32; 2] {
        let controls = u32::from(self.flags & SYN != 0) + u32::from(self.flags & FIN != 0);
        let clock = self.timestamps.map_or(0, |[a, b, c, d, ..]| u32::from_be_bytes([a, b, c, d]));
        [self.seq.wrapping_add(self.payload as u32 + controls), clock]
    }

    /// The values that identify an ACK, whichever machine wrote it: its number, its window, its clock.
    fn says(&self) -> [u32; 3] {
        [self.ack, self.window.into(), self.age()[1]]
    }

    /// The segment for a message, without the bytes.
    fn shown(&self) -> String {
        let Segment { at_us, src, ack, flags, payload, .. } = self;
        format!("at {at_us} µs from {src}: ACK {ack}, flags {flags:#04x}, {payload} bytes")
    }
}

/// Reads the file that `tcpdump -w` wrote for an Ethernet device.
pub(super) fn segments(file: &[u8]) -> Vec<Segment> {
    let word = |at: usize| file.get(at..at + 4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    assert_eq!(word(0), Some(0xa1b2_c3d4), "a capture in microseconds");
    let (mut at, mut found) = (24, Vec::new());
    while let (Some(seconds), Some(micros), Some(length)) = (word(at), word(at + 4), word(at + 8)) {
        assert_eq!(Some(length), word(at + 12), "a packet that was cut short");
        let frame = file.get(at + 16..at + 16 + length as usize).unwrap_or_default();
        let at_us = u64::from(seconds) * 1_000_000 + u64::from(micros);
        found.extend(segment(at_us, frame));
        at += 16 + length as usize;
    }
    found
}

fn segment(at_us: u64, frame: &[u8]) -> Option<Segment> {
    let packet = frame.get(14..)?;
    let number = |at: usize| packet.get(at..at + 2).map(|b| usize::from(u16::from_be_bytes([b[0], b[1]])));
    let (total, tcp, protocol, src) = match (&frame[12..14], packet.first()? >> 4) {
        ([8, 0], 4) => {
            let src: [u8; 4] = packet.get(12..16)?.try_into().ok()?;
            (number(2)?, usize::from(packet[0] & 15) * 4, *packet.get(9)?, IpAddr::from(src))
        }
        ([0x86, 0xdd], 6) => {
            let src: [u8; 16] = packet.get(8..24)?.try_into().ok()?;
            (number(4)? + 40, 40, *packet.get(6)?, IpAddr::from(src))
        }
        _ => return None,
    };
    if protocol != 6 {
        return None;
    }
    let packet = packet.get(..total)?;
    let header = usize::from(packet.get(tcp + 12)? >> 4) * 4;
    let long = |at: usize| packet.get(at..at + 4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]));
    let mut bytes = packet.to_vec();
    if src.is_ipv4() {
        (bytes[8], bytes[10], bytes[11]) = (0, 0, 0);
    } else {
        bytes[7] = 0;
    }
    Some(Segment {
        at_us,
        src,
        seq: long(tcp + 4)?,
        ack: long(tcp + 8)?,
        flags: *packet.get(tcp + 13)?,
        window: number(tcp + 14)? as u16,
        payload: total - tcp - header,
        timestamps: timestamps(packet.get(tcp + 20..tcp + header)?),
        bytes,
    })
}

fn timestamps(mut options: &[u8]) -> Option<[u8; 8]> {
    loop {
        match *options {
            [1, ref rest @ ..] => options = rest,
            [8, 10, ref rest @ ..] => return rest.get(..8)?.try_into().ok(),
            [_, length, ..] if length >= 2 => options = options.get(usize::from(length)..)?,
            _ => return None,
        }
    }
}

/// The segments that may leave towards the sender in addition to the mobile's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Words {
    /// The mobile's own segments alone.
    TheMobiles,
    /// Pure ACKs of numbers that the mobile has acknowledged; the sender could take none of them for an old one.
    InItsName,
}

/// Returns whether `later` is beyond `earlier`, on numbers that wrap.
fn is_beyond(later: u32, earlier: u32) -> bool {
    later != earlier && later.wrapping_sub(earlier) < 1 << 31
}

/// Checks a proxy by the segments that came in on each side (`heard`) and left on the other (`said`).
///
/// A proxy may send the sender no number that the mobile has not acknowledged, and no segment of its own except by
/// `words`. It may send an ACK at most once more than the mobile did, and none again after a newer one. It may send the
/// mobile only bytes that the sender has sent before. Returns the number of segments checked in each direction.
pub(super) fn check(
    mobile: IpAddr,
    words: Words,
    radio: &[Segment],
    wire: &[Segment],
) -> Result<[usize; 2], String> {
    let of = |segments: &'_ [Segment], is_mobiles: bool| {
        let own = |segment: &&Segment| (segment.src == mobile) == is_mobiles;
        segments.iter().filter(own).cloned().collect::<Vec<_>>()
    };
    let to_sender = check_to_sender(words, &of(radio, true), &of(wire, true))?;
    let to_mobile = check_to_mobile(&of(wire, false), &of(radio, false))?;
    Ok([to_sender, to_mobile])
}

/// The first arrival of each packet.
fn came(heard: &[Segment]) -> BTreeMap<&[u8], u64> {
    let mut came = BTreeMap::new();
    for segment in heard {
        came.entry(&segment.bytes[..]).or_insert(segment.at_us);
    }
    came
}

fn check_to_mobile(heard: &[Segment], said: &[Segment]) -> Result<usize, String> {
    let came = came(heard);
    for segment in said {
        match came.get(&segment.bytes[..]) {
            Some(first_us) if *first_us <= segment.at_us => {}
            _ => return Err(format!("the mobile got what the sender never sent: {}", segment.shown())),
        }
    }
    Ok(said.len())
}

fn check_to_sender(words: Words, heard: &[Segment], said: &[Segment]) -> Result<usize, String> {
    let came = came(heard);
    // A kernel may repeat an ACK within one tick of its clock.
    let mut originals: BTreeMap<[u32; 3], usize> = BTreeMap::new();
    for segment in heard.iter().filter(|segment| segment.is_pure_ack()) {
        *originals.entry(segment.says()).or_default() += 1;
    }
    let mut copies: BTreeMap<[u32; 3], usize> = BTreeMap::new();
    let mut highest = Highest::of(heard);
    let mut newest: Option<[u32; 2]> = None;
    for segment in said {
        let wrong = |what: &str| Err(format!("the sender got {what}: {}", segment.shown()));
        let highest = highest.by(segment.at_us);
        let is_ahead = highest.is_none_or(|highest| is_beyond(segment.ack, highest));
        if is_ahead && segment.flags & ACK != 0 {
            return wrong("a number that the mobile had not said");
        }
        let is_written = match came.get(&segment.bytes[..]) {
            Some(first_us) if segment.at_us < *first_us => return wrong("an ACK before it was said"),
            Some(_) => false,
            None if words == Words::InItsName && segment.is_pure_ack() => true,
            None => return wrong("what the mobile never said"),
        };
        let age = segment.age();
        if segment.is_pure_ack() {
            let count = copies.entry(segment.says()).or_default();
            *count += 1;
            if *count > originals.get(&segment.says()).copied().unwrap_or(1) + 1 {
                return wrong(&format!("an ACK {count} times"));
            }
            // The radio may have reordered the mobile's ACKs, but repeated ones must be in order.
            let is_older =
                |newest: [u32; 2]| newest.into_iter().zip(age).any(|(newest, own)| is_beyond(newest, own));
            if (is_written || *count > 1) && newest.is_some_and(is_older) {
                return wrong("an ACK that is older than what it had got");
            }
        }
        newest = Some(newest.map_or(age, |newest| {
            std::array::from_fn(|at| if is_beyond(age[at], newest[at]) { age[at] } else { newest[at] })
        }));
    }
    Ok(said.len())
}

/// The highest acknowledged number until some time.
struct Highest<'a> {
    left: &'a [Segment],
    number: Option<u32>,
}

impl<'a> Highest<'a> {
    fn of(heard: &'a [Segment]) -> Highest<'a> {
        Highest { left: heard, number: None }
    }

    /// The highest number by `at_us`; calls come in the order of time.
    fn by(&mut self, at_us: u64) -> Option<u32> {
        while let Some((first, rest)) = self.left.split_first().filter(|(first, _)| first.at_us <= at_us) {
            self.left = rest;
            let is_more =
                first.flags & ACK != 0 && self.number.is_none_or(|known| is_beyond(first.ack, known));
            self.number = if is_more { Some(first.ack) } else { self.number };
        }
        self.number
    }
}

#[test]
fn a_reader_that_finds_nothing_wrong_finds_what_is_wrong() {
    const MOBILE: [u8; 4] = [10, 9, 0, 2];
    let ack = |at_us, ack: u32, word: u8| Segment {
        at_us,
        src: MOBILE.into(),
        seq: 1,
        ack,
        flags: ACK,
        window: 500,
        payload: 0,
        timestamps: Some([ack as u8; 8]),
        bytes: [&ack.to_be_bytes()[..], &[word]].concat(),
    };
    let data = |at_us, word: u8| Segment { src: [10, 8, 0, 1].into(), payload: 1, ..ack(at_us, 1, word) };
    let heard = [ack(10, 100, 0), ack(20, 200, 0)];
    let to_sender = |words, said: &[Segment]| check(MOBILE.into(), words, &heard, said);
    let plain = |said: &[Segment]| to_sender(Words::TheMobiles, said);
    let said = |result: Result<[usize; 2], String>, what: &str| result.is_err_and(|e| e.contains(what));
    assert_eq!(plain(&[ack(11, 100, 0), ack(30, 200, 0), ack(40, 200, 0)]), Ok([3, 0]));
    assert!(said(plain(&[ack(30, 200, 0), ack(31, 200, 0), ack(32, 200, 0)]), "3 times"));
    assert!(said(plain(&[ack(30, 300, 0)]), "had not said"));
    assert!(said(plain(&[ack(15, 200, 0)]), "had not said"));
    assert!(said(plain(&[ack(30, 200, 9)]), "never said"));
    // Under the mobile's address an ACK may have another window. It must not be ahead of the mobile, nor be sent more
    // often.
    let written = |said: &[Segment]| to_sender(Words::InItsName, said);
    assert_eq!(written(&[ack(11, 100, 9), ack(12, 100, 9), ack(21, 200, 9)]), Ok([3, 0]));
    assert!(said(written(&[ack(15, 200, 9)]), "had not said"));
    assert!(said(written(&[ack(30, 200, 9), ack(31, 200, 9), ack(32, 200, 9)]), "3 times"));
    // The author does not matter: the mobile's own and two more are three.
    assert!(said(written(&[ack(11, 100, 0), ack(12, 100, 9), ack(13, 100, 9)]), "3 times"));
    let closed = Segment { window: 0, ..ack(12, 100, 9) };
    assert_eq!(written(&[ack(11, 100, 0), closed, ack(13, 100, 9)]), Ok([3, 0]));
    // The mobile's own ACKs must not be sent late either.
    let late = [ack(11, 100, 0), ack(21, 200, 0), ack(30, 100, 0)];
    assert!(said(plain(&late), "older") && said(written(&late), "older"));
    let spoken = Segment { payload: 100, ..ack(25, 200, 7) };
    let heard = [ack(10, 100, 0), ack(20, 200, 0), spoken.clone()];
    let behind = |seq| [spoken.clone(), Segment { seq, ..ack(30, 200, 9) }];
    assert_eq!(check(MOBILE.into(), Words::InItsName, &heard, &behind(101)), Ok([2, 0]));
    assert!(said(check(MOBILE.into(), Words::InItsName, &heard, &behind(1)), "older"));
    let to_mobile = |left: &[Segment]| check(MOBILE.into(), Words::InItsName, left, &[data(5, 1)]);
    assert_eq!(to_mobile(&[data(6, 1), data(7, 1)]), Ok([0, 2]));
    assert!(said(to_mobile(&[data(6, 2)]), "never sent"));
    assert!(said(to_mobile(&[data(4, 1)]), "never sent"));
}
