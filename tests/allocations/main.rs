//! Allocations: a running transfer's segments make none, and neither do idle connections.

mod driver;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use allocation_counter::{AllocationInfo, measure};
use hopwise_agents::Descriptor;
use hopwise_agents::param::DefaultValue;
use hopwise_agents::registry::{self, Kind};
use hopwise_core::endpoint::{
    AgentChoice, ConnId, ConnectOptions, EndpointConfig, LinkConfig, ListenOptions, Offload,
};
use hopwise_core::ip::Prefix;
use hopwise_core::tcp::{BufferLimits, TcpConfig};
use hopwise_core::trace::{StateName, TraceEvent};
use hopwise_core::{Endpoint, Instant, LinkEvent, LinkId, Machine, Payload, Rx, Transmit};
use hopwise_testing::make::endpoint;
use hopwise_testing::memory::{Bundles, PathConfig, TwoHosts};

const PORT: u16 = 80;
const MTU: u16 = 1500;
const SEGMENT_BYTES: u64 = 1448;
const LARGEST_PACKET: usize = 65_535;
/// A limit that only a stopped transfer reaches.
const FAR_AWAY: Duration = Duration::from_secs(100_000);

/// An endpoint and the heap use of its calls; the heap use of the world around is not counted.
struct Counted {
    endpoint: Endpoint,
    heap: AllocationInfo,
}

impl Counted {
    fn new(last_octet: u8, tcp: &TcpConfig, offload: Offload) -> Counted {
        let address = IpAddr::from(Ipv4Addr::new(10, 0, 0, last_octet));
        let subnet = Prefix::new(address, 24).expect("24 bits are fewer than 32");
        let link = LinkConfig { offload, ..LinkConfig::wire(0, MTU, vec![subnet]) };
        let mut config = EndpointConfig::new(link, [last_octet; 32]);
        config.tcp = Arc::new(tcp.clone());
        Counted { endpoint: endpoint(config), heap: AllocationInfo::default() }
    }

    fn call<T>(&mut self, act: impl FnOnce(&mut Endpoint) -> T) -> T {
        let mut done = None;
        self.heap += measure(|| done = Some(act(&mut self.endpoint)));
        done.expect("it was called")
    }
}

impl Machine for Counted {
    fn handle_packet(&mut self, now: Instant, rx: &Rx<'_>) {
        self.call(|endpoint| endpoint.handle_packet(now, rx));
    }

    fn handle_link_event(&mut self, now: Instant, link: LinkId, event: &LinkEvent<'_>) {
        self.call(|endpoint| endpoint.handle_link_event(now, link, event));
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.call(|endpoint| endpoint.handle_timeout(now));
    }

    fn poll_transmit(
        &mut self,
        now: Instant,
        link: LinkId,
        payload: Payload,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        out.reserve(LARGEST_PACKET);
        self.call(|endpoint| endpoint.poll_transmit(now, link, payload, out))
    }

    fn lent(&self) -> (&[u8], &[u8]) {
        self.endpoint.lent()
    }

    fn keep_trace(&mut self, is_kept: bool) {
        self.endpoint.keep_trace(is_kept);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }

    fn drain_trace(&mut self, sink: &mut dyn FnMut(&TraceEvent)) {
        self.call(|endpoint| endpoint.drain_trace(sink));
    }
}

/// A connection over a path of 20 Mbit/s, and an application at each end.
struct Transfer {
    hosts: TwoHosts<Counted>,
    sender: ConnId,
    receiver: ConnId,
    read: u64,
}

impl Transfer {
    fn open(tcp: &TcpConfig, loss_ppm: u32) -> Transfer {
        Transfer::open_over(tcp, Offload::None, loss_ppm)
    }

    /// Opens a connection; where the links take bundles, the path carries them.
    fn open_over(tcp: &TcpConfig, offload: Offload, loss_ppm: u32) -> Transfer {
        Transfer::open_with(&AgentChoice::default(), tcp, offload, loss_ppm)
    }

