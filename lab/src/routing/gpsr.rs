//! `routing.gpsr`: GPSR's constants.

use hopwise_mesh::gpsr::{Planar, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::{SHORTEST, check_numbers, check_times};
use crate::located::{Document, Place, Refusal};
use crate::units::Time;

/// Constants of GPSR, with the paper's defaults.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GpsrConfig {
    /// Mean time between two beacons, varied by up to half of it (default 1.5s).
    pub beacon_interval: Time,
    /// Time without a beacon after which a neighbour is removed (default: 4.5 beacon intervals).
    pub neighbour_timeout: Option<Time>,
    /// Every packet of a neighbour counts as a beacon, also packets for other nodes (default true).
    pub promiscuous: bool,
    /// Planar graph of perimeter mode (default gg).
    pub planar: PlanarName,
    /// Perimeter mode where no neighbour is closer to the destination; without it the packet is dropped
    /// (default true).
    pub perimeter: bool,
    /// Packets for a neighbour that is lost are sent through another one (default true).
    pub resend: bool,
    /// Largest number of neighbours in the table (default 1024).
    pub most_neighbours: u32,
    /// Hop limit of data packets (default 64).
    pub data_hop_limit: u8,
}

/// Planar graph of perimeter mode.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlanarName {
    /// Gabriel graph.
    Gg,
    /// Relative neighbourhood graph.
    Rng,
}

const MOST_NEIGHBOURS: u32 = 10_000;

impl Default for GpsrConfig {
    fn default() -> GpsrConfig {
        let settings = Settings::default();
        GpsrConfig {
            beacon_interval: Time(settings.beacon_interval),
            neighbour_timeout: settings.neighbour_timeout.map(Time),
            promiscuous: settings.promiscuous,
            planar: match settings.planar {
                Planar::Gabriel => PlanarName::Gg,
                Planar::RelativeNeighbourhood => PlanarName::Rng,
            },
            perimeter: settings.perimeter,
            resend: settings.resend,
            most_neighbours: settings.most_neighbours,
            data_hop_limit: settings.data_hop_limit,
        }
    }
}

impl GpsrConfig {
    /// The constants in force; `place` is where the section stands.
    pub fn settings(&self, document: &Document, place: &Place) -> Result<Settings, Box<Refusal>> {
        let times = [
            ("beacon_interval", Some(self.beacon_interval), SHORTEST),
            ("neighbour_timeout", self.neighbour_timeout, SHORTEST),
        ];
        check_times(document, place, times)?;
        let numbers = [
            ("most_neighbours", Some(self.most_neighbours), 1, MOST_NEIGHBOURS),
            ("data_hop_limit", Some(self.data_hop_limit.into()), 1, 255),
        ];
        check_numbers(document, place, numbers)?;
        Ok(Settings {
            beacon_interval: self.beacon_interval.0,
            neighbour_timeout: self.neighbour_timeout.map(|time| time.0),
            promiscuous: self.promiscuous,
            planar: match self.planar {
                PlanarName::Gg => Planar::Gabriel,
                PlanarName::Rng => Planar::RelativeNeighbourhood,
            },
            perimeter: self.perimeter,
            resend: self.resend,
            most_neighbours: self.most_neighbours,
            data_hop_limit: self.data_hop_limit,
        })
    }
}
