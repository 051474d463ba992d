//! Any bytes are what clients send to a daemon's control socket, a line each, what a daemon answers to a client, or a
//! request for a node's page of metrics. A client's line goes the real way through a socket, and is answered as the
//! daemon answers it.

use hopwise_node::fuzzing as node;
use hopwise_router::proxy::fuzzing as proxy;
use hopwise_router::route::fuzzing as route;

use crate::input::Input;

pub(crate) fn replay(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let first = input.octet();
    // The client may be a routing daemon's user, or the proxy forecasts fades.
    let is_other = first & 0x80 != 0;
    match first % 6 {
        0 => node::asked(input.rest(), is_other),
        1 => proxy::asked(input.rest(), is_other),
        2 => route::asked(input.rest(), is_other),
        3 => node::scraped(input.rest()),
        answered => {
            let Ok(text) = str::from_utf8(input.rest()) else { return };
            if answered == 4 { node::answered(text) } else { proxy::answered(text) }
        }
    }
}
