//! Two endpoints and a path between them, and the calls that most tests make.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hopwise_core::endpoint::{
    ConnId, ConnectOptions, EndpointConfig, Event, EventKind, LinkConfig, ListenOptions, ListenerId,
};
use hopwise_core::ip::Prefix;
use hopwise_core::tcp::{Info, Options, TcpConfig};
use hopwise_core::wire::{Checksums, Flags, IpHeader, IpView, TcpView};
use hopwise_core::{Endpoint, Instant, Seq};
use hopwise_testing::make::Segment;
pub(crate) use hopwise_testing::make::{endpoint, ms};
use hopwise_testing::memory::{End, LINK, PathConfig, TwoHosts};

pub(crate) const PORT: u16 = 7;

pub(crate) const fn v4(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))
}

pub(crate) const fn v6(last: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last))
}

pub(crate) const A: IpAddr = v4(1);
/// A second address of the endpoint.
pub(crate) const A2: IpAddr = v4(11);
pub(crate) const B: IpAddr = v4(2);
pub(crate) const B2: IpAddr = v4(12);
pub(crate) const A6: IpAddr = v6(1);
pub(crate) const B6: IpAddr = v6(2);
/// The address that clients connect to.
pub(crate) const SERVER: SocketAddr = SocketAddr::new(B, PORT);

pub(crate) const ROUND_TRIP: Duration = Duration::from_millis(20);

pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) fn prefix(text: &str) -> Prefix {
    text.parse().expect("a prefix")
}

/// An endpoint with both of its addresses of each family on one link.
pub(crate) fn config(end: End) -> EndpointConfig {
    let (addresses, key) = match end {
        End::A => (["10.0.0.1/24", "10.0.0.11/24", "fd00::1/64"], [1; 32]),
        End::B => (["10.0.0.2/24", "10.0.0.12/24", "fd00::2/64"], [2; 32]),
    };
    EndpointConfig::new(LinkConfig::wire(LINK.0, 1500, addresses.map(prefix).to_vec()), key)
}

/// A packet that an end sent.
pub(crate) struct Sent {
    pub(crate) from: End,
    pub(crate) at: Instant,
    pub(crate) packet: Vec<u8>,
}

impl Sent {
    pub(crate) fn ip(&self) -> IpView<'_> {
        IpView::parse(&self.packet).expect("a packet")
    }

    pub(crate) fn tcp(&self) -> TcpView<'_> {
        let ip = self.ip();
        TcpView::parse(ip.src, ip.dst, ip.payload, Checksums::Verify).expect("a segment")
    }
}

type Wire = Rc<RefCell<Vec<Sent>>>;

pub(crate) struct Net {
    pub(crate) hosts: TwoHosts<Endpoint>,
    wire: Wire,
}

/// A client at A and a server at B, connected.
pub(crate) struct Pair {
    pub(crate) net: Net,
    pub(crate) client: ConnId,
    pub(crate) server: ConnId,
}

impl Net {
    pub(crate) fn new() -> Net {
        Net::with(|_, _| {})
    }

    pub(crate) fn with_tcp(tcp: &TcpConfig) -> Net {
        Net::with(|_, config| config.tcp = Arc::new(tcp.clone()))
    }

    pub(crate) fn with(change: impl Fn(End, &mut EndpointConfig)) -> Net {
        let made = |end| {
            let mut config = config(end);
            change(end, &mut config);
            endpoint(config)
        };
        let path = PathConfig::clean(ROUND_TRIP / 2);
        let wire = Wire::default();
        let seen = Rc::clone(&wire);
        let hosts = TwoHosts::new(made(End::A), made(End::B), path, path, 1).with_tap(Box::new(
            move |at, from, packet, _| {
                seen.borrow_mut().push(Sent { from, at, packet: packet.to_vec() });
            },
        ));
        Net { hosts, wire }
    }

    pub(crate) fn now(&self) -> Instant {
        self.hosts.now()
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, time: Duration) {
        let until = self.now() + time;
        self.hosts.run(until, |_| false);
    }

    /// Long enough for a few exchanges, too short for any timeout.
    pub(crate) fn settle(&mut self) {
        self.wait(5 * ROUND_TRIP);
    }

    pub(crate) fn listen(&mut self, options: ListenOptions) -> ListenerId {
        self.hosts.b.listen(None, PORT, options).expect("a free port")
    }

    pub(crate) fn connect(&mut self) -> ConnId {
        self.connect_with(&ConnectOptions::default())
    }

    pub(crate) fn connect_with(&mut self, options: &ConnectOptions) -> ConnId {
        let now = self.now();
        self.hosts.a.connect(now, SERVER, options).expect("a route")
    }

    pub(crate) fn accept(&mut self, listener: ListenerId) -> ConnId {
        let now = self.now();
        self.hosts.b.accept(now, listener).expect("a connection waits")
    }

