//! Channels by number or frequency, their widths and their rates, as IEEE 802.11 and nl80211 number them.

use hopwise_host::nl80211::radio::ChannelSetting;
use hopwise_lab::located::Checked;
use hopwise_lab::units::Rate;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Interface, InterfaceKeys};

/// The width of a channel, named as `iw` names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub(super) enum ChannelWidth {
    /// 20 MHz without 802.11n.
    #[default]
    #[serde(rename = "noht")]
    Noht,
    /// 20 MHz.
    #[serde(rename = "ht20")]
    Ht20,
    /// 40 MHz: the channel, and the next 20 MHz above.
    #[serde(rename = "ht40+")]
    Ht40Above,
    /// 40 MHz: the channel, and the next 20 MHz below.
    #[serde(rename = "ht40-")]
    Ht40Below,
    /// 80 MHz, only at 5 GHz.
    #[serde(rename = "80mhz")]
    Mhz80,
    /// 5 MHz.
    #[serde(rename = "5mhz")]
    Mhz5,
    /// 10 MHz.
    #[serde(rename = "10mhz")]
    Mhz10,
}

/// The lowest 20 MHz of each 80 MHz at 5 GHz.
const BLOCKS: [u32; 6] = [5_180, 5_260, 5_500, 5_580, 5_660, 5_745];

impl ChannelWidth {
    pub(super) fn has_mcs(self) -> bool {
        matches!(
            self,
            ChannelWidth::Ht20 | ChannelWidth::Ht40Above | ChannelWidth::Ht40Below | ChannelWidth::Mhz80
        )
    }

    /// The number of NL80211_CHAN_WIDTH_*.
    fn number(self) -> u32 {
        match self {
            ChannelWidth::Noht => 0,
            ChannelWidth::Ht20 => 1,
            ChannelWidth::Ht40Above | ChannelWidth::Ht40Below => 2,
            ChannelWidth::Mhz80 => 3,
            ChannelWidth::Mhz5 => 6,
            ChannelWidth::Mhz10 => 7,
        }
    }

    /// The middle of the whole channel; `None` if there is no such channel.
    fn centre(self, mhz: u32) -> Option<u32> {
        match self {
            ChannelWidth::Ht40Above => Some(mhz + 10),
            ChannelWidth::Ht40Below => Some(mhz - 10),
            ChannelWidth::Mhz80 => BLOCKS
                .into_iter()
                .find(|lowest| (*lowest..lowest + 80).contains(&mhz) && (mhz - lowest).is_multiple_of(20))
                .map(|lowest| lowest + 30),
            _ => Some(mhz),
        }
    }
}

/// The frequency of a channel's number.
fn mhz_of(number: u32) -> Option<u32> {
    match number {
        1..=13 => Some(2_407 + 5 * number),
        14 => Some(2_484),
        32..=144 if number.is_multiple_of(4) => Some(5_000 + 5 * number),
        149..=177 if number % 4 == 1 => Some(5_000 + 5 * number),
        _ => None,
    }
}

/// The channel of an interface.
pub(super) fn of(place: &InterfaceKeys<'_>, interface: &Interface) -> Checked<ChannelSetting> {
    let mhz = match (interface.channel, interface.frequency) {
        (Some(number), None) => mhz_of(number).ok_or_else(|| {
            let accepted = "1 to 14 at 2.4 GHz, or 36, 40, … 144, 149, 153, … 177 at 5 GHz";
            place.refuse("channel", format!("there is no channel {number}"), accepted)
        })?,
        (None, Some(mhz)) => mhz,
        (None, None) => {
            let accepted = "channel: 1, or frequency: 2412";
            return Err(place.document.refuse(&place.at, "a network needs a channel", accepted));
        }
        (Some(_), Some(_)) => {
            let problem = "the channel is there twice, by its number and by its frequency";
            return Err(place.document.refuse_key(&place.key("frequency"), problem, "one of both"));
        }
    };
    let centre = interface.width.centre(mhz).ok_or_else(|| {
        let problem = format!("no 80 MHz of 5 GHz begin or go on at {mhz} MHz");
        place.refuse("width", problem, "80mhz with a channel from 36 to 161, or ht20")
    })?;
    Ok(ChannelSetting { mhz, width: interface.width.number(), centre_mhz: centre })
}

