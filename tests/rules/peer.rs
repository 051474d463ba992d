//! One endpoint, and a peer that sends a test's segments, one by one.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hopwise_core::endpoint::{ConnId, ConnectOptions, EndpointConfig, LinkConfig, ListenOptions, ListenerId};
use hopwise_core::ip::Prefix;
use hopwise_core::tcp::TcpConfig;
use hopwise_core::wire::{Checksums, Ecn, Flags, IpHeader, IpView, TcpHeader, TcpOptions, TcpView, protocol};
use hopwise_core::{Endpoint, Instant, Machine, Payload, Rx, Seq};
use hopwise_testing::make::endpoint;
use hopwise_testing::memory::LINK;

use super::flow::{A, B, PORT};

pub(crate) const SYN: Flags = Flags::SYN;
pub(crate) const ACK: Flags = Flags::ACK;
pub(crate) const RST: Flags = Flags::RST;

/// A segment from the endpoint to the peer.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) seq: Seq,
    pub(crate) ack: Seq,
    pub(crate) flags: Flags,
    pub(crate) len: usize,
    /// IPv4's identification.
    pub(crate) id: u16,
}

/// The endpoint under test at `A`, and its peer at `B`.
pub(crate) struct Host {
    pub(crate) endpoint: Endpoint,
    pub(crate) now: Instant,
    /// The peer's port, and the endpoint's.
    pub(crate) ports: (u16, u16),
    pub(crate) seq: Seq,
    pub(crate) ack: Seq,
    pub(crate) window: u16,
    pub(crate) ecn: Ecn,
    pub(crate) options: TcpOptions,
}

/// All options off, except what a test turns on.
pub(crate) fn plain() -> TcpConfig {
    TcpConfig { sack: false, timestamps: false, window_scale: false, ecn: false, ..TcpConfig::modern() }
}

impl Host {
    pub(crate) fn new(tcp: TcpConfig) -> Host {
        Host::with(tcp, |_| {})
    }

    pub(crate) fn with(tcp: TcpConfig, change: impl Fn(&mut EndpointConfig)) -> Host {
        let link = LinkConfig::wire(0, 1500, vec![Prefix::new(A, 24).expect("a subnet")]);
        let mut config = EndpointConfig::new(link, [7; 32]);
        config.tcp = Arc::new(tcp);
        change(&mut config);
        Host {
            endpoint: endpoint(config),
            now: Instant::from_secs(1),
            ports: (5000, PORT),
            seq: Seq(1_000_000),
            ack: Seq(0),
            window: u16::MAX,
            ecn: Ecn::NotEct,
            options: TcpOptions::default(),
        }
    }

    pub(crate) fn listen(&mut self, options: ListenOptions) -> ListenerId {
        self.endpoint.listen(None, PORT, options).expect("a free port")
    }

    /// A peer that has connected to a listener.
    pub(crate) fn accepted(tcp: TcpConfig) -> (Host, ConnId) {
        let mut host = Host::new(tcp);
        let listener = host.listen(ListenOptions::default());
        host.open();
        let id = host.endpoint.accept(host.now, listener).expect("a connection");
        (host, id)
    }

    /// A SYN, the SYN-ACK, and the ACK of that.
    pub(crate) fn open(&mut self) -> Heard {
        self.say(SYN, &[]);
        let answer = self.hear_one();
        assert!(answer.flags.contains(SYN | ACK), "{answer:?}");
        self.ack = answer.seq + 1;
        self.options = TcpOptions { timestamps: self.options.timestamps, ..TcpOptions::default() };
        self.say(ACK, &[]);
        answer
    }

    /// The endpoint's SYN has come to the peer, which has not answered yet.
    pub(crate) fn connecting(tcp: TcpConfig) -> (Host, ConnId) {
        let mut host = Host::new(tcp);
        let to = SocketAddr::new(B, PORT);
        let id = host.endpoint.connect(host.now, to, &ConnectOptions::default()).expect("a route");
        let mut packet = Vec::new();
        host.endpoint.poll_transmit(host.now, LINK, Payload::Inline, &mut packet).expect("a SYN");
        let ip = IpView::parse(&packet).expect("a packet");
        let syn = TcpView::parse(ip.src, ip.dst, ip.payload, Checksums::Verify).expect("a segment");
        host.ports = (PORT, syn.src_port);
        host.ack = syn.seq + 1;
        (host, id)
    }

    /// Sends a segment in order: the peer's number goes on.
    pub(crate) fn say(&mut self, flags: Flags, payload: &[u8]) {
        let seq = self.seq;
        self.say_at(seq, flags, payload);
        let controls = u32::from(flags.contains(SYN)) + u32::from(flags.contains(Flags::FIN));
        self.seq += payload.len() as u32 + controls;
    }

    pub(crate) fn say_at(&mut self, seq: Seq, flags: Flags, payload: &[u8]) {
        let packet = self.packet_at(seq, flags, payload);
        self.endpoint.handle_packet(self.now, &Rx::new(LINK, &packet));
    }

    /// The peer's next packet.
    pub(crate) fn packet(&self, flags: Flags, payload: &[u8]) -> Vec<u8> {
        self.packet_at(self.seq, flags, payload)
    }

    fn packet_at(&self, seq: Seq, flags: Flags, payload: &[u8]) -> Vec<u8> {
        let header = TcpHeader {
            src_port: self.ports.0,
            dst_port: self.ports.1,
            seq,
            ack: if flags.contains(ACK) { self.ack } else { Seq(0) },
            flags,
            window: self.window,
            urgent: 0,
            options: &self.options,
        };
        packet((B, A), self.ecn, &header, payload)
    }

    /// All segments that the endpoint sends now.
    pub(crate) fn hear(&mut self) -> Vec<Heard> {
        let mut heard = Vec::new();
        let mut packet = Vec::new();
        loop {
            packet.clear();
            if self.endpoint.poll_transmit(self.now, LINK, Payload::Inline, &mut packet).is_none() {
                return heard;
            }
            let ip = IpView::parse(&packet).expect("a packet");
            let tcp = TcpView::parse(ip.src, ip.dst, ip.payload, Checksums::Verify).expect("a segment");
            let (len, id) = (tcp.payload.len(), u16::from_be_bytes([packet[4], packet[5]]));
            heard.push(Heard { seq: tcp.seq, ack: tcp.ack, flags: tcp.flags, len, id });
        }
    }

    pub(crate) fn hear_one(&mut self) -> Heard {
        let heard = self.hear();
        assert_eq!(heard.len(), 1, "{heard:?}");
        heard[0].clone()
    }

    /// Lets time pass with its timers, and returns all segments sent meanwhile.
    pub(crate) fn wait(&mut self, time: Duration) -> Vec<Heard> {
        let until = self.now + time;
        let mut heard = self.hear();
        while let Some(due) = self.endpoint.poll_timeout().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.endpoint.handle_timeout(self.now);
            heard.extend(self.hear());
        }
        self.now = until;
        heard
    }
}

fn packet((src, dst): (IpAddr, IpAddr), ecn: Ecn, header: &TcpHeader<'_>, payload: &[u8]) -> Vec<u8> {
    let ip = IpHeader { ecn, ..IpHeader::plain(src, dst, protocol::TCP) };
    let mut packet = Vec::new();
    ip.emit(header.len() + payload.len(), &mut packet);
    header.emit(src, dst, (payload, &[]), Checksums::Verify, &mut packet);
    packet
}
