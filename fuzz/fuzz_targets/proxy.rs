//! Feeds the base station's proxy; `tests/replay.rs` replays the corpus.
#![no_main]

#[path = "../../tests/replay/input.rs"]
mod input;
#[path = "../../tests/replay/made_right.rs"]
mod made_right;
#[path = "../../tests/replay/proxy.rs"]
mod proxy;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| proxy::replay(bytes));
