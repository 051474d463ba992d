//! The devices that lead packets through a proxy: TUN devices, netfilter queues, or the ports of a bridge.

use std::net::Ipv4Addr;

use hopwise_core::ip::Prefix;
use hopwise_host::netlink::{Detour, DetourConfig, remove_left_rules};
use hopwise_host::{BridgeConfig, Bridged, Fault, Forward, ForwardConfig, Link, LinkError, Tun, TunConfig};

use super::config::{By, Device, ProxySettings, Steer};
use hopwise_daemon::failure::Failure;
use hopwise_node::links::impairment;

/// Opens the wire's side, then the radio's.
pub(super) fn open(config: &ProxySettings) -> Result<Vec<Box<dyn Link>>, Failure> {
    let failed = Failure::during("open a device");
    let by = config.steer.as_ref().map(|steer| (steer.by, steer));
    let links: [Box<dyn Link>; 2] = match by {
        Some((By::Nfqueue, steer)) => {
            let (wire, radio) = (steer.wire.clone(), steer.radio.clone());
            let config = ForwardConfig { wire, radio, mobiles: mobiles(steer), queue: steer.queue() };
            Forward::open(&config).map_err(failed)?.map(|side| Box::new(side) as Box<dyn Link>)
        }
        Some((By::Bridge, steer)) => {
            let (wire, radio) = (steer.wire.clone(), steer.radio.clone());
            let config = BridgeConfig { wire, radio, mobiles: mobiles(steer) };
            Bridged::open(&config).map_err(failed)?.map(|side| Box::new(side) as Box<dyn Link>)
        }
        Some((By::Tun, _)) | None => {
            [tun(config, &config.fixed).map_err(failed)?, tun(config, &config.mobile).map_err(failed)?]
        }
    };
    let faulty = |(link, device): (Box<dyn Link>, &Device)| match &device.fault {
        Some(fault) => {
            let impairment = impairment(fault);
            let wrapped = Fault::wrap(link, impairment, impairment, fault.seed).map_err(failed)?;
            Ok(Box::new(wrapped) as Box<dyn Link>)
        }
        None => Ok(link),
    };
    links.into_iter().zip([&config.fixed, &config.mobile]).map(faulty).collect()
}

fn mobiles(steer: &Steer) -> Vec<Prefix> {
    steer.mobiles.iter().map(|network| network.0).collect()
}

/// The dummy address of IPv4 (RFC 7600). On a device without an address the kernel filters sources strictly.
const DUMMY: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 8);

fn tun(config: &ProxySettings, device: &Device) -> Result<Box<dyn Link>, LinkError> {
    let kernel_addresses = vec![Prefix::host(DUMMY.into())];
    let loan_beside = Some(config.control.clone());
    let config = TunConfig { kernel_addresses, loan_beside, ..TunConfig::new(&device.name) };
    let tun = Tun::open(&config)?;
    loosen(&device.name);
    Ok(Box::new(tun))
}

/// Packets that leave the proxy come in on a device that does not lead back to their source; a strict source filter
/// would drop them. The kernel takes the larger of this value and `all`: 2 overrides a strict 1 there.
fn loosen(device: &str) {
    let path = format!("/proc/sys/net/ipv4/conf/{device}/rp_filter");
    if let Err(error) = std::fs::write(&path, "2") {
        tracing::warn!(%error, path, "the filter of sources stays as it is");
    }
}

/// A killed proxy may have had another configuration.
fn forget_left_rules() {
    match remove_left_rules() {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, "removed rules of routing that were left behind"),
        Err(error) => tracing::warn!(%error, "rules of routing may be left behind"),
    }
}

/// Leads a router's traffic through TUN devices; the other kinds need no such rules.
pub(super) fn steer(config: &ProxySettings) -> Result<Option<Detour>, Failure> {
    if config.steer.is_some() {
        forget_left_rules();
    }
    let Some(steer) = config.steer.as_ref().filter(|steer| steer.by == By::Tun) else { return Ok(None) };
    let of_detour = DetourConfig {
        wire: steer.wire.clone(),
        radio: steer.radio.clone(),
        networks: mobiles(steer),
        fixed: config.fixed.name.clone(),
        mobile: config.mobile.name.clone(),
        table: steer.table(),
    };
    Detour::open(&of_detour).map(Some).map_err(Failure::during("lead packets through the proxy"))
}
