//! The fuzzers' valuable finds are replayed on every compiler. The body of each fuzz target stands in `tests/replay/`,
//! once for both.

mod aodv;
mod control;
mod corpus;
mod dymo;
mod files;
mod handle_packet;
mod host;
mod input;
mod keys;
mod made_right;
mod measure;
mod network;
mod proxy;
mod refusals;
mod rfc5444;
mod routers;
mod signed;
mod spec;
mod trace;
mod transparent;
mod wire;
mod words;
mod wrapped;

use std::fs;
use std::path::Path;

type Replay = fn(&[u8]);

const TARGETS: [(&str, Replay); 17] = [
    ("aodv", aodv::replay),
    ("control", control::replay),
    ("dymo", dymo::replay),
    ("files", files::replay),
    ("handle_packet", handle_packet::replay),
    ("host", host::replay),
    ("keys", keys::replay),
    ("measure", measure::replay),
    ("proxy", proxy::replay),
    ("rfc5444", rfc5444::replay),
    ("signed", signed::replay),
    ("spec", spec::replay),
    ("trace", trace::replay),
    ("transparent", transparent::replay),
    ("wire", wire::replay),
    ("words", words::replay),
    ("wrapped", wrapped::replay),
];

#[test]
fn every_input_that_the_fuzzers_kept_does_no_harm() {
    for (target, replay) in TARGETS {
        let cases = corpus::read(target);
        assert!(!cases.is_empty(), "the corpus of {target} is empty");
        for case in cases {
            // Shown only when this input, or a later one, breaks something: the last one named is to blame.
            println!("fuzz/corpus/{target}.hex:{}", case.line);
            replay(&case.bytes);
        }
    }
}

/// Datagrams as large as UDP allows; no file of the corpus is that large. One is a request whose metrics would each
/// grow if they were written anew. The other is a reply that gets an addition.
#[test]
fn datagrams_as_large_as_there_are_do_no_harm() {
    let datagram = |data: &[u8]| {
        let len = u16::try_from(data.len()).expect("a datagram").to_be_bytes();
        [&[0, 0, 255][..], &len, data].concat()
    };
    let swollen = |kind: u8, (to, other): (u8, u8), bytes: usize| {
        let of_addresses = [15, 0x14, 2, 0, 1, 10, 0xd0, 3, 0, 1, 1, 11, 0x50, 0, 2, 0, 5];
        let start = [20, 0, 0, 2, 0x80, 3, 10, 0, 0, to, other];
        let metrics = [10, 0x80, 3].repeat((bytes - 40 - of_addresses.len()) / 3);
        let tlvs = [&of_addresses[..], &metrics].concat();
        let body = [&start[..], &(tlvs.len() as u16).to_be_bytes(), &tlvs].concat();
        [&[0, kind, 0x43][..], &(body.len() as u16 + 4).to_be_bytes(), &body].concat()
    };
    for first in [0, 1, 8, 16] {
        let (asks, answers) = (swollen(10, (2, 9), 65_507), swollen(11, (2, 9), 65_507));
        dymo::replay(&[&[first][..], &datagram(&asks), &datagram(&answers)].concat());
        let extensions = [[0x30, 255].to_vec(), vec![0; 255]].concat().repeat(254);
        let rreq =
            [&[1, 0, 0, 0, 0, 0, 0, 7, 10, 0, 0, 9, 0, 0, 0, 0, 10, 0, 0, 2, 0, 0, 0, 1][..], &extensions];
        aodv::replay(&[&[first][..], &datagram(&rreq.concat())].concat());
    }
}

/// Packets as large as IP allows, to all that daemons read packets with: frames, bundles and messages of a host, the
/// endpoint and the proxy.
#[test]
fn packets_as_large_as_there_are_do_no_harm() {
    let behind = |before: &[u8], packet: &[u8]| [before, packet].concat();
    let len = |bytes: usize| u16::try_from(bytes).expect("the length of a packet").to_be_bytes();
    for packet in largest() {
        wire::replay(&packet);
        let frame = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0][..], &packet[..0xffff - 14]].concat();
        let [high, low] = len(frame.len());
        host::replay(&behind(&[3, high, low, 7], &frame));
        for header in [[0; 10], [1, 1, 40, 0, 100, 0, 20, 0, 16, 0], [1, 3, 28, 0, 100, 0, 20, 0, 6, 0]] {
            host::replay(&[&[2, 7][..], &header, &packet].concat());
        }
        host::replay(&behind(&[4], &packet[..65_507]));
        host::replay(&behind(&[0], &packet));
        rfc5444::replay(&packet[..65_507]);
        let [high, low] = len(packet.len());
        for manner in [0xf, 0x7] {
            proxy::replay(&behind(&[0, 0, 9, manner, high, low], &packet));
        }
        // The bytes before a story's first event differ in number.
        for zeros in 96..99 {
            handle_packet::replay(&[&vec![0; zeros][..], &[0, high, low], &packet].concat());
        }
    }
}

/// TCP, UDP and an echo request over both versions of IP, whole and as a first fragment.
fn largest() -> Vec<Vec<u8>> {
    let above = |protocol| match protocol {
        6 => [0x13, 0x88, 0, 80, 0, 0, 16, 0, 0, 0, 0, 0, 0xf0, 0x18, 255, 255, 0, 0, 0, 0],
        17 => [0x13, 0x88, 0, 80, 0xff, 0xeb, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        kind => [if kind == 1 { 8 } else { 128 }, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    };
    let filled = |header: &[u8], protocol| {
        let mut packet = [header, &above(protocol)].concat();
        packet.resize(0xffff, 0x5a);
        made_right::make_right(&mut packet, input::Bits(7));
        packet
    };
    let v4 =
        |protocol, more| [0x45, 0, 0xff, 0xff, 0, 1, more, 0, 64, protocol, 0, 0, 10, 0, 0, 3, 10, 0, 0, 1];
    let v6 = |protocol| {
        let mut header = [0; 40];
        (header[0], header[6], header[7], header[8], header[24]) = (0x60, protocol, 64, 0xfd, 0xfd);
        (header[23], header[39]) = (3, 1);
        header
    };
    let of_v4 = [1, 6, 17]
        .into_iter()
        .flat_map(|protocol| [0, 0x20].map(|more| filled(&v4(protocol, more), protocol)));
    of_v4.chain([58, 6, 17].map(|protocol| filled(&v6(protocol), protocol))).collect()
}

#[test]
fn every_fuzz_target_has_its_corpus_replayed() {
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/Cargo.toml")).unwrap();
    let targets = manifest.split("[[bin]]").skip(1);
    let names: Vec<_> = targets.filter_map(|bin| bin.split('"').nth(1)).collect();
    assert_eq!(names, TARGETS.map(|(name, _)| name));
}
