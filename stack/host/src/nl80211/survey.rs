//! The use of a channel, and the queue of a radio, as a Wi-Fi driver counts them (linux/nl80211.h).

use std::io;
use std::time::Duration;

use super::kernel::{INTERFACE, Nl80211};
use super::radio::wire::{FREQUENCY as OF_INTERFACE, GET_INTERFACE, NEW_INTERFACE};
use crate::netlink::QueuedPackets;
use crate::netlink::ask::ask;
use crate::netlink::message::{GENERIC_HEADER, attribute, word};

const TXQ_STATS: u16 = 265;
/// The kinds of NL80211_ATTR_TXQ_STATS.
const BACKLOG_BYTES: u16 = 1;
const BACKLOG_PACKETS: u16 = 2;
const QUEUE_DROPS: u16 = 4;
const GET_SURVEY: u8 = 50;
const NEW_SURVEY_RESULTS: u8 = 51;
const SURVEY_INFO: u16 = 84;
/// The kinds of NL80211_ATTR_SURVEY_INFO.
const FREQUENCY: u16 = 1;
const NOISE: u16 = 2;
const IN_USE: u16 = 3;
const TIME: u16 = 4;
const TIME_BUSY: u16 = 5;
const TIME_RX: u16 = 7;
const TIME_TX: u16 = 8;

/// The use of a channel since the radio came to it. A time that the driver does not count is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelUse {
    /// The channel's middle in MHz.
    pub frequency_mhz: u32,
    /// The time on the channel.
    pub active: Option<Duration>,
    /// The part of it in which the channel was busy.
    pub busy: Option<Duration>,
    /// The part in which the radio received.
    pub receiving: Option<Duration>,
    /// The part in which it sent.
    pub sending: Option<Duration>,
    /// The noise.
    pub noise_dbm: Option<i8>,
}

impl Nl80211 {
    /// The use of the channel that the interface with this number is on; `None` if its driver does not count.
    pub fn channel_use(&mut self, interface: u32) -> io::Result<Option<ChannelUse>> {
        let mut all = Vec::new();
        ask(&self.socket, self.question(GET_SURVEY, interface), |heard| all.extend(channel_use(heard.body)))?;
        // Some drivers say of every channel that it is in use (rt2800usb).
        let own = if all.len() > 1 { self.told(interface, frequency_mhz)? } else { None };
        Ok(of_channel(&all, own))
    }

    /// The frames that wait in the radio's own queue; `None` if its driver has none. The kernel's queue of such an
    /// interface is empty.
    pub fn queued(&mut self, interface: u32) -> io::Result<Option<QueuedPackets>> {
        self.told(interface, queued)
    }

    /// The first thing of this kind that the kernel tells of the interface.
    fn told<T>(&mut self, interface: u32, read: fn(&[u8], u32) -> Option<T>) -> io::Result<Option<T>> {
        let mut found = None;
        ask(&self.socket, self.question(GET_INTERFACE, interface), |heard| {
            found = found.take().or_else(|| read(heard.body, interface));
        })?;
        Ok(found)
    }
}

/// The use of the channel with that frequency, or of the first one where it is not known.
fn of_channel(all: &[ChannelUse], mhz: Option<u32>) -> Option<ChannelUse> {
    let is_it = |used: &&ChannelUse| mhz.is_none_or(|mhz| used.frequency_mhz == mhz);
    all.iter().find(is_it).copied()
}

/// The channel in one message of a survey, if it is in use.
fn channel_use(body: &[u8]) -> Option<ChannelUse> {
    if *body.first()? != NEW_SURVEY_RESULTS {
        return None;
    }
    let info = attribute(body.get(GENERIC_HEADER..)?, SURVEY_INFO)?;
    attribute(info, IN_USE)?;
    let time =
        |kind| attribute(info, kind)?.try_into().ok().map(u64::from_ne_bytes).map(Duration::from_millis);
    Some(ChannelUse {
        frequency_mhz: word(attribute(info, FREQUENCY)?, 0)?,
        active: time(TIME),
        busy: time(TIME_BUSY),
        receiving: time(TIME_RX),
        sending: time(TIME_TX),
        noise_dbm: attribute(info, NOISE).and_then(|noise| noise.first().map(|byte| byte.cast_signed())),
    })
}

