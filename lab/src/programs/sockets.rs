//! The seam between programs and a node's TCP and UDP. The simulator, a live node and the kernel each have one.

use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hopwise_core::agent::HopSource;
use hopwise_core::endpoint::{self, ConnId, ConnectOptions, EventKind, ListenOptions, ListenerId};
use hopwise_core::ip::{UdpId, UdpOptions};
use hopwise_core::tcp::{Info, TcpConfig};
use hopwise_core::{Endpoint, Instant};

use super::seen::{AgentsAtEnd, ConnOf, Counted};

/// The part of a datagram's IP header that its flow decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// The hop limit.
    pub hop_limit: u8,
    /// The code point (DSCP).
    pub dscp: u8,
}

/// TCP and UDP of a node, without waiting.
pub trait Sockets {
    /// A connection.
    type Conn: Copy + Debug + PartialEq;
    /// A listener for connections.
    type Listener: Copy + Debug + PartialEq;
    /// A socket for datagrams.
    type Udp: Copy + Debug;

    /// Begins to open a connection; none after an error.
    fn connect(&mut self, now: Instant, to: SocketAddr, tcp: &Arc<TcpConfig>) -> Option<Self::Conn>;
    /// Listens on a port; none after an error.
    fn listen(&mut self, port: u16, tcp: &Arc<TcpConfig>) -> Option<Self::Listener>;
    /// The next connection of a listener; none until there is one.
    fn accept(&mut self, now: Instant, listener: Self::Listener) -> Option<Self::Conn>;
    /// The address of the peer; none for a connection that is gone.
    fn peer(&self, conn: Self::Conn) -> Option<IpAddr>;

    /// Takes the beginning of `data` that there is room for, and returns its length; none after an error.
    fn send(&mut self, now: Instant, conn: Self::Conn, data: &[u8]) -> Option<usize>;
    /// Ends the sending side. Returns whether it has ended.
    fn shutdown(&mut self, now: Instant, conn: Self::Conn) -> bool;
    /// In-order bytes that wait to be read.
    fn readable(&self, conn: Self::Conn) -> u32;
    /// The bytes that wait; the second part follows the first.
    fn peek(&self, conn: Self::Conn) -> (&[u8], &[u8]);
    /// Reads that many of the bytes. Returns whether it could.
    fn consume(&mut self, now: Instant, conn: Self::Conn, bytes: u32) -> bool;
    /// Releases the connection; sent data is still delivered.
    fn close(&mut self, now: Instant, conn: Self::Conn);
    /// Ends the connection at once.
    fn abort(&mut self, now: Instant, conn: Self::Conn);

    /// The counters before the first connection: zero, or absent where this TCP does not tell them.
    fn nothing_counted() -> Counted;
    /// The counters of a connection that has not been released.
    fn counted(&self, now: Instant, conn: Self::Conn) -> Option<Counted>;
    /// The agents of a connection; none where this TCP has no agents.
    fn agents(&self, now: Instant, conn: Self::Conn) -> Option<AgentsAtEnd>;
    /// The smoothed round-trip time.
    fn rtt(&self, now: Instant, conn: Self::Conn) -> Option<Duration>;
    /// The newest measured round trip, and its number modulo 256; none where this TCP does not tell each.
    fn newest_rtt(&self, _: Self::Conn) -> Option<(Duration, u8)> {
        None
    }

    /// The segments with data sent so far, as cheaply as to be asked after each packet; none where this TCP does not
    /// tell.
    fn segments_sent(&self, _: Self::Conn) -> Option<u64> {
        None
    }

    /// Opens a socket for datagrams on a port; none after an error. `marks` go into its packets.
    fn udp_bind(&mut self, port: u16, marks: Option<Marks>) -> Option<Self::Udp>;
    /// Returns whether the datagram was taken.
    fn udp_send(&mut self, socket: Self::Udp, to: SocketAddr, payload: &[u8]) -> bool;
    /// The length of the next datagram's payload, whose beginning is copied into `start`.
    fn udp_recv(&mut self, socket: Self::Udp, start: &mut [u8]) -> Option<usize>;
}

/// Copies the beginning of a datagram, and returns the length of the whole.
pub fn start_of(payload: &[u8], start: &mut [u8]) -> usize {
    start.iter_mut().zip(payload).for_each(|(to, byte)| *to = *byte);
    payload.len()
}

/// News for programs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ProgramEvent<S: Sockets> {
    /// The listener has a connection.
    Incoming(S::Listener),
    /// News of a connection.
    Connection(S::Conn, EventKind),
}

impl From<endpoint::Event> for ProgramEvent<Endpoint> {
    fn from(event: endpoint::Event) -> ProgramEvent<Endpoint> {
        match event {
            endpoint::Event::Incoming(listener) => ProgramEvent::Incoming(listener),
            endpoint::Event::Connection(conn, event) => ProgramEvent::Connection(conn, event),
        }
    }
}

/// Sockets with what surrounds them.
pub trait Platform {
    /// The node's TCP and UDP.
    type Sockets: Sockets;

