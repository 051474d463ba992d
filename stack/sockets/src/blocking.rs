//! Sockets for programs without a runtime: calls that wait, or do not, and a descriptor to poll.
//!
//! A socket's descriptor is readable when a [`recv`](TcpStream::recv) or an [`accept`](TcpListener::accept) would not
//! wait, and writable when a [`send`](TcpStream::send) would not. Any poll loop may watch it. It carries no data: a
//! program neither reads, writes nor closes it.

mod bell;

use std::collections::VecDeque;
use std::future::Future;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use hopwise_core::endpoint::{ConnectOptions, ListenOptions};
use hopwise_core::tcp::Info;
use hopwise_host::{Interest, wait_until};

use crate::Network;
use bell::{Bell, Side};

/// The way in which a socket's calls wait.
#[derive(Debug, Default)]
struct Waits {
    is_nonblocking: AtomicBool,
    most: Mutex<Option<Duration>>,
}

impl Waits {
    /// Repeats a call until it does not have to wait, or fails as the socket is set.
    fn until<T>(
        &self,
        bell: &Bell,
        interest: Interest,
        mut call: impl FnMut() -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match call() {
                Err(error)
                    if error.kind() == io::ErrorKind::WouldBlock
                        && !self.is_nonblocking.load(Ordering::Relaxed) => {}
                done => return done,
            }
            wait_until(
                bell.descriptor(),
                interest,
                *self.most.lock().unwrap_or_else(PoisonError::into_inner),
            )?;
        }
    }

    fn set_nonblocking(&self, is_nonblocking: bool) {
        self.is_nonblocking.store(is_nonblocking, Ordering::Relaxed);
    }

    fn set_timeout(&self, most: Option<Duration>) {
        *self.most.lock().unwrap_or_else(PoisonError::into_inner) = most;
    }
}

/// A connection, like the standard library's stream of the same name.
#[derive(Debug)]
pub struct TcpStream {
    stream: crate::TcpStream,
    bell: Arc<Bell>,
    waits: Waits,
}

impl TcpStream {
    /// Opens a connection, to the first of the addresses that answers. `within` bounds the wait for each.
    pub fn connect(
        network: &Network,
        to: impl ToSocketAddrs,
        options: &ConnectOptions,
        within: Option<Duration>,
    ) -> io::Result<TcpStream> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in to.to_socket_addrs()? {
            match wait_for(network, network.stack().connect(address, options), within) {
                Some(Ok(stream)) => return TcpStream::over(stream),
                Some(Err(error)) => last = error.into(),
                None => last = io::Error::new(io::ErrorKind::TimedOut, "the peer did not answer in time"),
            }
        }
        Err(last)
    }

    /// The socket of a stream.
    fn over(stream: crate::TcpStream) -> io::Result<TcpStream> {
        let socket = TcpStream { stream, bell: Bell::new()?, waits: Waits::default() };
        socket.ask_to_read();
        socket.ask_to_write();
        Ok(socket)
    }

    fn ask_to_read(&self) {
        self.bell.ask(Side::Read, |cx| self.stream.poll_read_ready(cx));
    }

    fn ask_to_write(&self) {
        self.bell.ask(Side::Write, |cx| self.stream.poll_write_ready(cx));
    }

    /// Reads what has come; 0 is the end.
    pub fn recv(&self, into: &mut [u8]) -> io::Result<usize> {
        self.waits.until(&self.bell, Interest::Read, || {
            let read = self.stream.try_read(into);
            self.ask_to_read();
            read
        })
    }

    /// Writes as much as there is room for, at least a byte.
    pub fn send(&self, data: &[u8]) -> io::Result<usize> {
        self.waits.until(&self.bell, Interest::Room, || {
            let written = self.stream.try_write(data);
            self.ask_to_write();
            written
        })
    }

    /// Ends this side: the peer reads the end after the last byte. The other side goes on.
    pub fn shutdown(&self) -> io::Result<()> {
        self.stream.shutdown_write();
        Ok(())
    }

    /// Sets whether calls fail with [`WouldBlock`](io::ErrorKind::WouldBlock) in place of waiting.
    pub fn set_nonblocking(&self, is_nonblocking: bool) {
        self.waits.set_nonblocking(is_nonblocking);
    }

    /// Sets the longest wait of a call, after which it fails with [`TimedOut`](io::ErrorKind::TimedOut).
    pub fn set_timeout(&self, most: Option<Duration>) {
        self.waits.set_timeout(most);
    }

    /// Sets whether short segments leave at once.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.stream.set_nodelay(nodelay)
    }

    /// Returns whether short segments leave at once.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.stream.nodelay()
    }

    /// Address and port of the peer.
    pub fn peer_addr(&self) -> SocketAddr {
        self.stream.peer_addr()
    }

    /// Address and port of our end.
    pub fn local_addr(&self) -> SocketAddr {
        self.stream.local_addr()
    }

    /// The state of the connection and its agents; `None` once it is forgotten.
    pub fn info(&self) -> Option<Info> {
        self.stream.info()
    }
}

