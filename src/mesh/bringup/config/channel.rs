//! Channels by number or frequency, and their widths, as IEEE 802.11 numbers them.

use hopwise_host::nl80211::radio::Channel;
use hopwise_lab::located::Refusal;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Interface, Place};

/// The width of a channel, named as `iw` names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub(super) enum Width {
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

impl Width {
    pub(super) fn has_mcs(self) -> bool {
        matches!(self, Width::Ht20 | Width::Ht40Above | Width::Ht40Below | Width::Mhz80)
    }

    /// The number of NL80211_CHAN_WIDTH_*.
    fn number(self) -> u32 {
        match self {
            Width::Noht => 0,
            Width::Ht20 => 1,
            Width::Ht40Above | Width::Ht40Below => 2,
            Width::Mhz80 => 3,
            Width::Mhz5 => 6,
            Width::Mhz10 => 7,
        }
    }

    /// The middle of the whole channel; `None` if there is no such channel.
    fn centre(self, mhz: u32) -> Option<u32> {
        match self {
            Width::Ht40Above => Some(mhz + 10),
            Width::Ht40Below => Some(mhz - 10),
            Width::Mhz80 => BLOCKS
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
pub(super) fn of(place: &Place<'_>, interface: &Interface) -> Result<Channel, Box<Refusal>> {
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
    Ok(Channel { mhz, width: interface.width.number(), centre_mhz: centre })
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
        assert_eq!(Width::Ht40Above.centre(2_412), Some(2_422));
        assert_eq!(Width::Ht40Below.centre(5_200), Some(5_190));
        for mhz in [5_180, 5_200, 5_220, 5_240] {
            assert_eq!(Width::Mhz80.centre(mhz), Some(5_210));
        }
        assert_eq!(Width::Mhz80.centre(5_805), Some(5_775));
        assert_eq!(Width::Mhz80.centre(2_412), None);
        assert_eq!(Width::Mhz80.centre(5_190), None);
    }
}
