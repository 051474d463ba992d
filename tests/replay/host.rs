//! Any bytes are what a Linux host reads from the kernel or the air: messages of netlink, packets behind a device's
//! header, Ethernet frames, datagrams, and what nft lists. Lengths and checksums are right where the bytes want it.
//!
//! As root, frames and datagrams also take their real way, in a network namespace of their own. A TAP device gets the
//! frames. A raw link, a watch and a socket for routing messages read them, by `unsafe` code. The neighbours that the
//! raw link has learned stay for the next input.

#[path = "host/messages.rs"]
mod messages;
#[path = "host/wire.rs"]
mod wire;

use hopwise_host::fuzzing;

use crate::input::{Bits, Input};
use crate::made_right::make_right;

/// The header of Ethernet, and the header of a device with bundles.
const ETHERNET: usize = 14;
const VNET: usize = 10;
/// The frames of one input.
const MOST_FRAMES: usize = 64;

pub(crate) fn replay(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    match input.octet() % 6 {
        0 => fuzzing::netlink(input.rest()),
        1 => fuzzing::netlink(&messages::made(&mut input)),
        2 => {
            let manner = Bits(input.octet());
            let mut bytes = input.rest().to_vec();
            if let Some(packet) = bytes.get_mut(VNET..) {
                make_right(packet, manner);
            }
            fuzzing::vnet(&bytes);
        }
        3 => frames(&mut input),
        4 => wire::datagram(input.rest()),
        _ => {
            if let Ok(text) = str::from_utf8(input.rest()) {
                fuzzing::rules(text);
            }
        }
    }
}

/// Frames one after the other: for each its length, what to make right, and its bytes.
fn frames(input: &mut Input<'_>) {
    for _ in 0..MOST_FRAMES {
        if input.is_empty() {
            break;
        }
        let (len, manner) = (usize::from(input.word()), Bits(input.octet()));
        let mut frame = input.bytes(len).to_vec();
        if let Some(packet) = frame.get_mut(ETHERNET..) {
            make_right(packet, manner);
        }
        fuzzing::frame(&frame);
        wire::frame(&frame);
    }
}
