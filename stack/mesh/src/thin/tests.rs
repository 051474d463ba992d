use std::net::SocketAddr;
use std::sync::Arc;

use hopwise_agents::StandardAgents;
use hopwise_core::Seq;
use hopwise_core::agent::{
    AckDecided, AckNote, AckRule, AckVerdict, AgentMaker, Arrival, Needs, ReceiverAgent, RecvView, Why,
};
use hopwise_core::wire::{Flags, SackBlock, TcpOptions, Timestamps};
use hopwise_testing::make::{Segment, ms};
use proptest::prelude::*;

use super::*;
use Verdict::{Drop, Pass};

const MSS: u32 = 1_448;

/// What the kernel does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    Drop,
}

/// A kernel's receiver at the port 5001, and the machine that its packets go through.
struct Kernel {
    thin: Thin,
    next_id: u32,
    options: TcpOptions,
    from: SocketAddr,
    to: SocketAddr,
}

fn port(last: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 9, 0, last], port))
}

impl Kernel {
    fn new(spec: &str) -> Kernel {
        Kernel::with(spec, 100)
    }

    fn with(spec: &str, most_flows: usize) -> Kernel {
        let receiver = StandardAgents::default().receiver(spec).expect("an agent that there is");
        let timestamps = Some(Timestamps { value: 1, echo: 1 });
        let options = TcpOptions { timestamps, ..TcpOptions::default() };
        let rules = vec![ThinRule { interface: None, port: None, network: None, receiver }];
        let thin = Thin::new(ThinConfig { rules, mtu: 1_500, most_flows, growth: 0 });
        Kernel { thin, next_id: 0, options, from: port(2, 5001), to: port(1, 40_000) }
    }

    /// A segment of the flow: the ACK's number counts full segments.
    fn segment(&self, acked: u32) -> Segment<'static> {
        let between = Segment::between(self.from, self.to);
        Segment { seq: Seq(7), ack: Seq(1) + acked * MSS, options: self.options.clone(), ..between }
    }

    /// Hands a packet in, and returns the verdicts.
    fn send(&mut self, at: u64, segment: &Segment<'_>) -> Vec<(u32, Verdict)> {
        self.bytes(at, &segment.packet())
    }

    fn bytes(&mut self, at: u64, packet: &[u8]) -> Vec<(u32, Verdict)> {
        self.next_id += 1;
        self.thin.handle_packet(Instant::from_millis(at), (self.next_id, 0), packet);
        self.verdicts()
    }

    fn ack(&mut self, at: u64, acked: u32) -> Vec<(u32, Verdict)> {
        self.send(at, &self.segment(acked))
    }

    fn wait(&mut self, until: u64) -> Vec<(u32, Verdict)> {
        self.thin.handle_timeout(Instant::from_millis(until));
        self.verdicts()
    }

    fn verdicts(&mut self) -> Vec<(u32, Verdict)> {
        let of = |(id, fate): (u32, AckFate)| (id, if fate.passes() { Pass } else { Drop });
        std::iter::from_fn(|| self.thin.poll_verdict()).map(of).collect()
    }
}

#[test]
fn a_newer_ack_takes_the_place_of_the_waiting_one_until_the_agent_has_enough() {
    let mut kernel = Kernel::new("delayed:d=6");
    assert_eq!(kernel.ack(0, 0), [(1, Pass)], "the first one shows where the flow is");
    assert_eq!(kernel.ack(1, 2), []);
    assert_eq!(kernel.ack(2, 4), [(2, Drop)]);
    assert_eq!(
        kernel.ack(3, 6),
        [(3, Drop), (4, Pass)],
        "an ACK counts for the segments that it acknowledges"
    );
    let counts = kernel.thin.counts();
    assert_eq!((counts.acks, counts.replaced, counts.held, counts.flows), (4, 2, 0, 1));
}

