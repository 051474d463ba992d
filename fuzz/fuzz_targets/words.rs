//! Feeds readers of texts; `tests/replay.rs` replays the corpus.
#![no_main]

#[path = "../../tests/replay/refusals.rs"]
mod refusals;
#[path = "../../tests/replay/words.rs"]
mod words;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| words::replay(bytes));
