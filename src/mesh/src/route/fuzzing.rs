//! Entrances of a routing daemon for fuzz targets.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use hopwise_core::{Instant, LinkId};
use hopwise_host::Clock;
use hopwise_lab::located::Checked;
use hopwise_mesh::aodv::Interface;
use hopwise_mesh::{Keys, OnDemand, RoutingSetup, Trust, first_stamp};

use super::config::{self, RoutingConfiguration};
use super::keys::{Content, KeyFile};
use super::state::{SavedState, kept, left, text_of, text_of_numbers};
use super::status::{StatusBoard, StatusSource};
use hopwise_daemon::fuzzing::each;

/// The clients of a routing daemon's control socket, a line each.
pub fn asked(lines: &[u8], is_routing: bool) {
    let (clock, told) = (Clock::start(), StatusBoard::default());
    let address = Ipv4Addr::new(10, 0, 0, 1);
    let known = StatusSource { address, clock, boards: Vec::new(), interfaces: Vec::new(), told };
    each(lines, is_routing, |request| known.answer(&request));
}

/// The file of a routing daemon. An accepted one makes a router of its protocol.
pub fn file(text: &str) -> Checked<Box<dyn OnDemand>> {
    Ok(router(&config::parse(text)?))
}

fn router(config: &RoutingConfiguration) -> Box<dyn OnDemand> {
    let interface = |nth| Interface { link: LinkId(nth), address: config.address };
    let rest = (config.protocol.rest)(&config.constants);
    let setup = RoutingSetup {
        serves: config.serves.clone(),
        wakes_at: Instant::ZERO + left(Duration::ZERO, rest, Duration::ZERO),
        trust: Trust { network: Some(config.network), ..Trust::default() },
        ..RoutingSetup::new((0..).map(interface).take(config.interfaces.len()).collect(), 1)
    };
    (config.protocol.make)(&config.constants, setup)
}

/// The file of keys, with its permissions.
pub fn keys(text: String, mode: u32) -> Result<Keys, String> {
    let file = KeyFile { path: PathBuf::from("keys"), clock_within: None, user: 0 };
    file.take(&Content { text, mode, owner: 0 })
}

/// The state file of an earlier start that ended at `marked`; it is `now`. The numbers that a daemon goes on from are
/// kept over one more start.
pub fn state(text: &str, [marked, rest, now]: [Duration; 3], wall: u64) {
    let SavedState { number, stamps, heard, numbers } = kept(text);
    assert!(left(marked, rest, now) <= rest);
    let stamp = first_stamp(wall, &stamps);
    let of_numbers = text_of_numbers(&numbers);
    let written = text_of(number, &[stamp], &heard) + &of_numbers;
    let again = kept(&written);
    assert_eq!(
        (again.number.is_some(), &again.stamps[..], again.heard),
        (number.is_some(), &[stamp][..], heard),
        "{written}"
    );
    // A node with more of them than a file has room for writes none.
    assert!(again.numbers == numbers || of_numbers.is_empty(), "{written}");
}
