//! Opens the links that a configuration names.

use std::time::Duration;

use hopwise_core::endpoint::LinkConfig;
use hopwise_core::impairment::Impairment;
use hopwise_core::ip::Prefix;
use hopwise_host::{Fault, Link, LinkError, Raw, RawConfig, Tun, TunConfig, TunFast, describe};

use super::config::{self, LinkKind, MTU, NodeConfig, link_id};

/// The link of the file that could not be opened, and why.
#[derive(Debug, thiserror::Error)]
#[error("links.{nth}: {error}")]
pub(crate) struct Unopened {
    pub(crate) nth: usize,
    pub(crate) error: LinkError,
}

/// The links of each shard, in the file's order.
pub(crate) fn open_all(config: &NodeConfig) -> Result<Vec<Vec<Box<dyn Link>>>, Unopened> {
    let unopened = |nth| move |error| Unopened { nth, error };
    match &config.links[..] {
        [several] if config.shards() > 1 => open_queues(config, several).map_err(unopened(0)),
        links => {
            let opened = (0..links.len()).map(|nth| open(config, nth).map_err(unopened(nth)));
            Ok(vec![opened.collect::<Result<_, _>>()?])
        }
    }
}

fn open_queues(config: &NodeConfig, link: &config::Link) -> Result<Vec<Vec<Box<dyn Link>>>, LinkError> {
    let queues = TunFast::open_queues(&tun(config, 0), config.shards())?;
    (0..).zip(queues).map(|(shard, queue)| Ok(vec![faulty(link, Box::new(queue), shard)?])).collect()
}

/// The links as the endpoint sees them.
pub(crate) fn describe_all(config: &NodeConfig, links: &[Box<dyn Link>]) -> Vec<LinkConfig> {
    let each = links.iter().zip(&config.links).enumerate();
    let described = each.map(|(nth, (link, of_file))| LinkConfig {
        crossings: of_file.crossings(),
        ..describe(&**link, link_id(nth), config.addresses_of(nth))
    });
    described.collect()
}

fn open(config: &NodeConfig, nth: usize) -> Result<Box<dyn Link>, LinkError> {
    let link = &config.links[nth];
    let opened: Box<dyn Link> = match link.kind {
        LinkKind::Tun => Box::new(Tun::open(&tun(config, nth))?),
        LinkKind::TunFast => Box::new(TunFast::open(&tun(config, nth))?),
        LinkKind::Raw => Box::new(Raw::open(&RawConfig {
            device: link.name.clone(),
            addresses: config.addresses_of(nth),
            offload: link.offload.unwrap_or(true),
        })?),
        LinkKind::Pcap | LinkKind::Replay => captured::open(link)?,
    };
    faulty(link, opened, 0)
}

/// Each shard has random numbers of its own.
fn faulty(link: &config::Link, opened: Box<dyn Link>, shard: u64) -> Result<Box<dyn Link>, LinkError> {
    match &link.fault {
        None => Ok(opened),
        Some(fault) => {
            let impairment = impairment(fault);
            Ok(Box::new(Fault::wrap(opened, impairment, impairment, fault.seed.wrapping_add(shard))?))
        }
    }
}

pub(crate) use captured::check_filter;

#[cfg(feature = "pcap")]
mod captured {
    use hopwise_core::wire::Checksums;
    use hopwise_host::{Link, LinkError, LiveCapture, Pace, Replay};

    pub(crate) use hopwise_host::check_filter;

    use super::config::{self, ChecksumsName, PaceName};

    /// Replays the file of a link, or captures live without one.
    pub(super) fn open(link: &config::Link) -> Result<Box<dyn Link>, LinkError> {
        let pace = match link.pace {
            Some(PaceName::AtOnce) => Pace::AtOnce,
            Some(PaceName::AsRecorded) | None => Pace::AsRecorded,
        };
        let checksums = match link.checksums {
            Some(ChecksumsName::Trust) => Checksums::Trust,
            Some(ChecksumsName::Verify) | None => Checksums::Verify,
        };
        Ok(match &link.file {
            Some(file) => Box::new(Replay::open(file, pace)?.with_checksums(checksums)),
            None => {
                let live = LiveCapture::open(&link.name, link.filter.as_deref())?;
                Box::new(live.with_checksums(checksums))
            }
        })
    }
}

