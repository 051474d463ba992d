//! Raises the limit of open files: each served client takes a descriptor, and the default limit is 1,024.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::config::NodeConfig;
use super::forward::MOST_WAITING;
use super::socks5::MOST_HANDSHAKES;

/// Links, runtimes, control sockets, captures and lookups.
const BESIDE: u64 = 1024;

fn wanted(config: &NodeConfig) -> u64 {
    // A last node tries two more connections while the first one is open.
    let tried = config.transparent.as_ref().filter(|transparent| !transparent.from.is_empty());
    let tried = tried.map_or(0, |transparent| 2 * transparent.connections);
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config;

    #[test]
    fn a_last_node_has_three_descriptors_for_each_connection_and_a_first_node_one() {
        let wanted = |more: &str| {
            let text = format!(
                "node: {{ name: a, address: 10.7.0.2/24 }}\nlinks: [{{ kind: tun, name: hw0 }}]\n{more}\n"
            );
            wanted(&config::parse(Path::new("node.yaml"), &text).expect("it is accepted"))
        };
        let without = wanted("");
        let first = "interfaces: [lan0], to: [{ network: 10.2.0.0/24, node: 10.7.0.3 }]";
        for (role, each) in [(first, 1), ("from: [10.7.0.3]", 3)] {
            let with = wanted(&format!("transparent: {{ {role}, connections: 50000 }}"));
            assert_eq!(with - without, each * 50_000, "{role}");
        }
    }
}
