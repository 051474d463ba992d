//! Files and calls that a node needs after it has opened its links and sockets.

use std::path::{Path, PathBuf};

use caps::Capability;
use hopwise_host::Link;
use hopwise_host::confine::Paths;

use super::config::NodeConfig;
use hopwise_daemon::confine::{AccessNeeds, folders_of};

/// The files from which the C library resolves names: settings, modules, and other programs' sockets.
const NAMES: [&str; 10] = [
    "/etc",
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
    "/run/nscd",
];
/// The kernel's switches, for a device or a switch that is restored.
const SWITCHES: &str = "/proc/sys/net";
/// Folders in which captures may begin, beside those of the file.
const CAPTURES: [&str; 3] = ["/tmp", "/var/tmp", "/var/lib/hopwise"];

/// `file` is the configuration, which SIGHUP reads again.
pub(super) fn needs(config: &NodeConfig, links: &[Vec<Box<dyn Link>>], file: &Path) -> AccessNeeds {
    let takes_back = links.iter().flatten().any(|link| link.takes_back());
    // The kernel asks for it with each verdict on a held SYN, and with each socket that has a client's address.
    let decides = config.transparent.is_some();
    let finds_names = config.socks5.is_some() || !config.forwards.is_empty();
    let mut reads = folders_of(file);
    reads.extend(NAMES.iter().filter(|_| finds_names).map(PathBuf::from));
    let mut writes = captures(config);
    writes.extend((takes_back || decides).then(|| PathBuf::from(SWITCHES)));
    AccessNeeds {
        capabilities: (takes_back || decides).then_some(Capability::CAP_NET_ADMIN).into_iter().collect(),
        paths: Paths { reads, writes, chosen_ports: decides },
        families: vec![libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
    }
}

/// The folders in which captures may begin while the node runs.
pub(super) fn captures(config: &NodeConfig) -> Vec<PathBuf> {
    let of_file = config.captures.iter().cloned();
    let of_socket = config.control.iter().flat_map(|path| folders_of(path));
    let of_capture = config.capture.iter().flat_map(|capture| folders_of(&capture.file));
    // A daemon in the root folder was started without a chosen folder.
    let own = std::env::current_dir().ok().filter(|own| own != Path::new("/"));
    let customary = CAPTURES.iter().map(PathBuf::from);
    let mut folders: Vec<_> =
        of_file.chain(of_socket).chain(of_capture).chain(own).chain(customary).collect();
    folders.sort();
    folders.dedup();
    folders
}
