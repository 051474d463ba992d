//! Geometry on a plane in whole centimetres: only the crossing of two lines is rounded.

use std::cmp::Ordering;

/// A position, in centimetres.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// Centimetres along the first axis.
    pub x: i32,
    /// Centimetres along the second axis.
    pub y: i32,
}

/// The step from one position to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Vector {
    x: i128,
    y: i128,
}

impl Vector {
    fn cross(self, other: Vector) -> i128 {
        self.x * other.y - self.y * other.x
    }

    fn dot(self, other: Vector) -> i128 {
        self.x * other.x + self.y * other.y
    }
}

/// The rule for a planar part of the graph. Both rules need neighbours in range to receive each other's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Planar {
    /// Gabriel graph: no other node lies in the circle whose diameter is the edge.
    #[default]
    Gabriel,
    /// Relative neighbourhood graph: no node is closer to both ends than they are to each other.
    RelativeNeighbourhood,
}

/// The place of an edge that runs exactly along the line of reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alike {
    First,
    Last,
}

impl Point {
    fn to(self, other: Point) -> Vector {
        let difference = |a: i32, b: i32| i128::from(b) - i128::from(a);
        Vector { x: difference(self.x, other.x), y: difference(self.y, other.y) }
    }

    /// The distance, squared.
    pub(super) fn away(self, other: Point) -> i128 {
        let way = self.to(other);
        way.dot(way)
    }
}

/// Returns whether a node keeps this neighbour on the planar graph.
pub(super) fn is_kept(
    planar: Planar,
    here: Point,
    there: Point,
    others: impl Iterator<Item = Point>,
) -> bool {
    let edge = here.away(there);
    let is_witness = |other: Point| match planar {
        // Thales: within the circle the angle at the witness is obtuse.
        Planar::Gabriel => other.to(here).dot(other.to(there)) < 0,
        Planar::RelativeNeighbourhood => here.away(other).max(there.away(other)) < edge,
    };
    !others.into_iter().any(is_witness)
}

/// The first of `positions`, counterclockwise about `here` from the line to `reference`.
pub(super) fn first_counterclockwise<K: Copy>(
    here: Point,
    reference: Point,
    alike: Alike,
    positions: impl Iterator<Item = (K, Point)>,
) -> Option<K> {
    let from = here.to(reference);
    // 1 to 4: in its direction, to its left, behind it, to its right; 5: last of all.
    let quarter = |way: Vector| match (from.cross(way).signum(), from.dot(way).signum()) {
        (0, 1) if alike == Alike::First => 1,
        (1, _) => 2,
        (0, -1) => 3,
        (-1, _) => 4,
        _ => 5,
    };
    let order = |a: &(K, Vector), b: &(K, Vector)| {
        let same_side = || if a.1.cross(b.1) > 0 { Ordering::Less } else { Ordering::Greater };
        quarter(a.1).cmp(&quarter(b.1)).then_with(|| match a.1.cross(b.1) {
            0 => Ordering::Equal,
            _ => same_side(),
        })
    };
    positions.map(|(key, place)| (key, here.to(place))).min_by(order).map(|(key, _)| key)
}

/// The point where two line segments cross, to the nearest centimetre; parallel ones do not.
pub(super) fn crossing((a, b): (Point, Point), (c, d): (Point, Point)) -> Option<Point> {
    let (first, second, between) = (a.to(b), c.to(d), a.to(c));
    let by = first.cross(second);
    if by == 0 {
        return None;
    }
    // The shares of both segments at which they meet, times `by`.
    let (along, across) = (between.cross(second), between.cross(first));
    let is_within = |share: i128| if by > 0 { (0..=by).contains(&share) } else { (by..=0).contains(&share) };
    if !is_within(along) || !is_within(across) {
        return None;
    }
    let at = |from: i32, way: i128| i128::from(from) + nearest(way * along, by);
    // The crossing lies within a segment whose ends are `i32`, so that it fits.
    let whole = |place: i128| i32::try_from(place).ok();
    Some(Point { x: whole(at(a.x, first.x))?, y: whole(at(a.y, first.y))? })
}

