//! The switches that the daemons of one network namespace need, and their old values.
//!
//! Each switch is the name of a socket that its daemon holds. Such names belong to the namespace, and each program in
//! it can read them. The kernel removes them when the daemon ends, for any reason. Any user can take such a name: only
//! names of root and of the daemons' users count.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::process::geteuid;

use super::change::{SwitchChange, read_change};
use crate::netlink::{BoundName, names_with};
use crate::random_key;

/// Attempts to get the lock, while other daemons start or end.
const TRIES: u32 = 100;
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// The switches that one daemon needs.
#[derive(Debug)]
pub(super) struct Needed {
    /// The tree of switches that they belong to: tests use their own trees.
    tree: u64,
    /// The users of daemons, without root and our own user.
    users: Vec<u32>,
    names: Vec<String>,
    sockets: Vec<UnixListener>,
}

impl Needed {
    pub(super) fn of(kernel: &Path, users: &[u32]) -> Needed {
        let mut hasher = DefaultHasher::new();
        kernel.hash(&mut hasher);
        let (names, sockets) = (Vec::new(), Vec::new());
        Needed { tree: hasher.finish(), users: users.to_vec(), names, sockets }
    }

    fn prefix(&self) -> String {
        format!("hopwise-switch-{:x} ", self.tree)
    }

    /// Returns whether the user may have a daemon. An unknown user counts, because the kernel may not report it.
    fn is_daemon(&self, user: Option<u32>) -> bool {
        user.is_none_or(|user| [0, geteuid().as_raw()].contains(&user) || self.users.contains(&user))
    }

    /// Shows the other daemons that this one needs the switch, with its value after the change.
    pub(super) fn hold(&mut self, change: &SwitchChange) -> io::Result<()> {
        let SwitchChange { key, before, after, .. } = change;
        if self.names.iter().any(|name| name.contains(&format!(" {key} "))) {
            return Ok(());
        }
        // No user of the machine can take a name first that cannot be guessed.
        let [a, b, c, d, e, f, g, h, ..] = random_key()?;
        let own = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
        let name = format!("{}{key} {before} {after} {own:016x}", self.prefix());
        self.sockets.push(bind(&name)?);
        self.names.push(name);
        Ok(())
    }

    pub(super) fn let_go(&mut self) {
        for socket in self.sockets.drain(..) {
            // A program that another thread is about to start has a copy of the socket until it runs.
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
        }
        self.names.clear();
    }

    /// The changes of a switch by other daemons that need it.
    pub(super) fn others(&self, key: &str) -> io::Result<Vec<SwitchChange>> {
        let prefix = self.prefix();
        let mut named = Vec::new();
        for BoundName { name, user } in names_with(&prefix)? {
            let change = name.strip_prefix(&prefix).and_then(read_change);
            let Some(change) = change.filter(|change| change.key == key && !self.names.contains(&name))
            else {
                continue;
            };
            if self.is_daemon(user) {
                named.push(change);
            } else {
                tracing::warn!(key, user, "a user that is no daemon's claims a switch, in vain");
            }
        }
        Ok(named)
    }
}

/// One daemon at a time changes switches.
#[derive(Debug)]
pub(super) struct ChangeLock {
    /// `None` if a user without a daemon holds the name, perhaps for ever.
    _name: Option<UnixListener>,
}

impl ChangeLock {
    #[expect(clippy::disallowed_methods, reason = "nothing is driven while a daemon starts or ends")]
    pub(super) fn wait(needed: &Needed) -> io::Result<ChangeLock> {
        let name = format!("{}turn", needed.prefix());
        let mut tries = 0;
        loop {
            match bind(&name) {
                Ok(name) => return Ok(ChangeLock { _name: Some(name) }),
                Err(error) if error.kind() != io::ErrorKind::AddrInUse => return Err(error),
                Err(error) => {
                    let holder = names_with(&name)?.into_iter().find(|named| named.name == name);
                    if let Some(BoundName { user, .. }) =
                        holder.filter(|holder| !needed.is_daemon(holder.user))
                    {
                        tracing::warn!(
                            user,
                            "a user that is no daemon's holds the turn, and is not waited for"
                        );
                        return Ok(ChangeLock { _name: None });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_a_socket_keeps_no_switch_that_its_daemon_let_go() {
        let tree = std::env::temp_dir().join(format!("hopwise-copied-{}", std::process::id()));
        let (mut needed, other) = (Needed::of(&tree, &[]), Needed::of(&tree, &[]));
        let change = read_change("ipv4/conf/wlan0/rp_filter 2 0").expect("a change");
        needed.hold(&change).expect("a name");
        assert_eq!(other.others(&change.key).expect("they are listed").len(), 1);
        let copy = needed.sockets[0].try_clone().expect("a copy");
        needed.let_go();
        assert!(other.others(&change.key).expect("they are listed").is_empty());
        drop(copy);
    }

    /// As a user of the machine takes them who knows the number of the process.
    #[test]
    fn names_that_can_be_guessed_are_taken_in_vain() {
        let tree = std::env::temp_dir().join(format!("hopwise-guessed-{}", std::process::id()));
        let mut needed = Needed::of(&tree, &[]);
        let change = read_change("ipv4/conf/wlan0/rp_filter 2 0").expect("a change");
        let (prefix, own) = (needed.prefix(), std::process::id());
        let guessed = (0..TRIES).map(|nth| format!("{prefix}ipv4/conf/wlan0/rp_filter 2 0 {own}.{nth}"));
        let _taken: Vec<_> = guessed.map(|name| bind(&name).expect("it is free")).collect();
        needed.hold(&change).expect("a name is left");
        assert_eq!(Needed::of(&tree, &[]).others(&change.key).expect("they are listed").len(), 101);
    }
}
