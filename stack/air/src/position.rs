//! Positions on a plane.

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
}
