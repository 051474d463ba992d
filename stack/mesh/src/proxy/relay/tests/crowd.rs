//! Flows that need more of the table or of its memory than there is.

use std::net::IpAddr;

use hopwise_core::LinkEvent;
use hopwise_core::wire::Timestamps;

use super::super::super::relays::MOST_DUE;
use super::super::super::{ProxyCounts, ProxyRule};
use super::*;

const KEPT: usize = 1 << 20;
/// The fixed end, and the first of two mobiles.
const TWO: [&str; 2] = ["10.0.0.1", "10.0.0.2"];

impl Path {
    /// Opens `flows` connections from the fixed end, to the mobile or to its neighbour. Each was accepted.
    fn open(&mut self, listener: ListenerId, flows: usize, beside: u8) -> Vec<(ConnId, ConnId)> {
        let mobile = SocketAddr::from(([10, 0, 0, 2 + beside], PORT));
        let open = |_| {
            let ours = self.ends[0].connect(self.now, mobile, &ConnectOptions::default());
            let ours = ours.expect("a connection");
            self.pass(Duration::from_millis(10));
            (ours, self.ends[1].accept(self.now, listener).expect("it has come"))
        };
        (0..flows).map(open).collect()
    }

    /// The fixed end sends on each flow, and no mobile reads.
    fn fill(&mut self, flows: &[(ConnId, ConnId)]) {
        for (ours, _) in flows {
            // A flow that gave way takes no data.
            let _ = self.ends[0].send(self.now, *ours, &bytes(60_000));
            self.pass(Duration::from_millis(10));
            let counts = self.counts();
            assert!(counts.kept_bytes <= KEPT, "{counts:?}");
        }
    }

    fn counts(&self) -> ProxyCounts {
        let counts = self.proxy.counts();
        let kept = counts.kept_bytes - counts.cut_bytes;
        assert!(self.proxy.relays.check(&self.proxy.entries, kept) <= counts.brief, "{counts:?}");
        counts
    }

    fn lives(&self, (ours, _): (ConnId, ConnId)) -> bool {
        self.ends[0].state(ours).is_some_and(|(_, why)| why.is_none())
    }
}

fn path() -> Path {
    Path::with("split:buffer=65536", TWO, |config| config.most_kept_bytes = KEPT)
}

#[test]
fn where_memory_runs_short_windows_close_and_no_more_flows_are_cut_but_another_mobile_has_its_share() {
    let mut path = path();
    let listener = path.listen(1);
    let flows = path.open(listener, 24, 0);
    path.fill(&flows);
    let counts = path.counts();
    assert!(counts.kept_bytes >= KEPT / 4 * 3, "{counts:?}");
    assert_eq!((counts.cut, counts.gave_way, counts.cut_bytes), (24, 0, counts.kept_bytes));
    path.open(listener, 1, 0);
    assert_eq!(path.counts().cut, 24, "it passes");
    let other = path.open(listener, 1, 1)[0];
    assert_eq!(path.counts().cut, 25);
    // The bytes that a lone flow may hold at once.
    path.is_faded = true;
    path.ends[0].send(path.now, other.0, &bytes(60_000)).expect("it is open");
    path.pass(Duration::from_secs(3));
    let acknowledged = path.ends[0].info(path.now, other.0).expect("it lives").stats.bytes_acked;
    assert_eq!(acknowledged, 60_000);
    assert!(path.counts().kept_bytes <= KEPT);
}

/// A flow is either cut or passes, never both.
#[test]
fn where_memory_is_spent_a_flow_that_uses_its_ports_again_passes_and_is_not_cut_beside() {
    let mut path = path();
    let listener = path.listen(1);
    let (ours, theirs) = path.open(listener, 1, 0)[0];
    let ends = path.ends[0].info(path.now, ours).expect("it lives").flow;
    for (side, conn) in [(1, theirs), (0, ours)] {
        path.ends[side].close(path.now, conn).expect("it is open");
        path.pass(Duration::from_millis(10));
    }
    let flows = path.open(listener, 24, 0);
    path.fill(&flows);
    let before = path.counts();
    assert_eq!((before.cut, before.flows), (25, 25), "a half is in TIME-WAIT");
    let options =
        TcpOptions { timestamps: Some(Timestamps { value: 1 << 31, echo: 0 }), ..Default::default() };
    for nth in 1..8u32 {
        let seq = nth << 29;
        let syn = packet(ends.local, ends.remote, (seq, 0), Flags::SYN, &options, &[]);
        path.proxy.handle_packet(path.now, &Rx::new(FIXED, &syn));
        let syn = packet(ends.local, ends.remote, (seq, 0), Flags::SYN, &TcpOptions::default(), &[]);
        path.proxy.handle_packet(path.now, &Rx::new(FIXED, &syn));
    }
    let key = FlowKey { mobile: ends.remote, fixed: ends.local };
    assert!(path.proxy.flows.contains_key(&key) && path.proxy.relays.get(&key).is_none());
    assert_eq!((path.counts().cut, path.counts().flows), (24, 25));
}

