//! Several segments in one packet: the network and the agents notice no difference.

use std::cell::RefCell;
use std::rc::Rc;

use hopwise_core::Instant;
use hopwise_core::endpoint::{ConnectOptions, EndpointConfig, LinkConfig, ListenOptions, Offload};
use hopwise_core::tcp::{ConnectionStats, TcpConfig};
use hopwise_core::trace::{DropReason, TraceKind};
use hopwise_core::wire::{Checksums, Flags, IpView, Sum, TcpView, protocol};
use hopwise_core::{Endpoint, LinkId, Machine, Payload, Rx};
use hopwise_testing::make::endpoint;
use hopwise_testing::memory::{Bundles, End, Fate, PathConfig};

use super::flow::{Flow, Setup, ms};
use super::peer::{ACK, Host, plain};

const BUNDLES: Offload = Offload::Cut { most_bytes: 65_535 };

/// An observer's view of a packet on the path; a link that cuts leaves PSH to the last segment.
fn seen(at: Instant, from: End, packet: &[u8], fate: Fate) -> String {
    let ip = IpView::parse(packet).expect("a packet");
    let tcp = TcpView::parse(ip.src, ip.dst, ip.payload, Checksums::Verify).expect("a segment");
    let flags = tcp.flags | Flags::PSH;
    let (seq, ack, window, payload) = (tcp.seq, tcp.ack, tcp.window, tcp.payload);
    let options = &tcp.options;
    format!("{at} {from:?} {seq:?} {ack:?} {flags:?} {window} {options:?} {payload:?} {fate:?} {:?}", ip.ecn)
}

/// The flow, and all packets on the path.
fn observed(setup: &Setup) -> (Flow, Vec<String>) {
    let log = Rc::new(RefCell::new(Vec::new()));
    let writer = Rc::clone(&log);
    let tap = move |at: Instant, from: End, packet: &[u8], fate: Fate| {
        writer.borrow_mut().push(seen(at, from, packet, fate));
    };
    let mut flow = setup.start_tapped(Some(Box::new(tap)));
    assert!(flow.run(Instant::from_secs(600)), "{setup:?}");
    let log = log.take();
    (flow, log)
}

fn stats(flow: &Flow) -> [ConnectionStats; 2] {
    let server = flow.server.expect("it was accepted");
    let info = flow.hosts.b.info(flow.hosts.now(), server).expect("it is open");
    [flow.sender().stats, info.stats]
}

fn paths() -> Vec<Setup> {
    let mut clean = Setup::over(ms(20));
    clean.bytes = 400_000;
    let mut lossy = clean.clone();
    lossy.to_b.impairment.loss_ppm = 20_000;
    lossy.to_a.impairment.loss_ppm = 10_000;
    let mut rough = lossy.clone();
    (
        rough.to_b.impairment.reorder_ppm,
        rough.to_b.impairment.reorder_by,
        rough.to_b.impairment.duplicate_ppm,
    ) = (50_000, ms(5), 20_000);
    let mut marking = clean.clone().rate(20_000_000, 50);
    marking.to_b.mark_behind = Some(10);
    let mut slow_reader = clean.clone();
    (slow_reader.read_bytes, slow_reader.read_every) = (3_000, ms(7));
    let no_sack = lossy.clone().both(|tcp| (tcp.sack, tcp.timestamps) = (false, false));
    let ns2 = Setup { tcp: [TcpConfig::ns2(1000), TcpConfig::ns2(1000)], ..lossy.clone() };
    let paced = Setup { senders: "[newreno, paced]", ..lossy.clone() };
    let limited = Setup { senders: "[newreno, \"limit:7\"]", receiver: "delayed:d=4", ..lossy.clone() };
    vec![clean, lossy, rough, marking, slow_reader, no_sack, ns2, paced, limited]
}

