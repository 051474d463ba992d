//! GPSR's constants (Karp and Kung 2000, §3), each a setting.

use std::time::Duration;

use super::plane::Planar;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// B: between two beacons, less or more by up to half of it.
    pub beacon_interval: Duration,
    /// How long a neighbour may be silent; 4.5 B unless it is set.
    pub neighbour_timeout: Option<Duration>,
    /// Whether every packet of a neighbour counts as its beacon, those for others too.
    pub promiscuous: bool,
    pub planar: Planar,
    /// Whether packets go around where nobody is closer to their end; they are dropped there if not.
    pub perimeter: bool,
    /// Whether a packet that a link gave up, and what waits for the same neighbour, looks for another one.
    pub resend: bool,
    pub most_neighbours: u32,
    /// What packets of ours set out with.
    pub data_hop_limit: u8,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            beacon_interval: Duration::from_millis(1_500),
            neighbour_timeout: None,
            promiscuous: true,
            planar: Planar::Gabriel,
            perimeter: true,
            resend: true,
            most_neighbours: 1_024,
            data_hop_limit: 64,
        }
    }
}

impl Settings {
    pub fn neighbour_timeout(&self) -> Duration {
        self.neighbour_timeout.unwrap_or(self.beacon_interval * 9 / 2)
    }
}