    pub(crate) fn pair(self) -> Pair {
        self.pair_with(&ConnectOptions::default())
    }

    pub(crate) fn pair_with(mut self, options: &ConnectOptions) -> Pair {
        let listener = self.listen(ListenOptions::default());
        self.pair_on(listener, options)
    }

    pub(crate) fn pair_on(mut self, listener: ListenerId, options: &ConnectOptions) -> Pair {
        let client = self.connect_with(options);
        self.wait(2 * ROUND_TRIP);
        let server = self.accept(listener);
        Pair { net: self, client, server }
    }

    /// All events of an end that were not fetched yet.
    pub(crate) fn events(&mut self, end: End) -> Vec<Event> {
        let machine = self.hosts.machine(end);
        std::iter::from_fn(|| machine.poll_event()).collect()
    }

    /// The packets that were sent since the last call.
    pub(crate) fn sent(&mut self) -> Vec<Sent> {
        self.hosts.flush();
        std::mem::take(&mut *self.wire.borrow_mut())
    }

    pub(crate) fn sent_by(&mut self, end: End) -> Vec<Sent> {
        self.sent().into_iter().filter(|sent| sent.from == end).collect()
    }

    pub(crate) fn cut(&mut self) {
        for end in [End::A, End::B] {
            self.hosts.path_from(end).is_down = true;
        }
    }
}

impl Pair {
    pub(crate) fn new() -> Pair {
        Net::new().pair()
    }

    pub(crate) fn with_tcp(tcp: &TcpConfig) -> Pair {
        Net::with_tcp(tcp).pair()
    }

    pub(crate) fn id(&self, end: End) -> ConnId {
        match end {
            End::A => self.client,
            End::B => self.server,
        }
    }

    pub(crate) fn send(&mut self, from: End, data: &[u8]) -> usize {
        let (now, id) = (self.net.now(), self.id(from));
        self.net.hosts.machine(from).send(now, id, data).expect("open")
    }

    /// Reads all bytes that are there now.
    pub(crate) fn read(&mut self, at: End) -> Vec<u8> {
        let (now, id) = (self.net.now(), self.id(at));
        let mut out = vec![0; 1 << 20];
        let len = self.net.hosts.machine(at).recv(now, id, &mut out).expect("open");
        out.truncate(len);
        out
    }

    pub(crate) fn info(&mut self, at: End) -> Info {
        let (now, id) = (self.net.now(), self.id(at));
        self.net.hosts.machine(at).info(now, id).expect("still named")
    }

    pub(crate) fn shutdown(&mut self, at: End) {
        let (now, id) = (self.net.now(), self.id(at));
        self.net.hosts.machine(at).shutdown(now, id).expect("still named");
    }

    pub(crate) fn close(&mut self, at: End) {
        let (now, id) = (self.net.now(), self.id(at));
        self.net.hosts.machine(at).close(now, id).expect("still named");
    }

    pub(crate) fn abort(&mut self, at: End) {
        let (now, id) = (self.net.now(), self.id(at));
        self.net.hosts.machine(at).abort(now, id).expect("still named");
    }

    /// Changes options of the open connection.
    pub(crate) fn change(&mut self, at: End, change: impl FnOnce(&mut Options)) {
        let (now, id) = (self.net.now(), self.id(at));
        let machine = self.net.hosts.machine(at);
        let mut options = machine.options(id).expect("still named");
        change(&mut options);
        machine.set_options(now, id, options).expect("still named");
        assert_eq!(machine.options(id), Ok(options));
    }

    /// The kinds of events of this connection at an end.
    pub(crate) fn kinds(&mut self, at: End) -> Vec<EventKind> {
        let id = self.id(at);
        let of_ours = |event| match event {
            Event::Connection(of, kind) if of == id => Some(kind),
            _ => None,
        };
        self.net.events(at).into_iter().filter_map(of_ours).collect()
    }
}

/// A packet of a protocol with a payload that is whole already.
pub(crate) fn packet(src: IpAddr, dst: IpAddr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    IpHeader::plain(src, dst, protocol).emit(payload.len(), &mut packet);
    packet.extend_from_slice(payload);
    packet
}

/// A segment of a peer that exists in the test alone.
pub(crate) fn segment(from: SocketAddr, to: SocketAddr, flags: Flags, seq: Seq, ack: Seq) -> Vec<u8> {
    segment_with_window((from, to), flags, (seq, ack), u16::MAX)
}

pub(crate) fn segment_with_window(
    (from, to): (SocketAddr, SocketAddr),
    flags: Flags,
    (seq, ack): (Seq, Seq),
    window: u16,
) -> Vec<u8> {
    Segment { seq, ack, flags, window, ..Segment::between(from, to) }.packet()
}

/// Bytes that identify their place.
pub(crate) fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| ((at / 251) ^ at ^ (seed * 31)) as u8).collect()
}
