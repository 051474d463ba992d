//! The stations of a Wi-Fi interface: what the kernel reports of them (nl80211), as far as it is believed.

pub(crate) mod airtime_limits;
mod kernel;
mod offer;
pub mod radio;
mod sanity;
mod source;
mod station;
mod survey;

use std::io;

use hopwise_core::StationAddress;

use crate::netlink::ask::ask;
use crate::netlink::message::attribute;
use kernel::GET_STATION;
use station::{address, attributes_of};

pub(crate) use kernel::family_named;
pub use kernel::{Nl80211, StationNews, StationWatch};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use kernel::{family, news};
pub use offer::StationOffer;
pub use sanity::SanityCheck;
pub use source::{Board, EVERY, Polled, StationReport, StationSource};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use station::station;
pub use survey::ChannelUse;

/// The state of a peering, in NL80211_ATTR_STA_INFO, and the one in which frames go to the peer (linux/nl80211.h).
const PLINK_STATE: u16 = 6;
const ESTABLISHED: u8 = 4;

impl Nl80211 {
    /// The stations that exchange data with this interface of 802.11s, by its number.
    pub fn peers(&mut self, interface: u32) -> io::Result<Vec<StationAddress>> {
        let mut peers = Vec::new();
        ask(&self.socket, self.question(GET_STATION, interface), |heard| peers.extend(peer(heard.body)))?;
        Ok(peers)
    }
}

/// The peer in one message of a dump of stations.
fn peer(body: &[u8]) -> Option<StationAddress> {
    let (all, info) = attributes_of(body)?;
    (attribute(info, PLINK_STATE)? == [ESTABLISHED]).then(|| address(all)).flatten()
}

/// Counts on where a driver's number of 16 or 32 bits wraps, or where the station came anew.
#[derive(Clone, Copy, Debug)]
struct Counter {
    raw: u64,
    total: u64,
    is_lie: bool,
}

impl Counter {
    const fn new(raw: u64) -> Counter {
        Counter { raw, total: raw, is_lie: false }
    }

    /// Returns whether the number fell, and did not wrap.
    fn falls(&self, raw: u64) -> bool {
        raw < self.raw && wrapped(self.raw, raw).is_none()
    }

    /// Takes the next number, which may be larger by `most`; fails once the counter is found to lie.
    fn follow(&mut self, raw: u64, most: u64, is_anew: bool) -> Result<(), SanityCheck> {
        let step = match raw.checked_sub(self.raw) {
            Some(step) => Ok(step),
            None => match wrapped(self.raw, raw) {
                Some(step) => Ok(step),
                None if is_anew => Ok(raw),
                None => Err(SanityCheck::CounterFalls),
            },
        };
        self.raw = raw;
        if self.is_lie {
            return Ok(());
        }
        let step = step.and_then(|step| if step > most { Err(SanityCheck::CounterLeaps) } else { Ok(step) });
        match step {
            Ok(step) => self.total = self.total.saturating_add(step),
            Err(rule) => {
                self.is_lie = true;
                return Err(rule);
            }
        }
        Ok(())
    }

    fn distrust(&mut self) {
        self.is_lie = true;
    }

    /// The count so far, unless it lies.
    fn total(&self) -> Option<u64> {
        (!self.is_lie).then_some(self.total)
    }
}

/// The step of a counter that has passed its end: it was in the last sixteenth, and is in the first one.
fn wrapped(before: u64, now: u64) -> Option<u64> {
    [16, 32].into_iter().find_map(|bits| {
        let end = 1_u64 << bits;
        let part = end >> 4;
        (before < end && before >= end - part && now < part).then(|| end - before + now)
    })
}

#[cfg(test)]
mod tests {
    use super::station::{ADDRESS, NEW_STATION, STATION_INFO, nested};
    use super::*;
    use crate::netlink::message::{HEADER, NetlinkMessage};

    fn told(command: u8, state: Option<u8>) -> Vec<u8> {
        let info = nested(|info| match state {
            Some(state) => info.attribute(PLINK_STATE, &[state]),
            None => info,
        });
        let message = NetlinkMessage::new(0, 0, 0).fixed(&[command, 0, 0, 0]);
        message.attribute(ADDRESS, &[2; 6]).attribute(STATION_INFO, &info).finish().split_off(HEADER)
    }

    #[test]
    fn a_station_is_a_peer_once_its_peering_is_established() {
        assert_eq!(peer(&told(NEW_STATION, Some(ESTABLISHED))), Some(StationAddress([2; 6])));
        for (command, state) in [(NEW_STATION, Some(3)), (NEW_STATION, None), (0, Some(ESTABLISHED))] {
            assert_eq!(peer(&told(command, state)), None);
        }
        assert_eq!(peer(&[]), None);
    }

    const MOST: u64 = 1_000_000;

    fn counted(numbers: &[u64]) -> (Option<u64>, Option<SanityCheck>) {
        let mut counter = Counter::new(numbers[0]);
        let broken = numbers[1..].iter().find_map(|raw| counter.follow(*raw, MOST, false).err());
        (counter.total(), broken)
    }

    #[test]
    fn a_counter_goes_on_behind_the_end_of_16_and_of_32_bits() {
        assert_eq!(counted(&[65_530, 65_535, 4]), (Some(65_540), None));
        let end = 1 << 32;
        assert_eq!(counted(&[end - 6, end - 1, 4]), (Some(end + 4), None));
    }

    #[test]
    fn a_counter_that_falls_or_leaps_is_not_believed_again() {
        assert_eq!(counted(&[500, 400, 600]), (None, Some(SanityCheck::CounterFalls)));
        // One less than nothing, as drivers count tries without the first.
        assert_eq!(counted(&[3, u64::from(u32::MAX), 5]), (None, Some(SanityCheck::CounterLeaps)));
    }

    #[test]
    fn a_station_that_came_anew_counts_on() {
        let mut counter = Counter::new(500);
        assert!(counter.falls(20) && counter.follow(20, MOST, true).is_ok());
        assert_eq!(counter.total(), Some(520));
    }
}
