//! Facts about the link to one station of 802.11, the same from a kernel's nl80211 and from the simulated radio.

use std::error::Error;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::Instant;

/// A station's Ethernet address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StationAddress(pub [u8; 6]);

impl fmt::Display for StationAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for StationAddress {
    type Err = NoStationAddress;

    fn from_str(text: &str) -> Result<StationAddress, NoStationAddress> {
        let mut address = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut address {
            let part = parts.next().filter(|part| part.len() == 2).ok_or(NoStationAddress)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| NoStationAddress)?;
        }
        if parts.next().is_some() { Err(NoStationAddress) } else { Ok(StationAddress(address)) }
    }
}

/// A text is no [`StationAddress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoStationAddress;

impl fmt::Display for NoStationAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no Ethernet address such as 02:00:00:00:01:00")
    }
}

impl Error for NoStationAddress {}

/// This station's knowledge of its link to another one.
///
/// The names are those of nl80211. A fact that its source does not know, or that is not believed, is absent: it is
/// never zero. Counters and durations count since the station came, and never fall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkFacts {
    /// The other station.
    pub station: StationAddress,
    /// The time of the report.
    pub at: Instant,
    /// The time since its last frame to us, or its last acknowledgement, by `at`.
    pub inactive: Option<Duration>,
    /// The power of its last frame.
    pub signal_dbm: Option<i8>,
    /// The power of its frames, the later ones counting for more.
    pub signal_average_dbm: Option<i8>,
    /// Packets to it, failed ones included.
    pub tx_packets: Option<u64>,
    /// Transmissions of those packets after each one's first.
    pub tx_retries: Option<u64>,
    /// Packets to it that were given up.
    pub tx_failed: Option<u64>,
    /// Packets from it.
    pub rx_packets: Option<u64>,
    /// Bytes of its frames. A kernel counts beacons here that are no packets.
    pub rx_bytes: Option<u64>,
    /// The bit rate of the last packet to it.
    pub tx_bitrate_bps: Option<u64>,
    /// The bit rate of the last packet from it.
    pub rx_bitrate_bps: Option<u64>,
    /// The rate control's estimate of what the link carries.
    pub expected_throughput_bps: Option<u64>,
    /// The airtime of frames to it.
    pub tx_duration: Option<Duration>,
    /// The airtime of frames from it.
    pub rx_duration: Option<Duration>,
}

impl LinkFacts {
    /// Facts about a station of which nothing else is known.
    pub fn new(station: StationAddress, at: Instant) -> LinkFacts {
        LinkFacts { station, at, ..LinkFacts::default() }
    }

    /// The change from an earlier report to this one. None if they are of two stations, or if no time lies between
    /// them. A count that either lacks, or that began anew, is absent.
    pub fn since(&self, earlier: &LinkFacts) -> Option<LinkChange> {
        if self.station != earlier.station || self.at <= earlier.at {
            return None;
        }
        let more = |now: Option<u64>, then: Option<u64>| now?.checked_sub(then?);
        let longer = |now: Option<Duration>, then: Option<Duration>| now?.checked_sub(then?);
        Some(LinkChange {
            over: self.at.since(earlier.at),
            tx_packets: more(self.tx_packets, earlier.tx_packets),
            tx_retries: more(self.tx_retries, earlier.tx_retries),
            tx_failed: more(self.tx_failed, earlier.tx_failed),
            tx_duration: longer(self.tx_duration, earlier.tx_duration),
            rx_duration: longer(self.rx_duration, earlier.rx_duration),
        })
    }

    /// The time of its last frame or acknowledgement.
    pub fn heard_at(&self) -> Option<Instant> {
        self.inactive.map(|inactive| self.at - inactive)
    }
}

