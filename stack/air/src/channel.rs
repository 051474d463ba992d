//! Effects of the channel on a frame, beyond two-ray ground: other path losses, shadowing, fading, loss, outages.
//!
//! A frame keeps the gain of its first bit. Not modelled: fading that differs between subcarriers, and shadowing that
//! changes as nodes move. The curves do not model interference: frames that overlap are compared by their rates' SINR.

mod curves;
mod field;
mod powers;
pub mod recording;
mod script;

pub(crate) use curves::{Curves, frame_error};
pub use field::{MOST_ROWS, RecordedField};
pub use powers::{LinkPower, Powers};
pub use script::{LinkChange, LinkEffect, LinkSentence, ScriptError};

use std::sync::Arc;

use crate::phy::Rate;
use crate::radio::Position;
use crate::radio::Radio;
use crate::random::{NumberStream, Purpose};

/// The loss of power with distance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum PathLoss {
    /// Free space up to the crossover distance, two-ray ground beyond it, as ns-2.
    #[default]
    TwoRay,
    /// Free space up to `reference_m`, from there on with the power of `exponent`.
    LogDistance {
        /// Power falls with this power of the distance: 2 in free space, 3 to 5 between buildings.
        exponent: f64,
        /// Metres; the exponent holds beyond them.
        reference_m: f64,
    },
}

/// The change of power with time, about its mean. A wave comes in from many sides, each with a Doppler shift of at most
/// `doppler_hz` (Clarke's model as a sum of sinusoids). Values that are near in time are therefore alike.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Fading {
    /// Power stays at its mean.
    #[default]
    None,
    /// Fading without a direct ray: the power is exponentially distributed.
    Rayleigh {
        /// The largest Doppler shift in hertz: the speed of motion over the wavelength.
        doppler_hz: f64,
    },
    /// Fading with a direct ray `k` times as strong as all scattered rays together.
    Rician {
        /// The power of the direct ray over the power of all scattered rays, as a ratio.
        k: f64,
        /// The largest Doppler shift in hertz: the speed of motion over the wavelength.
        doppler_hz: f64,
    },
}

/// A time in which no frame of `from` reaches `to`, or in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The station at one end, by its number.
    pub from: u32,
    /// The station at the other end.
    pub to: u32,
    /// The start, in nanoseconds since the beginning of the run.
    pub begins_ns: u64,
    /// The end, in nanoseconds since the beginning of the run.
    pub ends_ns: u64,
    /// The outage is from `from` to `to` alone, and not back.
    pub is_one_way: bool,
}

/// The effects of the channel in one world. The default is two-ray ground with nothing else.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Channel {
    /// The mean loss of power with distance.
    pub path_loss: PathLoss,
    /// Standard deviation of each link's own gain; drawn once, and equal in both directions unless `is_asymmetric`.
    pub shadowing_db: f64,
    /// The two directions of a link draw their gains apart.
    pub is_asymmetric: bool,
    /// The change of power with time.
    pub fading: Fading,
    /// The number of frames that are lost in a million that would be understood.
    pub loss_ppm: u32,
    /// The times in which links are out.
    pub outages: Vec<Outage>,
    /// Changes of single links.
    pub links: Vec<LinkChange>,
    /// Powers as they were recorded, in place of path loss, shadowing and gains. Places then decide delays alone, as
    /// they are at the beginning.
    pub field: Option<Arc<RecordedField>>,
    /// The power between stations that no row of the recording joins.
    pub unheard: UnheardPower,
    /// Noise in watts: chance then decides, by OFDM's curves and not by [`Radio::receive_w`], if a frame is understood.
    /// The radio must come from [`Radio::over_noise`].
    pub noise_w: Option<f64>,
}

/// The power between stations that no row of a recording joins. A recorder hears neighbours alone; frames from further
/// away still keep the carrier busy, and interfere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnheardPower {
    /// No power.
    #[default]
    Nothing,
    /// Path loss between their places decides, but the power is too weak for a link.
    PathLoss,
}

/// The most that is left of the power which a link needs, between stations that did not hear each other.
const TOO_WEAK: f64 = 0.999;

/// A frame that begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BeginningFrame<'a> {
    pub(crate) now: u64,
    /// The length of the frame with header and FCS.
    pub(crate) bytes: u32,
    pub(crate) rate: Rate,
    /// The lengths of an aggregate's parts, each with header and FCS; empty for a frame without parts.
    pub(crate) mpdus: &'a [u32],
}

impl Channel {
    /// Returns whether power changes with time or frames are lost: then every frame is computed on every link.
    pub(crate) fn is_lively(&self) -> bool {
        self.fading != Fading::None
            || self.loss_ppm > 0
            || self.noise_w.is_some()
            || self.field.is_some()
            || !self.outages.is_empty()
            || self.links.iter().any(LinkChange::is_lively)
    }

