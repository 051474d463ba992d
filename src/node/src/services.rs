//! The seats and the lookups of SOCKS5 and of the forwards, which their clients share.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hopwise_host::Shards;

use super::config::NodeConfig;
use super::counts::Counts;
use super::forward::BoundForward;
use super::lookups::Names;
use super::seats::Seats;
use super::snapshot::BoundsSnapshot;
use super::{lookups, socks5};

#[derive(Debug)]
pub(super) struct Services {
    pub(super) socks5_seats: Option<Arc<Seats>>,
    /// By the place where each listens.
    forward_seats: Vec<(String, Arc<Seats>)>,
    pub(super) carried_seats: Option<Arc<Seats>>,
    pub(super) socks5_names: Names,
    pub(super) forward_names: Names,
}

impl Services {
    pub(super) fn new(config: &NodeConfig, forwards: &[BoundForward]) -> Services {
        let names = |hosts: &BTreeMap<String, IpAddr>| Names::new(hosts);
        let seats = config
            .socks5
            .as_ref()
            .map(|socks5| Arc::new(Seats::new(socks5.connections, socks5.reads_within.0, socks5.per_source)));
        let carried = config.transparent.as_ref();
        let carried = carried.map(|carried| Seats::new(carried.connections, carried.idle.0, None));
        Services {
            socks5_seats: seats,
            carried_seats: carried.map(Arc::new),
            forward_seats: forwards.iter().map(BoundForward::seats).collect(),
            socks5_names: names(&config.hosts),
            forward_names: names(&config.hosts),
        }
    }

    /// The amounts that peers make the stacks hold, and clients the services.
    pub(super) fn bounds(&self, shards: &Shards, counts: &Counts) -> BoundsSnapshot {
        let mut bounds = BoundsSnapshot::of_shards(shards);
        let lookups = |names: &Names| names.lookups.running() as u64;
        if let Some(seats) = &self.socks5_seats {
            let held = counts.socks5.handshakes.load(Ordering::Relaxed);
            let gave_way = counts.socks5.handshakes_gave_way.load(Ordering::Relaxed);
            bounds.add("socks5", seats.counts());
            bounds.add("socks5-handshakes", [held, socks5::MOST_HANDSHAKES as u64, gave_way]);
            bounds.add("socks5-lookups", [lookups(&self.socks5_names), lookups::MOST as u64, 0]);
        }
        for (listen, seats) in &self.forward_seats {
            bounds.add(&format!("forward {listen}"), seats.counts());
        }
        if let Some(seats) = &self.carried_seats {
            bounds.add("transparent", seats.counts());
        }
        if !self.forward_seats.is_empty() {
            bounds.add("forward-lookups", [lookups(&self.forward_names), lookups::MOST as u64, 0]);
        }
        bounds
    }
}
