//! One bulk flow from A to B over a path in memory, and its figures at the end.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hopwise_agents::{Profile, StandardAgents};
use hopwise_core::endpoint::{
    AgentChoice, ConnId, ConnectOptions, EndpointConfig, LinkConfig, ListenOptions, ListenerId, Offload,
};
use hopwise_core::ip::Prefix;
use hopwise_core::tcp::{Info, TcpConfig};
use hopwise_core::trace::{TraceEvent, TraceKind};
use hopwise_core::wire::Checksums;
use hopwise_core::{Endpoint, Instant};
pub(crate) use hopwise_testing::make::ms;
use hopwise_testing::memory::{End, PathConfig, Tap, TwoHosts};

pub(crate) const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
pub(crate) const B: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
pub(crate) const PORT: u16 = 7;

/// The ingredients of a flow; each test changes its own.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) tcp: [TcpConfig; 2],
    pub(crate) profile: Profile,
    pub(crate) senders: &'static str,
    pub(crate) receiver: &'static str,
    pub(crate) shadows: &'static str,
    pub(crate) mtu: [u16; 2],
    /// The offload of A's link.
    pub(crate) offload: Offload,
    /// The checksum mode of both links.
    pub(crate) checksums: Checksums,
    pub(crate) to_b: PathConfig,
    pub(crate) to_a: PathConfig,
    pub(crate) seed: u64,
    pub(crate) bytes: u64,
    /// B reads this much every `read_every`; everything at once when it is 0.
    pub(crate) read_bytes: usize,
    pub(crate) read_every: Duration,
}

impl Setup {
    /// The defaults over a path of this round trip, at least 10 ms.
    pub(crate) fn over(round_trip: Duration) -> Setup {
        Setup {
            tcp: [TcpConfig::modern(), TcpConfig::modern()],
            profile: Profile::Modern,
            senders: "[cubic]",
            receiver: "delayed",
            shadows: "[]",
            mtu: [1500, 1500],
            offload: Offload::None,
            checksums: Checksums::Verify,
            to_b: PathConfig::clean(round_trip / 2),
            to_a: PathConfig::clean(round_trip / 2),
            seed: 1,
            bytes: 1_000_000,
            read_bytes: 0,
            read_every: Duration::ZERO,
        }
    }

    pub(crate) fn rate(mut self, bits_per_second: u64, queue_packets: usize) -> Setup {
        for path in [&mut self.to_b, &mut self.to_a] {
            path.impairment.bits_per_second = bits_per_second;
            path.impairment.queue_packets = queue_packets;
        }
        self
    }

    pub(crate) fn both(mut self, change: impl Fn(&mut TcpConfig)) -> Setup {
        self.tcp.iter_mut().for_each(change);
        self
    }

    fn endpoint(&self, which: usize, address: IpAddr) -> Endpoint {
        let prefix = Prefix::new(address, 24).expect("a subnet");
        let offload = if which == 0 { self.offload } else { Offload::None };
        let checksums = self.checksums;
        let link = LinkConfig { offload, checksums, ..LinkConfig::wire(0, self.mtu[which], vec![prefix]) };
        let mut config = EndpointConfig::new(link, [which as u8 + 1; 32]);
        config.tcp = Arc::new(self.tcp[which].clone());
        config.agents = AgentChoice {
            receiver: Some(self.receiver.into()),
            senders: Some(self.senders.into()),
            shadows: Some(self.shadows.into()),
        };
        config.trace_events = 1 << 22;
        Endpoint::new(config, Box::new(StandardAgents::new(self.profile))).expect("specs are right")
    }

    pub(crate) fn hosts(&self) -> TwoHosts<Endpoint> {
        TwoHosts::new(self.endpoint(0, A), self.endpoint(1, B), self.to_b, self.to_a, self.seed)
    }

    pub(crate) fn start(&self) -> Flow {
        self.start_tapped(None)
    }

    pub(crate) fn start_tapped(&self, tap: Option<Tap>) -> Flow {
        let mut hosts = self.hosts();
        if let Some(tap) = tap {
            hosts = hosts.with_tap(tap);
        }
        let listener = hosts.b.listen(None, PORT, ListenOptions::default()).expect("a free port");
        let now = hosts.now();
        let to = SocketAddr::new(B, PORT);
        let client = hosts.a.connect(now, to, &ConnectOptions::default()).expect("a route");
        Flow {
            hosts,
            setup: self.clone(),
            listener,
            client,
            server: None,
            written: 0,
            received: 0,
            next_read: Instant::ZERO,
            ended: None,
        }
    }

