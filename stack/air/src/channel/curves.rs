//! Frame errors from SNR, for the rates of ERP-OFDM; `soft.rs` has frame errors of 802.11n.
//!
//! Bits on a subcarrier err as Gray-coded BPSK, QPSK and QAM do under white noise (Proakis, Digital Communications).
//! The decoder's errors are the union bound over the code's distances with hard decisions. Each term is by Chernoff's
//! bound D = √(4p(1 − p)). The weights are of the code (133, 171) and of its punctured forms (Haccoun and Bégin, 1989;
//! Frenger et al., 1999). It is the model of Pei and Henderson, Validation of OFDM error rate model in ns-3 (2010);
//! they compared it with a testbed. Not modelled: preambles and headers that err on their own, soft decisions,
//! frequency-selective fading.

mod soft;

use crate::phy::{BitForm, Rate};

/// A free distance, and the weights of this distance and the following ones, by steps of `step`.
struct ConvolutionalCode {
    first: i32,
    step: i32,
    /// Information bits a step of the trellis.
    bits: f64,
    weights: &'static [f64],
}

static HALF: ConvolutionalCode = ConvolutionalCode {
    first: 10,
    step: 2,
    bits: 1.0,
    weights: &[36.0, 211.0, 1404.0, 11633.0, 77433.0, 502690.0, 3322763.0, 21292910.0, 134365911.0],
};
static TWO_THIRDS: ConvolutionalCode = ConvolutionalCode {
    first: 6,
    step: 1,
    bits: 2.0,
    weights: &[3.0, 70.0, 285.0, 1276.0, 6160.0, 27128.0, 117019.0, 498860.0, 2103891.0, 8784123.0],
};
static THREE_QUARTERS: ConvolutionalCode = ConvolutionalCode {
    first: 5,
    step: 1,
    bits: 3.0,
    weights: &[
        42.0,
        201.0,
        1492.0,
        10469.0,
        62935.0,
        379644.0,
        2253373.0,
        13073811.0,
        75152755.0,
        428005675.0,
    ],
};

/// The values of curves that were computed last. Between stations that stay, few ratios of powers come again and again,
/// and each takes a hundred exponentials.
#[derive(Clone, Debug, Default)]
pub(crate) struct Curves {
    /// By a hash of the ratio and the rate; empty before the first use.
    known: Vec<Option<FrameErrors>>,
}

#[derive(Clone, Copy, Debug)]
struct FrameErrors {
    rate: Rate,
    snr: f64,
    log_of_bit: f64,
}

impl Curves {
    /// The values of a byte.
    const KNOWN: usize = 256;

    /// The probability that a frame of `bytes` has an error, at a ratio of powers.
    pub(crate) fn frame_error(&mut self, rate: Rate, snr: f64, bytes: u32) -> f64 {
        1.0 - self.intact(rate, snr, bits_of(bytes))
    }

    /// The probability that no error is among this number of bits.
    pub(crate) fn intact(&mut self, rate: Rate, snr: f64, bits: f64) -> f64 {
        self.known.resize(Curves::KNOWN, None);
        // Rates of data and of answers meet at equal ratios.
        let key = snr.to_bits() ^ rate.bits_per_second;
        let [hash, ..] = key.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        let place = &mut self.known[usize::from(hash)];
        let log_of_bit = match place {
            Some(known) if (known.rate, known.snr) == (rate, snr) => known.log_of_bit,
            _ => {
                let log_of_bit = log_of_bit(rate, snr);
                *place = Some(FrameErrors { rate, snr, log_of_bit });
                log_of_bit
            }
        };
        libm::exp(bits * log_of_bit)
    }
}

/// The probability that a frame of `bytes` has an error, at a ratio of powers that does not come again.
pub(crate) fn frame_error(rate: Rate, snr: f64, bytes: u32) -> f64 {
    1.0 - libm::exp(bits_of(bytes) * log_of_bit(rate, snr))
}

/// The bits that go with a frame: SERVICE and tail as well.
fn bits_of(bytes: u32) -> f64 {
    f64::from(bytes) * 8.0 + 22.0
}