    /// The share of a link's frames that are lost although they would be understood. The last matching change holds,
    /// before what was recorded.
    fn loss_of(&self, from: u32, to: u32, recorded: Option<u32>) -> u32 {
        let own = self.links.iter().rev().find_map(|link| match link.change {
            LinkEffect::Loss { ppm } if link.is_of(from, to) => Some(ppm),
            _ => None,
        });
        own.or(recorded).unwrap_or(self.loss_ppm)
    }

    /// The recording, if it says what the power of that link is.
    pub(crate) fn recorded(&self, from: u32, to: u32) -> Option<&RecordedField> {
        let is_all = self.unheard == UnheardPower::Nothing;
        self.field.as_deref().filter(|field| is_all || field.joins(from, to))
    }

    /// The power of a link without a recording, by the models.
    pub(crate) fn modelled_w(&self, radio: &Radio, ends: [(u32, Position); 2], seed: u64) -> f64 {
        let power_w = self.power_w(radio, ends, seed);
        if self.field.is_some() { power_w.min(radio.receive_w * TOO_WEAK) } else { power_w }
    }

    /// The power of a link at a time without its fading, and its loss; `None`: no frame arrives. Without a recording
    /// the models give the power.
    pub(crate) fn heard(
        &self,
        (from, to): (u32, u32),
        now: u64,
        modelled_w: impl FnOnce() -> f64,
    ) -> Option<(f64, u32)> {
        if self.is_out(from, to, now) {
            return None;
        }
        let (power_w, recorded) = match self.recorded(from, to) {
            Some(field) => {
                let heard = field.at(from, to, now)?;
                (heard.power_w, heard.loss_ppm)
            }
            None => (modelled_w(), None),
        };
        Some((power_w, self.loss_of(from, to, recorded)))
    }

    /// The largest gain of a single link.
    pub(crate) fn most_gain_db(&self) -> f64 {
        self.links.iter().fold(0.0, |most, link| match link.change {
            LinkEffect::Gain { db } => most.max(db),
            LinkEffect::Loss { .. } => most,
        })
    }

    /// The mean power of one station's frames at another.
    pub(crate) fn power_w(&self, radio: &Radio, ends: [(u32, Position); 2], seed: u64) -> f64 {
        let [(from, here), (to, there)] = ends;
        let distance_m = here.distance_m(there);
        let power_w = match self.path_loss {
            PathLoss::TwoRay => radio.power_w(distance_m),
            PathLoss::LogDistance { exponent, reference_m } => {
                let near = radio.free_space_w(distance_m.min(reference_m));
                near * libm::pow(distance_m.max(reference_m) / reference_m, -exponent)
            }
        };
        let power_w = power_w * self.gain_of(from, to);
        if self.shadowing_db == 0.0 {
            return power_w;
        }
        let mut stream = self.stream_of(from, to, seed, Purpose::Shadowing);
        power_w * libm::pow(10.0, self.shadowing_db * normal(&mut stream) / 10.0)
    }

    fn gain_of(&self, from: u32, to: u32) -> f64 {
        let gains =
            self.links.iter().filter(|link| link.is_of(from, to)).filter_map(|link| match link.change {
                LinkEffect::Gain { db } => Some(libm::pow(10.0, db / 10.0)),
                LinkEffect::Loss { .. } => None,
            });
        gains.product()
    }

    /// A stream of the link's own.
    fn stream_of(&self, from: u32, to: u32, seed: u64, purpose: Purpose) -> NumberStream {
        let (a, b) = if self.is_asymmetric || from < to { (from, to) } else { (to, from) };
        NumberStream::new(seed ^ (u64::from(a) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15), b, purpose)
    }

    pub(crate) fn fader(&self, from: u32, to: u32, seed: u64) -> Option<Fader> {
        let (k, doppler_hz) = match self.fading {
            Fading::None => return None,
            Fading::Rayleigh { doppler_hz } => (0.0, doppler_hz),
            Fading::Rician { k, doppler_hz } => (k, doppler_hz),
        };
        Some(Fader::new(k, doppler_hz, &mut self.stream_of(from, to, seed, Purpose::Fading)))
    }

    pub(crate) fn is_out(&self, from: u32, to: u32, at_ns: u64) -> bool {
        self.outages.iter().any(|outage| {
            let same = (outage.from, outage.to) == (from, to);
            let back = !outage.is_one_way && (outage.from, outage.to) == (to, from);
            (same || back) && (outage.begins_ns..outage.ends_ns).contains(&at_ns)
        })
    }
}

/// The least SNR at which a preamble is noticed.
pub(crate) const PREAMBLE_SNR: f64 = 2.511_886_431_509_58;

impl Radio {
    /// The radio over noise: each frame that can be noticed is sensed. Routes count on links that bring nine of ten
    /// packets of 1,000 bytes at the slowest data rate.
    #[must_use]
    pub fn over_noise(self, noise_w: f64, slowest: Rate) -> Radio {
        let tenths_of_db = (40..600).map(|tenths| libm::pow(10.0, f64::from(tenths) / 100.0));
        let enough = |snr: &f64| frame_error(slowest, *snr, 1_034) < 0.1;
        let needed = tenths_of_db.into_iter().find(enough).unwrap_or(1e6);
        Radio { sense_w: noise_w * PREAMBLE_SNR, receive_w: noise_w * needed, ..self }
    }
}

