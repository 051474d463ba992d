//! One station in a message of nl80211, read and written.

use std::time::Duration;

use hopwise_core::{Instant, LinkFacts, StationAddress};

use crate::netlink::message::{GENERIC_HEADER, NetlinkMessage, attribute, word};

/// The command of a station, and its attributes (linux/nl80211.h).
pub(super) const NEW_STATION: u8 = 19;
pub(super) const ADDRESS: u16 = 6;
pub(super) const STATION_INFO: u16 = 21;
/// The kinds of NL80211_ATTR_STA_INFO (linux/nl80211.h).
const INACTIVE: u16 = 1;
const RX_BYTES: u16 = 2;
const SIGNAL: u16 = 7;
const TX_BITRATE: u16 = 8;
const RX_BITRATE: u16 = 14;
const RX_PACKETS: u16 = 9;
const TX_PACKETS: u16 = 10;
const TX_RETRIES: u16 = 11;
const TX_FAILED: u16 = 12;
const SIGNAL_AVERAGE: u16 = 13;
const RX_BYTES_64: u16 = 23;
const EXPECTED_THROUGHPUT: u16 = 27;
const RX_DURATION: u16 = 32;
const TX_DURATION: u16 = 39;
/// Within a bit rate, in units of 100 kbit/s: 16 bits, and 32 for faster ones.
const BITRATE: u16 = 1;
const BITRATE_32: u16 = 5;
const BITRATE_UNIT: u64 = 100_000;

pub(super) fn address(attributes: &[u8]) -> Option<StationAddress> {
    attribute(attributes, ADDRESS)?.try_into().ok().map(StationAddress)
}

/// The attributes of a station in one message of a dump, and the nested ones of NL80211_ATTR_STA_INFO.
pub(super) fn attributes_of(body: &[u8]) -> Option<(&[u8], &[u8])> {
    if *body.first()? != NEW_STATION {
        return None;
    }
    let all = body.get(GENERIC_HEADER..)?;
    Some((all, attribute(all, STATION_INFO)?))
}

/// The station in one message of a dump that came at that time, as the driver reports it.
pub(crate) fn station(body: &[u8], at: Instant) -> Option<LinkFacts> {
    let (all, info) = attributes_of(body)?;
    let count = |kind| word(attribute(info, kind)?, 0).map(u64::from);
    let long = |kind| attribute(info, kind)?.try_into().ok().map(u64::from_ne_bytes);
    let dbm = |kind| attribute(info, kind)?.first().map(|byte| i8::from_ne_bytes([*byte]));
    Some(LinkFacts {
        inactive: count(INACTIVE).map(Duration::from_millis),
        signal_dbm: dbm(SIGNAL),
        signal_average_dbm: dbm(SIGNAL_AVERAGE),
        tx_packets: count(TX_PACKETS),
        tx_retries: count(TX_RETRIES),
        tx_failed: count(TX_FAILED),
        rx_packets: count(RX_PACKETS),
        rx_bytes: long(RX_BYTES_64).or_else(|| count(RX_BYTES)),
        tx_bitrate_bps: attribute(info, TX_BITRATE).and_then(bitrate),
        rx_bitrate_bps: attribute(info, RX_BITRATE).and_then(bitrate),
        expected_throughput_bps: count(EXPECTED_THROUGHPUT).map(|kbps| kbps * 1_000),
        tx_duration: long(TX_DURATION).map(Duration::from_micros),
        rx_duration: long(RX_DURATION).map(Duration::from_micros),
        ..LinkFacts::new(address(all)?, at)
    })
}

fn bitrate(of: &[u8]) -> Option<u64> {
    let short = || attribute(of, BITRATE)?.try_into().ok().map(u16::from_ne_bytes).map(u64::from);
    let units = attribute(of, BITRATE_32).and_then(|bytes| word(bytes, 0)).map(u64::from);
    units.or_else(short).map(|units| units * BITRATE_UNIT)
}

/// The message that reads as these facts.
pub(super) fn message(facts: &LinkFacts) -> NetlinkMessage {
    let info = nested(|mut info| {
        let ms = facts.inactive.map(|inactive| u64::try_from(inactive.as_millis()).unwrap_or(u64::MAX));
        let kbps = facts.expected_throughput_bps.map(|bps| bps / 1_000);
        for (kind, count) in [
            (INACTIVE, ms),
            (TX_PACKETS, facts.tx_packets),
            (TX_RETRIES, facts.tx_retries),
            (TX_FAILED, facts.tx_failed),
            (RX_PACKETS, facts.rx_packets),
            (EXPECTED_THROUGHPUT, kbps),
        ] {
            info = with(info, kind, count.map(|count| low(count).to_ne_bytes()));
        }
        for (kind, dbm) in [(SIGNAL, facts.signal_dbm), (SIGNAL_AVERAGE, facts.signal_average_dbm)] {
            info = with(info, kind, dbm.map(i8::to_ne_bytes));
        }
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        for (kind, long) in [
            (RX_BYTES_64, facts.rx_bytes),
            (TX_DURATION, facts.tx_duration.map(micros)),
            (RX_DURATION, facts.rx_duration.map(micros)),
        ] {
            info = with(info, kind, long.map(u64::to_ne_bytes));
        }
        for (kind, bps) in [(TX_BITRATE, facts.tx_bitrate_bps), (RX_BITRATE, facts.rx_bitrate_bps)] {
            if let Some(bps) = bps {
                let units = low(bps / BITRATE_UNIT).to_ne_bytes();
                info = info.attribute(kind, &nested(|rate| rate.attribute(BITRATE_32, &units)));
            }
        }
        info
    });
    let message = NetlinkMessage::new(0, 0, 0).fixed(&[NEW_STATION, 0, 0, 0]);
    message.attribute(ADDRESS, &facts.station.0).attribute(STATION_INFO, &info)
}

