use std::sync::mpsc;
use std::thread;

use hopwise_agents::StandardAgents;
use hopwise_core::endpoint::{AgentChoice, ConnectOptions, EndpointConfig, ListenOptions, Offload};
use hopwise_core::tcp::{AckMerge, BufferLimits, RtoConfig, TcpConfig};
use hopwise_core::wire::{Checksums, IpView, TcpView};
use hopwise_core::{LinkId, Machine, Payload, Rx};
use hopwise_testing::make;

use super::unpushed::PART;
use super::*;
use crate::link::Sent;
use crate::testing::{Far, Loop, Memory};
use crate::{Drives, Stack, StackConfig, StackError, describe};

const LONG: Duration = Duration::from_secs(3600);
const PATIENCE: Duration = Duration::from_secs(20);

fn config(address: &str) -> EndpointConfig {
    let address = address.parse().expect("a prefix");
    EndpointConfig::new(describe(&Memory::to(Loop::default()), LinkId(0), vec![address]), [1; 32])
}

fn endpoint(address: &str) -> Endpoint {
    make::endpoint(config(address))
}

fn carry(from: &mut Endpoint, to: &mut Endpoint) {
    let mut packet = Vec::new();
    while from.poll_transmit(Instant::ZERO, LinkId(0), Payload::Inline, &mut packet).is_some() {
        to.handle_packet(Instant::ZERO, &Rx::new(LinkId(0), &packet));
        packet.clear();
    }
}

/// An endpoint with an established connection.
fn connected() -> Endpoint {
    connected_with(config("10.7.0.1/24"))
}

/// The peer has sent a segment since, and with it its receive window.
fn connected_with(config: EndpointConfig) -> Endpoint {
    let peer = self::config("10.7.0.2/24");
    let [mut ours, mut peer] =
        [config.clone(), EndpointConfig { links: peer.links, ..config }].map(make::endpoint);
    let listener = peer.listen(None, 80, ListenOptions::default()).expect("the port is free");
    let to = "10.7.0.2:80".parse().expect("an address");
    ours.connect(Instant::ZERO, to, &ConnectOptions::default()).expect("there is a way");
    carry(&mut ours, &mut peer);
    carry(&mut peer, &mut ours);
    carry(&mut ours, &mut peer);
    let accepted = peer.accept(Instant::ZERO, listener).expect("the handshake is over");
    peer.send(Instant::ZERO, accepted, b"!").expect("it stands");
    carry(&mut peer, &mut ours);
    let id = ours.ids().next().expect("the connection");
    assert_eq!(ours.recv(Instant::ZERO, id, &mut [0; 1]), Ok(1));
    ours
}

/// Another thread may end the last connection that a stop waits for. Then no packet wakes the stop.
#[test]
fn who_stops_learns_what_another_thread_has_ended() {
    let driver = Driver::new(connected(), vec![Box::new(Memory::to(Loop::default()))], Vec::new());
    let shared = Arc::new(Shared::new(driver.expect("the kernel gives descriptors")));
    let (tell, ended) = mpsc::channel();
    let stopping = Arc::clone(&shared);
    thread::spawn(move || tell.send(stopping.finish(LONG, Drives::Runtime)));
    while !shared.inner.lock().is_finishing {
        thread::yield_now();
    }
    // No alarm may wake it.
    shared.poller.set_alarm(LONG);
    shared.act(|now, endpoint, _| endpoint.abort_all(now));
    assert_eq!(ended.recv_timeout(PATIENCE), Ok(Some(0)));
}

#[test]
fn a_stack_is_not_driven_by_a_runtime_without_io() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
    let _inside = runtime.enter();
    let config = StackConfig { drives: Drives::Runtime, ..StackConfig::new(config("10.7.0.1/24")) };
    let started = Stack::start(
        config,
        vec![Box::new(Memory::to(Loop::default()))],
        Box::new(StandardAgents::default()),
    );
    assert!(matches!(started, Err(StackError::NoRuntime)));
}

fn in_one_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime starts")
}

/// Runs the runtime's other tasks until they wait.
async fn let_all_run() {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
}

/// Asks again while it is answered, like a kernel that answers within the write call. No event announces the next
/// question.
#[derive(Debug)]
struct Asking {
    question: Vec<u8>,
    is_due: bool,
    asks: usize,
}

impl Far for Asking {
    fn says(&mut self) -> Option<Vec<u8>> {
        std::mem::take(&mut self.is_due).then(|| self.question.clone())
    }

