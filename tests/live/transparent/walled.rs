//! Firewalls of the first router that let no caught SYN in.

use super::{Chain, PORT, TOOLS, V4, V6};
use crate::namespace::can_run;
use crate::world::{until, within_patience};

/// A firewall as administrators set it: the machine itself is open towards the mesh alone.
const WALL: &str = "table inet wall { chain input { type filter hook input priority 0; policy drop; \
                    iifname { \"mid0\", \"hw0\", \"lo\" } accept; meta l4proto ipv6-icmp accept; }; }";
const GATE: &str = "insert rule inet wall input meta mark & 0x4000000 != 0 accept";

#[test]
fn a_firewall_that_lets_no_caught_syn_in_costs_one_connection_seconds_and_no_other_anything() {
    let test = "a_firewall_that_lets_no_caught_syn_in_costs_one_connection_seconds_and_no_other_anything";
    if !can_run(test, &TOOLS) {
        return;
    }
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

/// A chain behind the one that hands caught SYNs to the node may drop them, too.
#[test]
fn a_firewall_that_drops_caught_syns_of_one_host_closes_the_way_in_to_no_other_host() {
    let test = "a_firewall_that_drops_caught_syns_of_one_host_closes_the_way_in_to_no_other_host";
    if !can_run(test, &TOOLS) {
        return;
    }
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

/// The rule of the log's advice.
#[test]
fn a_firewall_with_a_rule_for_caught_packets_lets_connections_be_carried() {
    if !can_run("a_firewall_with_a_rule_for_caught_packets_lets_connections_be_carried", &TOOLS) {
        return;
    }
    let chain = Chain::new("gate");
    chain.serve(PORT);
    let (_last, _first) = (chain.last(), chain.first());
    for rules in [WALL, GATE] {
        assert!(chain.first.output(&["nft", rules]).status.success());
    }
    chain.exchange(V4[1], 100_000);
    assert_eq!((chain.at_first("caught"), chain.at_first("not-let-in")), (1, 0));
}
