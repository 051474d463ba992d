use std::sync::mpsc;
use std::thread;

use hopwise_agents::StandardAgents;
use hopwise_core::endpoint::{ConnectOptions, EndpointConfig, ListenOptions};
use hopwise_core::tcp::{AckMerge, TcpConfig};
use hopwise_core::{LinkId, Machine, Rx};

use super::*;
use crate::link::Sent;
use crate::testing::{Far, Loop, Memory};
use crate::{Stack, StackConfig, StackError, describe};

const LONG: Duration = Duration::from_secs(3600);
const PATIENCE: Duration = Duration::from_secs(20);

fn config(address: &str) -> EndpointConfig {
    let address = address.parse().expect("a prefix");
    EndpointConfig::new(describe(&Memory::to(Loop::default()), LinkId(0), vec![address]), [1; 32])
}

fn endpoint(address: &str) -> Endpoint {
    Endpoint::new(config(address), Box::new(StandardAgents::default())).expect("the agents are known")
}

fn carry(from: &mut Endpoint, to: &mut Endpoint) {
    let mut packet = Vec::new();
    while from.poll_transmit(Instant::ZERO, LinkId(0), &mut packet).is_some() {
        to.handle_packet(Instant::ZERO, &Rx::new(LinkId(0), &packet));
        packet.clear();
    }
}

/// With a connection that stands.
fn connected() -> Endpoint {
    let (mut ours, mut peer) = (endpoint("10.7.0.1/24"), endpoint("10.7.0.2/24"));
    peer.listen(None, 80, ListenOptions::default()).expect("the port is free");
    let to = "10.7.0.2:80".parse().expect("an address");
    ours.connect(Instant::ZERO, to, &ConnectOptions::default()).expect("there is a way");
    carry(&mut ours, &mut peer);
    carry(&mut peer, &mut ours);
    ours
}

/// Another thread of the runtime may do what a stop waits for: no packet is left then to wake the one that stops.
#[test]
fn who_stops_learns_what_another_thread_has_ended() {
    let driver = Driver::new(connected(), vec![Box::new(Memory::to(Loop::default()))], Vec::new());
    let shared = Arc::new(Shared::new(driver.expect("the kernel gives descriptors")));
    let (tell, told) = mpsc::channel();
    let stopping = Arc::clone(&shared);
    thread::spawn(move || tell.send(stopping.finish(LONG, Drives::Runtime)));
    while !shared.inner.lock().is_finishing {
        thread::yield_now();
    }
    // Nothing else is to wake it.
    shared.poller.set_alarm(LONG);
    shared.act(|now, endpoint, _| endpoint.abort_all(now));
    assert_eq!(told.recv_timeout(PATIENCE), Ok(0));
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

/// Lets the runtime's other tasks run as far as they go without waiting.
async fn let_all_run() {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
}

/// Asks again while it is answered, as a kernel does that the call reaches which writes to it; nothing else tells that
/// there is more to read.
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
    peer.poll_transmit(Instant::ZERO, LinkId(0), &mut question).expect("a SYN, which nobody waits for");
    let link = Memory::to(Asking { question, is_due: true, asks: ASKS });
    let runtime = in_one_thread();
    let _inside = runtime.enter();
    // Else each packet would be answered before the next is read.
    let tcp = Arc::new(TcpConfig { ack_merge: AckMerge::Read, ..TcpConfig::modern() });
    let endpoint = EndpointConfig { tcp, ..config("10.7.0.1/24") };
    let config = StackConfig { drives: Drives::Runtime, ..StackConfig::new(endpoint) };
    let stack = Stack::start(config, vec![Box::new(link)], Box::new(StandardAgents::default()));
    let stack = stack.expect("the runtime has I/O");
    runtime.block_on(let_all_run());
    assert_eq!(stack.counters()[0].sent.packets, ASKS as u64);
}

#[test]
fn who_writes_much_in_a_runtime_reads_the_links() {
    let driver = Driver::new(connected(), vec![Box::new(Memory::to(Loop::default()))], Vec::new());
    let shared = Arc::new(Shared::new(driver.expect("the kernel gives descriptors")));
    let runtime = in_one_thread();
    let _inside = runtime.enter();
    let readable = shared.readable().expect("the runtime has I/O");
    runtime.spawn(Arc::clone(&shared).run_in_runtime(readable, Duration::ZERO));
    runtime.block_on(let_all_run());
    let read_after = |bytes| {
        let written = shared.write(|now, endpoint, _| {
            let id = endpoint.ids().next().expect("the connection");
            endpoint.send(now, id, b"data").expect("it stands");
            Poll::Ready(Ok(bytes))
        });
        assert!(matches!(written, Poll::Ready(Ok(_))));
        shared.counters()[0].received.packets
    };
    let before = read_after(1);
    assert_eq!(read_after(WRITTEN_UNHEARD / 2), before);
    assert!(read_after(WRITTEN_UNHEARD / 2) > before);
}
