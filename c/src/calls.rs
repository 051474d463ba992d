//! The calls that C sees. Each one answers -1 after an error, with the reason in `errno` and in `hopwise_error`.
#![expect(unsafe_code, reason = "names for a linker, and pointers of C's")]

use std::io;
use std::net::Shutdown;
use std::time::Duration;

use hopwise_sockets::blocking::{TcpListener, TcpStream};
use hopwise_sockets::{AgentChoice, Network, NetworkBuilder};
use libc::{c_char, c_int, c_void, size_t, ssize_t};

use crate::table::{self, Handle};
use crate::{errors, memory};

fn answer<T: From<i8>>(done: io::Result<T>) -> T {
    done.unwrap_or_else(|error| {
        errors::keep(&error);
        T::from(-1)
    })
}

fn number(done: io::Result<()>) -> c_int {
    answer(done.map(|()| 0))
}

fn wanted(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// A time in milliseconds; a negative one is without end.
fn time(ms: c_int) -> Option<Duration> {
    u64::try_from(ms).ok().map(Duration::from_millis)
}

fn with_network<T>(network: c_int, act: impl FnOnce(&Network) -> io::Result<T>) -> io::Result<T> {
    table::in_one_process(|| match &*table::find(network)? {
        Handle::Network(network, _) => act(network),
        _ => Err(wanted("this handle is a socket: expected a network")),
    })
}

fn with_stream<T>(socket: c_int, act: impl FnOnce(&TcpStream) -> io::Result<T>) -> io::Result<T> {
    table::in_one_process(|| match &*table::find(socket)? {
        Handle::Stream(stream) => act(stream),
        _ => Err(wanted("this handle is no connection: expected one of hopwise_connect or hopwise_accept")),
    })
}

fn with_listener<T>(socket: c_int, act: impl FnOnce(&TcpListener) -> io::Result<T>) -> io::Result<T> {
    table::in_one_process(|| match &*table::find(socket)? {
        Handle::Listener(listener) => act(listener),
        _ => Err(wanted("this handle is no listener: expected one of hopwise_listen")),
    })
}

/// Changes a socket, whichever of the two it is.
fn set(socket: c_int, of_stream: impl FnOnce(&TcpStream), of_listener: impl FnOnce(&TcpListener)) -> c_int {
    let set = || {
        match &*table::find(socket)? {
            Handle::Stream(stream) => of_stream(stream),
            Handle::Listener(listener) => of_listener(listener),
            Handle::Network(..) => return Err(wanted("this handle is a network: expected a socket")),
        }
        Ok(())
    };
    number(table::in_one_process(set))
}

fn file(network: Network) -> io::Result<c_int> {
    Ok(table::insert(Handle::of(network)?))
}

fn opened(builder: NetworkBuilder) -> io::Result<c_int> {
    file(table::in_one_process(|| Ok(builder.open()?))?)
}

/// The agents by their names.
///
/// # Safety
/// As for [`memory::text`].
unsafe fn choice(receiver: *const c_char, senders: *const c_char) -> io::Result<AgentChoice> {
    // SAFETY: the caller vouches for both.
    let (receiver, senders) = unsafe { (memory::text(receiver)?, memory::text(senders)?) };
    Ok(AgentChoice {
        receiver: receiver.map(str::to_owned),
        senders: senders.map(str::to_owned),
        ..AgentChoice::default()
    })
}

/// A string that may not be null.
///
/// # Safety
/// As for [`memory::text`].
unsafe fn needed<'a>(text: *const c_char) -> io::Result<&'a str> {
    // SAFETY: the caller vouches for it.
    unsafe { memory::text(text)? }.ok_or_else(|| io::Error::from_raw_os_error(libc::EFAULT))
}

/// Opens a network on a TUN device, with an address and its subnet ("10.7.0.1/24"). `kernel` is the kernel's address
/// there, or NULL. It takes CAP_NET_ADMIN. Returns the network's handle.
///
/// # Safety
/// The strings end with a zero; `kernel` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopwise_tun(address: *const c_char, kernel: *const c_char) -> c_int {
    let open = || {
        // SAFETY: the caller vouches for the strings.
        let (address, kernel) = unsafe { (needed(address)?, memory::text(kernel)?) };
        let network = Network::tun(address);
        opened(match kernel {
            Some(kernel) => network.kernel(kernel),
            None => network,
        })
    };
    answer(open())
}

