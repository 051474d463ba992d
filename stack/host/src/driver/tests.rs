use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hopwise_core::endpoint::{ConnectOptions, EndpointConfig, ListenOptions};
use hopwise_core::impairment::Impairment;
use hopwise_core::trace::{DropReason, TraceEvent};
use hopwise_core::wire::{Checksums, Flags, IpView, TcpView};
use hopwise_core::{Endpoint, LinkEvent, NextHop, Payload, QueueClass, Seq, Transmit};
use hopwise_testing::make::{self, Segment};
use parking_lot::Mutex;

use super::watching::UNWATCHED_FROM;
use super::*;
use crate::capture::Capture;
use crate::describe;
use crate::fault::Fault;
use crate::link::Sent;
use crate::observer::SeenPacket;
use crate::testing::{Far, Memory, numbered};

mod times;
mod turns;

/// Sends the number of packets that have come since its last answer.
#[derive(Default)]
struct Counting {
    unanswered: u16,
}

impl Machine for Counting {
    fn handle_packet(&mut self, _: Instant, _: &Rx<'_>) {
        self.unanswered += 1;
    }

    fn handle_link_event(&mut self, _: Instant, _: LinkId, _: &LinkEvent<'_>) {}

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant, _: LinkId, _: Payload, out: &mut Vec<u8>) -> Option<Transmit> {
        let count = std::mem::take(&mut self.unanswered);
        out.extend(count.to_be_bytes());
        let transmit = Transmit { to: NextHop::Link, class: QueueClass::Data, segment_bytes: None, id: 0 };
        (count > 0).then_some(transmit)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

/// A driver whose clock stands still: no turn takes so long that it ends by that.
fn driver_of<M: Machine>(
    machine: M,
    links: Vec<Box<dyn Link>>,
    observers: Vec<Box<dyn Observer>>,
) -> Driver<M> {
    let driver = Driver::new(machine, links, observers).expect("the kernel gives descriptors");
    driver.with_clock(Clock::stopped())
}

#[derive(Debug, Default)]
struct Waiting {
    packets: VecDeque<Vec<u8>>,
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
    is_full: Arc<AtomicBool>,
    gathers: bool,
}

impl Far for Waiting {
    fn says(&mut self) -> Option<Vec<u8>> {
        self.packets.pop_front()
    }

    fn hears(&mut self, packet: &[u8]) -> Sent {
        if self.is_full.load(Ordering::Relaxed) {
            return Sent::Full;
        }
        self.sent.lock().push(packet.to_vec());
        Sent::Taken
    }

    fn gathers(&self) -> bool {
        self.gathers
    }
}

/// The answers, iteration by iteration, to packets that wait on a link.
fn sent(answers: Answers, waiting: usize) -> Vec<Vec<usize>> {
    sent_over(1, answers, &vec![vec![7]; waiting])
}

fn sent_over(links: usize, answers: Answers, packets: &[Vec<u8>]) -> Vec<Vec<usize>> {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let link = |_| {
        let packets = packets.to_vec().into();
        let far = Waiting { packets, sent: Arc::clone(&sent), ..Waiting::default() };
        Box::new(Memory::to(far)) as Box<dyn Link>
    };
    let driver = driver_of(Counting::default(), (0..links).map(link).collect(), Vec::new());
    let mut driver = driver.with_answers(answers);
    let mut iterations = Vec::new();
    loop {
        let iteration = driver.iterate(&(0..links).collect::<Vec<_>>());
        iterations.push(std::mem::take(&mut *sent.lock()).iter().map(|packet| count_of(packet)).collect());
        if iteration == Iteration::Idle {
            return iterations;
        }
    }
}

fn count_of(packet: &[u8]) -> usize {
    packet.iter().fold(0, |count, byte| count << 8 | usize::from(*byte))
}

#[test]
fn answers_leave_after_a_few_packets_and_after_the_last() {
    assert_eq!(sent(Answers::EachFew, 3), [[3]]);
    assert_eq!(sent(Answers::EachFew, AT_ONE_TIME + 1), [[AT_ONE_TIME, 1]]);
}

#[test]
fn what_was_read_in_a_row_is_answered_together_though_not_later_than_at_the_turns_end() {
    assert_eq!(sent(Answers::EachIteration, 3), [[3]]);
    assert_eq!(sent(Answers::EachIteration, MOST_AT_ONCE + 1), [[MOST_AT_ONCE], [1]]);
}

/// The endpoint has room for all RSTs, SYN-ACKs with cookies and ICMP messages that one read leads to, but not for
/// those of two.
#[test]
fn what_one_read_leads_to_leaves_before_the_next() {
    let packets = vec![vec![7]; MOST_AT_ONCE];
    assert_eq!(sent_over(2, Answers::EachIteration, &packets), [vec![MOST_AT_ONCE; 2], vec![]]);
}

#[test]
fn a_turn_ends_after_so_many_bytes_too() {
    let bundles = vec![vec![7; 1 << 16]; MOST_BYTES_AT_ONCE / (1 << 16) + 1];
    assert_eq!(sent_over(1, Answers::EachIteration, &bundles), [[bundles.len() - 1], [1]]);
}

/// Packets come through a socket that the poller can watch.
#[derive(Debug)]
struct Socket(UnixDatagram);

impl Socket {
    fn pair() -> (UnixDatagram, Box<dyn Link>) {
        let (far, near) = UnixDatagram::pair().expect("the kernel gives sockets");
        near.set_nonblocking(true).expect("it can be set");
        (far, Box::new(Memory::to(Socket(near))))
    }
}

impl Far for Socket {
    fn says(&mut self) -> Option<Vec<u8>> {
        let mut packet = vec![0; 100];
        let bytes = self.0.recv(&mut packet).ok()?;
        packet.truncate(bytes);
        Some(packet)
    }

    fn hears(&mut self, _: &[u8]) -> Sent {
        Sent::Taken
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }
}

/// The links that the poller reports without waiting.
fn ready(driver: &Driver<Counting>) -> Vec<usize> {
    let mut ready = Vec::new();
    driver.poller().wait(&driver.clock(), Some(Instant::ZERO), &mut ready).expect("epoll works");
    ready
}

#[test]
fn a_busy_link_is_read_unwatched_until_its_driver_rests() {
    let (far, link) = Socket::pair();
    let say = || assert_eq!(far.send(&[7]).expect("there is room"), 1);
    let mut driver = driver_of(Counting::default(), vec![link], Vec::new());
    for _ in 1..UNWATCHED_FROM {
        say();
        assert_eq!(ready(&driver), [0]);
        driver.iterate(&[0]);
    }
    say();
    driver.iterate(&[0]);
    say();
    assert_eq!(ready(&driver), [], "nobody asks");
    driver.iterate(&[]);
    assert_eq!(driver.packets_in(), u64::from(UNWATCHED_FROM) + 1, "it is read nevertheless");
    say();
    driver.rest();
    assert_eq!(ready(&driver), [0], "what came before the rest is told, too");
}

#[test]
fn a_wait_is_a_rest() {
    let (far, link) = Socket::pair();
    let mut driver = driver_of(Counting::default(), vec![link], Vec::new());
    (0..UNWATCHED_FROM).for_each(|_| assert_eq!(far.send(&[7]).expect("there is room"), 1));
    driver.iterate(&[0]);
    assert_eq!(far.send(&[7]).expect("there is room"), 1);
    let mut ready = Vec::new();
    driver.wait(&mut ready).expect("epoll works");
    assert_eq!(ready, [0]);
}

/// A machine that sends one bundle of three segments.
struct Bundling {
    bundle: Option<Vec<u8>>,
}

const SEGMENT: usize = 1000;

impl Bundling {
    fn new() -> Bundling {
        let (from, to) = (([10, 7, 0, 1], 1).into(), ([10, 7, 0, 2], 2).into());
        let mut bundle = Segment::between(from, to);
        (bundle.seq, bundle.flags) = (Seq(7), Flags::ACK | Flags::PSH);
        bundle.payload = &[5; 2 * SEGMENT + 1];
        Bundling { bundle: Some(bundle.packet()) }
    }
}

impl Machine for Bundling {
    fn handle_packet(&mut self, _: Instant, _: &Rx<'_>) {}

    fn handle_link_event(&mut self, _: Instant, _: LinkId, _: &LinkEvent<'_>) {}

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant, _: LinkId, _: Payload, out: &mut Vec<u8>) -> Option<Transmit> {
        out.append(&mut self.bundle.take()?);
        let segment_bytes = Some(SEGMENT as u16);
        Some(Transmit { to: NextHop::Link, class: QueueClass::Data, segment_bytes, id: 3 })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

/// A link with room for so many packets.
#[derive(Debug)]
struct Narrow {
    room: Arc<Mutex<usize>>,
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
    cuts: bool,
}

impl Far for Narrow {
    fn says(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn hears(&mut self, packet: &[u8]) -> Sent {
        let mut room = self.room.lock();
        let Some(left) = room.checked_sub(1) else { return Sent::Full };
        *room = left;
        self.sent.lock().push(packet.to_vec());
        Sent::Taken
    }

    fn cuts(&self) -> bool {
        self.cuts
    }
}

/// The sequence number, payload length and PSH of each packet, whose checksums are checked.
fn segments(packets: &[Vec<u8>]) -> Vec<(Seq, usize, bool)> {
    let read = |packet: &Vec<u8>| {
        let ip = IpView::parse(packet).expect("a packet");
        let tcp = TcpView::parse(ip.src, ip.dst, ip.payload, Checksums::Verify).expect("a segment");
        (tcp.seq, tcp.payload.len(), tcp.flags.contains(Flags::PSH))
    };
    packets.iter().map(read).collect()
}

#[derive(Debug, Default)]
struct Seen(Arc<Mutex<Vec<(u64, usize)>>>);

impl Observer for Seen {
    fn on_packet(&mut self, packet: &SeenPacket<'_>) {
        self.0.lock().push((packet.id, packet.packet.len()));
    }

    fn on_trace(&mut self, _: &TraceEvent) {}
}

#[test]
fn a_bundle_is_cut_for_a_link_that_does_not_and_goes_on_where_the_link_was_full() {
    let (room, sent, seen) = (Arc::new(Mutex::new(1)), Arc::default(), Seen::default());
    let far = Narrow { room: Arc::clone(&room), sent: Arc::clone(&sent), cuts: false };
    let shown = Arc::clone(&seen.0);
    let links: Vec<Box<dyn Link>> = vec![Box::new(Memory::to(far))];
    let mut driver = driver_of(Bundling::new(), links, vec![Box::new(seen)]);
    driver.answer();
    assert_eq!(segments(&sent.lock()), [(Seq(7), SEGMENT, false)]);
    *room.lock() = 9;
    driver.iterate(&[0]);
    let rest = [(Seq(7 + SEGMENT as u32), SEGMENT, false), (Seq(7 + 2 * SEGMENT as u32), 1, true)];
    assert_eq!(segments(&sent.lock())[1..], rest);
    assert_eq!((driver.packets_out(), &shown.lock()[..]), (3, &[(3, 1040), (3, 1040), (3, 41)][..]));
    driver.answer();
    assert_eq!(sent.lock().len(), 3, "nothing leaves twice");
}

#[test]
fn a_link_that_cuts_is_given_the_bundle() {
    let sent = Arc::default();
    let far = Narrow { room: Arc::new(Mutex::new(9)), sent: Arc::clone(&sent), cuts: true };
    driver_of(Bundling::new(), vec![Box::new(Memory::to(far))], Vec::new()).answer();
    assert_eq!(segments(&sent.lock()), [(Seq(7), 2 * SEGMENT + 1, true)]);
}

/// As many as one read brings, and as many again that were due on a faulty link.
const SYNS: usize = 2 * MOST_AT_ONCE;

fn config(address: &str) -> EndpointConfig {
    let address = address.parse().expect("a prefix");
    EndpointConfig::new(describe(&Memory::to(Waiting::default()), LinkId(0), vec![address]), [1; 32])
}

fn endpoint(address: &str) -> Endpoint {
    make::endpoint(config(address))
}

fn syns() -> VecDeque<Vec<u8>> {
    let mut peer = endpoint("10.7.0.2/24");
    let one = |_| {
        let to = "10.7.0.1:80".parse().expect("an address");
        peer.connect(Instant::ZERO, to, &ConnectOptions::default()).expect("there is a way");
        let mut syn = Vec::new();
        peer.poll_transmit(Instant::ZERO, LinkId(0), Payload::Inline, &mut syn).expect("a SYN");
        syn
    };
    (0..SYNS).map(one).collect()
}

/// An endpoint that answers each SYN statelessly, and a faulty link on which all SYNs are due at once.
fn flooded(answers: Answers, under: Waiting) -> Driver<Endpoint> {
    let late = Impairment { delay: Duration::from_nanos(1), ..Impairment::NONE };
    let mut link =
        Fault::wrap(Box::new(Memory::to(under)), late, Impairment::NONE, 1).expect("sound settings");
    for _ in 0..SYNS {
        assert_eq!(link.receive(Instant::ZERO, &mut [0; 1500]), Received::Dropped, "it comes later");
    }
    let mut ours = endpoint("10.7.0.1/24");
    let options = ListenOptions { half_open: 0, ..ListenOptions::default() };
    ours.listen(None, 80, options).expect("the port is free");
    let driver = driver_of(ours, vec![Box::new(link)], Vec::new()).with_answers(answers);
    driver.clock().advance(late.delay);
    driver
}

fn drops(driver: &Driver<Endpoint>) -> u64 {
    DropReason::ALL.iter().map(|reason| driver.machine().drops(*reason)).sum()
}

#[test]
fn all_syns_that_are_due_in_one_turn_are_answered() {
    for answers in [Answers::EachFew, Answers::EachIteration] {
        let sent = Arc::default();
        let under = Waiting { packets: syns(), sent: Arc::clone(&sent), ..Waiting::default() };
        let mut driver = flooded(answers, under);
        driver.iterate(&[0]);
        assert_eq!((driver.packets_in(), sent.lock().len(), drops(&driver)), (SYNS as u64, SYNS, 0));
    }
}

#[test]
fn syns_whose_answers_find_no_room_are_counted() {
    for answers in [Answers::EachFew, Answers::EachIteration] {
        let (sent, is_full) = (Arc::default(), Arc::new(AtomicBool::new(true)));
        let under = Waiting {
            packets: syns(),
            sent: Arc::clone(&sent),
            is_full: Arc::clone(&is_full),
            ..Waiting::default()
        };
        let mut driver = flooded(answers, under);
        driver.iterate(&[0]);
        assert_eq!((driver.packets_in(), sent.lock().len()), (SYNS as u64, 0));
        is_full.store(false, Ordering::Relaxed);
        driver.iterate(&[0]);
        assert!(drops(&driver) > 0, "what waits is bounded");
        assert_eq!(sent.lock().len() as u64 + drops(&driver), SYNS as u64);
    }
}

/// A machine with one packet, whose end it lends.
#[derive(Default)]
struct Lending {
    has_left: bool,
}

impl Machine for Lending {
    fn handle_packet(&mut self, _: Instant, _: &Rx<'_>) {}

    fn handle_link_event(&mut self, _: Instant, _: LinkId, _: &LinkEvent<'_>) {}

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(
        &mut self,
        _: Instant,
        _: LinkId,
        payload: Payload,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        out.extend_from_slice(if payload == Payload::Lent { b"head" } else { b"headwhole" });
        let transmit = Transmit { to: NextHop::Link, class: QueueClass::Data, segment_bytes: None, id: 0 };
        (!std::mem::replace(&mut self.has_left, true)).then_some(transmit)
    }

    fn lent(&self) -> (&[u8], &[u8]) {
        (b"front", b"back")
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

struct Nobody;

impl Observer for Nobody {
    fn on_packet(&mut self, _: &SeenPacket<'_>) {}

    fn on_trace(&mut self, _: &TraceEvent) {}
}

#[test]
fn a_link_that_gathers_is_lent_what_no_observer_wants_to_see_whole() {
    let idle = Capture::default().tap(0);
    let watched: [Vec<Box<dyn Observer>>; 3] = [Vec::new(), vec![Box::new(idle)], vec![Box::new(Nobody)]];
    for (observers, left) in watched.into_iter().zip(["headfrontback", "headfrontback", "headwhole"]) {
        let sent = Arc::default();
        let far = Waiting { gathers: true, sent: Arc::clone(&sent), ..Waiting::default() };
        driver_of(Lending::default(), vec![Box::new(Memory::to(far))], observers).answer();
        assert_eq!(*sent.lock(), [left.as_bytes()]);
    }
}

/// Counts its packets and events, and watches while its flag is set.
#[derive(Clone, Default)]
struct Sometimes {
    watches: Arc<AtomicBool>,
    shown: Arc<Mutex<[usize; 2]>>,
}

impl Observer for Sometimes {
    fn is_watching(&self) -> bool {
        self.watches.load(Ordering::Relaxed)
    }

    fn on_packet(&mut self, _: &SeenPacket<'_>) {
        self.shown.lock()[0] += 1;
    }

    fn on_trace(&mut self, _: &TraceEvent) {
        self.shown.lock()[1] += 1;
    }
}

#[test]
fn who_does_not_watch_is_shown_nothing_and_later_nothing_of_before() {
    let observer = Sometimes::default();
    let link = Box::new(Memory::to(Waiting::default()));
    let mut driver = driver_of(endpoint("10.7.0.1/24"), vec![link], vec![Box::new(observer.clone())]);
    let mut shown_of_a_syn = |watches| {
        observer.watches.store(watches, Ordering::Relaxed);
        let to = "10.7.0.2:80".parse().expect("an address");
        driver.act(|now, ours| ours.connect(now, to, &ConnectOptions::default())).expect("there is a way");
        std::mem::take(&mut *observer.shown.lock())
    };
    assert_eq!([(); 2].map(|()| shown_of_a_syn(false)), [[0, 0]; 2]);
    let [packets, events] = shown_of_a_syn(true);
    assert_eq!((packets, shown_of_a_syn(false)), (1, [0, 0]));
    assert_eq!(shown_of_a_syn(true), [1, events]);
}

#[test]
fn what_a_full_link_was_lent_is_held_as_a_whole() {
    let (sent, is_full) = (Arc::default(), Arc::new(AtomicBool::new(true)));
    let far = Waiting {
        gathers: true,
        sent: Arc::clone(&sent),
        is_full: Arc::clone(&is_full),
        ..Waiting::default()
    };
    let mut driver = driver_of(Lending::default(), vec![Box::new(Memory::to(far))], Vec::new());
    driver.answer();
    is_full.store(false, Ordering::Relaxed);
    driver.iterate(&[0]);
    assert_eq!(*sent.lock(), [b"headfrontback"]);
}
