//! Feeds control sockets; `tests/replay.rs` replays the corpus.
#![no_main]

#[path = "../../tests/replay/control.rs"]
mod control;
#[path = "../../tests/replay/input.rs"]
mod input;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| control::replay(bytes));