#[test]
fn where_flows_hold_more_than_there_is_those_give_way_whose_data_stands_still() {
    let mut path = path();
    let listener = path.listen(1);
    let stuck = path.open(listener, 200, 0);
    let other = path.open(listener, 1, 1);
    assert_eq!(path.counts().cut, 201);
    path.fill(&stuck);
    let counts = path.counts();
    assert!(counts.gave_way > 0 && counts.kept_bytes >= KEPT / 2, "{counts:?}");
    assert!(!path.lives(stuck[0]) && path.lives(stuck[199]) && path.lives(other[0]));
    let gone = stuck.iter().filter(|flow| !path.lives(**flow)).count();
    assert_eq!(gone as u64, counts.gave_way, "their ends hear of it");
}

#[test]
fn a_mobile_that_fills_the_table_with_flows_that_are_cut_gives_way_until_all_have_the_same() {
    let mut path = Path::with("split:buffer=20000", TWO, |config| config.most_flows = 8);
    let listener = path.listen(1);
    let of_one = path.open(listener, 8, 0);
    let counts = path.counts();
    assert_eq!((counts.cut, counts.brief, counts.gave_way), (8, 0, 0));
    let of_other = path.open(listener, 4, 1);
    assert_eq!((path.counts().cut, path.counts().gave_way), (8, 4));
    assert!(of_other.iter().all(|flow| path.lives(*flow)));
    // The flows that were silent for longest went first.
    let lives: Vec<_> = of_one.iter().map(|flow| path.lives(*flow)).collect();
    assert_eq!(lives, [[false; 4], [true; 4]].concat());
    // No mobile has more than the one that opens a flow: that flow passes, and is not cut.
    path.open(listener, 1, 1);
    assert_eq!((path.counts().cut, path.counts().gave_way), (8, 4));
}

#[test]
fn flows_that_both_ends_have_ended_give_way_to_any_other_first() {
    let mut path = Path::with("split:buffer=20000", TWO, |config| config.most_flows = 4);
    let listener = path.listen(1);
    let flows = path.open(listener, 4, 0);
    for (ours, theirs) in &flows[1..] {
        path.ends[0].close(path.now, *ours).expect("it is open");
        path.pass(Duration::from_millis(10));
        path.ends[1].close(path.now, *theirs).expect("it is open");
        path.pass(Duration::from_millis(10));
    }
    let counts = path.counts();
    assert_eq!((counts.cut, counts.brief), (4, 3), "a half of each is in TIME-WAIT");
    let later = path.open(listener, 3, 0);
    let counts = path.counts();
    assert_eq!((counts.cut, counts.brief, counts.gave_way), (4, 0, 3));
    assert!(path.lives(flows[0]) && later.iter().all(|flow| path.lives(*flow)));
}

/// A SYN with a forged address is answered by a server, and by no other host.
#[test]
fn a_flow_that_its_opener_does_not_know_of_holds_no_lasting_entry() {
    let mut path = Path::v4();
    path.listen(0);
    let (from, to) = (SocketAddr::from(([10, 0, 0, 9], 40_000)), SocketAddr::from(([10, 0, 0, 1], PORT)));
    let syn = packet(from, to, (7, 0), Flags::SYN, &TcpOptions::default(), &[]);
    path.proxy.handle_packet(path.now, &Rx::new(MOBILE, &syn));
    path.pass(Duration::from_millis(10));
    let counts = path.counts();
    assert_eq!((counts.cut, counts.brief), (1, 1));
}

