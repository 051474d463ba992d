//! Keeps the kernel's table equal to the protocol's.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::{Instant, StationAddress};
use hopwise_host::netlink::NetlinkError;
use hopwise_host::routing::{HostRoute, KernelRoutes};
use hopwise_mesh::{OnDemand, Trust};

use super::stations::MeshPort;

/// The pause before a refused route is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// The pause before the kernel is checked again for a route.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct Installed {
    kernel: KernelRoutes,
    /// No route leads out of its network, whatever the protocol decides.
    trust: Trust,
    routes: BTreeMap<Ipv4Addr, HostRoute>,
    /// The time since when the kernel has a lost route again.
    restored: BTreeMap<Ipv4Addr, Instant>,
    refused: BTreeSet<Ipv4Addr>,
    try_again: Instant,
    /// Hosts whose routes belong to another program.
    clashes: BTreeSet<Ipv4Addr>,
}

/// A route as it should be: its device and next hop, the device's name and its hops.
type InstalledRoute<'a> = (HostRoute, &'a str, u8);

impl Installed {
    pub(super) fn new(kernel: KernelRoutes, trust: Trust) -> Installed {
        let (routes, restored) = (BTreeMap::new(), BTreeMap::new());
        let (refused, clashes) = (BTreeSet::new(), BTreeSet::new());
        Installed { kernel, trust, routes, restored, refused, try_again: Instant::ZERO, clashes }
    }

    pub(super) fn has(&self, dst: Ipv4Addr) -> bool {
        self.routes.contains_key(&dst)
    }

    /// The neighbours on that device, by their Ethernet addresses.
    pub(super) fn neighbours(&self, device: u32) -> BTreeMap<StationAddress, Ipv4Addr> {
        let known = self.kernel.neighbours(device).unwrap_or_default();
        known.into_iter().map(|(ip, ethernet)| (StationAddress(ethernet), ip)).collect()
    }

    /// Forgets a route whose device no longer sends. The kernel may still have it.
    pub(super) fn lose(&mut self, dst: Ipv4Addr) {
        self.set(dst, None);
    }

    /// A packet that came to the TUN device has found no route in the kernel's table. If ours was lost, it is set
    /// again. Without it the kernel would take the destination for a neighbour on that device, and ask for its address.
    pub(super) fn restore(&mut self, now: Instant, dst: Ipv4Addr) -> io::Result<()> {
        let Some(route) = self.routes.get(&dst) else { return Ok(()) };
        if self.restored.get(&dst).is_some_and(|at| now.since(*at) < LOOK_AGAIN) {
            return Ok(());
        }
        self.restored.insert(dst, now);
        if self.kernel.restore(dst, *route)? {
            tracing::info!(%dst, via = %route.next_hop, "the kernel had lost the route, and has it again");
        }
        Ok(())
    }

    /// Adds new routes and removes lost ones; unchanged ones are skipped.
    pub(super) fn follow(&mut self, now: Instant, router: &mut dyn OnDemand, ports: &[MeshPort]) {
        for (dst, route) in router.changes(now) {
            self.refused.remove(&dst);
            let wanted = route.and_then(|(next_hop, link, hops)| {
                let is_inside = [dst, next_hop].iter().all(|end| self.trust.covers(*end));
                let port = ports.get(usize::from(link.0)).filter(|_| is_inside)?;
                Some((HostRoute { device: port.index, next_hop }, port.name.as_str(), hops))
            });
            self.set(dst, wanted);
        }
        if !self.refused.is_empty() && self.try_again <= now {
            self.try_again = now + TRY_AGAIN;
            for (dst, next_hop, link, hops) in router.routes(now) {
                let port = ports.get(usize::from(link.0)).filter(|_| self.refused.remove(&dst));
                let Some(port) = port else { continue };
                let route = HostRoute { device: port.index, next_hop };
                self.set(dst, Some((route, port.name.as_str(), hops)));
            }
        }
    }

    fn set(&mut self, dst: Ipv4Addr, wanted: Option<InstalledRoute<'_>>) {
        match wanted {
            None => {
                self.restored.remove(&dst);
                if self.routes.remove(&dst).is_some() {
                    self.remove(dst);
                }
            }
            Some((route, device, hops)) if self.routes.get(&dst) != Some(&route) => {
                match self.kernel.set(dst, route) {
                    Ok(()) => {
                        tracing::info!(%dst, via = %route.next_hop, device, hops, "route");
                        self.clashes.remove(&dst);
                        self.routes.insert(dst, route);
                    }
                    Err(error) => self.refuse(dst, &error),
                }
            }
            Some(_) => {}
        }
    }

    /// A route of another program is logged once, until ours takes its place.
    fn refuse(&mut self, dst: Ipv4Addr, error: &NetlinkError) {
        self.routes.remove(&dst);
        self.refused.insert(dst);
        if !matches!(error, NetlinkError::RouteTaken { .. }) {
            tracing::warn!(%dst, %error, "route not installed");
        } else if self.clashes.insert(dst) {
            let clashes = self.clashes.len();
            tracing::warn!(%dst, clashes, "route not installed: another program has one to that host, which stays");
        }
    }

    fn remove(&self, dst: Ipv4Addr) {
        match self.kernel.remove(dst) {
            Ok(()) => tracing::info!(%dst, "route gone"),
            Err(error) => tracing::warn!(%dst, %error, "route not removed"),
        }
    }
}
