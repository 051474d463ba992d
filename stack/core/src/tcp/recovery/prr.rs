//! Proportional Rate Reduction (RFC 9937). During fast recovery, sending is in proportion to arrivals, so that the
//! window shrinks to ssthresh over one round trip without a stop.

/// All counts are in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prr {
    delivered: u64,
    out: u64,
    /// The bytes that recovery may see delivered (`RecoverFS`).
    flight_at_start: u64,
}

/// The evidence of an ACK during recovery (`SafeACK`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Safety {
    /// It acknowledges new data, and shows no further loss.
    Safe,
    Doubtful,
}

impl Prr {
    pub(crate) fn begin(flight: u64) -> Prr {
        Prr { delivered: 0, out: 0, flight_at_start: flight.max(1) }
    }

    pub(crate) fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// Bytes that recovery has yet to see delivered. Without SACK, more duplicate ACKs than these are forged (RFC 9937
    /// §6.2).
    pub(crate) fn undelivered(&self) -> u64 {
        self.flight_at_start.saturating_sub(self.delivered)
    }

    /// The bytes that may be in flight after an ACK that delivered `delivered` and left `pipe`.
    pub(crate) fn on_ack(
        &mut self,
        delivered: u64,
        safety: Safety,
        pipe: u64,
        ssthresh: u64,
        mss: u64,
    ) -> u64 {
        self.delivered += delivered;
        let send = if pipe > ssthresh {
            (self.delivered * ssthresh).div_ceil(self.flight_at_start).saturating_sub(self.out)
        } else {
            // As many bytes leave as arrive, plus a segment while all goes well (the reduction bounds).
            let conserved = self.delivered.saturating_sub(self.out).max(delivered);
            let limit = conserved + if safety == Safety::Safe { mss } else { 0 };
            (ssthresh - pipe).min(limit)
        };
        // The first retransmission leaves at once; otherwise the ACKs might stop.
        let send = if self.out == 0 { send.max(mss) } else { send };
        pipe + send
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    /// Twenty segments in flight, one lost, ssthresh at half: ACKs come for the other nineteen.
    #[test]
    fn half_of_what_arrives_leaves_while_the_pipe_is_above_ssthresh() {
        let (ssthresh, mut pipe, mut sent) = (10 * MSS, 19 * MSS, 0);
        let mut prr = Prr::begin(20 * MSS);
        for _ in 0..19 {
            pipe -= MSS;
            let allowed = prr.on_ack(MSS, Safety::Doubtful, pipe, ssthresh, MSS);
            while pipe + MSS <= allowed {
                pipe += MSS;
                sent += 1;
                prr.on_sent(MSS);
            }
        }
        assert_eq!(pipe, 10 * MSS);
        assert_eq!(sent, 10);
    }

    /// RFC 9937 §6.2 takes the CEIL. Here seven of twenty octets in flight are to stay.
    #[test]
    fn a_part_of_an_octet_that_may_leave_counts_as_a_whole_one() {
        let mut prr = Prr::begin(20);
        let left = (1..=10).map(|_| {
            let octets = prr.on_ack(1, Safety::Doubtful, 15, 7, 1) - 15;
            prr.on_sent(octets);
            octets
        });
        assert_eq!(left.collect::<Vec<_>>(), [1, 0, 1, 0, 0, 1, 0, 0, 1, 0]);
    }

    /// Fifteen of twenty segments are lost (RFC 9937 §8, the second example).
    #[test]
    fn after_a_heavy_loss_what_arrives_leaves_and_one_more_while_all_goes_well() {
        for (safety, each) in [(Safety::Doubtful, MSS), (Safety::Safe, 2 * MSS)] {
            let (ssthresh, mut pipe) = (10 * MSS, 5 * MSS);
            let mut prr = Prr::begin(20 * MSS);
            for _ in 0..3 {
                pipe -= MSS;
                let allowed = prr.on_ack(MSS, safety, pipe, ssthresh, MSS);
                assert_eq!(allowed - pipe, each, "{safety:?}");
                prr.on_sent(allowed - pipe);
                pipe = allowed;
            }
        }
    }

    #[test]
    fn never_more_than_ssthresh_and_the_first_segment_at_once() {
        let mut prr = Prr::begin(20 * MSS);
        assert_eq!(prr.on_ack(0, Safety::Doubtful, 15 * MSS, 10 * MSS, MSS), 16 * MSS);
        prr.on_sent(MSS);
        assert_eq!(prr.on_ack(9 * MSS, Safety::Safe, 9 * MSS, 10 * MSS, MSS), 10 * MSS);
        assert_eq!(prr.undelivered(), 11 * MSS);
    }
}
