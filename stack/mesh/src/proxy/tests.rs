use std::net::SocketAddr;

use hopwise_agents::StandardAgents;
use hopwise_core::Seq;
use hopwise_core::trace::Lacking;
use hopwise_core::wire::{Flags, IpView, SackBlock, Sum, TcpOptions, Timestamps, protocol};
use hopwise_testing::make::Segment;

use super::*;

mod anything;
mod bad_input;
mod blind;
mod crowd;
mod memory;
mod said;

use said::{age, newest};

const FIXED: LinkId = LinkId(0);
const MOBILE: LinkId = LinkId(1);
const SEGMENT: usize = 1_000;
/// The window of all ACKs, which differ in number and timestamp.
const WINDOW: u16 = 1_000;

/// Two hosts and a base station between them. The fixed end opened the connection; segment n begins at n·1000.
struct Path {
    proxy: Proxy,
    fixed: SocketAddr,
    mobile: SocketAddr,
    clock: u32,
    has_timestamps: bool,
    /// The mobile's next number.
    next: u32,
}

impl Path {
    fn new(agent: &str) -> Path {
        Path::with(agent, |_| {})
    }

    fn with(agent: &str, change: impl FnOnce(&mut ProxyConfig)) -> Path {
        let mut config = ProxyConfig { trace_events: 10_000, ..ProxyConfig::new(FIXED, MOBILE, agent) };
        change(&mut config);
        let proxy = Proxy::new(config, Box::new(StandardAgents::default())).expect("an agent that there is");
        let end = |last, port| SocketAddr::from(([10, 0, 0, last], port));
        Path { proxy, fixed: end(1, 5001), mobile: end(2, 40_000), clock: 0, has_timestamps: true, next: 1 }
    }

    fn v6(agent: &str) -> Path {
        let end = |last, port| SocketAddr::from(([0xfd, 0, 0, 0, 0, 0, 0, last], port));
        Path { fixed: end(1, 5001), mobile: end(2, 40_000), ..Path::new(agent) }
    }

    fn segment(&mut self, from: Side, seq: u32, ack: u32, flags: Flags, len: usize) -> Vec<u8> {
        self.clock += 1;
        let (src, dst) =
            if from == Side::Fixed { (self.fixed, self.mobile) } else { (self.mobile, self.fixed) };
        let timestamps =
            self.has_timestamps.then_some(Timestamps { value: self.clock, echo: self.clock.max(1) - 1 });
        let is_syn = flags.contains(Flags::SYN);
        let options = TcpOptions {
            timestamps,
            mss: is_syn.then_some(1460),
            sack_permitted: is_syn,
            window_scale: is_syn.then_some(7),
            ..TcpOptions::default()
        };
        packet(src, dst, (seq, ack), flags, &options, &vec![self.clock as u8; len])
    }

    fn syns(&mut self, now: Instant) {
        let syn = self.segment(Side::Fixed, 999, 0, Flags::SYN, 0);
        self.carry(now, Side::Fixed, &syn);
        let answer = self.segment(Side::Mobile, 0, 1_000, Flags::SYN | Flags::ACK, 0);
        self.carry(now, Side::Mobile, &answer);
        // Most tests do not send the data that the mobile acknowledges.
        let key = FlowKey { mobile: self.mobile, fixed: self.fixed };
        if let Some(flow) = self.proxy.flows.get_mut(&key) {
            flow.facts.has_sent(Seq(100_000));
        }
    }

    fn data(&mut self, nth: u32) -> Vec<u8> {
        self.segment(Side::Fixed, nth * SEGMENT as u32, 1, Flags::ACK, SEGMENT)
    }

    fn ack(&mut self, nth: u32) -> Vec<u8> {
        self.segment(Side::Mobile, self.next, nth * SEGMENT as u32, Flags::ACK, 0)
    }

    /// The mobile's data, with an ACK.
    fn reply(&mut self, nth: u32) -> Vec<u8> {
        let seq = self.next;
        self.next += SEGMENT as u32;
        self.segment(Side::Mobile, seq, nth * SEGMENT as u32, Flags::ACK, SEGMENT)
    }

    /// Hands a packet in, and returns the packets that then leave.
    fn carry(&mut self, now: Instant, from: Side, packet: &[u8]) -> Vec<(Side, Vec<u8>)> {
        let link = if from == Side::Fixed { FIXED } else { MOBILE };
        self.proxy.handle_packet(now, &Rx::new(link, packet));
        self.take_out(now)
    }

