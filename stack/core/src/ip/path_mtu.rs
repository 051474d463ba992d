//! The path MTUs that routers have reported for destinations (RFC 1191, RFC 8201).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use crate::Instant;

/// The least MTU of an IPv4 link (RFC 791 §3.2); a smaller number is a mistake or an attack.
const FLOOR_V4: u16 = 68;
/// The least MTU of an IPv6 link (RFC 8200 §5).
const FLOOR_V6: u16 = 1280;
/// After this time the path may have improved, and is tried again (RFC 1191 §6.3, RFC 8201 §5.3).
const AGE: Duration = Duration::from_secs(600);

/// The common MTUs of RFC 1191 §7.1.
const PLATEAUS: [u16; 11] = [65_535, 32_000, 17_914, 8166, 4352, 2002, 1492, 1006, 508, 296, FLOOR_V4];

/// The next plateau below the length of a dropped packet, for an old router that reports no MTU (RFC 1191 §5). `len` is
/// the quoted header's total length.
pub(crate) fn plateau_below(len: u16) -> u16 {
    PLATEAUS.into_iter().find(|&plateau| plateau < len).unwrap_or(FLOOR_V4)
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    mtu: u16,
    since: Instant,
}

impl Entry {
    fn is_fresh(&self, now: Instant) -> bool {
        now.since(self.since) < AGE
    }
}

/// A bounded cache; the entry with the oldest value gives way. Without an entry only the link limits the size, so
/// callers take the lesser of this and the link's MTU.
#[derive(Debug)]
pub(crate) struct PathMtuCache {
    limit: usize,
    entries: BTreeMap<IpAddr, Entry>,
}

impl Default for PathMtuCache {
    fn default() -> PathMtuCache {
        PathMtuCache::new(256)
    }
}

impl PathMtuCache {
    /// An empty cache of at most `limit` destinations.
    pub(crate) fn new(limit: usize) -> PathMtuCache {
        PathMtuCache { limit, entries: BTreeMap::new() }
    }

    /// The largest packet that the path carries, in bytes; None if no router reported one in the last ten minutes.
    pub(crate) fn get(&self, now: Instant, dst: IpAddr) -> Option<u16> {
        self.entries.get(&dst).filter(|entry| entry.is_fresh(now)).map(|entry| entry.mtu)
    }

    /// Takes a report about a dropped packet. `mtu` is the router's value, or [`plateau_below`] the quoted length if
    /// that is 0. Returns the new value if it is lower than before. Verify the quote first (RFC 5927 §7).
    ///
    /// The value for IPv4 is at least 68 (RFC 1191 §3). A report below 1280 for IPv6 is ignored (RFC 8201 §4): it can
    /// only be forged.
    pub(crate) fn lower(&mut self, now: Instant, dst: IpAddr, mtu: u16) -> Option<u16> {
        if dst.is_ipv6() && mtu < FLOOR_V6 {
            return None;
        }
        let mtu = mtu.max(FLOOR_V4);
        match self.get(now, dst) {
            Some(known) if known < mtu => return None,
            // The size is confirmed, so only the age is renewed.
            Some(known) if known == mtu => {
                self.set(now, dst, mtu);
                return None;
            }
            _ => {}
        }
        self.set(now, dst, mtu);
        Some(mtu)
    }

    fn set(&mut self, now: Instant, dst: IpAddr, mtu: u16) {
        if self.limit == 0 {
            return;
        }
        if !self.entries.contains_key(&dst) && self.entries.len() >= self.limit {
            // Ties are broken by address, so that a run is repeatable. The scan is needed only for a new destination.
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.since).map(|(&dst, _)| dst);
            oldest.map(|oldest| self.entries.remove(&oldest));
        }
        self.entries.insert(dst, Entry { mtu, since: now });
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    const V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    const NOW: Instant = Instant::from_secs(1000);

    fn v6() -> IpAddr {
        "2001:db8::1".parse().unwrap()
    }

    #[test]
    fn only_lower_values_are_news() {
        let mut cache = PathMtuCache::default();
        assert_eq!(cache.get(NOW, V4), None);
        assert_eq!(cache.lower(NOW, V4, 1400), Some(1400));
        assert_eq!(cache.lower(NOW, V4, 1400), None);
        assert_eq!(cache.lower(NOW, V4, 1450), None);
        assert_eq!(cache.get(NOW, V4), Some(1400));
        assert_eq!(cache.lower(NOW, V4, 1300), Some(1300));
    }

