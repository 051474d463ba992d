//! The table of handles: a number and its socket or network.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hopwise_sockets::Network;
use hopwise_sockets::blocking::{TcpListener, TcpStream};

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

fn table() -> MutexGuard<'static, Table> {
    TABLE.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// Files a handle, and returns its number.
pub(crate) fn insert(handle: Handle) -> RawFd {
    let descriptor = handle.descriptor();
    let former = table().insert(descriptor, Arc::new(handle));
    // A program that closed a number behind our back has made the system give it to the new handle. The drop of the
    // old one would close it again.
    std::mem::forget(former);
    descriptor
}

pub(crate) fn find(descriptor: RawFd) -> io::Result<Arc<Handle>> {
    table().get(&descriptor).cloned().ok_or_else(not_ours)
}

pub(crate) fn remove(descriptor: RawFd) -> io::Result<Arc<Handle>> {
    table().remove(&descriptor).ok_or_else(not_ours)
}

fn not_ours() -> io::Error {
    io::Error::from_raw_os_error(libc::EBADF)
}
