//! Feeds the endpoint; `tests/replay.rs` replays the corpus.
#![no_main]

#[path = "../../tests/replay/handle_packet.rs"]
mod handle_packet;
#[path = "../../tests/replay/input.rs"]
mod input;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| handle_packet::replay(bytes));