/// The fixed end listens and sends as soon as it can, for mobiles that do not exist.
#[test]
fn forged_syns_to_a_server_that_speaks_first_fill_no_memory() {
    let mut path = path();
    let server = path.listen(0);
    let to = SocketAddr::from(([10, 0, 0, 1], PORT));
    for last in 10..90 {
        let from = SocketAddr::from(([10, 0, 0, last], 40_000));
        let syn = packet(from, to, (7, 0), Flags::SYN, &TcpOptions::default(), &[]);
        path.proxy.handle_packet(path.now, &Rx::new(MOBILE, &syn));
        path.pass(Duration::from_millis(10));
        while let Some(conn) = path.ends[0].accept(path.now, server) {
            let _ = path.ends[0].send(path.now, conn, &bytes(60_000));
        }
        path.pass(Duration::from_millis(10));
        assert_eq!(path.counts().cut_bytes, 0);
    }
    assert_eq!((path.counts().cut, path.counts().brief), (80, 80));
    // A mobile that answers is heard at once, and the server speaks first.
    let theirs = path.connect(1);
    path.pass(Duration::from_millis(10));
    let ours = path.ends[0].accept(path.now, server).expect("it has come");
    path.ends[0].send(path.now, ours, &bytes(15_000)).expect("it is open");
    path.pass(Duration::from_millis(500));
    assert_eq!(path.read_all(1, theirs), bytes(15_000));
    // The other connections are given up in time, and the server hears of it.
    path.pass(Duration::from_secs(200));
    assert_eq!((path.counts().cut, path.counts().brief), (1, 0));
}

/// The server works with the host that forges the SYN, and waits for no ACK.
#[test]
fn a_server_that_sends_before_its_answer_is_acknowledged_is_not_heard_until_the_opener_has_answered() {
    let mut path = path();
    let end = |last, port| SocketAddr::from(([10, 0, 0, last], port));
    let (mobile, server) = (end(9, 40_000), end(77, PORT));
    let options = TcpOptions { mss: Some(1_460), ..TcpOptions::default() };
    let says = |path: &mut Path, from: Side, (seq, ack): (u32, u32), flags, data: &[u8]| {
        let (link, ends) = match from {
            Side::Fixed => (FIXED, [server, mobile]),
            Side::Mobile => (MOBILE, [mobile, server]),
        };
        let packet = packet(ends[0], ends[1], (seq, ack), flags, &options, data);
        path.proxy.handle_packet(path.now, &Rx::new(link, &packet));
    };
    let hears = |path: &mut Path, link| {
        let mut packet = Vec::new();
        let is_there = path.proxy.poll_transmit(path.now, link, Payload::Inline, &mut packet).is_some();
        is_there.then(|| parse(&packet).map(|(_, tcp)| (tcp.seq.0, tcp.ack.0, tcp.flags))).flatten()
    };
    let answer = Flags::SYN | Flags::ACK;
    says(&mut path, Side::Mobile, (7, 0), Flags::SYN, &[]);
    let (ours, _, _) = hears(&mut path, FIXED).expect("a SYN");
    for _ in 0..2 {
        says(&mut path, Side::Fixed, (100, ours + 1), answer, &[1; 1_000]);
        says(&mut path, Side::Fixed, (101, ours + 1), Flags::ACK, &[1; 1_000]);
        says(&mut path, Side::Fixed, (1_101, ours + 1), Flags::ACK, &[1; 1_000]);
    }
    assert_eq!((path.counts().cut_bytes, hears(&mut path, FIXED)), (0, None));
    let (seq, ack, flags) = hears(&mut path, MOBILE).expect("the answer");
    assert_eq!((ack, flags), (8, answer));
    says(&mut path, Side::Mobile, (8, seq + 1), Flags::ACK, &[]);
    let told = hears(&mut path, FIXED).expect("the ACK of its answer");
    assert_eq!(told, (ours + 1, 101, Flags::ACK));
    says(&mut path, Side::Fixed, (101, ours + 1), Flags::ACK, &[1; 1_000]);
    assert!(path.counts().cut_bytes >= 1_000);
    assert_eq!(hears(&mut path, MOBILE).map(|(first, _, _)| first), Some(seq + 1));
}

/// Each SYN makes another connection give way, and no packet is read from the devices meanwhile.
#[test]
fn a_stream_of_made_up_syns_lets_no_more_connections_wait_for_a_link_than_there_are() {
    let mut path = Path::with("split:buffer=20000", TWO, |config| config.most_flows = 4);
    let to = SocketAddr::from(([10, 0, 0, 1], PORT));
    for port in (1_000..1_100).chain(1_000..1_100) {
        let from = SocketAddr::from(([10, 0, 0, 9], port));
        let syn = packet(from, to, (u32::from(port), 0), Flags::SYN, &TcpOptions::default(), &[]);
        path.proxy.handle_packet(path.now, &Rx::new(MOBILE, &syn));
        assert!(path.counts().cut <= 4);
    }
}

