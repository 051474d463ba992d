//! GPSR's constants (Karp and Kung 2000, §3), each a setting.

use std::time::Duration;

use super::plane::Planar;
use crate::constants::{Form, ON, Setting, Value, constants};

const MOST_NEIGHBOURS: u32 = 10_000;

constants! {
    /// Constants of GPSR, with the paper's defaults.
    Settings of "GPSR";
    /// Mean time between two beacons; each time is random, from 0.5 to 1.5 times the mean
    beacon_interval: Duration = Form::time(1).is(1_500),
    /// Time without a beacon after which a neighbour is removed
    neighbour_timeout: Option<Duration> = Form::time(1).unset("4.5 * beacon_interval"),
    /// Any packet heard from a neighbour, also one for another node, counts as its beacon
    promiscuous: bool = Form::Switch.is(ON),
    /// Planar graph (without crossing links) that packets follow in perimeter mode
    planar: Planar = PLANAR.is(0),
    /// Packets use perimeter mode where no neighbour is closer to the destination; if false, they are dropped there
    perimeter: bool = Form::Switch.is(ON),
    /// Packets that could not be delivered to a neighbour are sent through another one
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
    pub(crate) fn neighbour_timeout(&self) -> Duration {
        self.neighbour_timeout.unwrap_or(self.beacon_interval * 9 / 2)
    }
}
