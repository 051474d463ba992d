//! Feeds the spec parser; `tests/replay.rs` replays the corpus.
#![no_main]

#[path = "../../tests/replay/spec.rs"]
mod spec;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| spec::replay(bytes));