    fn open_with(agents: &AgentChoice, tcp: &TcpConfig, offload: Offload, loss_ppm: u32) -> Transfer {
        let (client, mut server) = (Counted::new(1, tcp, offload), Counted::new(2, tcp, offload));
        let listener = server.endpoint.listen(
            None,
            PORT,
            ListenOptions { agents: agents.clone(), ..ListenOptions::default() },
        );
        let listener = listener.expect("no other listener");
        let path = PathConfig { bundles: Bundles::Carry, ..PathConfig::clean(Duration::from_millis(5)) };
        let path = path.with(|path| path.bits_per_second = 20_000_000);
        let mut hosts = TwoHosts::new(client, server, path.with(|path| path.loss_ppm = loss_ppm), path, 7);
        let to = SocketAddr::from(([10, 0, 0, 2], PORT));
        let sender = hosts
            .a
            .endpoint
            .connect(
                Instant::ZERO,
                to,
                &ConnectOptions { agents: agents.clone(), ..ConnectOptions::default() },
            )
            .expect("a subnet of ours");
        let mut receiver = None;
        assert!(hosts.run(Instant::from_secs(10), |hosts| {
            let now = hosts.now();
            receiver = receiver.or_else(|| hosts.b.endpoint.accept(now, listener));
            receiver.is_some()
        }));
        Transfer { hosts, sender, receiver: receiver.expect("it was accepted"), read: 0 }
    }

    /// Lets `segments` more pass, and the rest of the last one.
    fn pass(&mut self, segments: u64) {
        let Transfer { hosts, sender, receiver, read } = self;
        let wanted = *read + segments * SEGMENT_BYTES;
        let (data, mut sink) = ([7; 4096], [0; 4096]);
        let is_done = hosts.run(hosts.now() + FAR_AWAY, |hosts| {
            let now = hosts.now();
            for end in [&mut hosts.a, &mut hosts.b] {
                while end.call(Endpoint::poll_event).is_some() {}
            }
            while hosts.a.call(|endpoint| endpoint.send(now, *sender, &data).expect("it is open")) > 0 {}
            loop {
                match hosts.b.call(|endpoint| endpoint.recv(now, *receiver, &mut sink).expect("it is open")) {
                    0 => break,
                    bytes => *read += bytes as u64,
                }
            }
            *read >= wanted
        });
        assert!(is_done);
    }

    /// The programs stop writing; bytes on their way arrive and are read.
    fn rest(&mut self, time: Duration) {
        let Transfer { hosts, receiver, .. } = self;
        let mut sink = [0; 4096];
        hosts.run(hosts.now() + time, |hosts| {
            let now = hosts.now();
            while hosts.b.call(|endpoint| endpoint.recv(now, *receiver, &mut sink).expect("it is open")) > 0 {
            }
            false
        });
    }

    /// The memory that the endpoints report for the two ends of the connection.
    fn allocated(&self) -> [usize; 2] {
        let Transfer { hosts, sender, receiver, .. } = self;
        [hosts.a.endpoint.allocated(*sender), hosts.b.endpoint.allocated(*receiver)]
            .map(|bytes| bytes.expect("it is open"))
    }

    /// The heap use of both endpoints since the last call.
    fn heap(&mut self) -> AllocationInfo {
        let mut heap = AllocationInfo::default();
        for end in [&mut self.hosts.a, &mut self.hosts.b] {
            heap += std::mem::take(&mut end.heap);
        }
        heap
    }
}

/// Buffers of one size: they stop growing early.
fn steady() -> TcpConfig {
    let limits = BufferLimits { initial: 256 << 10, max: 256 << 10 };
    TcpConfig { send_buffer: limits, recv_buffer: limits, ..TcpConfig::modern() }
}

#[test]
fn segments_of_a_running_transfer_touch_no_heap() {
    let mut transfer = Transfer::open(&steady(), 0);
    transfer.pass(5_000);
    assert!(transfer.heap().count_total > 0);
    transfer.pass(10_000);
    assert_eq!(transfer.heap(), AllocationInfo::default());
}

#[test]
fn loss_recovery_touches_no_heap() {
    let mut transfer = Transfer::open(&steady(), 10_000);
    let recoveries = |transfer: &Transfer| {
        let Transfer { hosts, sender, .. } = transfer;
        hosts.a.endpoint.info(hosts.now(), *sender).expect("it is open").stats.fast_retransmits
    };
    transfer.pass(10_000);
    let (before, _) = (recoveries(&transfer), transfer.heap());
    transfer.pass(10_000);
    assert!(recoveries(&transfer) > before + 10);
    assert_eq!(transfer.heap(), AllocationInfo::default());
}

