//! Sockets of the kernel's TCP with a source address of the client or of this node.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{self, IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use hopwise_host::transparent::{Arrivals, socket_at};
use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::net::{connect, sockopt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use super::decisions::Ends;
use super::header::Told;

/// The time after which a connection with another port of the client is tried beside the first one. The client may have
/// the first port in a connection that goes straight on, and the server then answers that connection alone.
const ANOTHER_PORT_AFTER: Duration = Duration::from_millis(200);
/// The time after which a connection with this node's own address is tried beside those with the client's. The other
/// port has had an answer by then, unless the client is answered elsewhere.
const OWN_AFTER: Duration = Duration::from_millis(400);
/// The time after which a client's address is tried again. It is short, since a port of a server whose queue is full
/// answers a client for a moment as if it were answered elsewhere.
const KNOWN_FOR: Duration = Duration::from_secs(60);
/// Clients whose answers do not come here, each at a destination; beyond this the oldest is forgotten.
const MOST_KNOWN: usize = 4096;

/// The connections that this node opens for hosts of other nodes. A SYN of one that stands is no longer on its way
/// round: one with the same ends is a new connection of the host.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenedHere(Arc<Mutex<BTreeSet<Ends>>>);

/// The ends of a connection that is being opened, until this is dropped.
#[derive(Debug)]
pub(super) struct Listed {
    opened: OpenedHere,
    ends: Ends,
}

impl OpenedHere {
    /// Returns whether the connection is one that this node is opening: it has gone round.
    pub(super) fn has(&self, ends: Ends) -> bool {
        self.0.lock().contains(&ends)
    }

    /// Begins to connect. The SYN might come round at once, and the socket has its port only then: until the
    /// connection is known, nobody looks whether it is.
    fn connect(&self, socket: &net::TcpStream, to: SocketAddr) -> io::Result<Listed> {
        let mut opened = self.0.lock();
        match connect(socket, &to) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let ends = (socket.local_addr()?, to);
        opened.insert(ends);
        Ok(Listed { opened: self.clone(), ends })
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.opened.0.lock().remove(&self.ends);
    }
}

/// A connection to a destination, and its address here.
type Connected = (TcpStream, SocketAddr);

/// Clients that a destination does not answer through this node, and since when that is known. One client says nothing
/// of another one: its address may be made up. One port of a server says nothing of another port, whose queue has room.
#[derive(Debug, Default)]
struct Elsewhere(BTreeMap<(SocketAddr, IpAddr), Instant>);

impl Elsewhere {
    fn has(&self, told: &Told, now: Instant) -> bool {
        let since = self.0.get(&(told.to, told.from.ip()));
        since.is_some_and(|since| now.duration_since(*since) < KNOWN_FOR)
    }

    fn add(&mut self, told: &Told, now: Instant) {
        if self.0.len() >= MOST_KNOWN
            && let Some(oldest) = self.0.iter().min_by_key(|(_, since)| **since).map(|(ends, _)| *ends)
        {
            self.0.remove(&oldest);
        }
        self.0.insert((told.to, told.from.ip()), now);
    }
}

/// Opens connections, and remembers the clients that a destination does not answer through this node.
#[derive(Debug)]
pub(super) struct Opener {
    as_client: bool,
    opened: OpenedHere,
    elsewhere: Mutex<Elsewhere>,
    sets: Arrivals,
}

impl Opener {
    pub(super) fn new(as_client: bool, opened: OpenedHere, sets: Arrivals) -> Opener {
        Opener { as_client, opened, elsewhere: Mutex::default(), sets }
    }

    /// Connects with the client's address. If that is not answered soon, a connection with another port and one with
    /// this node's own address are tried beside it, and the first that stands is taken. A refusal is one, whatever its
    /// address.
    pub(super) async fn connect(&self, told: &Told) -> io::Result<Connected> {
        let as_self = || async { self.connect_as(own_address(told.to)?, told).await };
        if !self.as_client || self.elsewhere.lock().has(told, Instant::now()) {
            return as_self().await;
        }
        let as_client = || self.connect_as(told.from.ip(), told);
        let as_client = sooner_of(as_client(), (ANOTHER_PORT_AFTER, as_client()));
        let mut has_left = true;
        let as_self_at_last = async {
            let connected = as_self().await;
            has_left = self.has_left(told);
            connected
        };
        let connected = sooner_of(as_client, (OWN_AFTER, as_self_at_last)).await;
        match &connected {
            // A kernel that has no such sockets, or no right to them.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return as_self().await,
            Ok((_, from)) if from.ip() != told.from.ip() && has_left => {
                self.elsewhere.lock().add(told, Instant::now());
            }
            _ => {}
        }
        connected
    }

    /// Returns whether a SYN with the client's address has left, as far as is known. A full set of the kernel keeps it
    /// here, which says nothing of the server.
    fn has_left(&self, told: &Told) -> bool {
        let opened = self.opened.0.lock();
        let mut of_client = opened.iter().filter(|(from, to)| from.ip() == told.from.ip() && *to == told.to);
        of_client.any(|ends| self.sets.is_calling(*ends).unwrap_or(true))
    }

    async fn connect_as(&self, from: IpAddr, told: &Told) -> io::Result<Connected> {
        let socket = net::TcpStream::from(socket_at(from, from == told.from.ip())?);
        let traffic_class = told.dscp << 2;
        match from {
            IpAddr::V4(_) => {
                sockopt::set_ip_ttl(&socket, told.hop_limit.into())?;
                sockopt::set_ip_tos(&socket, traffic_class)?;
            }
            IpAddr::V6(_) => {
                sockopt::set_ipv6_unicast_hops(&socket, Some(told.hop_limit))?;
                sockopt::set_ipv6_tclass(&socket, traffic_class.into())?;
            }
        }
        let listed = self.opened.connect(&socket, told.to)?;
        let stream = TcpStream::from_std(socket)?;
        stream.writable().await?;
        stream.take_error()?.map_or(Ok((stream, listed.ends.0)), Err)
    }
}

/// The outcome of an attempt, or of one that begins later, if that has an outcome first.
async fn sooner_of(
    attempt: impl Future<Output = io::Result<Connected>>,
    (after, later): (Duration, impl Future<Output = io::Result<Connected>>),
) -> io::Result<Connected> {
    tokio::select! {
        connected = attempt => connected,
        connected = async { sleep(after).await; later.await } => connected,
    }
}

/// This node's address towards a destination, by the kernel's routes. No packet is sent.
fn own_address(to: SocketAddr) -> io::Result<IpAddr> {
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any)?;
    socket.connect(to)?;
    Ok(socket.local_addr()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_known_while_it_is_opened() {
        let here = IpAddr::from([127, 0, 0, 1]);
        let listener = net::TcpListener::bind((here, 0)).expect("a port");
        let to = listener.local_addr().expect("bound");
        let socket = net::TcpStream::from(socket_at(here, false).expect("a socket"));
        let opened = OpenedHere::default();
        let listed = opened.connect(&socket, to).expect("it listens");
        let ends = (listener.accept().expect("it has come").1, to);
        assert!(opened.has(ends) && !opened.has((to, to)));
        drop(listed);
        assert!(!opened.has(ends));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_answered_elsewhere_says_nothing_of_others_nor_of_other_ports_and_is_tried_again()
     {
        let told = |client: [u8; 4]| Told {
            from: SocketAddr::from((client, 40_000)),
            to: SocketAddr::from(([10, 2, 0, 2], 80)),
            hop_limit: 56,
            dscp: 0,
        };
        let (made_up, honest) = (told([10, 2, 0, 77]), told([10, 1, 0, 2]));
        let mut elsewhere = Elsewhere::default();
        elsewhere.add(&made_up, Instant::now());
        assert!(elsewhere.has(&made_up, Instant::now()) && !elsewhere.has(&honest, Instant::now()));
        let other_port = Told { to: SocketAddr::from(([10, 2, 0, 2], 81)), ..made_up };
        assert!(!elsewhere.has(&other_port, Instant::now()));
        sleep(KNOWN_FOR).await;
        assert!(!elsewhere.has(&made_up, Instant::now()));
    }

    #[tokio::test(start_paused = true)]
    async fn of_too_many_clients_the_oldest_is_forgotten() {
        let told = |nth: usize| {
            let [a, b] = u16::try_from(nth).expect("few").to_be_bytes();
            let from = SocketAddr::from(([10, 1, a, b], 1));
            Told { from, to: SocketAddr::from(([10, 2, 0, 2], 80)), hop_limit: 56, dscp: 0 }
        };
        let mut elsewhere = Elsewhere::default();
        for nth in (0..=MOST_KNOWN).rev() {
            elsewhere.add(&told(nth), Instant::now());
            sleep(Duration::from_millis(1)).await;
        }
        let has = |nth: usize| elsewhere.has(&told(nth), Instant::now());
        assert_eq!((has(MOST_KNOWN), has(MOST_KNOWN - 1), has(0)), (false, true, true));
    }

    #[test]
    fn this_nodes_address_is_the_one_that_the_kernel_would_take() {
        let loopback = own_address("127.0.0.1:9".parse().expect("an address"));
        assert_eq!(loopback.expect("there is a loopback"), IpAddr::from([127, 0, 0, 1]));
    }
}