    fn take_out(&mut self, now: Instant) -> Vec<(Side, Vec<u8>)> {
        let mut left = Vec::new();
        for (link, to) in [(FIXED, Side::Fixed), (MOBILE, Side::Mobile)] {
            let mut packet = Vec::new();
            while self.proxy.poll_transmit(now, link, Payload::Inline, &mut packet).is_some() {
                left.push((to, std::mem::take(&mut packet)));
            }
        }
        left
    }

    fn tell(&mut self, now: Instant, event: &LinkEvent<'_>) -> Vec<(Side, Vec<u8>)> {
        self.proxy.handle_link_event(now, MOBILE, event);
        self.take_out(now)
    }

    fn going_down(&mut self, now: Instant, outage: Duration) -> Vec<(Side, Vec<u8>)> {
        let (peer, rtt) = (self.mobile.ip(), Duration::from_millis(10));
        self.tell(now, &LinkEvent::GoingDown { peer, rtt, outage, within: Duration::ZERO })
    }

    fn gone(&mut self, now: Instant) -> Vec<(Side, Vec<u8>)> {
        let peer = self.mobile.ip();
        self.tell(now, &LinkEvent::Gone { peer })
    }

    fn up(&mut self, now: Instant) -> Vec<(Side, Vec<u8>)> {
        let peer = self.mobile.ip();
        self.tell(now, &LinkEvent::Up { peer })
    }

    fn trace(&mut self) -> Vec<TraceKind> {
        let mut kinds = Vec::new();
        self.proxy.drain_trace(&mut |event| kinds.push(event.kind));
        kinds
    }
}

pub(super) fn packet(
    src: SocketAddr,
    dst: SocketAddr,
    (seq, ack): (u32, u32),
    flags: Flags,
    options: &TcpOptions,
    payload: &[u8],
) -> Vec<u8> {
    let (seq, ack, options) = (Seq(seq), Seq(ack), options.clone());
    Segment { seq, ack, flags, window: WINDOW, options, payload, ..Segment::between(src, dst) }.packet()
}

fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

const SECONDS_10: Duration = Duration::from_secs(10);

#[test]
fn a_kick_keeps_data_through_the_fade_and_then_delivers_it_in_order_and_unaltered() {
    for mut path in [Path::new("ack-hold:mode=kick"), Path::v6("ack-hold:mode=kick")] {
        path.syns(ms(0));
        let (data, ack) = (path.data(1), path.ack(2));
        assert_eq!(path.carry(ms(1), Side::Fixed, &data), [(Side::Mobile, data)]);
        assert_eq!(path.carry(ms(2), Side::Mobile, &ack), [(Side::Fixed, ack.clone())]);
        assert!(path.gone(ms(3)).is_empty());
        let cached = [2, 3, 4].map(|nth| path.data(nth));
        for data in &cached {
            assert!(path.carry(ms(4), Side::Fixed, data).is_empty());
        }
        let again = path.data(2);
        assert!(path.carry(ms(500), Side::Fixed, &again).is_empty());
        let mut wanted = vec![(Side::Fixed, ack.clone())];
        wanted.extend(cached.map(|data| (Side::Mobile, data)));
        assert_eq!(path.up(ms(9_000)), wanted);
        // Released twice, and no third time.
        path.gone(ms(9_100));
        assert!(path.up(ms(9_200)).is_empty());
        assert_eq!(path.proxy.counts().kept_bytes, 0);
        assert_eq!(path.proxy.drops(DropReason::AlreadyKept), 1);
    }
}

#[test]
fn held_acks_leave_by_the_plan_and_the_rest_when_the_link_is_up() {
    let mut path = Path::new("ack-hold:mode=cumulative,sender=linux");
    path.syns(ms(0));
    for nth in 1..=20 {
        let data = path.data(nth);
        path.carry(ms(1), Side::Fixed, &data);
    }
    let first = path.ack(2);
    path.carry(ms(2), Side::Mobile, &first);
    path.going_down(ms(3), SECONDS_10);
    let held = [3, 4, 5, 6, 7, 8, 9, 10, 11].map(|nth| path.ack(nth));
    for ack in &held {
        assert!(path.carry(ms(4), Side::Mobile, ack).is_empty());
    }
    path.gone(ms(5));
    let mut released = Vec::new();
    while let Some(due) = path.proxy.poll_timeout().filter(|due| *due < ms(5_000)) {
        path.proxy.handle_timeout(due);
        released.extend(path.take_out(due));
    }
    assert!(!released.is_empty() && released.len() < held.len(), "{}", released.len());
    let up = path.up(ms(5_000));
    released.extend(up.into_iter().filter(|(to, _)| *to == Side::Fixed));
    assert_eq!(released, held.map(|ack| (Side::Fixed, ack)));
}