/// Mean 0, variance 1 (Box and Muller).
fn normal(stream: &mut NumberStream) -> f64 {
    let (u, v) = (1.0 - stream.unit(), stream.unit());
    libm::sqrt(-2.0 * libm::log(u)) * libm::cos(std::f64::consts::TAU * v)
}

const RAYS: usize = 12;

/// The gain of one link over time; its mean is 1.
#[derive(Clone, Debug)]
pub(crate) struct Fader {
    /// Doppler shift and phases of each ray's two components.
    rays: [(f64, f64, f64); RAYS],
    direct: f64,
    scattered: f64,
}

impl Fader {
    fn new(k: f64, doppler_hz: f64, stream: &mut NumberStream) -> Fader {
        let turn = std::f64::consts::TAU;
        let offset = stream.unit();
        let ray = |n: usize| {
            let angle = turn * (n as f64 + offset) / (4 * RAYS) as f64;
            (turn * doppler_hz * libm::cos(angle), turn * stream.unit(), turn * stream.unit())
        };
        let rays = std::array::from_fn(ray);
        Fader {
            rays,
            direct: libm::sqrt(k / (k + 1.0)),
            scattered: libm::sqrt(1.0 / (k + 1.0) / RAYS as f64),
        }
    }

    pub(crate) fn gain(&self, at_ns: u64) -> f64 {
        let t = at_ns as f64 / 1e9;
        let (mut re, mut im) = (0.0, 0.0);
        for (shift, one, other) in self.rays {
            re += libm::cos(shift * t + one);
            im += libm::cos(shift * t + other);
        }
        let (re, im) = (self.direct + self.scattered * re, self.scattered * im);
        re * re + im * im
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spots(distance_m: f64) -> [(u32, Position); 2] {
        [(0, Position::default()), (1, Position { x: distance_m, y: 0.0 })]
    }

    #[test]
    fn log_distance_falls_by_its_exponent() {
        let path_loss = PathLoss::LogDistance { exponent: 3.0, reference_m: 1.0 };
        let channel = Channel { path_loss, ..Channel::default() };
        let at = |m| channel.power_w(&Radio::default(), spots(m), 1);
        assert!((at(100.0) / at(200.0) - 8.0).abs() < 1e-9);
    }

    #[test]
    fn shadowing_has_its_deviation_and_is_the_same_both_ways() {
        let channel = Channel { shadowing_db: 6.0, ..Channel::default() };
        let radio = Radio::default();
        let mean_w = radio.power_w(100.0);
        let drawn: Vec<f64> = (0..4_000)
            .map(|to| {
                channel.power_w(&radio, [(0, Position::default()), (to, Position { x: 100.0, y: 0.0 })], 7)
            })
            .map(|power_w| 10.0 * libm::log10(power_w / mean_w))
            .collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let deviation = libm::sqrt(drawn.iter().map(|db| db * db).sum::<f64>() / drawn.len() as f64);
        assert!(mean.abs() < 0.3 && (deviation - 6.0).abs() < 0.3, "{mean} {deviation}");
        let [a, b] = spots(100.0);
        assert_eq!(channel.power_w(&radio, [a, b], 7), channel.power_w(&radio, [b, a], 7));
    }

    #[test]
    fn fades_are_as_deep_as_rayleighs_and_last() {
        let fading = Fading::Rayleigh { doppler_hz: 10.0 };
        let channel = Channel { fading, ..Channel::default() };
        let (mut sum, mut deep, mut jumps, mut count) = (0.0, 0_u32, 0.0, 0.0);
        for link in 1..60 {
            let fader = channel.fader(0, link, 3).expect("it fades");
            for step in 0..500_u64 {
                let gain = fader.gain(step * 37_000_000);
                sum += gain;
                count += 1.0;
                deep += u32::from(gain < 0.1);
                jumps += (fader.gain(step * 37_000_000 + 100_000) - gain).abs();
            }
        }
        let (mean, deep) = (sum / count, f64::from(deep) / count);
        assert!((mean - 1.0).abs() < 0.05, "{mean}");
        // The gain is below a tenth for 1 − e^−0.1 of the time.
        assert!((deep - 0.095).abs() < 0.02, "{deep}");
        assert!(jumps / count < 0.01, "a tenth of a millisecond changes little");
    }

    #[test]
    fn outages_hold_for_their_time_and_their_ways() {
        let outage = Outage { from: 3, to: 4, begins_ns: 10, ends_ns: 20, is_one_way: false };
        let one_way = Outage { from: 5, to: 6, is_one_way: true, ..outage };
        let channel = Channel { outages: vec![outage, one_way], ..Channel::default() };
        assert!(channel.is_out(3, 4, 10) && channel.is_out(4, 3, 19));
        assert!(!channel.is_out(3, 4, 20) && !channel.is_out(6, 5, 15) && channel.is_out(5, 6, 15));
    }
}