    fn hears(&mut self, _packet: &[u8]) -> Sent {
        self.asks -= 1;
        self.is_due = self.asks > 0;
        Sent::Taken
    }
}

#[test]
fn a_task_that_drives_looks_for_answers_to_what_it_has_sent_before_it_sleeps() {
    const ASKS: usize = 10;
    let (mut peer, mut question) = (endpoint("10.7.0.2/24"), Vec::new());
    let to = "10.7.0.1:80".parse().expect("an address");
    peer.connect(Instant::ZERO, to, &ConnectOptions::default()).expect("there is a way");
    peer.poll_transmit(Instant::ZERO, LinkId(0), Payload::Inline, &mut question)
        .expect("a SYN, which nobody waits for");
    let link = Memory::to(Asking { question, is_due: true, asks: ASKS });
    let runtime = in_one_thread();
    let _inside = runtime.enter();
    // Otherwise, each packet would be answered before the next is read.
    let tcp = Arc::new(TcpConfig { ack_merge: AckMerge::Read, ..TcpConfig::modern() });
    let endpoint = EndpointConfig { tcp, ..config("10.7.0.1/24") };
    let config = StackConfig { drives: Drives::Runtime, ..StackConfig::new(endpoint) };
    let stack = Stack::start(config, vec![Box::new(link)], Box::new(StandardAgents::default()));
    let stack = stack.expect("the runtime has I/O");
    runtime.block_on(let_all_run());
    assert_eq!(stack.counters()[0].sent.packets, ASKS as u64);
}

/// With so much room that no data waits for an ACK or a timer.
fn roomy() -> Endpoint {
    with_room_for(4 << 20)
}

fn with_room_for(bytes: u32) -> Endpoint {
    let room = BufferLimits { initial: bytes, max: bytes };
    let modern = TcpConfig::modern();
    let rto = RtoConfig { min: LONG, max: LONG, initial: LONG, ..modern.rto };
    let (send_buffer, recv_buffer) = (room, room);
    let tcp = TcpConfig { send_buffer, recv_buffer, rto, sack: false, rack: false, nagle: false, ..modern };
    let agents = AgentChoice { senders: Some("[\"newreno:iw=1000\"]".into()), ..AgentChoice::default() };
    let mut config = EndpointConfig { tcp: Arc::new(tcp), agents, ..config("10.7.0.1/24") };
    config.links[0].offload = Sink::default().offload();
    connected_with(config)
}

/// Records the size of each packet's payload; it takes bundles.
#[derive(Clone, Debug, Default)]
struct Sink(Arc<Mutex<Vec<usize>>>);

impl Far for Sink {
    fn says(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn hears(&mut self, packet: &[u8]) -> Sent {
        let ip = IpView::parse(packet).expect("a packet");
        let tcp = TcpView::parse(ip.src, ip.dst, ip.payload, Checksums::Trust).expect("a segment");
        self.0.lock().push(tcp.payload.len());
        Sent::Taken
    }

    fn offload(&self) -> Offload {
        Offload::Cut { most_bytes: 65_535 }
    }
}

impl Sink {
    fn heard(&self) -> Vec<usize> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// A stack with one connection.
struct Writing {
    shared: Arc<Shared>,
    id: ConnId,
}

impl Writing {
    fn to(far: impl Far + 'static) -> Writing {
        Writing::from(roomy(), far)
    }

    fn from(endpoint: Endpoint, far: impl Far + 'static) -> Writing {
        let id = endpoint.ids().next().expect("the connection");
        let driver = Driver::new(endpoint, vec![Box::new(Memory::to(far))], Vec::new());
        let shared = Arc::new(Shared::new(driver.expect("the kernel gives descriptors")));
        Writing { shared, id }
    }

    fn driven_in(self, runtime: &tokio::runtime::Runtime) -> Writing {
        let _inside = runtime.enter();
        let readable = self.shared.readable().expect("the runtime has I/O");
        runtime.spawn(Arc::clone(&self.shared).run_in_runtime(readable, Duration::ZERO));
        runtime.block_on(let_all_run());
        self
    }

