//! Ports that a node listens on. A clash of two listeners at one address would show only at the second's bind.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use hopwise_lab::located::{Checked, Document, YamlPath};

use super::{NodeConfig, Side, Transparent};

/// A listener, and its place in the file.
struct Listener {
    path: YamlPath,
    is_mesh: bool,
    /// Over Hopwise `None` means every address of the node.
    ip: Option<IpAddr>,
    port: u16,
}

impl Listener {
    fn local(path: YamlPath, ip: IpAddr, port: u16) -> Listener {
        Listener { path, is_mesh: false, ip: Some(ip.to_canonical()), port }
    }

    /// Returns whether the second of the two could not be bound.
    fn clashes_with(&self, other: &Listener) -> bool {
        // A port that the kernel chooses is free.
        if self.is_mesh != other.is_mesh || self.port != other.port || self.port == 0 {
            return false;
        }
        match (self.ip, other.ip) {
            (Some(one), Some(two)) if !self.is_mesh => one == two || takes(one, two) || takes(two, one),
            // Over Hopwise a listener with an address goes before one for all addresses.
            (one, two) => one == two,
        }
    }
}

/// Returns whether a listener at `all` also receives the traffic for `one`. An IPv6 socket for all addresses takes IPv4
/// as well.
fn takes(all: IpAddr, one: IpAddr) -> bool {
    all.is_unspecified() && (all.is_ipv6() || one.is_ipv4())
}

fn listeners(config: &NodeConfig) -> Vec<Listener> {
    let path = |key: &str| YamlPath::root().key(key).key("listen");
    let mut listeners = Vec::new();
    for (nth, forward) in config.forwards.iter().enumerate() {
        let path = YamlPath::root().key("forwards").index(nth).key("listen");
        match &forward.listen {
            Side::Local(at) => {
                listeners.extend(at.ip().map(|ip| Listener::local(path, ip, at.port)));
            }
            Side::Mesh(at) => listeners.push(Listener { path, is_mesh: true, ip: at.ip(), port: at.port }),
        }
    }
    let of_key = |key, at: SocketAddr| Listener::local(path(key), at.ip(), at.port());
    listeners.extend(config.socks5.as_ref().map(|socks5| of_key("socks5", socks5.listen)));
    listeners.extend(config.metrics.as_ref().map(|metrics| of_key("metrics", metrics.listen)));
    listeners
}

pub(super) fn each_at_its_own_address(document: &Document, config: &NodeConfig) -> Checked {
    let listeners = listeners(config);
    for (nth, second) in listeners.iter().enumerate() {
        if let Some(first) = listeners[..nth].iter().find(|first| first.clashes_with(second)) {
            let problem = format!("`{}` has port {} there already", first.path, second.port);
            return Err(document.refuse(&second.path, problem, "an address and a port of its own"));
        }
    }
    Ok(())
}

/// All ports that the node listens on, from the file.
pub(crate) fn ports(config: &NodeConfig) -> BTreeSet<u16> {
    let of_nodes = config.transparent.iter().flat_map(Transparent::mesh_ports);
    listeners(config).into_iter().map(|listener| listener.port).chain(of_nodes).collect()
}

/// The key with that address of this machine, or the first such key if the kernel chooses the port.
pub(crate) fn path_at(config: &NodeConfig, address: SocketAddr) -> Option<YamlPath> {
    let (ip, port) = (Some(address.ip().to_canonical()), address.port());
    let wants = |listener: &Listener| !listener.is_mesh && (listener.ip, listener.port) == (ip, port);
    listeners(config).into_iter().find(wants).map(|listener| listener.path)
}