/// Opens a network on an Ethernet or Wi-Fi device, with an address of its own there. `gateway` is the router to other
/// subnets, or NULL. It takes CAP_NET_ADMIN and CAP_NET_RAW. Returns the network's handle.
///
/// # Safety
/// The strings end with a zero; `gateway` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopwise_device(
    name: *const c_char,
    address: *const c_char,
    gateway: *const c_char,
) -> c_int {
    let open = || {
        // SAFETY: the caller vouches for the strings.
        let (name, address, gateway) = unsafe { (needed(name)?, needed(address)?, memory::text(gateway)?) };
        let network = Network::device(name, address);
        opened(match gateway {
            Some(gateway) => network.gateway(gateway),
            None => network,
        })
    };
    answer(open())
}

/// Opens two networks with a wire between them, for tests. It takes no rights. Writes both handles to `networks`.
///
/// # Safety
/// The strings end with a zero, and `networks` has room for two numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopwise_pair(
    address: *const c_char,
    others: *const c_char,
    networks: *mut c_int,
) -> c_int {
    let open = || {
        // SAFETY: the caller vouches for the strings.
        let (address, others) = unsafe { (needed(address)?, needed(others)?) };
        let (near, far) = table::in_one_process(|| Ok(Network::pair(address, others)?))?;
        let handles = [file(near)?, file(far)?];
        // SAFETY: the caller vouches for the room.
        unsafe { memory::write_two(networks, handles) }
    };
    number(open())
}

/// Sets the agents of a network's new connections that bring none. A NULL leaves the default.
///
/// # Safety
/// The strings end with a zero, or are NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopwise_agents(
    network: c_int,
    receiver: *const c_char,
    senders: *const c_char,
) -> c_int {
    let set = || {
        // SAFETY: the caller vouches for the strings.
        let agents = unsafe { choice(receiver, senders)? };
        with_network(network, |network| Ok(network.set_agents(&agents)?))
    };
    number(set())
}

/// Opens a connection to an address and a port ("10.7.0.2:80"), and waits for it at most `ms` milliseconds, or without
/// end if `ms` is negative. The agents of this connection may be NULL. Returns its handle, which is a descriptor to
/// poll.
///
/// # Safety
/// The strings end with a zero; those of agents may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopwise_connect(
    network: c_int,
    to: *const c_char,
    receiver: *const c_char,
    senders: *const c_char,
    ms: c_int,
) -> c_int {
    let open = || {
        // SAFETY: the caller vouches for the strings.
        let (to, agents) = unsafe { (needed(to)?, choice(receiver, senders)?) };
        let connect = |network: &Network| TcpStream::connect(network, to, &agents.into(), time(ms));
        Ok(table::insert(Handle::Stream(with_network(network, connect)?)))
    };
    answer(open())
}

/// Waits for connections to an address and a port: "0.0.0.0:80" is all addresses, and port 0 any that is free. The
/// agents of its connections may be NULL. Returns its handle, which is a descriptor to poll.
///
/// # Safety
/// The strings end with a zero; those of agents may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopwise_listen(
    network: c_int,
    at: *const c_char,
    receiver: *const c_char,
    senders: *const c_char,
) -> c_int {
    let open = || {
        // SAFETY: the caller vouches for the strings.
        let (at, agents) = unsafe { (needed(at)?, choice(receiver, senders)?) };
        let bind = |network: &Network| TcpListener::bind(network, at, &agents.into());
        Ok(table::insert(Handle::Listener(with_network(network, bind)?)))
    };
    answer(open())
}

/// Begins to open a connection to an address and a port ("10.7.0.2:80", no name), and returns at once. It returns the
/// handle of a socket that does not wait. Its descriptor turns writable once the connection stands or has failed;
/// `hopwise_connected` says which. The agents of this connection may be NULL.
///
/// # Safety
/// The strings end with a zero; those of agents may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopwise_begin_connect(
    network: c_int,
    to: *const c_char,
    receiver: *const c_char,
    senders: *const c_char,
) -> c_int {
    let open = || {
        // SAFETY: the caller vouches for the strings.
        let (to, agents) = unsafe { (needed(to)?, choice(receiver, senders)?) };
        let to = to.parse().map_err(|_| wanted("expected an address and a port, such as 10.7.0.2:80"))?;
        let begin = |network: &Network| TcpStream::begin_connect(network, to, &agents.into());
        Ok(table::insert(Handle::Stream(with_network(network, begin)?)))
    };
    answer(open())
}

