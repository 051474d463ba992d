//! Firewalls of the first router that let no caught SYN in, and sources of which its kernel takes no packet in.

use std::net::SocketAddr;

use rustix::net::{AddressFamily, SendFlags, sendto};

use super::clashes::{end, send};
use super::{Chain, PORT, TOOLS, V4, V6};
use crate::field::text;
use crate::flood::{SYN, raw_socket, segment_between, syn_between};
use crate::world::{until, within_patience};

/// A firewall as administrators set it: the machine itself is open towards the mesh alone.
const WALL: &str = "table inet wall { chain input { type filter hook input priority 0; policy drop; \
                    iifname { \"mid0\", \"hw0\", \"lo\" } accept; meta l4proto ipv6-icmp accept; }; }";
const GATE: &str = "insert rule inet wall input meta mark & 0x4000000 != 0 accept";

#[test]
fn a_firewall_that_lets_no_caught_syn_in_costs_one_connection_seconds_and_no_other_anything() {
    needs!(&TOOLS);
    let chain = Chain::new("wall");
    chain.serve(PORT);
    let (_last, _first) = (chain.last(), chain.first());
    let nft = |rules: &str| {
        let done = chain.first.output(&["nft", rules]);
        assert!(done.status.success(), "{done:?}");
    };
    nft(WALL);
    let seen = chain.exchange(V4[1], 100_000);
    assert_eq!(seen.host, seen.by_server, "it goes straight on");
    assert_eq!((chain.at_first("caught"), chain.at_first("not-let-in"), chain.at_first("open")), (1, 1, 0));
    let said = "a caught SYN did not come in: this machine's firewall";
    assert!(chain.log(1).contains(said) && chain.log(1).contains(&seen.host.to_string()), "{}", chain.log(1));
    for nth in 2..=4 {
        let seen = chain.exchange(V4[1], 100_000);
        assert_eq!(seen.host, seen.by_server, "it goes straight on at once");
        assert_eq!((chain.at_first("caught"), chain.at_first("not-let-in")), (1, nth));
    }
    let seen = chain.exchange(V6[1], 100_000);
    assert_eq!(seen.host, seen.by_server, "it goes straight on");
    assert_eq!((chain.at_first("caught"), chain.at_first("not-let-in")), (2, 5));
    within_patience(until(|| chain.at_last("open") == 0));
}

/// The first SYN asks for ECN, and its repetition does not (RFC 3168 §6.1.1.1).
#[test]
fn a_host_whose_repeated_syn_is_another_one_pays_once_as_well() {
    needs!(&TOOLS);
    let chain = Chain::new("repeated");
    chain.serve(PORT);
    chain.host.sysctl("ipv4/tcp_ecn", "1");
    let (_last, _first) = (chain.last(), chain.first());
    assert!(chain.first.output(&["nft", WALL]).status.success());
    for nth in 1..=2 {
        let seen = chain.exchange(V4[1], 1000);
        assert_eq!(seen.host, seen.by_server, "it goes straight on");
        assert_eq!((chain.at_first("caught"), chain.at_first("not-let-in")), (1, nth), "{}", chain.log(1));
    }
}

/// A chain behind the one that hands caught SYNs to the node may drop them, too.
#[test]
fn a_firewall_that_drops_caught_syns_of_one_host_closes_the_way_in_to_no_other_host() {
    needs!(&TOOLS);
    let chain = Chain::new("one-host");
    chain.serve(PORT);
    let (_last, _first) = (chain.last(), chain.first());
    let wall = "table inet wall { chain early { type filter hook prerouting priority 10; ip saddr 10.1.0.2 meta mark & \
                0x4000000 != 0 drop; }; }";
    assert!(chain.first.output(&["nft", wall]).status.success());
    let seen = chain.exchange(V4[1], 100_000);
    assert_eq!(seen.host, seen.by_server, "it goes straight on");
    assert_eq!((chain.at_first("caught"), chain.at_first("not-let-in")), (1, 1));
    chain.host.ip(&["addr", "add", "10.1.0.3/24", "dev", "lan0"]);
    chain.host.ip(&["route", "replace", "10.2.0.0/24", "via", "10.1.0.1", "src", "10.1.0.3"]);
    chain.exchange(V4[1], 100_000);
    assert_eq!((chain.at_first("caught"), chain.at_first("not-let-in")), (2, 1), "{}", chain.log(1));
}

