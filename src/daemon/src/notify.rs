//! Notifies systemd of a daemon's state, each time by a datagram (sd_notify(3)).
//!
//! Written by hand: the crate for it waits without end if systemd does not read, and a daemon has packets to carry.

use std::borrow::Cow;
use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The time within which systemd has to read a start or an end; it may be busy.
const WITHIN: Duration = Duration::from_secs(5);

/// Says at the drop that the daemon ends, for whatever reason.
#[derive(Debug)]
pub struct Service {
    /// The time that the end may take; `TimeoutStopSec` of the unit bounds it where there is none.
    end_within: Option<Duration>,
}

/// Notifies systemd that the daemon is ready.
pub fn ready() -> Service {
    tell(ServiceNotice::Ready);
    Service { end_within: None }
}

impl Service {
    /// Says that the daemon ends within a time. A shorter `TimeoutStopSec` of its unit is extended to that.
    pub fn ends_within(mut self, time: Duration) {
        self.end_within = Some(time);
    }
}

/// Notifies systemd's watchdog that the daemon works.
pub fn alive() {
    tell(ServiceNotice::Alive);
}

impl Drop for Service {
    fn drop(&mut self) {
        tell(ServiceNotice::Stopping { within: self.end_within });
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServiceNotice {
    Ready,
    /// Sent repeatedly. The next one replaces a lost one, so that the sender never waits.
    Alive,
    Stopping {
        within: Option<Duration>,
    },
}

impl ServiceNotice {
    fn words(self) -> Cow<'static, str> {
        match self {
            ServiceNotice::Ready => "READY=1\n".into(),
            ServiceNotice::Alive => "WATCHDOG=1\n".into(),
            ServiceNotice::Stopping { within: None } => "STOPPING=1\n".into(),
            ServiceNotice::Stopping { within: Some(time) } => {
                format!("STOPPING=1\nEXTEND_TIMEOUT_USEC={}\n", time.as_micros()).into()
            }
        }
    }
}

/// Notifies systemd, if there is one.
fn tell(notice: ServiceNotice) {
    let Some(name) = env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else { return };
    match send(&name, notice, WITHIN) {
        Ok(()) => {}
        // Systemd has not read the earlier ones either.
        Err(error) if notice == ServiceNotice::Alive && error.kind() == io::ErrorKind::WouldBlock => {}
        Err(error) => tracing::warn!(%error, ?notice, "systemd was not told"),
    }
}

fn send(name: &OsStr, notice: ServiceNotice, within: Duration) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    match notice {
        ServiceNotice::Alive => socket.set_nonblocking(true)?,
        ServiceNotice::Ready | ServiceNotice::Stopping { .. } => socket.set_write_timeout(Some(within))?,
    }
    socket.connect_addr(&address(name)?)?;
    loop {
        match socket.send(notice.words().as_bytes()) {
            // With a timeout the kernel does not restart the call by itself after a signal.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            sent => return sent.map(drop),
        }
    }
}

/// A path, or a name without a file after an `@`.
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A socket that receives notices, and its name.
    fn systemd(test: &str) -> (UnixDatagram, String) {
        let name = format!("hopwise-notify-{test}-{}", std::process::id());
        let at = SocketAddr::from_abstract_name(&name).expect("a name");
        (UnixDatagram::bind_addr(&at).expect("it is free"), format!("@{name}"))
    }

    #[test]
    fn a_notice_comes_by_a_name_and_by_a_path() {
        let folder = env::temp_dir().join(format!("hopwise-notify-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("socket");
        let by_path = UnixDatagram::bind(&path).expect("the folder can be written");
        let (by_name, name) = systemd("both");
        for (socket, name) in [(by_path, path.as_os_str()), (by_name, OsStr::new(&name))] {
            send(name, ServiceNotice::Stopping { within: None }, WITHIN).expect("it listens");
            let mut datagram = [0; 64];
            let bytes = socket.recv(&mut datagram).expect("it is told");
            assert_eq!(&datagram[..bytes], b"STOPPING=1\n");
        }
        std::fs::remove_dir_all(folder).expect("it is there");
    }

    /// A daemon that waits for systemd carries no packets.
    #[test]
    fn what_systemd_does_not_read_is_not_waited_for_without_end() {
        let (_deaf, name) = systemd("deaf");
        let send = |notice| send(OsStr::new(&name), notice, Duration::from_millis(1));
        let full = std::iter::repeat_with(|| send(ServiceNotice::Alive)).find_map(Result::err);
        assert_eq!(full.map(|error| error.kind()), Some(io::ErrorKind::WouldBlock));
        for notice in [ServiceNotice::Ready, ServiceNotice::Stopping { within: None }] {
            assert_eq!(send(notice).map_err(|error| error.kind()), Err(io::ErrorKind::WouldBlock));
        }
    }
}
