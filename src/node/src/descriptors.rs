//! Raises the limit of open files: each served client takes a descriptor, and the default limit is 1,024.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::config::NodeConfig;
use super::forward::MOST_WAITING;
use super::socks5::MOST_HANDSHAKES;

/// Links, runtimes, control sockets, captures and lookups.
const BESIDE: u64 = 1024;

fn wanted(config: &NodeConfig) -> u64 {
    // A last node tries a second connection while the first one is open.
    let tried = config.transparent.as_ref().filter(|transparent| !transparent.from.is_empty());
    let tried = tried.map_or(0, |transparent| transparent.connections);
    let handshakes = config.socks5.as_ref().map_or(0, |_| MOST_HANDSHAKES);
    let waiting = config.forwards.len() * MOST_WAITING;
    let clients = config.seats() + tried + handshakes + waiting;
    BESIDE + u64::try_from(clients).unwrap_or(u64::MAX - BESIDE)
}

/// Raises the limit of descriptors to what the file's clients need.
pub(super) fn allow(config: &NodeConfig) {
    raise(wanted(config));
}

/// Raises the soft limit of descriptors to this number, within the hard limit.
pub(crate) fn raise(wanted: u64) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let (soft, hard) = (current.unwrap_or(u64::MAX), maximum.unwrap_or(u64::MAX));
    if soft < wanted
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted.min(hard)), maximum })
    {
        tracing::warn!(%error, "the limit of descriptors stays at {soft}");
    }
    if hard < wanted {
        tracing::warn!(
            "all connections at once take {wanted} descriptors, of which {hard} are allowed: ulimit -Hn"
        );
    }
}
