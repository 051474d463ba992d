//! The stations at the beginning of ways, and the sources of their facts.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hopwise_core::{Instant, LinkFacts, StationAddress};

use crate::first_links::{FirstHop, FirstLinks};
use crate::netlink::name_of;
use crate::netlink::way::WaySocket;
use crate::nl80211::StationSource;

/// A report that is older says nothing of the link as it is.
const FRESH: Duration = Duration::from_secs(1);
/// The pause before an interface without reports is opened again.
const AGAIN: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct StationReports {
    /// The first station to each peer, and the interface there.
    firsts: BTreeMap<IpAddr, (String, StationAddress)>,
    /// By the names of the interfaces.
    sources: BTreeMap<String, StationInterface>,
    kernel: Option<WaySocket>,
}

/// An interface, which may have no stations.
#[derive(Debug)]
struct StationInterface {
    source: Option<StationSource>,
    /// It leads to a peer. One that no longer does is kept while it reports, with what is known of its driver.
    is_on_a_way: bool,
    /// The time of its last report, or of the last attempt to open it.
    since: Instant,
}

impl StationInterface {
    fn open(name: &str, now: Instant) -> StationInterface {
        StationInterface { source: StationSource::open(name).ok(), is_on_a_way: true, since: now }
    }

    fn poll(&mut self, name: &str, now: Instant) {
        if let Some(source) = &mut self.source {
            source.poll(now, &mut |_| {});
            self.since = source.board().read().at.max(self.since);
        }
        if now.since(self.since) >= AGAIN {
            *self = StationInterface { is_on_a_way: self.is_on_a_way, ..StationInterface::open(name, now) };
        }
    }
}

impl StationReports {
    /// Finds the first stations of these ways, until there is to be no more of it. Interfaces without reports are
    /// closed once they are on no way.
    pub(super) fn look(&mut self, now: Instant, ways: &BTreeMap<IpAddr, FirstHop>, is_ending: &AtomicBool) {
        if self.kernel.is_none() {
            self.kernel = WaySocket::open().ok();
        }
        let kernel = self.kernel.as_ref();
        let first = |(peer, way): (&IpAddr, &FirstHop)| {
            let first = match way {
                FirstHop::To(device, station) => Some((device.clone(), Some(*station))),
                FirstHop::ByKernel => kernel.and_then(|kernel| by_kernel(kernel, *peer)),
            };
            first.map(|first| (*peer, first))
        };
        let wanted = ways.iter().take_while(|_| !is_ending.load(Ordering::Relaxed));
        let firsts: BTreeMap<_, _> = wanted.filter_map(first).collect();
        for (name, source) in &mut self.sources {
            source.is_on_a_way = firsts.values().any(|(device, _)| device == name);
        }
        self.sources.retain(|_, source| source.is_on_a_way || source.source.is_some());
        for (device, _) in firsts.values() {
            if !self.sources.contains_key(device) {
                self.sources.insert(device.clone(), StationInterface::open(device, now));
            }
        }
        let found = |(peer, (device, station))| Some((peer, (device, station?)));
        self.firsts = firsts.into_iter().filter_map(found).collect();
    }

    /// True if an interface on a way has stations.
    pub(super) fn has_any(&self) -> bool {
        self.sources.values().any(|source| source.is_on_a_way && source.source.is_some())
    }

    pub(super) fn poll(&mut self, now: Instant) {
        self.sources.iter_mut().for_each(|(name, source)| source.poll(name, now));
    }

    /// The facts about the first link to each peer. Peers behind one station share them.
    pub(super) fn facts(&self, now: Instant) -> FirstLinks {
        let mut shared: BTreeMap<(&str, StationAddress), Arc<LinkFacts>> = BTreeMap::new();
        for (name, source) in &self.sources {
            let facts = source.source.iter().flat_map(StationSource::facts);
            let fresh = facts.filter(|facts| now.since(facts.at) <= FRESH);
            shared.extend(fresh.map(|facts| ((name.as_str(), facts.station), Arc::new(*facts))));
        }
        let known = |(peer, (device, station)): (&IpAddr, &(String, StationAddress))| {
            Some((*peer, Arc::clone(shared.get(&(device.as_str(), *station))?)))
        };
        self.firsts.iter().filter_map(known).collect()
    }
}

/// The interface on the kernel's way, and the station if it is known.
fn by_kernel(kernel: &WaySocket, peer: IpAddr) -> Option<(String, Option<StationAddress>)> {
    let first = kernel.first(peer)?;
    Some((name_of(first.interface).ok()?, kernel.station(first)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nl80211::StationOffer;

    const STATION: StationAddress = StationAddress([2, 0, 0, 0, 0, 1]);

    #[test]
    fn peers_behind_one_station_share_its_facts_until_they_are_old() {
        let device = format!("first{}", std::process::id());
        let mut offer = StationOffer::open(&device).expect("the name is free");
        let ms = Instant::from_millis;
        let peer = |last| IpAddr::from([10, 0, 0, last]);
        let to = |station| FirstHop::To(device.clone(), station);
        let other = StationAddress([2, 0, 0, 0, 0, 9]);
        let ways = BTreeMap::from([
            (peer(2), to(STATION)),
            (peer(3), to(STATION)),
            (peer(4), to(other)),
            (peer(5), FirstHop::To("no-such-device".into(), STATION)),
        ]);
        let mut stations = StationReports::default();
        let goes_on = AtomicBool::new(false);
        stations.look(ms(0), &ways, &goes_on);
        if !stations.has_any() {
            return println!("skipped: peers_behind_one_station_share_its_facts: only root is believed");
        }
        offer.tell(|| vec![LinkFacts { signal_dbm: Some(-61), ..LinkFacts::new(STATION, Instant::ZERO) }]);
        stations.poll(ms(50));
        let facts = stations.facts(ms(60));
        let wanted = LinkFacts { signal_dbm: Some(-61), ..LinkFacts::new(STATION, ms(50)) };
        let told: Vec<_> = facts.iter().map(|(peer, facts)| (*peer, **facts)).collect();
        assert_eq!(told, [(peer(2), wanted), (peer(3), wanted)], "the others have no station that is known");
        assert!(Arc::ptr_eq(&facts[&peer(2)], &facts[&peer(3)]));
        assert!(!stations.facts(ms(1_050)).is_empty() && stations.facts(ms(1_051)).is_empty());
        // The program that offers them ended and began anew.
        drop(offer);
        stations.poll(ms(1_100));
        let mut offer = StationOffer::open(&device).expect("the name is free");
        stations.poll(ms(5_050));
        offer.tell(|| vec![LinkFacts::new(STATION, Instant::ZERO)]);
        stations.poll(ms(5_100));
        assert_eq!(stations.facts(ms(5_100)).len(), 2);
        stations.look(ms(5_200), &BTreeMap::new(), &goes_on);
        assert!(!stations.has_any(), "no way has stations");
        assert_eq!(stations.sources.len(), 1, "what is known of its driver is kept while it reports");
        drop(offer);
        stations.poll(ms(10_200));
        stations.look(ms(10_200), &BTreeMap::new(), &goes_on);
        assert!(stations.sources.is_empty(), "an interface without reports is closed");
        stations.look(ms(10_300), &ways, &AtomicBool::new(true));
        assert!(stations.firsts.is_empty(), "an end comes before any question");
    }
}
