//! Numbers of one direction, as both ends have told them, and which segments can be theirs.
//!
//! Addresses and ports of a flow can be guessed. A segment is not believed with numbers that its end cannot send.

use hopwise_core::Seq;

/// No window is larger (RFC 7323 §2.3).
const LARGEST_WINDOW: u32 = 1 << 30;

#[derive(Debug, Default)]
pub(super) struct Way {
    /// One past the highest number that was sent (SND.NXT).
    end: Option<Seq>,
    /// The highest number that was acknowledged (SND.UNA).
    acked: Option<Seq>,
    /// The rightmost edge of a window, where the scale is known.
    edge: Option<Seq>,
    /// The widest window (MAX.SND.WND).
    widest: u32,
    /// The last that its sender sent and that did not fit: where it begins and ends.
    claim: Option<(Seq, Seq)>,
}

impl Way {
    /// The receiver takes nothing beyond its window, and may see again what it has (RFC 9293 §3.10.7.4).
    pub(super) fn can_be_sent(&self, seq: Seq) -> bool {
        let Some(acked) = self.acked else { return true };
        let edge = self.edge.unwrap_or(acked + LARGEST_WINDOW);
        acked - self.reach() <= seq && seq <= edge
    }

    /// Nobody acknowledges what was not sent, and what is older than a window is not believed (RFC 5961 §5.2).
    pub(super) fn can_be_acknowledged(&self, ack: Seq) -> bool {
        let Some(end) = self.end else { return true };
        let oldest = self.acked.map_or(end - LARGEST_WINDOW, |acked| acked - self.reach());
        oldest <= ack && ack <= end
    }

    /// Something was sent.
    pub(super) fn is_known(&self) -> bool {
        self.end.is_some()
    }

    fn reach(&self) -> u32 {
        self.widest.max(u16::MAX.into())
    }

    pub(super) fn sent(&mut self, end: Seq) {
        self.end = Some(self.end.map_or(end, |known| known.max(end)));
    }

    /// With a window of so many bytes, where the scale is known.
    pub(super) fn acknowledged(&mut self, ack: Seq, window: Option<u32>) {
        self.acked = Some(self.acked.map_or(ack, |known| known.max(ack)));
        let Some(window) = window else { return };
        self.widest = self.widest.max(window);
        let edge = ack + window;
        self.edge = Some(self.edge.map_or(edge, |known| known.max(edge)));
    }

    /// What did not fit was sent.
    pub(super) fn claim(&mut self, seq: Seq, end: Seq) {
        self.claim = Some((seq, end));
    }

    /// Both ends say the same where neither fits: packets have passed by, and numbers go on from here. Whether they do.
    pub(super) fn agree(&mut self, ack: Seq) -> bool {
        let Some((_, end)) = self.claim.filter(|(seq, end)| *seq < ack && ack <= *end) else { return false };
        *self = Way { end: Some(end), acked: Some(ack), ..Way::default() };
        true
    }

    /// What is known of it no longer holds, and it goes on with this number.
    pub(super) fn restart(&mut self, seq: Seq) {
        *self = Way { end: Some(seq), acked: Some(seq), ..Way::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 bytes are in flight, across the wrap, and the window has room for 100 more.
    fn way() -> Way {
        let mut way = Way::default();
        way.sent(Seq(500));
        way.acknowledged(Seq(u32::MAX - 499), Some(1_100));
        way
    }

    #[test]
    fn numbers_that_an_end_can_send_are_told_from_others() {
        let way = way();
        for (seq, fits) in [(0, true), (u32::MAX - 60_000, true), (600, true), (601, false), (1 << 31, false)]
        {
            assert_eq!(way.can_be_sent(Seq(seq)), fits, "{seq}");
        }
        for (ack, fits) in [(500, true), (501, false), (u32::MAX - 60_000, true), (u32::MAX - 70_000, false)]
        {
            assert_eq!(way.can_be_acknowledged(Seq(ack)), fits, "{ack}");
        }
        let unknown = Way::default();
        assert!(unknown.can_be_sent(Seq(7)) && unknown.can_be_acknowledged(Seq(7)));
    }

    #[test]
    fn where_both_ends_say_the_same_numbers_go_on_from_there() {
        let mut way = way();
        assert!(!way.agree(Seq(90_000)));
        way.claim(Seq(90_000), Seq(91_000));
        for ack in [89_999, 90_000, 91_001] {
            assert!(!way.agree(Seq(ack)), "{ack}");
        }
        assert!(way.agree(Seq(90_500)));
        assert!(way.can_be_acknowledged(Seq(91_000)) && !way.can_be_acknowledged(Seq(91_001)));
    }
}
