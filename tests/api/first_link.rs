//! The facts about our own link on the way to a peer, which its connections show to their agents.

use std::net::IpAddr;
use std::num::NonZeroU64;
use std::sync::Arc;

use hopwise_core::agent::{HopSource, Path, PathEvent};
use hopwise_core::endpoint::PathSeam;
use hopwise_core::{Instant, LinkFacts, LinkId, NextHop, StationAddress};
use hopwise_testing::memory::End;

use super::net::{A, B, Pair};

const STATION: StationAddress = StationAddress([2, 0, 0, 0, 0, 1]);

fn facts(bps: Option<u64>) -> Arc<LinkFacts> {
    let at = Instant::from_millis(7);
    Arc::new(LinkFacts { tx_bitrate_bps: bps, signal_dbm: Some(-61), ..LinkFacts::new(STATION, at) })
}

fn tell(pair: &mut Pair, to: IpAddr, facts: Option<&Arc<LinkFacts>>) {
    pair.net.hosts.a.set_links(&mut |peer| facts.filter(|_| peer == to).cloned());
}

fn routing_says(pair: &mut Pair, bps: Option<u64>) {
    let hops = Some((3, HopSource::Routing));
    let link_bps = bps.and_then(NonZeroU64::new);
    let path = Path { hops_to_peer: hops, hops_from_peer: hops, link_bps, ..Path::default() };
    let now = pair.net.now();
    pair.net.hosts.a.handle_path(now, B, None, &PathEvent::HopsChanged, &path);
}

#[test]
fn a_drivers_bit_rate_goes_before_that_of_routing() {
    let mut pair = Pair::new();
    let seen = |pair: &mut Pair| {
        let path = pair.info(End::A).path;
        (path.bit_rate(), path.link.as_deref().copied())
    };
    assert_eq!(seen(&mut pair), (None, None), "nobody has told anything");
    routing_says(&mut pair, Some(1_000_000));
    assert_eq!(seen(&mut pair), (Some(1_000_000), None));
    // A link of which no driver tells keeps the rate of routing.
    tell(&mut pair, B, None);
    assert_eq!(seen(&mut pair), (Some(1_000_000), None));
    let fast = facts(Some(11_000_000));
    tell(&mut pair, B, Some(&fast));
    assert_eq!(seen(&mut pair), (Some(11_000_000), Some(*fast)));
    routing_says(&mut pair, Some(1_000_000));
    assert_eq!(seen(&mut pair), (Some(11_000_000), Some(*fast)));
    assert_eq!(pair.info(End::A).path.hops_to_peer, Some((3, HopSource::Routing)), "hops are of routing");
    // A driver without a rate, or without facts any more, leaves routing's rate.
    let without = facts(None);
    tell(&mut pair, B, Some(&without));
    assert_eq!(seen(&mut pair), (Some(1_000_000), Some(*without)));
    tell(&mut pair, A, Some(&fast));
    assert_eq!(seen(&mut pair), (Some(1_000_000), None), "the facts were of another peer");
}

#[test]
fn an_endpoint_names_its_peers_and_the_beginning_of_the_way_to_them() {
    let pair = Pair::new();
    let endpoint = &pair.net.hosts.a;
    assert_eq!(endpoint.peers().collect::<Vec<_>>(), [B]);
    assert_eq!(endpoint.way_to(B), Some((LinkId(0), NextHop::Link)));
}
