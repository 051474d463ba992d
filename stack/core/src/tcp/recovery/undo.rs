//! The memory of a loss that allows undo: Eifel detection by timestamps (RFC 3522), D-SACK (RFC 3708) and F-RTO (RFC
//! 5682).

use arrayvec::ArrayVec;

use crate::Seq;

/// The most retransmissions that are remembered one by one. Beyond them D-SACK proves nothing.
const MOST_UNEXPLAINED: usize = 8;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Undo {
    /// The number and timestamp of the first retransmission since the loss, if that was the segment at `snd_una`.
    first_resend: Option<(Seq, u32)>,
    has_resent: bool,
    /// First numbers of the retransmissions that no D-SACK has named so far.
    unexplained: ArrayVec<Seq, MOST_UNEXPLAINED>,
    has_more: bool,
    pub(crate) is_open: bool,
    pub(crate) has_timed_out: bool,
    /// Set when recovery is over: once this number is acknowledged, no retransmission can be in flight.
    pub(crate) until: Option<Seq>,
}

impl Undo {
    /// Begins with a loss, which may turn out to be none.
    pub(crate) fn begin() -> Undo {
        Undo { is_open: true, ..Undo::default() }
    }

    pub(crate) fn on_resent(&mut self, seq: Seq, snd_una: Seq, ts_value: u32) {
        if self.is_open && self.until.is_none() {
            if !self.has_resent && seq == snd_una {
                self.first_resend = Some((seq, ts_value));
            }
            self.has_resent = true;
            self.has_more |= self.unexplained.try_push(seq).is_err();
        }
    }

    /// Returns whether an ACK of the first retransmission echoes an older timestamp: the first copy had arrived (RFC
    /// 3522 §3.2). If another segment was retransmitted first, `snd_una` belongs to an earlier recovery's
    /// retransmission. Its timestamp is older in any case, and proves nothing.
    pub(crate) fn is_denied_by_echo(&self, snd_una: Seq, echo: u32) -> bool {
        let is_older = |(seq, ts): (Seq, u32)| seq < snd_una && (echo.wrapping_sub(ts) as i32) < 0;
        self.is_open && self.first_resend.is_some_and(is_older)
    }

    /// Takes a D-SACK. Returns whether all retransmissions have now been named. A copy that the network itself made
    /// proves nothing.
    pub(crate) fn is_denied_by_dsack(&mut self, (left, right): (Seq, Seq)) -> bool {
        let named = self.unexplained.iter().position(|seq| left <= *seq && *seq < right);
        let Some(named) = named.filter(|_| self.is_open) else { return false };
        self.unexplained.remove(named);
        self.unexplained.is_empty() && !self.has_more
    }

    pub(crate) fn passed(&mut self, una: Seq) {
        self.is_open &= self.until.is_none_or(|until| una <= until);
    }
}

/// F-RTO: after a timeout, two new segments test whether the ACKs were only late (RFC 5682 §2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Frto {
    #[default]
    Off,
    /// The first unacknowledged segment was retransmitted; the next ACK decides.
    FirstAck,
    /// The ACK brought news. Up to this many new segments leave instead of old ones, and the next ACK decides.
    SecondAck { new_left: u8 },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_echo_denies_the_loss() {
        let mut undo = Undo::begin();
        undo.on_resent(Seq(1), Seq(1), 1000);
        undo.on_resent(Seq(2), Seq(1), 1010);
        assert!(undo.is_denied_by_echo(Seq(2), 999));
        assert!(!undo.is_denied_by_echo(Seq(2), 1000));
        assert!(!undo.is_denied_by_echo(Seq(1), 999), "not of what was sent again");
        undo.is_open = false;
        assert!(!undo.is_denied_by_echo(Seq(2), 999));
    }

    #[test]
    fn an_echo_says_nothing_where_an_earlier_resend_is_waited_for() {
        let mut undo = Undo::begin();
        undo.on_resent(Seq(500), Seq(1), 1000);
        undo.on_resent(Seq(1), Seq(1), 1010);
        assert!(!undo.is_denied_by_echo(Seq(600), 999));
    }

    #[test]
    fn the_loss_is_denied_when_every_resend_was_a_duplicate() {
        let mut undo = Undo::begin();
        undo.on_resent(Seq(100), Seq(100), 1);
        undo.on_resent(Seq(200), Seq(100), 2);
        assert!(!undo.is_denied_by_dsack((Seq(150), Seq(200))), "was sent once");
        assert!(!undo.is_denied_by_dsack((Seq(100), Seq(150))));
        assert!(!undo.is_denied_by_dsack((Seq(100), Seq(150))), "was named already");
        assert!(undo.is_denied_by_dsack((Seq(200), Seq(250))));
        assert!(!undo.is_denied_by_dsack((Seq(200), Seq(250))));
    }

    #[test]
    fn more_resends_than_are_remembered_leave_the_loss_as_it_is() {
        let mut undo = Undo::begin();
        let seqs: Vec<Seq> = (0..=MOST_UNEXPLAINED as u32).map(|nth| Seq(nth * 100)).collect();
        seqs.iter().for_each(|seq| undo.on_resent(*seq, Seq(0), 1));
        assert!(seqs.iter().all(|seq| !undo.is_denied_by_dsack((*seq, *seq + 100))));
    }

    #[test]
    fn a_recovery_that_lies_a_window_back_is_not_denied_any_more() {
        let mut undo = Undo::begin();
        undo.on_resent(Seq(100), Seq(100), 1);
        undo.until = Some(Seq(1000));
        undo.on_resent(Seq(900), Seq(100), 2);
        undo.passed(Seq(1000));
        let mut late = undo.clone();
        assert!(undo.is_denied_by_dsack((Seq(100), Seq(150))));
        late.passed(Seq(1001));
        assert!(!late.is_denied_by_dsack((Seq(100), Seq(150))));
    }
}
