//! The mobiles of a Wi-Fi interface: the strength of their signal, its age, and how often they did not acknowledge.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use hopwise_core::{Instant, LinkEvent, LinkFacts, StationAddress};
use hopwise_host::Clock;
use hopwise_host::nl80211::{StationNews, StationSource};
use hopwise_mesh::{LinkSource, TimedEvent};

use super::LiveSource;
use crate::proxy::config;
use crate::proxy::control::MobileReports;
use hopwise_daemon::failure::Failure;

#[derive(Debug)]
pub(super) struct MobileStations {
    source: StationSource,
    every: Duration,
    rules: Thresholds,
    mobiles: BTreeMap<StationAddress, Mobile>,
    next: Instant,
    ready: VecDeque<TimedEvent>,
}

/// Times and counts by which a mobile counts as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Thresholds {
    /// An older signal is ignored.
    stale: Duration,
    /// No frame was received for so long.
    silence: Duration,
    /// The number of frames given up in a row, while none was received.
    failures: u64,
}

/// Invariant 1: between two `Gone` of one mobile there is an `Up`.
#[derive(Debug)]
struct Mobile {
    peer: IpAddr,
    heard_at: Option<Instant>,
    /// The number of frames given up at the last received frame, if the driver is believed.
    failed: Option<u64>,
    signal: Option<i8>,
    is_gone: bool,
}

impl MobileStations {
    pub(super) fn open(stations: &config::Stations, clock: Clock) -> Result<MobileStations, Failure> {
        let interface = &stations.interface;
        let source = StationSource::open(interface)
            .map_err(|error| Failure::failed("ask for stations", format_args!("{interface}: {error}")))?;
        let rules = Thresholds {
            stale: stations.stale.0,
            silence: stations.silence.0,
            failures: stations.failures.into(),
        };
        let mobiles = stations.mobiles.iter().map(|mobile| (mobile.station.0, Mobile::new(mobile.address)));
        Ok(MobileStations {
            source,
            every: stations.every.0,
            rules,
            mobiles: mobiles.collect(),
            next: clock.now(),
            ready: VecDeque::new(),
        })
    }

    /// The interface's reports, and its mobiles by their stations.
    pub(super) fn reports(&self) -> MobileReports {
        let mobiles = self.mobiles.iter().map(|(station, mobile)| (*station, mobile.peer));
        MobileReports { board: self.source.board(), mobiles: mobiles.collect() }
    }

    fn hear(&mut self, now: Instant) {
        let MobileStations { source, mobiles, ready, .. } = self;
        source.poll(now, &mut |news| {
            let (StationNews::Came(address)
            | StationNews::Left(address)
            | StationNews::Unheard { address, .. }) = news;
            if let Some(mobile) = mobiles.get_mut(&address) {
                mobile.turn(now, !matches!(news, StationNews::Came(_)), ready);
            }
        });
    }

    fn look(&mut self, now: Instant) {
        let stations = self.source.facts();
        for (address, mobile) in &mut self.mobiles {
            let facts = stations.iter().find(|facts| facts.station == *address);
            mobile.see(now, facts, &self.rules, &mut self.ready);
        }
    }
}

impl Mobile {
    fn new(peer: IpAddr) -> Mobile {
        Mobile { peer, heard_at: None, failed: None, signal: None, is_gone: false }
    }

    fn turn(&mut self, at: Instant, is_gone: bool, ready: &mut VecDeque<TimedEvent>) {
        if std::mem::replace(&mut self.is_gone, is_gone) != is_gone {
            let peer = self.peer;
            let event = if is_gone { LinkEvent::Gone { peer } } else { LinkEvent::Up { peer } };
            ready.push_back(TimedEvent { at, event });
        }
    }

