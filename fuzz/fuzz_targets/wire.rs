//! Feeds the packet parsers; `tests/replay.rs` replays the corpus.
#![no_main]

#[path = "../../tests/replay/input.rs"]
mod input;
#[path = "../../tests/replay/made_right.rs"]
mod made_right;
#[path = "../../tests/replay/wire.rs"]
mod wire;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wire::replay(bytes));