/// A counter of 32 bits wraps.
fn low(count: u64) -> u32 {
    u32::try_from(count & u64::from(u32::MAX)).unwrap_or(u32::MAX)
}

fn with<const BYTES: usize>(
    message: NetlinkMessage,
    kind: u16,
    value: Option<[u8; BYTES]>,
) -> NetlinkMessage {
    match value {
        Some(value) => message.attribute(kind, &value),
        None => message,
    }
}

/// A list of attributes: a message without its header.
pub(super) fn nested(write: impl FnOnce(NetlinkMessage) -> NetlinkMessage) -> Vec<u8> {
    write(NetlinkMessage::new(0, 0, 0)).finish().split_off(crate::netlink::message::HEADER)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOBILE: [u8; 6] = [2, 0, 0, 0, 1, 0];
    const AT: Instant = Instant::from_millis(500);

    /// A message of a dump as mac80211 writes it, with attributes in between that are not read.
    fn dumped(command: u8, info: &[u8]) -> Vec<u8> {
        nested(|message| {
            let message = message.fixed(&[command, 1, 0, 0]).attribute(3, &4_u32.to_ne_bytes());
            let message = message.attribute(ADDRESS, &MOBILE).attribute(46, &7_u32.to_ne_bytes());
            message.attribute(STATION_INFO | 0x8000, info)
        })
    }

    fn info() -> Vec<u8> {
        nested(|message| {
            let message = message.attribute(16, &60_u32.to_ne_bytes()).attribute(1, &12_u32.to_ne_bytes());
            let message = message.attribute(7, &[(-61_i8) as u8]).attribute(13, &[(-59_i8) as u8]);
            let message = message.attribute(9, &100_u32.to_ne_bytes()).attribute(10, &200_u32.to_ne_bytes());
            let message = message.attribute(11, &30_u32.to_ne_bytes()).attribute(12, &4_u32.to_ne_bytes());
            let message =
                message.attribute(2, &7_u32.to_ne_bytes()).attribute(23, &(7_u64 << 33).to_ne_bytes());
            let rate = nested(|rate| rate.attribute(1, &540_u16.to_ne_bytes()).attribute(2, &[3]));
            let slow = nested(|rate| rate.attribute(1, &60_u16.to_ne_bytes()));
            let message =
                message.attribute(8, &rate).attribute(14, &slow).attribute(27, &30_211_u32.to_ne_bytes());
            message.attribute(39, &2_235_u64.to_ne_bytes()).attribute(32, &1_180_u64.to_ne_bytes())
        })
    }

    fn whole() -> LinkFacts {
        LinkFacts {
            inactive: Some(Duration::from_millis(12)),
            signal_dbm: Some(-61),
            signal_average_dbm: Some(-59),
            tx_packets: Some(200),
            tx_retries: Some(30),
            tx_failed: Some(4),
            rx_packets: Some(100),
            rx_bytes: Some(7 << 33),
            tx_bitrate_bps: Some(54_000_000),
            rx_bitrate_bps: Some(6_000_000),
            expected_throughput_bps: Some(30_211_000),
            tx_duration: Some(Duration::from_micros(2_235)),
            rx_duration: Some(Duration::from_micros(1_180)),
            ..LinkFacts::new(StationAddress(MOBILE), AT)
        }
    }

    #[test]
    fn a_station_is_read_with_all_that_the_kernel_has_of_it() {
        assert_eq!(station(&dumped(NEW_STATION, &info()), AT), Some(whole()));
        assert_eq!(station(&dumped(20, &info()), AT), None, "one that has left");
    }

    #[test]
    fn what_a_driver_does_not_tell_is_absent_and_not_zero() {
        let read = |info: &[u8]| station(&dumped(NEW_STATION, info), AT);
        let alone = LinkFacts::new(StationAddress(MOBILE), AT);
        assert_eq!(read(&[]), Some(alone));
        let five = nested(|info| info.attribute(1, &5_u32.to_ne_bytes()));
        assert_eq!(read(&five), Some(LinkFacts { inactive: Some(Duration::from_millis(5)), ..alone }));
    }

    #[test]
    fn a_rate_above_6_gbit_s_needs_the_longer_number_and_bytes_may_be_the_shorter_one() {
        let fast =
            nested(|rate| rate.attribute(BITRATE, &[0; 2]).attribute(BITRATE_32, &96_078_u32.to_ne_bytes()));
        let info = nested(|info| info.attribute(8, &fast).attribute(2, &9_u32.to_ne_bytes()));
        let read = station(&dumped(NEW_STATION, &info), AT).expect("a station");
        assert_eq!((read.tx_bitrate_bps, read.rx_bytes), (Some(9_607_800_000), Some(9)));
    }

    #[test]
    fn what_is_written_is_read_again() {
        for facts in [whole(), LinkFacts::new(StationAddress(MOBILE), AT)] {
            let written = message(&facts).finish();
            assert_eq!(station(&written[crate::netlink::message::HEADER..], AT), Some(facts));
        }
        let wraps = LinkFacts { tx_packets: Some((1 << 32) + 5), ..whole() };
        let written = message(&wraps).finish();
        let read = station(&written[crate::netlink::message::HEADER..], AT).expect("a station");
        assert_eq!(read.tx_packets, Some(5));
    }

    #[test]
    fn what_is_cut_off_says_nothing_of_what_is_missing() {
        let whole = dumped(NEW_STATION, &info());
        assert!((0..whole.len() - 3).all(|len| station(&whole[..len], AT).is_none()));
    }
}
