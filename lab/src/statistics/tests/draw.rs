//! Goodputs as runs have them, drawn from a seed.

use hopwise_air::random::{NumberStream, Purpose};
use libm::{cos, exp, log};

/// The scatter of the log of an arm's goodput from block to block.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scatter {
    /// Static routes: a few percent, evenly.
    Even(f64),
    /// Routes that break: every tenth run stands still for a part of its time.
    Stalls(f64),
    /// Two kinds of runs, such as by the station that captures the medium.
    TwoWays(f64),
}

#[derive(Debug)]
pub(super) struct Draws(NumberStream);

impl Draws {
    pub(super) fn new(seed: u64) -> Draws {
        Draws(NumberStream::new(seed, 0, Purpose::Traffic))
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound as u32) as usize
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * log(1.0 - self.0.unit())).sqrt();
        radius * cos(std::f64::consts::TAU * self.0.unit())
    }

    pub(super) fn goodput(&mut self, scatter: Scatter) -> f64 {
        let log = match scatter {
            Scatter::Even(deviation) => deviation * self.normal(),
            Scatter::Stalls(deviation) => {
                let stalled = if self.0.unit() < 0.1 { log(0.4 + 0.4 * self.0.unit()) } else { 0.0 };
                deviation * self.normal() + stalled
            }
            Scatter::TwoWays(deviation) => {
                let way = if self.0.unit() < 0.5 { 0.0 } else { -0.2 };
                deviation * self.normal() + way
            }
        };
        200.0 * exp(log)
    }
}

/// The mean of the log, which the ratio of arms is about.
pub(super) fn mean_log(scatter: Scatter) -> f64 {
    let mean = match scatter {
        Scatter::Even(_) => 0.0,
        // The mean of the log of an even draw from 0.4 to 0.8, every tenth time.
        Scatter::Stalls(_) => 0.1 * ((0.8 * log(0.8) - 0.4 * log(0.4)) / 0.4 - 1.0),
        Scatter::TwoWays(_) => -0.1,
    };
    mean + log(200.0)
}
