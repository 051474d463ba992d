//! Rate limits of answers: ICMP errors (RFC 4443 §2.4 f), echo replies, challenge ACKs.

use crate::Instant;

const TOKEN: u64 = 1_000_000_000;

/// The result of taking a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Taken {
    /// A token was left and is used up: the answer may leave.
    Granted,
    /// No token is left: the answer is dropped.
    Refused,
}

/// Tokens come at a steady rate, and up to `burst` of them wait. It begins full.
///
/// The credit is counted in billionths of a token, and a nanosecond adds `per_second` of those. No call therefore
/// causes a rounding error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenBucket {
    per_second: u32,
    full: u64,
    credit: u64,
    counted_to: Instant,
}

impl TokenBucket {
    /// With a rate of 0, only the first `burst` tokens are ever granted.
    pub(crate) const fn new(per_second: u32, burst: u32) -> TokenBucket {
        let full = burst as u64 * TOKEN;
        TokenBucket { per_second, full, credit: full, counted_to: Instant::ZERO }
    }

    /// The proposal of RFC 4443 §2.4 f for errors of a small device: ten a second, ten at once.
    pub(crate) const fn for_icmp_errors() -> TokenBucket {
        TokenBucket::new(10, 10)
    }

    /// Is called before each answer. A `now` before an earlier one earns nothing.
    pub(crate) fn take(&mut self, now: Instant) -> Taken {
        let elapsed_ns = now.0.saturating_sub(self.counted_to.0);
        let earned = elapsed_ns.saturating_mul(u64::from(self.per_second));
        self.credit = self.credit.saturating_add(earned).min(self.full);
        self.counted_to = self.counted_to.max(now);
        match self.credit.checked_sub(TOKEN) {
            Some(rest) => {
                self.credit = rest;
                Taken::Granted
            }
            None => Taken::Refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_burst_is_granted_and_no_more() {
        let mut bucket = TokenBucket::new(1, 3);
        let granted = (0..10).filter(|_| bucket.take(Instant::ZERO) == Taken::Granted).count();
        assert_eq!(granted, 3);
    }

    #[test]
    fn a_token_comes_exactly_when_its_time_has_passed() {
        let mut bucket = TokenBucket::new(3, 1);
        assert_eq!(bucket.take(Instant::ZERO), Taken::Granted);
        assert_eq!(bucket.take(Instant(333_333_333)), Taken::Refused);
        assert_eq!(bucket.take(Instant(333_333_334)), Taken::Granted);
    }

    #[test]
    fn a_long_pause_fills_it_only_to_the_burst() {
        let mut bucket = TokenBucket::new(u32::MAX, 2);
        let granted = (0..10).filter(|_| bucket.take(Instant::FAR) == Taken::Granted).count();
        assert_eq!(granted, 2);
    }

    #[test]
    fn without_rate_or_burst_nothing_is_granted_for_long() {
        let mut none = TokenBucket::new(10, 0);
        assert_eq!(none.take(Instant::from_secs(9)), Taken::Refused);
        let mut once = TokenBucket::new(0, 1);
        assert_eq!(once.take(Instant::ZERO), Taken::Granted);
        assert_eq!(once.take(Instant::FAR), Taken::Refused);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn never_more_than_burst_and_what_the_time_brings(
            per_second in 0u32..2_000,
            burst in 0u32..50,
            steps_us in proptest::collection::vec(0u64..5_000, 1..300),
        ) {
            let mut bucket = TokenBucket::new(per_second, burst);
            let (mut now_us, mut granted) = (0u64, 0u64);
            for step_us in steps_us {
                now_us += step_us;
                granted += u64::from(bucket.take(Instant::from_micros(now_us)) == Taken::Granted);
                prop_assert!(granted <= u64::from(burst) + now_us * u64::from(per_second) / 1_000_000);
            }
        }
    }
}