/// P3: two duplicates ahead of a held ACK, then the ACK itself, and no copy more.
#[test]
fn an_ack_leaves_three_times_at_most_with_its_duplicates_ahead_of_it() {
    let mut path = Path::new("ack-hold:mode=paper,margin=1,over=1,duplicates=2");
    path.syns(ms(0));
    let first = path.ack(2);
    path.carry(ms(1), Side::Mobile, &first);
    path.going_down(ms(2), SECONDS_10);
    let held = [3, 4].map(|nth| path.ack(nth));
    for ack in &held {
        assert!(path.carry(ms(3), Side::Mobile, ack).is_empty());
    }
    path.gone(ms(4));
    let mut left = Vec::new();
    while let Some(due) = path.proxy.poll_timeout().filter(|due| *due < ms(60_000)) {
        path.proxy.handle_timeout(due);
        left.extend(path.take_out(due));
    }
    let [one, other] = held.map(|ack| (Side::Fixed, ack));
    assert_eq!(left, [one.clone(), one.clone(), one, other.clone(), other.clone(), other]);
    assert_eq!(path.up(ms(60_001)), []);
}

#[test]
fn a_flow_without_timestamps_passes_untouched_and_the_trace_says_so_once() {
    let mut path = Path { has_timestamps: false, ..Path::new("ack-hold:mode=cumulative") };
    path.syns(ms(0));
    path.going_down(ms(1), SECONDS_10);
    path.gone(ms(2));
    for nth in 1..9 {
        let (data, ack) = (path.data(nth), path.ack(nth));
        assert_eq!(path.carry(ms(3), Side::Fixed, &data).len(), 1);
        assert_eq!(path.carry(ms(4), Side::Mobile, &ack).len(), 1);
    }
    let said = path.trace().into_iter().filter(|kind| *kind == TraceKind::Fallback(Lacking::Timestamps));
    assert_eq!((said.count(), path.proxy.counts().unserved), (1, 1));
}

#[test]
fn what_is_no_whole_tcp_segment_passes_untouched() {
    let mut path = Path::new("ack-hold:mode=cumulative");
    path.gone(ms(0));
    let mut damaged = path.data(1);
    *damaged.last_mut().expect("payload") ^= 1;
    let mut esp = path.data(1);
    esp[9] = protocol::ESP;
    let mut fragment = path.data(1);
    fragment[6] = 0x20;
    for packet in [&damaged[..], &esp, &fragment, &[], &[0x45], &[0xff; 60]] {
        assert_eq!(path.carry(ms(1), Side::Fixed, packet), [(Side::Mobile, packet.to_vec())]);
    }
    assert_eq!(path.proxy.counts().untouched, 6);
    assert_eq!(path.proxy.counts().flows, 0);
}

#[test]
fn when_memory_ends_in_the_middle_of_a_hold_everything_goes_on() {
    let mut path = Path::with("ack-hold:mode=cumulative", |config| config.most_kept_bytes_a_flow = 1_000);
    path.syns(ms(0));
    path.going_down(ms(1), SECONDS_10);
    let acks = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(|nth| path.ack(nth));
    let mut left = Vec::new();
    for ack in &acks {
        left.extend(path.carry(ms(2), Side::Mobile, ack));
    }
    assert_eq!(left, acks.map(|ack| (Side::Fixed, ack)));
    assert!(path.trace().contains(&TraceKind::Fallback(Lacking::Memory)));
    assert_eq!(path.proxy.counts().overflows, 1, "once a fade");
}

