//! The positions of nodes, given to routing at no cost: the oracle that GPSR's paper has for a location service.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use hopwise_air::medium::Position;
use hopwise_air::motion::{NodeTrack, Walker};
use hopwise_air::truncate;
use hopwise_core::Instant;
use hopwise_mesh::gpsr::{Point, Positions};

use super::plan::Plan;

/// The oracle follows the plan: a copy of a track gives the node's own legs.
#[derive(Clone, Debug)]
pub(super) struct Oracle {
    positions: Arc<[Option<Position>]>,
    tracks: Arc<[Option<NodeTrack>]>,
    /// The nodes that were looked up, as far as they have come.
    followed: BTreeMap<u32, Walker>,
}

impl Oracle {
    pub(super) fn of(plan: &Plan) -> Oracle {
        let (positions, tracks) = (plan.positions.clone().into(), plan.tracks.clone().into());
        Oracle { positions, tracks, followed: BTreeMap::new() }
    }
}

impl Positions for Oracle {
    fn locate(&mut self, now: Instant, node: Ipv4Addr) -> Option<Point> {
        let number = node.to_bits().checked_sub(0x0a00_0001)?;
        let position = (*self.positions.get(number as usize)?)?;
        let tracks = &self.tracks;
        let begin = || Walker::new(position, tracks.get(number as usize).cloned().flatten());
        let walker = self.followed.entry(number).or_insert_with(begin);
        let position = walker.at(now.0);
        // Rounded to the nearest centimetre; fields end at 10,000 km.
        let centimetres = |metres: f64| truncate::to_i32(libm::round(metres * 100.0));
        Some(Point { x: centimetres(position.x), y: centimetres(position.y) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopwise_air::motion::Waypoint;

    #[test]
    fn nodes_are_where_their_tracks_lead_whenever_they_are_asked_for() {
        let (start, area) = (Position { x: 10.0, y: 20.0 }, Position { x: 500.0, y: 400.0 });
        let track = NodeTrack::Waypoint(Waypoint::new((7, 1), start, area, (1.0, 20.0), 1_000_000_000));
        let mut oracle = Oracle {
            positions: vec![None, Some(start), Some(area)].into(),
            tracks: vec![None, Some(track)].into(),
            followed: BTreeMap::new(),
        };
        let node = |n: u32| Ipv4Addr::from_bits(0x0a00_0001 + n);
        let mut late = oracle.clone();
        let mut walked = Vec::new();
        for second in 0..300 {
            walked.push(oracle.locate(Instant::from_secs(second), node(1)).expect("it stands somewhere"));
        }
        assert_eq!(walked[0], Point { x: 1_000, y: 2_000 });
        assert_eq!(late.locate(Instant::from_secs(299), node(1)), walked.last().copied());
        let steps = walked.windows(2).map(|pair| {
            let (dx, dy) = (f64::from(pair[1].x - pair[0].x), f64::from(pair[1].y - pair[0].y));
            (dx * dx + dy * dy).sqrt()
        });
        assert!(steps.clone().all(|cm| cm <= 2_002.0) && steps.sum::<f64>() > 30_000.0);
        assert_eq!(
            oracle.locate(Instant::FAR, node(2)),
            Some(Point { x: 50_000, y: 40_000 }),
            "it never moves"
        );
        assert_eq!(oracle.locate(Instant::ZERO, node(0)), None, "a node on a wire");
        assert_eq!(oracle.locate(Instant::ZERO, node(9)), None);
        assert_eq!(oracle.locate(Instant::ZERO, Ipv4Addr::LOCALHOST), None);
    }
}
