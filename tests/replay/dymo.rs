//! Events of a router that runs AODVv2.

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_mesh::RoutingSetup;
use hopwise_mesh::aodv::{Interface, Key};
use hopwise_mesh::aodvv2::{Aodvv2, Settings};
use hopwise_mesh::rfc5444::Packet;

use crate::routers::{LINK, Manners, address, drive, trust};

fn router(byte: u8) -> Aodvv2 {
    let settings = Settings {
        hello: byte & 1 != 0,
        ack_seq: byte & 2 != 0,
        key: (byte & 4 != 0).then(|| Key::new([1; 32])),
        max_blacklist_time: Duration::from_secs(if byte & 8 != 0 { 1 } else { 200 }),
        max_idletime: Duration::from_secs(if byte & 16 != 0 { 2 } else { 200 }),
        most_routes: 64,
        ..Settings::default()
    };
    let wakes_at = if byte & 64 != 0 { Instant::from_secs(15) } else { Instant::ZERO };
    let interfaces = vec![Interface { link: LINK, address: address(1) }];
    Aodvv2::new(settings, RoutingSetup { wakes_at, trust: trust(), ..RoutingSetup::new(interfaces, 1) })
}

pub(crate) fn replay(bytes: &[u8]) {
    if let Some((first, rest)) = bytes.split_first() {
        let manners = Manners { hop_limit: Some(255), check };
        drive(&mut router(*first), manners, rest);
    }
}

/// A packet reads as it was written.
fn check(bytes: &[u8]) {
    assert_eq!(
        Packet::parse(bytes)
            .expect("a packet of ours")
            .bytes()
            .expect("what was read is no longer when it is written again"),
        bytes
    );
}
