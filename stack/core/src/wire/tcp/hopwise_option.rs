//! The notes between the two ends' agents, in two experimental options (RFC 6994). Ours has kind 253 and ExID 0x4857;
//! the ACK-rate request has kind 254 and ExID 0x00AC.
//!
//! The request is that of draft-ietf-tcpm-ack-rate-request-10: R is in the high seven bits of its octet. The lowest bit
//! was reserved in draft-gomez-tcpm-ack-rate-request-05, which Wireshark and packetdrill read. Later drafts call it V.
//! It is sent as 0 and ignored on arrival.

use super::Flags;
use crate::narrow::as_u8;

pub(super) const KIND_HOPWISE: u8 = 253;
pub(super) const KIND_RATE_REQUEST: u8 = 254;
const EXID_HOPWISE: [u8; 2] = [0x48, 0x57];
const EXID_RATE_REQUEST: [u8; 2] = [0x00, 0xac];

/// Kind, length, ExID and the octet of bits.
const HOPWISE_FIXED_LEN: usize = 5;
pub(super) const MAX_HOPWISE_LEN: usize = HOPWISE_FIXED_LEN + 4;
pub(super) const MAX_RATE_REQUEST_LEN: usize = 5;

/// A SYN offers features; later segments use them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopwiseOption {
    /// Only on a SYN, and on a SYN-ACK, which has the agreed flags.
    Offer(OfferFlags),
    /// Only on later segments, as agreed.
    Notes(Notes),
}

/// The notes that one end can send, and those that it can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct OfferFlags(pub u8);

impl OfferFlags {
    /// The sender agents of this end send [`Notes::cwnd`].
    pub const TELL_CWND: OfferFlags = OfferFlags(1);
    /// The receiver agent of this end uses [`Notes::cwnd`].
    pub const USE_CWND: OfferFlags = OfferFlags(2);
    /// The receiver agent of this end sends [`Notes::dup_count`].
    pub const TELL_DUP_COUNT: OfferFlags = OfferFlags(4);
    /// The sender agents of this end use [`Notes::dup_count`].
    pub const USE_DUP_COUNT: OfferFlags = OfferFlags(8);
    /// The sender agents of this end send [`Notes::ack_after`].
    pub const TELL_ACK_AFTER: OfferFlags = OfferFlags(16);
    /// The receiver agent of this end obeys [`Notes::ack_after`].
    pub const USE_ACK_AFTER: OfferFlags = OfferFlags(32);
    /// The window field of data segments should carry the sender's window (TCP-DCA). Only a SYN-ACK agrees to it.
    pub const TELL_IN_WINDOW: OfferFlags = OfferFlags(64);
    /// The consent of a SYN-ACK: its end reads the peer's window field as cwnd.
    pub const USE_IN_WINDOW: OfferFlags = OfferFlags(128);

    /// Returns whether all bits of `other` are set.
    pub const fn contains(self, other: OfferFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for OfferFlags {
    type Output = OfferFlags;

    fn bitor(self, rhs: OfferFlags) -> OfferFlags {
        OfferFlags(self.0 | rhs.0)
    }
}

/// The notes of one end; each field only if it was negotiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Notes {
    /// The sender's window in segments.
    pub cwnd: Option<u16>,
    /// Duplicate ACKs in a row, so that the loss of one does not matter.
    pub dup_count: Option<u8>,
    /// Segments until the sender wants an ACK, this one included.
    pub ack_after: Option<u8>,
}

/// The peer's request for a rate of ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateRequest {
    /// On a SYN: this end understands requests.
    Offer,
    /// One ACK for this many segments, at most 127; 0 requests a single ACK at once.
    Ask(u8),
}

const NOTE_CWND: u8 = 1;
const NOTE_DUP_COUNT: u8 = 2;
const NOTE_ACK_AFTER: u8 = 4;

impl HopwiseOption {
    /// Parses a whole option, kind and length included. SYN alone decides which of the two forms it is.
    pub(super) fn parse(option: &[u8], flags: Flags) -> Option<HopwiseOption> {
        let [_, _, exid0, exid1, bits, fields @ ..] = option else { return None };
        if [*exid0, *exid1] != EXID_HOPWISE {
            return None;
        }
        if flags.contains(Flags::SYN) {
            return fields.is_empty().then_some(HopwiseOption::Offer(OfferFlags(*bits)));
        }
        Notes::parse(*bits, fields).map(HopwiseOption::Notes)
    }

    pub(super) fn len(self) -> usize {
        HOPWISE_FIXED_LEN
            + match self {
                HopwiseOption::Offer(_) => 0,
                HopwiseOption::Notes(notes) => notes.len(),
            }
    }

