//! Feeds a router; `tests/replay.rs` replays the corpus.
#![no_main]

#[path = "../../tests/replay/aodv.rs"]
mod aodv;
#[path = "../../tests/replay/routers.rs"]
mod routers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| aodv::replay(bytes));
