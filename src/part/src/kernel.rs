//! The programs of a node over the kernel's TCP.

mod connection;

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::HopSource;
use hopwise_core::narrow::as_u32;
use hopwise_core::tcp::TcpConfig;
use hopwise_host::{Clock, Interest, KernelInfo, KernelTcp, Poller};
use hopwise_lab::live::LOOK_EVERY;
use hopwise_lab::live::part::NodeResults;
use hopwise_lab::programs::{
    AgentsAtEnd, Counted, Marks, Platform, ProgramEvent, Programs, Sockets, start_of,
};
use hopwise_lab::sim::Plan;
use rustix::net::{SendFlags, Shutdown, SocketFlags, sockopt};

use connection::KernelConnection;

use super::lost;
use hopwise_daemon::failure::Failure;

/// The algorithm of hosts, as most of Linux's have it.
const OF_HOSTS: &str = "cubic";
/// The pause before a connection that could not be opened is tried again.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes of a connection that wait to be read; the rest stays with the kernel.
const MOST_WAITING: usize = 256 << 10;
const LARGEST_DATAGRAM: usize = 1 << 16;
/// A scenario with larger segments leaves their size to the path.
const LARGEST_SEGMENT: u16 = 1460;

/// The sockets of a node. Its connections, listeners and sockets for datagrams share one list of numbers.
#[derive(Debug)]
pub(crate) struct Kernel {
    algorithm: String,
    /// Its connections end at the node before them: their counts and round trips say nothing of the mesh.
    ends_at_node: bool,
    poller: Poller,
    all: Vec<OpenSocket>,
    events: VecDeque<ProgramEvent<Kernel>>,
}

#[derive(Debug)]
enum OpenSocket {
    Listener(OwnedFd),
    Connection(KernelConnection),
    Datagrams(UdpSocket),
    Closed,
}

/// The number of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number(usize);

impl Kernel {
    pub(crate) fn new(algorithm: &str) -> io::Result<Kernel> {
        let (poller, algorithm) = (Poller::new()?, algorithm.to_owned());
        let (all, events) = (Vec::new(), VecDeque::new());
        Ok(Kernel { algorithm, ends_at_node: false, poller, all, events })
    }

    /// The TCP of a host whose connections a transparent node carries.
    pub(crate) fn of_host() -> io::Result<Kernel> {
        Ok(Kernel { ends_at_node: true, ..Kernel::new(OF_HOSTS)? })
    }

