//! The MPDUs of an aggregate with their packets, and its length.

use super::MacConfig;
use crate::airtime::AirLoad;
use crate::deadlines::NEVER;
use crate::phy::{BitForm, DELIMITER_BYTES, Phy, Rate};
use crate::waits::QueueWaits;

/// The longest PPDU of the mixed format and of 802.11ac (aPPDUMaxTime).
pub(super) const LONGEST_PPDU_NS: u64 = 5_484_000;
/// The longest A-MPDU of 802.11n (the exponent 3 of its length), and of 802.11ac (7).
const LONGEST_AMPDU: u32 = 65_535;
const LONGEST_VHT_AMPDU: u32 = 1_048_575;

/// The destination, the source and the length before each packet of an A-MSDU, and its LLC header.
const SUBFRAME_BYTES: u32 = 14 + LLC_BYTES;
const LLC_BYTES: u32 = 8;
/// The MAC header and the FCS around an A-MSDU.
pub(super) const BESIDE_AMSDU: u32 = 30;
/// The longest MPDU of an A-MPDU of 802.11n: a delimiter has 12 bits for it.
const LONGEST_HT_MPDU: u32 = 4_095;

/// A packet in the hands of a station, or several that leave as one (A-MSDU).
#[derive(Clone, Copy, Debug)]
pub(super) struct Mpdu {
    pub(super) number: u32,
    /// The bytes of the packet; of an A-MSDU all bytes but the LLC header that a lone packet has.
    pub(super) bytes: u32,
    pub(super) packets: u8,
    pub(super) load: AirLoad,
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

/// A packet that has joined another packet in its MPDU, until its first frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct JoinedPacket {
    pub(super) number: u32,
    pub(super) load: AirLoad,
    pub(super) queued_at: u64,
}

impl JoinedPacket {
    /// Returns whether it goes on waiting. If it leaves with one of these MPDUs, its wait is added to their waits.
    pub(super) fn waits_beside(&self, leaving: &[Mpdu], now: u64, waits: &mut QueueWaits) -> bool {
        let leaves = leaving.iter().any(|mpdu| mpdu.number == self.number);
        if leaves && self.queued_at != NEVER {
            waits.add(self.load, now - self.queued_at);
        }
        !leaves
    }
}

impl Mpdu {
    /// The bytes of an A-MSDU with a further packet. All but the last one have padding.
    pub(super) fn with_packet(&self, bytes: u32) -> u32 {
        let now = if self.packets == 1 { SUBFRAME_BYTES + self.bytes } else { self.bytes + LLC_BYTES };
        now.next_multiple_of(4) + SUBFRAME_BYTES + bytes
    }

    /// Takes a further packet into an A-MSDU.
    pub(super) fn join(&mut self, bytes: u32) {
        self.bytes = self.with_packet(bytes) - LLC_BYTES;
        self.packets += 1;
    }

    /// The longest packet that fits an A-MSDU of `longest` bytes; none where it has no room.
    pub(super) fn room(&self, longest: u32) -> Option<u32> {
        let may = !self.has_left && self.packets < u8::MAX;
        longest.checked_sub(self.with_packet(0)).filter(|room| may && *room > 0)
    }
}

/// The longest A-MSDU that stations send; 0 if they send none.
pub(super) fn longest_amsdu(phy: &Phy, mac: &MacConfig) -> u32 {
    let most = if mac.ampdu.is_some() && !phy.is_vht() { LONGEST_HT_MPDU - BESIDE_AMSDU } else { u32::MAX };
    mac.amsdu.map_or(0, |longest| longest.min(most))
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
    let longest = if let BitForm::Vht(_) = rate.form { LONGEST_VHT_AMPDU } else { LONGEST_AMPDU };
    let (mut fits, mut beyond) = (0, longest + 1);
    while beyond - fits > 1 {
        let bytes = u32::midpoint(fits, beyond);
        if phy.airtime_ns(bytes, rate) <= LONGEST_PPDU_NS { fits = bytes } else { beyond = bytes }
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A QoS header of 26 bytes, subframes with headers of 14, LLC of 8 each, padding to 4 but for the last, an FCS.
    #[test]
    fn packets_of_an_a_msdu_have_a_header_each_and_padding_between_them() {
        let mut mpdu = Mpdu {
            number: 1,
            bytes: 1_001,
            packets: 1,
            load: AirLoad::Other,
            queued_at: NEVER,
            expires: NEVER,
            unanswered: 0,
            has_left: false,
            is_repeat: false,
        };
        let overhead = Phy::named("ht20-mcs7").expect("a profile").data_overhead;
        assert_eq!(mpdu.bytes + overhead, 26 + 8 + 1_001 + 4);
        mpdu.join(500);
        assert_eq!(mpdu.bytes + overhead, 26 + (22 + 1_001 + 1) + (22 + 500) + 4);
        mpdu.join(40);
        assert_eq!(mpdu.bytes + overhead, 26 + (22 + 1_001 + 1) + (22 + 500 + 2) + (22 + 40) + 4);
        // The rest of 3839 bytes.
        assert_eq!((mpdu.packets, mpdu.room(3_839)), (3, Some(3_839 - 1_024 - 524 - 64 - 22)));
        mpdu.has_left = true;
        assert_eq!(mpdu.room(3_839), None, "a repeated MPDU stays as it is");
    }

    #[test]
    fn an_a_msdu_of_802_11n_fits_an_a_mpdus_delimiter() {
        let longest = |profile, ampdu| {
            let mac = MacConfig { ampdu, amsdu: Some(7_935), ..MacConfig::default() };
            longest_amsdu(&Phy::named(profile).expect("a profile"), &mac)
        };
        assert_eq!(longest("ht20-mcs7", Some(64)), 4_065);
        assert_eq!((longest("ht20-mcs7", None), longest("vht80-2ss-mcs7", Some(64))), (7_935, 7_935));
        assert_eq!(longest_amsdu(&Phy::named("ht20-mcs7").expect("a profile"), &MacConfig::default()), 0);
    }
}
