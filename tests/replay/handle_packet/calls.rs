//! A program's calls to an endpoint, and its checks.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hopwise_core::agent::{HopSource, Path, PathEvent};
use hopwise_core::endpoint::{AgentChoice, ConnId, ConnectOptions, Event, ListenerId, PathSeam};
use hopwise_core::ip::{UdpId, UdpOptions};
use hopwise_core::tcp::{Info, KeepAlive, TcpConfig};
use hopwise_core::trace::DropReason;
use hopwise_core::wire::{RouteKind, SourceRoute};
use hopwise_core::{Endpoint, Instant, Seq};

use super::forge::port;
use super::packet::{octet_at, stream};
use super::setup::{HOST_V4, HOST_V6, HTTP, MOST_CONNECTIONS, Made, STRANGER_V4, listen_options};
use crate::input::{Bits, Input};

/// The names that a program keeps; it silently forgets older ones, as careless programs do.
const MOST_NAMES: usize = 12;

struct Known {
    id: ConnId,
    /// The place of the next octet to read, once one was read.
    reads_from: Option<Seq>,
}

/// An endpoint and the program that uses it.
pub(super) struct Program {
    pub(super) endpoint: Endpoint,
    pub(super) mtu: u16,
    tcp: TcpConfig,
    known: Vec<Known>,
    listeners: Vec<ListenerId>,
    sockets: Vec<UdpId>,
    /// The addresses of its peers.
    others: [IpAddr; 5],
    /// True if forged data may have come in: read bytes are not compared any more.
    pub(super) is_misled: bool,
}

impl Program {
    /// Makes a program that listens at the port that most packets go to.
    pub(super) fn new(made: Made, others: [IpAddr; 5], input: &mut Input<'_>) -> Program {
        let Made { endpoint, tcp, mtu } = made;
        let (known, listeners, sockets) = (Vec::new(), Vec::new(), Vec::new());
        let mut program = Program { endpoint, mtu, tcp, known, listeners, sockets, others, is_misled: false };
        let listener = program.endpoint.listen(None, HTTP, listen_options(input));
        program.listeners.extend(listener.ok());
        program
    }

    /// Packets that came and were dropped. An answer that the rate of ICMP kept back is not counted.
    pub(super) fn drops(&self) -> u64 {
        let of_packets = DropReason::ALL.iter().filter(|reason| **reason != DropReason::IcmpRateLimited);
        of_packets.map(|reason| self.endpoint.drops(*reason)).sum()
    }

    pub(super) fn call(&mut self, now: Instant, input: &mut Input<'_>) {
        match input.octet() % 17 {
            0 => self.connect(now, input),
            1 => self.accept(now, input),
            2 | 3 => self.send(now, input),
            4 | 5 => self.recv(now, input),
            6 => self.with_one(input, |endpoint, id, _| endpoint.shutdown(now, id).is_ok()),
            7 => self.with_one(input, |endpoint, id, _| endpoint.close(now, id).is_ok()),
            8 => self.with_one(input, |endpoint, id, _| endpoint.abort(now, id).is_ok()),
            9 => self.with_one(input, |endpoint, id, input| set_options(endpoint, now, id, input)),
            10 => self.listen(now, input),
            11 => self.hear(),
            12 => self.udp(input),
            13 => self.with_one(input, |endpoint, id, input| {
                let bytes = u32::from(input.octet());
                let (head, _) = endpoint.peek(id);
                // Taking more than there is takes all.
                head.len() < 1 << 30 && endpoint.consume(now, id, bytes * 64).is_ok()
            }),
            14 => self.path(now, input),
            15 => self.ask(now),
            _ => self.accept(now, input),
        }
    }

    fn know(&mut self, id: ConnId) {
        if self.known.len() == MOST_NAMES {
            self.known.remove(0);
        }
        self.known.push(Known { id, reads_from: None });
    }

    /// One of the connections; the newest has number 0.
    fn one(&self, input: &mut Input<'_>) -> Option<usize> {
        let len = self.known.len();
        input.index(len).map(|back| len - 1 - back)
    }

