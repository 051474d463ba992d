//! Feeds the reader of traces; `tests/replay` replays the corpus.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hopwise_fuzz::trace(bytes));