#[test]
fn a_link_that_cuts_puts_the_very_same_segments_on_the_path() {
    for setup in paths() {
        let (one_by_one, wanted) = observed(&setup);
        let (bundled, is) = observed(&Setup { offload: BUNDLES, ..setup.clone() });
        let place = wanted.iter().zip(&is).position(|(wanted, is)| wanted != is);
        assert!(
            place.is_none() && wanted.len() == is.len(),
            "{setup:?}\n{:?}\n{:?}",
            place.map(|place| &wanted[place]),
            place.map(|place| &is[place])
        );
        assert_eq!(stats(&one_by_one), stats(&bundled), "{setup:?}");
    }
}

#[test]
fn a_path_that_carries_bundles_delivers_every_byte() {
    for setup in paths() {
        let mut setup = Setup { offload: BUNDLES, ..setup };
        (setup.to_b.bundles, setup.to_a.bundles) = (Bundles::Carry, Bundles::Carry);
        let mut flow = setup.start();
        assert!(flow.run(Instant::from_secs(600)), "{setup:?}");
    }
}

/// Segments of 1448 bytes, an initial window of ten, an ACK for every second one: the agents must count what they count
/// for single segments.
#[test]
fn agents_at_both_ends_count_segments_and_not_packets() {
    let mut setup = Setup { offload: BUNDLES, senders: "[newreno]", ..Setup::over(ms(20)) };
    setup.bytes = 100 * 1448;
    let (mut carried, packets) = {
        setup.to_b.bundles = Bundles::Carry;
        observed(&setup)
    };
    let [sender, receiver] = stats(&carried);
    assert_eq!((sender.segments_sent, receiver.segments_in_order), (100, 100));
    let from_a = packets.iter().filter(|line| line.contains(" A ")).count();
    assert!(from_a < 40, "{from_a} packets carried them");
    assert_eq!(receiver.acks_sent, 50);
    let held = carried.count(End::B, |kind| matches!(kind, TraceKind::AckHeld { .. }));
    assert_eq!(held, 50);
}

#[test]
fn a_link_that_finishes_checksums_finds_the_pseudo_headers_sum_in_their_place() {
    let setup =
        Setup { offload: BUNDLES, checksums: Checksums::Trust, bytes: 100_000, ..Setup::over(ms(20)) };
    let setup = Setup { to_b: PathConfig { bundles: Bundles::Carry, ..setup.to_b }, ..setup };
    let tap = |_: Instant, _: End, packet: &[u8], _: Fate| {
        let ip = IpView::parse(packet).expect("a packet");
        let field = u16::from_be_bytes([ip.payload[16], ip.payload[17]]);
        let sum = Sum::pseudo_header(ip.src, ip.dst, protocol::TCP, ip.payload.len() as u32);
        assert_eq!(field, sum.fold());
    };
    assert!(setup.start_tapped(Some(Box::new(tap))).run(Instant::from_secs(60)));
}

/// Two IPv4 fragments; the first carries `first` bytes, a multiple of 8.
fn in_two(packet: &[u8], first: usize) -> [Vec<u8>; 2] {
    let (header, payload) = packet.split_at(20);
    let fragment = |offset: usize, more: u16, part: &[u8]| {
        let mut piece = [header, part].concat();
        let len = piece.len() as u16;
        piece[2..4].copy_from_slice(&len.to_be_bytes());
        piece[6..8].copy_from_slice(&((more << 13) | (offset as u16 / 8)).to_be_bytes());
        piece[10..12].fill(0);
        let checksum = Sum::default().add(&piece[..20]).finish();
        piece[10..12].copy_from_slice(&checksum.to_be_bytes());
        piece
    };
    [fragment(0, 1, &payload[..first]), fragment(first, 0, &payload[first..])]
}

