//! The packets of an aggregate, and its length.

use crate::airtime::Load;
use crate::phy::{DELIMITER_BYTES, Form, Phy, Rate};

/// The longest PPDU of the mixed format and of 802.11ac (aPPDUMaxTime).
pub(super) const LONGEST_PPDU_NS: u64 = 5_484_000;
/// The longest A-MPDU of 802.11n (the exponent 3 of its length), and of 802.11ac (7).
const LONGEST_AMPDU: u32 = 65_535;
const LONGEST_VHT_AMPDU: u32 = 1_048_575;

/// A packet in the hands of a station.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mpdu {
    pub(super) number: u32,
    pub(super) bytes: u32,
    pub(super) load: Load,
    /// When it came into its machine's queue, until its first frame; `NEVER` where that is not known.
    pub(super) queued_at: u64,
    /// It is given up at its first failure after this.
    pub(super) expires: u64,
    /// The frames with it that brought no acknowledgement.
    pub(super) unanswered: u32,
    pub(super) has_left: bool,
    /// It has been on the air before the frame at hand.
    pub(super) is_repeat: bool,
}

/// The length of an A-MPDU: subframes have a delimiter and padding, except for the last one's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Length {
    /// With the last subframe's padding.
    pub(super) padded: u32,
    pub(super) bare: u32,
}

impl Length {
    pub(super) fn with(self, mpdu: u32) -> Length {
        let bare = self.padded + DELIMITER_BYTES + mpdu;
        Length { padded: bare.next_multiple_of(4), bare }
    }
}

/// The longest A-MPDU at a rate, by its bytes and by its airtime.
pub(super) fn longest_ampdu(phy: &Phy, rate: Rate) -> u32 {
    let longest = if let Form::Vht(_) = rate.form { LONGEST_VHT_AMPDU } else { LONGEST_AMPDU };
    let (mut fits, mut beyond) = (0, longest + 1);
    while beyond - fits > 1 {
        let bytes = u32::midpoint(fits, beyond);
        if phy.airtime_ns(bytes, rate) <= LONGEST_PPDU_NS { fits = bytes } else { beyond = bytes }
    }
    fits
}
