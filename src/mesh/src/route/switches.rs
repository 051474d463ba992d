//! The kernel's switches for a mesh with host routes: which interfaces forward, and how.
//!
//! Each switch is set on the interfaces of the mesh. Other interfaces forward and accept no more than before.

use std::fs;
use std::io;
use std::net::Ipv4Addr;

use hopwise_core::ip::Prefix;
use hopwise_host::routing::{Fence, KernelTable, Switches};

use super::config::RoutingConfiguration;
use hopwise_daemon::failure::Failure;
use hopwise_daemon::privileges::Privileges;

/// The state of a machine without the fence.
const OPEN: &str = "what comes in from the mesh is forwarded to all other devices of this machine";

#[derive(Debug)]
pub(super) struct UnfencedForwarding {
    switches: Switches,
    /// Devices of addresses in `serves` that forward by now.
    of_served: Vec<String>,
    /// No wider route leads to an address in `serves`.
    network: Prefix,
    /// Behind the switches, so that nothing is forwarded without it meanwhile.
    fence: Option<Fence>,
}

impl UnfencedForwarding {
    /// Also restores the switches that a killed daemon with this state file left changed in this network namespace.
    pub(super) fn begin(config: &RoutingConfiguration) -> Result<UnfencedForwarding, Failure> {
        let system = Failure::during("name the file of the kernel's old switches");
        let file = Switches::file_beside(&config.state).map_err(system)?;
        let folder = file.parent().map_or(Ok(()), fs::create_dir_all);
        let opened =
            folder.and_then(|()| Switches::open(&file, &Privileges::of_daemons())).map_err(|error| {
                let problem = format_args!("{}: {error}", file.display());
                Failure::failed("open the file of the kernel's old switches", problem)
            })?;
        let mesh: Vec<_> = config.interfaces.iter().chain([&config.tun]).map(String::as_str).collect();
        let fence = fence(&config.tun, &mesh, &config.serves)?;
        let mut forwarding =
            UnfencedForwarding { switches: opened, of_served: Vec::new(), network: config.network, fence };
        let switches = &mut forwarding.switches;
        let outcome = mesh
            .iter()
            .try_for_each(|name| switches.set(&format!("ipv4/conf/{name}/forwarding"), "1"))
            .and_then(|()| switches.clear("send_redirects", &mesh))
            // No key signs a redirect. An interface that forwards refuses redirects, even if `all` accepts them.
            .and_then(|()| {
                let refuse = |name: &&str| format!("ipv4/conf/{name}/accept_redirects");
                mesh.iter().try_for_each(|name| switches.set(&refuse(name), "0"))
            })
            // An interface without an address of its own drops all packets while the reverse path is checked.
            .and_then(|()| switches.clear("rp_filter", &mesh));
        outcome.map_err(Failure::during("set a switch of the kernel"))?;
        tracing::info!(interfaces = mesh.join(" "), "forwarding; rp_filter and redirects are off there");
        if let Ok(table) = KernelTable::read() {
            forwarding.follow(&config.serves, &table);
        }
        Ok(forwarding)
    }

    /// Warns once when the table of rules is gone.
    pub(super) fn check_fence(&mut self) {
        if self.fence.as_mut().is_some_and(|fence| !fence.stands()) {
            self.fence = None;
            tracing::warn!("the table of nft is gone: {OPEN}; start again");
        }
    }

    /// The device of a served address forwards, too: a node may start after this daemon.
    pub(super) fn follow(&mut self, served: &[Ipv4Addr], table: &KernelTable) {
        for address in served {
            let device = table.device_towards(*address, &self.network).map(str::to_owned);
            let Some(device) = device.filter(|device| !self.of_served.contains(device)) else { continue };
            match self.switches.set(&format!("ipv4/conf/{device}/forwarding"), "1") {
                Ok(()) => tracing::info!(device, %address, "forwarding for an address in `serves`"),
                Err(error) => tracing::warn!(device, %address, %error, "it does not forward"),
            }
            self.of_served.push(device);
        }
    }
}

/// A machine without nft routes as well as one with it. An nft that does not answer may be there in a moment: the start
/// fails, before any switch is changed.
fn fence(tun: &str, mesh: &[&str], served: &[Ipv4Addr]) -> Result<Option<Fence>, Failure> {
    match Fence::set(tun, mesh, served) {
        Ok(fence) => Ok(Some(fence)),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            Err(Failure::failed("keep what comes in from the mesh there", error))
        }
        Err(error) => {
            tracing::warn!(%error, "nft (package nftables) sets no rules: {OPEN}");
            Ok(None)
        }
    }
}
