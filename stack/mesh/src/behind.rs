//! A look behind the headers of routing, for captures and other observers of packets.

use crate::{dsr, gpsr};

/// The protocol and the bytes behind a routing header, or the given ones where there is none.
pub fn behind_routing(protocol: u8, payload: &[u8]) -> (u8, &[u8]) {
    let behind = match protocol {
        dsr::PROTOCOL => dsr::options::Header::parse(payload).ok().map(|read| (read.header.next, read.len)),
        gpsr::PROTOCOL => gpsr::header::Header::parse(payload).ok().map(|(header, len)| (header.next, len)),
        _ => None,
    };
    behind.map_or((protocol, payload), |(next, len)| (next, &payload[len..]))
}