    /// Runs the programs until the plan's end, from a beginning that `begin` waits for.
    pub(crate) fn play(
        mut self,
        plan: &Plan,
        (node, address_of): (u32, impl Fn(u32) -> IpAddr),
        begin: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<NodeResults, Failure> {
        let mut programs = Programs::of(plan, node, address_of);
        programs.open(&mut self);
        begin()?;
        let failed = Failure::during("wait for the kernel");
        let (clock, mut late) = (Clock::start(), Duration::ZERO);
        let (mut ready, mut look_at) = (Vec::new(), plan.counts_from());
        while clock.now() < plan.end() {
            let now = clock.now();
            late = late.max(now.since(programs.next().min(look_at)));
            self.open_again(now);
            programs.begin(now, &mut self);
            if look_at <= now {
                programs.look(now, &self);
                look_at = now + LOOK_EVERY;
            }
            programs.act(now, &mut self);
            let due = programs.next().min(look_at).min(plan.end()).min(self.again_at());
            self.watch().map_err(failed)?;
            self.poller.wait(&clock, Some(due), &mut ready).map_err(failed)?;
            let now = clock.now();
            late = late.max(now.since(due));
            ready.iter().for_each(|number| self.on_ready(now, Number(*number)));
        }
        let end = (clock.wall_offset(), plan.end());
        let ends = programs.flows().iter().map(|flow| flow.result(end, &self)).collect();
        let late_us = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
        // Between the kernel's TCP and its devices nothing waits for a program; datagrams do.
        Ok(NodeResults { ends, late_us, lost: lost::by_sockets(), ..NodeResults::default() })
    }

    fn add(&mut self, open: OpenSocket) -> Number {
        self.all.push(open);
        Number(self.all.len() - 1)
    }

    fn add_connection(
        &mut self,
        fd: OwnedFd,
        peer: SocketAddr,
        opens_with: Option<Arc<TcpConfig>>,
    ) -> io::Result<Number> {
        let mut connection = KernelConnection {
            fd,
            peer,
            is_open: opens_with.is_none(),
            opens_with,
            again_at: None,
            waiting: Vec::new(),
            has_end: false,
            has_failed: false,
            wants_room: false,
            interest: Interest::Nothing,
        };
        connection.interest = connection.wanted();
        self.poller.add(connection.fd.as_fd(), self.all.len(), connection.interest)?;
        Ok(self.add(OpenSocket::Connection(connection)))
    }

    fn connection(&self, number: Number) -> Option<&KernelConnection> {
        match self.all.get(number.0) {
            Some(OpenSocket::Connection(connection)) => Some(connection),
            _ => None,
        }
    }

    fn connection_mut(&mut self, number: Number) -> Option<&mut KernelConnection> {
        match self.all.get_mut(number.0) {
            Some(OpenSocket::Connection(connection)) => Some(connection),
            _ => None,
        }
    }

    /// Makes the poller report what connections wait for now.
    fn watch(&mut self) -> io::Result<()> {
        for (number, open) in self.all.iter_mut().enumerate() {
            let OpenSocket::Connection(connection) = open else { continue };
            let wanted = connection.wanted();
            if connection.interest != wanted && !connection.has_failed {
                connection.interest = wanted;
                self.poller.change(connection.fd.as_fd(), number, wanted)?;
            }
        }
        Ok(())
    }

    /// The time of the next attempt to open a connection.
    fn again_at(&self) -> Instant {
        let times = self.all.iter().filter_map(|open| match open {
            OpenSocket::Connection(connection) => connection.again_at,
            _ => None,
        });
        times.min().unwrap_or(Instant::FAR)
    }

    /// Tries again to open connections that the network refused. The programs' own endpoints do so, too.
    fn open_again(&mut self, now: Instant) {
        for (number, open) in self.all.iter_mut().enumerate() {
            let OpenSocket::Connection(connection) = open else { continue };
            let (Some(at), Some(tcp)) = (connection.again_at, &connection.opens_with) else { continue };
            if at > now {
                continue;
            }
            connection.again_at = Some(now + PATIENCE);
            let opened = settings(&self.algorithm, tcp).connect(connection.peer);
            if let Ok(fd) = opened
                && self.poller.add(fd.as_fd(), number, Interest::Room).is_ok()
            {
                (connection.fd, connection.interest) = (fd, Interest::Room);
                (connection.again_at, connection.has_failed) = (None, false);
            }
        }
    }

    fn on_ready(&mut self, now: Instant, number: Number) {
        match self.all.get_mut(number.0) {
            Some(OpenSocket::Listener(_)) => self.events.push_back(ProgramEvent::Incoming(number)),
            Some(OpenSocket::Connection(connection)) => {
                let events = &mut self.events;
                connection.on_ready(now, |event| events.push_back(ProgramEvent::Connection(number, event)));
                if connection.has_failed {
                    // It would always be ready.
                    let _ = self.poller.remove(connection.fd.as_fd());
                }
            }
            // Programs read datagrams whenever they act.
            Some(OpenSocket::Datagrams(_) | OpenSocket::Closed) | None => {}
        }
    }

    fn bind(&mut self, port: u16, hop_limit: Option<u8>) -> io::Result<Number> {
        let socket = UdpSocket::bind(("0.0.0.0", port))?;
        socket.set_nonblocking(true)?;
        if let Some(hop_limit) = hop_limit {
            socket.set_ttl(hop_limit.into())?;
        }
        self.poller.add(socket.as_fd(), self.all.len(), Interest::Read)?;
        Ok(self.add(OpenSocket::Datagrams(socket)))
    }
}

impl Platform for Kernel {
    type Sockets = Kernel;

    fn sockets(&self) -> &Kernel {
        self
    }

    fn with<T>(&mut self, _: Instant, act: impl FnOnce(&mut Kernel) -> T) -> T {
        act(self)
    }

    fn poll_event(&mut self) -> Option<ProgramEvent<Kernel>> {
        self.events.pop_front()
    }

    fn give_path(&mut self, _: Instant, _: IpAddr) {}

    fn hops_to(&self, _: Instant, _: IpAddr, _: Option<Number>) -> Option<(u8, HopSource)> {
        None
    }

    fn takes_more(&self) -> bool {
        false
    }
}

impl Sockets for Kernel {
    type Conn = Number;
    type Listener = Number;
    type Udp = Number;

    fn connect(&mut self, _: Instant, to: SocketAddr, tcp: &Arc<TcpConfig>) -> Option<Number> {
        let fd = settings(&self.algorithm, tcp).connect(to).ok()?;
        self.add_connection(fd, to, Some(Arc::clone(tcp))).ok()
    }

    fn listen(&mut self, port: u16, tcp: &Arc<TcpConfig>) -> Option<Number> {
        let fd = settings(&self.algorithm, tcp).listen(port).ok()?;
        self.poller.add(fd.as_fd(), self.all.len(), Interest::Read).ok()?;
        Some(self.add(OpenSocket::Listener(fd)))
    }

