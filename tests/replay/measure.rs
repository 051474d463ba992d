//! Any bytes are what a stranger says to `hopwise recv`, or what a called end answers to `hopwise send`.

use hopwise_node::measure::fuzzing as measure;

use crate::input::Input;

pub(crate) fn replay(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    match input.octet() & 1 {
        0 => measure::called(&bytes[bytes.len().min(1)..]),
        _ => measure::answered(&bytes[bytes.len().min(1)..]),
    }
}
