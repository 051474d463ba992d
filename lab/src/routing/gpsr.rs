//! `routing.gpsr`: GPSR's constants.

use hopwise_mesh::gpsr::{Planar, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::{SHORTEST, check_numbers, check_times};
use crate::located::{Document, Place, Refusal};
use crate::units::Time;

/// What is left out is as the paper has it.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GpsrConfig {
    pub beacon_interval: Time,
    /// 4.5 beacon intervals where nothing is said.
    pub neighbour_timeout: Option<Time>,
    pub promiscuous: bool,
    pub planar: PlanarName,
    pub perimeter: bool,
    pub resend: bool,
    pub most_neighbours: u32,
    pub data_hop_limit: u8,
}

/// Gabriel's graph, or the relative neighbourhood graph.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlanarName {
    Gg,
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
