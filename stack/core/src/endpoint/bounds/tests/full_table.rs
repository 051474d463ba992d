//! A full table: the connections that give way, and those that stay.

use super::*;

#[test]
fn where_the_table_is_full_the_oldest_time_wait_makes_room() {
    let mut host = Host::new(bounds());
    host.endpoint.config.most_connections = 8;
    for port in 1000..1005 {
        let (id, _) = host.open(port, 60_000);
        host.close(id);
        let fin = host.left.last().expect("a FIN").1 + 1;
        host.say(port, (1, fin), Flags::ACK | Flags::FIN, 60_000, &[]);
    }
    for port in 2000..2005 {
        host.open(port, 60_000);
        host.check();
    }
    let held = host.endpoint.holds();
    assert_eq!((held.connections, held.time_waits, host.endpoint.gave_way(Scarce::TimeWaits)), (8, 3, 2));
    for port in 3000..3003 {
        let to = SocketAddr::new(THEIRS, port);
        host.endpoint.connect(host.now, to, &ConnectOptions::default()).expect("a TIME-WAIT makes room");
    }
    let held = host.endpoint.holds();
    assert_eq!((held.connections, held.time_waits, host.endpoint.gave_way(Scarce::TimeWaits)), (8, 0, 5));
    let refused = host.endpoint.connect(host.now, SocketAddr::new(THEIRS, 1), &ConnectOptions::default());
    assert!(refused.is_err(), "what is not over stays");
    let before = host.endpoint.drops(DropReason::TableFull);
    host.say(4000, (0, Seq(0)), Flags::SYN, 60_000, &[]);
    assert_eq!(host.endpoint.drops(DropReason::TableFull), before + 1);
}

/// A server with a table for eight connections, all of which this peer has opened.
fn full_of(peer: IpAddr) -> Host {
    let mut host = Host::new(bounds());
    host.endpoint.config.most_connections = 8;
    host.peer = peer;
    for port in 1000..1008 {
        host.open(port, 60_000);
    }
    host
}

#[test]
fn where_the_table_is_full_a_source_with_fewer_takes_the_place_of_the_quietest_of_the_source_with_the_most() {
    let mut host = full_of(THEIRS);
    host.wait(Duration::from_secs(2));
    let ours = host.left.iter().find(|(to, ..)| *to == 1000).expect("a SYN-ACK").1 + 1;
    host.say(1000, (1, ours), Flags::ACK, 60_000, &[5; 100]);
    host.peer = OTHER;
    for port in 2000..2004 {
        host.open(port, 60_000);
        host.close_what_is_over();
        host.check();
    }
    assert_eq!(host.resets(), [1001, 1002, 1003, 1004], "the data of 1000 has moved");
    assert_eq!(host.endpoint.gave_way(Scarce::Connections), 4);
    let dropped = host.endpoint.drops(DropReason::TableFull);
    host.say(2004, (0, Seq(0)), Flags::SYN, 60_000, &[]);
    assert_eq!(host.endpoint.drops(DropReason::TableFull), dropped + 1, "each has its half");
    assert_eq!(host.endpoint.holds().connections, 8);
}

/// Anybody may forge a SYN, and nobody the answer to a cookie.
#[test]
fn where_the_table_is_full_a_syn_alone_ends_nothing() {
    let mut host = full_of(THEIRS);
    for last in 3..100 {
        host.peer = IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        host.say(2000, (0, Seq(0)), Flags::SYN, 60_000, &[]);
        host.say(3000, (1, Seq(77)), Flags::ACK, 60_000, &[]);
    }
    assert_eq!(host.endpoint.gave_way(Scarce::Connections), 0);
    assert_eq!(host.endpoint.holds().connections, 8);
}

#[test]
fn where_the_table_is_full_and_shared_the_quietest_goes_after_a_minute() {
    let mut host = full_of(THEIRS);
    host.wait(Duration::from_secs(59));
    host.say(2000, (0, Seq(0)), Flags::SYN, 60_000, &[]);
    assert_eq!(host.endpoint.drops(DropReason::TableFull), 1, "it has all others itself");
    let ours = host.left.iter().find(|(to, ..)| *to == 1000).expect("a SYN-ACK").1 + 1;
    host.say(1000, (1, ours), Flags::ACK, 60_000, &[5; 100]);
    host.wait(Duration::from_secs(1));
    host.open(2001, 60_000);
    assert_eq!(host.resets(), [1001]);
}

#[test]
fn a_connection_that_our_program_opened_stays_where_the_table_is_full() {
    let mut host = Host::new(bounds());
    host.endpoint.config.most_connections = 4;
    for port in 3000..3004 {
        let to = SocketAddr::new(THEIRS, port);
        host.endpoint.connect(host.now, to, &ConnectOptions::default()).expect("there is room");
    }
    host.peer = OTHER;
    host.say(2000, (0, Seq(0)), Flags::SYN, 60_000, &[]);
    assert_eq!(host.endpoint.drops(DropReason::TableFull), 1);
    let mut host = full_of(THEIRS);
    let to = SocketAddr::new(OTHER, 80);
    host.endpoint.connect(host.now, to, &ConnectOptions::default()).expect("a peer with eight makes room");
    host.send();
    assert_eq!(host.resets(), [1000]);
}

#[test]
fn where_handshakes_fill_the_table_an_overdue_one_makes_room_for_a_proven_peer() {
    let mut host = Host::new(bounds());
    host.endpoint.config.most_connections = 4;
    for last in 10..14 {
        host.peer = IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        host.say(2000, (0, Seq(0)), Flags::SYN, 60_000, &[]);
    }
    host.peer = THEIRS;
    host.say(1000, (0, Seq(0)), Flags::SYN, 60_000, &[]);
    assert_eq!(host.endpoint.drops(DropReason::TableFull), 1, "they may still be answered");
    host.wait(Duration::from_secs(3));
    host.open(1000, 60_000);
    assert_eq!((host.endpoint.gave_way(Scarce::Handshakes), host.resets()), (1, vec![]));
}

/// A program that does not look at what gave way keeps no others out, and lets the table grow by a quarter.
#[test]
fn connections_that_are_over_take_no_room_and_are_bounded_all_the_same() {
    let mut host = full_of(THEIRS);
    let mut come = 0;
    for last in 3..20 {
        host.peer = IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        host.say(2000, (0, Seq(0)), Flags::SYN, 60_000, &[]);
        let ours = host.left.iter().rfind(|(to, ..)| *to == 2000).expect("a SYN-ACK").1 + 1;
        host.say(2000, (1, ours), Flags::ACK, 60_000, &[]);
        come += usize::from(host.endpoint.accept(host.now, host.listener).is_some());
        host.check();
    }
    assert_eq!((come, host.endpoint.connections(), host.endpoint.holds().connections), (2, 10, 8));
}

/// Without it the peer would send its FIN again, and get a RST.
#[test]
fn a_time_wait_is_not_forgotten_before_its_ack_has_left() {
    let mut host = Host::new(Bounds { time_waits: 0, ..bounds() });
    let (id, _) = host.open(1000, 60_000);
    host.close(id);
    let fin = host.left.last().expect("a FIN").1 + 1;
    host.left.clear();
    host.say(1000, (1, fin), Flags::ACK | Flags::FIN, 60_000, &[]);
    host.check();
    assert_eq!(host.left, [(1000, fin, Flags::ACK, 0)]);
    assert_eq!((host.endpoint.connections(), host.endpoint.gave_way(Scarce::TimeWaits)), (0, 1));
}
