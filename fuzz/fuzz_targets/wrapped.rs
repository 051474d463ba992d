//! Feeds a router whose packets have a header of its own; `tests/replay.rs` replays the corpus.
#![no_main]

#[path = "../../tests/replay/routers.rs"]
mod routers;
#[path = "../../tests/replay/wrapped.rs"]
mod wrapped;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wrapped::replay(bytes));
