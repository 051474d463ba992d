//! How a proxy comes to stand in the way: TUN devices, netfilter queues, or the ports of a bridge.

use hopwise_core::ip::Prefix;
use hopwise_host::netlink::{Detour, DetourConfig, End, remove_left_rules};
use hopwise_host::{BridgeConfig, Bridged, Fault, Forward, ForwardConfig, Link, LinkError, Tun, TunConfig};

use super::config::{By, Config, Device, Steer};
use crate::failure::Failure;
use crate::node::links::lane;

/// The wire's side, then the radio's.
pub(super) fn open(config: &Config) -> Result<Vec<Box<dyn Link>>, Failure> {
    let failed = |error| Failure::failed("open a device", error);
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
            [tun(&config.fixed).map_err(failed)?, tun(&config.mobile).map_err(failed)?]
        }
    };
    let faulty = |(link, device): (Box<dyn Link>, &Device)| match &device.fault {
        Some(fault) => {
            let lane = lane(fault);
            let wrapped = Fault::wrap(link, lane, lane, fault.seed).map_err(failed)?;
            Ok(Box::new(wrapped) as Box<dyn Link>)
        }
        None => Ok(link),
    };
    links.into_iter().zip([&config.fixed, &config.mobile]).map(faulty).collect()
}

fn mobiles(steer: &Steer) -> Vec<Prefix> {
    steer.mobiles.iter().map(|network| network.0).collect()
}

fn tun(device: &Device) -> Result<Box<dyn Link>, LinkError> {
    let tun = Tun::open(&TunConfig::new(&device.name))?;
    loosen(&device.name);
    Ok(Box::new(tun))
}

/// What leaves the proxy comes in on a device that leads elsewhere, which a strict filter of sources would drop.
fn loosen(device: &str) {
    let path = format!("/proc/sys/net/ipv4/conf/{device}/rp_filter");
    if let Err(error) = std::fs::write(&path, "2") {
        tracing::warn!(%error, path, "the filter of sources stays as it is");
    }
}

/// A proxy that was killed had perhaps another configuration.
fn forget_left_rules() {
    match remove_left_rules() {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, "removed rules of routing that were left behind"),
        Err(error) => tracing::warn!(%error, "rules of routing may be left behind"),
    }
}

/// Leads a router's traffic through TUN devices; the other ways lead there by themselves.
pub(super) fn steer(config: &Config) -> Result<Vec<Detour>, Failure> {
    if config.steer.is_some() {
        forget_left_rules();
    }
    let Some(steer) = config.steer.as_ref().filter(|steer| steer.by == By::Tun) else {
        return Ok(Vec::new());
    };
    let detour = |from: &str, end, to: &str, table| {
        let (from, to, priority) = (from.to_owned(), to.to_owned(), steer.priority());
        Detour::open(&DetourConfig { from, end, networks: mobiles(steer), to, table, priority })
            .map_err(|error| Failure::failed("lead packets through the proxy", error))
    };
    Ok(vec![
        detour(&steer.wire, End::Destination, &config.fixed.name, steer.table())?,
        detour(&steer.radio, End::Source, &config.mobile.name, steer.table() + 1)?,
    ])
}
