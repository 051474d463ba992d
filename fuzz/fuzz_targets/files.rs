//! Feeds files of daemons; `tests/replay.rs` replays the corpus.
#![no_main]

#[path = "../../tests/replay/files.rs"]
mod files;
#[path = "../../tests/replay/input.rs"]
mod input;
#[path = "../../tests/replay/network.rs"]
mod network;
#[path = "../../tests/replay/refusals.rs"]
mod refusals;
#[path = "../../tests/replay/routers.rs"]
mod routers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| files::replay(bytes));
