//! Polls a Wi-Fi interface for its mobiles: the strength of their signal, its age, and how often they did not
//! acknowledge.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use hopwise_core::{Instant, LinkEvent};
use hopwise_host::Clock;
use hopwise_host::netlink::index_of;
use hopwise_host::nl80211::{Nl80211, Station, StationAddress, StationNews, StationWatch};
use hopwise_mesh::{LinkSource, TimedEvent};

use super::Live;
use crate::failure::Failure;
use crate::proxy::config;

#[derive(Debug)]
pub(super) struct Stations {
    interface: String,
    number: u32,
    asking: Nl80211,
    /// Absent once the kernel no longer reports.
    watch: Option<StationWatch>,
    every: Duration,
    rules: Rules,
    mobiles: BTreeMap<StationAddress, Mobile>,
    next: Instant,
    ready: VecDeque<TimedEvent>,
}

/// The rules by which a mobile counts as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rules {
    /// An older signal is ignored.
    stale: Duration,
    /// No frame was received for so long.
    silence: Duration,
    /// The number of frames given up in a row, while none was received.
    failures: u32,
}

/// Invariant 1: between two `Gone` of one mobile there is an `Up`.
#[derive(Debug)]
struct Mobile {
    peer: IpAddr,
    heard_at: Option<Instant>,
    /// The number of frames given up at the last received frame.
    failed: u32,
    is_gone: bool,
}

impl Stations {
    pub(super) fn open(stations: &config::Stations, clock: Clock) -> Result<Stations, Failure> {
        let interface = stations.interface.clone();
        let failed = |error: &dyn std::fmt::Display| {
            Failure::failed("ask for stations", format_args!("{interface}: {error}"))
        };
        let number = index_of(&interface).map_err(|error| failed(&error))?;
        let asking = Nl80211::open().map_err(|error| failed(&error))?;
        // Polling alone is enough without reports.
        let watch = StationWatch::open(number).ok();
        let rules =
            Rules { stale: stations.stale.0, silence: stations.silence.0, failures: stations.failures };
        let mobiles = stations.mobiles.iter().map(|mobile| (mobile.station.0, Mobile::new(mobile.address)));
        Ok(Stations {
            number,
            asking,
            watch,
            every: stations.every.0,
            rules,
            mobiles: mobiles.collect(),
            next: clock.now(),
            ready: VecDeque::new(),
            interface,
        })
    }

    fn ask(&mut self, now: Instant) {
        let stations = match self.asking.stations(self.number) {
            Ok(stations) => stations,
            Err(error) => {
                return tracing::warn!(%error, interface = self.interface, "its stations are not told");
            }
        };
        for (address, mobile) in &mut self.mobiles {
            let station = stations.iter().find(|station| station.address == *address);
            mobile.see(now, station, &self.rules, &mut self.ready);
        }
    }

    fn hear(&mut self, now: Instant) {
        let Stations { watch, mobiles, ready, .. } = self;
        let Some(watching) = watch else { return };
        let read = watching.read(&mut |news| {
            let (StationNews::Came(address)
            | StationNews::Left(address)
            | StationNews::Unheard { address, .. }) = news;
            if let Some(mobile) = mobiles.get_mut(&address) {
                mobile.turn(now, !matches!(news, StationNews::Came(_)), ready);
            }
        });
        if let Err(error) = read {
            tracing::error!(%error, interface = self.interface, "its stations are asked for alone");
            self.watch = None;
        }
    }
}

impl Mobile {
    fn new(peer: IpAddr) -> Mobile {
        Mobile { peer, heard_at: None, failed: 0, is_gone: false }
    }

    fn turn(&mut self, at: Instant, is_gone: bool, ready: &mut VecDeque<TimedEvent>) {
        if std::mem::replace(&mut self.is_gone, is_gone) != is_gone {
            let peer = self.peer;
            let event = if is_gone { LinkEvent::Gone { peer } } else { LinkEvent::Up { peer } };
            ready.push_back(TimedEvent { at, event });
        }
    }

    /// Processes a poll's answer. A mobile that was never received is not lost.
    fn see(
        &mut self,
        now: Instant,
        station: Option<&Station>,
        rules: &Rules,
        ready: &mut VecDeque<TimedEvent>,
    ) {
        let Some(station) = station else {
            if self.heard_at.is_some() {
                self.turn(now, true, ready);
            }
            return;
        };
        let age = station.inactive.unwrap_or(Duration::ZERO);
        let (heard_at, failed) = (now - age, station.tx_failed.unwrap_or(0));
        // Ages are whole milliseconds: the same frame may look that much newer.
        let is_new = self.heard_at.is_none_or(|before| heard_at.since(before) > Duration::from_millis(2));
        if is_new && age < rules.silence {
            (self.heard_at, self.failed) = (Some(heard_at), failed);
            self.turn(heard_at, false, ready);
            if let Some(dbm) = station.signal_dbm.filter(|_| age <= rules.stale) {
                ready.push_back(TimedEvent {
                    at: heard_at,
                    event: LinkEvent::Signal { from: self.peer, dbm },
                });
            }
            return;
        }
        let is_given_up = failed.wrapping_sub(self.failed) >= rules.failures;
        if self.heard_at.is_some() && (is_given_up || age >= rules.silence) {
            self.turn(now, true, ready);
        }
    }
}

