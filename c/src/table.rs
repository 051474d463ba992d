//! The table of handles: a number and its socket or network.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hopwise_sockets::blocking::{TcpListener, TcpStream};
use hopwise_sockets::{Network, fork};

use crate::memory::PerProcess;

/// A socket or a network.
#[derive(Debug)]
pub(crate) enum Handle {
    /// The file only keeps its number from being given to another.
    Network(Network, File),
    Listener(TcpListener),
    Stream(TcpStream),
}

impl Handle {
    pub(crate) fn of(network: Network) -> io::Result<Handle> {
        Ok(Handle::Network(network, File::open("/dev/null")?))
    }

    fn descriptor(&self) -> RawFd {
        match self {
            Handle::Network(_, file) => file.as_raw_fd(),
            Handle::Listener(listener) => listener.as_fd().as_raw_fd(),
            Handle::Stream(stream) => stream.as_fd().as_raw_fd(),
        }
    }
}

type Table = BTreeMap<RawFd, Arc<Handle>>;

/// A forked child has none of its parent's handles: what it did by them would end the parent's connections.
static TABLE: PerProcess<Mutex<Table>> = PerProcess::new();

fn locked(table: &'static Mutex<Table>) -> MutexGuard<'static, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The table of this process. One that has filed nothing has none, and takes no memory to find that out: a child that
/// shares the memory of its parent may not.
fn known() -> io::Result<MutexGuard<'static, Table>> {
    TABLE.find(fork::process()).map(locked).ok_or_else(not_ours)
}

/// Does what a program asks for. A child that a signal's handler forks meanwhile is refused it: it was begun with a
/// handle of the parent.
pub(crate) fn in_one_process<T>(act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let process = fork::process();
    let done = act();
    if fork::process() == process { done } else { Err(not_ours()) }
}

/// Files a handle, and returns its number.
pub(crate) fn insert(handle: Handle) -> RawFd {
    let descriptor = handle.descriptor();
    let former = locked(TABLE.make(fork::process())).insert(descriptor, Arc::new(handle));
    // A program that closed a number behind our back has made the system give it to the new handle. The drop of the
    // old one would close it again.
    std::mem::forget(former);
    descriptor
}

pub(crate) fn find(descriptor: RawFd) -> io::Result<Arc<Handle>> {
    known()?.get(&descriptor).cloned().ok_or_else(not_ours)
}

pub(crate) fn remove(descriptor: RawFd) -> io::Result<Arc<Handle>> {
    known()?.remove(&descriptor).ok_or_else(not_ours)
}

fn not_ours() -> io::Error {
    io::Error::from_raw_os_error(libc::EBADF)
}
