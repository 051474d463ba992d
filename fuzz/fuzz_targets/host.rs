//! Feeds what a Linux host reads from the kernel and the air; `tests/replay` replays the corpus.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hopwise_fuzz::host(bytes));
