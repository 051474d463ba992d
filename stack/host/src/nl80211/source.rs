//! The one source of facts about an interface's stations: 20 reports a second, and the kernel's notifications.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use hopwise_core::{Instant, LinkFacts, StationAddress};
use parking_lot::Mutex;

use super::kernel::{Nl80211, StationNews, StationWatch};
use super::offer::OfferReader;
use super::sanity::SanityCheck;
use super::sanity::{ReporterTrust, Sanity};
use crate::netlink;

/// The time between two reports.
pub const EVERY: Duration = Duration::from_millis(50);

/// An interface whose stations the kernel, or the program that makes its radio, reports.
#[derive(Debug)]
pub struct StationSource {
    interface: String,
    reporter: Reporter,
    sanity: Sanity,
    next: Instant,
    has_failed: bool,
    facts: Vec<LinkFacts>,
    board: Board,
}

#[derive(Debug)]
enum Reporter {
    Kernel {
        asking: Nl80211,
        number: u32,
        /// Absent once the kernel no longer notifies.
        watch: Option<StationWatch>,
    },
    Offer(OfferReader),
}

/// The last report of an interface, for readers on other threads.
#[derive(Clone, Debug, Default)]
pub struct Board(Arc<Mutex<StationReport>>);

/// The facts of an interface's stations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StationReport {
    /// The name of the interface.
    pub interface: String,
    /// The time of the last report.
    pub at: Instant,
    /// The facts of each station that are believed.
    pub facts: Vec<LinkFacts>,
    /// The rules that the driver broke, each with the first station that showed it.
    pub broken: Vec<(SanityCheck, StationAddress)>,
}

impl Board {
    /// A copy of the last report.
    pub fn read(&self) -> StationReport {
        self.0.lock().clone()
    }
}

/// The result of [`StationSource::poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polled {
    /// There is a new report.
    Fresh,
    /// The report comes from an earlier call.
    Same,
}

impl StationSource {
    /// Fails if the interface has no stations: it is no Wi-Fi, and no program offers them.
    pub fn open(interface: &str) -> io::Result<StationSource> {
        let (reporter, trust) = match Reporter::kernel(interface) {
            Ok(kernel) => (kernel, ReporterTrust::Judged),
            Err(error) => match OfferReader::open(interface) {
                Ok(offer) => (Reporter::Offer(offer), ReporterTrust::Known),
                Err(_) => return Err(error),
            },
        };
        let board = Board::default();
        interface.clone_into(&mut board.0.lock().interface);
        Ok(StationSource {
            interface: interface.to_owned(),
            reporter,
            sanity: Sanity::new(trust),
            next: Instant::ZERO,
            has_failed: false,
            facts: Vec::new(),
            board,
        })
    }

    /// The last report, for other threads.
    pub fn board(&self) -> Board {
        self.board.clone()
    }

    /// Hands on the notifications so far, and asks for a report if one is due. It does not wait.
    pub fn poll(&mut self, now: Instant, news: &mut dyn FnMut(StationNews)) -> Polled {
        self.hear(news);
        if self.next > now {
            return Polled::Same;
        }
        self.next = now + EVERY;
        match self.reporter.report(now) {
            Ok(Some(report)) => self.take(now, &report),
            Ok(None) => return Polled::Same,
            Err(error) => {
                if !std::mem::replace(&mut self.has_failed, true) {
                    tracing::warn!(%error, interface = self.interface, "its stations are not told");
                }
                return Polled::Same;
            }
        }
        Polled::Fresh
    }

    fn take(&mut self, now: Instant, report: &[LinkFacts]) {
        self.has_failed = false;
        let interface = &self.interface;
        self.facts = self.sanity.judge(report, |rule, station| {
            let (rule, drops) = (rule.name(), rule.drops());
            tracing::warn!(interface, rule, drops, %station, "a driver's report is not believed");
        });
        let mut board = self.board.0.lock();
        (board.at, board.facts) = (now, self.facts.clone());
        board.broken = self.sanity.broken().collect();
    }

    fn hear(&mut self, news: &mut dyn FnMut(StationNews)) {
        let Reporter::Kernel { watch, .. } = &mut self.reporter else { return };
        let Some(watching) = watch else { return };
        let sanity = &mut self.sanity;
        let read = watching.read(&mut |heard| {
            if let StationNews::Came(station) | StationNews::Left(station) = heard {
                sanity.forget(station);
            }
            news(heard);
        });
        if let Err(error) = read {
            tracing::error!(%error, interface = self.interface, "its stations are asked for alone");
            *watch = None;
        }
    }

    /// The stations of the last report.
    pub fn facts(&self) -> &[LinkFacts] {
        &self.facts
    }

    /// The time of the next report.
    pub fn poll_timeout(&self) -> Instant {
        self.next
    }

    /// A descriptor that shows notifications.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.reporter {
            Reporter::Kernel { watch, .. } => watch.as_ref().map(AsFd::as_fd),
            Reporter::Offer(_) => None,
        }
    }
}

impl Reporter {
    fn kernel(interface: &str) -> io::Result<Reporter> {
        let number = netlink::index_of(interface).map_err(io::Error::other)?;
        let mut asking = Nl80211::open()?;
        asking.stations(number, Instant::ZERO)?;
        // Reports alone are enough without notifications.
        Ok(Reporter::Kernel { asking, number, watch: StationWatch::open(number).ok() })
    }

    fn report(&mut self, at: Instant) -> io::Result<Option<Vec<LinkFacts>>> {
        match self {
            Reporter::Kernel { asking, number, .. } => asking.stations(*number, at).map(Some),
            Reporter::Offer(offer) => offer.read(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::offer::StationOffer;
    use super::*;

    #[test]
    fn a_report_is_asked_for_twenty_times_a_second_and_stands_on_the_board() {
        let device = format!("source{}", std::process::id());
        let mut offer = StationOffer::open(&device).expect("the name is free");
        let Ok(mut source) = StationSource::open(&device) else {
            return println!("skipped: a_report_is_asked_for_twenty_times: only root is believed");
        };
        let station = LinkFacts {
            tx_packets: Some(5),
            ..LinkFacts::new(StationAddress([2, 0, 0, 0, 0, 1]), Instant::ZERO)
        };
        let mut fresh = 0;
        for ms in 0..1_000 {
            offer.tell(|| vec![station]);
            let polled = source.poll(Instant::from_millis(ms), &mut |_| {});
            fresh += usize::from(polled == Polled::Fresh);
        }
        assert_eq!(fresh, 20);
        let report = source.board().read();
        let at = Instant::from_millis(950);
        assert_eq!((report.interface, report.at), (device, at));
        assert_eq!(report.facts, [LinkFacts { at, ..station }]);
        assert_eq!(source.facts(), report.facts);
    }

    #[test]
    fn an_interface_without_stations_is_refused() {
        assert!(StationSource::open("lo").is_err());
        assert!(StationSource::open("no-such-device").is_err());
    }
}
