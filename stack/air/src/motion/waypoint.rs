//! Random waypoint: a node goes to a position in a rectangle at a speed, both drawn evenly, rests, and goes on.
//!
//! Nodes begin with a leg at time 0 and at their given positions, not in the model's steady state. The mean speed
//! therefore falls during the first legs. The slowest speed must be above zero, or it would fall for ever (Yoon, Liu
//! and Noble, 2003).

use super::Leg;
use crate::position::Position;
use crate::random::{Purpose, Stream};

/// The endless legs of one node in a rectangle.
#[derive(Clone, Debug)]
pub struct Waypoint {
    stream: Stream,
    /// The corner of the rectangle opposite to (0, 0).
    area: Position,
    slowest_mps: f64,
    fastest_mps: f64,
    pause_ns: u64,
    at: Position,
    leaves_ns: u64,
}

impl Waypoint {
    /// Speeds are above zero, the slowest first.
    pub fn new(
        (seed, node): (u64, u32),
        start: Position,
        area: Position,
        speeds_mps: (f64, f64),
        pause_ns: u64,
    ) -> Waypoint {
        let (slowest_mps, fastest_mps) = speeds_mps;
        assert!(slowest_mps > 0.0 && slowest_mps <= fastest_mps, "speeds are above zero");
        let stream = Stream::new(seed, node, Purpose::Movement);
        Waypoint { stream, area, slowest_mps, fastest_mps, pause_ns, at: start, leaves_ns: 0 }
    }

    pub(super) fn next_leg(&mut self) -> Leg {
        let to = Position { x: self.area.x * self.stream.unit(), y: self.area.y * self.stream.unit() };
        let speed_mps = self.slowest_mps + (self.fastest_mps - self.slowest_mps) * self.stream.unit();
        let mut leg = Leg::towards(self.leaves_ns, self.at, to, speed_mps);
        // A leg of no length must not be followed by another at the same instant.
        leg.until_ns = leg.until_ns.max(leg.from_ns + 1_000_000);
        (self.at, self.leaves_ns) = (leg.end, leg.until_ns.saturating_add(self.pause_ns));
        leg
    }
}
