//! Feeds a router; `tests/replay` replays the corpus.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hopwise_fuzz::dymo(bytes));