/// The rates of OFDM, and of DSSS and CCK, which 5 GHz does not have, in units of 500 kbit/s.
const OFDM: [u8; 8] = [12, 18, 24, 36, 48, 72, 96, 108];
const CCK: [u8; 4] = [2, 4, 11, 22];
const FIVE_GHZ: u32 = 5_000;

/// The rates that an interface has below `key`, in units of 500 kbit/s.
pub(super) fn legacy_rates(
    place: &InterfaceKeys<'_>,
    key: &str,
    rates: &Option<Vec<Rate>>,
    mhz: u32,
) -> Checked<Vec<u8>> {
    let Some(rates) = rates else { return Ok(Vec::new()) };
    if rates.is_empty() {
        return Err(place.refuse(key, "there is no rate", "at least one, such as [6mbit], or no such key"));
    }
    let at = |nth| place.key(key).index(nth);
    let one = |(nth, rate): (usize, &Rate)| {
        halves(*rate, mhz)
            .ok_or_else(|| place.document.refuse(&at(nth), rate_problem(*rate, mhz), accepted_rates(mhz)))
    };
    rates.iter().enumerate().map(one).collect()
}

/// The rate of broadcasts, in units of 100 kbit/s.
pub(super) fn multicast_rate(
    place: &InterfaceKeys<'_>,
    rate: Option<Rate>,
    mhz: u32,
) -> Checked<Option<u32>> {
    let Some(rate) = rate else { return Ok(None) };
    match halves(rate, mhz) {
        Some(halves) => Ok(Some(u32::from(halves) * 5)),
        None => Err(place.refuse("multicast_rate", rate_problem(rate, mhz), accepted_rates(mhz))),
    }
}

/// The rates of 802.11n.
pub(super) fn mcs(place: &InterfaceKeys<'_>, mcs: Option<&[u8]>, width: ChannelWidth) -> Checked<Vec<u8>> {
    let Some(mcs) = mcs else { return Ok(Vec::new()) };
    if !width.has_mcs() {
        let problem = "a channel without 802.11n has no MCS";
        return Err(place.document.refuse_key(&place.key("mcs"), problem, "width: ht20, or no such key"));
    }
    Ok(mcs.to_vec())
}

fn halves(rate: Rate, mhz: u32) -> Option<u8> {
    let halves = u8::try_from(rate.0 / 500_000).ok().filter(|_| rate.0.is_multiple_of(500_000))?;
    let is_known = OFDM.contains(&halves) || mhz < FIVE_GHZ && CCK.contains(&halves);
    is_known.then_some(halves)
}

fn rate_problem(rate: Rate, mhz: u32) -> String {
    let tenths = rate.0 / 100_000;
    format!("{}.{} Mbit/s is no rate at {mhz} MHz", tenths / 10, tenths % 10)
}

fn accepted_rates(mhz: u32) -> &'static str {
    if mhz < FIVE_GHZ {
        "1mbit, 2mbit, 5.5mbit or 11mbit, or 6, 9, 12, 18, 24, 36, 48 or 54mbit"
    } else {
        "6mbit, 9mbit, 12mbit, 18mbit, 24mbit, 36mbit, 48mbit or 54mbit"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_frequencies_agree_with_the_standard() {
        for (number, mhz) in [(1, 2_412), (13, 2_472), (14, 2_484), (36, 5_180), (144, 5_720), (165, 5_825)] {
            assert_eq!(mhz_of(number), Some(mhz), "{number}");
        }
        for number in [0, 15, 31, 37, 146, 150, 178] {
            assert_eq!(mhz_of(number), None, "{number}");
        }
    }

    #[test]
    fn the_middle_of_a_wide_channel_is_that_of_all_its_parts() {
        assert_eq!(ChannelWidth::Ht40Above.centre(2_412), Some(2_422));
        assert_eq!(ChannelWidth::Ht40Below.centre(5_200), Some(5_190));
        for mhz in [5_180, 5_200, 5_220, 5_240] {
            assert_eq!(ChannelWidth::Mhz80.centre(mhz), Some(5_210));
        }
        assert_eq!(ChannelWidth::Mhz80.centre(5_805), Some(5_775));
        assert_eq!(ChannelWidth::Mhz80.centre(2_412), None);
        assert_eq!(ChannelWidth::Mhz80.centre(5_190), None);
    }
}
