//! The interfaces of the mesh, and the neighbours that a Wi-Fi interface loses. Its driver counts unacknowledged
//! frames, which shows a loss sooner than missing hellos.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use hopwise_core::narrow::as_u16;
use hopwise_core::{Instant, LinkFacts, LinkId, StationAddress};
use hopwise_host::netlink;
use hopwise_host::nl80211::{Board, StationNews, StationSource};
use hopwise_host::routing::{InterfaceWatch, Resender};

use hopwise_daemon::failure::Failure;

/// Packets in a row that a station may leave unacknowledged; each was tried several times.
const MOST_FAILED: u64 = 2;
/// The time between two comparisons of counters. A packet may fail that long after it was counted as sent.
const COMPARE_EVERY: Duration = Duration::from_millis(200);

/// An interface of the mesh, with its sockets for packets.
#[derive(Debug)]
pub(super) struct MeshPort {
    pub name: String,
    pub(super) link: LinkId,
    pub(super) index: u32,
    pub(super) watch: InterfaceWatch,
    pub(super) resender: Resender,
    /// Present where stations are reported: on Wi-Fi, and on a device of `hopwise air`.
    pub stations: Option<LossWatch>,
}

impl MeshPort {
    pub(super) fn open(nth: usize, name: &str) -> Result<MeshPort, Failure> {
        let failed = |doing: &'static str| {
            move |error: io::Error| Failure::failed(doing, format_args!("{name}: {error}"))
        };
        let index = netlink::index_of(name)
            .map_err(|error| Failure::failed("find an interface", format_args!("{name}: {error}")))?;
        Ok(MeshPort {
            name: name.to_owned(),
            link: LinkId(as_u16(nth)),
            index,
            watch: InterfaceWatch::open(name).map_err(failed("watch an interface"))?,
            resender: Resender::open(name).map_err(failed("open a socket for packets"))?,
            stations: LossWatch::open(name).ok(),
        })
    }
}

/// One interface with stations.
#[derive(Debug)]
pub(super) struct LossWatch {
    source: StationSource,
    losses: LossDetector,
    compare_at: Instant,
}

impl LossWatch {
    /// An error means that this interface has no stations.
    pub(super) fn open(interface: &str) -> io::Result<LossWatch> {
        let source = StationSource::open(interface)?;
        Ok(LossWatch { source, losses: LossDetector::default(), compare_at: Instant::ZERO })
    }

    pub(super) fn board(&self) -> Board {
        self.source.board()
    }

    pub(super) fn facts(&self) -> &[LinkFacts] {
        self.source.facts()
    }

    /// The time of the next report.
    pub(super) fn poll_timeout(&self) -> Instant {
        self.source.poll_timeout()
    }

    /// Stations that were lost since the last call, each once until a frame reaches it again.
    pub(super) fn lost(&mut self, now: Instant) -> Vec<StationAddress> {
        let mut lost = Vec::new();
        self.source.poll(now, &mut |news| lost.extend(lost_by(news)));
        if self.compare_at <= now {
            self.compare_at = now + COMPARE_EVERY;
            self.losses.compare(self.source.facts(), &mut lost);
        }
        lost.sort_unstable();
        lost.dedup();
        lost
    }
}

/// The station that a notification reports as lost.
fn lost_by(news: StationNews) -> Option<StationAddress> {
    match news {
        StationNews::Left(address) | StationNews::Unheard { address, .. } => Some(address),
        StationNews::Came(_) => None,
    }
}

/// The counters of a station at the last success.
#[derive(Clone, Copy, Debug)]
struct TxCounters {
    packets: u64,
    failed: u64,
    is_lost: bool,
}

/// Finds lost stations by their counters.
#[derive(Debug, Default)]
struct LossDetector(BTreeMap<StationAddress, TxCounters>);

impl LossDetector {
    fn compare(&mut self, stations: &[LinkFacts], lost: &mut Vec<StationAddress>) {
        self.0.retain(|address, _| stations.iter().any(|facts| facts.station == *address));
        lost.extend(stations.iter().filter(|facts| self.judge(facts)).map(|facts| facts.station));
    }

    /// Returns whether all frames since the last success have failed, and they are enough.
    fn judge(&mut self, facts: &LinkFacts) -> bool {
        let (Some(packets), Some(failed)) = (facts.tx_packets, facts.tx_failed) else {
            // Once the counters are believed again, they count from then on.
            self.0.remove(&facts.station);
            return false;
        };
        let now = TxCounters { packets, failed, is_lost: false };
        let known = self.0.entry(facts.station).or_insert(now);
        let (sent, lost) = (packets.saturating_sub(known.packets), failed.saturating_sub(known.failed));
        // A station that came anew counts from the beginning.
        if sent > lost || packets < known.packets {
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
    use super::*;

    const A: StationAddress = StationAddress([2, 0, 0, 0, 0, 1]);
    const B: StationAddress = StationAddress([2, 0, 0, 0, 0, 2]);

    fn station(address: StationAddress, sent: u64, failed: u64) -> LinkFacts {
        LinkFacts {
            tx_packets: Some(sent),
            tx_failed: Some(failed),
            ..LinkFacts::new(address, Instant::ZERO)
        }
    }

    fn lost(reports: &[Vec<LinkFacts>]) -> Vec<Vec<StationAddress>> {
        let mut losses = LossDetector::default();
        let compared = |report: &Vec<LinkFacts>| {
            let mut lost = Vec::new();
            losses.compare(report, &mut lost);
            lost
        };
        reports.iter().map(compared).collect()
    }

    #[test]
    fn who_acknowledges_nothing_is_lost_once_until_something_gets_through() {
        let looks = [(10, 1), (11, 2), (12, 3), (14, 5), (16, 6), (18, 8)];
        let of = |(sent, failed): (u64, u64)| vec![station(A, sent, failed), station(B, 9, 9)];
        let expected = [vec![], vec![], vec![A], vec![], vec![], vec![A]];
        assert_eq!(lost(&looks.map(of)), expected);
    }

    #[test]
    fn who_fails_now_and_then_is_kept_and_so_is_one_that_came_anew() {
        let of = |n: u64| vec![station(A, 10 * n, 3 * n)];
        assert!(lost(&(0..9).map(of).collect::<Vec<_>>()).iter().all(Vec::is_empty));
        assert!(lost(&[vec![station(A, 50, 0)], vec![station(A, 2, 2)]]).iter().all(Vec::is_empty));
    }

    #[test]
    fn what_the_kernel_says_by_itself_counts() {
        let said =
            [StationNews::Came(A), StationNews::Unheard { address: A, packets: 50 }, StationNews::Left(B)];
        assert_eq!(said.map(lost_by), [None, Some(A), Some(B)]);
    }

    #[test]
    fn a_driver_that_does_not_count_or_is_not_believed_says_nothing() {
        let silent = LinkFacts { tx_failed: None, ..station(A, 9, 9) };
        assert!(lost(&vec![vec![silent]; 4]).iter().all(Vec::is_empty));
        // The counter is believed again: failures from before do not count.
        let again = [station(A, 9, 0), silent, station(A, 30, 21), station(A, 30, 21)];
        assert!(lost(&again.map(|facts| vec![facts])).iter().all(Vec::is_empty));
    }
}
