use std::cell::RefCell;
use std::collections::BTreeSet;

use super::*;

fn secrets(key: u8) -> Secrets {
    Secrets::new([key; 32])
}

fn local() -> IpAddr {
    "10.0.0.1".parse().unwrap()
}

fn remote(port: u16) -> SocketAddr {
    SocketAddr::new("10.0.0.2".parse().unwrap(), port)
}

fn in_use(used: &RefCell<BTreeSet<u16>>, port: u16) -> PortUse {
    if used.borrow().contains(&port) { PortUse::Taken } else { PortUse::Free }
}

fn picks(key: u8, range: PortRange, to: SocketAddr, count: usize) -> Vec<u16> {
    let secrets = secrets(key);
    let mut picker = PortPicker::new(range);
    (0..count).map(|_| picker.next(&secrets, local(), to, &|_| PortUse::Free).unwrap()).collect()
}

#[test]
fn a_port_comes_again_only_when_all_others_have_come() {
    for range in [PortRange::default(), PortRange::new(5000, 5999), PortRange::new(1, u16::MAX)] {
        let count = range.len() as usize;
        let ports = picks(1, range, remote(80), 2 * count);
        for round in ports.chunks(count) {
            let different: BTreeSet<u16> = round.iter().copied().collect();
            assert_eq!(different.len(), count);
            assert_eq!((different.first(), different.last()), (Some(&range.first), Some(&range.last)));
        }
    }
}

#[test]
fn ports_in_use_are_skipped() {
    let secrets = secrets(1);
    let mut picker = PortPicker::new(PortRange::new(5000, 5009));
    let used = RefCell::new(BTreeSet::new());
    for _ in 0..10 {
        let port = picker.next(&secrets, local(), remote(80), &|port| in_use(&used, port)).unwrap();
        assert!(used.borrow_mut().insert(port));
    }
    assert_eq!(picker.next(&secrets, local(), remote(80), &|port| in_use(&used, port)), None);
    used.borrow_mut().remove(&5007);
    let next = picker.next(&secrets, local(), remote(80), &|port| in_use(&used, port));
    assert_eq!(next, Some(5007));
}

/// Each of ten ports in turn, but a free one first.
#[test]
fn ports_that_make_way_are_chosen_in_turn_where_none_is_free() {
    let secrets = secrets(1);
    let mut picker = PortPicker::new(PortRange::new(5000, 5009));
    let mut next = |port_use: &dyn Fn(u16) -> PortUse| picker.next(&secrets, local(), remote(80), port_use);
    let all: BTreeSet<u16> = (0..10).filter_map(|_| next(&|_| PortUse::MakesWay)).collect();
    assert_eq!(all.len(), 10);
    let one_free = |port| if port == 5007 { PortUse::Free } else { PortUse::MakesWay };
    assert_eq!(next(&one_free), Some(5007));
    let one_makes_way = |port| if port == 5003 { PortUse::MakesWay } else { PortUse::Taken };
    assert_eq!(next(&one_makes_way), Some(5003));
    assert_eq!(next(&|_| PortUse::Taken), None);
}

#[test]
fn one_destination_says_nothing_about_another() {
    let first: BTreeSet<u16> =
        (1..=64).map(|port| picks(1, PortRange::default(), remote(port), 1)[0]).collect();
    assert!(first.len() > 60, "64 destinations begin at {} places", first.len());
    let by_key: BTreeSet<u16> =
        (1..=64).map(|key| picks(key, PortRange::default(), remote(80), 1)[0]).collect();
    assert!(by_key.len() > 60, "64 keys begin at {} places", by_key.len());
}

#[test]
fn destinations_that_share_a_counter_begin_at_unrelated_places() {
    let secrets = secrets(1);
    let fresh = PortPicker { counters: secret_starts(&secrets), ..PortPicker::new(PortRange::default()) };
    let places: BTreeSet<u16> = (1..=3000)
        .filter_map(|port| fresh.clone().next(&secrets, local(), remote(port), &|_| PortUse::Free))
        .collect();
    // By chance 2,740; the counters alone would give no more places than counters.
    assert!(places.len() > 2600, "3000 destinations begin at {} places", places.len());
}

#[test]
fn traffic_to_others_does_not_move_a_destinations_ports() {
    let secrets = secrets(1);
    let mut picker = PortPicker::new(PortRange::default());
    let mut pick = |port| picker.next(&secrets, local(), remote(port), &|_| PortUse::Free).unwrap();
    let before = pick(80);
    for other in 81..90 {
        pick(other);
    }
    // Under this key, none of nine others shares a counter of 1024.
    assert_eq!(pick(80).wrapping_sub(before), 1);
}

#[test]
fn a_range_has_both_its_ends_and_no_zero() {
    assert_eq!(PortRange::new(9, 3), PortRange::new(3, 9));
    assert_eq!(PortRange::new(0, 0), PortRange::new(1, 1));
    assert_eq!(picks(1, PortRange::new(7, 7), remote(80), 2), [7, 7]);
    assert_eq!(PortRange::default().len(), 16_384);
}
