//! Requests over a proxy's control socket, and its answers.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use hopwise_core::{LinkEvent, StationAddress};
use hopwise_host::Clock;
use hopwise_host::nl80211::Board;
use hopwise_lab::units::Size;
use hopwise_mesh::ProxyCounts;
use serde::{Deserialize, Serialize};

use hopwise_daemon::control::{Answer, Question};
use hopwise_daemon::stations::InterfaceSnapshot;

/// News from a link layer, or from a program in its place.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "tell", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum ProxyRequest {
    GoingDown {
        peer: IpAddr,
        rtt_us: u64,
        outage_us: u64,
        /// The expected time until the link is gone; zero if it is unknown.
        #[serde(default)]
        within_us: u64,
    },
    Gone {
        peer: IpAddr,
    },
    Up {
        peer: IpAddr,
    },
    /// Strength of the mobile's signal just now.
    Signal {
        peer: IpAddr,
        dbm: i8,
    },
    Status,
}

impl Question for ProxyRequest {
    fn is_of_routing(&self) -> bool {
        false
    }
}

impl ProxyRequest {
    /// An IPv4 address that is written as one of IPv6 (RFC 4291 §2.5.5.2) is meant as what it is.
    pub(super) fn with_plain_address(mut self) -> ProxyRequest {
        match &mut self {
            ProxyRequest::GoingDown { peer, .. }
            | ProxyRequest::Gone { peer }
            | ProxyRequest::Up { peer }
            | ProxyRequest::Signal { peer, .. } => *peer = peer.to_canonical(),
            ProxyRequest::Status => {}
        }
        self
    }

    pub(super) fn event(self) -> Option<LinkEvent<'static>> {
        match self {
            ProxyRequest::GoingDown { peer, rtt_us, outage_us, within_us } => Some(LinkEvent::GoingDown {
                peer,
                rtt: Duration::from_micros(rtt_us),
                outage: Duration::from_micros(outage_us),
                within: Duration::from_micros(within_us),
            }),
            ProxyRequest::Gone { peer } => Some(LinkEvent::Gone { peer }),
            ProxyRequest::Up { peer } => Some(LinkEvent::Up { peer }),
            ProxyRequest::Signal { .. } | ProxyRequest::Status => None,
        }
    }
}

/// Output of `hopwise proxy status`, in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ProxyStatus {
    /// Followed flows, followed flows without a lasting entry, and flows that were forgotten for lack of room.
    pub(super) flows: usize,
    pub(super) brief: usize,
    pub(super) gave_way: u64,
    /// Flows that are cut in two.
    pub(super) cut: usize,
    pub(super) packets: u64,
    /// Packets without a followed flow, flows whose agent cannot serve them, and how often memory was short.
    pub(super) untouched: u64,
    /// Packets of followed flows with numbers that neither end can have sent.
    pub(super) unfit: u64,
    pub(super) unserved: usize,
    pub(super) overflows: u64,
    /// Waiting packets that gave way to packets of other mobiles.
    pub(super) pushed_out: u64,
    /// Packets that were dropped because too many packets waited for their link.
    pub(super) no_room: u64,
    pub(super) kept_packets: usize,
    pub(super) kept_bytes: usize,
    /// The part of `kept_bytes` in flows that are cut in two.
    pub(super) cut_bytes: usize,
    /// The interfaces under `stations:`.
    pub stations: Vec<InterfaceSnapshot>,
}

impl ProxyStatus {
    /// Lines for people.
    pub(super) fn page(&self) -> String {
        let ProxyStatus { flows, cut, packets, untouched, unserved, kept_packets, kept_bytes, .. } = self;
        let mut lines = vec![
            format!("flows {flows}, cut in two {cut}, unserved {unserved}"),
            format!(
                "packets {packets}, untouched {untouched}, kept {kept_packets} ({})",
                Size(*kept_bytes as u64)
            ),
        ];
        lines.extend(self.stations.iter().flat_map(InterfaceSnapshot::lines));
        lines.join("\n")
    }

    pub(super) fn of(counts: &ProxyCounts) -> ProxyStatus {
        ProxyStatus {
            flows: counts.flows,
            brief: counts.brief,
            gave_way: counts.gave_way,
            cut: counts.cut,
            packets: counts.packets,
            untouched: counts.untouched,
            unfit: counts.unfit,
            unserved: counts.unserved,
            overflows: counts.overflows,
            pushed_out: counts.pushed_out,
            no_room: counts.no_room,
            kept_packets: counts.kept_packets,
            kept_bytes: counts.kept_bytes,
            cut_bytes: counts.cut_bytes,
            stations: Vec::new(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ProxyResponse {
    Done,
    Status(Box<ProxyStatus>),
    Refused(String),
}

impl Answer for ProxyResponse {
    fn refused(problem: String) -> ProxyResponse {
        ProxyResponse::Refused(problem)
    }
}

/// The reports of an interface, and its mobiles by their stations.
#[derive(Clone, Debug)]
pub(super) struct MobileReports {
    pub(super) board: Board,
    pub(super) mobiles: BTreeMap<StationAddress, IpAddr>,
}

/// Adds the facts about stations to a status.
pub(super) fn with_stations(
    mut response: ProxyResponse,
    reports: &[MobileReports],
    clock: Clock,
) -> ProxyResponse {
    if let ProxyResponse::Status(status) = &mut response {
        let now = clock.now();
        let shown = |of: &MobileReports| {
            InterfaceSnapshot::of(&of.board.read(), now, |station| of.mobiles.get(&station).copied())
        };
        status.stations = reports.iter().map(shown).collect();
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_address_means_the_mobile() {
        let line = r#"{"tell":"gone","peer":"::ffff:10.9.0.2"}"#;
        let request: ProxyRequest = serde_json::from_str(line).expect("news");
        let peer = IpAddr::from([10, 9, 0, 2]);
        assert_eq!(request.with_plain_address(), ProxyRequest::Gone { peer });
    }

    #[test]
    fn news_are_read_and_nonsense_is_not() {
        let peer = IpAddr::from([10, 9, 0, 2]);
        let down = ProxyRequest::GoingDown { peer, rtt_us: 20_000, outage_us: 10_000_000, within_us: 0 };
        let line = r#"{"tell":"going-down","peer":"10.9.0.2","rtt_us":20000,"outage_us":10000000}"#;
        assert_eq!(serde_json::from_str::<ProxyRequest>(line).expect("news"), down);
        for line in
            [r#"{"tell":"gone","peer":"nobody"}"#, r#"{"tell":"up","peer":"10.9.0.2","more":1}"#, "{}"]
        {
            assert!(serde_json::from_str::<ProxyRequest>(line).is_err(), "{line}");
        }
    }
}