#[test]
fn a_link_vouches_for_whole_packets_and_never_for_fragments() {
    let trusts = |config: &mut EndpointConfig| config.links[0].checksums = Checksums::Trust;
    let mut host = Host::with(plain(), trusts);
    host.listen(ListenOptions::default());
    let mut syn = host.packet(Flags::SYN, &[]);
    syn[36] ^= 1;
    for piece in in_two(&syn, 8) {
        host.endpoint.handle_packet(host.now, &Rx::new(LinkId(0), &piece));
    }
    assert_eq!(host.endpoint.drops(DropReason::TcpChecksum), 1);
    host.endpoint.handle_packet(host.now, &Rx::new(LinkId(0), &syn));
    assert_eq!(host.endpoint.drops(DropReason::TcpChecksum), 1);
    let mut answer = Vec::new();
    assert!(host.endpoint.poll_transmit(host.now, LinkId(0), Payload::Inline, &mut answer).is_some());
    assert_eq!(answer[33] & ACK.0, ACK.0);
}

/// All packets that leave, and the lengths of the payload's pieces that were lent for them.
fn leaves(from: &mut Endpoint, gathers: bool) -> (Vec<Vec<u8>>, Vec<[usize; 2]>) {
    let (mut packets, mut lent) = (Vec::new(), Vec::new());
    loop {
        let mut packet = Vec::new();
        let payload = if gathers { Payload::Lent } else { Payload::Inline };
        let polled = from.poll_transmit(Instant::ZERO, LinkId(0), payload, &mut packet);
        if polled.is_none() {
            return (packets, lent);
        }
        let (front, back) = from.lent();
        lent.push([front.len(), back.len()]);
        packets.push([&packet, front, back].concat());
    }
}

/// A transfer that goes round the ring, with its packets and their pieces.
fn transfer(gathers: bool, checksums: Checksums) -> (Vec<Vec<u8>>, Vec<[usize; 2]>) {
    let ends = ["10.0.0.1/24", "10.0.0.2/24"].map(|address| {
        let link = LinkConfig::wire(0, 1500, vec![address.parse().expect("a prefix")]);
        let config = EndpointConfig::new(LinkConfig { offload: BUNDLES, checksums, ..link }, [7; 32]);
        endpoint(config)
    });
    let [mut a, mut b] = ends;
    let listener = b.listen(None, 80, ListenOptions::default()).expect("a free port");
    let to = "10.0.0.2:80".parse().expect("an address");
    let id = a.connect(Instant::ZERO, to, &ConnectOptions::default()).expect("a route");
    let (mut packets, mut lent, mut accepted) = (Vec::new(), Vec::new(), None);
    for round in 0..400 {
        let data: Vec<u8> = (0..5000).map(|at: usize| (at * 7 + round) as u8).collect();
        a.send(Instant::ZERO, id, &data).expect("open");
        let (left, pieces) = leaves(&mut a, gathers);
        left.iter().for_each(|packet| b.handle_packet(Instant::ZERO, &Rx::new(LinkId(0), packet)));
        packets.extend(left);
        lent.extend(pieces);
        accepted = accepted.or_else(|| b.accept(Instant::ZERO, listener));
        if let Some(accepted) = accepted {
            b.recv(Instant::ZERO, accepted, &mut [0; 60_000]).expect("open");
        }
        for answer in leaves(&mut b, false).0 {
            a.handle_packet(Instant::ZERO, &Rx::new(LinkId(0), &answer));
        }
    }
    (packets, lent)
}

#[test]
fn what_is_lent_is_the_end_of_the_very_same_packets() {
    for checksums in [Checksums::Trust, Checksums::Verify] {
        let (whole, lent) = transfer(false, checksums);
        assert!(lent.iter().all(|pieces| *pieces == [0, 0]));
        let (gathered, lent) = transfer(true, checksums);
        assert_eq!(whole, gathered);
        let lends = checksums == Checksums::Trust;
        assert_eq!(lent.iter().any(|[front, _]| *front > 1460), lends, "bundles are lent");
        assert_eq!(lent.iter().any(|[_, back]| *back > 0), lends, "also where the ring ends");
    }
}
