//! Events of a router that runs AODV.

use hopwise_core::Instant;
use hopwise_mesh::aodv::messages::AodvMessage;
use hopwise_mesh::aodv::rfc3561::Aodv;
use hopwise_mesh::aodv::{Interface, Key, Settings, routing};
use hopwise_mesh::constants::RuleSet;
use hopwise_mesh::{Routing, RoutingSetup};

use crate::routers::{AsRouter, LINK, Manners, address, drive, trust};

/// ns-2's rules know no network.
struct Ns2(Box<dyn Routing>);

impl AsRouter for Ns2 {
    fn router(&mut self) -> &mut dyn Routing {
        &mut *self.0
    }

    fn look(&self, _: Instant) {}
}

fn config(byte: u8) -> (Settings, RoutingSetup) {
    let rules = if byte & 1 == 0 { RuleSet::Standard } else { RuleSet::Ns2 };
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
    (settings, RoutingSetup { wakes_at, trust: trust(), ..RoutingSetup::new(interfaces, 1) })
}

pub(crate) fn replay(bytes: &[u8]) {
    if let Some((first, rest)) = bytes.split_first() {
        let ((settings, setup), manners) = (config(*first), Manners { hop_limit: None, check });
        match settings.rules {
            RuleSet::Standard => drive(&mut Aodv::new(settings, setup), manners, rest),
            RuleSet::Ns2 => drive(&mut Ns2(routing(settings, setup)), manners, rest),
        }
    }
}

/// A message reads as it was written.
fn check(bytes: &[u8]) {
    let (message, extensions) = AodvMessage::parse(bytes).expect("a message of ours");
    let mut again = Vec::new();
    message.emit(&mut again);
    again.extend(extensions.bytes());
    assert_eq!(again, bytes);
}
