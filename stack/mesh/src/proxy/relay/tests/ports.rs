//! SYNs on ports of an existing connection: forged, or because a host uses its port again.

use hopwise_core::wire::Timestamps;

use super::*;

/// Addresses and ports can be guessed, and a SYN needs no number (RFC 5961 §4).
fn forge(path: &mut Path, [from, to]: [SocketAddr; 2], link: LinkId) {
    for nth in 1..=10u32 {
        let numbers = (nth.wrapping_mul(0x9e37_79b9), 0);
        let syn = packet(from, to, numbers, Flags::SYN, &TcpOptions::default(), &[]);
        path.proxy.handle_packet(path.now, &Rx::new(link, &syn));
        path.settle();
    }
}

/// Forges SYNs in the name of either end.
fn forge_both(path: &mut Path, [fixed, mobile]: [SocketAddr; 2]) {
    forge(path, [fixed, mobile], FIXED);
    forge(path, [mobile, fixed], MOBILE);
}

fn ends_of(path: &Path, ours: ConnId) -> [SocketAddr; 2] {
    let flow = path.ends[0].info(path.now, ours).expect("it lives").flow;
    [flow.local, flow.remote]
}

#[test]
fn a_blind_syn_in_the_name_of_either_end_ends_no_connection() {
    let mut path = Path::v4();
    let (ours, theirs) = path.connected();
    let ends = ends_of(&path, ours);
    forge_both(&mut path, ends);
    let data = bytes(5_000);
    assert_eq!(path.ends[0].send(path.now, ours, &data), Ok(data.len()));
    path.pass(Duration::from_secs(1));
    assert_eq!(path.read_all(1, theirs), data);
    assert_eq!([path.closed(0), path.closed(1)], [None, None]);
}

/// The receiver has closed its direction, so that one half is over once the sender has sent all.
#[test]
fn a_blind_syn_loses_nothing_that_was_acknowledged_and_is_still_on_its_way() {
    let mut path = Path::v4();
    let (ours, theirs) = path.connected();
    let ends = ends_of(&path, ours);
    path.ends[1].shutdown(path.now, theirs).expect("it is open");
    path.pass(Duration::from_millis(100));
    path.is_faded = true;
    let data = bytes(15_000);
    assert_eq!(path.ends[0].send(path.now, ours, &data), Ok(data.len()));
    path.ends[0].shutdown(path.now, ours).expect("it is open");
    path.pass(Duration::from_secs(1));
    assert_eq!(path.closed(0), Some(CloseReason::Finished), "all of it is acknowledged");
    forge_both(&mut path, ends);
    path.pass(Duration::from_secs(100));
    forge_both(&mut path, ends);
    path.is_faded = false;
    path.pass(Duration::from_secs(60));
    assert_eq!(path.read_all(1, theirs), data);
    path.pass(Duration::from_secs(100));
    assert_eq!(path.closed(1), Some(CloseReason::Finished));
    assert_eq!(path.proxy.counts().flows, 0);
}

#[test]
fn a_stream_of_blind_syns_keeps_no_connection_from_opening() {
    let mut path = Path::v4();
    let listener = path.listen(1);
    path.is_faded = true;
    let ours = path.connect(0);
    path.settle();
    let ends = ends_of(&path, ours);
    for nth in 0..100 {
        path.is_faded = nth < 50;
        path.pass(Duration::from_millis(100));
        forge_both(&mut path, ends);
    }
    let theirs = path.ends[1].accept(path.now, listener).expect("it has come");
    let data = bytes(5_000);
    assert_eq!(path.ends[0].send(path.now, ours, &data), Ok(data.len()));
    path.pass(Duration::from_secs(1));
    assert_eq!(path.read_all(1, theirs), data);
}

/// The fixed end has lost its state, and uses the port again.
fn use_again(path: &mut Path, [fixed, mobile]: [SocketAddr; 2]) -> ConnId {
    path.ends[0] = end(1, fixed.ip());
    let options = ConnectOptions { local_port: Some(fixed.port()), ..ConnectOptions::default() };
    path.ends[0].connect(path.now, mobile, &options).expect("a free port")
}

/// The mobile accepts the connection and gets its data.
fn check_that_it_carries(path: &mut Path, listener: ListenerId, ours: ConnId) {
    let theirs = path.ends[1].accept(path.now, listener).expect("it has come");
    path.ends[0].send(path.now, ours, b"hello").expect("it is open");
    path.pass(Duration::from_secs(1));
    assert_eq!(path.read_all(1, theirs), b"hello");
}

