//! 100,000 connections in one endpoint: the memory of an idle one, and the cost of one or a thousand busy ones among
//! them.

use std::hint::black_box;
use std::net::SocketAddr;
use std::time::Duration;

use hopwise_core::endpoint::{ConnId, ConnectOptions, ListenOptions, ListenerId};
use hopwise_core::tcp::{KeepAlive, TcpConfig};
use hopwise_core::{Endpoint, Instant, Machine, Rx};
use hopwise_testing::memory::Random;

use crate::clock::{cost_ns, rate};
use crate::ours::{self, LINK, Settings, address, endpoint, give_one, run_timers, take};
use crate::pair::{End, Queue};
use crate::row::{Better, Row, in_turn, median_of};

const CONNECTIONS: u32 = 100_000;
/// The connections of each listener: one port has too few client ports for all of them.
const PER_PORT: u32 = 25_000;
const FIRST_PORT: u16 = 80;
const FIRST_CLIENT_PORT: u16 = 20_000;
/// The most memory of an idle connection, agents, timers and its place in the tables included.
const MOST_BYTES: f64 = 2048.0;
/// As many as are busy in a large server at a time.
const BUSY: u32 = 1_000;
/// What the busy connections keep of their rate beside the idle ones.
const SOME_BUSY_GOAL: f64 = 0.85;
/// A crowd may at most double the cost of a busy connection's packets.
const BUSY_GOAL: f64 = 0.5;
const MESSAGE_BYTES: usize = 1460;
const MESSAGES: u64 = 20_000;

pub(crate) fn rows() -> Vec<Row> {
    let rss_before = rss_bytes();
    let mut crowd = Crowd::new(CONNECTIONS);
    // Both ends of all connections live in this process.
    let rss = (rss_bytes() - rss_before) / f64::from(2 * CONNECTIONS);
    let heap = crowd.server_bytes as f64 / f64::from(CONNECTIONS);
    let mut alone = Crowd::new(1);
    let (busy, quiet) = in_turn(|| crowd.busy(), || alone.busy());
    let mut few = Crowd::new(BUSY);
    let (some_busy, some_quiet) = in_turn(|| crowd.some_busy(), || few.some_busy());
    let limit = ("the limit", MOST_BYTES);
    vec![
        Row::beside("idle connection", "bytes", Better::Less, heap, limit).meant_to_be(1.0),
        Row::beside("idle connection, resident", "bytes", Better::Less, rss, limit).meant_to_be(1.0),
        Row::beside("busy one of 100,000", "messages/s", Better::More, busy, ("ours alone", quiet))
            .meant_to_be(BUSY_GOAL),
        Row::beside(
            "1,000 busy of 100,000",
            "messages/s",
            Better::More,
            some_busy,
            ("1,000 alone", some_quiet),
        )
        .meant_to_be(SOME_BUSY_GOAL),
        Row::alone("spread over 100,000", "messages/s", median_of(|| crowd.spread())),
        Row::alone("next of 100,000 deadlines", "ns", median_of(|| crowd.next_deadline())),
        Row::alone("one of 100,000 timers runs out", "ns", median_of(|| crowd.run_timers())),
    ]
}

/// Clients in one endpoint, servers in the other. Keep-alive is on: each connection has a deadline.
struct Crowd {
    client: Endpoint,
    server: Endpoint,
    /// The ids at both ends of each connection.
    ids: Vec<(ConnId, ConnId)>,
    to_client: Queue,
    to_server: Queue,
    now: Instant,
    random: Random,
    /// Heap that the server holds.
    server_bytes: i64,
}

impl Crowd {
    fn new(connections: u32) -> Crowd {
        let tcp = TcpConfig { keep_alive: Some(KeepAlive::default()), ..ours::tcp() };
        let mut crowd = Crowd {
            client: endpoint(End::A, Settings::default(), tcp.clone()),
            server: endpoint(End::B, Settings::default(), tcp),
            ids: Vec::with_capacity(connections as usize),
            to_client: Queue::default(),
            to_server: Queue::default(),
            now: Instant::ZERO,
            random: Random::new(1, 1),
            server_bytes: 0,
        };
        let ports = connections.div_ceil(PER_PORT) as u16;
        let mut listen = |nth| crowd.server.listen(None, FIRST_PORT + nth, ListenOptions::default());
        let listeners: Vec<ListenerId> = (0..ports).map(|nth| listen(nth).expect("a port each")).collect();
        for nth in 0..connections {
            crowd.open(nth, &listeners);
        }
        crowd.rest();
        crowd
    }

