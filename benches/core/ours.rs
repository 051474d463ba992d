//! Two of our endpoints.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hopwise_core::endpoint::{
    AgentChoice, ConnId, ConnectOptions, EndpointConfig, LinkConfig, ListenOptions, ListenerId, Offload,
    SourceRoutes,
};
use hopwise_core::ip::Prefix;
use hopwise_core::tcp::{AckMerge, BufferLimits, TcpConfig};
use hopwise_core::wire::Checksums;
use hopwise_core::{Endpoint, Instant, LinkId, Machine, Payload, Rx};
use hopwise_testing::make;

use crate::pair::{
    Acks, Arriving, BUFFER_BYTES, BUNDLE_BYTES, End, Packets, Pair, Queue, SEGMENT_BYTES, Sums,
};

pub(crate) const PORT: u16 = 80;
pub(crate) const LINK: LinkId = LinkId(0);
/// The headers around the payload: IPv4, TCP and timestamps.
const HEADERS: usize = 20 + 20 + 12;
/// Longer than anything waits after a close.
const AFTER_CLOSE_US: u64 = 61_000_000;

/// The use of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trace {
    /// The default ring, which no program reads.
    Kept,
    /// Read by the driver after each packet that was handled and each burst that has left.
    Drained,
    Off,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) sums: Sums,
    pub(crate) acks: Acks,
    pub(crate) packets: Packets,
    pub(crate) trace: Trace,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { sums: Sums::On, acks: Acks::Delayed, packets: Packets::Segments, trace: Trace::Kept }
    }
}

pub(crate) fn address(end: End) -> IpAddr {
    let last = match end {
        End::A => 1,
        End::B => 2,
    };
    Ipv4Addr::new(10, 0, 0, last).into()
}

/// SACK, timestamps, RACK and all else that is on by default, with buffers of a fixed size.
pub(crate) fn tcp() -> TcpConfig {
    let size = BUFFER_BYTES as u32;
    let limits = BufferLimits { initial: size, max: size };
    TcpConfig { send_buffer: limits, recv_buffer: limits, ..TcpConfig::modern() }
}

pub(crate) fn endpoint(end: End, settings: Settings, tcp: TcpConfig) -> Endpoint {
    let subnet = Prefix::new(address(end), 24).expect("24 bits are fewer than 32");
    let offload = match settings.packets {
        Packets::Segments => Offload::None,
        Packets::Bundles => Offload::Cut { most_bytes: BUNDLE_BYTES as u32 },
    };
    let mtu = (SEGMENT_BYTES + HEADERS) as u16;
    let link = LinkConfig { offload, ..LinkConfig::wire(LINK.0, mtu, vec![subnet]) };
    let mut config = EndpointConfig::new(link, [end as u8; 32]);
    // A TUN that joins segments has this setting: one ACK for a read.
    let ack_merge = if settings.packets == Packets::Bundles { AckMerge::Read } else { tcp.ack_merge };
    config.tcp = Arc::new(TcpConfig { ack_merge, ..tcp });
    config.source_routes = SourceRoutes::Refuse;
    config.checksums = match settings.sums {
        Sums::On => Checksums::Verify,
        Sums::Off => Checksums::Trust,
    };
    if settings.trace == Trace::Off {
        config.trace_events = 0;
    }
    let receiver = match settings.acks {
        Acks::Delayed => "delayed",
        Acks::Immediate => "immediate",
    };
    config.agents = AgentChoice { receiver: Some(receiver.into()), ..AgentChoice::default() };
    make::endpoint(config)
}

/// Hands all waiting packets in, and keeps their buffers.
pub(crate) fn take(endpoint: &mut Endpoint, now: Instant, queue: &mut Queue) {
    while let Some(Arriving { packet, segment_bytes }) = queue.next() {
        endpoint.handle_packet(now, &Rx { segment_bytes, ..Rx::new(LINK, &packet) });
        queue.keep(packet);
    }
}

