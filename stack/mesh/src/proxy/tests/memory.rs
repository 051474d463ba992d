//! Mobiles whose packets need more memory than there is.

use super::*;

const MOST: usize = 40_000;

impl Path {
    /// Switches the path to another mobile; each has its own connection for each port.
    fn become_mobile(&mut self, last: u8, port: u16) {
        self.mobile = SocketAddr::from(([10, 0, 0, last], port));
    }

    fn key(&self) -> FlowKey {
        FlowKey { mobile: self.mobile, fixed: self.fixed }
    }

    /// A connection whose mobile has acknowledged all before the first segment.
    fn open(&mut self, now: Instant) {
        self.syns(now);
        let ack = self.ack(1);
        self.carry(now, Side::Mobile, &ack);
    }

    /// Sends these segments from the fixed end; returns the packets that left, of all flows.
    fn fill(&mut self, now: Instant, segments: std::ops::Range<u32>) -> Vec<(Side, Vec<u8>)> {
        let mut left = Vec::new();
        for nth in segments {
            let data = self.data(nth);
            left.extend(self.carry(now, Side::Fixed, &data));
            assert!(self.proxy.counts().kept_bytes <= MOST);
        }
        left
    }

    fn kept(&self) -> usize {
        self.proxy.flows.get(&self.key()).map_or(0, ProxyFlow::kept_packets)
    }
}

/// Tiny segments cannot fill a list that takes long to search.
#[test]
fn a_flow_keeps_no_more_packets_than_a_bound_however_small_they_are() {
    let mut path = Path::new("ack-hold:mode=kick");
    path.open(ms(0));
    path.gone(ms(1));
    for seq in 0..10_000 {
        let tiny = path.segment(Side::Fixed, 1_000 + seq, 1, Flags::ACK, 1);
        path.carry(ms(2), Side::Fixed, &tiny);
    }
    assert_eq!(path.kept(), 8_192);
    assert_eq!(path.proxy.counts().overflows, 1);
}

fn path(agent: &str) -> Path {
    Path::with(agent, |config| config.most_kept_bytes = MOST)
}

/// The mobile 9 has three connections, and data for them in a fade takes all of the memory.
fn crowded() -> Path {
    let mut path = path("ack-hold:mode=kick");
    for (port, segments) in [(1, 1..11), (2, 1..21), (3, 1..11)] {
        path.become_mobile(9, port);
        path.open(ms(0));
        path.gone(ms(1));
        path.fill(ms(2), segments);
    }
    assert!(path.proxy.counts().kept_bytes > MOST - 2_000);
    path
}

#[test]
fn packets_of_the_mobile_with_the_most_make_room_for_those_of_another() {
    let mut path = crowded();
    path.become_mobile(7, 1);
    path.open(ms(3));
    path.gone(ms(3));
    let left = path.fill(ms(4), 1..4);
    assert_eq!(path.kept(), 3);
    // Only the packets of its largest connection went on.
    let count = path.proxy.counts();
    assert_eq!((count.overflows, count.pushed_out as usize), (2, left.len()), "one found no room before");
    assert_eq!(left.len(), 20);
    let kept = [(9, 1), (9, 2), (9, 3)].map(|(last, port)| {
        path.become_mobile(last, port);
        path.kept()
    });
    assert!(kept[0] == 10 && kept[1] == 0 && kept[2] > 0, "{kept:?}");
}

#[test]
fn a_mobile_with_less_than_its_share_loses_nothing_to_one_that_wants_more() {
    let mut path = crowded();
    path.become_mobile(7, 1);
    path.open(ms(3));
    path.gone(ms(3));
    path.fill(ms(4), 1..9);
    let modest = path.kept();
    for port in 4..20 {
        path.become_mobile(9, port);
        path.open(ms(5));
        path.gone(ms(5));
        path.fill(ms(6), 1..11);
    }
    path.become_mobile(7, 1);
    assert_eq!((modest, path.kept()), (8, 8));
    let up = path.up(ms(7)).into_iter().filter(|(to, _)| *to == Side::Mobile);
    assert_eq!(up.count(), 8);
}

