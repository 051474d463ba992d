//! Feeds the packet parsers; `tests/replay.rs` replays the corpus.
#![no_main]

#[path = "../../tests/replay/wire.rs"]
mod wire;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wire::replay(bytes));