/// Runs the timers that are due.
pub(crate) fn run_timers(endpoint: &mut Endpoint, now: Instant) {
    if endpoint.poll_timeout().is_some_and(|at| at <= now) {
        endpoint.handle_timeout(now);
    }
}

/// Puts the endpoint's next packet into the queue.
pub(crate) fn give_one(endpoint: &mut Endpoint, now: Instant, queue: &mut Queue) -> bool {
    let mut packet = queue.spare();
    packet.clear();
    let left = endpoint.poll_transmit(now, LINK, Payload::Inline, &mut packet);
    match left {
        Some(transmit) => queue.put(packet, transmit.segment_bytes),
        None => queue.keep(packet),
    }
    left.is_some()
}

pub(crate) struct Ours {
    ends: [Endpoint; 2],
    ids: [Option<ConnId>; 2],
    /// The packets to each end.
    queues: [Queue; 2],
    listener: ListenerId,
    now: Instant,
    trace: Trace,
    pub(crate) events: u64,
}

impl Ours {
    pub(crate) fn new(settings: Settings) -> Ours {
        let mut ends = [End::A, End::B].map(|end| endpoint(end, settings, tcp()));
        let listener = ends[1].listen(None, PORT, ListenOptions::default()).expect("no other listener");
        Ours {
            ends,
            ids: [None; 2],
            queues: Default::default(),
            listener,
            now: Instant::ZERO,
            trace: settings.trace,
            events: 0,
        }
    }

    fn id(&self, end: End) -> ConnId {
        self.ids[end as usize].expect("the connection was opened")
    }

    fn drain_trace(&mut self, end: End) {
        if self.trace == Trace::Drained {
            let events = &mut self.events;
            self.ends[end as usize].drain_trace(&mut |_| *events += 1);
        }
    }
}

impl Pair for Ours {
    fn wait_us(&mut self, us: u64) {
        self.now += Duration::from_micros(us);
        for end in &mut self.ends {
            run_timers(end, self.now);
            while end.poll_event().is_some() {}
        }
    }

    fn open(&mut self) {
        let to = SocketAddr::new(address(End::B), PORT);
        let id = self.ends[0]
            .connect(self.now, to, &ConnectOptions::default())
            .expect("the peer is in our subnet");
        self.ids[0] = Some(id);
        for _ in 0..3 {
            self.give(End::A);
            self.take(End::B);
            self.give(End::B);
            self.take(End::A);
        }
        self.ids[1] = self.ends[1].accept(self.now, self.listener);
    }

    fn close(&mut self) {
        for end in [End::A, End::B] {
            let id = self.id(end);
            self.ends[end as usize].close(self.now, id).expect("it was open");
            self.give(end);
            self.take(end.other());
        }
        self.give(End::A);
        self.take(End::B);
        self.wait_us(AFTER_CLOSE_US);
        self.give(End::A);
        self.give(End::B);
        assert!(self.ends.iter().all(|end| end.connections() == 0), "closed and forgotten");
    }

    fn write(&mut self, end: End, data: &[u8]) -> usize {
        let id = self.id(end);
        self.ends[end as usize].send(self.now, id, data).expect("it is open")
    }

    fn read(&mut self, end: End, out: &mut [u8]) -> usize {
        let id = self.id(end);
        self.ends[end as usize].recv(self.now, id, out).expect("it is open")
    }

    fn take(&mut self, end: End) {
        take(&mut self.ends[end as usize], self.now, &mut self.queues[end as usize]);
        self.drain_trace(end);
    }

    fn give_one(&mut self, end: End) -> bool {
        let to = end.other() as usize;
        let has_left = give_one(&mut self.ends[end as usize], self.now, &mut self.queues[to]);
        if !has_left {
            self.drain_trace(end);
        }
        has_left
    }

    fn full_segments(&self) -> u64 {
        self.queues.iter().map(Queue::full_segments).sum()
    }
}