#[test]
fn addresses_of_one_network_of_64_bits_have_one_share_of_the_memory() {
    let mut path = path("ack-hold:mode=kick");
    let end = |text: &str| SocketAddr::new(text.parse().expect("an address"), 5_001);
    path.fixed = end("fd01::1");
    let mut fill = |mobile: &str, segments| {
        path.mobile = end(mobile);
        path.open(ms(0));
        path.gone(ms(1));
        path.fill(ms(2), segments);
        path.kept()
    };
    for nth in 1..21 {
        fill(&format!("fd00:0:0:a::{nth}"), 1..3);
    }
    assert_eq!(fill("fd00:0:0:b::1", 1..11), 10);
    // Another host of a network above its share has its own part of that share.
    assert_eq!(fill("fd00:0:0:a::99", 1..2), 1);
}

/// A mobile without a connection has no share, whatever addresses a stranger invents.
#[test]
fn packets_for_mobiles_that_may_be_made_up_push_none_of_a_connection_out() {
    let mut path = path("snoop");
    path.become_mobile(7, 1);
    path.open(ms(0));
    path.fill(ms(1), 1..9);
    assert_eq!(path.kept(), 8);
    for last in 10..60 {
        path.become_mobile(last, 1);
        path.fill(ms(2), 1..4);
    }
    assert!(path.proxy.counts().kept_bytes > MOST - 2_000);
    path.become_mobile(7, 1);
    assert_eq!(path.kept(), 8);
}

#[test]
fn copies_that_make_room_are_not_sent_again() {
    let mut path = path("snoop");
    path.become_mobile(9, 1);
    path.open(ms(0));
    let left = path.fill(ms(1), 1..60);
    assert_eq!(left.len(), 59);
    path.become_mobile(7, 1);
    path.open(ms(2));
    assert_eq!(path.fill(ms(3), 1..4).len(), 3);
    assert_eq!(path.kept(), 3);
    let counts = path.proxy.counts();
    assert!(counts.pushed_out > 30 && counts.kept_packets == 3, "{counts:?}");
}

#[test]
fn mobiles_that_hold_the_same_keep_what_they_have_where_none_has_more_than_it_wants() {
    let mut path = path("ack-hold:mode=kick");
    for last in [7, 8, 9] {
        path.become_mobile(last, 1);
        path.open(ms(0));
        path.gone(ms(1));
    }
    for nth in 1..30 {
        for last in [7, 8, 9] {
            path.become_mobile(last, 1);
            path.fill(ms(2), nth..nth + 1);
        }
    }
    let kept = [7, 8, 9].map(|last| {
        path.become_mobile(last, 1);
        path.kept()
    });
    assert!(kept.iter().all(|kept| *kept >= 11), "{kept:?}");
    assert_eq!(path.proxy.counts().pushed_out, 0);
}

#[test]
fn packets_of_a_fade_beyond_those_that_may_wait_for_a_link_are_counted() {
    let mut path = Path::with("ack-hold:mode=kick", |config| config.most_queued = 10);
    path.syns(ms(0));
    let (data, ack) = (path.data(1), path.ack(2));
    path.carry(ms(1), Side::Fixed, &data);
    path.carry(ms(2), Side::Mobile, &ack);
    path.gone(ms(3));
    for nth in 2..32 {
        let data = path.data(nth);
        assert!(path.carry(ms(4), Side::Fixed, &data).is_empty());
    }
    assert_eq!((path.proxy.counts().kept_packets, path.proxy.counts().no_room), (30, 0));
    let left = path.tell(ms(5), &LinkEvent::Up { peer: path.mobile.ip() });
    assert_eq!(left.iter().filter(|(to, _)| *to == Side::Mobile).count(), 10);
    assert_eq!(path.proxy.counts().no_room, 20);
}
