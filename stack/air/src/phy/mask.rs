//! The rates of data that a rate control may choose, as `iw set bitrates` names them.

use super::{Form, Rate};

/// The rates without 802.11n, by their place in a mask.
const LEGACY_KBPS: [u32; 12] =
    [1_000, 2_000, 5_500, 11_000, 6_000, 9_000, 12_000, 18_000, 24_000, 36_000, 48_000, 54_000];

/// A set of rates: those of 802.11n and 802.11ac by their MCS, in all widths, guard intervals and streams that have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateMask(u16);

impl RateMask {
    /// Any rate.
    pub const ALL: RateMask = RateMask(u16::MAX);

    /// These rates and no others.
    ///
    /// # Panics
    ///
    /// Without any rate.
    pub fn of(rates: impl IntoIterator<Item = Rate>) -> RateMask {
        let mask = rates.into_iter().fold(0, |mask, rate| mask | bit(rate));
        assert!(mask != 0, "a mask has a rate");
        RateMask(mask)
    }

    pub(super) fn has(self, rate: Rate) -> bool {
        self.0 & bit(rate) != 0
    }
}

fn bit(rate: Rate) -> u16 {
    let place = match rate.form {
        Form::Ht(ht) => usize::from(ht.mcs),
        Form::Vht(vht) => usize::from(vht.mcs),
        Form::Legacy | Form::NonHt => {
            LEGACY_KBPS.iter().position(|kbps| *kbps == rate.kbps()).expect("a rate of DSSS or OFDM")
        }
    };
    1 << place
}

impl Rate {
    /// The index of the MCS under 802.11n (0 to 15), or under 802.11ac (0 to 9 of each stream); none without them.
    pub fn mcs(&self) -> Option<u8> {
        match self.form {
            Form::Ht(ht) => Some(ht.mcs),
            Form::Vht(vht) => Some(vht.mcs),
            Form::Legacy | Form::NonHt => None,
        }
    }
}