fn nearest(number: i128, by: i128) -> i128 {
    let (number, by) = if by < 0 { (-number, -by) } else { (number, by) };
    (2 * number + by).div_euclid(2 * by)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(x: i32, y: i32) -> Point {
        Point { x, y }
    }

    fn first(reference: Point, alike: Alike, positions: &[Point]) -> Option<Point> {
        first_counterclockwise(at(0, 0), reference, alike, positions.iter().map(|place| (*place, *place)))
    }

    #[test]
    fn edges_are_taken_counterclockwise_from_the_line_of_reference() {
        let (east, north, west, south) = (at(9, 0), at(0, 9), at(-9, 0), at(0, -9));
        let all = [south, west, north, east];
        assert_eq!(first(east, Alike::Last, &all), Some(north));
        assert_eq!(first(north, Alike::Last, &all), Some(west));
        assert_eq!(first(east, Alike::First, &all), Some(east));
        assert_eq!(first(at(5, -1), Alike::Last, &all), Some(east));
        assert_eq!(first(east, Alike::Last, &[east, south]), Some(south));
        assert_eq!(first(east, Alike::Last, &[at(3, 0)]), Some(at(3, 0)), "back the way it came");
        assert_eq!(first(east, Alike::Last, &[at(-5, -1), at(-5, 1), at(5, -1)]), Some(at(-5, 1)));
        assert_eq!(
            first(east, Alike::Last, &[at(0, 0), south]),
            Some(south),
            "where we are ourselves is last"
        );
        assert_eq!(first(east, Alike::Last, &[]), None);
    }

    #[test]
    fn lines_cross_where_they_do_and_nowhere_else() {
        let cross = |a, b, c, d| crossing((a, b), (c, d));
        assert_eq!(cross(at(0, 0), at(10, 10), at(0, 10), at(10, 0)), Some(at(5, 5)));
        assert_eq!(cross(at(0, 0), at(10, 0), at(3, -1), at(4, 1)), Some(at(4, 0)), "3.5 is nearest to 4");
        assert_eq!(cross(at(0, 0), at(10, 0), at(0, 0), at(0, 5)), Some(at(0, 0)), "ends belong to them");
        assert_eq!(cross(at(0, 0), at(10, 0), at(0, 1), at(10, 1)), None);
        assert_eq!(cross(at(0, 0), at(10, 0), at(5, 1), at(5, 9)), None);
        let far = i32::MAX;
        assert_eq!(cross(at(-far, -far), at(far, far), at(-far, far), at(far, -far)), Some(at(0, 0)));
    }

    #[test]
    fn a_witness_takes_an_edge_off_the_graph() {
        let kept = |planar, other| is_kept(planar, at(0, 0), at(10, 0), [other].into_iter());
        for planar in [Planar::Gabriel, Planar::RelativeNeighbourhood] {
            assert!(!kept(planar, at(5, 4)), "{planar:?}");
            assert!(kept(planar, at(5, 9)), "{planar:?}");
            assert!(kept(planar, at(-1, 0)), "{planar:?}");
        }
        assert!(kept(Planar::Gabriel, at(5, 5)), "on the circle is not within");
        // In the lune, out of the circle: the relative neighbourhood graph is a part of Gabriel's.
        assert!(kept(Planar::Gabriel, at(5, 7)) && !kept(Planar::RelativeNeighbourhood, at(5, 7)));
    }

    fn points() -> impl Strategy<Value = Vec<Point>> {
        let place = (0..1_000, 0..1_000).prop_map(|(x, y)| at(x, y));
        proptest::collection::vec(place, 3..16)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        /// No two edges of either graph cross: perimeter mode needs that.
        #[test]
        fn no_two_edges_that_are_kept_cross(positions in points(), is_gabriel in any::<bool>()) {
            let planar = if is_gabriel { Planar::Gabriel } else { Planar::RelativeNeighbourhood };
            let mut positions = positions;
            positions.sort_unstable_by_key(|place| (place.x, place.y));
            positions.dedup();
            let mut edges = Vec::new();
            for (n, here) in positions.iter().enumerate() {
                for there in &positions[n + 1..] {
                    let others = positions.iter().filter(|other| *other != here && *other != there).copied();
                    if is_kept(planar, *here, *there, others) {
                        edges.push((*here, *there));
                    }
                }
            }
            for (n, first) in edges.iter().enumerate() {
                for second in &edges[n + 1..] {
                    let is_joined = [first.0, first.1].iter().any(|end| *end == second.0 || *end == second.1);
                    prop_assert!(is_joined || crossing(*first, *second).is_none(), "{first:?} {second:?}");
                }
            }
        }

        #[test]
        fn who_comes_first_does_not_depend_on_the_order_of_asking(positions in points(), x in 1..9, y in -9..9) {
            let chosen = first(at(x, y), Alike::Last, &positions);
            let reversed: Vec<_> = positions.iter().rev().copied().collect();
            let other = first(at(x, y), Alike::Last, &reversed);
            let (Some(a), Some(b)) = (chosen, other) else { panic!("there are some") };
            // Two neighbours in one direction are equally good.
            prop_assert_eq!(at(0, 0).to(a).cross(at(0, 0).to(b)), 0);
        }
    }
}