    fn open(&mut self, nth: u32, listeners: &[ListenerId]) {
        let place = nth / PER_PORT;
        let to = SocketAddr::new(address(End::B), FIRST_PORT + place as u16);
        let local_port = Some(FIRST_CLIENT_PORT + (nth % PER_PORT) as u16);
        let options = ConnectOptions { local_port, ..ConnectOptions::default() };
        let client = self.client.connect(self.now, to, &options).expect("a port each");
        self.exchange();
        let (now, listener) = (self.now, listeners[place as usize]);
        let server = self.counted(|server| server.accept(now, listener)).expect("the handshake is over");
        self.ids.push((client, server));
    }

    /// Acts on the server, and counts the growth of its heap.
    fn counted<T>(&mut self, act: impl FnOnce(&mut Endpoint) -> T) -> T {
        let mut done = None;
        let heap = allocation_counter::measure(|| done = Some(act(&mut self.server)));
        self.server_bytes += heap.bytes_current;
        done.expect("it was called")
    }

    /// Packets go to and fro until there are none, and no program reads the news.
    fn exchange(&mut self) {
        let mut is_over = false;
        run_timers(&mut self.client, self.now);
        let now = self.now;
        self.counted(|server| run_timers(server, now));
        while !is_over {
            let has_asked = give_one(&mut self.client, self.now, &mut self.to_server);
            while let Some(packet) = self.to_server.next().map(|arriving| arriving.packet) {
                let now = self.now;
                self.counted(|server| server.handle_packet(now, &Rx::new(LINK, &packet)));
                self.to_server.keep(packet);
            }
            let (now, mut to_client) = (self.now, std::mem::take(&mut self.to_client));
            let has_answered = self.counted(|server| give_one(server, now, &mut to_client));
            self.to_client = to_client;
            take(&mut self.client, self.now, &mut self.to_client);
            is_over = !has_asked && !has_answered;
        }
        while self.client.poll_event().is_some() {}
        while self.counted(|server| server.poll_event().is_some()) {}
    }

    /// Timers run out as they are due, until all data is acknowledged and buffers are given back.
    fn rest(&mut self) {
        let until = self.now + Duration::from_secs(5);
        self.exchange();
        while let Some(next) =
            [self.client.poll_timeout(), self.server.poll_timeout()].into_iter().flatten().min()
            && next <= until
        {
            self.now = next;
            self.exchange();
        }
        self.now = until;
    }

    /// Sends a message from client to server, where it is read and acknowledged.
    fn message(&mut self, nth: usize) {
        let ((client, server), mut message) = (self.ids[nth], [7; MESSAGE_BYTES]);
        self.now += Duration::from_micros(10);
        run_timers(&mut self.client, self.now);
        run_timers(&mut self.server, self.now);
        self.client.send(self.now, client, &message).expect("it is open");
        while give_one(&mut self.client, self.now, &mut self.to_server) {}
        take(&mut self.server, self.now, &mut self.to_server);
        let read = self.server.recv(self.now, server, &mut message).expect("it is open");
        assert_eq!(read, MESSAGE_BYTES, "it came in one piece");
        while give_one(&mut self.server, self.now, &mut self.to_client) {}
        take(&mut self.client, self.now, &mut self.to_client);
    }

    fn busy(&mut self) -> f64 {
        let nth = self.ids.len() / 2;
        rate(MESSAGES, || (0..MESSAGES).for_each(|_| self.message(nth)))
    }

    /// Messages over connections that were opened at even distances.
    fn some_busy(&mut self) -> f64 {
        self.over(BUSY as usize)
    }

    fn spread(&mut self) -> f64 {
        self.over(self.ids.len())
    }

    /// Messages over this many connections, each drawn anew.
    fn over(&mut self, busy: usize) -> f64 {
        let apart = self.ids.len() / busy;
        let rate = rate(MESSAGES, || {
            for _ in 0..MESSAGES {
                let nth = self.random.below(busy as u64) as usize * apart;
                self.message(nth);
            }
        });
        self.rest();
        rate
    }

    fn next_deadline(&mut self) -> f64 {
        const ASKED: u64 = 1_000_000;
        cost_ns(ASKED, || {
            for _ in 0..ASKED {
                black_box(black_box(&self.server).poll_timeout());
            }
        })
    }

    /// The server's keep-alive timers run out, one after the other.
    fn run_timers(&mut self) -> f64 {
        self.now += KeepAlive::default().idle + Duration::from_secs(1);
        let cost = cost_ns(self.ids.len() as u64, || self.server.handle_timeout(self.now));
        self.exchange();
        cost
    }
}

/// The process's resident memory, in bytes.
fn rss_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("");
    let kib = line.trim().trim_end_matches(" kB").parse::<f64>();
    kib.map_or(f64::NAN, |kib| kib * 1024.0)
}