#[test]
fn of_a_syn_that_waits_for_its_answer_nothing_is_kept_beside_its_headers() {
    let mut path = Path::v4();
    let (from, to) = (SocketAddr::from(([10, 0, 0, 9], 40_000)), SocketAddr::from(([10, 0, 0, 1], PORT)));
    let options = TcpOptions { mss: Some(1_460), ..TcpOptions::default() };
    let syn = packet(from, to, (7, 0), Flags::SYN, &options, &[0; 1_400]);
    path.proxy.handle_packet(path.now, &Rx::new(MOBILE, &syn));
    let key = FlowKey { mobile: from, fixed: to };
    let relay = path.proxy.relays.get(&key).expect("it is cut");
    assert_eq!(relay.unanswered.as_ref().map(|unanswered| unanswered.syn.len()), Some(44));
    // Its answer has the numbers of a SYN without data, and the opener sends the data again.
    path.listen(0);
    path.pass(Duration::from_millis(10));
    assert_eq!(path.counts().cut, 1);
}

/// The link of one mobile is gone, and data for it comes until it takes all of the memory.
#[test]
fn packets_that_are_held_for_one_mobile_make_room_for_a_flow_of_another_that_is_cut() {
    let rule = |port, agent: &str| ProxyRule { port, agent: agent.to_owned(), ..ProxyRule::default() };
    let rules = vec![rule(Some(9), "ack-hold:mode=kick"), rule(None, "split:buffer=65536")];
    let mut path = Path::with("none", TWO, |config| {
        (config.rules, config.most_kept_bytes) = (rules, KEPT);
    });
    let (fixed, faded) = (SocketAddr::from(([10, 0, 0, 1], 9)), IpAddr::from([10, 0, 0, 9]));
    path.proxy.handle_link_event(path.now, MOBILE, &LinkEvent::Gone { peer: faded });
    let clock = Timestamps { value: 1, echo: 1 };
    let options = TcpOptions { timestamps: Some(clock), ..TcpOptions::default() };
    for port in 1..50 {
        let mobile = SocketAddr::new(faded, port);
        let ack = packet(mobile, fixed, (1, 1), Flags::ACK, &options, &[]);
        path.proxy.handle_packet(path.now, &Rx::new(MOBILE, &ack));
        for nth in 0..40 {
            let data = packet(fixed, mobile, (1 + nth * 1_000, 1), Flags::ACK, &options, &[0; 1_000]);
            path.proxy.handle_packet(path.now, &Rx::new(FIXED, &data));
        }
    }
    path.settle();
    let before = path.counts();
    assert!(before.kept_bytes > KEPT - 2_000 && before.cut_bytes == 0, "{before:?}");
    let listener = path.listen(1);
    let flow = path.open(listener, 1, 0)[0];
    assert_eq!(path.counts().cut, 1);
    path.is_faded = true;
    path.ends[0].send(path.now, flow.0, &bytes(60_000)).expect("it is open");
    path.pass(Duration::from_secs(3));
    let acknowledged = path.ends[0].info(path.now, flow.0).expect("it lives").stats.bytes_acked;
    assert_eq!(acknowledged, 60_000, "as much at once as where nothing else is held");
    let counts = path.counts();
    assert!(counts.cut_bytes > 30_000 && counts.kept_bytes <= KEPT, "{counts:?}");
    assert_eq!(counts.gave_way, 0, "packets go on, and no flow ends");
}

/// Each cut flow has timers. A processor that has much else to do comes to them late.
#[test]
fn a_proxy_that_is_behind_handles_some_deadlines_at_a_time_and_cuts_no_more_flows() {
    let mut path = path();
    path.is_faded = true;
    let opens = |path: &mut Path| {
        path.connect(0);
        path.settle();
        path.counts().cut
    };
    let is_late = |path: &Path| path.proxy.poll_timeout().is_some_and(|due| due <= path.now);
    assert_eq!((0..=MOST_DUE).map(|_| opens(&mut path)).last(), Some(MOST_DUE + 1));
    path.now += Duration::from_secs(2);
    assert_eq!(opens(&mut path), MOST_DUE + 1, "it passes");
    path.proxy.handle_timeout(path.now);
    assert!(is_late(&path), "packets have their turn before the rest");
    path.proxy.handle_timeout(path.now);
    assert!(!is_late(&path));
    assert_eq!(opens(&mut path), MOST_DUE + 2);
}
