//! The differences of ns-2 from RFC 3561.

use std::time::Duration;

use hopwise_core::Instant;

use super::super::Settings;
use crate::on_demand::testing::{Net, address};

fn settings() -> Settings {
    Settings { jitter: Duration::ZERO, ..Settings::ns2() }
}

#[test]
fn the_first_request_crosses_the_whole_network_and_later_ones_grow_from_what_was_known() {
    let mut net = Net::chain(4, &settings());
    net.send(0, 3);
    net.run_for(Duration::from_secs(1));
    assert!(net.log.starts_with("     0 0 to all: RREQ 0>3 seq Some(0) hops 0 ttl 30"), "{}", net.log);
    assert_eq!(net.delivered, [(0, 3)]);
    net.log.clear();
    net.isolate(0);
    (0..2).for_each(|_| {
        net.send(0, 3);
        net.run_for(Duration::from_millis(100));
    });
    net.run_for(Duration::from_secs(9));
    let ttls: Vec<_> = net.lines("RREQ").filter_map(|line| line.rsplit(' ').next()).collect();
    assert_eq!(ttls[..4], ["5", "7", "30", "30"], "{}", net.log);
}

#[test]
fn a_destination_that_is_not_found_rests_after_four_tries_across_the_network() {
    let mut net = Net::new(1, &settings(), 1);
    for _ in 0..120 {
        net.send(0, 5);
        net.run_for(Duration::from_millis(250));
    }
    let times = net.lines("RREQ").filter_map(|line| line[..6].trim().parse::<u64>().ok());
    let whole_seconds: Vec<_> = times.map(|ms| ms / 1_000).collect();
    // 2 × 30 × 30 ms once, twice, three and four times, each up to the next packet or sweep; then 10 s of rest.
    assert_eq!(whole_seconds[..4], [0, 2, 5, 11], "{whole_seconds:?}");
    assert!(whole_seconds[4] >= 28, "{whole_seconds:?}");
}

/// The defect that decides the papers' figures: the neighbour that could help replies with the known route.
#[test]
fn a_repair_is_answered_in_vain_until_the_route_downstream_has_run_out() {
    let mut net = Net::chain(6, &settings());
    net.send(0, 5);
    net.run_for(Duration::from_secs(1));
    net.log.clear();
    net.cut(3, 4);
    net.send(0, 5);
    net.run_for(Duration::from_millis(10));
    net.connect(3, 4);
    net.run_for(Duration::from_secs(2));
    assert!(net.lines("3 to all: RREQ 3>5 seq Some(2)").count() > 0, "{}", net.log);
    assert!(net.lines("4 to 3: RREP 3>5 seq 2 hops 1").count() > 0, "{}", net.log);
    assert_eq!(net.lines("RERR").count(), 0);
    assert_eq!(net.delivered.len(), 1, "it waits for nothing\n{}", net.log);
    net.run(Instant::from_secs(9), &mut |_| {});
    assert_eq!(net.delivered.len(), 1);
    net.run(Instant::from_secs(40), &mut |_| {});
    assert_eq!(net.delivered.len(), 2, "{}", net.log);
}

#[test]
fn without_its_repair_the_route_goes_down_near_the_destination_too() {
    let mut net = Net::chain(6, &Settings { local_repair: false, ..settings() });
    net.send(0, 5);
    net.run_for(Duration::from_secs(1));
    net.log.clear();
    net.cut(3, 4);
    net.send(0, 5);
    net.run_for(Duration::from_millis(100));
    let errors: Vec<_> = net.lines("RERR").map(|line| line[7..].to_owned()).collect();
    assert_eq!(errors, ["3 to all: RERR 5 3", "2 to all: RERR 5 3", "1 to all: RERR 5 3"], "{}", net.log);
    assert_eq!(net.lines("RREQ").count(), 0, "{}", net.log);
    assert_eq!(net.routers[0].next_hop(net.now, address(5).into()), None);
}

#[test]
fn nearer_to_the_source_the_route_goes_down_at_once_with_its_number_raised() {
    let mut net = Net::chain(6, &settings());
    net.send(0, 5);
    net.run_for(Duration::from_secs(1));
    net.log.clear();
    net.cut(1, 2);
    net.send(0, 5);
    net.run_for(Duration::from_millis(100));
    assert_eq!(net.log, "  1011 1 to all: RERR 5 3\n");
    assert_eq!(net.routers[0].next_hop(net.now, address(5).into()), None);
}

#[test]
fn packets_that_waited_leave_ten_milliseconds_apart() {
    let mut net = Net::chain(2, &settings());
    (0..5).for_each(|_| net.send(0, 1));
    net.run_for(Duration::from_millis(35));
    assert_eq!(net.delivered.len(), 3, "at 6, 16 and 26 ms\n{}", net.log);
}

#[test]
fn an_unused_route_goes_down_after_ten_seconds() {
    let mut net = Net::chain(2, &settings());
    net.send(0, 1);
    net.run(Instant::from_secs(10), &mut |_| {});
    assert!(net.routers[0].next_hop(net.now, address(1).into()).is_some());
    net.run(Instant::from_secs(11), &mut |_| {});
    assert!(net.routers[0].next_hop(net.now, address(1).into()).is_none());
}
