//! Rules of TCP-pgy's paper for lost routes, and for the messages that say what has arrived, under both sets of rules.

use std::time::Duration;

use hopwise_core::Seq;
use hopwise_core::agent::PathEvent;

use super::Settings;
use crate::constants::RuleSet;
use crate::on_demand::testing::scenarios::seconds;
use crate::on_demand::testing::{Net, address};

fn settings(rules: RuleSet) -> Settings {
    Settings {
        jitter: Duration::ZERO,
        local_repair: false,
        search_at_once: true,
        rerr_to_source: true,
        ..Settings::of(rules)
    }
}

fn of_both_rules() -> [Settings; 2] {
    [RuleSet::Standard, RuleSet::Ns2].map(settings)
}

fn count(net: &Net, part: &str) -> usize {
    net.lines(part).count()
}

/// Six nodes in a row, with routes between their ends. A packet from the last one is lost behind the third hop.
fn lost_on_the_way(settings: &Settings) -> Net {
    let mut net = Net::chain(6, settings);
    net.send(0, 5);
    net.run_for(seconds(1));
    net.send(5, 0);
    net.run_for(Duration::from_millis(100));
    lose_one(&mut net);
    net
}

fn lose_one(net: &mut Net) {
    net.log.clear();
    net.cut(2, 3);
    net.send(5, 0);
    net.run_for(Duration::from_millis(100));
}

/// Its packet is lost, and it has no other one to send.
#[test]
fn the_source_of_a_lost_packet_asks_for_a_route_at_once() {
    for settings in of_both_rules() {
        let net = lost_on_the_way(&settings);
        assert_eq!(count(&net, "3 to ") + count(&net, "4 to "), 2 + 2, "errors and requests\n{}", net.log);
        assert_eq!(count(&net, "5 to all: RREQ 5>0"), 1, "{}", net.log);
        let late = lost_on_the_way(&Settings { search_at_once: false, ..settings.clone() });
        assert_eq!((count(&late, "4 to "), count(&late, "RREQ")), (1, 0), "{}", late.log);
        let deaf = lost_on_the_way(&Settings { rerr_to_source: false, ..settings });
        assert_eq!((count(&deaf, "4 to "), count(&deaf, "RREQ")), (0, 0), "{}", deaf.log);
    }
}

#[test]
fn who_loses_its_own_link_asks_at_once() {
    for rules in [RuleSet::Standard, RuleSet::Ns2] {
        for search_at_once in [true, false] {
            // ns-2's rules have no hellos: the packet itself shows the loss, and is lost.
            let hello = rules == RuleSet::Standard;
            let mut net = Net::chain(3, &Settings { search_at_once, hello, ..settings(rules) });
            net.tells = !hello;
            net.send(2, 0);
            net.run_for(Duration::from_millis(1_500));
            net.log.clear();
            net.cut(1, 2);
            net.send(2, 0);
            net.run_for(Duration::from_millis(2_500));
            assert_eq!(count(&net, "2 to all: RREQ 2>0") > 0, search_at_once, "{rules:?}\n{}", net.log);
        }
    }
}

#[test]
fn who_only_passes_packets_on_or_sent_one_long_ago_asks_for_nothing() {
    for settings in of_both_rules() {
        let mut net = Net::chain(6, &settings);
        net.send(4, 0);
        for _ in 0..11 {
            net.send(5, 0);
            net.run_for(seconds(1));
        }
        lose_one(&mut net);
        let asked = |net: &Net| [3, 4, 5].map(|node| count(net, &format!("{node} to all: RREQ {node}>0")));
        assert_eq!(asked(&net), [0, 0, 1], "{}", net.log);
    }
}

#[test]
fn a_search_at_once_ends_as_any_other() {
    for settings in of_both_rules() {
        let mut net = lost_on_the_way(&settings);
        net.run_for(seconds(60));
        assert!((3..=5).contains(&count(&net, "5 to all: RREQ 5>0")), "{}", net.log);
        net.log.clear();
        net.run_for(seconds(60));
        assert_eq!(count(&net, "RREQ"), 0, "{}", net.log);
    }
}

/// The fourth node's only packet waited for its route, and the second loss finds no other one.
#[test]
fn another_search_at_once_needs_another_packet() {
    for settings in of_both_rules() {
        let mut net = Net::chain(6, &settings);
        for node in [4, 5] {
            net.send(node, 0);
            net.run_for(seconds(1));
        }
        let asked = |net: &Net| [4, 5].map(|node| count(net, &format!("{node} to all: RREQ {node}>0")) > 0);
        lose_one(&mut net);
        assert_eq!(asked(&net), [true, true], "{}", net.log);
        net.connect(2, 3);
        net.run_for(Duration::from_millis(1_500));
        assert!([4, 5].iter().all(|node| net.routers[*node].path(address(0).into()).hops_to_peer.is_some()));
        lose_one(&mut net);
        assert_eq!(asked(&net), [false, true], "{}", net.log);
    }
}

/// The number that the node at the other end gets to know.
fn told(net: &Net) -> Vec<(usize, Seq)> {
    let seq = |event: &PathEvent| if let PathEvent::AckSeq(seq) = event { Some(*seq) } else { None };
    net.path_events.iter().filter_map(|(node, _, event)| Some((*node, seq(event)?))).collect()
}

#[test]
fn requests_say_what_has_arrived_and_replies_where_they_may() {
    for settings in of_both_rules() {
        for (ack_seq_in_replies, expected) in
            [(true, vec![(2, Seq(99)), (0, Seq(77))]), (false, vec![(2, Seq(99))])]
        {
            let settings = Settings { ack_seq: true, ack_seq_in_replies, ..settings.clone() };
            let mut net = Net::chain(3, &settings);
            net.ends[0].0.push((address(2).into(), (5_001, 40_000), Seq(99)));
            net.ends[2].0.push((address(0).into(), (40_000, 5_001), Seq(77)));
            net.send(0, 2);
            net.run_for(seconds(1));
            let mut told = told(&net);
            told.dedup();
            assert_eq!(told, expected, "{}", net.log);
        }
    }
}

/// A node on the way answers, and the request never reaches its destination.
#[test]
fn gratuitous_replies_say_what_has_arrived_although_others_do_not() {
    for settings in of_both_rules() {
        for gratuitous in [true, false] {
            let settings =
                Settings { ack_seq: true, ack_seq_in_replies: false, gratuitous, ..settings.clone() };
            let mut net = Net::chain(4, &settings);
            net.send(1, 3);
            net.run_for(seconds(1));
            net.ends[0].0.push((address(3).into(), (5_001, 40_000), Seq(7)));
            net.send(0, 3);
            net.run_for(Duration::from_millis(100));
            assert_eq!(told(&net), vec![(3, Seq(7)); usize::from(gratuitous)], "{}", net.log);
        }
    }
}
