//! The motion of nodes: straight legs at a steady speed, with pauses between them.
//!
//! Positions are as old as `STALE_NS` at most when a frame is sent: 20 cm at 20 m/s. Not modelled: height, obstacles,
//! acceleration, a frame that lasts while its sender moves on, Doppler shifts (fading has a setting of its own).

mod bonnmotion;
mod movements;
mod setdest;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

pub use movements::{MovementError, MovementProblem, Movements};

use crate::radio::Position;
use crate::random::{NumberStream, Purpose};
use crate::truncate;

/// A sender's links are computed again when they are older than this.
pub(crate) const STALE_NS: u64 = 10_000_000;

/// The movement from one position to another; the node then stays until the next leg.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Leg {
    /// The departure, in nanoseconds since the beginning of the run.
    pub from_ns: u64,
    /// The arrival, in nanoseconds since the beginning of the run.
    pub until_ns: u64,
    /// The position until the departure.
    pub start: Position,
    /// The position from the arrival on.
    pub end: Position,
}

impl Leg {
    /// A leg that is over from the start: the node stays here.
    pub fn standing(at: Position) -> Leg {
        Leg { from_ns: 0, until_ns: 0, start: at, end: at }
    }

    /// A leg that leaves at `from_ns`; a node with a speed of zero stays.
    pub fn towards(from_ns: u64, start: Position, end: Position, speed_mps: f64) -> Leg {
        let distance_m = start.distance_m(end);
        let takes_ns = distance_m / speed_mps * 1e9;
        if speed_mps <= 0.0 || takes_ns >= 1e18 {
            return Leg { from_ns, until_ns: from_ns, start, end: start };
        }
        Leg { from_ns, until_ns: from_ns.saturating_add(truncate::to_u64(takes_ns)), start, end }
    }

    /// The position at a time in nanoseconds since the beginning of the run.
    pub fn at(&self, now: u64) -> Position {
        if now >= self.until_ns {
            return self.end;
        }
        let passed = now.saturating_sub(self.from_ns) as f64;
        let share = passed / (self.until_ns - self.from_ns) as f64;
        let along = |a: f64, b: f64| a + (b - a) * share;
        Position { x: along(self.start.x, self.end.x), y: along(self.start.y, self.end.y) }
    }
}

/// The movement of a node.
#[derive(Clone, Debug)]
pub enum NodeTrack {
    /// These legs, in the order of their beginnings; then the node stays.
    Legs(VecDeque<Leg>),
    /// Random legs without an end.
    Waypoint(Waypoint),
}

impl NodeTrack {
    /// The next leg; a copy of a track gives equal legs.
    pub fn next_leg(&mut self) -> Option<Leg> {
        match self {
            NodeTrack::Legs(legs) => legs.pop_front(),
            NodeTrack::Waypoint(waypoint) => Some(waypoint.next_leg()),
        }
    }
}

/// A node on its track.
#[derive(Clone, Debug)]
pub struct Walker {
    leg: Leg,
    following: Option<Leg>,
    track: NodeTrack,
}

impl Walker {
    /// A node without a track stays at its first position.
    pub fn new(first: Position, track: Option<NodeTrack>) -> Walker {
        let mut track = track.unwrap_or_else(|| NodeTrack::Legs(VecDeque::new()));
        let following = track.next_leg();
        Walker { leg: Leg::standing(first), following, track }
    }

    /// Begins the legs whose time has come.
    fn advance(&mut self, now: u64) {
        while let Some(leg) = self.following.filter(|leg| leg.from_ns <= now) {
            self.leg = leg;
            self.following = self.track.next_leg();
        }
    }

    /// The position at `now`, which never falls from call to call.
    pub fn at(&mut self, now: u64) -> Position {
        self.advance(now);
        self.leg.at(now)
    }
}

/// A walker, and the square that it is in.
#[derive(Clone, Debug)]
struct Mover {
    walker: Walker,
    cell: (i64, i64),
}

impl Mover {
    /// When the node may have left its square: it crosses a border, or sets out on its next leg.
    fn next_look(&self, now: u64, width_m: f64) -> Option<u64> {
        let leg = &self.walker.leg;
        let next_leg = self.walker.following.map(|leg| leg.from_ns);
        if now >= leg.until_ns || leg.from_ns == leg.until_ns {
            return next_leg;
        }
        let here = leg.at(now);
        let lasts_ns = (leg.until_ns - leg.from_ns) as f64;
        let border = |at: f64, cell: i64, way: f64| {
            let per_ns = way / lasts_ns;
            let border = (cell + i64::from(per_ns > 0.0)) as f64 * width_m;
            if per_ns == 0.0 { f64::INFINITY } else { ((border - at) / per_ns).max(0.0) }
        };
        let by_x = border(here.x, self.cell.0, leg.end.x - leg.start.x);
        let by_y = border(here.y, self.cell.1, leg.end.y - leg.start.y);
        // A microsecond beyond the border; rounding leaves no node on it.
        let crosses = now.saturating_add(truncate::to_u64(by_x.min(by_y).min(1e18))).saturating_add(1_000);
        let crosses = Some(crosses).filter(|at| *at < leg.until_ns).unwrap_or(leg.until_ns);
        Some(next_leg.map_or(crosses, |next| next.min(crosses)))
    }
}