impl AsFd for TcpStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.descriptor()
    }
}

impl Read for TcpStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.recv(into)
    }
}

impl Write for TcpStream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.send(data)
    }

    /// The stack already has the data.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for &TcpStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.recv(into)
    }
}

impl Write for &TcpStream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.send(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A port that accepts connections.
#[derive(Debug)]
pub struct TcpListener {
    listener: crate::TcpListener,
    /// Connections that have come while readiness was asked for.
    arrived: Mutex<VecDeque<io::Result<crate::TcpStream>>>,
    bell: Arc<Bell>,
    waits: Waits,
}

impl TcpListener {
    /// Waits for connections to an address of the network; `0.0.0.0` is all of them, and port 0 any that is free.
    pub fn bind(
        network: &Network,
        at: impl ToSocketAddrs,
        options: &ListenOptions,
    ) -> io::Result<TcpListener> {
        TcpListener::over(network.stack().listen_at_one(at.to_socket_addrs()?, options)?)
    }

    fn over(listener: crate::TcpListener) -> io::Result<TcpListener> {
        let bell = Bell::new()?;
        bell.show(Side::Write, false);
        let socket = TcpListener { listener, arrived: Mutex::default(), bell, waits: Waits::default() };
        socket.ask(&mut socket.arrived.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(socket)
    }

    /// Asks for the next connection, if none waits here.
    fn ask(&self, arrived: &mut VecDeque<io::Result<crate::TcpStream>>) {
        if arrived.is_empty() {
            self.bell.ask(Side::Read, |cx| {
                self.listener.poll_accept(cx).map(|came| {
                    arrived.push_back(came);
                    Ok(())
                })
            });
        }
    }

    /// The next connection.
    pub fn accept(&self) -> io::Result<TcpStream> {
        let stream = self.waits.until(&self.bell, Interest::Read, || {
            let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
            self.ask(&mut arrived);
            let next = arrived.pop_front().unwrap_or_else(|| Err(io::ErrorKind::WouldBlock.into()));
            self.ask(&mut arrived);
            next
        })?;
        TcpStream::over(stream)
    }

    /// Sets whether `accept` fails with [`WouldBlock`](io::ErrorKind::WouldBlock) in place of waiting.
    pub fn set_nonblocking(&self, is_nonblocking: bool) {
        self.waits.set_nonblocking(is_nonblocking);
    }

    /// Sets the longest wait of `accept`, after which it fails with [`TimedOut`](io::ErrorKind::TimedOut).
    pub fn set_timeout(&self, most: Option<Duration>) {
        self.waits.set_timeout(most);
    }

    /// Address and port on which it listens; the address is unspecified if it listens on all.
    pub fn local_addr(&self) -> SocketAddr {
        self.listener.local_addr()
    }
}

impl AsFd for TcpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.descriptor()
    }
}

/// Runs a future on this thread, `within` that time; None if it took longer.
fn wait_for<T>(network: &Network, future: impl Future<Output = T>, within: Option<Duration>) -> Option<T> {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let clock = network.stack().clock();
    let until = within.map(|within| clock.now() + within);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(done);
        }
        match until.map(|until| until.since(clock.now())) {
            None => thread::park(),
            Some(Duration::ZERO) => return None,
            Some(rest) => thread::park_timeout(rest),
        }
    }
}
