//! Mobiles that need more of the table than there is.

use super::*;

/// The ends of another path through the proxy.
struct Other {
    fixed: SocketAddr,
    mobile: SocketAddr,
}

impl Other {
    fn new(last: u8, port: u16) -> Other {
        let end = |last, port| SocketAddr::from(([10, 0, 0, last], port));
        Other { fixed: end(1, 5001), mobile: end(last, port) }
    }

    fn says(&self, from: Side, flags: Flags) -> Vec<u8> {
        let (src, dst) =
            if from == Side::Fixed { (self.fixed, self.mobile) } else { (self.mobile, self.fixed) };
        let options = TcpOptions {
            timestamps: Some(Timestamps { value: 1, echo: 1 }),
            mss: flags.contains(Flags::SYN).then_some(1460),
            ..TcpOptions::default()
        };
        // An answer acknowledges the SYN.
        let ack = if flags.contains(Flags::SYN) { 2 } else { 1 };
        packet(src, dst, (1, ack), flags, &options, &[])
    }

    /// A connection that both ends know of.
    fn open(&self, path: &mut Path, now: Instant) {
        for (from, flags) in [(Side::Mobile, Flags::SYN), (Side::Fixed, Flags::SYN | Flags::ACK)] {
            let packet = self.says(from, flags);
            assert_eq!(path.carry(now, from, &packet), [(from.other(), packet)]);
        }
    }

    /// Bare ACKs of no connection, each from another port.
    fn flood(last: u8, ports: std::ops::Range<u16>, path: &mut Path, now: Instant) {
        for port in ports {
            let ack = Other::new(last, port).says(Side::Mobile, Flags::ACK);
            assert_eq!(path.carry(now, Side::Mobile, &ack), [(Side::Fixed, ack)]);
        }
    }
}

fn is_served(path: &mut Path, now: Instant) -> bool {
    path.gone(now);
    let data = path.data(1);
    path.carry(now, Side::Fixed, &data).is_empty()
}

#[test]
fn acks_of_no_connection_keep_no_other_mobile_from_being_served() {
    let mut path = Path::new("ack-hold:mode=kick");
    Other::flood(9, 1_000..11_050, &mut path, ms(0));
    assert!(path.proxy.counts().flows <= 10_000);
    path.syns(ms(1));
    Other::flood(9, 11_050..21_100, &mut path, ms(2));
    let ack = path.ack(1);
    path.carry(ms(3), Side::Mobile, &ack);
    assert!(is_served(&mut path, ms(4)));
}

#[test]
fn a_flow_of_one_side_alone_gives_way_to_any_other_and_the_oldest_goes_first() {
    let mut path = Path::with("ack-hold:mode=kick", |config| config.most_flows = 2);
    Other::flood(9, 1..6, &mut path, ms(0));
    let counts = path.proxy.counts();
    assert_eq!((counts.flows, counts.brief, counts.gave_way, counts.untouched), (2, 2, 3, 0));
    path.syns(ms(1));
    let counts = path.proxy.counts();
    assert_eq!((counts.flows, counts.brief, counts.gave_way), (2, 1, 4));
    assert!(path.proxy.flows.contains_key(&FlowKey { mobile: path.mobile, fixed: path.fixed }));
    // The oldest went: only the last of the flood remains.
    let last = Other::new(9, 5);
    assert!(path.proxy.flows.contains_key(&FlowKey { mobile: last.mobile, fixed: last.fixed }));
    // The rest comes one after the other, each answered by a reset, which makes no entry last.
    for port in 6..9 {
        let other = Other::new(9, port);
        for (from, flags) in [(Side::Mobile, Flags::ACK), (Side::Fixed, Flags::RST)] {
            let packet = other.says(from, flags);
            path.carry(ms(2), from, &packet);
        }
        assert_eq!(path.proxy.counts().brief, 1);
    }
    assert!(is_served(&mut path, ms(3)));
}

#[test]
fn a_flow_of_one_side_alone_is_forgotten_after_seconds_but_for_what_waits_of_it() {
    let mut path = Path::new("ack-hold:mode=kick");
    Other::flood(9, 1..101, &mut path, ms(0));
    path.gone(ms(0));
    let data = path.data(1);
    // The first packet of it that a proxy sees, after a start in a fade.
    assert!(path.carry(ms(1), Side::Fixed, &data).is_empty());
    assert_eq!(path.proxy.counts().brief, 101);
    Other::flood(8, 1..2, &mut path, ms(20_000));
    let counts = path.proxy.counts();
    assert_eq!((counts.flows, counts.brief, counts.gave_way), (2, 2, 0));
    assert!(path.up(ms(20_001)).contains(&(Side::Mobile, data)));
}