/// All nodes and the squares that they are in. A node is looked at when it changes its square or its leg, never because
/// another node moved.
#[derive(Clone, Debug)]
pub(crate) struct Moving {
    movers: Vec<Option<Mover>>,
    cells: BTreeMap<(i64, i64), Vec<u32>>,
    width_m: f64,
    looks: BinaryHeap<Reverse<(u64, u32)>>,
    /// When each sender's links were computed last; `u64::MAX`: never.
    pub(crate) looked: Vec<u64>,
}

impl Moving {
    /// Makes squares of `width_m`; a node without a track stays.
    pub(crate) fn new(
        positions: &[Option<Position>],
        tracks: Vec<Option<NodeTrack>>,
        width_m: f64,
    ) -> Moving {
        let mut moving = Moving {
            movers: Vec::new(),
            cells: BTreeMap::new(),
            width_m,
            looks: BinaryHeap::new(),
            looked: vec![u64::MAX; positions.len()],
        };
        let tracks = tracks.into_iter().chain(std::iter::repeat_with(|| None));
        for ((position, track), node) in positions.iter().zip(tracks).zip(0..) {
            let mover = position.map(|position| {
                let mut walker = Walker::new(position, track);
                let mover = Mover { cell: walker.at(0).square(width_m), walker };
                moving.cells.entry(mover.cell).or_default().push(node);
                moving.looks.extend(mover.next_look(0, width_m).map(|at| Reverse((at, node))));
                mover
            });
            moving.movers.push(mover);
        }
        moving
    }

    /// Puts all nodes into their squares of now.
    pub(crate) fn advance(&mut self, now: u64) {
        while let Some(Reverse((_, node))) = self.looks.peek().copied().filter(|Reverse((at, _))| *at <= now)
        {
            self.looks.pop();
            let Some(mover) = &mut self.movers[node as usize] else { continue };
            let (old, position) = (mover.cell, mover.walker.at(now));
            let new = position.square(self.width_m);
            if new != old {
                if let Some(cell) = self.cells.get_mut(&old) {
                    cell.retain(|other| *other != node);
                    if cell.is_empty() {
                        self.cells.remove(&old);
                    }
                }
                self.cells.entry(new).or_default().push(node);
            }
            let Some(mover) = &mut self.movers[node as usize] else { continue };
            mover.cell = new;
            let next = mover.next_look(now, self.width_m);
            self.looks.extend(next.map(|at| Reverse((at.max(now + 1), node))));
        }
    }

    pub(crate) fn position(&self, node: u32, now: u64) -> Option<Position> {
        let walker = &self.movers[node as usize].as_ref()?.walker;
        // Its next leg may have begun since it was looked at.
        match &walker.following {
            Some(leg) if leg.from_ns <= now => Some(leg.at(now)),
            _ => Some(walker.leg.at(now)),
        }
    }

    /// The nodes within `reach_m` of `here`, in the order of their numbers. An infinite `reach_m` takes all nodes in
    /// the nine squares around it.
    pub(crate) fn around(
        &self,
        (node, here): (u32, Position),
        now: u64,
        reach_m: f64,
        near: &mut Vec<(u32, Position)>,
    ) {
        near.clear();
        let Some(mover) = &self.movers[node as usize] else { return };
        let (x, y) = mover.cell;
        for (dx, dy) in (-1..=1).flat_map(|dx| (-1..=1).map(move |dy| (dx, dy))) {
            for other in self.cells.get(&(x + dx, y + dy)).into_iter().flatten() {
                let Some(there) = self.position(*other, now) else { continue };
                let (dx, dy) = (here.x - there.x, here.y - there.y);
                // Most nodes are too far away for a logarithm or a place in the order.
                if dx * dx + dy * dy <= reach_m * reach_m {
                    near.push((*other, there));
                }
            }
        }
        near.sort_unstable_by_key(|(other, _)| *other);
    }
}

/// Random waypoint: the endless legs of one node in a rectangle. The node goes to a position at a speed, both drawn
/// evenly, rests, and goes on.
///
/// Nodes begin with a leg at time 0 and at their given positions, not in the model's steady state. The mean speed
/// therefore falls during the first legs. The slowest speed must be above zero, or it would fall for ever (Yoon, Liu
/// and Noble, 2003).
#[derive(Clone, Debug)]
pub struct Waypoint {
    stream: NumberStream,
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
        let stream = NumberStream::new(seed, node, Purpose::Movement);
        Waypoint { stream, area, slowest_mps, fastest_mps, pause_ns, at: start, leaves_ns: 0 }
    }

    fn next_leg(&mut self) -> Leg {
        let to = Position { x: self.area.x * self.stream.unit(), y: self.area.y * self.stream.unit() };
        let speed_mps = self.slowest_mps + (self.fastest_mps - self.slowest_mps) * self.stream.unit();
        let mut leg = Leg::towards(self.leaves_ns, self.at, to, speed_mps);
        // A leg of no length must not be followed by another at its own instant.
        leg.until_ns = leg.until_ns.max(leg.from_ns + 1_000_000);
        (self.at, self.leaves_ns) = (leg.end, leg.until_ns.saturating_add(self.pause_ns));
        leg
    }
}

#[cfg(test)]
mod tests;