#[test]
fn when_data_finds_no_room_in_a_fade_the_held_acks_go_on_too() {
    for is_gone in [false, true] {
        let spec = "ack-hold:mode=cumulative,sender=linux";
        let mut path = Path::with(spec, |config| config.most_kept_bytes_a_flow = 3_000);
        path.syns(ms(0));
        let first = path.ack(2);
        path.carry(ms(2), Side::Mobile, &first);
        path.going_down(ms(3), SECONDS_10);
        let held = [3, 4, 5, 6, 7].map(|nth| path.ack(nth));
        for ack in &held {
            assert!(path.carry(ms(4), Side::Mobile, ack).is_empty());
        }
        if is_gone {
            assert!(path.gone(ms(5)).is_empty());
        }
        let mut left = Vec::new();
        for nth in 21..=30 {
            let data = path.data(nth);
            left.extend(path.carry(ms(6), Side::Fixed, &data));
        }
        left.retain(|(to, _)| *to == Side::Fixed);
        assert_eq!(left, held.map(|ack| (Side::Fixed, ack)), "gone: {is_gone}");
        assert_eq!(path.proxy.counts().overflows, 1, "once a fade");
        let next = path.ack(8);
        assert_eq!(path.carry(ms(7), Side::Mobile, &next), [(Side::Fixed, next)]);
    }
}

#[test]
fn an_agent_that_keeps_copies_without_a_fade_does_so_again_when_there_is_room() {
    let mut path = Path::with("snoop", |config| config.most_kept_bytes_a_flow = 1_500);
    path.syns(ms(0));
    for nth in [1, 2] {
        let data = path.data(nth);
        path.carry(ms(2), Side::Fixed, &data);
    }
    let ack = path.ack(3);
    path.carry(ms(3), Side::Mobile, &ack);
    let mut kept = |at_ms, nth| {
        let data = path.data(nth);
        path.carry(ms(at_ms), Side::Fixed, &data);
        (path.proxy.counts().kept_packets, path.proxy.counts().overflows)
    };
    assert_eq!([kept(4, 3), kept(1_002, 3)], [(0, 1), (1, 1)]);
}

#[test]
fn data_beyond_the_promised_window_does_not_push_what_is_cached_into_a_link_that_is_gone() {
    let mut path = Path::new("ack-hold:mode=kick");
    path.syns(ms(0));
    let (first, beyond) = (path.data(1), path.data(900));
    let ack = path.ack(1);
    path.carry(ms(1), Side::Mobile, &ack);
    path.gone(ms(2));
    assert!(path.carry(ms(3), Side::Fixed, &first).is_empty());
    assert_eq!(path.carry(ms(4), Side::Fixed, &beyond), [(Side::Mobile, beyond)]);
    assert!(path.up(ms(5)).contains(&(Side::Mobile, first)));
}

#[test]
fn a_sender_whose_syn_looks_like_linux_is_kicked() {
    let mut path = Path::new("ack-hold");
    path.syns(ms(0));
    for nth in 1..=100 {
        let data = path.data(nth);
        path.carry(ms(1), Side::Fixed, &data);
    }
    path.going_down(ms(2), SECONDS_10);
    let ack = path.ack(50);
    assert_eq!(path.carry(ms(3), Side::Mobile, &ack), [(Side::Fixed, ack)]);
}

#[test]
fn what_may_not_wait_takes_along_what_was_held() {
    for flags in [Flags::FIN, Flags::RST, Flags::ECE, Flags::URG] {
        let mut path = Path::new("ack-hold:mode=cumulative");
        path.syns(ms(0));
        path.going_down(ms(1), SECONDS_10);
        let (first, second) = (path.ack(1), path.ack(2));
        assert!(path.carry(ms(2), Side::Mobile, &first).is_empty());
        assert!(path.carry(ms(2), Side::Mobile, &second).is_empty());
        let last = path.segment(Side::Mobile, 1, 2_000, flags | Flags::ACK, 0);
        let wanted = [first, second, last.clone()].map(|packet| (Side::Fixed, packet));
        assert_eq!(path.carry(ms(3), Side::Mobile, &last), wanted, "{flags}");
    }
}

#[test]
fn a_flow_picked_up_in_the_middle_of_a_fade_is_served_too() {
    let mut path = Path::new("ack-hold:mode=kick");
    path.gone(ms(0));
    let data = path.data(7);
    assert!(path.carry(ms(1), Side::Fixed, &data).is_empty());
    assert_eq!(path.up(ms(2)), [(Side::Mobile, data)]);
}