    /// Processes a report. A mobile that was never received is not lost.
    fn see(
        &mut self,
        now: Instant,
        facts: Option<&LinkFacts>,
        rules: &Thresholds,
        ready: &mut VecDeque<TimedEvent>,
    ) {
        let Some(facts) = facts else {
            if self.heard_at.is_some() {
                self.turn(now, true, ready);
            }
            return;
        };
        // A frame of unknown age shows itself by its signal alone.
        let has_changed = self.heard_at.is_none() || facts.signal_dbm != self.signal;
        let shown_at = has_changed.then_some(facts.at);
        let heard_at = facts.heard_at().or(shown_at).or(self.heard_at).unwrap_or(facts.at);
        let age = if facts.inactive.is_some() { now.since(heard_at) } else { Duration::ZERO };
        // Ages are whole milliseconds: a frame may look up to a millisecond newer in a later report.
        let is_new = self.heard_at.is_none_or(|before| heard_at.since(before) > Duration::from_millis(2));
        if is_new && age < rules.silence {
            (self.heard_at, self.failed) = (Some(heard_at), facts.tx_failed);
            self.signal = facts.signal_dbm;
            self.turn(heard_at, false, ready);
            if let Some(dbm) = facts.signal_dbm.filter(|_| age <= rules.stale) {
                ready.push_back(TimedEvent {
                    at: heard_at,
                    event: LinkEvent::Signal { from: self.peer, dbm },
                });
            }
            return;
        }
        let before = *self.failed.get_or_insert(facts.tx_failed.unwrap_or(0));
        let is_given_up =
            facts.tx_failed.is_some_and(|failed| failed.saturating_sub(before) >= rules.failures);
        if self.heard_at.is_some() && (is_given_up || age >= rules.silence) {
            self.turn(now, true, ready);
        }
    }
}

impl LinkSource for MobileStations {
    fn poll_news(&mut self, now: Instant) -> Option<TimedEvent> {
        self.hear(now);
        if self.next <= now {
            self.next = now + self.every;
            self.look(now);
        }
        self.ready.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.next.min(self.source.poll_timeout()))
    }
}

impl LiveSource for MobileStations {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.source.descriptor()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Thresholds =
        Thresholds { stale: Duration::from_millis(500), silence: Duration::from_secs(2), failures: 10 };

    fn station(age_ms: u64, dbm: i8, failed: u64) -> LinkFacts {
        LinkFacts {
            inactive: Some(Duration::from_millis(age_ms)),
            signal_dbm: Some(dbm),
            tx_failed: Some(failed),
            ..LinkFacts::new(StationAddress([2, 0, 0, 0, 1, 0]), Instant::ZERO)
        }
    }

    /// The events that a poll at that time gives: their time and kind.
    fn polled(mobile: &mut Mobile, at_ms: u64, station: Option<LinkFacts>) -> Vec<(u64, String)> {
        let (now, mut ready) = (Instant::from_millis(at_ms), VecDeque::new());
        let facts = station.map(|facts| LinkFacts { at: now, ..facts });
        mobile.see(now, facts.as_ref(), &RULES, &mut ready);
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

    #[test]
    fn what_is_not_believed_ends_no_link() {
        let mut mobile = mobile();
        let ageless = |dbm| Some(LinkFacts { inactive: None, tx_failed: None, ..station(0, dbm, 0) });
        let said = |text: &str, at| vec![(at, text.to_owned())];
        assert_eq!(polled(&mut mobile, 1_000, ageless(-60)), said("-60", 1_000));
        assert_eq!(polled(&mut mobile, 9_000, ageless(-60)), [], "it may be the same frame");
        assert_eq!(polled(&mut mobile, 9_100, ageless(-61)), said("-61", 9_100));
        // Failures from before the driver was believed do not count.
        let fails = |failed| Some(LinkFacts { inactive: None, ..station(0, -61, failed) });
        assert_eq!(polled(&mut mobile, 9_200, fails(50)), []);
        assert_eq!(polled(&mut mobile, 9_300, fails(60)), said("gone", 9_300));
    }
}