    /// Runs to the end of the transfer.
    pub(crate) fn run(&self, until: Instant) -> Flow {
        let mut flow = self.start();
        flow.run(until);
        flow
    }
}

pub(crate) struct Flow {
    pub(crate) hosts: TwoHosts<Endpoint>,
    setup: Setup,
    listener: ListenerId,
    pub(crate) client: ConnId,
    pub(crate) server: Option<ConnId>,
    pub(crate) written: u64,
    pub(crate) received: u64,
    next_read: Instant,
    /// The time when B had read everything.
    pub(crate) ended: Option<Instant>,
}

/// Byte at this place of the stream.
fn byte_at(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl Flow {
    pub(crate) fn run(&mut self, until: Instant) -> bool {
        loop {
            self.act();
            if self.ended.is_some() {
                return true;
            }
            if self.hosts.now() >= until {
                return false;
            }
            let reads_by_the_clock = self.setup.read_bytes > 0 && self.server.is_some();
            let pause = if reads_by_the_clock { self.next_read.min(until) } else { until };
            self.hosts.step(pause);
        }
    }

    /// Lets both applications act after any event.
    pub(crate) fn act(&mut self) {
        let now = self.hosts.now();
        if self.server.is_none() {
            self.server = self.hosts.b.accept(now, self.listener);
        }
        while self.written < self.setup.bytes {
            let room = u64::from(self.hosts.a.writable(self.client));
            let len = room.min(self.setup.bytes - self.written).min(65_536);
            if len == 0 {
                break;
            }
            let data: Vec<u8> = (self.written..self.written + len).map(byte_at).collect();
            let taken = self.hosts.a.send(now, self.client, &data).expect("open");
            self.written += taken as u64;
            if taken == 0 {
                break;
            }
        }
        self.read();
        if self.received == self.setup.bytes && self.ended.is_none() {
            self.ended = Some(now);
        }
    }

    /// A further connection to the port, once its handshake is over.
    pub(crate) fn accept_another(&mut self) -> Option<ConnId> {
        self.server?;
        self.hosts.b.accept(self.hosts.now(), self.listener)
    }

    /// A writes this much more as soon as there is room.
    pub(crate) fn offer(&mut self, bytes: u64) {
        self.setup.bytes = self.written + bytes;
        self.act();
        self.hosts.flush();
    }

    /// The same, but all its packets are lost.
    pub(crate) fn offer_and_lose(&mut self, bytes: u64) {
        self.hosts.flush();
        self.hosts.path_from(End::A).is_down = true;
        self.offer(bytes);
        self.hosts.path_from(End::A).is_down = false;
    }

    /// Lets time pass, even if everything has arrived.
    pub(crate) fn wait(&mut self, time: Duration) {
        let until = self.hosts.now() + time;
        while self.hosts.now() < until {
            self.act();
            self.hosts.step(until);
        }
        self.act();
        self.hosts.flush();
    }

    /// Runs until the connection is established at both ends and no packet is under way.
    pub(crate) fn settle(&mut self) {
        self.setup.bytes = self.written;
        self.wait(Duration::from_secs(2));
    }

    fn read(&mut self) {
        let Some(server) = self.server else { return };
        let now = self.hosts.now();
        if self.setup.read_bytes > 0 && now < self.next_read {
            return;
        }
        self.next_read = now + self.setup.read_every;
        let most = if self.setup.read_bytes > 0 { self.setup.read_bytes } else { usize::MAX };
        let mut out = vec![0; (self.hosts.b.readable(server) as usize).min(most)];
        let read = self.hosts.b.recv(now, server, &mut out).unwrap_or(0);
        for (offset, byte) in (self.received..).zip(&out[..read]) {
            assert_eq!(*byte, byte_at(offset), "byte {offset} of the stream");
        }
        self.received += read as u64;
    }

    pub(crate) fn sender(&self) -> Info {
        self.hosts.a.info(self.hosts.now(), self.client).expect("a connection")
    }

    pub(crate) fn trace(&mut self, end: End) -> Vec<TraceEvent> {
        let mut events = Vec::new();
        self.hosts.drain_trace(end, &mut |event| events.push(*event));
        events
    }

    /// Payload bits per second until the end of the transfer, or until now.
    pub(crate) fn goodput(&self) -> u64 {
        let time = self.ended.unwrap_or(self.hosts.now()).since(Instant::ZERO);
        (u128::from(self.received) * 8_000_000_000 / time.as_nanos().max(1)) as u64
    }

    pub(crate) fn count(&mut self, end: End, wanted: impl Fn(&TraceKind) -> bool) -> usize {
        self.trace(end).iter().filter(|event| wanted(&event.kind)).count()
    }
}
