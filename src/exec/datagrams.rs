//! The command's datagrams: a socket of the kernel for each of its sockets, which answers from anywhere come back by.

mod table;

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

use super::outside::Outside;
use table::Table;

/// Datagrams that wait to go out. More are dropped, as by any full queue.
const MOST_WAITING: usize = 1024;
/// The time for which a silent flow keeps its socket, as RFC 4787 asks of a NAT; one of DNS has its answer soon.
const KEPT_FOR: Duration = Duration::from_secs(300);
const DNS_KEPT_FOR: Duration = Duration::from_secs(30);
const DNS: u16 = 53;
const LONGEST: usize = 65_535;

/// Datagrams that have no server yet.
#[derive(Debug)]
pub(super) struct Channel(mpsc::Receiver<Datagram>);

/// The server of datagrams, which ends with its guard.
#[derive(Debug)]
pub(super) struct Datagrams(JoinHandle<()>);

/// A socket of the command, and the family of its destinations.
type Key = (SocketAddr, bool);

#[derive(Debug)]
struct Flow {
    socket: Arc<UdpSocket>,
    shared: Arc<Shared>,
    answers: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    /// The addresses by which the command knows places on this machine.
    known_as: Mutex<BTreeMap<SocketAddr, SocketAddr>>,
    until: Mutex<Instant>,
}

impl Drop for Flow {
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
    pub(super) fn channel() -> (DatagramSink, Channel) {
        let (send, receive) = mpsc::channel(MOST_WAITING);
        let sink = move |datagram| drop(send.try_send(datagram));
        (Box::new(sink), Channel(receive))
    }
}

impl Channel {
    pub(super) fn serve(mut self, writer: DatagramWriter, outside: Outside) -> Datagrams {
        Datagrams(tokio::spawn(async move {
            let mut flows = Table::new();
            while let Some(datagram) = self.0.recv().await {
                // A datagram that cannot go out is lost, as on any network.
                let _ = send(&mut flows, &writer, outside, &datagram);
            }
        }))
    }
}

fn send(
    flows: &mut Table<Key, Flow>,
    writer: &DatagramWriter,
    outside: Outside,
    datagram: &Datagram,
) -> io::Result<()> {
    if datagram.to.ip().is_multicast() {
        return Ok(());
    }
    let to = outside.here(datagram.to).unwrap_or(datagram.to);
    let key = (datagram.from, to.is_ipv4());
    let has_ended = |flow: &Flow| flow.answers.is_finished();
    let flow = flows.used(key, Instant::now(), has_ended, || Flow::open(key, writer.clone()))?;
    if to != datagram.to {
        flow.shared.known_as.lock().insert(to, datagram.to);
    }
    flow.keep(datagram.to.port());
    // Tokio would first wait to be told that a new socket has room.
    let sent = sendto(&flow.socket, &datagram.payload, SendFlags::DONTWAIT, &to);
    Ok(sent.map(drop)?)
}

impl Flow {
    fn open((inner, is_v4): Key, writer: DatagramWriter) -> io::Result<Flow> {
        let any = if is_v4 { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
        let socket = std::net::UdpSocket::bind((any, 0))?;
        socket.set_nonblocking(true)?;
        let socket = Arc::new(UdpSocket::from_std(socket)?);
        let until = Mutex::new(Instant::now() + DNS_KEPT_FOR);
        let shared = Arc::new(Shared { known_as: Mutex::default(), until });
        let answers = tokio::spawn(answer(Arc::clone(&socket), Arc::clone(&shared), inner, writer));
        Ok(Flow { socket, shared, answers })
    }

    fn keep(&self, port: u16) {
        let kept_for = if port == DNS { DNS_KEPT_FOR } else { KEPT_FOR };
        let mut until = self.shared.until.lock();
        *until = (*until).max(Instant::now() + kept_for);
    }
}

/// Carries answers until the flow has been silent for long.
async fn answer(socket: Arc<UdpSocket>, shared: Arc<Shared>, inner: SocketAddr, writer: DatagramWriter) {
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