    #[test]
    fn ipv4_stops_at_68() {
        let mut cache = PathMtuCache::default();
        assert_eq!(cache.lower(NOW, V4, 20), Some(68));
        assert_eq!(cache.lower(NOW, V4, 0), None);
    }

    #[test]
    fn ipv6_router_that_says_less_than_1280_is_not_believed() {
        let mut cache = PathMtuCache::default();
        assert_eq!(cache.lower(NOW, v6(), 1279), None);
        assert_eq!(cache.get(NOW, v6()), None);
        assert_eq!(cache.lower(NOW, v6(), 1280), Some(1280));
    }

    #[test]
    fn after_ten_minutes_the_path_is_tried_again() {
        let mut cache = PathMtuCache::default();
        assert_eq!(cache.lower(NOW, V4, 1400), Some(1400));
        let almost = NOW + Duration::from_secs(599);
        assert_eq!(cache.get(almost, V4), Some(1400));
        let after = NOW + AGE;
        assert_eq!(cache.get(after, V4), None);
        assert_eq!(cache.lower(after, V4, 1450), Some(1450), "what is forgotten does not hold a value down");
    }

    #[test]
    fn hearing_the_same_again_makes_it_young() {
        let mut cache = PathMtuCache::default();
        assert_eq!(cache.lower(NOW, V4, 1400), Some(1400));
        assert_eq!(cache.lower(NOW + Duration::from_secs(400), V4, 1400), None);
        assert_eq!(cache.get(NOW + Duration::from_secs(900), V4), Some(1400));
    }

    #[test]
    fn the_oldest_entry_gives_way() {
        let mut cache = PathMtuCache::new(2);
        let dst = |last| IpAddr::V4(Ipv4Addr::new(192, 0, 2, last));
        assert_eq!(cache.lower(Instant::from_secs(1), dst(9), 1000), Some(1000));
        assert_eq!(cache.lower(Instant::from_secs(2), dst(1), 1000), Some(1000));
        assert_eq!(cache.lower(Instant::from_secs(3), dst(5), 1000), Some(1000));
        assert_eq!(cache.get(Instant::from_secs(3), dst(9)), None);
        assert_eq!(cache.get(Instant::from_secs(3), dst(1)), Some(1000));
        assert_eq!(cache.get(Instant::from_secs(3), dst(5)), Some(1000));
    }

    #[test]
    fn a_cache_without_room_remembers_nothing() {
        let mut cache = PathMtuCache::new(0);
        assert_eq!(cache.lower(NOW, V4, 1000), Some(1000));
        assert_eq!(cache.get(NOW, V4), None);
    }

    #[test]
    fn plateaus_are_those_of_the_table() {
        let steps = [(65_535, 32_000), (4352, 2002), (1500, 1492), (1493, 1492), (1492, 1006), (577, 508)];
        for (len, plateau) in steps {
            assert_eq!(plateau_below(len), plateau, "{len}");
        }
        assert_eq!(plateau_below(69), 68);
        assert_eq!(plateau_below(68), 68);
        assert_eq!(plateau_below(0), 68);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn bounded_and_never_below_the_floor(
            steps in proptest::collection::vec((any::<u8>(), any::<u16>(), any::<bool>(), 0u64..100), 1..200),
        ) {
            let mut cache = PathMtuCache::new(16);
            let mut now = Instant::ZERO;
            for (last, mtu, six, wait_s) in steps {
                now += Duration::from_secs(wait_s);
                let dst = if six { v6() } else { IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)) };
                let before = cache.get(now, dst);
                if let Some(new) = cache.lower(now, dst, mtu) {
                    prop_assert!(before.is_none_or(|before| new < before));
                    let floor = if six { FLOOR_V6 } else { FLOOR_V4 };
                    prop_assert!(new >= floor);
                    prop_assert_eq!(cache.get(now, dst), Some(new));
                } else {
                    prop_assert_eq!(cache.get(now, dst), before);
                }
                prop_assert!(cache.entries.len() <= 16);
            }
        }
    }
}
