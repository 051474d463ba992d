//! Feeds the reader of traces; `tests/replay.rs` replays the corpus.
#![no_main]

#[path = "../../tests/replay/trace.rs"]
mod trace;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trace::replay(bytes));