/// Anyone can send such SYNs in the name of the host.
#[test]
fn a_firewall_that_drops_syns_for_what_their_sender_chose_closes_the_way_in_to_no_other_syns() {
    needs!(&TOOLS);
    let chain = Chain::new("choosy");
    chain.serve(PORT);
    chain.serve(5005);
    let (_last, _first) = (chain.last(), chain.first());
    let choosy = "table inet choosy { chain input { type filter hook input priority 0; tcp dport 5005 drop; tcp dport \
                  5000 ip ttl 33 drop; tcp dport 5000 tcp doff 5 drop; }; }";
    assert!(chain.first.output(&["nft", choosy]).status.success());
    chain.exchange(V4[1], 1000);
    for (nth, (port, hops)) in [(5005, 64), (PORT, 33), (PORT, 64)].into_iter().enumerate() {
        let [from, to] = [(V4[0], 40_000 + nth as u16), (V4[1], port)]
            .map(|(address, port)| SocketAddr::new(address.parse().expect("an address"), port));
        let packet = segment_between(from, to, 7, (SYN, hops));
        let family = AddressFamily::INET;
        let to = SocketAddr::new(to.ip(), 0);
        let sent = chain.host.run(|| sendto(raw_socket(family), &packet, SendFlags::empty(), &to));
        assert_eq!(sent, Ok(packet.len()));
        let nth = nth as u64 + 1;
        within_patience(until(|| chain.at_first("not-let-in") == nth));
        chain.exchange(V4[1], 1000);
        let counts = ["caught", "not-let-in"].map(|what| chain.at_first(what));
        assert_eq!(counts, [2 * nth + 1, nth], "{}", chain.log(1));
    }
}

/// The filter of reverse paths drops such a SYN, which anyone on the link can send.
#[test]
fn a_syn_from_an_address_without_a_route_closes_no_way_to_a_host_that_gets_a_route_later() {
    needs!(&TOOLS);
    let chain = Chain::new("unrouted");
    chain.serve(PORT);
    chain.first.sysctl("ipv4/conf/lan0/rp_filter", "1");
    let (_last, _first) = (chain.last(), chain.first());
    chain.exchange(V4[1], 1000);
    let ends = |port: u16| [end("10.9.0.2", port), end(V4[1], PORT)];
    send(&chain.host, ends(40_000), 7, (SYN, 64));
    within_patience(until(|| chain.at_first("lost") + chain.at_first("not-let-in") == 1));
    chain.first.ip(&["route", "add", "10.9.0.0/24", "via", "10.1.0.2"]);
    send(&chain.host, ends(40_001), 7, (SYN, 64));
    within_patience(until(|| chain.at_first("caught") + chain.at_first("straight") == 4));
    let counts = ["caught", "not-let-in", "lost"].map(|what| chain.at_first(what));
    assert_eq!(counts, [3, 0, 1], "{}", chain.log(1));
}

/// The rule of the log's advice.
#[test]
fn a_firewall_with_a_rule_for_caught_packets_lets_connections_be_carried() {
    needs!(&TOOLS);
    let chain = Chain::new("gate");
    chain.serve(PORT);
    let (_last, _first) = (chain.last(), chain.first());
    for rules in [WALL, GATE] {
        assert!(chain.first.output(&["nft", rules]).status.success());
    }
    chain.exchange(V4[1], 100_000);
    assert_eq!((chain.at_first("caught"), chain.at_first("not-let-in")), (1, 0));
}

/// The kernel drops them behind the chain that hands caught SYNs to the node, as no firewall does.
#[test]
fn syns_from_addresses_that_no_host_has_are_not_caught_and_blame_no_firewall() {
    needs!(&TOOLS);
    let chain = Chain::new("martians");
    chain.serve(PORT);
    let (_last, _first) = (chain.last(), chain.first());
    let nft = |rules: &str| {
        let done = chain.first.output(&["nft", rules]);
        assert!(done.status.success(), "{done:?}");
        text(&done.stdout)
    };
    nft(
        "table inet seen { counter syns { }; chain early { type filter hook prerouting priority -300; iifname \"lan0\" \
         tcp dport 5000 tcp sport 666 counter name syns; }; }",
    );
    let of_v4 = ["127.0.0.1", "224.0.0.5", "255.255.255.255", "10.1.0.255", "10.1.0.1", "10.7.1.1"];
    let ends = of_v4.map(|from| (from, V4[1])).into_iter().chain([("fd01::1", V6[1]), ("fd05::1", V6[1])]);
    let sent: Vec<_> = ends
        .map(|(from, to)| {
            let of = |address: &str, port| SocketAddr::new(address.parse().expect("an address"), port);
            let family = if to == V4[1] { AddressFamily::INET } else { AddressFamily::INET6 };
            let (packet, to) = (syn_between(of(from, 666), of(to, PORT), 7), of(to, 0));
            let sent = chain.host.run(|| sendto(raw_socket(family), &packet, SendFlags::empty(), &to));
            assert_eq!(sent, Ok(packet.len()), "{from}");
        })
        .collect();
    let came = format!("packets {} ", sent.len());
    within_patience(until(|| nft("list counter inet seen syns").contains(&came)));
    chain.exchange(V4[1], 100_000);
    let counts = ["caught", "straight", "not-let-in"].map(|what| chain.at_first(what));
    assert_eq!(counts, [1, 0, 0], "{}", chain.log(1));
}
