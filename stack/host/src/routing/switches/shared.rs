//! The switches that the daemons of one network namespace need, and their old values.
//!
//! Each switch is the name of a socket that its daemon holds. Such names belong to the namespace, and each program in
//! it can read them. The kernel removes them when the daemon ends, for any reason. Any user can take such a name: only
//! those of root and of users that daemons have count.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::process::geteuid;

use super::Change;
use super::journal::read_change;
use crate::netlink::{Named, names_with};

/// Attempts to get the turn, while other daemons start or end.
const TRIES: u32 = 100;
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// The switches that one daemon needs.
#[derive(Debug)]
pub(super) struct Claims {
    /// The tree of switches that they belong to: tests use their own trees.
    tree: u64,
    /// Users that daemons have, besides root and our own.
    users: Vec<u32>,
    names: Vec<String>,
    sockets: Vec<UnixListener>,
}

impl Claims {
    pub(super) fn of(kernel: &Path, users: &[u32]) -> Claims {
        let mut hasher = DefaultHasher::new();
        kernel.hash(&mut hasher);
        let (names, sockets) = (Vec::new(), Vec::new());
        Claims { tree: hasher.finish(), users: users.to_vec(), names, sockets }
    }

    fn prefix(&self) -> String {
        format!("hopwise-switch-{:x} ", self.tree)
    }

    /// Returns whether the user may have a daemon. An unknown user counts, because the kernel may not report it.
    fn is_daemon(&self, user: Option<u32>) -> bool {
        user.is_none_or(|user| [0, geteuid().as_raw()].contains(&user) || self.users.contains(&user))
    }

    /// Shows the other daemons that this one needs the switch, with its value after the change.
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

    /// The changes of a switch by other daemons that need it.
    pub(super) fn others(&self, key: &str) -> io::Result<Vec<Change>> {
        let prefix = self.prefix();
        let mut claimed = Vec::new();
        for Named { name, user } in names_with(&prefix)? {
            let change = name.strip_prefix(&prefix).and_then(read_change);
            let Some(change) = change.filter(|change| change.key == key && !self.names.contains(&name))
            else {
                continue;
            };
            if self.is_daemon(user) {
                claimed.push(change);
            } else {
                tracing::warn!(key, user, "a user that is no daemon's claims a switch, in vain");
            }
        }
        Ok(claimed)
    }
}

/// One daemon at a time changes switches.
#[derive(Debug)]
pub(super) struct Turn {
    /// `None` if a user without a daemon holds the name, perhaps for ever.
    _name: Option<UnixListener>,
}

impl Turn {
    #[expect(clippy::disallowed_methods, reason = "nothing is driven while a daemon starts or ends")]
    pub(super) fn wait(claims: &Claims) -> io::Result<Turn> {
        let name = format!("{}turn", claims.prefix());
        let mut tries = 0;
        loop {
            match bind(&name) {
                Ok(name) => return Ok(Turn { _name: Some(name) }),
                Err(error) if error.kind() != io::ErrorKind::AddrInUse => return Err(error),
                Err(error) => {
                    let holder = names_with(&name)?.into_iter().find(|named| named.name == name);
                    if let Some(Named { user, .. }) = holder.filter(|holder| !claims.is_daemon(holder.user)) {
                        tracing::warn!(
                            user,
                            "a user that is no daemon's holds the turn, and is not waited for"
                        );
                        return Ok(Turn { _name: None });
                    }
                    if tries == TRIES {
                        return Err(error);
                    }
                    thread::sleep(BETWEEN_TRIES);
                }
            }
            tries += 1;
        }
    }
}

fn bind(name: &str) -> io::Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)
}