/// The change of a link between two reports, in the words of [`LinkFacts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkChange {
    /// The time between the reports.
    pub over: Duration,
    /// Packets to the station, failed ones included.
    pub tx_packets: Option<u64>,
    /// Transmissions of those packets after each one's first.
    pub tx_retries: Option<u64>,
    /// Packets that were given up.
    pub tx_failed: Option<u64>,
    /// The airtime of frames to it.
    pub tx_duration: Option<Duration>,
    /// The airtime of frames from it.
    pub rx_duration: Option<Duration>,
}

impl LinkChange {
    /// The share of the time in which one of the two sent to the other, in thousandths. One way alone is known for
    /// drivers that count no other. A frame counts when it ends, also if most of it lies before the time: the share is
    /// all of it at most.
    pub fn airtime_permille(&self) -> Option<u64> {
        let both = self.tx_duration.into_iter().chain(self.rx_duration).reduce(|one, other| one + other)?;
        u64::try_from((both.as_nanos() * 1_000).checked_div(self.over.as_nanos())?.min(1_000)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_between_two_reports_is_known_where_both_know_it() {
        let ms = Duration::from_millis;
        let station = StationAddress([2; 6]);
        let then = LinkFacts {
            tx_packets: Some(100),
            tx_retries: Some(10),
            tx_failed: Some(3),
            tx_duration: Some(ms(50)),
            ..LinkFacts::new(station, Instant::from_millis(1_000))
        };
        let now = LinkFacts {
            at: Instant::from_millis(1_200),
            tx_packets: Some(140),
            tx_retries: Some(20),
            tx_failed: Some(4),
            tx_duration: Some(ms(70)),
            rx_duration: Some(ms(9)),
            ..then
        };
        let change = now.since(&then).expect("of one station");
        assert_eq!((change.over, change.tx_packets, change.rx_duration), (ms(200), Some(40), None));
        assert_eq!((change.tx_failed, change.airtime_permille()), (Some(1), Some(100)));
        // A station that came anew counts from zero, and a driver that is not believed not at all.
        let anew = LinkFacts { tx_packets: Some(7), tx_failed: None, tx_duration: None, ..now };
        let change = anew.since(&then).expect("of one station");
        assert_eq!((change.tx_packets, change.tx_failed, change.airtime_permille()), (None, None, None));
        assert_eq!(now.since(&now), None, "no time has passed");
        assert_eq!(now.since(&LinkFacts { station: StationAddress([4; 6]), ..then }), None);
    }

    #[test]
    fn airtime_is_no_more_than_all_of_the_time() {
        let ms = Duration::from_millis;
        let change = |airtime| LinkChange { over: ms(50), tx_duration: airtime, ..LinkChange::default() };
        assert_eq!(change(Some(ms(20))).airtime_permille(), Some(400));
        assert_eq!(change(Some(ms(52))).airtime_permille(), Some(1_000), "a frame lay partly before");
        assert_eq!(change(None).airtime_permille(), None);
    }

    #[test]
    fn addresses_are_written_as_they_are_read() {
        let text = "02:00:00:00:01:00";
        assert_eq!(text.parse(), Ok(StationAddress([2, 0, 0, 0, 1, 0])));
        assert_eq!(StationAddress([2, 0, 0, 0, 1, 0]).to_string(), text);
        for bad in [
            "",
            "02:00:00:00:01",
            "02:00:00:00:01:00:00",
            "2:0:0:0:1:0",
            "02-00-00-00-01-00",
            "02:00:00:00:01:0g",
        ] {
            assert_eq!(bad.parse::<StationAddress>(), Err(NoStationAddress), "{bad}");
        }
    }

    #[test]
    fn a_frame_was_heard_before_the_report_of_it_and_one_of_unknown_age_at_no_known_time() {
        let facts = LinkFacts::new(StationAddress([2; 6]), Instant::from_millis(100));
        assert_eq!(facts.heard_at(), None);
        let known = LinkFacts { inactive: Some(Duration::from_millis(30)), ..facts };
        assert_eq!(known.heard_at(), Some(Instant::from_millis(70)));
    }
}