/// The half-open connection is discovered by a challenge, and a RST answers it (RFC 9293 §3.5.1).
#[test]
fn a_host_that_has_crashed_opens_the_same_ports_again() {
    let mut path = Path::v4();
    let listener = path.listen(1);
    let ours = path.connect(0);
    path.pass(Duration::from_secs(1));
    let ends = ends_of(&path, ours);
    let before = path.ends[1].accept(path.now, listener).expect("it has come");
    let ours = use_again(&mut path, ends);
    path.pass(Duration::from_secs(10));
    assert_eq!(path.closed(1), Some(CloseReason::Reset));
    assert!(path.ends[1].send(path.now, before, b"late").is_err());
    check_that_it_carries(&mut path, listener, ours);
}

#[test]
fn ports_are_used_again_as_soon_as_all_of_the_connection_before_has_arrived() {
    let mut path = Path::v4();
    let listener = path.listen(1);
    let ours = path.connect(0);
    path.pass(Duration::from_secs(1));
    let ends = ends_of(&path, ours);
    let before = path.ends[1].accept(path.now, listener).expect("it has come");
    path.ends[1].shutdown(path.now, before).expect("it is open");
    path.pass(Duration::from_millis(100));
    path.is_faded = true;
    let data = bytes(15_000);
    assert_eq!(path.ends[0].send(path.now, ours, &data), Ok(data.len()));
    path.ends[0].close(path.now, ours).expect("it is open");
    path.pass(Duration::from_secs(1));
    let ours = use_again(&mut path, ends);
    path.pass(Duration::from_secs(5));
    assert!(path.ends[0].state(ours).is_some_and(|(_, why)| why.is_none()), "it waits");
    path.is_faded = false;
    path.pass(Duration::from_secs(30));
    assert_eq!(path.read_all(1, before), data);
    check_that_it_carries(&mut path, listener, ours);
}

/// RFC 6191 §2.
#[test]
fn a_connection_in_time_wait_gives_way_to_a_syn_that_is_no_old_one() {
    let mut path = Path::v4();
    let listener = path.listen(1);
    let (ours, mut syn) = (path.connect(0), Vec::new());
    path.ends[0].poll_transmit(path.now, LINK, Payload::Inline, &mut syn).expect("a SYN");
    path.proxy.handle_packet(path.now, &Rx::new(FIXED, &syn));
    path.pass(Duration::from_secs(1));
    let ends = ends_of(&path, ours);
    let before = path.ends[1].accept(path.now, listener).expect("it has come");
    for (side, conn) in [(1, before), (0, ours)] {
        path.ends[side].close(path.now, conn).expect("it is open");
        path.pass(Duration::from_secs(1));
    }
    let key = FlowKey { mobile: ends[1], fixed: ends[0] };
    let opened = |path: &Path| path.proxy.relays.get(&key).map(|relay| relay.opened);
    let (_, first) = parse(&syn).expect("a SYN");
    assert_eq!(opened(&path), Some(first.seq), "a half of it is in TIME-WAIT");
    for nth in 1..=10 {
        let seq = first.seq.0.wrapping_add(nth << 28);
        let timestamps = first.options.timestamps.map(|told| Timestamps { value: told.value - 1, ..told });
        let old = TcpOptions { timestamps, ..TcpOptions::default() };
        let old = packet(ends[0], ends[1], (seq, 0), Flags::SYN, &old, &[]);
        path.proxy.handle_packet(path.now, &Rx::new(FIXED, &old));
    }
    assert_eq!(opened(&path), Some(first.seq));
    use_again(&mut path, ends);
    path.pass(Duration::from_secs(1));
    assert!(opened(&path).is_some_and(|seq| seq != first.seq));
    assert!(path.ends[1].accept(path.now, listener).is_some());
}

/// The program gives up during a fade, and its host answers the late SYN-ACK by a RST.
#[test]
fn an_opener_that_has_given_up_finds_its_ports_free() {
    let mut path = Path::v4();
    let listener = path.listen(1);
    path.is_faded = true;
    let ours = path.connect(0);
    path.settle();
    let ends = ends_of(&path, ours);
    path.ends[0].abort(path.now, ours).expect("it is opening");
    path.is_faded = false;
    path.pass(Duration::from_secs(10));
    let ours = use_again(&mut path, ends);
    path.pass(Duration::from_secs(10));
    path.ends[0].send(path.now, ours, b"hello").expect("it is open");
    path.pass(Duration::from_secs(1));
    let came = std::iter::from_fn(|| path.ends[1].accept(path.now, listener)).collect::<Vec<_>>();
    let read = came.into_iter().map(|theirs| path.read_all(1, theirs)).collect::<Vec<_>>().concat();
    assert_eq!(read, b"hello");
}