#[test]
fn the_last_ack_leaves_when_the_agent_or_the_ceiling_ends_its_wait() {
    for (spec, until) in [("delayed:d=6,hold=100ms", 101), ("delayed:d=60000,hold=490ms", 291)] {
        let mut kernel = Kernel::new(spec);
        kernel.ack(0, 0);
        assert_eq!(kernel.ack(1, 2), []);
        assert_eq!(kernel.thin.poll_timeout(), Some(Instant::from_millis(until)), "{spec}");
        assert_eq!(kernel.wait(until - 1), []);
        assert_eq!(kernel.wait(until), [(2, Pass)]);
        assert_eq!(kernel.thin.poll_timeout(), None);
    }
}

#[test]
fn data_and_fin_take_the_waiting_ack_along() {
    for (flags, payload) in [(Flags::ACK, &b"data"[..]), (Flags::ACK | Flags::FIN, &[])] {
        let mut kernel = Kernel::new("delayed:d=6");
        kernel.ack(0, 0);
        kernel.ack(1, 2);
        let segment = Segment { flags, payload, ..kernel.segment(2) };
        assert_eq!(kernel.send(2, &segment), [(2, Drop), (3, Pass)]);
        assert_eq!(kernel.thin.counts().ridden, 1);
        // The data goes again, and its ACK is older than the one that waits.
        let next = Segment {
            seq: segment.seq + u32::try_from(payload.len().max(1)).unwrap_or(0),
            ..kernel.segment(4)
        };
        assert_eq!(kernel.send(3, &next), []);
        assert_eq!(kernel.send(4, &segment), [(4, Pass), (5, Pass)]);
    }
}

