//! Neighbours that a Wi-Fi interface loses. Its driver counts unacknowledged frames, which shows a loss sooner than
//! missing hellos.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;

use hopwise_host::nl80211::{Nl80211, Station, StationAddress, StationNews, StationWatch};

/// Packets in a row that a station may leave unacknowledged; each was tried several times.
const MOST_FAILED: u32 = 2;

/// Source of news about stations: the kernel, or a test.
pub(super) trait Radio: Debug {
    fn stations(&mut self) -> io::Result<Vec<Station>>;
    fn news(&mut self, sink: &mut dyn FnMut(StationNews)) -> io::Result<()>;
}

/// One interface, polled through nl80211.
#[derive(Debug)]
pub(super) struct Wifi {
    asking: Nl80211,
    watch: StationWatch,
    interface: u32,
}

impl Wifi {
    /// An error means that this interface is not Wi-Fi.
    pub(super) fn open(interface: u32) -> io::Result<Wifi> {
        let mut asking = Nl80211::open()?;
        asking.stations(interface)?;
        Ok(Wifi { asking, watch: StationWatch::open(interface)?, interface })
    }
}

impl Radio for Wifi {
    fn stations(&mut self) -> io::Result<Vec<Station>> {
        self.asking.stations(self.interface)
    }

    fn news(&mut self, sink: &mut dyn FnMut(StationNews)) -> io::Result<()> {
        self.watch.read(sink)
    }
}

/// The counters of a station at the last success.
#[derive(Clone, Copy, Debug)]
struct Counted {
    packets: u32,
    failed: u32,
    is_lost: bool,
}

/// Finds lost stations from the reports of a radio.
#[derive(Debug)]
pub(super) struct Stations {
    radio: Box<dyn Radio>,
    known: BTreeMap<StationAddress, Counted>,
}

impl Stations {
    pub(super) fn new(radio: Box<dyn Radio>) -> Stations {
        Stations { radio, known: BTreeMap::new() }
    }

    /// Stations that were lost since the last call, each once until a frame reaches it again.
    pub(super) fn lost(&mut self) -> io::Result<Vec<StationAddress>> {
        let mut lost = Vec::new();
        self.radio.news(&mut |news| match news {
            StationNews::Left(address) | StationNews::Unheard { address, .. } => lost.push(address),
            StationNews::Came(_) => {}
        })?;
        let stations = self.radio.stations()?;
        self.known.retain(|address, _| stations.iter().any(|station| station.address == *address));
        for station in &stations {
            if self.judge(station) {
                lost.push(station.address);
            }
        }
        lost.sort_unstable();
        lost.dedup();
        Ok(lost)
    }

    /// Returns whether all frames since the last success have failed, and they are enough.
    fn judge(&mut self, station: &Station) -> bool {
        let (Some(packets), Some(failed)) = (station.tx_packets, station.tx_failed) else { return false };
        let now = Counted { packets, failed, is_lost: false };
        let known = self.known.entry(station.address).or_insert(now);
        let (sent, lost) = (packets.wrapping_sub(known.packets), failed.wrapping_sub(known.failed));
        if sent > lost {
            *known = now;
            return false;
        }
        let is_news = lost >= MOST_FAILED && !known.is_lost;
        known.is_lost |= is_news;
        is_news
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Its reports, call by call.
    #[derive(Debug, Default)]
    struct Made {
        looks: VecDeque<(Vec<StationNews>, Vec<Station>)>,
    }

    impl Radio for Made {
        fn stations(&mut self) -> io::Result<Vec<Station>> {
            Ok(self.looks.pop_front().map(|(_, stations)| stations).unwrap_or_default())
        }

        fn news(&mut self, sink: &mut dyn FnMut(StationNews)) -> io::Result<()> {
            if let Some((news, _)) = self.looks.front() {
                news.iter().for_each(|news| sink(*news));
            }
            Ok(())
        }
    }

    const A: StationAddress = StationAddress([2, 0, 0, 0, 0, 1]);
    const B: StationAddress = StationAddress([2, 0, 0, 0, 0, 2]);

    fn station(address: StationAddress, sent: u32, failed: u32) -> Station {
        Station {
            address,
            inactive: None,
            signal_dbm: None,
            signal_average_dbm: None,
            tx_packets: Some(sent),
            tx_retries: None,
            tx_failed: Some(failed),
            rx_packets: None,
        }
    }

    fn lost(looks: Vec<(Vec<StationNews>, Vec<Station>)>) -> Vec<Vec<StationAddress>> {
        let count = looks.len();
        let mut stations = Stations::new(Box::new(Made { looks: looks.into() }));
        (0..count).map(|_| stations.lost().expect("it tells")).collect()
    }

    #[test]
    fn who_acknowledges_nothing_is_lost_once_until_something_gets_through() {
        let looks = [(10, 1), (11, 2), (12, 3), (14, 5), (16, 6), (18, 8)];
        let of = |(sent, failed): (u32, u32)| (Vec::new(), vec![station(A, sent, failed), station(B, 9, 9)]);
        let expected = [vec![], vec![], vec![A], vec![], vec![], vec![A]];
        assert_eq!(lost(looks.map(of).to_vec()), expected);
    }

    #[test]
    fn who_fails_now_and_then_is_kept() {
        let of = |n: u32| (Vec::new(), vec![station(A, 10 * n, 3 * n)]);
        assert!(lost((0..9).map(of).collect()).iter().all(Vec::is_empty));
    }

    #[test]
    fn what_the_kernel_says_by_itself_counts() {
        let unheard = StationNews::Unheard { address: A, packets: 50 };
        let looks = vec![
            (vec![StationNews::Came(A)], vec![station(A, 0, 0)]),
            (vec![unheard, StationNews::Left(B)], vec![station(A, 1, 0)]),
        ];
        assert_eq!(lost(looks), [vec![], vec![A, B]]);
    }

    #[test]
    fn a_driver_that_does_not_count_says_nothing() {
        let silent = Station { tx_failed: None, ..station(A, 9, 9) };
        assert!(lost(vec![(Vec::new(), vec![silent]); 4]).iter().all(Vec::is_empty));
    }
}
