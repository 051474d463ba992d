//! Sockets for programs without a runtime: calls that wait, or do not, and a descriptor to poll.
//!
//! A socket's descriptor is readable when a [`recv`](TcpStream::recv) or an [`accept`](TcpListener::accept) would not
//! wait, and writable when a [`send`](TcpStream::send) would not. Any poll loop may watch it. It carries no data: a
//! program neither reads, writes nor closes it.
//!
//! A call that waits fails with [`Interrupted`](io::ErrorKind::Interrupted) when a signal's handler has run, unless all
//! handlers of the program have `SA_RESTART`. The signals of faults, such as SIGSEGV, do not count. In a child that
//! such a handler forks the call fails with EBADF.

mod bell;
mod opening;

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::endpoint::{ConnectOptions, ListenOptions};
use hopwise_core::tcp::Info;
use hopwise_host::{Clock, Interest, fork, signals, wait_until};

use crate::Network;
use bell::{Bell, Side};
use opening::Opening;

/// The way in which a socket's calls wait.
#[derive(Debug)]
struct Waits {
    is_nonblocking: AtomicBool,
    most: Mutex<Option<Duration>>,
    /// The process whose socket it is.
    process: u64,
}

impl Waits {
    fn at_most(most: Option<Duration>) -> Waits {
        Waits { is_nonblocking: AtomicBool::new(false), most: Mutex::new(most), process: fork::process() }
    }

    /// Repeats a call until it does not have to wait, or fails as the socket is set.
    fn until<T>(
        &self,
        bell: &Bell,
        interest: Interest,
        mut call: impl FnMut() -> io::Result<T>,
    ) -> io::Result<T> {
        let mut begun = None;
        loop {
            match call() {
                Err(error)
                    if error.kind() == io::ErrorKind::WouldBlock
                        && !self.is_nonblocking.load(Ordering::Relaxed) => {}
                done => return done,
            }
            let clock = *begun.get_or_insert_with(Clock::start);
            let most = *self.most.lock().unwrap_or_else(PoisonError::into_inner);
            let rest = most.map(|most| most.saturating_sub(clock.now().since(Instant::ZERO)));
            self.check_process()?;
            let waited = wait_until(bell.descriptor(), interest, rest);
            self.check_process()?;
            match waited {
                Err(error) if error.kind() == io::ErrorKind::Interrupted && signals::all_restart() => {}
                done => done?,
            }
        }
    }

