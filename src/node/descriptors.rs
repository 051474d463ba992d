//! Raises the limit of open files: each served client takes a descriptor, and the default limit is 1,024.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::config::NodeConfig;
use super::waiting::MOST_WAITING;

/// Links, runtimes, control sockets, captures, and SOCKS5 clients that have not sent their request yet.
const BESIDE: u64 = 1024;

fn wanted(config: &NodeConfig) -> u64 {
    let clients = config.seats() + config.forwards.len() * MOST_WAITING;
    BESIDE + u64::try_from(clients).unwrap_or(u64::MAX - BESIDE)
}

/// Allows as many descriptors as the file's clients need.
pub(super) fn allow(config: &NodeConfig) {
    raise(wanted(config));
}

/// Allows this process so many descriptors, within its hard limit.
pub(crate) fn raise(wanted: u64) {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    if soft < wanted
        && let Err(error) = setrlimit(Resource::RLIMIT_NOFILE, wanted.min(hard), hard)
    {
        tracing::warn!(%error, "the limit of descriptors stays at {soft}");
    }
    if hard < wanted {
        tracing::warn!(
            "all connections at once take {wanted} descriptors, of which {hard} are allowed: ulimit -Hn"
        );
    }
}