/// Every receiver and every sender, also the agents that need the other end's notes and the path's length.
#[test]
fn no_agent_touches_the_heap() {
    let of = |kind| registry::all().filter(move |agent: &&Descriptor| agent.kind() == kind);
    let written = |agent: &Descriptor| {
        let needed = agent.params.iter().any(|param| param.default == DefaultValue::Required);
        let (inner, given) = (if agent.wraps() { "(dca)" } else { "" }, if needed { ":4" } else { "" });
        format!("{}{inner}{given}", agent.name)
    };
    let receivers =
        of(Kind::Receiver).map(|agent| (written(agent), "[newreno, tell-cwnd, ask-rate:4]".to_owned()));
    let senders = of(Kind::Sender).map(|agent| {
        let owner = if agent.owns_cwnd() { "" } else { "newreno, " };
        // Where no queue holds it, the window of copa grows without end, and so does what a connection keeps for it.
        let bound = if agent.name == "copa" { ", limit:16" } else { "" };
        ("dup-count(tarr)".to_owned(), format!("[{owner}{}{bound}]", written(agent)))
    });
    let mut tcp = steady();
    tcp.hops.configured = Some(5);
    for (receiver, senders) in receivers.chain(senders) {
        let name = format!("{receiver} with {senders}");
        let agents = AgentChoice { receiver: Some(receiver), senders: Some(senders), shadows: None };
        let mut transfer = Transfer::open_with(&agents, &tcp, Offload::None, 5_000);
        transfer.pass(3_000);
        transfer.heap();
        transfer.pass(1_000);
        assert_eq!(transfer.heap(), AllocationInfo::default(), "{name}");
    }
}

#[test]
fn bundles_touch_no_heap() {
    let mut transfer = Transfer::open_over(&steady(), Offload::Cut { most_bytes: 65_535 }, 10_000);
    transfer.pass(10_000);
    assert!(transfer.heap().count_total > 0);
    transfer.pass(10_000);
    assert_eq!(transfer.heap(), AllocationInfo::default());
}

/// 20 MiB for 10,000 of them leave a program some 400 bytes each for its stream and its task.
#[test]
fn an_idle_connection_holds_little() {
    const CONNECTIONS: u16 = 100;
    const MOST_BYTES: i64 = 1_600;
    let mut transfer = Transfer::open(&TcpConfig::modern(), 0);
    transfer.rest(Duration::from_secs(5));
    transfer.heap();
    let now = transfer.hosts.now();
    for _ in 0..CONNECTIONS {
        let to = SocketAddr::from(([10, 0, 0, 2], PORT));
        let connect = |endpoint: &mut Endpoint| endpoint.connect(now, to, &ConnectOptions::default());
        transfer.hosts.a.call(connect).expect("a port each");
    }
    transfer.rest(Duration::from_secs(5));
    let connections =
        |end: &Counted| end.endpoint.states().filter(|state| *state == StateName::Established).count();
    for end in [&transfer.hosts.a, &transfer.hosts.b] {
        assert_eq!(connections(end), 1 + usize::from(CONNECTIONS));
        let bytes = end.heap.bytes_current / i64::from(CONNECTIONS);
        assert!(bytes <= MOST_BYTES, "{bytes}");
    }
}

#[test]
fn an_idle_connection_has_given_back_what_its_transfer_took() {
    let mut transfer = Transfer::open(&TcpConfig::modern(), 0);
    transfer.rest(Duration::from_secs(5));
    let fresh = transfer.allocated();
    transfer.pass(1_000);
    assert!(transfer.allocated()[0] > fresh[0] + 4096);
    transfer.rest(Duration::from_secs(5));
    assert_eq!(transfer.allocated(), fresh);
    // The endpoints' own tables have reached their final size.
    transfer.heap();
    transfer.pass(1_000);
    transfer.rest(Duration::from_secs(5));
    let heap = transfer.heap();
    assert!(heap.count_total > 0, "{heap:?}");
    assert_eq!(heap.bytes_current, 0, "{heap:?}");
}