#[test]
fn ports_that_are_used_again_begin_a_flow_of_their_own() {
    let mut path = Path::new("ack-hold:mode=kick");
    path.syns(ms(0));
    path.gone(ms(1));
    let data = path.data(1);
    assert!(path.carry(ms(2), Side::Fixed, &data).is_empty());
    let syn = path.segment(Side::Fixed, 77, 0, Flags::SYN, 0);
    // Any host can send a SYN (RFC 5961 §4).
    assert_eq!(path.carry(ms(3), Side::Fixed, &syn), [(Side::Mobile, syn)]);
    assert!(path.proxy.counts().kept_bytes > 0);
    let answer = path.segment(Side::Mobile, 0, 78, Flags::SYN | Flags::ACK, 0);
    let left = path.carry(ms(4), Side::Mobile, &answer);
    assert_eq!(left, [(Side::Fixed, answer), (Side::Mobile, data)]);
    let counts = path.proxy.counts();
    assert_eq!((counts.flows, counts.kept_bytes), (1, 0));
    // It has its own numbers, and the service of its agent.
    let data = path.segment(Side::Fixed, 78, 1, Flags::ACK, SEGMENT);
    assert!(path.carry(ms(5), Side::Fixed, &data).is_empty());
}

#[test]
fn data_that_the_link_gives_up_is_taken_back_in_its_place_while_the_link_is_not_up() {
    let mut path = Path::new("ack-hold:mode=kick");
    path.syns(ms(0));
    // The window of the mobile's SYN was not scaled.
    let ack = path.ack(1);
    path.carry(ms(0), Side::Mobile, &ack);
    let lost = [1, 2].map(|nth| path.data(nth));
    assert!(!path.proxy.take_back(ms(0), &lost[0]), "the link is up: TCP's own business");
    path.gone(ms(1));
    let cached = path.data(3);
    path.carry(ms(2), Side::Fixed, &cached);
    assert!(path.proxy.take_back(ms(3), &lost[1]));
    assert!(path.proxy.take_back(ms(4), &lost[0]));
    let left: Vec<_> = path.up(ms(5)).into_iter().filter(|(to, _)| *to == Side::Mobile).collect();
    let [first, second] = lost;
    assert_eq!(left, [first, second, cached].map(|data| (Side::Mobile, data)));
}

#[test]
fn data_that_finds_no_room_when_it_is_taken_back_counts_as_an_end_of_memory() {
    let mut path = Path::with("ack-hold:mode=kick", |config| config.most_kept_bytes_a_flow = 1_000);
    path.syns(ms(0));
    let lost = [1, 2].map(|nth| path.data(nth));
    path.gone(ms(1));
    for data in &lost {
        assert!(!path.proxy.take_back(ms(2), data));
    }
    assert_eq!(path.proxy.counts().overflows, 1, "once a fade");
}

#[test]
fn flows_beyond_the_table_pass_and_those_that_are_over_make_room() {
    let mut path = Path::with("ack-hold:mode=kick", |config| config.most_flows = 1);
    path.syns(ms(0));
    let mut other = Path { mobile: SocketAddr::from(([10, 0, 0, 3], 1)), ..Path::new("none") };
    let (data, fin) = (other.data(1), path.segment(Side::Mobile, 1, 1, Flags::RST, 0));
    assert_eq!(path.carry(ms(1), Side::Fixed, &data).len(), 1);
    assert_eq!((path.proxy.counts().flows, path.proxy.counts().untouched), (1, 1));
    path.carry(ms(2), Side::Mobile, &fin);
    path.carry(ms(60_000), Side::Fixed, &data);
    assert_eq!(path.proxy.counts().untouched, 1);
}

#[test]
fn a_flow_that_one_end_has_finished_is_given_up_for_no_other() {
    let mut path = Path::with("ack-hold:mode=kick", |config| config.most_flows = 1);
    path.syns(ms(0));
    let mut other = Path { mobile: SocketAddr::from(([10, 0, 0, 3], 1)), ..Path::new("none") };
    let newcomer = other.data(1);
    for (from, later_s, untouched) in [(Side::Mobile, 60, 1), (Side::Fixed, 120, 1)] {
        let fin = path.segment(from, 1, 1, Flags::FIN | Flags::ACK, 0);
        path.carry(ms(later_s * 1_000 - 50_000), from, &fin);
        path.carry(ms(later_s * 1_000), Side::Fixed, &newcomer);
        assert_eq!(path.proxy.counts().untouched, untouched, "{from:?}");
    }
}

