//! Positions of radios, their powers, and how these fall with distance.

use crate::truncate;

/// Powers in watts. The defaults are ns-2's: 250 m to decode, 550 m to sense.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Radio {
    /// The power of the transmitter.
    pub transmit_w: f64,
    /// The frequency of the carrier, in hertz.
    pub frequency_hz: f64,
    /// The height of the antennas above the ground, in metres.
    pub antenna_m: f64,
    /// The least power of a frame that can be decoded.
    pub receive_w: f64,
    /// The least power of a frame that keeps the carrier busy.
    pub sense_w: f64,
    /// A frame under reception survives a later one that is weaker by this ratio.
    pub capture: f64,
}

impl Default for Radio {
    fn default() -> Radio {
        Radio {
            transmit_w: 0.281_838_15,
            frequency_hz: 914e6,
            antenna_m: 1.5,
            receive_w: 3.652e-10,
            sense_w: 1.559e-11,
            capture: 10.0,
        }
    }
}

pub(crate) const LIGHT_M_PER_S: f64 = 3e8;

/// A power in dBm, in watts.
pub fn watts(dbm: f64) -> f64 {
    libm::pow(10.0, dbm / 10.0) / 1_000.0
}

/// A power in watts, in dBm.
pub fn dbm(watts: f64) -> f64 {
    10.0 * libm::log10(watts * 1_000.0)
}

impl Radio {
    pub(crate) fn free_space_w(&self, distance_m: f64) -> f64 {
        if distance_m <= 0.0 {
            return self.transmit_w;
        }
        let m = LIGHT_M_PER_S / self.frequency_hz / (4.0 * std::f64::consts::PI * distance_m);
        self.transmit_w * m * m
    }

    /// Free space up to the crossover distance; beyond it the two rays cancel and power falls with d⁴.
    pub fn power_w(&self, distance_m: f64) -> f64 {
        let wavelength_m = LIGHT_M_PER_S / self.frequency_hz;
        let heights = self.antenna_m * self.antenna_m;
        let crossover_m = 4.0 * std::f64::consts::PI * heights / wavelength_m;
        if distance_m <= 0.0 {
            self.transmit_w
        } else if distance_m < crossover_m {
            self.free_space_w(distance_m)
        } else {
            let squared = distance_m * distance_m;
            self.transmit_w * heights * heights / (squared * squared)
        }
    }
}

/// A position in metres.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Position {
    /// Metres from the origin along the first axis.
    pub x: f64,
    /// Metres from the origin along the second axis.
    pub y: f64,
}

impl Position {
    /// The straight distance in metres.
    pub fn distance_m(self, other: Position) -> f64 {
        let (dx, dy) = (self.x - other.x, self.y - other.y);
        (dx * dx + dy * dy).sqrt()
    }

    /// The square of a grid of squares this wide.
    pub(crate) fn square(self, width_m: f64) -> (i64, i64) {
        let of = |metres: f64| truncate::to_i64(libm::floor(metres / width_m));
        (of(self.x), of(self.y))
    }
}