    fn accept(&mut self, _: Instant, listener: Number) -> Option<Number> {
        let Some(OpenSocket::Listener(fd)) = self.all.get(listener.0) else { return None };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (fd, peer) = rustix::net::acceptfrom_with(fd, flags).ok()?;
        let peer = SocketAddr::try_from(peer?).ok()?;
        self.add_connection(fd, peer, None).ok()
    }

    fn peer(&self, conn: Number) -> Option<IpAddr> {
        self.connection(conn).map(|connection| connection.peer.ip())
    }

    fn send(&mut self, _: Instant, conn: Number, data: &[u8]) -> Option<usize> {
        let connection = self.connection_mut(conn)?;
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let taken = match rustix::net::send(&connection.fd, data, flags) {
            Ok(taken) => taken,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => 0,
            // A read finds the error, and tells of it.
            Err(_) => return None,
        };
        connection.wants_room = taken < data.len();
        Some(taken)
    }

    fn shutdown(&mut self, _: Instant, conn: Number) -> bool {
        let connection = self.connection(conn);
        connection.is_some_and(|connection| rustix::net::shutdown(&connection.fd, Shutdown::Write).is_ok())
    }

    fn readable(&self, conn: Number) -> u32 {
        self.connection(conn).map_or(0, |connection| as_u32(connection.waiting.len()))
    }

    fn peek(&self, conn: Number) -> (&[u8], &[u8]) {
        self.connection(conn).map_or((&[], &[]), |connection| (&connection.waiting[..], &[][..]))
    }

    fn consume(&mut self, _: Instant, conn: Number, bytes: u32) -> bool {
        let Some(connection) = self.connection_mut(conn) else { return false };
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let is_there = bytes <= connection.waiting.len();
        if is_there {
            connection.waiting.drain(..bytes);
        }
        is_there
    }

    fn close(&mut self, _: Instant, conn: Number) {
        // The poller forgets a descriptor that is closed.
        self.all[conn.0] = OpenSocket::Closed;
    }

    fn abort(&mut self, now: Instant, conn: Number) {
        if let Some(connection) = self.connection(conn) {
            // With no time to linger the kernel sends a RST.
            let _ = sockopt::set_socket_linger(&connection.fd, Some(Duration::ZERO));
        }
        self.close(now, conn);
    }

    fn nothing_counted() -> Counted {
        let none = Some(0);
        Counted {
            segments_sent: none,
            segments_retransmitted: none,
            bytes_acked: none,
            timeouts: Some(0),
            acks_sent: none,
            ..Counted::untold()
        }
    }

    fn counted(&self, _: Instant, conn: Number) -> Option<Counted> {
        if self.ends_at_node {
            return Some(Counted::untold());
        }
        let info = KernelInfo::of(self.connection(conn)?.fd.as_fd()).ok()?;
        let data = info.data_segments.map(u64::from);
        Some(Counted {
            segments_sent: data,
            segments_retransmitted: Some(info.retransmissions.into()),
            bytes_acked: info.bytes_acked,
            timeouts: info.timeouts,
            acks_sent: info.segments.map(u64::from).zip(data).map(|(all, data)| all - data),
            ..Counted::untold()
        })
    }

    fn agents(&self, _: Instant, _: Number) -> Option<AgentsAtEnd> {
        None
    }

    fn rtt(&self, _: Instant, conn: Number) -> Option<Duration> {
        if self.ends_at_node {
            return None;
        }
        let rtt = KernelInfo::of(self.connection(conn)?.fd.as_fd()).ok()?.rtt;
        (!rtt.is_zero()).then_some(rtt)
    }

    fn udp_bind(&mut self, port: u16, marks: Option<Marks>) -> Option<Number> {
        self.bind(port, marks.map(|marks| marks.hop_limit)).ok()
    }

    fn udp_send(&mut self, socket: Number, to: SocketAddr, payload: &[u8]) -> bool {
        matches!(self.all.get(socket.0), Some(OpenSocket::Datagrams(socket)) if socket.send_to(payload, to).is_ok())
    }

    fn udp_recv(&mut self, socket: Number, start: &mut [u8]) -> Option<usize> {
        let Some(OpenSocket::Datagrams(socket)) = self.all.get(socket.0) else { return None };
        let mut payload = [0; LARGEST_DATAGRAM];
        let bytes = socket.recv(&mut payload).ok()?;
        Some(start_of(&payload[..bytes], start))
    }
}

fn settings<'a>(algorithm: &'a str, tcp: &TcpConfig) -> KernelTcp<'a> {
    let segment_bytes = Some(tcp.segment_bytes).filter(|bytes| *bytes <= LARGEST_SEGMENT);
    KernelTcp { algorithm, segment_bytes, nagle: tcp.nagle }
}
