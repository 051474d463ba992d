//! Feeds what a Linux host reads from the kernel and the air; `tests/replay.rs` replays the corpus.
#![no_main]

#[path = "../../tests/replay/host.rs"]
mod host;
#[path = "../../tests/replay/input.rs"]
mod input;
#[path = "../../tests/replay/made_right.rs"]
mod made_right;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| host::replay(bytes));
