//! The sequence numbers of one direction, as both ends have sent them, and the segments that fit them.
//!
//! Addresses and ports of a flow can be guessed. A segment with numbers that its end cannot send is not believed.

use hopwise_core::Seq;

/// The largest window (RFC 7323 §2.3).
const LARGEST_WINDOW: u32 = 1 << 30;
/// The largest number of misfits. A host that knows no numbers needs as many segments for each one of the sender to
/// have the sender's misfit forgotten.
const MOST_MISFITS: usize = 4;

#[derive(Debug, Default)]
pub(super) struct SendSpace {
    /// The number of its SYN, until the other end has acknowledged it (ISS).
    syn: Option<Seq>,
    /// Its end has sent something else than the SYN.
    has_gone_on: bool,
    /// One past the highest number that was sent (SND.NXT).
    end: Option<Seq>,
    /// The highest number that was acknowledged (SND.UNA).
    acked: Option<Seq>,
    /// The rightmost edge of a window, once the scale is known.
    edge: Option<Seq>,
    /// The widest window (MAX.SND.WND).
    widest: u32,
    /// Gapless data of its sender that did not fit: its beginning and its end. The latest comes first.
    misfits: [Option<(Seq, Seq)>; MOST_MISFITS],
}

impl SendSpace {
    /// The receiver takes data only within its window, and may see acknowledged data again (RFC 9293 §3.10.7.4). Before
    /// it has acknowledged the SYN, only the SYN and gapless data behind it are believed.
    pub(super) fn can_be_sent(&self, seq: Seq) -> bool {
        let (oldest, newest) = match (self.syn, self.acked, self.end) {
            (Some(syn), _, end) => (syn, end.unwrap_or(syn)),
            (None, Some(acked), _) => (acked - self.reach(), self.edge.unwrap_or(acked + LARGEST_WINDOW)),
            // Each number may be made up. The next ACK fits all that are so close to each other.
            (None, None, Some(end)) => (end - LARGEST_WINDOW / 2, end + LARGEST_WINDOW / 2),
            (None, None, None) => return true,
        };
        oldest <= seq && seq <= newest
    }

    /// An end acknowledges only data that was sent. ACKs older than a window are not believed (RFC 5961 §5.2), nor is
    /// an ACK that excludes the SYN (RFC 9293 §3.10.7.3).
    pub(super) fn can_be_acknowledged(&self, ack: Seq) -> bool {
        let (oldest, newest) = match (self.syn, self.acked, self.end) {
            (Some(syn), _, end) => (syn + 1, end.unwrap_or(syn)),
            (None, Some(acked), end) => (acked - self.reach(), end.unwrap_or(acked + LARGEST_WINDOW)),
            (None, None, Some(end)) => (end - LARGEST_WINDOW, end),
            (None, None, None) => return true,
        };
        oldest <= ack && ack <= newest
    }

    /// Returns whether this may be the receiver's next number (RCV.NXT), as far as is known. It is the last
    /// acknowledged number, or the end of all sent data.
    pub(super) fn is_next(&self, seq: Seq) -> bool {
        self.acked.is_none_or(|acked| acked == seq) || self.end == Some(seq)
    }

    /// Returns whether it has sent something.
    pub(super) fn is_known(&self) -> bool {
        self.end.is_some()
    }

    /// Returns whether further SYNs have no effect.
    pub(super) fn is_settled(&self) -> bool {
        self.has_gone_on || self.acked.is_some()
    }

    /// Returns whether its SYN was sent, but not acknowledged.
    pub(super) fn is_unanswered(&self) -> bool {
        self.syn.is_some()
    }

    /// Returns whether it has sent something else than a SYN.
    pub(super) fn has_gone_on(&self) -> bool {
        self.has_gone_on
    }

    fn reach(&self) -> u32 {
        self.widest.max(u16::MAX.into())
    }

    /// Starts with this SYN. Returns whether other numbers were known, which are void now.
    pub(super) fn begin(&mut self, syn: Seq) -> bool {
        if self.syn == Some(syn) {
            return false;
        }
        let was_known = self.is_known();
        *self = SendSpace { syn: Some(syn), ..SendSpace::default() };
        was_known
    }

    /// Notes a segment that fits, so that misfits no longer count.
    pub(super) fn sent(&mut self, end: Seq) {
        self.misfits = Default::default();
        self.end = Some(self.end.map_or(end, |known| known.max(end)));
    }

    /// Notes that it has sent something else than a SYN.
    pub(super) fn go_on(&mut self) {
        self.has_gone_on = true;
    }

    /// Notes an ACK, and its window in bytes if the scale is known.
    pub(super) fn acknowledged(&mut self, ack: Seq, window: Option<u32>) {
        self.syn = None;
        self.acked = Some(self.acked.map_or(ack, |known| known.max(ack)));
        let Some(window) = window else { return };
        self.widest = self.widest.max(window);
        let edge = ack + window;
        self.edge = Some(self.edge.map_or(edge, |known| known.max(edge)));
    }

