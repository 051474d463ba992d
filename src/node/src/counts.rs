//! Counters of the services, by the names under which status and metrics show them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hopwise_lab::live::part::CarriedCounts;

use super::relay::{RelayEnd, Relayed};
use super::socks5::Socks5Counts;
use super::transparent::TransparentCounts;

/// The end of the names of gauges.
pub(super) const OPEN: &str = "-open";

/// Counters of the clients of a service with seats: of all forwards, or of SOCKS5.
#[derive(Debug, Default)]
pub(super) struct ClientCounts {
    pub(super) accepted: AtomicU64,
    /// Clients without a free seat: of forwards while too many waited. Also clients with a bad or unsupported request.
    pub(super) refused: AtomicU64,
    /// Clients that were quiet, or of the source with the most, while another client needed the seat.
    pub(super) gave_way: AtomicU64,
    /// Clients that were quiet for `idle`.
    pub(super) idle: AtomicU64,
    /// Clients whose connection could not be made, or that hung up before.
    pub(super) not_connected: AtomicU64,
    pub(super) open: AtomicU64,
}

impl ClientCounts {
    /// Counts the end of an open client, and the reason if it lost its seat.
    pub(super) fn has_ended(&self, end: RelayEnd) {
        match end {
            RelayEnd::GaveWay => count(&self.gave_way),
            RelayEnd::Quiet => count(&self.idle),
            RelayEnd::InOrder | RelayEnd::BrokeOff => {}
        }
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) relayed: Arc<Relayed>,
    pub(super) socks5: Arc<Socks5Counts>,
    pub(super) forwards: Arc<ClientCounts>,
    pub transparent: Arc<TransparentCounts>,
}

impl Counts {
    /// The counts of hosts' connections, for the trial that started the node.
    pub(super) fn carried(&self) -> CarriedCounts {
        let TransparentCounts { caught, straight, .. } = &*self.transparent;
        CarriedCounts { caught: value(caught), straight: value(straight) }
    }

    pub(super) fn named(&self) -> BTreeMap<String, u64> {
        let Counts { relayed, socks5, forwards, transparent } = self;
        let named = [
            ("bytes-to-mesh", &relayed.to_mesh),
            ("bytes-from-mesh", &relayed.from_mesh),
            ("broke-off", &relayed.broken),
            ("forwards-accepted", &forwards.accepted),
            ("forwards-refused", &forwards.refused),
            ("forwards-gave-way", &forwards.gave_way),
            ("forwards-idle", &forwards.idle),
            ("forwards-not-connected", &forwards.not_connected),
            ("forwards-open", &forwards.open),
            ("socks5-accepted", &socks5.clients.accepted),
            ("socks5-refused", &socks5.clients.refused),
            ("socks5-too-slow", &socks5.too_slow),
            ("socks5-gave-way", &socks5.clients.gave_way),
            ("socks5-idle", &socks5.clients.idle),
            ("socks5-not-allowed", &socks5.not_allowed),
            ("socks5-not-connected", &socks5.clients.not_connected),
            ("socks5-open", &socks5.clients.open),
            ("transparent-caught", &transparent.caught),
            ("transparent-straight", &transparent.straight),
            ("transparent-no-node", &transparent.no_node),
            ("transparent-no-target", &transparent.no_target),
            ("transparent-signed", &transparent.signed),
            ("transparent-no-hops", &transparent.no_hops),
            ("transparent-not-let-in", &transparent.not_let_in),
            ("transparent-lost", &transparent.lost),
            ("transparent-opened", &transparent.opened),
            ("transparent-opened-as-client", &transparent.opened_as_client),
            ("transparent-not-opened", &transparent.not_opened),
            ("transparent-not-allowed", &transparent.not_allowed),
            ("transparent-bad-header", &transparent.bad_header),
            ("transparent-looped", &transparent.looped),
            ("transparent-open", &transparent.open),
        ];
        named.into_iter().map(|(what, count)| (what.to_owned(), value(count))).collect()
    }
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

pub(super) fn value(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