const CALLER: u16 = 40_000;

/// The ends of a connection that the second end opens, when it does.
fn called(path: &Path) -> [SocketAddr; 2] {
    let [fixed, mobile] = path.addresses;
    [SocketAddr::new(fixed, PORT), SocketAddr::new(mobile, CALLER)]
}

fn syn_of([from, to]: [SocketAddr; 2], number: u32) -> Vec<u8> {
    packet(from, to, (number, 0), Flags::SYN, &TcpOptions::default(), &[])
}

/// A host that nobody hears has its ports taken by SYNs that are forged in a server's name.
#[test]
fn forged_syns_of_a_server_lock_no_mobile_out_of_it() {
    for (forges_before, forges_after) in [(true, false), (false, true), (true, true)] {
        let mut path = Path::v4();
        let listener = path.listen(0);
        let ends = called(&path);
        path.is_faded = true;
        if forges_before {
            forge(&mut path, ends, FIXED);
        }
        path.pass(Duration::from_secs(1));
        path.is_faded = false;
        let options = ConnectOptions { local_port: Some(CALLER), ..ConnectOptions::default() };
        let ours = path.ends[1].connect(path.now, ends[0], &options).expect("a free port");
        let mut syn = Vec::new();
        path.ends[1].poll_transmit(path.now, LINK, Payload::Inline, &mut syn).expect("a SYN");
        path.proxy.handle_packet(path.now, &Rx::new(MOBILE, &syn));
        // Before the server has answered.
        if forges_after {
            forge(&mut path, ends, FIXED);
        }
        path.pass(Duration::from_secs(5));
        let theirs = path.ends[0].accept(path.now, listener).expect("it has come");
        let data = bytes(5_000);
        assert_eq!(path.ends[1].send(path.now, ours, &data), Ok(data.len()));
        path.pass(Duration::from_secs(1));
        assert_eq!(path.read_all(0, theirs), data, "{forges_before} {forges_after}");
        assert_eq!(path.proxy.counts().cut, 1);
    }
}

/// The packets for the mobile.
fn to_mobile(path: &mut Path) -> usize {
    let (mut count, mut packet) = (0, Vec::new());
    while path.proxy.poll_transmit(path.now, MOBILE, Payload::Inline, &mut packet).is_some() {
        (count, packet) = (count + 1, Vec::new());
    }
    count
}

#[test]
fn a_mobile_gets_as_many_syns_as_came() {
    let mut path = Path::v4();
    let ends = called(&path);
    let mut left = Vec::new();
    for second in 0..100 {
        if [0, 1, 3, 7].contains(&second) {
            path.proxy.handle_packet(path.now, &Rx::new(FIXED, &syn_of(ends, 7)));
        }
        if to_mobile(&mut path) > 0 {
            left.push(second);
        }
        path.now += Duration::from_secs(1);
        path.proxy.handle_timeout(path.now);
    }
    assert_eq!(left, [0, 1, 3, 7]);
}

#[test]
fn an_opener_that_falls_silent_is_forgotten_when_another_comes() {
    for is_answered in [false, true] {
        let mut path = Path::v4();
        if is_answered {
            path.listen(1);
        }
        let [opener, mobile] = called(&path);
        let to = SocketAddr::new(mobile.ip(), PORT);
        let count = |path: &mut Path, after: u64, port: u16| {
            path.now += Duration::from_secs(after);
            path.proxy.handle_timeout(path.now);
            let from = SocketAddr::new(opener.ip(), port);
            path.proxy.handle_packet(path.now, &Rx::new(FIXED, &syn_of([from, to], 7)));
            to_mobile_and_back(path, is_answered);
            path.proxy.counts().brief
        };
        assert_eq!([count(&mut path, 0, 1), count(&mut path, 9, 2), count(&mut path, 2, 3)], [1, 2, 2]);
    }
}

/// Carries packets between the proxy and the mobile alone.
fn to_mobile_and_back(path: &mut Path, is_heard: bool) {
    let Path { now, proxy, ends, .. } = path;
    let mut packet = Vec::new();
    while proxy.poll_transmit(*now, MOBILE, Payload::Inline, &mut packet).is_some() {
        if is_heard {
            ends[1].handle_packet(*now, &Rx::new(LINK, &packet));
        }
        packet.clear();
    }
    while ends[1].poll_transmit(*now, LINK, Payload::Inline, &mut packet).is_some() {
        proxy.handle_packet(*now, &Rx::new(MOBILE, &packet));
        packet.clear();
    }
}