impl LinkSource for Stations {
    fn poll_news(&mut self, now: Instant) -> Option<TimedEvent> {
        self.hear(now);
        if self.next <= now {
            self.next = now + self.every;
            self.ask(now);
        }
        self.ready.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.next)
    }
}

impl Live for Stations {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(AsFd::as_fd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules =
        Rules { stale: Duration::from_millis(500), silence: Duration::from_secs(2), failures: 10 };

    fn station(age_ms: u64, dbm: i8, failed: u32) -> Station {
        Station {
            address: StationAddress([2, 0, 0, 0, 1, 0]),
            inactive: Some(Duration::from_millis(age_ms)),
            signal_dbm: Some(dbm),
            signal_average_dbm: None,
            tx_packets: None,
            tx_retries: None,
            tx_failed: Some(failed),
            rx_packets: None,
        }
    }

    /// The events that a poll at that time gives: their time and kind.
    fn polled(mobile: &mut Mobile, at_ms: u64, station: Option<Station>) -> Vec<(u64, String)> {
        let mut ready = VecDeque::new();
        mobile.see(Instant::from_millis(at_ms), station.as_ref(), &RULES, &mut ready);
        let shown = |timed: TimedEvent| {
            let what = match timed.event {
                LinkEvent::Signal { dbm, .. } => dbm.to_string(),
                LinkEvent::Gone { .. } => "gone".to_owned(),
                LinkEvent::Up { .. } => "up".to_owned(),
                other => format!("{other:?}"),
            };
            (timed.at.as_millis(), what)
        };
        ready.into_iter().map(shown).collect()
    }

    fn mobile() -> Mobile {
        Mobile::new(IpAddr::from([10, 9, 0, 2]))
    }

    #[test]
    fn a_signal_is_told_once_a_frame_with_the_time_at_which_the_frame_was_heard() {
        let mut mobile = mobile();
        let said = |text: &str, at| vec![(at, text.to_owned())];
        assert_eq!(polled(&mut mobile, 1_000, Some(station(30, -60, 0))), said("-60", 970));
        assert_eq!(polled(&mut mobile, 1_100, Some(station(130, -60, 0))), [], "the same frame");
        assert_eq!(polled(&mut mobile, 1_200, Some(station(10, -64, 0))), said("-64", 1_190));
        // A stale signal is a sign of life, but gives no strength.
        assert_eq!(polled(&mut mobile, 3_000, Some(station(900, -64, 0))), []);
    }

    #[test]
    fn a_mobile_that_is_not_heard_is_gone_once_and_up_with_the_next_frame() {
        let mut mobile = mobile();
        assert_eq!(polled(&mut mobile, 1_000, None), [], "one that was never there is not lost");
        polled(&mut mobile, 1_000, Some(station(0, -60, 0)));
        assert_eq!(polled(&mut mobile, 2_900, Some(station(1_900, -60, 0))), []);
        let gone = vec![(3_000, "gone".to_owned())];
        assert_eq!(polled(&mut mobile, 3_000, Some(station(2_000, -60, 0))), gone);
        assert_eq!(polled(&mut mobile, 3_100, None), []);
        let up = vec![(3_995, "up".to_owned()), (3_995, "-70".to_owned())];
        assert_eq!(polled(&mut mobile, 4_000, Some(station(5, -70, 0))), up);
        assert_eq!(polled(&mut mobile, 4_100, None), [(4_100, "gone".to_owned())]);
    }

    #[test]
    fn frames_given_up_while_nothing_is_heard_are_a_loss_and_others_are_not() {
        let mut mobile = mobile();
        polled(&mut mobile, 1_000, Some(station(0, -60, 100)));
        assert_eq!(polled(&mut mobile, 1_100, Some(station(100, -60, 109))), []);
        assert_eq!(polled(&mut mobile, 1_200, Some(station(200, -60, 110))), [(1_200, "gone".to_owned())]);
        polled(&mut mobile, 1_300, Some(station(0, -60, 125)));
        assert_eq!(
            polled(&mut mobile, 1_400, Some(station(100, -60, 130))),
            [],
            "counted from the last frame"
        );
    }
}
