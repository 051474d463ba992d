//! Feeds a router whose packets have a header of its own; `tests/replay` replays the corpus.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hopwise_fuzz::wrapped(bytes));
