//! Rates of 802.11a, b, g and n in the units of nl80211.

use hopwise_lab::located::Refusal;
use hopwise_lab::units::Rate;

use super::Place;
use super::channel::Width;

/// The rates of OFDM, and those of DSSS and CCK before them, which 5 GHz does not have: in units of 500 kbit/s.
const OFDM: [u8; 8] = [12, 18, 24, 36, 48, 72, 96, 108];
const CCK: [u8; 4] = [2, 4, 11, 22];
const FIVE_GHZ: u32 = 5_000;

/// The rates of that key.
pub(super) fn legacy(
    place: &Place<'_>,
    key: &str,
    rates: &Option<Vec<Rate>>,
    mhz: u32,
) -> Result<Vec<u8>, Box<Refusal>> {
    let Some(rates) = rates else { return Ok(Vec::new()) };
    if rates.is_empty() {
        return Err(place.refuse(key, "there is no rate", "at least one, such as [6mbit], or no such key"));
    }
    let at = |nth| place.key(key).index(nth);
    let one = |(nth, rate): (usize, &Rate)| {
        halves(*rate, mhz).ok_or_else(|| place.document.refuse(&at(nth), problem(*rate, mhz), accepted(mhz)))
    };
    rates.iter().enumerate().map(one).collect()
}

/// The rate of broadcasts, in units of 100 kbit/s.
pub(super) fn multicast(
    place: &Place<'_>,
    rate: Option<Rate>,
    mhz: u32,
) -> Result<Option<u32>, Box<Refusal>> {
    let Some(rate) = rate else { return Ok(None) };
    match halves(rate, mhz) {
        Some(halves) => Ok(Some(u32::from(halves) * 5)),
        None => Err(place.refuse("multicast_rate", problem(rate, mhz), accepted(mhz))),
    }
}

/// The rates of 802.11n.
pub(super) fn mcs(place: &Place<'_>, mcs: Option<&[u8]>, width: Width) -> Result<Vec<u8>, Box<Refusal>> {
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

fn problem(rate: Rate, mhz: u32) -> String {
    let tenths = rate.0 / 100_000;
    format!("{}.{} Mbit/s is no rate at {mhz} MHz", tenths / 10, tenths % 10)
}

fn accepted(mhz: u32) -> &'static str {
    if mhz < FIVE_GHZ {
        "1mbit, 2mbit, 5.5mbit or 11mbit, or 6, 9, 12, 18, 24, 36, 48 or 54mbit"
    } else {
        "6mbit, 9mbit, 12mbit, 18mbit, 24mbit, 36mbit, 48mbit or 54mbit"
    }
}
