//! Admits one user for each device and network namespace, by the name of a socket. The kernel frees the name when its
//! holder ends, even by a crash.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use crate::link::LinkError;

/// The name as the kernel shows it in /proc/net/unix, after an `@`.
pub(crate) fn name(kind: &str, device: &str) -> String {
    format!("hopwise-{kind}-{device}")
}

/// Held as long as the device is used.
#[derive(Debug)]
pub(crate) struct NameLock {
    // The kernel keeps the name while this is open.
    _name: UnixListener,
}

impl NameLock {
    /// Locks a device. It may have users of different kinds at a time, but one of each.
    pub(crate) fn of(kind: &str, device: &str) -> Result<NameLock, LinkError> {
        let name = SocketAddr::from_abstract_name(name(kind, device));
        let bound = name.and_then(|name| UnixListener::bind_addr(&name));
        bound.map(|bound| NameLock { _name: bound }).map_err(|error| {
            let is_held = error.kind() == io::ErrorKind::AddrInUse;
            let kind = if is_held { io::ErrorKind::ResourceBusy } else { error.kind() };
            LinkError::system("claim it", device, io::Error::new(kind, error))
        })
    }
}