#[test]
fn a_flow_that_goes_on_after_a_reset_that_its_end_did_not_heed_is_given_up_for_no_other() {
    let mut path = Path::with("ack-hold:mode=kick", |config| config.most_flows = 1);
    path.syns(ms(0));
    let mut other = Path { mobile: SocketAddr::from(([10, 0, 0, 3], 1)), ..Path::new("none") };
    let newcomer = other.data(1);
    let reset = path.segment(Side::Mobile, 1, 1, Flags::RST, 0);
    path.carry(ms(1_000), Side::Mobile, &reset);
    let data = path.data(1);
    path.carry(ms(31_000), Side::Fixed, &data);
    for (at_s, untouched) in [(60, 1), (62, 1)] {
        path.carry(ms(at_s * 1_000), Side::Fixed, &newcomer);
        assert_eq!(path.proxy.counts().untouched, untouched, "{at_s}");
    }
}

#[test]
fn what_both_ends_have_finished_in_a_fade_is_kept_until_it_is_over() {
    let mut path = Path::with("ack-hold:mode=kick", |config| config.most_flows = 1);
    path.syns(ms(0));
    let mut other = Path { mobile: SocketAddr::from(([10, 0, 0, 3], 1)), ..Path::new("none") };
    let newcomer = other.data(1);
    let fin = path.segment(Side::Mobile, 1, 1_000, Flags::FIN | Flags::ACK, 0);
    path.carry(ms(1_000), Side::Mobile, &fin);
    path.gone(ms(2_000));
    let cached = [path.data(1), path.segment(Side::Fixed, 2_000, 2, Flags::FIN | Flags::ACK, 0)];
    for packet in &cached {
        assert!(path.carry(ms(2_000), Side::Fixed, packet).is_empty());
    }
    assert_eq!(path.carry(ms(61_000), Side::Fixed, &newcomer), [(Side::Mobile, newcomer)]);
    assert_eq!(path.proxy.counts().untouched, 1);
    let left: Vec<_> = path.up(ms(62_000)).into_iter().filter(|(to, _)| *to == Side::Mobile).collect();
    assert_eq!(left, cached.map(|packet| (Side::Mobile, packet)));
}

#[test]
fn the_first_rule_that_fits_says_which_agent() {
    let rule = |port, agent: &str| ProxyRule { port, agent: agent.to_owned(), ..ProxyRule::default() };
    let mut path = Path::with("none", |config| {
        config.rules = vec![rule(Some(5001), "freeze"), rule(None, "none")];
    });
    path.syns(ms(0));
    let ack = path.ack(2);
    path.carry(ms(1), Side::Mobile, &ack);
    assert_eq!(path.gone(ms(2)).len(), 1);
    let maker = Box::new(StandardAgents::default());
    let error = Proxy::new(ProxyConfig::new(FIXED, MOBILE, "ack-hild"), maker).expect_err("no such agent");
    assert!(error.to_string().contains("did you mean `ack-hold`?"), "{error}");
}

/// The values that distinguish ACKs. The mobile here sends no two packets with one timestamp, though the radio may
/// bring a packet twice.
fn said_in(packet: &[u8]) -> (u32, u16, Option<Timestamps>) {
    let read = read::read(packet, Side::Mobile, Checksums::Verify).expect("a segment that is whole");
    (read.tcp.ack.0, read.tcp.window, read.tcp.options.timestamps)
}

/// Computes the TCP checksum of an IPv4 packet without options anew.
fn sum_again(packet: &mut [u8]) {
    packet[36..38].fill(0);
    let ip = IpView::parse(packet).expect("a packet");
    let sum = Sum::pseudo_header(ip.src, ip.dst, protocol::TCP, ip.payload.len() as u32).add(ip.payload);
    packet[36..38].copy_from_slice(&sum.finish().to_be_bytes());
}

fn with_blocks(path: &mut Path, nth: u32, blocks: u8) -> Vec<u8> {
    path.clock += 1;
    let block =
        |n: u32| SackBlock { left: Seq((nth + 2 * n) * 1_000), right: Seq((nth + 2 * n + 1) * 1_000) };
    let options = TcpOptions {
        timestamps: Some(Timestamps { value: path.clock, echo: path.clock - 1 }),
        sack: (1..=u32::from(blocks)).map(block).collect(),
        ..TcpOptions::default()
    };
    packet(path.mobile, path.fixed, (path.next, nth * 1_000), Flags::ACK, &options, &[])
}
