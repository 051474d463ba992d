//! GPSR's constants (Karp and Kung 2000, §3), each a setting.

use std::time::Duration;

use super::plane::Planar;
use crate::constants::{Form, ON, Setting, Value, constants};

const MOST_NEIGHBOURS: u32 = 10_000;

constants! {
    /// Constants of GPSR, with the paper's defaults.
    Settings of "GPSR";
    /// Mean time between two beacons, varied by up to half of it
    beacon_interval: Duration = Form::time(1).is(1_500),
    /// Time without a beacon after which a neighbour is removed
    neighbour_timeout: Option<Duration> = Form::time(1).unset("4.5 beacon intervals"),
    /// Every packet of a neighbour counts as a beacon, also packets for other nodes
    promiscuous: bool = Form::Switch.is(ON),
    /// Planar graph of perimeter mode
    planar: Planar = PLANAR.is(0),
    /// Perimeter mode where no neighbour is closer to the destination; without it the packet is dropped
    perimeter: bool = Form::Switch.is(ON),
    /// Packets for a neighbour that is lost are sent through another one
    resend: bool = Form::Switch.is(ON),
    /// Largest number of neighbours in the table
    most_neighbours: u32 = Form::count("neighbours", 1, MOST_NEIGHBOURS).is(1_024),
    /// Hop limit of data packets
    data_hop_limit: u8 = Form::count("hops", 1, 255).is(64),
}

const PLANAR: Form = Form::Choice(&[("gg", "Gabriel graph."), ("rng", "Relative neighbourhood graph.")]);

impl Setting for Planar {
    fn of(value: Option<Value>) -> Option<Planar> {
        match value? {
            Value::Choice("gg") => Some(Planar::Gabriel),
            Value::Choice("rng") => Some(Planar::RelativeNeighbourhood),
            _ => None,
        }
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Choice(match self {
            Planar::Gabriel => "gg",
            Planar::RelativeNeighbourhood => "rng",
        }))
    }
}

impl Settings {
    pub fn neighbour_timeout(&self) -> Duration {
        self.neighbour_timeout.unwrap_or(self.beacon_interval * 9 / 2)
    }
}