#[test]
fn a_mobile_that_fills_the_table_with_connections_gives_way_until_all_have_the_same() {
    let mut path = Path::with("ack-hold:mode=kick", |config| config.most_flows = 8);
    for port in 1..11 {
        Other::new(9, port).open(&mut path, ms(u64::from(port)));
    }
    let counts = path.proxy.counts();
    assert_eq!((counts.flows, counts.brief, counts.gave_way), (8, 0, 0));
    for port in 1..11 {
        Other::new(7, port).open(&mut path, ms(100 + u64::from(port)));
    }
    let of = |path: &Path, last| {
        let mobile = IpAddr::from([10, 0, 0, last]);
        path.proxy.flows.keys().filter(|key| key.mobile.ip() == mobile).count()
    };
    assert_eq!((of(&path, 9), of(&path, 7), path.proxy.counts().gave_way), (4, 4, 4));
    // The flows that were silent for longest went.
    let newest = Other::new(9, 8);
    assert!(path.proxy.flows.contains_key(&FlowKey { mobile: newest.mobile, fixed: newest.fixed }));
    path.syns(ms(200));
    assert_eq!((of(&path, 9), of(&path, 7)), (3, 4), "a third has its share too");
    assert!(is_served(&mut path, ms(201)));
}

#[test]
fn a_flow_that_cannot_be_served_holds_no_lasting_entry() {
    let mut path = Path::with("ack-hold:mode=kick", |config| config.most_flows = 1);
    path.has_timestamps = false;
    path.syns(ms(0));
    let counts = path.proxy.counts();
    assert_eq!((counts.flows, counts.brief, counts.unserved), (1, 1, 1));
    let other = Other::new(9, 1);
    other.open(&mut path, ms(1));
    let counts = path.proxy.counts();
    assert_eq!((counts.flows, counts.brief, counts.gave_way), (1, 0, 1));
}

#[test]
fn addresses_of_one_network_of_64_bits_have_one_share_and_each_of_them_has_its_own_of_it() {
    let mut path = Path::with("ack-hold:mode=kick", |config| config.most_flows = 8);
    let end = |text: &str, port| SocketAddr::new(text.parse().expect("an address"), port);
    let fixed = end("fd01::1", 5_001);
    let of = |path: &Path, prefix: &str| {
        path.proxy.flows.keys().filter(|key| key.mobile.ip().to_string().starts_with(prefix)).count()
    };
    for nth in 1..9 {
        let mobile = end(&format!("fd00:0:0:a::{nth}"), 40_000);
        Other { fixed, mobile }.open(&mut path, ms(nth));
    }
    for port in 0..8 {
        Other { fixed, mobile: end("fd00:0:0:b::1", 40_000 + port) }.open(&mut path, ms(100));
    }
    assert_eq!([of(&path, "fd00:0:0:a:"), of(&path, "fd00:0:0:b:")], [4, 4]);
    // Another host of that network has its share of the network's part.
    Other { fixed, mobile: end("fd00:0:0:b::2", 40_000) }.open(&mut path, ms(200));
    assert_eq!(["fd00:0:0:a:", "fd00:0:0:b::1", "fd00:0:0:b::2"].map(|of_it| of(&path, of_it)), [4, 3, 1]);
}

proptest::proptest! {
    #[test]
    fn the_table_and_its_seats_agree_whatever_comes(
        packets in proptest::collection::vec((1u8..6, 1u16..5, 0u8..6, 0u64..4_000), 1..200),
        is_cut in proptest::bool::ANY,
    ) {
        let agent = if is_cut { "split" } else { "ack-hold:mode=kick" };
        let mut paths = [0, 1].map(|_| Path::with(agent, |config| config.most_flows = 4));
        let mut now = ms(0);
        for (last, port, what, pause) in packets {
            now += Duration::from_millis(pause);
            let (from, flags) = [
                (Side::Mobile, Flags::SYN),
                (Side::Fixed, Flags::SYN | Flags::ACK),
                (Side::Mobile, Flags::ACK),
                (Side::Fixed, Flags::ACK),
                (Side::Fixed, Flags::RST),
                (Side::Mobile, Flags::FIN | Flags::ACK),
            ][usize::from(what)];
            let packet = Other::new(last + 1, port).says(from, flags);
            let left = paths.each_mut().map(|path| path.carry(now, from, &packet));
            proptest::prop_assert_eq!(&left[0], &left[1]);
            let counts = paths.each_ref().map(|path| path.proxy.counts());
            proptest::prop_assert_eq!(counts[0], counts[1]);
            let proxy = &paths[0].proxy;
            let brief = proxy.flows.values().filter(|flow| flow.entry != entries::ProxyEntry::Lasting).count();
            let kept = proxy.flows.values().map(ProxyFlow::kept_bytes).sum();
            proptest::prop_assert!(proxy.flows.keys().all(|key| proxy.relays.get(key).is_none()));
            let brief = brief + proxy.relays.check(&proxy.entries, kept);
            proptest::prop_assert_eq!(brief, proxy.entries.brief());
            proptest::prop_assert!(proxy.entries.brief_flows().count() <= brief);
            proptest::prop_assert!(counts[0].flows <= 4 && (is_cut || counts[0].cut == 0));
        }
    }
}
