//! Buffers of several sources, and the bounds of what comes before a connection.

use super::*;

/// It does so although another source's data has stood still for longer, and although its own moves.
#[test]
fn where_buffers_are_spent_the_source_that_holds_the_most_gives_way_first() {
    for moves in [false, true] {
        let mut host = Host::new(Bounds { buffer_bytes: 1 << 20, ..bounds() });
        host.peer = OTHER;
        let (quiet, _) = host.open(900, 0);
        assert_eq!(host.write(quiet, 64 << 10), 64 << 10);
        host.peer = THEIRS;
        let mut greedy = Vec::new();
        for port in 1000..1012 {
            let (id, ours) = host.open(port, 0);
            assert_eq!(host.write(id, 64 << 10), 64 << 10);
            greedy.push((port, ours));
        }
        for nth in 0..5 {
            host.wait(Duration::from_secs(2));
            for (port, ours) in greedy.iter().filter(|_| moves) {
                host.say(*port, (1 + nth * 10, *ours), Flags::ACK, 0, &[5; 10]);
            }
        }
        host.peer = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 4));
        for port in 2000..2004 {
            let (id, _) = host.open(port, 0);
            host.write(id, 64 << 10);
            host.check();
        }
        let gone = host.resets();
        assert!(gone.starts_with(&[1000]) && !gone.contains(&900), "{moves}: {gone:?}");
        assert!(matches!(host.endpoint.state(quiet), Some((_, None))), "it stays");
    }
}

/// The peer proves its address first: anybody may forge a SYN.
#[test]
fn where_memory_is_overdrawn_a_new_source_gets_some_of_the_source_that_holds_the_most() {
    let mut host = Host::new(Bounds { buffer_bytes: 256 << 10, ..bounds() });
    let mut port = 1000;
    while let Some((id, _)) = host.open_unless_refused(port, 0) {
        host.write(id, 64 << 10);
        port += 1;
    }
    for last in 5..100 {
        host.peer = IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        host.say(2000, (0, Seq(0)), Flags::SYN, 60_000, &[]);
    }
    assert_eq!((host.endpoint.gave_way(Scarce::BufferBytes), host.resets()), (0, vec![]));
    host.peer = OTHER;
    let (id, _) = host.open_unless_refused(900, 60_000).expect("there is some for it");
    assert_eq!(host.endpoint.gave_way(Scarce::BufferBytes), 1);
    assert!(host.resets().iter().all(|port| *port >= 1000), "of the source that holds the most");
    assert!(host.write(id, 1000) > 0);
    host.check();
    host.peer = THEIRS;
    while let Some((id, _)) = host.open_unless_refused(port, 0) {
        host.write(id, 64 << 10);
        port += 1;
    }
    assert_eq!(host.endpoint.gave_way(Scarce::BufferBytes), 1, "it gets no more than was free");
}

#[test]
fn handshakes_and_fragments_are_held_within_their_bounds() {
    let mut host = Host::with(bounds(), ListenOptions { half_open: 3, ..ListenOptions::default() });
    (1000..1002).for_each(|port| host.say(port, (0, Seq(0)), Flags::SYN, 60_000, &[]));
    let mut fragment = Vec::new();
    IpHeader::plain(THEIRS, OURS, protocol::UDP).emit(8, &mut fragment);
    fragment[6] = 0x20;
    fragment[10..12].fill(0);
    let sum = crate::wire::Sum::default().add(&fragment).finish();
    fragment[10..12].copy_from_slice(&sum.to_be_bytes());
    fragment.extend([0; 8]);
    host.endpoint.handle_packet(host.now, &Rx::new(LinkId(0), &fragment));
    let (held, most) = (host.endpoint.holds(), host.endpoint.may_hold());
    assert_eq!((held.handshakes, most.handshakes), (2, 3));
    assert_eq!((held.fragments, most.fragments), (1, 256));
    assert!((8..1000).contains(&held.fragment_bytes) && most.fragment_bytes == 1 << 20);
}

/// Both nodes of a pair are one peer for each other: their programs tell the hosts. Hosts of one network of 64 bits are
/// one source.
#[test]
fn of_the_hosts_behind_a_peer_the_one_that_holds_the_most_gives_way_first() {
    for hosts in [["10.1.0.9", "10.1.0.8"], ["fd01::9", "fd01::8"]] {
        let [slow, greedy] = hosts.map(|host| host.parse().expect("an address"));
        let mut host = Host::new(Bounds { buffer_bytes: 1 << 20, ..bounds() });
        let (quiet, _) = host.open(900, 0);
        host.endpoint.count_as(quiet, slow);
        assert_eq!(host.write(quiet, 64 << 10), 64 << 10);
        host.wait(Duration::from_secs(10));
        for port in 1000..1018 {
            let (id, _) = host.open(port, 0);
            // Some are told before shares are counted, and some after that.
            host.endpoint.count_as(id, greedy);
            host.write(id, 64 << 10);
            host.check();
        }
        let gone = host.resets();
        assert!(gone.starts_with(&[1000]) && !gone.contains(&900), "{gone:?}");
        assert!(matches!(host.endpoint.state(quiet), Some((_, None))), "it stays");
    }
}