    /// The sockets, to look at.
    fn sockets(&self) -> &Self::Sockets;
    /// Runs `act`, and lets the packets go that follow from it.
    fn with<T>(&mut self, now: Instant, act: impl FnOnce(&mut Self::Sockets) -> T) -> T;
    /// The oldest news that no program has taken.
    fn poll_event(&mut self) -> Option<ProgramEvent<Self::Sockets>>;
    /// Gives new connections to that peer the facts about its path that the platform knows.
    fn give_path(&mut self, now: Instant, peer: IpAddr);
    /// The hops to a peer, and their source, as the platform knows them or one of its connections does.
    fn hops_to(&self, now: Instant, peer: IpAddr, conn: Option<ConnOf<Self>>) -> Option<(u8, HopSource)>;
    /// True if the link takes another datagram of a saturated source.
    fn takes_more(&self) -> bool;
}

impl Sockets for Endpoint {
    type Conn = ConnId;
    type Listener = ListenerId;
    type Udp = UdpId;

    fn connect(&mut self, now: Instant, to: SocketAddr, tcp: &Arc<TcpConfig>) -> Option<ConnId> {
        let options = ConnectOptions { tcp: Some(Arc::clone(tcp)), ..ConnectOptions::default() };
        Endpoint::connect(self, now, to, &options).ok()
    }

    fn listen(&mut self, port: u16, tcp: &Arc<TcpConfig>) -> Option<ListenerId> {
        let options = ListenOptions { tcp: Some(Arc::clone(tcp)), ..ListenOptions::default() };
        Endpoint::listen(self, None, port, options).ok()
    }

    fn accept(&mut self, now: Instant, listener: ListenerId) -> Option<ConnId> {
        Endpoint::accept(self, now, listener)
    }

    fn peer(&self, conn: ConnId) -> Option<IpAddr> {
        self.flow(conn).map(|flow| flow.remote.ip())
    }

    fn send(&mut self, now: Instant, conn: ConnId, data: &[u8]) -> Option<usize> {
        Endpoint::send(self, now, conn, data).ok()
    }

    fn shutdown(&mut self, now: Instant, conn: ConnId) -> bool {
        Endpoint::shutdown(self, now, conn).is_ok()
    }

    fn readable(&self, conn: ConnId) -> u32 {
        Endpoint::readable(self, conn)
    }

    fn peek(&self, conn: ConnId) -> (&[u8], &[u8]) {
        Endpoint::peek(self, conn)
    }

    fn consume(&mut self, now: Instant, conn: ConnId, bytes: u32) -> bool {
        Endpoint::consume(self, now, conn, bytes).is_ok()
    }

    fn close(&mut self, now: Instant, conn: ConnId) {
        // A connection that has failed is gone already.
        let _ = Endpoint::close(self, now, conn);
    }

    fn abort(&mut self, now: Instant, conn: ConnId) {
        let _ = Endpoint::abort(self, now, conn);
    }

    fn nothing_counted() -> Counted {
        Counted::default()
    }

    fn counted(&self, now: Instant, conn: ConnId) -> Option<Counted> {
        self.info(now, conn).ok().map(|info| Counted::of(&info))
    }

    fn agents(&self, now: Instant, conn: ConnId) -> Option<AgentsAtEnd> {
        let Info { receiver, senders, shadows, receiver_lacks, senders_lack, .. } =
            self.info(now, conn).ok()?;
        let names = |lacking: &[hopwise_core::trace::Lacking]| {
            lacking.iter().map(|what| what.name().to_owned()).collect()
        };
        let (receiver_lacks, senders_lack) = (names(&receiver_lacks), names(&senders_lack));
        Some(AgentsAtEnd { receiver, senders, shadows, receiver_lacks, senders_lack })
    }

    fn rtt(&self, now: Instant, conn: ConnId) -> Option<Duration> {
        self.info(now, conn).ok()?.path.rtt.smoothed
    }

    fn newest_rtt(&self, conn: ConnId) -> Option<(Duration, u8)> {
        Endpoint::newest_rtt(self, conn)
    }

    fn segments_sent(&self, conn: ConnId) -> Option<u64> {
        Endpoint::segments_sent(self, conn)
    }

    fn udp_bind(&mut self, port: u16, marks: Option<Marks>) -> Option<UdpId> {
        let options = marks.map_or_else(UdpOptions::default, |Marks { hop_limit, dscp }| UdpOptions {
            hop_limit,
            dscp,
            ..UdpOptions::default()
        });
        Endpoint::udp_bind(self, None, port, options).ok()
    }

    fn udp_send(&mut self, socket: UdpId, to: SocketAddr, payload: &[u8]) -> bool {
        Endpoint::udp_send(self, socket, to, None, payload).is_ok()
    }

    fn udp_recv(&mut self, socket: UdpId, start: &mut [u8]) -> Option<usize> {
        Some(start_of(&Endpoint::udp_recv(self, socket)?.payload, start))
    }
}