#[cfg(not(feature = "pcap"))]
mod captured {
    use hopwise_host::{Link, LinkError};

    use super::config;

    /// This build has no filters; a link with one was refused before.
    pub(crate) fn check_filter(_filter: &str) -> Result<(), String> {
        Ok(())
    }

    /// Refused already when the configuration was checked.
    pub(super) fn open(link: &config::Link) -> Result<Box<dyn Link>, LinkError> {
        Err(LinkError::Setting { device: link.name.clone(), what: "this build is without libpcap" })
    }
}

/// The kernel sends our traffic to this device, even without an address of its own on it.
fn tun(config: &NodeConfig, nth: usize) -> TunConfig {
    let link = &config.links[nth];
    let kernel_addresses: Vec<Prefix> = link.kernel.iter().map(|address| address.0).collect();
    let routes = routes_beside(&kernel_addresses, &config.addresses_of(nth));
    let (mtu, loan_beside) = (link.mtu.unwrap_or(MTU), config.control.clone());
    TunConfig { mtu, kernel_addresses, routes, loan_beside, ..TunConfig::new(&link.name) }
}

/// Our addresses outside the subnets of the kernel's addresses.
fn routes_beside(kernel: &[Prefix], ours: &[Prefix]) -> Vec<Prefix> {
    let is_beside = |own: &&Prefix| !kernel.iter().any(|subnet| subnet.contains(own.address()));
    ours.iter().filter(is_beside).copied().collect()
}

pub fn impairment(fault: &config::Fault) -> Impairment {
    let none = Impairment::NONE;
    let or = |time: Option<hopwise_lab::units::Time>, default: Duration| time.map_or(default, |time| time.0);
    Impairment {
        loss_ppm: fault.drop.0,
        duplicate_ppm: fault.duplicate.0,
        corrupt_ppm: fault.corrupt.0,
        reorder_ppm: fault.reorder.0,
        reorder_by: or(fault.reorder_by, none.reorder_by),
        delay: or(fault.delay, none.delay),
        bits_per_second: fault.rate.map_or(none.bits_per_second, |rate| rate.0),
        queue_packets: fault.queue_packets.unwrap_or(none.queue_packets),
        ..none
    }
}

#[cfg(test)]
mod tests {
    use hopwise_lab::units::{Rate, Share, Time};

    use super::*;

    #[test]
    fn faults_mean_what_the_file_says() {
        let fault = config::Fault {
            drop: Share(10_000),
            delay: Some(Time(Duration::from_millis(7))),
            rate: Some(Rate(11_000_000)),
            queue_packets: Some(50),
            ..config::Fault::default()
        };
        let impairment = impairment(&fault);
        let none = Impairment::NONE;
        assert_eq!(
            (impairment.loss_ppm, impairment.delay, impairment.bits_per_second),
            (10_000, Duration::from_millis(7), 11_000_000)
        );
        assert_eq!(
            (impairment.queue_packets, impairment.reorder_by, impairment.corrupt_ppm),
            (50, none.reorder_by, 0)
        );
    }

    #[test]
    fn the_kernel_gets_routes_to_what_its_own_subnets_leave_out() {
        let prefixes = |texts: &[&str]| {
            texts.iter().map(|text| text.parse().expect("a prefix")).collect::<Vec<Prefix>>()
        };
        let ours = prefixes(&["10.7.0.2/24", "fd07::2/64"]);
        assert_eq!(routes_beside(&prefixes(&["10.7.0.1/24"]), &ours), ours[1..]);
        assert_eq!(routes_beside(&[], &ours), ours);
    }
}
