//! The command's datagrams: a socket of the kernel for each of its sockets, which answers from anywhere come back by.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hopwise_host::enclosure::{Datagram, DatagramSink, DatagramWriter};
use parking_lot::Mutex;
use rustix::net::{SendFlags, sendto};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::resolver::LoopbackEnd;

/// Datagrams that wait to go out. More are dropped, as by any full queue.
const MOST_WAITING: usize = 1024;
/// The time for which a silent flow keeps its socket, as RFC 4787 asks of a NAT; one of DNS has its answer soon.
const KEPT_FOR: Duration = Duration::from_secs(300);
const DNS_KEPT_FOR: Duration = Duration::from_secs(30);
const DNS: u16 = 53;
const LONGEST: usize = 65_535;

/// Datagrams that have no server yet.
#[derive(Debug)]
pub(super) struct DatagramChannel(mpsc::Receiver<Datagram>);

/// The server of datagrams, which ends with its guard.
#[derive(Debug)]
pub(super) struct Datagrams(JoinHandle<()>);

/// A socket of the command, and the family of its destinations.
type FlowSocket = (SocketAddr, bool);

#[derive(Debug)]
struct DatagramFlow {
    socket: Arc<UdpSocket>,
    shared: Arc<FlowState>,
    answers: JoinHandle<()>,
}

#[derive(Debug)]
struct FlowState {
    /// The addresses by which the command knows places on this machine.
    known_as: Mutex<BTreeMap<SocketAddr, SocketAddr>>,
    until: Mutex<Instant>,
}

impl Drop for DatagramFlow {
    fn drop(&mut self) {
        self.answers.abort();
    }
}

impl Drop for Datagrams {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Datagrams {
    pub(super) fn channel() -> (DatagramSink, DatagramChannel) {
        let (send, receive) = mpsc::channel(MOST_WAITING);
        let sink = move |datagram| drop(send.try_send(datagram));
        (Box::new(sink), DatagramChannel(receive))
    }
}

impl DatagramChannel {
    pub(super) fn serve(mut self, writer: DatagramWriter, outside: LoopbackEnd) -> Datagrams {
        Datagrams(tokio::spawn(async move {
            let mut flows = FlowTable::new();
            while let Some(datagram) = self.0.recv().await {
                // A datagram that cannot go out is lost, as on any network.
                let _ = send(&mut flows, &writer, outside, &datagram);
            }
        }))
    }
}

fn send(
    flows: &mut FlowTable<FlowSocket, DatagramFlow>,
    writer: &DatagramWriter,
    outside: LoopbackEnd,
    datagram: &Datagram,
) -> io::Result<()> {
    if datagram.to.ip().is_multicast() {
        return Ok(());
    }
    let to = outside.here(datagram.to).unwrap_or(datagram.to);
    let key = (datagram.from, to.is_ipv4());
    let has_ended = |flow: &DatagramFlow| flow.answers.is_finished();
    let flow = flows.used(key, Instant::now(), has_ended, || DatagramFlow::open(key, writer.clone()))?;
    if to != datagram.to {
        flow.shared.known_as.lock().insert(to, datagram.to);
    }
    flow.keep(datagram.to.port());
    // Tokio would first wait to be told that a new socket has room.
    Ok(sendto(&flow.socket, &datagram.payload, SendFlags::DONTWAIT, &to).map(drop)?)
}

impl DatagramFlow {
    fn open((inner, is_v4): FlowSocket, writer: DatagramWriter) -> io::Result<DatagramFlow> {
        let any = if is_v4 { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
        let socket = std::net::UdpSocket::bind((any, 0))?;
        socket.set_nonblocking(true)?;
        let socket = Arc::new(UdpSocket::from_std(socket)?);
        let until = Mutex::new(Instant::now() + DNS_KEPT_FOR);
        let shared = Arc::new(FlowState { known_as: Mutex::default(), until });
        let answers = tokio::spawn(answer(Arc::clone(&socket), Arc::clone(&shared), inner, writer));
        Ok(DatagramFlow { socket, shared, answers })
    }

    fn keep(&self, port: u16) {
        let kept_for = if port == DNS { DNS_KEPT_FOR } else { KEPT_FOR };
        let mut until = self.shared.until.lock();
        *until = (*until).max(Instant::now() + kept_for);
    }
}

/// Carries answers until the flow has been silent for long.
async fn answer(socket: Arc<UdpSocket>, shared: Arc<FlowState>, inner: SocketAddr, writer: DatagramWriter) {
    let mut buffer = vec![0; LONGEST];
    loop {
        let until = *shared.until.lock();
        let came = tokio::select! {
            came = socket.recv_from(&mut buffer) => came,
            () = sleep_until(until) => {
                if *shared.until.lock() <= Instant::now() {
                    return;
                }
                continue;
            }
        };
        let Ok((bytes, from)) = came else { return };
        let from = shared.known_as.lock().get(&from).copied().unwrap_or(from);
        if from.is_ipv4() == inner.is_ipv4() {
            let datagram = Datagram { from, to: inner, payload: buffer[..bytes].to_vec() };
            // The device has no room: it is lost.
            let _ = writer.write(&datagram);
        }
    }
}

// The flows of datagrams by their key. When no place is free, the one that has sent nothing for longest makes room.

/// Flows at a time.
const MOST: usize = 1024;

#[derive(Debug)]
struct FlowTable<K, F>(BTreeMap<K, Used<F>>);

#[derive(Debug)]
struct Used<F> {
    last: Instant,
    flow: F,
}

impl<K: Copy + Ord, F> FlowTable<K, F> {
    fn new() -> FlowTable<K, F> {
        FlowTable(BTreeMap::new())
    }

