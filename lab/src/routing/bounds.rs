//! Bounds of the protocols' constants: a number beyond them is a slip.

use std::time::Duration;

use crate::located::{Document, Place, Refusal};
use crate::units::Time;

pub(super) const LONGEST: Duration = Duration::from_secs(3600);
pub(super) const SHORTEST: Duration = Duration::from_millis(1);
pub(super) const INSTANTLY: Duration = Duration::ZERO;
pub(super) const MOST_PACKETS: u32 = 1 << 16;

/// Each key with its value and the least that it may be.
pub(super) fn check_times(
    document: &Document,
    place: &Place,
    times: impl IntoIterator<Item = (&'static str, Option<Time>, Duration)>,
) -> Result<(), Box<Refusal>> {
    for (key, given, least) in times {
        if given.is_some_and(|time| time.0 < least || time.0 > LONGEST) {
            let accepted = format!("a time from {least:?} to an hour");
            return Err(document.refuse(&place.key(key), format!("{key} is out of bounds"), &accepted));
        }
    }
    Ok(())
}

/// Each key with its value, the least and the most that it may be.
pub(super) fn check_numbers(
    document: &Document,
    place: &Place,
    numbers: impl IntoIterator<Item = (&'static str, Option<u32>, u32, u32)>,
) -> Result<(), Box<Refusal>> {
    for (key, given, least, most) in numbers {
        if given.is_some_and(|number| !(least..=most).contains(&number)) {
            let accepted = format!("a number from {least} to {most}");
            return Err(document.refuse(&place.key(key), format!("{key} is out of bounds"), &accepted));
        }
    }
    Ok(())
}
