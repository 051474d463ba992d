//! The airtime link metric (IEEE 802.11-2020, 14.9): the time that a frame of 1 KiB takes on a link, its retries
//! included. Linux counts it in microseconds, from averages over frames that were sent.

/// A moving average, with fractional bits as in Linux's `DECLARE_EWMA`: rounding down is a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Average<const FRACTION_BITS: u32, const WEIGHT_BITS: u32>(u64);

impl<const FRACTION_BITS: u32, const WEIGHT_BITS: u32> Average<FRACTION_BITS, WEIGHT_BITS> {
    /// Averages that begin with this value.
    pub(super) fn begin(value: u32) -> Self {
        Average(u64::from(value) << FRACTION_BITS)
    }

    /// The new value counts 1/2^`WEIGHT_BITS`. An average of exactly 0 takes it whole.
    pub(super) fn add(&mut self, value: u32) {
        let value = u64::from(value) << FRACTION_BITS;
        self.0 = if self.0 == 0 { value } else { ((self.0 << WEIGHT_BITS) - self.0 + value) >> WEIGHT_BITS };
    }

    pub(super) fn read(self) -> u32 {
        u32::try_from(self.0 >> FRACTION_BITS).unwrap_or(u32::MAX)
    }
}

/// The metric of a link that carries nothing.
pub(super) const WORST: u32 = u32::MAX;

/// Lost frames in percent, and the rate in steps of 100 kbit/s.
type Losses = Average<20, 3>;
type RateAverage = Average<8, 4>;

/// Percent of lost frames with which a new path begins.
const FIRST_LOSSES: u32 = 1;
/// The test frame, in bits.
const TEST_BITS: u64 = 8_192;
/// Fractional bits of the computation.
const FRACTION: u32 = 8;

/// The link to a neighbour as a node knows it, by the frames that it sent there.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkMetric {
    losses: Losses,
    rate: RateAverage,
    /// The rate before a frame was acknowledged, in steps of 100 kbit/s.
    first: u32,
}

impl LinkMetric {
    /// A link without frames so far, whose first ones leave at this rate. The first one that is acknowledged is the
    /// whole average of rates.
    pub(super) fn new(first_kbps: u32) -> LinkMetric {
        LinkMetric {
            losses: Losses::begin(FIRST_LOSSES),
            rate: RateAverage::begin(0),
            first: first_kbps.div_ceil(100),
        }
    }

    /// A path over the link is new. Losses before it count no more.
    pub(super) fn begin_path(&mut self) {
        self.losses = Losses::begin(FIRST_LOSSES);
    }

    pub(super) fn note_delivered(&mut self, kbps: u32) {
        self.losses.add(0);
        self.rate.add(kbps / 100);
    }

    pub(super) fn note_lost(&mut self) {
        self.losses.add(100);
    }

    /// Percent of lost frames.
    pub(super) fn losses(&self) -> u32 {
        self.losses.read()
    }

    /// The metric of the link. Above this many percent of lost frames it carries nothing.
    pub(super) fn metric(&self, most_losses: u8) -> u32 {
        let rate = Some(self.rate.read()).filter(|rate| *rate > 0).unwrap_or(self.first);
        let (losses, rate) = (u64::from(self.losses()), u64::from(rate));
        if losses > u64::from(most_losses) || losses >= 100 || rate == 0 {
            return WORST;
        }
        let one = 1 << FRACTION;
        let time = one + 10 * (TEST_BITS << FRACTION) / rate;
        let tries = (one * one) / (one - (losses << FRACTION) / 100);
        u32::try_from((time * tries) >> (2 * FRACTION)).unwrap_or(WORST)
    }
}

/// Returns whether a path over another neighbour is better by more than a tenth of its own metric. A smaller gain is
/// not worth a change.
pub(super) fn is_clearly_better(metric: u32, than: u32) -> bool {
    metric < than && metric < than - metric / 10
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 + 81,920 / rate in 100 kbit/s, times 1 / (1 - losses), in steps of 1/256 that are cut off.
    #[test]
    fn a_link_costs_the_airtime_of_a_frame_and_of_its_retries() {
        let metric = |kbps, lost: u32, sent: u32| {
            let mut link = LinkMetric::new(kbps);
            (0..sent).for_each(|_| link.note_delivered(kbps));
            (0..lost).for_each(|_| link.note_lost());
            link.metric(95)
        };
        assert_eq!(
            [1_000, 2_000, 11_000, 54_000, 65_000].map(|kbps| metric(kbps, 0, 9)),
            [8_193, 4_097, 745, 152, 127]
        );
        // One loss in the average makes 12 %, two 23 %, three 33 %.
        assert_eq!([1, 2, 3].map(|lost| metric(11_000, lost, 20)), [841, 961, 1_109]);
        assert_eq!(metric(11_000, 40, 20), WORST);
    }

    /// The average falls to 0 after 93 frames, and an average of 0 takes the next value whole.
    #[test]
    fn the_first_loss_after_a_long_time_without_one_is_the_whole_average() {
        let losses_after = |delivered| {
            let mut link = LinkMetric::new(11_000);
            (0..delivered).for_each(|_| link.note_delivered(11_000));
            link.note_lost();
            link.losses()
        };
        assert_eq!([0, 50, 92].map(losses_after), [13, 12, 12]);
        assert_eq!([93, 1_000].map(losses_after), [100, 100]);
    }

    #[test]
    fn another_neighbour_has_to_be_better_by_a_tenth() {
        let is_better = |metric| is_clearly_better(metric, 1_100);
        assert_eq!([900, 1_000, 1_001, 1_100, 1_200].map(is_better), [true, false, false, false, false]);
        assert!(is_clearly_better(1, WORST) && !is_clearly_better(WORST, WORST));
    }
}
