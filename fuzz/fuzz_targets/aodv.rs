//! Feeds a router; `tests/replay.rs` replays the corpus.
#![no_main]

#[path = "../../tests/replay/aodv.rs"]
mod aodv;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| aodv::replay(bytes));
