//! The kernel's table, kept as the protocol's is.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use hopwise_core::Instant;
use hopwise_core::ip::Prefix;
use hopwise_host::routing::{KernelRoutes, Way};
use hopwise_mesh::OnDemand;

use super::neighbours::Port;

#[derive(Debug)]
pub(super) struct Installed {
    kernel: KernelRoutes,
    /// No route leads elsewhere, whatever the protocol says.
    network: Prefix,
    ways: BTreeMap<Ipv4Addr, Way>,
}

impl Installed {
    pub(super) fn new(kernel: KernelRoutes, network: Prefix) -> Installed {
        Installed { kernel, network, ways: BTreeMap::new() }
    }

    pub(super) fn has(&self, dst: Ipv4Addr) -> bool {
        self.ways.contains_key(&dst)
    }

    /// Who has that Ethernet address on that device.
    pub(super) fn who_has(&self, device: u32, ethernet: [u8; 6]) -> Option<Ipv4Addr> {
        let known = self.kernel.neighbours(device).unwrap_or_default();
        known.into_iter().find(|(_, theirs)| *theirs == ethernet).map(|(ip, _)| ip)
    }

    /// The kernel lost it by itself.
    pub(super) fn forget(&mut self, dst: Ipv4Addr) {
        self.ways.remove(&dst);
    }

    /// Adds what is new, removes what is gone.
    pub(super) fn follow(&mut self, now: Instant, router: &dyn OnDemand, ports: &[Port]) {
        let mut wanted = BTreeMap::new();
        for (dst, next_hop, link, hops) in router.routes(now) {
            let is_inside = [dst, next_hop].iter().all(|end| self.network.contains((*end).into()));
            if let Some(port) = ports.get(usize::from(link.0)).filter(|_| is_inside) {
                wanted.insert(dst, (Way { device: port.index, next_hop }, port.name.as_str(), hops));
            }
        }
        let gone: Vec<_> = self.ways.keys().filter(|dst| !wanted.contains_key(dst)).copied().collect();
        for dst in gone {
            self.ways.remove(&dst);
            match self.kernel.remove(dst) {
                Ok(()) => tracing::info!(%dst, "route gone"),
                Err(error) => tracing::warn!(%dst, %error, "route not removed"),
            }
        }
        for (dst, (way, device, hops)) in wanted {
            if self.ways.get(&dst) == Some(&way) {
                continue;
            }
            match self.kernel.set(dst, way) {
                Ok(()) => {
                    tracing::info!(%dst, via = %way.next_hop, device, hops, "route");
                    self.ways.insert(dst, way);
                }
                Err(error) => {
                    self.ways.remove(&dst);
                    tracing::warn!(%dst, %error, "route not installed");
                }
            }
        }
    }
}
