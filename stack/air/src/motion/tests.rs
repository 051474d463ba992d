use super::*;
use crate::random::{NumberStream, Purpose};

const SECOND: u64 = 1_000_000_000;

fn waypoints(nodes: u32, area: Position) -> (Vec<Option<Position>>, Vec<Option<NodeTrack>>) {
    let start = |node| {
        let mut stream = NumberStream::new(1, node, Purpose::Placement);
        Position { x: area.x * stream.unit(), y: area.y * stream.unit() }
    };
    let positions: Vec<_> = (0..nodes).map(|node| Some(start(node))).collect();
    let track = |node| {
        let waypoint = Waypoint::new((1, node), start(node), area, (1.0, 20.0), SECOND);
        Some(NodeTrack::Waypoint(waypoint))
    };
    (positions, (0..nodes).map(track).collect())
}

#[test]
fn squares_hold_whoever_is_in_them_at_every_instant() {
    let area = Position { x: 900.0, y: 400.0 };
    let (positions, tracks) = waypoints(30, area);
    let mut moving = Moving::new(&positions, tracks, 100.0);
    let mut near = Vec::new();
    for now in (0..200 * SECOND).step_by(37_000_000) {
        moving.advance(now);
        for node in 0..30 {
            let here = moving.position(node, now).expect("a place");
            assert!((0.0..=area.x).contains(&here.x) && (0.0..=area.y).contains(&here.y));
            moving.around((node, here), now, 100.0, &mut near);
            assert!(near.is_sorted_by_key(|(other, _)| *other));
            for other in 0..30 {
                let there = moving.position(other, now).expect("a place");
                let is_close = here.distance_m(there) <= 100.0;
                assert_eq!(near.contains(&(other, there)), is_close, "{node} and {other} at {now}");
            }
        }
    }
}

#[test]
fn nobody_moves_faster_than_the_fastest_or_jumps() {
    let (positions, tracks) = waypoints(10, Position { x: 500.0, y: 500.0 });
    let mut moving = Moving::new(&positions, tracks, 550.0);
    let mut before: Vec<_> = (0..10).map(|node| moving.position(node, 0).expect("a place")).collect();
    let mut went_m = 0.0;
    for now in (0..100 * SECOND).step_by(100_000_000).skip(1) {
        moving.advance(now);
        for (node, was) in (0..10).zip(&mut before) {
            let is = moving.position(node, now).expect("a place");
            assert!(was.distance_m(is) <= 2.01, "{node} at {now}");
            went_m += was.distance_m(is);
            *was = is;
        }
    }
    // Ten nodes for 100 s at about 8 m/s (slow legs last longer), less their rests.
    assert!((4_000.0..12_000.0).contains(&went_m), "{went_m}");
}

#[test]
fn what_one_node_draws_moves_no_other() {
    let area = Position { x: 700.0, y: 700.0 };
    let end_of = |nodes| {
        let (positions, tracks) = waypoints(nodes, area);
        let mut moving = Moving::new(&positions, tracks, 550.0);
        moving.advance(60 * SECOND);
        moving.position(3, 60 * SECOND)
    };
    assert_eq!(end_of(4), end_of(20));
}

#[test]
fn who_has_no_track_stays_and_who_has_no_place_is_nowhere() {
    let positions = [Some(Position { x: 1.0, y: 2.0 }), None];
    let mut moving = Moving::new(&positions, Vec::new(), 100.0);
    moving.advance(SECOND);
    assert_eq!((moving.position(0, SECOND), moving.position(1, SECOND)), (positions[0], None));
}

#[test]
fn links_follow_their_nodes() {
    use crate::channel::{Channel, Fading};
    use crate::medium::{Medium, Radio};

    let (positions, tracks) = waypoints(40, Position { x: 2_000.0, y: 1_000.0 });
    let mut where_they_are = Moving::new(&positions, tracks.clone(), 550.0);
    for channel in
        [Channel::default(), Channel { fading: Fading::Rayleigh { doppler_hz: 3.0 }, ..Channel::default() }]
    {
        let of_places =
            |positions: &[Option<Position>]| Medium::new(&Radio::default(), &channel, positions, 1);
        let mut medium = of_places(&positions);
        medium.set_motion(&positions, tracks.clone());
        for now in (0..100 * SECOND).step_by(1_700_000_000) {
            where_they_are.advance(now);
            let now_at: Vec<_> = (0..40).map(|node| where_they_are.position(node, now)).collect();
            let fresh = of_places(&now_at);
            for station in 0..40 {
                medium.look(station, now);
                let of = |medium: &Medium| -> Vec<_> {
                    let links = &medium.links[medium.of(station)];
                    links.iter().map(|l| (l.from, l.to, l.delay_ns, l.power_w.to_bits())).collect()
                };
                assert_eq!(of(&medium), of(&fresh), "{station} at {now}");
                assert_eq!(medium.longest_ns(station), fresh.longest_ns(station));
            }
        }
        where_they_are = Moving::new(&positions, tracks.clone(), 550.0);
    }
}

#[test]
fn a_station_that_walks_away_is_heard_until_it_is_out_of_range() {
    use crate::dcf::{Dcf, DcfNews, MacConfig};
    use crate::medium::Radio;
    use crate::phy::Phy;

    let positions = [Some(Position::default()), Some(Position { x: 100.0, y: 0.0 })];
    let away = Leg::towards(0, Position { x: 100.0, y: 0.0 }, Position { x: 1_100.0, y: 0.0 }, 10.0);
    let back = Leg::towards(40 * SECOND, Position { x: 500.0, y: 0.0 }, Position { x: 100.0, y: 0.0 }, 20.0);
    let tracks = vec![None, Some(NodeTrack::Legs([away, back].into()))];
    let phy = Phy::named("dsss-2mbps").expect("a profile");
    let mut dcf = Dcf::new(phy, MacConfig::default(), Radio::default(), &positions, 1);
    dcf.set_motion(&positions, tracks);
    let mut arrived = [0; 60];
    dcf.offer(0, 1, 0, 1_000);
    dcf.play(60 * SECOND, |dcf, now, news| match news {
        DcfNews::Arrived { .. } => arrived[(now / SECOND) as usize] += 1,
        DcfNews::Done { station, .. } => dcf.offer(now, station, 0, 1_000),
        DcfNews::Kept { .. } | DcfNews::HasRoom { .. } => {}
    });
    // 250 m are reached after 15 s, and again 12.5 s after the turn.
    assert!(arrived[..15].iter().all(|n| *n > 100), "{arrived:?}");
    assert!(arrived[16..52].iter().all(|n| *n == 0) && arrived[54..].iter().all(|n| *n > 100), "{arrived:?}");
}
