//! Feeds a router; `tests/replay.rs` replays the corpus.
#![no_main]

#[path = "../../tests/replay/dymo.rs"]
mod dymo;
#[path = "../../tests/replay/routers.rs"]
mod routers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| dymo::replay(bytes));
