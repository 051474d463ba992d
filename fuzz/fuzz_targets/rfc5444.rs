//! Feeds the reader of packets; `tests/replay.rs` replays the corpus.
#![no_main]

#[path = "../../tests/replay/rfc5444.rs"]
mod rfc5444;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rfc5444::replay(bytes));