    /// The option, and the number of bytes that it takes.
    pub(super) fn bytes(self) -> ([u8; MAX_HOPWISE_LEN], usize) {
        let mut bytes = [0; MAX_HOPWISE_LEN];
        let len = self.len();
        let [exid0, exid1] = EXID_HOPWISE;
        bytes[..4].copy_from_slice(&[KIND_HOPWISE, as_u8(len), exid0, exid1]);
        match self {
            HopwiseOption::Offer(flags) => bytes[4] = flags.0,
            HopwiseOption::Notes(notes) => {
                bytes[4] = notes.present();
                notes.write(&mut bytes[HOPWISE_FIXED_LEN..]);
            }
        }
        (bytes, len)
    }
}

impl Notes {
    /// Parses the fields in the order of their bits; other content is an error.
    fn parse(present: u8, mut fields: &[u8]) -> Option<Notes> {
        if present & !(NOTE_CWND | NOTE_DUP_COUNT | NOTE_ACK_AFTER) != 0 {
            return None;
        }
        let mut notes = Notes::default();
        if present & NOTE_CWND != 0 {
            let (cwnd, rest) = fields.split_first_chunk::<2>()?;
            notes.cwnd = Some(u16::from_be_bytes(*cwnd));
            fields = rest;
        }
        if present & NOTE_DUP_COUNT != 0 {
            let (dup_count, rest) = fields.split_first()?;
            notes.dup_count = Some(*dup_count);
            fields = rest;
        }
        if present & NOTE_ACK_AFTER != 0 {
            let (segments, rest) = fields.split_first()?;
            notes.ack_after = Some(*segments);
            fields = rest;
        }
        fields.is_empty().then_some(notes)
    }

    fn present(self) -> u8 {
        let bit = |is_there: bool, bit: u8| if is_there { bit } else { 0 };
        bit(self.cwnd.is_some(), NOTE_CWND)
            | bit(self.dup_count.is_some(), NOTE_DUP_COUNT)
            | bit(self.ack_after.is_some(), NOTE_ACK_AFTER)
    }

    fn len(self) -> usize {
        2 * usize::from(self.cwnd.is_some())
            + usize::from(self.dup_count.is_some())
            + usize::from(self.ack_after.is_some())
    }

    fn write(self, fields: &mut [u8]) {
        let cwnd = self.cwnd.map(u16::to_be_bytes);
        let values = cwnd.iter().flatten().chain(&self.dup_count).chain(&self.ack_after);
        for (place, value) in fields.iter_mut().zip(values) {
            *place = *value;
        }
    }
}

impl RateRequest {
    /// Parses a whole option, kind and length included.
    pub(super) fn parse(option: &[u8], flags: Flags) -> Option<RateRequest> {
        let [_, _, exid0, exid1, rate @ ..] = option else { return None };
        if [*exid0, *exid1] != EXID_RATE_REQUEST {
            return None;
        }
        match (flags.contains(Flags::SYN), rate) {
            (true, []) => Some(RateRequest::Offer),
            // The lowest bit is not part of the rate.
            (false, [rate]) => Some(RateRequest::Ask(rate >> 1)),
            _ => None,
        }
    }

    pub(super) fn len(self) -> usize {
        match self {
            RateRequest::Offer => 4,
            RateRequest::Ask(_) => 5,
        }
    }

    /// The option, and the number of bytes that it takes.
    pub(super) fn bytes(self) -> ([u8; MAX_RATE_REQUEST_LEN], usize) {
        let [exid0, exid1] = EXID_RATE_REQUEST;
        let rate = match self {
            RateRequest::Offer => 0,
            RateRequest::Ask(rate) => rate << 1,
        };
        ([KIND_RATE_REQUEST, as_u8(self.len()), exid0, exid1, rate], self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_are_bits_that_are_answered_by_what_both_have() {
        let all = [
            OfferFlags::TELL_CWND,
            OfferFlags::USE_CWND,
            OfferFlags::TELL_DUP_COUNT,
            OfferFlags::USE_DUP_COUNT,
            OfferFlags::TELL_ACK_AFTER,
            OfferFlags::USE_ACK_AFTER,
            OfferFlags::TELL_IN_WINDOW,
            OfferFlags::USE_IN_WINDOW,
        ];
        for (bit, flag) in all.into_iter().enumerate() {
            assert_eq!(flag.0, 1 << bit);
        }
        let ours = OfferFlags::TELL_CWND | OfferFlags::USE_CWND;
        let theirs = OfferFlags::USE_CWND | OfferFlags::USE_ACK_AFTER;
        assert!(ours.contains(OfferFlags::USE_CWND));
        assert!(!ours.contains(theirs));
        assert!(ours.contains(OfferFlags::default()));
    }
}