    fn write(&self, bytes: usize) {
        assert_eq!(self.shared.write(self.id, Bytes::There(&vec![0; bytes]), |taken, _, _| taken), Ok(bytes));
    }
}

fn driven_in(runtime: &tokio::runtime::Runtime) -> (Sink, Writing) {
    let sink = Sink::default();
    let writing = Writing::to(sink.clone()).driven_in(runtime);
    sink.heard();
    (sink, writing)
}

#[test]
fn who_writes_much_in_a_runtime_reads_the_links() {
    let runtime = in_one_thread();
    let writing = Writing::to(Loop::default()).driven_in(&runtime);
    let received = || writing.shared.counters()[0].received.packets;
    (0..3).for_each(|_| writing.write(WRITTEN_UNHEARD / 4));
    assert_eq!(received(), 0);
    writing.write(WRITTEN_UNHEARD / 4);
    assert!(received() > 0);
}

/// The bytes of 45 segments of 1448 bytes.
const FULL: usize = 45 * 1448;

#[test]
fn what_a_program_writes_in_a_row_leaves_in_full_packets_and_the_rest_once_it_lets_others_run() {
    let runtime = in_one_thread();
    let (sink, writing) = driven_in(&runtime);
    runtime.block_on(async {
        (0..3).for_each(|_| writing.write(4 * PART));
        assert_eq!(sink.heard(), [FULL; 12]);
        let_all_run().await;
        assert_eq!(sink.heard(), [12 * PART - 12 * FULL]);
    });
}

#[test]
fn only_what_a_large_write_leaves_over_waits_and_only_where_a_task_drives() {
    let runtime = in_one_thread();
    let (sink, writing) = driven_in(&runtime);
    writing.write(1);
    assert_eq!(sink.heard(), [1]);
    writing.write(PART);
    assert_eq!(sink.heard(), [FULL]);
    writing.write(1);
    assert_eq!(sink.heard(), [PART - FULL + 1], "what is small takes along what waits");
    let writing = Writing::to(sink.clone());
    writing.write(PART);
    assert_eq!(sink.heard(), [FULL, PART - FULL]);
}

/// The same for bytes that a program puts there: a room that it filled is a part, and one with less is the rest.
#[test]
fn what_a_program_fills_waits_only_while_it_has_more() {
    let runtime = in_one_thread();
    let (sink, writing) = driven_in(&runtime);
    let put = |bytes: usize| {
        let mut fill = |room: &mut [u8]| room.len().min(bytes);
        let bytes = Bytes::ToCome(PART, &mut fill);
        writing.shared.write(writing.id, bytes, |taken, _, _| taken).expect("there is room")
    };
    let first = put(PART);
    assert!(first < FULL, "{first}: the room grows by what comes");
    assert_eq!(sink.heard(), []);
    assert_eq!(put(100), 100);
    assert_eq!(sink.heard(), [first + 100]);
}

/// The program cannot write more, and no ACK would come.
#[test]
fn what_fills_the_buffer_waits_for_no_more() {
    let runtime = in_one_thread();
    let (sink, room) = (Sink::default(), 16 << 10);
    let writing = Writing::from(with_room_for(room), sink.clone()).driven_in(&runtime);
    sink.heard();
    assert_eq!(
        writing.shared.write(writing.id, Bytes::There(&[0; PART]), |taken, _, _| taken),
        Ok(room as usize)
    );
    assert_eq!(sink.heard(), [room as usize]);
}

#[test]
fn a_flush_waits_for_no_more() {
    let runtime = in_one_thread();
    let (sink, writing) = driven_in(&runtime);
    writing.write(PART);
    sink.heard();
    writing.shared.flush(writing.id);
    assert_eq!(sink.heard(), [PART - FULL]);
    writing.shared.flush(writing.id);
    assert_eq!(sink.heard(), []);
}

/// The driver's task would be woken on the writing thread, and would wait for it.
#[test]
fn nothing_waits_in_a_runtime_of_several_threads() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_io().build();
    let runtime = runtime.expect("a runtime starts");
    let (sink, writing) = driven_in(&runtime);
    while writing.shared.inner.lock().unheard.written_most == usize::MAX {
        thread::yield_now();
    }
    writing.write(PART);
    assert_eq!(sink.heard(), [FULL, PART - FULL]);
}

#[test]
fn what_a_write_leaves_over_goes_along_with_the_end() {
    let runtime = in_one_thread();
    let (sink, writing) = driven_in(&runtime);
    writing.write(PART);
    sink.heard();
    writing.shared.act(|now, endpoint, _| endpoint.shutdown(now, writing.id)).expect("it stands");
    assert_eq!(sink.heard(), [PART - FULL]);
}

#[test]
fn a_task_that_ends_leaves_nothing_unsent() {
    let runtime = in_one_thread();
    let (sink, writing) = driven_in(&runtime);
    writing.write(PART);
    sink.heard();
    drop(runtime);
    assert_eq!(sink.heard(), [PART - FULL]);
    writing.write(PART);
    assert_eq!(sink.heard(), [FULL, PART - FULL]);
}