/// The attributes in a message about the interface.
fn about(body: &[u8], interface: u32) -> Option<&[u8]> {
    let all = body.get(GENERIC_HEADER..).filter(|_| body.first() == Some(&NEW_INTERFACE))?;
    (word(attribute(all, INTERFACE)?, 0)? == interface).then_some(all)
}

fn frequency_mhz(body: &[u8], interface: u32) -> Option<u32> {
    word(attribute(about(body, interface)?, OF_INTERFACE)?, 0)
}

fn queued(body: &[u8], interface: u32) -> Option<QueuedPackets> {
    let all = about(body, interface)?;
    let stats = attribute(all, TXQ_STATS)?;
    let count = |kind| word(attribute(stats, kind)?, 0).map(u64::from);
    Some(QueuedPackets {
        packets: count(BACKLOG_PACKETS)?,
        bytes: count(BACKLOG_BYTES)?,
        drops: count(QUEUE_DROPS).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nl80211::station::nested;

    fn survey(is_in_use: bool) -> Vec<u8> {
        let info = nested(|info| {
            let info = info
                .attribute(FREQUENCY, &2412_u32.to_ne_bytes())
                .attribute(NOISE, &[(-95_i8).cast_unsigned()]);
            let info = if is_in_use { info.attribute(IN_USE, &[]) } else { info };
            info.attribute(TIME, &2000_u64.to_ne_bytes()).attribute(TIME_BUSY, &500_u64.to_ne_bytes())
        });
        nested(|message| message.fixed(&[NEW_SURVEY_RESULTS, 1, 0, 0]).attribute(SURVEY_INFO, &info))
    }

    #[test]
    fn only_the_channel_in_use_is_told_and_what_is_not_counted_is_absent() {
        let expected = ChannelUse {
            frequency_mhz: 2412,
            active: Some(Duration::from_secs(2)),
            busy: Some(Duration::from_millis(500)),
            noise_dbm: Some(-95),
            ..ChannelUse::default()
        };
        assert_eq!((channel_use(&survey(true)), channel_use(&survey(false))), (Some(expected), None));
    }

    #[test]
    fn of_several_channels_that_are_called_in_use_the_interface_s_own_counts() {
        let used = |frequency_mhz| ChannelUse { frequency_mhz, ..ChannelUse::default() };
        let all = [used(2412), used(2417), used(2422)];
        assert_eq!(of_channel(&all, Some(2417)), Some(used(2417)));
        assert_eq!((of_channel(&all, Some(5180)), of_channel(&all, None)), (None, Some(used(2412))));
        let body = nested(|message| {
            let message = message.fixed(&[NEW_INTERFACE, 1, 0, 0]).attribute(INTERFACE, &4_u32.to_ne_bytes());
            message.attribute(OF_INTERFACE, &2417_u32.to_ne_bytes())
        });
        assert_eq!((frequency_mhz(&body, 4), frequency_mhz(&body, 5)), (Some(2417), None));
    }

    #[test]
    fn a_radio_s_own_queue_is_that_of_the_interface() {
        let stats = nested(|stats| {
            let stats = stats.attribute(BACKLOG_BYTES, &3000_u32.to_ne_bytes());
            stats
                .attribute(BACKLOG_PACKETS, &2_u32.to_ne_bytes())
                .attribute(QUEUE_DROPS, &9_u32.to_ne_bytes())
        });
        let body = nested(|message| {
            let message = message.fixed(&[NEW_INTERFACE, 1, 0, 0]).attribute(INTERFACE, &4_u32.to_ne_bytes());
            message.attribute(TXQ_STATS, &stats)
        });
        assert_eq!(queued(&body, 4), Some(QueuedPackets { packets: 2, bytes: 3000, drops: 9 }));
        assert_eq!(queued(&body, 5), None);
    }
}