    /// Notes a segment that did not fit. It joins an earlier misfit, unless there is a gap between them.
    pub(super) fn note_misfit(&mut self, seq: Seq, end: Seq) {
        let touches =
            |misfit: &Option<(Seq, Seq)>| misfit.is_some_and(|(first, last)| seq <= last && first <= end);
        let joined = self.misfits.iter().position(touches);
        let misfit = joined.and_then(|place| self.misfits[place]);
        let (first, last) = misfit.map_or((seq, end), |(first, last)| (first.min(seq), last.max(end)));
        self.misfits[..=joined.unwrap_or(MOST_MISFITS - 1)].rotate_right(1);
        self.misfits[0] = Some((first.max(last - LARGEST_WINDOW), last));
    }

    /// Returns whether the other end acknowledges claimed data. Packets have then passed by, and numbers continue from
    /// here.
    pub(super) fn agree(&mut self, ack: Seq) -> bool {
        let mut misfits = self.misfits.iter().flatten();
        let Some((_, end)) = misfits.find(|(seq, end)| *seq < ack && ack <= *end) else { return false };
        *self = SendSpace { end: Some(*end), acked: Some(ack), ..SendSpace::default() };
        true
    }

    /// Forgets the known numbers, and continues with this one.
    pub(super) fn restart(&mut self, seq: Seq) {
        *self = SendSpace { end: Some(seq), acked: Some(seq), ..SendSpace::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 bytes are in flight, across the wrap, and the window has room for 100 more.
    fn space() -> SendSpace {
        let mut space = SendSpace::default();
        space.sent(Seq(500));
        space.acknowledged(Seq(u32::MAX - 499), Some(1_100));
        space
    }

    #[test]
    fn numbers_that_an_end_can_send_are_told_from_others() {
        let space = space();
        for (seq, fits) in [(0, true), (u32::MAX - 60_000, true), (600, true), (601, false), (1 << 31, false)]
        {
            assert_eq!(space.can_be_sent(Seq(seq)), fits, "{seq}");
        }
        for (ack, fits) in [(500, true), (501, false), (u32::MAX - 60_000, true), (u32::MAX - 70_000, false)]
        {
            assert_eq!(space.can_be_acknowledged(Seq(ack)), fits, "{ack}");
        }
        let unknown = SendSpace::default();
        assert!(unknown.can_be_sent(Seq(7)) && unknown.can_be_acknowledged(Seq(7)));
    }

    #[test]
    fn where_both_ends_say_the_same_numbers_go_on_from_there() {
        let mut space = space();
        assert!(!space.agree(Seq(90_000)));
        space.note_misfit(Seq(90_000), Seq(91_000));
        for ack in [89_999, 90_000, 91_001] {
            assert!(!space.agree(Seq(ack)), "{ack}");
        }
        assert!(space.agree(Seq(90_500)));
        assert!(space.can_be_acknowledged(Seq(91_000)) && !space.can_be_acknowledged(Seq(91_001)));
    }

    #[test]
    fn until_a_syn_is_acknowledged_only_what_follows_it_without_a_gap_fits() {
        let mut space = SendSpace::default();
        assert!(!space.begin(Seq(u32::MAX)));
        space.sent(Seq(100));
        for (number, can_be_sent, can_be_acknowledged) in [
            (u32::MAX - 1, false, false),
            (u32::MAX, true, false),
            (0, true, true),
            (100, true, true),
            (101, false, false),
        ] {
            assert_eq!(space.can_be_sent(Seq(number)), can_be_sent, "{number}");
            assert_eq!(space.can_be_acknowledged(Seq(number)), can_be_acknowledged, "{number}");
        }
        assert!(!space.begin(Seq(u32::MAX)) && space.can_be_sent(Seq(100)), "the same SYN");
        assert!(space.begin(Seq(7)) && !space.can_be_sent(Seq(100)), "another");
    }

    #[test]
    fn a_claim_grows_by_what_touches_it_and_no_wider_than_a_window() {
        let mut space = space();
        // Out of order, across the wrap, and once more.
        for seq in [0, u32::MAX - 999, u32::MAX - 1_999, 1_000, 0] {
            space.note_misfit(Seq(seq), Seq(seq) + 1_000);
        }
        assert_eq!(space.misfits[0], Some((Seq(u32::MAX - 1_999), Seq(2_000))));
        space.note_misfit(Seq(2_001), Seq(3_001));
        assert_eq!(space.misfits[0], Some((Seq(2_001), Seq(3_001))), "there was a gap");
        let mut end = Seq(3_001);
        for _ in 0..3 * (LARGEST_WINDOW >> 16) {
            space.note_misfit(end, end + (1 << 16));
            end += 1 << 16;
        }
        assert_eq!(space.misfits[0], Some((end - LARGEST_WINDOW, end)));
        // Its end continues as before: the data that did not fit was made up.
        space.sent(Seq(500));
        assert!(!space.agree(end));
    }
}
