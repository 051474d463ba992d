//! Messages of netlink with nested attributes, whose lengths are right.

use crate::input::Input;

/// The header of a message, and the header of an attribute.
const HEADER: usize = 16;
const ATTRIBUTE: usize = 4;
/// Links come and go, packets of a queue, chains of nft, errors, the end of a dump, and stations.
const KINDS: [u16; 9] = [16, 17, 0x300, 0x302, 0xa03, 2, 3, 28, 29];
/// Values of an attribute: names, and numbers of four bytes.
const NAMES: [&[u8]; 6] =
    [b"radio\0", b"mlme\0", b"nl80211\0", b"bridge\0", &[4, 0, 0, 0], &[2, 0, 0, 0, 1, 0]];
const DEEPEST: u8 = 3;

pub(super) fn made(input: &mut Input<'_>) -> Vec<u8> {
    let mut all = Vec::new();
    while !input.is_empty() && all.len() < 65_535 {
        let kind = input.pick(KINDS);
        let mut body = Vec::new();
        // The family's own header has four or sixteen bytes.
        let own = if input.octet() & 1 == 0 { 4 } else { 16 };
        body.extend((0..own).map(|_| input.octet()));
        attributes(input, DEEPEST, &mut body);
        let len = (HEADER + body.len()) as u32;
        all.extend(len.to_ne_bytes());
        all.extend(kind.to_ne_bytes());
        all.extend([0; 10]);
        all.extend(body);
        all.resize(all.len().next_multiple_of(4), 0);
    }
    if let (1, Some(at)) = (input.octet() & 1, input.index(all.len())) {
        all[at] = input.octet();
    }
    all
}

fn attributes(input: &mut Input<'_>, deeper: u8, into: &mut Vec<u8>) {
    for _ in 0..input.octet() % 16 {
        if input.is_empty() {
            return;
        }
        let (kind, manner) = (u16::from(input.octet()), input.octet());
        let mut value = Vec::new();
        match manner % 4 {
            0 if deeper > 0 => attributes(input, deeper - 1, &mut value),
            1 => value.extend(input.pick(NAMES)),
            2 => value.extend(input.long().to_ne_bytes()),
            _ => {
                let len = usize::from(input.word());
                value.extend(input.bytes(len));
            }
        }
        value.truncate(usize::from(u16::MAX) - ATTRIBUTE);
        let nested = if manner & 0x80 == 0 { 0 } else { 0x8000 };
        into.extend(((ATTRIBUTE + value.len()) as u16).to_ne_bytes());
        into.extend((kind | nested).to_ne_bytes());
        into.extend(value);
        into.resize(into.len().next_multiple_of(4), 0);
    }
}
