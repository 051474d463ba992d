//! Window inflation of RFC 6582 §3.2, for the compatible profile. Each duplicate ACK inflates the window by one
//! segment, which has left the network. A partial ACK deflates it by the acknowledged bytes, less one segment.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inflate {
    inflation: u64,
    per_ack: u8,
    /// Segments that may still leave for the current ACK.
    credit: u8,
    /// The lost segment leaves at once, whatever the window is (RFC 5681 §3.2 step 3, RFC 6582 §3.2).
    owes_resend: bool,
}

impl Inflate {
    pub(crate) fn begin(dup_acks: u32, mss: u64, per_ack: u8) -> Inflate {
        Inflate { inflation: u64::from(dup_acks) * mss, per_ack, credit: per_ack, owes_resend: true }
    }

    pub(crate) fn on_dup_ack(&mut self, mss: u64) {
        self.inflation += mss;
        self.credit = self.per_ack;
    }

    pub(crate) fn on_partial_ack(&mut self, acked: u64, mss: u64) {
        self.inflation = self.inflation.saturating_sub(acked.saturating_sub(mss));
        self.credit = self.per_ack;
        self.owes_resend = true;
    }

    pub(crate) fn on_sent(&mut self) {
        self.credit = self.credit.saturating_sub(1);
        self.owes_resend = false;
    }

    pub(crate) fn window(&self, ssthresh: u64, pipe: u64, mss: u64) -> u64 {
        let inflated = ssthresh.saturating_add(self.inflation);
        if self.owes_resend { inflated.max(pipe + mss) } else { inflated }
    }

    pub(crate) fn may_send(&self) -> bool {
        self.credit > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_ack_takes_off_what_it_acknowledged_less_one() {
        let mut inflate = Inflate::begin(3, 1000, 2);
        assert_eq!(inflate.window(5000, 0, 1000), 8000);
        inflate.on_partial_ack(3000, 1000);
        assert_eq!(inflate.window(5000, 0, 1000), 6000);
        inflate.on_partial_ack(1000, 1000);
        assert_eq!(inflate.window(5000, 0, 1000), 6000);
    }

    #[test]
    fn what_was_found_lost_leaves_whatever_is_in_flight() {
        let mut inflate = Inflate::begin(3, 1000, 2);
        assert_eq!(inflate.window(5000, 9000, 1000), 10_000);
        inflate.on_sent();
        assert_eq!(inflate.window(5000, 10_000, 1000), 8000);
        inflate.on_partial_ack(1000, 1000);
        assert_eq!(inflate.window(5000, 9000, 1000), 10_000);
    }

    #[test]
    fn two_segments_leave_for_an_ack() {
        let mut inflate = Inflate::begin(3, 1000, 2);
        inflate.on_sent();
        assert!(inflate.may_send());
        inflate.on_sent();
        assert!(!inflate.may_send());
        inflate.on_dup_ack(1000);
        assert!(inflate.may_send());
    }
}
