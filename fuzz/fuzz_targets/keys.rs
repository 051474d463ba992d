//! Feeds files of keys; `tests/replay.rs` replays the corpus.
#![no_main]

#[path = "../../tests/replay/input.rs"]
mod input;
#[path = "../../tests/replay/keys.rs"]
mod keys;
#[path = "../../tests/replay/network.rs"]
mod network;
#[path = "../../tests/replay/routers.rs"]
mod routers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| keys::replay(bytes));