type Change = Box<dyn Fn(&mut Segment<'static>)>;

#[test]
fn what_has_news_passes_at_once_behind_the_waiting_ack() {
    let block = SackBlock { left: Seq(1) + 8 * MSS, right: Seq(1) + 9 * MSS };
    let change = |change: fn(&mut Segment<'static>)| move |segment: &mut Segment<'static>| change(segment);
    let cases: [(&str, u32, Change, Verdict); 9] = [
        ("a duplicate", 2, Box::new(change(|_| {})), Pass),
        ("a duplicate with SACK", 2, Box::new(move |segment| segment.options.sack.push(block)), Pass),
        ("SACK and more data", 4, Box::new(move |segment| segment.options.sack.push(block)), Drop),
        ("a mark", 4, Box::new(change(|segment| segment.flags = Flags::ACK | Flags::ECE)), Drop),
        ("a window at zero", 4, Box::new(change(|segment| segment.window = 0)), Drop),
        ("an older number", 1, Box::new(change(|_| {})), Pass),
        ("a probe", 2, Box::new(change(|segment| segment.seq = Seq(6))), Pass),
        ("a reset", 2, Box::new(change(|segment| segment.flags = Flags::RST)), Pass),
        ("a SYN", 0, Box::new(change(|segment| segment.flags = Flags::SYN)), Pass),
    ];
    for (what, acked, change, of_waiting) in cases {
        let mut kernel = Kernel::new("delayed:d=6");
        kernel.ack(0, 0);
        kernel.ack(1, 2);
        let mut segment = kernel.segment(acked);
        change(&mut segment);
        assert_eq!(kernel.send(2, &segment), [(2, of_waiting), (3, Pass)], "{what}");
        assert_eq!(kernel.thin.poll_timeout(), None, "{what}");
    }
}

fn blocks(all: &[(u32, u32)]) -> Vec<SackBlock> {
    all.iter()
        .map(|(left, right)| SackBlock { left: Seq(1) + left * MSS, right: Seq(1) + right * MSS })
        .collect()
}

#[test]
fn within_a_hole_acks_with_known_sack_blocks_wait_and_news_of_blocks_pass() {
    type Acks<'a> = &'a [(u32, &'a [(u32, u32)], bool)];
    let known = &[(20, 22), (30, 33)][..];
    let cases: [(&str, Acks<'_>); 9] = [
        ("further in the hole", &[(4, known, false), (6, known, false)]),
        ("a part of a block, and one is left out", &[(4, &[(30, 32)], false), (6, &[(30, 32)], false)]),
        ("a duplicate", &[(2, known, true)]),
        ("a block grows", &[(4, &[(30, 34), (20, 22)], true)]),
        ("two become one", &[(4, &[(20, 33)], true)]),
        ("a further block", &[(4, &[(40, 41), (20, 22), (30, 33)], true), (6, &[(40, 41)], false)]),
        ("a block that an ACK left out", &[(4, &[(30, 33)], false), (6, known, true)]),
        ("data twice, below the number", &[(4, &[(1, 2), (20, 22)], true)]),
        ("data twice, in a block", &[(4, &[(20, 21), (20, 22)], true)]),
    ];
    for (what, acks) in cases.into_iter().chain([
        ("it fills a hole, and a block is left", &[(22, &[(30, 33)][..], true)][..]),
        ("it fills the last hole", &[(33, &[], true), (34, &[], false)]),
    ]) {
        let mut kernel = Kernel::new("delayed:d=60");
        let mut at = 0;
        let mut ack = |(acked, sack): (u32, &[(u32, u32)])| {
            let mut segment = kernel.segment(acked);
            segment.options.sack.extend(blocks(sack));
            at += 1;
            let verdicts = kernel.send(at, &segment);
            verdicts.contains(&(kernel.next_id, Pass))
        };
        assert!(ack((0, &[])) && !ack((2, &[])) && ack((2, known)), "{what}");
        for (acked, sack, passes) in acks {
            assert_eq!(ack((*acked, sack)), *passes, "{what}: {acked}");
        }
    }
}

#[test]
fn a_window_that_opens_from_zero_passes() {
    let mut kernel = Kernel::new("delayed:d=6");
    kernel.ack(0, 0);
    kernel.send(1, &Segment { window: 0, ..kernel.segment(2) });
    assert_eq!(kernel.ack(2, 2), [(3, Pass)], "the number did not move");
    kernel.send(3, &Segment { window: 0, ..kernel.segment(4) });
    assert_eq!(kernel.ack(4, 6), [(5, Pass)], "the number moved, too");
    assert_eq!(kernel.ack(5, 8), []);
}

#[test]
fn a_stranger_without_the_sequence_number_delays_and_drops_nothing() {
    let mut kernel = Kernel::new("delayed:d=60");
    kernel.ack(0, 0);
    kernel.ack(1, 2);
    let forged = |acked| Segment { seq: Seq(99), ..kernel.segment(acked) };
    let [ahead, again] = [forged(5_000), forged(5_002)];
    assert_eq!(kernel.send(2, &ahead), [(2, Pass), (3, Pass)]);
    assert_eq!(kernel.send(3, &again), []);
    assert_eq!(kernel.ack(4, 4), [(4, Pass), (5, Pass)], "the kernel's own ACK leaves at once");
    let data = Segment { payload: b"forged", ..ahead };
    kernel.ack(5, 6);
    assert_eq!(kernel.send(6, &data), [(6, Pass), (7, Pass)]);
}

#[test]
fn what_is_not_understood_passes_and_is_counted() {
    let mut kernel = Kernel::new("delayed:d=6");
    kernel.ack(0, 0);
    let plain = kernel.segment(2).packet();
    let with = |at: usize, byte: u8| {
        let mut packet = plain.clone();
        packet[at] = byte;
        packet
    };
    // Another version, IP options, a fragment, a tunnel, a short header of TCP, MD5 in place of timestamps.
    let strange = [with(0, 0x55), with(0, 0x46), with(6, 0x20), with(9, 4), with(32, 0x10), with(42, 19)];
    for (nth, packet) in strange.iter().map(Vec::as_slice).chain([&plain[..50], &[]]).enumerate() {
        let verdicts = kernel.bytes(1, packet);
        assert_eq!(verdicts, [(kernel.next_id, Pass)], "{nth}");
    }
    assert_eq!(kernel.thin.counts().untouched, 8);
}

#[test]
fn the_headers_of_a_packet_suffice_and_both_versions_of_ip_are_read() {
    let mut kernel = Kernel::new("delayed:d=6");
    kernel.from = "[fd09::2]:5001".parse().expect("an address");
    kernel.to = "[fd09::1]:40000".parse().expect("an address");
    kernel.ack(0, 0);
    assert_eq!(kernel.ack(1, 2), []);
    let data = Segment { payload: &[7; 1_000], ..kernel.segment(2) }.packet();
    assert_eq!(kernel.bytes(2, &data[..120]), [(2, Drop), (3, Pass)]);
    let next = Segment { seq: Seq(1_007), ..kernel.segment(4) };
    assert_eq!(kernel.send(3, &next), [], "the length of the data is known");
    // A header between IPv6 and TCP.
    let mut packet = kernel.segment(6).packet();
    packet[6] = 60;
    assert_eq!(kernel.bytes(4, &packet), [(5, Pass)]);
    assert_eq!(kernel.thin.counts().untouched, 1);
}

#[test]
fn a_full_table_lets_acks_of_further_flows_pass_and_forgets_idle_flows() {
    let mut kernel = Kernel::with("delayed:d=6", 3);
    let at_port = |kernel: &mut Kernel, at, last, acked| {
        kernel.to = port(1, last);
        kernel.ack(at, acked)
    };
    for last in 1..=3 {
        at_port(&mut kernel, 0, last, 0);
    }
    at_port(&mut kernel, 0, 1, 2);
    assert_eq!(at_port(&mut kernel, 1, 4, 0).len(), 1);
    assert_eq!((kernel.thin.counts().no_room, kernel.thin.counts().flows), (1, 3));
    // The flows 2 and 3 have acknowledged nothing.
    kernel.wait(500);
    at_port(&mut kernel, 2_500, 4, 0);
    assert_eq!((kernel.thin.counts().no_room, kernel.thin.counts().flows), (1, 2));
    assert_eq!(at_port(&mut kernel, 2_501, 1, 4), [], "the flow 1 is known still");
    kernel.thin.let_go();
    assert_eq!((kernel.verdicts().len(), kernel.thin.counts().flows), (1, 0));
}

#[test]
fn the_first_acks_of_a_flow_and_of_what_follows_a_pause_pass() {
    let mut kernel = Kernel::new("delayed:d=60");
    kernel.thin.config.growth = 2;
    kernel.ack(0, 0);
    assert_eq!(kernel.ack(1, 2), [(2, Pass)]);
    assert_eq!(kernel.ack(2, 4), [(3, Pass)]);
    assert_eq!(kernel.ack(3, 6), []);
    assert_eq!(kernel.ack(4, 8), [(4, Drop), (5, Pass)]);
    assert_eq!(kernel.ack(5, 10), []);
    kernel.wait(200);
    assert_eq!(kernel.ack(1_006, 12), [(7, Pass)]);
    assert_eq!(kernel.ack(1_007, 14), [(8, Pass)]);
    assert_eq!(kernel.ack(1_008, 16), []);
}

#[test]
fn a_sender_in_slow_start_gets_eight_acks_while_its_window_doubles() {
    let mut kernel = Kernel::new("delayed:d=60000");
    kernel.thin.config.growth = 16;
    kernel.ack(0, 0);
    let mut at = 0;
    for round in 4..8 {
        let left = (1 << round..2 << round).step_by(2).filter(|acked| {
            at += 1;
            kernel.ack(at, acked + 2).contains(&(kernel.next_id, Pass))
        });
        assert!((8..=12).contains(&left.count()), "the round of {} segments", 1 << round);
    }
}

#[test]
fn without_sack_what_fills_a_hole_passes_and_so_does_what_fills_a_part() {
    let mut kernel = Kernel::new("delayed:d=60");
    kernel.ack(0, 0);
    assert_eq!(kernel.ack(1, 2), []);
    // The segments 3, 6 and 9 of 10 are missing, and seven segments come behind the first hole.
    for nth in 0..7 {
        assert!(kernel.ack(2 + nth, 2).contains(&(kernel.next_id, Pass)));
    }
    for (at, acked) in [(100, 5), (200, 8), (300, 12)] {
        assert_eq!(kernel.ack(at, acked), [(kernel.next_id, Pass)], "{acked}");
    }
    assert_eq!(kernel.ack(301, 14), [], "nothing is missing any more");
}

#[test]
fn a_segment_is_as_long_as_acks_show() {
    let mut kernel = Kernel::new("delayed:d=4");
    let ack = |kernel: &mut Kernel, at, bytes: u32| {
        let segment = Segment { ack: Seq(1) + bytes, ..kernel.segment(0) };
        kernel.send(at, &segment)
    };
    for (at, bytes) in [(0, 0), (1, 524), (2, 1_048), (3, 1_572), (4, 2_096)] {
        ack(&mut kernel, at, bytes);
    }
    kernel.wait(200);
    assert_eq!(ack(&mut kernel, 201, 3_144), []);
    assert_eq!(ack(&mut kernel, 202, 4_192), [(6, Drop), (7, Pass)], "four segments");
    // A short one, then one of the size that the MTU allows.
    ack(&mut kernel, 203, 4_200);
    assert_eq!(ack(&mut kernel, 204, 4_200 + 2 * MSS), [(8, Drop)]);
}

/// What a kernel may send next, and how long after.
#[derive(Clone, Copy, Debug)]
enum Step {
    Ack(u32),
    /// The same, with the last SACK blocks.
    Known(u32),
    Duplicate,
    Sack(u32),
    Window(u16),
    Data(u16),
    /// Any bytes in the packet's headers.
    Broken(usize, u8),
}

fn any_step() -> impl Strategy<Value = (u64, u8, Step)> {
    let step = prop_oneof![
        6 => (1_u32..20).prop_map(Step::Ack),
        2 => (1_u32..5).prop_map(Step::Known),
        1 => Just(Step::Duplicate),
        1 => (1_u32..20).prop_map(Step::Sack),
        1 => prop::sample::select(&[0_u16, 1, 500][..]).prop_map(Step::Window),
        2 => (1_u16..2_000).prop_map(Step::Data),
        1 => (0_usize..52, any::<u8>()).prop_map(|(at, byte)| Step::Broken(at, byte)),
    ];
    (prop_oneof![3 => 0_u64..20, 1 => 0_u64..700], 0_u8..3, step)
}

const AGENTS: [&str; 9] =
    ["delayed:d=8", "aad", "tda", "dca", "linux", "adw", "tack", "delayed:d=65535,hold=490ms", "immediate"];

/// A packet that came in, until its verdict.
struct Waiting {
    since: Instant,
    /// The addresses and ports as they stand in the packet.
    flow: Vec<u8>,
    number: Seq,
    sack: Option<SackBlock>,
}

impl Waiting {
    fn of(now: u64, packet: &[u8], sack: Option<SackBlock>) -> Waiting {
        let number = u32::from_be_bytes(*packet[28..].first_chunk().expect("a number"));
        Waiting { since: Instant::from_millis(now), flow: packet[12..24].to_vec(), number: Seq(number), sack }
    }
}

/// Packets without a verdict, numbers of dropped ACKs, and the SACK blocks that left, by the addresses and ports of
/// their flows.
#[derive(Default)]
struct Watched {
    /// A packet with a wrong byte may have told of any block.
    is_broken: bool,
    told: Vec<(Vec<u8>, SackBlock)>,
    waiting: BTreeMap<u32, Waiting>,
    owed: BTreeMap<Vec<u8>, Seq>,
}

impl Watched {
    fn hear(&mut self, at: u64, verdicts: Vec<(u32, Verdict)>) {
        for (id, fate) in verdicts {
            let was = self.waiting.remove(&id).expect("one verdict for each packet");
            let held = Instant::from_millis(at).since(was.since);
            assert!(held <= CEILING, "{id} waited {held:?}");
            let told = was.sack.map(|block| (was.flow.clone(), block));
            if fate == Pass {
                self.told.extend(told);
            } else {
                let is_known = told.is_none_or(|told| self.told.contains(&told));
                assert!(is_known || self.is_broken, "{id}: its SACK block has not left");
            }
            let owes = self.owed.get(&was.flow).copied();
            if fate == Drop {
                self.owed.insert(was.flow, owes.map_or(was.number, |owes| owes.max(was.number)));
            } else if owes.is_some_and(|owes| was.number >= owes) {
                self.owed.remove(&was.flow);
            }
        }
    }

    /// Lets time pass, with a driver that is late by a part of a millisecond.
    fn wait(&mut self, kernel: &mut Kernel, until: u64) {
        while let Some(due) = kernel.thin.poll_timeout().filter(|due| *due <= Instant::from_millis(until)) {
            let at = due.0.div_ceil(1_000_000);
            let verdicts = kernel.wait(at);
            self.hear(at, verdicts);
        }
    }
}

proptest! {
    /// Each packet gets one verdict; no ACK waits for longer than the ceiling; one that is dropped is followed, in the
    /// verdicts, by a segment of its flow that acknowledges more.
    #[test]
    fn each_ack_leaves_in_time_or_a_newer_one_does(
        agent in 0..AGENTS.len(),
        steps in prop::collection::vec(any_step(), 1..80),
    ) {
        let mut kernel = Kernel::with(AGENTS[agent], 2);
        let (mut now, mut acked, mut seq, mut last) = (0, [0_u32; 3], [7_u32; 3], [None; 3]);
        let mut watched = Watched::default();
        for (pause, flow, step) in steps {
            now += pause;
            watched.wait(&mut kernel, now);
            let at = usize::from(flow);
            kernel.to = port(1, 40_000 + u16::from(flow));
            if let Step::Ack(more) | Step::Known(more) = step {
                acked[at] += more;
            }
            let mut segment = Segment { seq: Seq(seq[at]), ..kernel.segment(acked[at]) };
            let data = [0; 2_000];
            match step {
                Step::Ack(_) | Step::Duplicate => {}
                Step::Known(_) => segment.options.sack.extend(last[at]),
                Step::Sack(above) => {
                    let left = segment.ack + above * MSS;
                    last[at] = Some(SackBlock { left, right: left + MSS });
                    segment.options.sack.extend(last[at]);
                }
                Step::Window(window) => segment.window = window,
                Step::Data(len) => {
                    segment.payload = &data[..usize::from(len)];
                    seq[at] += u32::from(len);
                }
                Step::Broken(..) => watched.is_broken = true,
            }
            let mut packet = segment.packet();
            if let Step::Broken(place, byte) = step {
                packet[place] = byte;
            }
            let block = segment.options.sack.first().copied();
            watched.waiting.insert(kernel.next_id + 1, Waiting::of(now, &packet, block));
            let verdicts = kernel.bytes(now, &packet);
            // After a wrong number the next right one looks new.
            if !watched.is_broken && !matches!(step, Step::Ack(_) | Step::Known(_)) {
                prop_assert!(verdicts.contains(&(kernel.next_id, Pass)), "news pass at once");
            }
            watched.hear(now, verdicts);
        }
        watched.wait(&mut kernel, now + 291);
        prop_assert_eq!(kernel.thin.poll_timeout(), None);
        prop_assert!(watched.waiting.is_empty(), "the last ACK leaves");
        prop_assert!(watched.owed.is_empty(), "a dropped ACK is followed by a newer one: {:?}", watched.owed);
        prop_assert_eq!(kernel.thin.counts().held, 0);
    }
}

#[test]
fn waiting_acks_of_one_flow_do_not_change_the_waits_of_another() {
    let mut kernel = Kernel::new("delayed:d=6,hold=50ms");
    for last in [1, 2] {
        kernel.to = port(1, last);
        kernel.ack(0, 0);
    }
    kernel.ack(10, 2);
    kernel.to = port(1, 1);
    kernel.ack(20, 2);
    assert_eq!(kernel.wait(60), [(3, Pass)]);
    assert_eq!(kernel.thin.poll_timeout(), Some(Instant::ZERO + ms(70)));
    assert_eq!(kernel.wait(70), [(4, Pass)]);
}

/// Breaks the rule that its deadline lies in the future once it was asked.
#[derive(Debug, Default)]
struct Stuck {
    arrived: Option<Instant>,
    asked: u32,
}

impl ReceiverAgent for Stuck {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn on_arrival(&mut self, arrival: &Arrival, _: &RecvView<'_>) -> AckVerdict {
        self.arrived = Some(arrival.now);
        AckVerdict::Hold(Why::plain(AckRule::Deadline))
    }

    fn on_deadline(&mut self, _: Instant, _: &RecvView<'_>) -> AckVerdict {
        self.asked += 1;
        assert!(self.asked < 9, "it is asked over and over");
        AckVerdict::Hold(Why::plain(AckRule::Deadline))
    }

    fn on_ack(&mut self, _: &AckDecided, _: &RecvView<'_>) {}

    fn deadline(&self) -> Option<Instant> {
        self.arrived
    }

    fn note(&self) -> AckNote {
        AckNote::default()
    }

    fn gauges(&self, _: &mut dyn FnMut(&'static str, u64)) {}
}

#[test]
fn an_agent_that_holds_beyond_its_own_deadline_is_asked_once_and_the_ceiling_ends_the_wait() {
    let mut kernel = Kernel::new("delayed");
    kernel.thin.config.rules[0].receiver = Arc::new(|| Box::<Stuck>::default());
    kernel.ack(0, 0);
    assert_eq!(kernel.ack(1, 2), []);
    for at in [1, 2, 290] {
        assert_eq!(kernel.wait(at), []);
        assert_eq!(kernel.thin.poll_timeout(), Some(Instant::from_millis(291)));
    }
    assert_eq!(kernel.ack(290, 4), [(2, Drop)], "news wait again");
    assert_eq!(kernel.wait(291), [(3, Pass)]);
}

#[test]
fn the_hop_limit_of_a_syn_that_arrived_shows_an_agent_the_hops() {
    // Without a window `dca` acknowledges each 2nd segment up to three hops, each 5th up to nine, and then each 3rd.
    for (hop_limit, most) in [(64, 2), (62, 2), (61, 5), (56, 5), (54, 3), (128, 2)] {
        let mut kernel = Kernel::new("dca");
        for nth in 0..256 {
            let mut syn = |id, from, hop_limit| {
                let mut packet =
                    Segment { flags: Flags::SYN, ..Segment::between(from, kernel.from) }.packet();
                packet[8] = hop_limit;
                kernel.thin.handle_syn(id, &packet);
            };
            syn(1, port(3, nth), 40);
            if nth == 1 {
                syn(2, kernel.to, hop_limit);
            }
        }
        assert_eq!(kernel.verdicts(), [vec![(1, Pass); 2], vec![(2, Pass)], vec![(1, Pass); 254]].concat());
        kernel.ack(0, 0);
        let left = (1..=most).find(|acked| kernel.ack(1, *acked).contains(&(kernel.next_id, Pass)));
        assert_eq!(left, Some(most), "{hop_limit}");
    }
}

#[test]
fn data_that_came_twice_is_reported_whatever_the_agent_wants() {
    let mut kernel = Kernel::new("delayed");
    kernel.thin.config.rules[0].receiver = Arc::new(|| Box::<Stuck>::default());
    kernel.ack(0, 0);
    for (at, acked) in [(1, 22), (2, 24)] {
        let mut segment = kernel.segment(acked);
        segment.options.sack.extend(blocks(&[(20, 22), (30, 33)]));
        assert!(kernel.send(at, &segment).contains(&(kernel.next_id, Pass)), "{acked}");
    }
}

#[test]
fn each_verdict_says_why() {
    let mut kernel = Kernel::new("delayed:d=6,hold=100ms");
    let mut said = |at: u64, change: fn(&mut Segment<'static>), acked: u32| {
        let mut segment = kernel.segment(acked);
        change(&mut segment);
        kernel.thin.handle_timeout(Instant::from_millis(at));
        let id = u32::try_from(at).unwrap_or(0);
        kernel.thin.handle_packet(Instant::from_millis(at), (id, 0), &segment.packet());
        let said = std::iter::from_fn(|| kernel.thin.poll_verdict());
        said.map(|(id, fate)| format!("{id} {fate}")).collect::<Vec<_>>()
    };
    assert_eq!(said(0, |_| {}, 0), ["0 passed: one of the first of its flow, or after a pause"]);
    assert_eq!(said(1, |_| {}, 2), [""; 0]);
    let replaced = format!("1 dropped: replaced by the ACK of {}", 1 + 4 * MSS);
    assert_eq!(said(2, |_| {}, 4), [replaced]);
    assert_eq!(
        said(3, |segment| segment.window = 0, 4),
        ["2 left: a packet follows that does not take its place", "3 passed: a duplicate"]
    );
    assert_eq!(said(4, |_| {}, 5), ["4 passed: a window that closes or opens"]);
    assert_eq!(said(5, |_| {}, 6), [""; 0]);
    let ridden = format!("5 dropped: gone with data that acknowledge {}", 1 + 7 * MSS);
    assert_eq!(said(6, |segment| segment.payload = b"data", 7), [&*ridden, "6 passed: no pure ACK"]);
    assert_eq!(said(7, |segment| segment.seq += 4, 8), [""; 0]);
    let ended = ["7 left: the agent wants an ACK", "200 left: the agent wants an ACK"];
    assert_eq!(said(200, |segment| segment.seq += 4, 14), ended);
}

#[test]
fn the_first_rule_whose_conditions_hold_chooses_the_agent() {
    let mut kernel = Kernel::new("immediate");
    let agent = |spec: &str| StandardAgents::default().receiver(spec).expect("an agent that there is");
    let rule = |interface, port, network: Option<&str>| {
        let network = network.map(|text| text.parse().expect("a network"));
        ThinRule { interface, port, network, receiver: agent("delayed:d=6") }
    };
    let rules =
        [rule(Some(3), None, None), rule(None, Some(5001), None), rule(None, None, Some("10.9.0.1/32"))];
    for (nth, rule) in rules.into_iter().enumerate() {
        kernel.thin.config.rules.insert(0, rule);
        for (interface, port_of, last, matches) in [(3, 1, 9, 0), (0, 5001, 9, 1), (0, 1, 1, 2), (0, 1, 9, 3)]
        {
            (kernel.from, kernel.to) = (port(2, port_of), port(last, 40_000));
            for (id, acked) in [(1, 0), (2, 2)] {
                let packet = kernel.segment(acked).packet();
                kernel.thin.handle_packet(Instant::from_millis(0), (id, interface), &packet);
            }
            let waits = kernel.thin.counts().held == 1;
            assert_eq!(waits, matches == nth, "{interface} {port_of} {last}");
            kernel.thin.let_go();
            kernel.verdicts();
        }
        kernel.thin.config.rules.remove(0);
    }
    kernel.thin.config.rules.clear();
    assert_eq!(kernel.ack(0, 0), [(1, Pass)]);
    assert_eq!(kernel.thin.counts().flows, 0, "without a rule nothing is followed");
}
