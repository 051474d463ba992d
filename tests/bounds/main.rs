//! Endless input from outside takes a bounded amount of memory.

mod proxy;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use allocation_counter::measure;
use hopwise_core::endpoint::{Cookies, EndpointConfig, LinkConfig, ListenOptions, ListenerId};
use hopwise_core::ip::{Prefix, UdpOptions};
use hopwise_core::wire::{Checksums, Flags, IcmpKind, IpHeader, TcpView, icmp, protocol, udp};
use hopwise_core::{Endpoint, Instant, LinkId, Machine, Payload, Rx, Seq};
use hopwise_testing::make::{Segment, endpoint};

const HOST: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const LINK: LinkId = LinkId(0);
const PORT: u16 = 80;
/// The rounds until every bounded thing is full; a second series as long shows if it grows on.
const ROUNDS: u32 = 60_000;
/// A list may yet double once; one that grows with every round needs more.
const SLACK_BYTES: i64 = 16 << 10;

/// A host, and a network that may send anything.
struct Besieged {
    host: Endpoint,
    now: Instant,
    listener: ListenerId,
}

impl Besieged {
    fn new(cookies: Cookies) -> Besieged {
        let prefix = Prefix::new(HOST, 8).expect("8 bits are fewer than 32");
        let link = LinkConfig::wire(LINK.0, 1500, vec![prefix]);
        let mut host = endpoint(EndpointConfig::new(link, [7; 32]));
        let options = ListenOptions { backlog: 8, half_open: 8, cookies, ..ListenOptions::default() };
        let listener = host.listen(None, PORT, options).expect("nobody else listens");
        Besieged { host, now: Instant::ZERO, listener }
    }

    fn hand_in(&mut self, packet: &[u8]) {
        self.host.handle_packet(self.now, &Rx::new(LINK, packet));
    }

    /// The next segment that the host sends, as (sequence number, acknowledgment number).
    fn sent(&mut self) -> Option<(Seq, Seq)> {
        let mut packet = Vec::new();
        self.host.poll_transmit(self.now, LINK, Payload::Inline, &mut packet)?;
        let remote = Ipv4Addr::new(packet[16], packet[17], packet[18], packet[19]);
        let segment =
            TcpView::parse(HOST, remote.into(), &packet[20..], Checksums::Verify).expect("a segment");
        Some((segment.seq, segment.ack))
    }

    /// Fails if the second half of the rounds leaves more on the heap than the first half did.
    fn grows_by_no_round(mut self, mut round: impl FnMut(&mut Besieged, u32)) {
        let mut rounds = |from: u32, to: u32| {
            let used = measure(|| {
                for nth in from..to {
                    self.now = Instant::from_millis(u64::from(nth));
                    round(&mut self, nth);
                }
            });
            used.bytes_current
        };
        let until_full = rounds(0, ROUNDS);
        let more = rounds(ROUNDS, 2 * ROUNDS);
        assert!(more <= SLACK_BYTES, "{more} bytes more after {until_full} for the first {ROUNDS} rounds");
    }
}

/// The address of a sender, another one for each number.
fn sender(nth: u32) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::from(0x0a01_0000 + nth).into(), 1024)
}

fn around(src: IpAddr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let header = IpHeader::plain(src, HOST, protocol);
    let mut packet = Vec::new();
    header.emit(payload.len(), &mut packet);
    packet.extend(payload);
    packet
}

fn segment(from: SocketAddr, seq: Seq, ack: Seq, flags: Flags, payload: &[u8]) -> Vec<u8> {
    let between = Segment::between(from, SocketAddr::new(HOST, PORT));
    Segment { seq, ack, flags, window: 1000, payload, ..between }.packet()
}

const NONE: Seq = Seq(0);

#[test]
fn connections_that_come_and_go_while_the_link_has_no_room_are_forgotten() {
    Besieged::new(Cookies::Never).grows_by_no_round(|siege, nth| {
        siege.hand_in(&segment(sender(nth), Seq(1), NONE, Flags::SYN, b""));
        siege.hand_in(&segment(sender(nth), Seq(2), NONE, Flags::RST, b""));
    });
}

/// The whole life of a connection that the peer opens, writes to and resets.
fn visit(siege: &mut Besieged, nth: u32) {
    let from = sender(nth);
    siege.hand_in(&segment(from, Seq(1), NONE, Flags::SYN, b""));
    let (seq, ack) = siege.sent().expect("a SYN-ACK");
    siege.hand_in(&segment(from, ack, seq + 1, Flags::ACK, b"hello"));
    while siege.sent().is_some() {}
}

#[test]
fn a_program_that_never_asks_for_events_can_serve_for_ever() {
    Besieged::new(Cookies::Never).grows_by_no_round(|siege, nth| {
        visit(siege, nth);
        let id = siege.host.accept(siege.now, siege.listener).expect("somebody knocked");
        siege.host.abort(siege.now, id).expect("a connection");
        while siege.sent().is_some() {}
    });
}

