//! Proportional Rate Reduction (RFC 6937): during fast recovery, what leaves is in proportion to what arrives, so
//! that the window glides down to ssthresh over one round trip instead of stopping.

/// Bytes throughout.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prr {
    delivered: u64,
    out: u64,
    /// Flight when recovery began (`RecoverFS`).
    flight_at_start: u64,
}

impl Prr {
    pub(crate) fn begin(flight: u64) -> Prr {
        Prr { delivered: 0, out: 0, flight_at_start: flight.max(1) }
    }

    pub(crate) fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// What may be in flight after an ACK that delivered `delivered` and left `pipe`.
    pub(crate) fn on_ack(&mut self, delivered: u64, pipe: u64, ssthresh: u64, mss: u64) -> u64 {
        self.delivered += delivered;
        let send = if pipe > ssthresh {
            (self.delivered * ssthresh).div_ceil(self.flight_at_start).saturating_sub(self.out)
        } else {
            // Slow-start reduction bound: catch up, but no faster than one extra segment an ACK.
            let limit = self.delivered.saturating_sub(self.out).max(delivered) + mss;
            (ssthresh - pipe).min(limit)
        };
        // The first retransmission leaves at once (RFC 6937 §3 lets the entry send one segment).
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
            let allowed = prr.on_ack(MSS, pipe, ssthresh, MSS);
            while pipe + MSS <= allowed {
                pipe += MSS;
                sent += 1;
                prr.on_sent(MSS);
            }
        }
        assert_eq!(pipe, 10 * MSS);
        assert_eq!(sent, 10);
    }

    #[test]
    fn after_a_heavy_loss_the_window_grows_back_without_a_burst() {
        let (ssthresh, mut pipe) = (10 * MSS, 3 * MSS);
        let mut prr = Prr::begin(20 * MSS);
        let mut largest = 0;
        for _ in 0..3 {
            pipe -= MSS;
            let allowed = prr.on_ack(MSS, pipe, ssthresh, MSS);
            largest = largest.max(allowed - pipe);
            prr.on_sent(allowed - pipe);
            pipe = allowed;
        }
        assert!(largest <= 2 * MSS, "{largest}");
    }
}
