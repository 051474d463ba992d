//! Feeds routers with keys; `tests/replay.rs` replays the corpus.
#![no_main]

#[path = "../../tests/replay/input.rs"]
mod input;
#[path = "../../tests/replay/network.rs"]
mod network;
#[path = "../../tests/replay/routers.rs"]
mod routers;
#[path = "../../tests/replay/signed.rs"]
mod signed;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| signed::replay(bytes));