    /// Refuses to wait in a child that a handler has forked: nothing would end the wait.
    fn check_process(&self) -> io::Result<()> {
        if self.process == fork::process() { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EBADF)) }
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
    opening: Opening,
    /// The program wants to read nothing more.
    is_deaf: AtomicBool,
    /// The program wants short segments to leave at once.
    is_nodelay: AtomicBool,
    bell: Bell,
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
            match TcpStream::begin(network, address, options).and_then(|stream| stream.stand(within)) {
                Ok(stream) => return Ok(stream),
                Err(error)
                    if error.kind() == io::ErrorKind::Interrupted
                        || error.raw_os_error() == Some(libc::EBADF) =>
                {
                    return Err(error);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Begins to open a connection. This call and those of the new socket do not wait. Its descriptor turns writable
    /// once the connection stands or has failed, and [`connected`](TcpStream::connected) says which.
    pub fn begin_connect(
        network: &Network,
        to: SocketAddr,
        options: &ConnectOptions,
    ) -> io::Result<TcpStream> {
        let stream = TcpStream::begin(network, to, options)?;
        stream.set_nonblocking(true);
        Ok(stream)
    }

    /// An attempt that cannot begin fails here.
    fn begin(network: &Network, to: SocketAddr, options: &ConnectOptions) -> io::Result<TcpStream> {
        let stream = TcpStream::with(Opening::begin(network, to, options))?;
        match stream.connected() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(stream),
        }
    }

    /// Waits until it stands.
    fn stand(self, within: Option<Duration>) -> io::Result<TcpStream> {
        let waits = Waits::at_most(within);
        match waits.until(&self.bell, Interest::Room, || self.connected()) {
            // The peer's silence, which the stack has found out, has a text.
            Err(error) if error.kind() == io::ErrorKind::TimedOut && error.get_ref().is_none() => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "the peer did not answer in time"))
            }
            done => done.map(|()| self),
        }
    }

    /// The socket of a stream that stands.
    fn over(stream: crate::TcpStream) -> io::Result<TcpStream> {
        let socket = TcpStream::with(Opening::done(stream))?;
        socket.ask_to_read()?;
        socket.ask_to_write()?;
        Ok(socket)
    }

    fn with(opening: Opening) -> io::Result<TcpStream> {
        let [is_deaf, is_nodelay] = [(); 2].map(|()| AtomicBool::new(false));
        Ok(TcpStream { opening, is_deaf, is_nodelay, bell: Bell::new()?, waits: Waits::at_most(None) })
    }

    /// Returns whether the connection stands. While it opens, this fails with
    /// [`WouldBlock`](io::ErrorKind::WouldBlock). The reason of a failure is told once, and then
    /// [`NotConnected`](io::ErrorKind::NotConnected).
    pub fn connected(&self) -> io::Result<()> {
        self.advance()?;
        self.opening.stream().map(drop)
    }

    fn advance(&self) -> io::Result<()> {
        if self.opening.advance(&self.bell) {
            if self.is_nodelay.load(Ordering::Relaxed) {
                // A connection that is over already has nothing to send.
                let _ = self.opening.stream()?.set_nodelay(true);
            }
            self.ask_to_read()?;
            self.ask_to_write()?;
        }
        Ok(())
    }

    /// The stream, for calls that do not wait and leave the reason of a failure to others.
    fn standing(&self) -> io::Result<&crate::TcpStream> {
        self.advance()?;
        self.opening.standing()
    }

    /// The stream. A call that may wait waits here until the connection stands.
    fn stream(&self) -> io::Result<&crate::TcpStream> {
        match self.opening.stream() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return done,
        }
        self.waits.until(&self.bell, Interest::Room, || self.connected())?;
        self.opening.stream()
    }

    fn ask_to_read(&self) -> io::Result<()> {
        let stream = self.opening.stream()?;
        self.bell.ask(Side::Read, |cx| match self.is_deaf.load(Ordering::Relaxed) {
            true => Poll::Ready(Ok(())),
            false => stream.poll_read_ready(cx),
        });
        Ok(())
    }

    fn ask_to_write(&self) -> io::Result<()> {
        let stream = self.opening.stream()?;
        self.bell.ask(Side::Write, |cx| stream.poll_write_ready(cx));
        Ok(())
    }

    /// Reads what has come; 0 is the end.
    pub fn recv(&self, into: &mut [u8]) -> io::Result<usize> {
        let stream = self.stream()?;
        self.waits.until(&self.bell, Interest::Read, || {
            if self.is_deaf.load(Ordering::Relaxed) {
                return Ok(0);
            }
            let read = stream.try_read(into);
            self.ask_to_read()?;
            read
        })
    }

    /// Writes as much as there is room for, at least a byte.
    pub fn send(&self, data: &[u8]) -> io::Result<usize> {
        let stream = self.stream()?;
        self.waits.until(&self.bell, Interest::Room, || {
            let written = stream.try_write(data);
            self.ask_to_write()?;
            written
        })
    }

    /// Ends one side or both. The peer reads the end after the last byte written; this end's reads return 0 from then
    /// on, also one that waits.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let stream = self.stream()?;
        if matches!(how, Shutdown::Write | Shutdown::Both) {
            stream.shutdown_write();
        }
        if matches!(how, Shutdown::Read | Shutdown::Both) {
            self.is_deaf.store(true, Ordering::Relaxed);
            self.ask_to_read()?;
        }
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

    /// Sets whether short segments leave at once. It may be set before the connection stands.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.is_nodelay.store(nodelay, Ordering::Relaxed);
        self.standing().map_or(Ok(()), |stream| stream.set_nodelay(nodelay))
    }

    /// Returns whether short segments leave at once.
    pub fn nodelay(&self) -> io::Result<bool> {
        let asked = self.is_nodelay.load(Ordering::Relaxed);
        self.standing().map_or(Ok(asked), crate::TcpStream::nodelay)
    }

    /// Address and port of the peer.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.standing()?.peer_addr())
    }

    /// Address and port of our end.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.standing()?.local_addr())
    }

    /// The state of the connection and its agents; `None` before it stands, and once it is forgotten.
    pub fn info(&self) -> Option<Info> {
        self.standing().ok()?.info()
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
    bell: Bell,
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
        let socket = TcpListener { listener, arrived: Mutex::default(), bell, waits: Waits::at_most(None) };
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

// Errors as C and Python have them: numbers.

/// The number that the kernel would have put into `errno` for this error of a socket.
pub fn errno(error: &io::Error) -> i32 {
    use io::ErrorKind as Kind;
    if let Some(number) = error.raw_os_error() {
        return number;
    }
    match error.kind() {
        Kind::WouldBlock => libc::EAGAIN,
        Kind::TimedOut => libc::ETIMEDOUT,
        Kind::Interrupted => libc::EINTR,
        Kind::ConnectionRefused => libc::ECONNREFUSED,
        Kind::ConnectionReset => libc::ECONNRESET,
        Kind::ConnectionAborted => libc::ECONNABORTED,
        Kind::NotConnected => libc::ENOTCONN,
        Kind::HostUnreachable => libc::EHOSTUNREACH,
        Kind::NetworkUnreachable => libc::ENETUNREACH,
        Kind::AddrInUse => libc::EADDRINUSE,
        Kind::AddrNotAvailable => libc::EADDRNOTAVAIL,
        Kind::BrokenPipe => libc::EPIPE,
        Kind::PermissionDenied => libc::EPERM,
        Kind::NotFound => libc::ENOENT,
        Kind::OutOfMemory => libc::ENOMEM,
        Kind::InvalidInput | Kind::InvalidData => libc::EINVAL,
        _ => libc::EIO,
    }
}
