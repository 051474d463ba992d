//! Frames of monitors: each is one of its sender's, whichever monitor heard it.

use std::collections::BTreeMap;

use hopwise_core::StationAddress;

use super::super::packets::AirFrame;
use super::track::Mac;

/// Equal bytes that two monitors hear within this time are one frame. A frame that is sent again comes later.
const AT_ONCE_NS: i64 = 200_000;

#[derive(Debug, Default)]
pub(super) struct Overheard {
    /// What a station sends and receives counts as heard at an interface of its own.
    stations: BTreeMap<Mac, usize>,
    /// The last frames: when, by which monitor, and their bytes.
    last: Vec<(i64, usize, Vec<u8>)>,
}

impl Overheard {
    /// Returns whether another monitor has heard the frame already.
    pub(super) fn is_again(&mut self, at: i64, monitor: usize, frame: AirFrame<'_>) -> bool {
        self.last.retain(|(known, ..)| at - known < AT_ONCE_NS);
        let is_again = self.last.iter().any(|(_, by, bytes)| *by != monitor && bytes == frame.0);
        if !is_again {
            self.last.push((at, monitor, frame.0.to_vec()));
        }
        is_again
    }

    /// The interface that stands for a station. Its name is the station's address.
    pub(super) fn station(&mut self, station: Mac, names: &mut Vec<String>) -> usize {
        *self.stations.entry(station).or_insert_with(|| {
            names.push(StationAddress(station).to_string());
            names.len() - 1
        })
    }
}