    fn with_one(
        &mut self,
        input: &mut Input<'_>,
        act: impl FnOnce(&mut Endpoint, ConnId, &mut Input<'_>) -> bool,
    ) {
        let Some(at) = self.one(input) else { return };
        let id = self.known[at].id;
        let exists = self.endpoint.trace_number(id).is_some();
        let done = act(&mut self.endpoint, id, input);
        assert!(exists || !done, "no call acts on what is forgotten");
        // Bytes that were consumed unread are not followed.
        self.known[at].reads_from = None;
    }

    fn connect(&mut self, now: Instant, input: &mut Input<'_>) {
        let to = SocketAddr::new(input.pick(self.others), port(input));
        let shape = Bits(input.octet());
        let options = ConnectOptions {
            local_ip: None,
            local_port: shape.has(0).then(|| port(input)),
            agents: AgentChoice {
                receiver: shape.has(1).then(|| "immediate".into()),
                ..AgentChoice::default()
            },
            tcp: None,
            source_route: if shape.has(2) { route(shape) } else { None },
        };
        if let Ok(id) = self.endpoint.connect(now, to, &options) {
            self.know(id);
        }
    }

    fn accept(&mut self, now: Instant, input: &mut Input<'_>) {
        let Some(at) = input.index(self.listeners.len()) else { return };
        if let Some(id) = self.endpoint.accept(now, self.listeners[at]) {
            self.know(id);
        }
    }

    fn listen(&mut self, now: Instant, input: &mut Input<'_>) {
        let shape = Bits(input.octet());
        if shape.has(0) {
            let Some(at) = input.index(self.listeners.len()) else { return };
            self.endpoint.stop_listening(now, self.listeners.remove(at));
            return;
        }
        let local = shape.has(1).then(|| input.pick([HOST_V4, HOST_V6]));
        let (port, options) = (port(input), listen_options(input));
        self.listeners.extend(self.endpoint.listen(local, port, options).ok());
    }

    fn info(&self, now: Instant, at: usize) -> Option<Info> {
        self.endpoint.info(now, self.known[at].id).ok()
    }

    /// Writes the bytes of that place of the stream.
    fn send(&mut self, now: Instant, input: &mut Input<'_>) {
        let Some(at) = self.one(input) else { return };
        let Some(info) = self.info(now, at) else { return };
        let id = self.known[at].id;
        let from = info.snd_nxt + info.unsent_bytes;
        let len = input.pick([1, 100, 1000, 1460, 5000, 20_000, 70_000, 0]);
        let data = stream(from, len);
        let room = self.endpoint.writable(id) as usize;
        let is_urgent = input.octet() == 1;
        let taken = match is_urgent {
            true => self.endpoint.send_urgent(now, id, &data),
            false => self.endpoint.send(now, id, &data),
        };
        if let Ok(taken) = taken {
            assert_eq!(taken, room.min(len), "as much is taken as there was room for");
        }
    }

    fn recv(&mut self, now: Instant, input: &mut Input<'_>) {
        let Some(at) = self.one(input) else { return };
        let Some(info) = self.info(now, at) else { return };
        let mut out = vec![0; input.pick([100_000, 1, 1000, 10_000])];
        let Ok(read) = self.endpoint.recv(now, self.known[at].id, &mut out) else { return };
        assert_eq!(read, out.len().min(info.unread_bytes as usize), "everything that there is can be read");
        if read == 0 || self.is_misled {
            return;
        }
        // A FIN that was taken has a number of its own behind the data.
        let end = info.rcv_nxt - info.unread_bytes;
        let places = [end, end - 1];
        let is_there =
            |from: Seq| (0u32..).zip(&out[..read]).all(|(at, octet)| *octet == octet_at(from + at));
        let from = match self.known[at].reads_from {
            Some(from) => Some(from).filter(|from| places.contains(from) && is_there(*from)),
            None => places.into_iter().find(|from| is_there(*from)),
        };
        let from = from.expect("what is read is what was sent, and nothing is left out");
        self.known[at].reads_from = Some(from + read as u32);
    }

    /// Takes all events; they must come to an end.
    fn hear(&mut self) {
        for _ in 0..100 * MOST_CONNECTIONS {
            match self.endpoint.poll_event() {
                None => return,
                Some(Event::Incoming(_) | Event::Connection(..)) => {}
            }
        }
        panic!("more events than connections could have");
    }

    fn udp(&mut self, input: &mut Input<'_>) {
        let shape = input.octet();
        match (shape % 4, input.index(self.sockets.len())) {
            (0, _) | (_, None) => {
                let groups = if shape & 4 == 0 { Vec::new() } else { vec![[224, 0, 0, 9].into()] };
                let options = UdpOptions { groups, ..UdpOptions::default() };
                self.sockets.extend(self.endpoint.udp_bind(None, port(input), options).ok());
            }
            (1, Some(at)) => {
                let to = input.pick(self.others);
                let via = (shape & 4 != 0).then_some(super::setup::LINK);
                let data = vec![7; usize::from(input.word() % 2000)];
                let to = SocketAddr::new(to, port(input));
                // A refusal changes nothing.
                let _ = self.endpoint.udp_send(self.sockets[at], to, via, &data);
            }
            (2, Some(at)) => {
                self.endpoint.udp_recv(self.sockets[at]);
            }
            (_, Some(at)) => {
                let closed = self.endpoint.udp_close(self.sockets.remove(at));
                assert!(closed.is_ok(), "a socket is closed once");
            }
        }
    }

    fn path(&mut self, now: Instant, input: &mut Input<'_>) {
        let peer = input.pick(self.others);
        let number = match self.one(input).and_then(|at| self.info(now, at)) {
            Some(info) => info.snd_una + u32::from(input.word()),
            None => Seq(input.long()),
        };
        let event = input.pick([
            PathEvent::RouteFailed,
            PathEvent::RouteFound,
            PathEvent::HopsChanged,
            PathEvent::AckSeq(number),
        ]);
        let hops = Some((input.octet(), HopSource::Routing));
        let path = Path { hops_to_peer: hops, hops_from_peer: hops, ..Path::default() };
        self.endpoint.handle_path(now, peer, None, &event, &path);
        self.endpoint.ack_hints(peer, &mut |_, _| {});
    }

    /// Calls every getter; memory is bounded by the settings.
    pub(super) fn ask(&mut self, now: Instant) {
        let ids: Vec<ConnId> = self.endpoint.ids().collect();
        for id in ids {
            let info = self.endpoint.info(now, id).expect("an id that is listed has a connection");
            assert!(
                info.unread_bytes + info.out_of_order_bytes <= self.tcp.recv_buffer.max.next_power_of_two()
            );
            assert_eq!(self.endpoint.readable(id), info.unread_bytes);
            let bytes = self.endpoint.allocated(id).expect("an id that is listed has a connection");
            assert!(bytes <= self.most_memory(), "{bytes} bytes for one connection");
        }
        assert!(self.endpoint.holds().connections <= MOST_CONNECTIONS);
        // Some are over and owe a RST, or wait for their program.
        assert!(self.endpoint.connections() <= MOST_CONNECTIONS.saturating_add(MOST_CONNECTIONS.div_ceil(4)));
    }

    /// The memory bound: rings double, and one-byte segments cost an entry of the scoreboard each.
    fn most_memory(&self) -> usize {
        let (send, recv) = (self.tcp.send_buffer.max as usize, self.tcp.recv_buffer.max as usize);
        let entries = 128 * (send + 2);
        8192 + 2 * send.next_power_of_two() + 2 * recv.next_power_of_two() + entries
    }
}

fn route(shape: Bits) -> Option<SourceRoute> {
    let IpAddr::V4(hop) = STRANGER_V4 else { return None };
    let hops = [hop; SourceRoute::MAX_HOPS];
    let kind = if shape.has(3) { RouteKind::Strict } else { RouteKind::Loose };
    SourceRoute::new(kind, &hops[..1 + usize::from(shape.0 >> 4) % SourceRoute::MAX_HOPS])
}

fn set_options(endpoint: &mut Endpoint, now: Instant, id: ConnId, input: &mut Input<'_>) -> bool {
    let Ok(mut options) = endpoint.options(id) else { return false };
    let shape = Bits(input.octet());
    options.nagle = shape.has(0);
    options.report_errors = shape.has(1);
    options.keep_alive = shape.has(2).then(|| KeepAlive {
        idle: Duration::from_millis(u64::from(input.octet()) * 40),
        interval: Duration::from_millis(u64::from(input.octet()) * 40),
        probes: input.octet(),
    });
    if shape.has(3) {
        options.user_timeout = Duration::from_millis(u64::from(input.octet()) * 40);
    }
    options.hop_limit = 64;
    options.dscp = shape.0 >> 4;
    endpoint.set_options(now, id, options).is_ok()
}