#[test]
fn a_program_that_never_accepts_is_not_flooded() {
    Besieged::new(Cookies::Never).grows_by_no_round(|siege, nth| {
        siege.hand_in(&segment(sender(nth), Seq(1), NONE, Flags::SYN, b""));
        if let Some((seq, ack)) = siege.sent() {
            siege.hand_in(&segment(sender(nth), ack, seq + 1, Flags::ACK, b""));
        }
        while siege.sent().is_some() {}
    });
}

#[test]
fn syns_whose_senders_never_answer_are_kept_or_answered_with_cookies_within_bounds() {
    for cookies in [Cookies::Never, Cookies::WhenFull, Cookies::Always] {
        Besieged::new(cookies).grows_by_no_round(|siege, nth| {
            siege.hand_in(&segment(sender(nth), Seq(nth), NONE, Flags::SYN, b""));
        });
    }
}

/// The stated ceiling of a node without bounds in its file, on top of the program itself.
const MOST_WITH_DEFAULTS: u64 = 400 << 20;
/// The buffers of all connections, by default.
const DEFAULT_BUFFERS: u64 = 256 << 20;
const CROWD: u32 = 12_000;

#[test]
fn a_crowd_whose_data_nobody_reads_fills_the_default_bounds_and_no_more() {
    let mut siege = Besieged::new(Cookies::Never);
    let data = [7; 1400];
    let used = measure(|| {
        for nth in 0..CROWD {
            siege.now = Instant::from_millis(u64::from(nth));
            let from = sender(nth);
            siege.hand_in(&segment(from, Seq(1), NONE, Flags::SYN, b""));
            let Some((ours, next)) = siege.sent() else { continue };
            siege.hand_in(&segment(from, next, ours + 1, Flags::ACK, b""));
            let _ = siege.host.accept(siege.now, siege.listener);
            for at in (0..64_000).step_by(data.len()) {
                siege.hand_in(&segment(from, next + at, ours + 1, Flags::ACK, &data));
            }
            while siege.sent().is_some() {}
        }
    });
    println!("{} MiB for {CROWD} peers", used.bytes_max >> 20);
    assert!((DEFAULT_BUFFERS / 4 * 3..MOST_WITH_DEFAULTS).contains(&used.bytes_max), "{}", used.bytes_max);
}

#[test]
fn data_with_holes_is_kept_within_the_window() {
    let mut siege = Besieged::new(Cookies::Never);
    siege.hand_in(&segment(sender(1), Seq(1), NONE, Flags::SYN, b""));
    let (seq, ack) = siege.sent().expect("a SYN-ACK");
    siege.grows_by_no_round(|siege, nth| {
        let place = ack + 2 + nth * 7 % 60_000;
        siege.hand_in(&segment(sender(1), place, seq + 1, Flags::ACK, b"hole"));
    });
}

#[test]
fn fragments_that_never_come_together_are_given_up() {
    Besieged::new(Cookies::Never).grows_by_no_round(|siege, nth| {
        let mut packet = around(sender(nth % 50).ip(), protocol::UDP, &[0; 64]);
        packet[4..6].copy_from_slice(&(nth as u16).to_be_bytes());
        packet[6..8].copy_from_slice(&0x2001_u16.to_be_bytes());
        packet[10..12].fill(0);
        let sum = hopwise_core::wire::Sum::default().add(&packet[..20]).finish();
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        siege.hand_in(&packet);
    });
}

#[test]
fn datagrams_that_nobody_reads_are_dropped() {
    let mut siege = Besieged::new(Cookies::Never);
    siege.host.udp_bind(None, PORT, UdpOptions::default()).expect("a free port");
    siege.grows_by_no_round(|siege, nth| {
        let src = sender(nth).ip();
        let mut datagram = Vec::new();
        // Every second one is for a closed port, and causes an ICMP error.
        udp::emit(src, HOST, (5000, PORT + (nth & 1) as u16), &[1; 200], &mut datagram);
        siege.hand_in(&around(src, protocol::UDP, &datagram));
    });
}

#[test]
fn echo_requests_and_errors_about_nothing_leave_nothing_behind() {
    Besieged::new(Cookies::Never).grows_by_no_round(|siege, nth| {
        let src = sender(nth).ip();
        let mut message = Vec::new();
        if nth & 1 == 0 {
            icmp::emit_echo_request(src, HOST, 1, nth as u16, &[1; 1000], &mut message);
        } else {
            let quoted = segment(sender(nth), Seq(nth), NONE, Flags::ACK, b"");
            icmp::emit_error(src, HOST, IcmpKind::PacketTooBig { mtu: 600 }, &quoted, &mut message);
        }
        siege.hand_in(&around(src, protocol::ICMP, &message));
    });
}
