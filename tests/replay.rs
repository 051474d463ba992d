//! The fuzzers' valuable finds are replayed on every compiler. The body of each fuzz target stands in `tests/replay/`,
//! once for both.

#[path = "replay/aodv.rs"]
mod aodv;
#[path = "replay/corpus.rs"]
mod corpus;
#[path = "replay/dymo.rs"]
mod dymo;
#[path = "replay/handle_packet.rs"]
mod handle_packet;
#[path = "replay/host.rs"]
mod host;
#[path = "replay/input.rs"]
mod input;
#[path = "replay/made_right.rs"]
mod made_right;
#[path = "replay/proxy.rs"]
mod proxy;
#[path = "replay/rfc5444.rs"]
mod rfc5444;
#[path = "replay/routers.rs"]
mod routers;
#[path = "replay/signed.rs"]
mod signed;
#[path = "replay/spec.rs"]
mod spec;
#[path = "replay/trace.rs"]
mod trace;
#[path = "replay/wire.rs"]
mod wire;
#[path = "replay/words.rs"]
mod words;
#[path = "replay/wrapped.rs"]
mod wrapped;

use std::fs;
use std::path::Path;

type Replay = fn(&[u8]);

const TARGETS: [(&str, Replay); 12] = [
    ("aodv", aodv::replay),
    ("dymo", dymo::replay),
    ("handle_packet", handle_packet::replay),
    ("host", host::replay),
    ("proxy", proxy::replay),
    ("rfc5444", rfc5444::replay),
    ("signed", signed::replay),
    ("spec", spec::replay),
    ("trace", trace::replay),
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

#[test]
fn every_fuzz_target_has_its_corpus_replayed() {
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/Cargo.toml")).unwrap();
    let targets = manifest.split("[[bin]]").skip(1);
    let names: Vec<_> = targets.filter_map(|bin| bin.split('"').nth(1)).collect();
    assert_eq!(names, TARGETS.map(|(name, _)| name));
}