/// The logarithm of the probability that a bit is right.
fn log_of_bit(rate: Rate, snr: f64) -> f64 {
    let per_bit = match rate.form {
        BitForm::Legacy => bit_error(rate.bits_per_second / 1_000_000, snr),
        BitForm::NonHt | BitForm::Ht(_) | BitForm::Vht(_) => soft::bit_error(rate, snr),
    };
    libm::log1p(-per_bit)
}

fn bit_error(mbps: u64, snr: f64) -> f64 {
    // BPSK, QPSK, 16-QAM and 64-QAM, each with its codes.
    let (part, spread, code) = match mbps {
        6 => (0.5, 1.0, &HALF),
        9 => (0.5, 1.0, &THREE_QUARTERS),
        12 => (0.5, 2.0, &HALF),
        18 => (0.5, 2.0, &THREE_QUARTERS),
        24 => (0.375, 10.0, &HALF),
        36 => (0.375, 10.0, &THREE_QUARTERS),
        48 => (7.0 / 24.0, 42.0, &TWO_THIRDS),
        _ => (7.0 / 24.0, 42.0, &THREE_QUARTERS),
    };
    let raw = part * libm::erfc((snr / spread).sqrt());
    let d = (4.0 * raw * (1.0 - raw)).sqrt();
    let square = if code.step == 2 { d * d } else { d };
    let mut power = (0..code.first).fold(1.0, |power, _| power * d);
    let mut sum = 0.0;
    for weight in code.weights {
        sum += weight * power;
        power *= square;
    }
    (sum / (2.0 * code.bits)).min(0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio_of(db: f64) -> f64 {
        libm::pow(10.0, db / 10.0)
    }

    const RATES: [u64; 8] = [6, 9, 12, 18, 24, 36, 48, 54];

    /// More ratios than are kept, at rates that take turns.
    #[test]
    fn values_that_are_kept_are_those_that_are_computed() {
        let rate = |mbps: u64| Rate { bits_per_second: mbps * 1_000_000, sinr: 0.0, form: BitForm::Legacy };
        let mut curves = Curves::default();
        for turn in 0..3 {
            for quarter in 0..1_000 {
                for mbps in [24, 54] {
                    let (snr, bytes) = (ratio_of(f64::from(quarter) / 40.0), 100 + turn);
                    let kept = curves.frame_error(rate(mbps), snr, bytes);
                    assert_eq!(kept.to_bits(), frame_error(rate(mbps), snr, bytes).to_bits());
                }
            }
        }
    }

    fn at(mbps: u64, db: f64) -> f64 {
        frame_error(
            Rate { bits_per_second: mbps * 1_000_000, sinr: 0.0, form: BitForm::Legacy },
            ratio_of(db),
            1_034,
        )
    }

    #[test]
    fn every_curve_falls_from_one_to_nothing_and_never_rises() {
        for mbps in RATES {
            let curve: Vec<f64> = (-40..160).map(|quarter| at(mbps, f64::from(quarter) / 4.0)).collect();
            assert!(curve[0] > 0.999 && curve[199] < 1e-9, "{mbps}");
            assert!(curve.windows(2).all(|pair| pair[1] <= pair[0] + 1e-12), "{mbps}");
        }
    }

    #[test]
    fn faster_rates_need_more_but_for_9_and_12_which_are_alike() {
        let needs =
            |mbps| (0..400).map(|n| f64::from(n) / 10.0).find(|db| at(mbps, *db) < 0.1).expect("enough");
        let needed = RATES.map(needs);
        assert!(needed[1] > needed[0] && needed[2] < needed[1] + 1.0);
        assert!(needed[2..].windows(2).all(|pair| pair[1] > pair[0]), "{needed:?}");
        // The SNR that the formulas give by hand, within 1.5 dB.
        for (mbps, db) in [(6, 4.2), (12, 7.2), (24, 13.6), (54, 22.6)] {
            assert!((needs(mbps) - db).abs() < 1.5, "{mbps}: {}", needs(mbps));
        }
    }

    #[test]
    fn longer_frames_err_more() {
        let rate = Rate { bits_per_second: 24_000_000, sinr: 0.0, form: BitForm::Legacy };
        let error = |bytes| frame_error(rate, ratio_of(12.0), bytes);
        assert!(error(14) < error(100) && error(100) < error(1_500));
    }
}
