//! Sources of a proxy's link news while it runs: carriers, stations and the schedule, on one thread.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use hopwise_core::{Instant, LinkEvent};
use hopwise_host::netlink::CarrierWatch;
use hopwise_host::{Clock, wait_for};
use hopwise_mesh::{LinkSource, Schedule, TimedEvent};
use rustix::event::{PollFd, PollFlags};

use super::config::{Carrier, Fade, ProxySettings};
use super::control::MobileReports;
use hopwise_daemon::failure::Failure;

mod stations;

use stations::MobileStations;

/// A source whose descriptor shows that it may have news.
pub(super) trait LiveSource: LinkSource {
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}

/// The sources, and what a status tells of stations.
type SourcesAndReports = (Vec<Box<dyn LiveSource>>, Vec<MobileReports>);

/// The longest wait when nothing is due.
const LONGEST: Duration = Duration::from_secs(1);

pub(super) fn open(config: &ProxySettings, clock: Clock) -> Result<SourcesAndReports, Failure> {
    let (mut sources, mut reports): SourcesAndReports = Default::default();
    for carrier in &config.carriers {
        sources.push(Box::new(Carriers::open(carrier)?));
    }
    for stations in &config.stations {
        let stations = MobileStations::open(stations, clock)?;
        reports.push(stations.reports());
        sources.push(Box::new(stations));
    }
    if !config.schedule.is_empty() {
        let began = clock.now();
        let steps = config.schedule.iter().flat_map(|fade| steps(began, fade));
        sources.push(Box::new(Schedule::new(steps)));
    }
    Ok((sources, reports))
}

/// Hands on all news of the sources, until the receiver is gone.
pub(super) fn listen(mut sources: Vec<Box<dyn LiveSource>>, clock: Clock, tell: impl Fn(TimedEvent) -> bool) {
    loop {
        let now = clock.now();
        for source in &mut sources {
            while let Some(news) = source.poll_news(now) {
                tracing::debug!(?news, "a link");
                if !tell(news) {
                    return;
                }
            }
        }
        let due = sources.iter().filter_map(|source| source.poll_timeout()).min();
        let most = due.map_or(LONGEST, |due| due.since(clock.now())).min(LONGEST);
        let descriptors = sources.iter().filter_map(|source| source.descriptor());
        let mut ready: Vec<_> = descriptors.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        // An interrupted wait is merely a short one.
        let _ = wait_for(&mut ready, most);
    }
}

/// The events of a scheduled fade.
fn steps(began: Instant, fade: &Fade) -> [TimedEvent; 3] {
    let (begins, ends, peer) = (fade.begins.0, fade.ends.0, fade.mobile);
    let outage = ends.saturating_sub(begins);
    let within = begins.min(fade.lead.0);
    let down = LinkEvent::GoingDown { peer, rtt: Duration::ZERO, outage, within };
    [
        TimedEvent { at: began + (begins - within), event: down },
        TimedEvent { at: began + begins, event: LinkEvent::Gone { peer } },
        TimedEvent { at: began + ends, event: LinkEvent::Up { peer } },
    ]
}

impl LiveSource for Schedule {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// The carrier of an interface, and the mobiles behind it.
#[derive(Debug)]
struct Carriers {
    interface: String,
    /// Absent once the kernel no longer reports.
    watch: Option<CarrierWatch>,
    mobiles: Vec<IpAddr>,
    ready: VecDeque<TimedEvent>,
}

impl Carriers {
    fn open(carrier: &Carrier) -> Result<Carriers, Failure> {
        let Carrier { interface, mobiles } = carrier.clone();
        let watch = CarrierWatch::open(&interface)
            .map_err(|error| Failure::failed("watch a carrier", format_args!("{interface}: {error}")))?;
        Ok(Carriers { interface, watch: Some(watch), mobiles, ready: VecDeque::new() })
    }
}

impl LinkSource for Carriers {
    fn poll_news(&mut self, at: Instant) -> Option<TimedEvent> {
        while self.ready.is_empty() {
            match self.watch.as_mut()?.wait(0) {
                Ok(Some(is_up)) => {
                    tracing::info!(interface = self.interface, is_up, "carrier");
                    let event = |peer| if is_up { LinkEvent::Up { peer } } else { LinkEvent::Gone { peer } };
                    self.ready.extend(self.mobiles.iter().map(|peer| TimedEvent { at, event: event(*peer) }));
                }
                Ok(None) => return None,
                Err(error) => {
                    tracing::error!(%error, interface = self.interface, "its carrier is not heard of any more");
                    self.watch = None;
                }
            }
        }
        self.ready.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

impl LiveSource for Carriers {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(AsFd::as_fd)
    }
}
