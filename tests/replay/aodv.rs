//! Events of a router that runs AODV.

use hopwise_core::Instant;
use hopwise_mesh::Routing;
use hopwise_mesh::aodv::messages::Message;
use hopwise_mesh::aodv::rfc3561::Aodv;
use hopwise_mesh::aodv::{AodvRules, Config, Interface, Key, Settings, routing};

use crate::routers::{AsRouter, LINK, Manners, address, drive, trust};

/// ns-2's rules know no network.
struct Ns2(Box<dyn Routing>);

impl AsRouter for Ns2 {
    fn router(&mut self) -> &mut dyn Routing {
        &mut *self.0
    }

    fn look(&self, _: Instant) {}
}

fn config(byte: u8) -> Config {
    let rules = if byte & 1 == 0 { AodvRules::Rfc3561 } else { AodvRules::Ns2 };
    let settings = Settings {
        hello: byte & 2 != 0,
        rrep_ack: byte & 4 != 0,
        gratuitous: byte & 8 != 0,
        search_at_once: byte & 8 != 0,
        rerr_to_source: byte & 8 != 0,
        rerr_discards: byte & 8 != 0,
        // Its messages have any TTL.
        gtsm: false,
        ack_seq: byte & 16 != 0,
        key: (byte & 32 != 0).then(|| Key::new([1; 32])),
        most_routes: 64,
        ..Settings::of(rules)
    };
    let wakes_at = if byte & 64 != 0 { Instant::from_secs(15) } else { Instant::ZERO };
    let interfaces = vec![Interface { link: LINK, address: address(1) }];
    Config { settings, interfaces, serves: Vec::new(), seed: 1, counter: 0, wakes_at, trust: trust() }
}

pub(crate) fn replay(bytes: &[u8]) {
    if let Some((first, rest)) = bytes.split_first() {
        let (config, manners) = (config(*first), Manners { hop_limit: None, check });
        match config.settings.rules {
            AodvRules::Rfc3561 => drive(&mut Aodv::new(config), manners, rest),
            AodvRules::Ns2 => drive(&mut Ns2(routing(config)), manners, rest),
        }
    }
}

/// A message reads as it was written.
fn check(bytes: &[u8]) {
    let (message, extensions) = Message::parse(bytes).expect("a message of ours");
    let mut again = Vec::new();
    message.emit(&mut again);
    again.extend(extensions.bytes());
    assert_eq!(again, bytes);
}
