//! Which switches the daemons of one network namespace need, and how these were before.
//!
//! Each switch is the name of a socket that its daemon holds. Such names belong to the namespace, everybody there can
//! read them, and the kernel removes them when the daemon ends, however it ends.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::Change;
use super::journal::read_change;

/// Names of sockets of this namespace stand there after an `@`.
const SOCKETS: &str = "/proc/thread-self/net/unix";
/// A daemon that starts or ends beside another has its turn after it.
const TRIES: u32 = 100;
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// What one daemon needs.
#[derive(Debug)]
pub(super) struct Claims {
    /// The tree of switches that they are about: tests have others than the kernel's.
    tree: u64,
    names: Vec<String>,
    sockets: Vec<UnixListener>,
}

impl Claims {
    pub(super) fn of(kernel: &Path) -> Claims {
        let mut hasher = DefaultHasher::new();
        kernel.hash(&mut hasher);
        Claims { tree: hasher.finish(), names: Vec::new(), sockets: Vec::new() }
    }

    fn prefix(&self) -> String {
        format!("hopwise-switch-{:x} ", self.tree)
    }

    /// Shows the others that this daemon needs the switch as it is after the change.
    pub(super) fn hold(&mut self, change: &Change) -> io::Result<()> {
        let Change { key, before, after } = change;
        if self.names.iter().any(|name| name.contains(&format!(" {key} "))) {
            return Ok(());
        }
        let own = std::process::id();
        // A process of another PID namespace may have the same number.
        for nth in 0..TRIES {
            let name = format!("{}{key} {before} {after} {own}.{nth}", self.prefix());
            match bind(&name) {
                Ok(socket) => {
                    self.sockets.push(socket);
                    self.names.push(name);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    }

    pub(super) fn let_go(&mut self) {
        self.sockets.clear();
        self.names.clear();
    }

    /// What other daemons know of a switch that they need.
    pub(super) fn others(&self, key: &str) -> io::Result<Vec<Change>> {
        let prefix = self.prefix();
        // Others name their sockets as they like.
        let sockets = String::from_utf8_lossy(&fs::read(SOCKETS)?).into_owned();
        let named = sockets.lines().filter_map(|line| Some(line.split_once('@')?.1));
        let others = named.filter(|name| !self.names.iter().any(|own| own == name));
        let claimed = others.filter_map(|name| read_change(name.strip_prefix(&prefix)?));
        Ok(claimed.filter(|change| change.key == key).collect())
    }
}

/// One daemon at a time changes switches.
#[derive(Debug)]
pub(super) struct Turn {
    _name: UnixListener,
}

impl Turn {
    #[expect(clippy::disallowed_methods, reason = "nothing is driven while a daemon starts or ends")]
    pub(super) fn wait(claims: &Claims) -> io::Result<Turn> {
        let name = format!("{}turn", claims.prefix());
        let mut tries = 0;
        loop {
            match bind(&name) {
                Ok(name) => return Ok(Turn { _name: name }),
                Err(error) if error.kind() != io::ErrorKind::AddrInUse || tries == TRIES => {
                    return Err(error);
                }
                Err(_) => thread::sleep(BETWEEN_TRIES),
            }
            tries += 1;
        }
    }
}

fn bind(name: &str) -> io::Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)
}
