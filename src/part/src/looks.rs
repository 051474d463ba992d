//! The looks of a host at its radio and its routes while a run lasts. They cost a few questions to its own kernel.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_host::Clock;
use hopwise_host::netlink::route_to;
use hopwise_host::nl80211::StationSource;
use hopwise_lab::live::mesh::{ChannelLook, Look, StationLook};

use hopwise_node::fleet::here::{channel_at, stations_by};
use hopwise_node::fleet::report::{AirtimeReport, NeighbourReport};

use crate::v4;

/// The pause between two looks.
const EVERY: Duration = Duration::from_secs(1);
/// A run of an hour has fewer.
const MOST: usize = 4_000;

/// A thread that looks until it is told to end.
#[derive(Debug)]
pub(crate) struct Looking {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<(Instant, Look)>>,
}

impl Looking {
    pub(crate) fn start(interface: String, addresses: Vec<Ipv4Addr>, clock: Clock) -> io::Result<Looking> {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let look = move || {
            let mut looks = Vec::new();
            let mut source = StationSource::open(&interface).ok();
            while looks.len() < MOST {
                // The last one is at the end.
                let is_last = over.load(Ordering::Relaxed);
                let now = clock.now();
                let stations = source.as_mut().map(|source| stations_by(source, now)).unwrap_or_default();
                looks.push((now, look(&stations, channel_at(&interface).as_ref(), &addresses)));
                if is_last {
                    break;
                }
                thread::park_timeout(EVERY);
            }
            looks
        };
        let thread = thread::Builder::new().name("looks".into()).spawn(look)?;
        Ok(Looking { is_over, thread })
    }

    /// All looks, with their times from the beginning of the run.
    pub(crate) fn end(self, began: Instant) -> Vec<Look> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        let looks = self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let since = |at: Instant| if at >= began { ms(at.since(began)) } else { -ms(began.since(at)) };
        looks.into_iter().map(|(at, look)| Look { at_ms: since(at), ..look }).collect()
    }
}

fn look(stations: &[NeighbourReport], airtime: Option<&AirtimeReport>, addresses: &[Ipv4Addr]) -> Look {
    Look {
        at_ms: 0,
        stations: stations.iter().filter_map(station).collect(),
        hops: addresses.iter().map(|address| first_hop(*address)).collect(),
        channel: airtime.map(channel),
    }
}

/// The first hop to an address; none if there is only the way out of the mesh.
fn first_hop(to: Ipv4Addr) -> Option<Ipv4Addr> {
    v4(route_to(IpAddr::V4(to)).filter(|route| route.bits > 0)?.next_hop)
}

fn station(of: &NeighbourReport) -> Option<StationLook> {
    let NeighbourReport { signal_dbm, tx_bitrate_bps, tx_packets, tx_retries, tx_failed, .. } = *of;
    let station = of.station.clone()?;
    Some(StationLook { station, signal_dbm, tx_bitrate_bps, tx_packets, tx_retries, tx_failed })
}

fn channel(of: &AirtimeReport) -> ChannelLook {
    let AirtimeReport { frequency_mhz, active_ms, busy_ms, noise_dbm, .. } = *of;
    ChannelLook { frequency_mhz, active_ms, busy_ms, noise_dbm }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_before_the_beginning_has_a_time_less_than_zero_and_the_last_look_is_at_the_end() {
        let clock = Clock::start();
        let looking = Looking::start("lo".to_owned(), vec![Ipv4Addr::LOCALHOST], clock).expect("a thread");
        let looks = looking.end(Instant::ZERO + Duration::from_secs(3600));
        assert!(looks.len() <= 2 && looks.iter().all(|look| look.at_ms < 0), "{looks:?}");
        assert!(looks.iter().all(|look| look.hops.len() == 1 && look.stations.is_empty()), "{looks:?}");
    }

    #[test]
    fn a_neighbour_without_a_station_is_no_link_of_a_radio() {
        assert_eq!(station(&NeighbourReport::default()), None);
        let heard = NeighbourReport {
            station: Some("02:00:00:00:00:01".to_owned()),
            signal_dbm: Some(-61),
            ..NeighbourReport::default()
        };
        assert_eq!(station(&heard).and_then(|look| look.signal_dbm), Some(-61));
    }
}
