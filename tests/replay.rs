//! What the fuzzers found worth keeping is replayed on every compiler. The body of each fuzz target stands in
//! `tests/replay/`, once for both.

#[path = "replay/aodv.rs"]
mod aodv;
#[path = "replay/dymo.rs"]
mod dymo;
#[path = "replay/handle_packet.rs"]
mod handle_packet;
#[path = "replay/rfc5444.rs"]
mod rfc5444;
#[path = "replay/routers.rs"]
mod routers;
#[path = "replay/spec.rs"]
mod spec;
#[path = "replay/trace.rs"]
mod trace;
#[path = "replay/wire.rs"]
mod wire;
#[path = "replay/wrapped.rs"]
mod wrapped;

use std::fs;
use std::path::Path;

type Replay = fn(&[u8]);

const TARGETS: [(&str, Replay); 8] = [
    ("aodv", aodv::replay),
    ("dymo", dymo::replay),
    ("handle_packet", handle_packet::replay),
    ("rfc5444", rfc5444::replay),
    ("spec", spec::replay),
    ("trace", trace::replay),
    ("wire", wire::replay),
    ("wrapped", wrapped::replay),
];

#[test]
fn every_input_that_the_fuzzers_kept_does_no_harm() {
    for (target, replay) in TARGETS {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
        let mut replayed = 0;
        for entry in fs::read_dir(corpus).unwrap() {
            replay(&fs::read(entry.unwrap().path()).unwrap());
            replayed += 1;
        }
        assert!(replayed > 0, "the corpus of {target} is empty");
    }
}

#[test]
fn every_fuzz_target_has_its_corpus_replayed() {
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/Cargo.toml")).unwrap();
    let targets = manifest.split("[[bin]]").skip(1);
    let names: Vec<_> = targets.filter_map(|bin| bin.split('"').nth(1)).collect();
    assert_eq!(names, TARGETS.map(|(name, _)| name));
}