    /// Returns the flow of this key for a datagram that it carries now. One that is not there, or has ended, is opened.
    fn used(
        &mut self,
        key: K,
        now: Instant,
        has_ended: impl Fn(&F) -> bool,
        open: impl FnOnce() -> io::Result<F>,
    ) -> io::Result<&F> {
        let open_before = self.0.remove(&key).filter(|used| !has_ended(&used.flow));
        let flow = match open_before {
            Some(used) => used.flow,
            None => {
                self.make_room(has_ended);
                open()?
            }
        };
        Ok(&self.0.entry(key).or_insert(Used { last: now, flow }).flow)
    }

    /// A flow that will be kept for longer has no claim to its place: a lookup that waits is used later than it.
    fn make_room(&mut self, has_ended: impl Fn(&F) -> bool) {
        if self.0.len() < MOST {
            return;
        }
        self.0.retain(|_, used| !has_ended(&used.flow));
        let silent = self.0.iter().min_by_key(|(_, used)| used.last).map(|(key, _)| *key);
        if let Some(silent) = silent.filter(|_| self.0.len() >= MOST) {
            self.0.remove(&silent);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A table in which each flow opens once, at milliseconds that only grow.
    struct Tried {
        table: FlowTable<usize, bool>,
        now: Instant,
        opened: usize,
    }

    impl Tried {
        fn new() -> Tried {
            Tried { table: FlowTable::new(), now: Instant::now(), opened: 0 }
        }

        fn send(&mut self, key: usize) {
            self.now += Duration::from_millis(1);
            let opened = &mut self.opened;
            let open = || {
                *opened += 1;
                Ok(false)
            };
            self.table.used(key, self.now, |ended| *ended, open).expect("it opens");
        }

        fn has(&self, key: usize) -> bool {
            self.table.0.contains_key(&key)
        }
    }

    #[test]
    fn lookups_beside_as_many_flows_as_there_are_places_keep_theirs() {
        let mut tried = Tried::new();
        (0..MOST).for_each(|flow| tried.send(flow));
        let lookups = MOST..MOST + 500;
        lookups.clone().for_each(|lookup| tried.send(lookup));
        assert!(lookups.into_iter().all(|lookup| tried.has(lookup)));
        assert_eq!(
            (0..MOST).filter(|flow| tried.has(*flow)).collect::<Vec<_>>(),
            (500..MOST).collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_flow_that_sends_again_keeps_its_place_and_its_socket() {
        let mut tried = Tried::new();
        (0..MOST).for_each(|flow| tried.send(flow));
        tried.send(0);
        assert_eq!(tried.opened, MOST);
        tried.send(MOST);
        assert_eq!((tried.has(0), tried.has(1), tried.table.0.len()), (true, false, MOST));
    }

    #[test]
    fn flows_that_have_ended_make_room_first() {
        let mut tried = Tried::new();
        (0..MOST).for_each(|flow| tried.send(flow));
        tried.table.0.get_mut(&900).expect("it was opened").flow = true;
        tried.send(MOST);
        assert_eq!((tried.has(0), tried.has(900), tried.table.0.len()), (true, false, MOST));
        tried.table.0.get_mut(&0).expect("it was opened").flow = true;
        tried.send(0);
        assert_eq!(tried.opened, MOST + 2, "one that has ended is opened anew");
    }
}