/// Tells whether a connection stands: 0 if it does, else -1. `errno` is EINPROGRESS while it opens, and the reason once
/// it has failed. The reason is told once, as by SO_ERROR, and then ENOTCONN.
#[unsafe(no_mangle)]
pub extern "C" fn hopwise_connected(socket: c_int) -> c_int {
    let stands = with_stream(socket, TcpStream::connected).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => io::Error::from_raw_os_error(libc::EINPROGRESS),
        _ => error,
    });
    number(stands)
}

/// The port on which a listener waits.
#[unsafe(no_mangle)]
pub extern "C" fn hopwise_port(listener: c_int) -> c_int {
    answer(with_listener(listener, |listener| Ok(listener.local_addr().port().into())))
}

/// The next connection of a listener. Returns its handle, which is a descriptor to poll.
#[unsafe(no_mangle)]
pub extern "C" fn hopwise_accept(listener: c_int) -> c_int {
    let stream = with_listener(listener, TcpListener::accept);
    answer(stream.map(|stream| table::insert(Handle::Stream(stream))))
}

/// Reads what has come, at most `len` bytes. Returns how many there were; 0 is the end. The rest of the buffer stays as
/// it is.
///
/// # Safety
/// `into` has room for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopwise_recv(socket: c_int, into: *mut c_void, len: size_t) -> ssize_t {
    let recv = |into: &mut [u8]| with_stream(socket, |stream| stream.recv(into));
    // SAFETY: the caller vouches for the room.
    let read = unsafe { memory::fill(into.cast(), len, recv) };
    answer(read.and_then(counted))
}

/// Writes as much of the data as there is room for, at least a byte. Returns how many bytes were taken.
///
/// # Safety
/// `data` leads to `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopwise_send(socket: c_int, data: *const c_void, len: size_t) -> ssize_t {
    // SAFETY: the caller vouches for the bytes.
    let bytes = unsafe { memory::bytes(data.cast(), len) };
    answer(bytes.and_then(|data| with_stream(socket, |stream| counted(stream.send(data)?))))
}

/// A length within a buffer of C's.
fn counted(bytes: usize) -> io::Result<ssize_t> {
    ssize_t::try_from(bytes).map_err(io::Error::other)
}

/// Ends this side of a connection: the peer reads the end after the last byte.
#[unsafe(no_mangle)]
pub extern "C" fn hopwise_shutdown(socket: c_int) -> c_int {
    number(with_stream(socket, |stream| stream.shutdown(Shutdown::Write)))
}

/// Sets whether short segments leave at once. The default is Nagle's algorithm.
#[unsafe(no_mangle)]
pub extern "C" fn hopwise_set_nodelay(socket: c_int, nodelay: c_int) -> c_int {
    number(with_stream(socket, |stream| stream.set_nodelay(nodelay != 0)))
}

/// Sets whether calls on a socket fail with EAGAIN in place of waiting.
#[unsafe(no_mangle)]
pub extern "C" fn hopwise_set_nonblocking(socket: c_int, nonblocking: c_int) -> c_int {
    let is_nonblocking = nonblocking != 0;
    set(
        socket,
        |stream| stream.set_nonblocking(is_nonblocking),
        |listener| listener.set_nonblocking(is_nonblocking),
    )
}

/// Sets the longest wait of a call on a socket, after which it fails with ETIMEDOUT; a negative time is without end.
#[unsafe(no_mangle)]
pub extern "C" fn hopwise_set_timeout(socket: c_int, ms: c_int) -> c_int {
    set(socket, |stream| stream.set_timeout(time(ms)), |listener| listener.set_timeout(time(ms)))
}

/// Closes a socket, or gives a network's handle back. Written data is still delivered while the network lives: it ends
/// with its last handle or socket.
#[unsafe(no_mangle)]
pub extern "C" fn hopwise_close(handle: c_int) -> c_int {
    number(table::in_one_process(|| table::remove(handle).map(drop)))
}

/// Ends a network, after at most `ms` milliseconds for what was written to be delivered, or without end if `ms` is
/// negative. Returns the number of connections that were reset at that time. No signal ends this wait.
#[unsafe(no_mangle)]
pub extern "C" fn hopwise_finish(network: c_int, ms: c_int) -> c_int {
    let within = time(ms).unwrap_or(Duration::MAX);
    let finish = || {
        let reset = with_network(network, |network| Ok(network.clone().close(within).reset))?;
        table::remove(network)?;
        c_int::try_from(reset).map_err(io::Error::other)
    };
    answer(table::in_one_process(finish))
}

/// The text of the last error of this thread, in a buffer of the thread's own that the next error writes anew.
#[unsafe(no_mangle)]
pub extern "C" fn hopwise_error() -> *const c_char {
    errors::last()
}
