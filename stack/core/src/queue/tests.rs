use std::net::IpAddr;
use std::time::Duration;

use super::*;
use crate::trace::DropReason;
use crate::wire::{Ecn, IpHeader, IpView};

const MS: u64 = 1_000_000;

/// A datagram of a flow, with so many bytes in all.
fn packet(port: u16, bytes: usize, ecn: Ecn) -> Vec<u8> {
    datagram((port, bytes), ecn, 0)
}

fn datagram((port, bytes): (u16, usize), ecn: Ecn, dscp: u8) -> Vec<u8> {
    let (src, dst): ([u8; 4], [u8; 4]) = ([10, 0, 0, 1], [10, 0, 0, 9]);
    let header = IpHeader {
        src: src.into(),
        dst: dst.into(),
        protocol: 17,
        hop_limit: 64,
        ecn,
        dscp,
        dont_fragment: true,
        id: 0,
        source_route: None,
    };
    let mut packet = Vec::new();
    header.emit(bytes - 20, &mut packet);
    packet.extend_from_slice(&port.to_be_bytes());
    packet.resize(bytes, 0);
    packet
}

fn to(last: u8) -> NextHop {
    NextHop::Neighbour(IpAddr::from([10, 0, 0, last]))
}

fn queued(id: u64, port: u16, bytes: usize) -> Queued {
    let class = QueueClass::Data;
    Queued { to: to(2), class, id, at: Instant::ZERO, packet: packet(port, bytes, Ecn::NotEct) }
}

/// One packet in the device and no limits of airtime: the order above it shows.
const BARE: FqCodelConfig =
    FqCodelConfig { airtime: None, is_fair: false, device_packets: 1, ..FqCodelConfig::LINUX };

fn ids(queue: &mut FqCodel, now: Instant) -> Vec<u64> {
    std::iter::from_fn(|| queue.pop(now)).map(|queued| queued.id).collect()
}

fn lost(queue: &mut FqCodel) -> Vec<(u64, DropReason)> {
    std::iter::from_fn(|| queue.poll_lost()).map(|(queued, reason)| (queued.id, reason)).collect()
}

/// The times at which an overloaded flow loses packets, in ms: it is looked at once a millisecond.
fn drops(config: FqCodelConfig, ecn: Ecn, ms: u64) -> (Vec<u64>, u64) {
    let mut queue = FqCodel::new(config);
    for id in 0..2_000 {
        queue.push(Instant::ZERO, Queued { packet: packet(1, 1_000, ecn), ..queued(id, 1, 1_000) });
    }
    let mut times = Vec::new();
    for at in 1..ms {
        queue.pop(Instant(at * MS)).expect("it has more");
        times.extend(lost(&mut queue).iter().map(|(_, reason)| {
            assert_eq!(*reason, DropReason::Codel);
            at
        }));
    }
    (times, queue.marks())
}

/// RFC 8289 §5.3: the distances between drops are the interval over the root of their number.
#[test]
fn codel_drops_by_the_rfcs_law() {
    let (times, marks) = drops(BARE, Ecn::NotEct, 1_000);
    let mut wanted = vec![120.0];
    for count in 1..40_u32 {
        wanted.push(wanted[wanted.len() - 1] + 100.0 / f64::from(count).sqrt());
    }
    assert_eq!(marks, 0);
    assert!(times.len() > 20, "{times:?}");
    for (time, wanted) in times.iter().zip(wanted) {
        assert!((*time as f64 - wanted).abs() <= 2.0, "{time} and not {wanted}");
    }
}

#[test]
fn flows_with_ecn_are_marked_at_the_same_rate_and_lose_nothing() {
    let (lost, _) = drops(BARE, Ecn::NotEct, 1_000);
    let (times, marks) = drops(BARE, Ecn::Ect0, 1_000);
    assert!(times.is_empty() && marks.abs_diff(lost.len() as u64) <= 1, "{marks} and not {}", lost.len());
    let deaf = FqCodelConfig { ecn: false, ..BARE };
    assert_eq!(drops(deaf, Ecn::Ect0, 1_000), (lost, 0));
}

#[test]
fn short_waits_and_the_last_packet_of_a_flow_are_no_reason_to_drop() {
    let mut queue = FqCodel::new(BARE);
    for id in 0..1_000 {
        // Each waits for 19 ms.
        queue.push(Instant(id * MS), Queued { at: Instant(id * MS), ..queued(id, 1, 1_000) });
        if id >= 19 {
            assert!(queue.pop(Instant(id * MS)).is_some());
        }
    }
    let _ = ids(&mut queue, Instant(1_000 * MS));
    for id in 0..100 {
        let at = Instant((2_000 + id * 50) * MS);
        queue.push(at, Queued { at, ..queued(id, 2, 1_000) });
        assert_eq!(queue.len(), 1);
        assert!(queue.pop(at + Duration::from_millis(49)).is_some());
    }
    assert!(lost(&mut queue).is_empty());
}

#[test]
fn flows_have_turns_of_a_quantum_and_a_new_one_goes_first() {
    let mut queue = FqCodel::new(BARE);
    // One is in the device at once. A flow of long packets and one of short ones have as many bytes.
    for id in 0..9 {
        queue.push(Instant::ZERO, queued(id, 1, 1_500));
    }
    for id in 100..140 {
        queue.push(Instant::ZERO, queued(id, 2, 300));
    }
    let first: Vec<_> = (0..24).filter_map(|_| queue.pop(Instant::ZERO)).collect();
    let bytes = |is_long: bool| -> usize {
        let of = first.iter().filter(|queued| (queued.id < 100) == is_long);
        of.map(|queued| queued.packet.len()).sum()
    };
    assert!(bytes(true).abs_diff(bytes(false)) <= 3_000, "{} and {}", bytes(true), bytes(false));
    queue.push(Instant::ZERO, queued(999, 3, 60));
    let next: Vec<_> = (0..2).filter_map(|_| queue.pop(Instant::ZERO)).map(|queued| queued.id).collect();
    assert!(next.contains(&999), "after the one in the device: {next:?}");
}

#[test]
fn a_flow_that_is_new_again_and_again_leaves_others_their_turns() {
    let mut queue = FqCodel::new(BARE);
    (0..20).for_each(|id| queue.push(Instant::ZERO, queued(id, 1, 1_000)));
    let mut others = 0;
    for id in 100..160 {
        queue.push(Instant::ZERO, queued(id, 2, 1_000));
        others += u64::from(queue.pop(Instant::ZERO).is_some_and(|queued| queued.id < 100));
    }
    assert!(others == 20, "{others}");
}

#[test]
fn what_is_above_the_limits_costs_the_longest_flow_its_first_packet() {
    let mut queue = FqCodel::new(FqCodelConfig { packets: 5, ..BARE });
    (0..6).for_each(|id| queue.push(Instant::ZERO, queued(id, 1, 1_000)));
    assert_eq!((queue.len(), queue.is_full(), lost(&mut queue).len()), (6, true, 0));
    queue.push(Instant::ZERO, queued(10, 2, 100));
    assert_eq!(lost(&mut queue), [(1, DropReason::QueueFull)]);
    // Each packet of 1,000 bytes takes 1,576.
    let mut queue = FqCodel::new(FqCodelConfig { memory: 5 * 1_576, ..BARE });
    (0..7).for_each(|id| queue.push(Instant::ZERO, queued(id, 1, 1_000)));
    assert_eq!(lost(&mut queue), [(1, DropReason::QueueMemory)]);
    assert_eq!(ids(&mut queue, Instant::ZERO), [0, 2, 3, 4, 5, 6]);
    assert!(queue.is_empty() && !queue.is_full());
}

/// Packets of a millisecond each.
fn timed(is_fair: bool) -> FqCodelConfig {
    let estimate = AirtimeEstimate { frame_ns: 0, usual_ns: MS, is_aggregated: false };
    FqCodelConfig { estimate, is_fair, ..FqCodelConfig::LINUX }
}

fn fill(queue: &mut FqCodel, station: u8, packets: u64) {
    for id in 0..packets {
        let id = u64::from(station) * 1_000 + id;
        queue.push(Instant::ZERO, Queued { to: to(station), ..queued(id, station.into(), 1_024) });
    }
}

#[test]
fn a_station_has_so_much_airtime_in_the_device_and_less_when_others_have_much() {
    let mut queue = FqCodel::new(timed(false));
    [2, 3, 4].into_iter().for_each(|station| fill(&mut queue, station, 50));
    let count = |queue: &FqCodel, station| queue.device_of(to(station));
    let before: Vec<_> = [2, 3, 4].map(|station| count(&queue, station)).into();
    assert_eq!(before, [12, 12, 5]);
    // Together they have more than 24 ms: the first one gets no more while it has 5 of them.
    let gone = |queue: &mut FqCodel, station| {
        let next = queue
            .pop_beside(Instant::ZERO, Category::BestEffort, ([10, 0, 0, station].into(), 2_000))
            .expect("it has some");
        queue.on_gone(next.id);
        queue.push(Instant::ZERO, Queued { to: to(9), ..queued(9_000, 9, 1_024) });
        count(queue, station)
    };
    let left: Vec<_> = (0..9).map(|_| gone(&mut queue, 2)).collect();
    assert_eq!(left, [11, 10, 9, 8, 7, 6, 5, 5, 5]);
    // Alone it has 12 again as soon as one has gone.
    let mut queue = FqCodel::new(timed(false));
    fill(&mut queue, 2, 50);
    assert_eq!([0; 3].map(|_| gone(&mut queue, 2)), [12, 12, 12]);
    // Without limits the device takes what it has places for.
    let mut queue = FqCodel::new(FqCodelConfig { airtime: None, ..timed(false) });
    fill(&mut queue, 2, 200);
    assert_eq!(count(&queue, 2), 128);
}

#[test]
fn stations_have_as_much_airtime_and_not_as_many_packets() {
    let packets = |is_fair| {
        let config = FqCodelConfig { device_packets: 1, airtime: None, ..timed(is_fair) };
        let mut queue = FqCodel::new(config);
        [2, 3].into_iter().for_each(|station| fill(&mut queue, station, 400));
        let mut counts = [0, 0];
        for _ in 0..220 {
            let queued = queue.pop(Instant::ZERO).expect("it has more");
            let is_slow = queued.to == to(3);
            counts[usize::from(is_slow)] += 1;
            let usual_ns = if is_slow { 10 * MS } else { MS };
            let estimate = AirtimeEstimate { usual_ns, ..config.estimate };
            queue.on_spent(&Spent { id: queued.id, tries: 1, estimate });
            queue.on_gone(queued.id);
        }
        counts
    };
    let [fast, slow] = packets(true);
    assert!((195..=205).contains(&fast) && (15..=25).contains(&slow), "{fast} and {slow}");
    assert_eq!(packets(false), [220, 0], "the first station's are first");
}

#[test]
fn what_a_station_sends_counts_to_its_turn() {
    let mut queue = FqCodel::new(FqCodelConfig { device_packets: 1, airtime: None, ..timed(true) });
    [2, 3].into_iter().for_each(|station| fill(&mut queue, station, 100));
    (0..50).for_each(|_| queue.on_heard([10, 0, 0, 2].into(), &[0; 1_024]));
    let mut stations = Vec::new();
    for _ in 0..40 {
        let queued = queue.pop(Instant::ZERO).expect("it has more");
        stations.push(queued.to);
        queue.on_spent(&Spent { id: queued.id, tries: 1, estimate: timed(true).estimate });
        queue.on_gone(queued.id);
    }
    assert!(stations[2..].iter().all(|station| *station == to(3)), "{stations:?}");
}

#[test]
fn packets_share_the_part_of_a_frame_by_its_rate() {
    let at = |usual_ns, is_aggregated| {
        AirtimeEstimate { frame_ns: 320_000, usual_ns, is_aggregated }.of(2_048) - 2 * usual_ns
    };
    let shares = [500, 300, 200, 100, 50].map(|us| at(us * 1_000, true));
    assert_eq!(shares, [160_000, 80_000, 40_000, 20_000, 10_000]);
    assert_eq!(at(50_000, false), 320_000);
}

#[test]
fn packets_beside_others_are_for_the_same_neighbour() {
    let mut queue = FqCodel::new(timed(false));
    [2, 3].into_iter().for_each(|station| fill(&mut queue, station, 3));
    let beside = |queue: &mut FqCodel, last: u8, bytes| {
        queue
            .pop_beside(Instant::ZERO, Category::BestEffort, ([10, 0, 0, last].into(), bytes))
            .map(|queued| queued.id)
    };
    assert_eq!(beside(&mut queue, 3, 1_000), None, "it does not fit");
    assert_eq!(beside(&mut queue, 3, 1_024), Some(3_000));
    assert_eq!(beside(&mut queue, 3, 1_024), Some(3_001));
    assert_eq!(beside(&mut queue, 4, 1_024), None);
    assert_eq!(ids(&mut queue, Instant::ZERO), [2_000, 2_001, 2_002, 3_002]);
}

#[test]
fn purging_takes_what_is_above_the_device() {
    let mut queue = FqCodel::new(BARE);
    (0..3).for_each(|id| queue.push(Instant::ZERO, queued(id, 1, 100)));
    queue.push(Instant::ZERO, Queued { to: to(3), ..queued(3, 2, 100) });
    let gone = queue.purge(|queued| queued.to == to(2));
    assert_eq!(gone.iter().map(|queued| queued.id).collect::<Vec<_>>(), [1, 2]);
    assert_eq!((queue.len(), ids(&mut queue, Instant::ZERO)), (2, vec![0, 3]));
}

/// A table of one place: flows of two stations meet there.
#[test]
fn a_flow_never_mixes_packets_of_two_stations() {
    let mut queue = FqCodel::new(FqCodelConfig { flows: 1, ..BARE });
    for id in 0..3 {
        queue.push(Instant::ZERO, queued(id, 1, 100));
        queue.push(Instant::ZERO, Queued { to: to(3), ..queued(10 + id, 2, 100) });
    }
    let all: Vec<_> = std::iter::from_fn(|| queue.pop(Instant::ZERO)).collect();
    for station in [2, 3] {
        let of: Vec<_> =
            all.iter().filter(|queued| queued.to == to(station)).map(|queued| queued.id).collect();
        let first = if station == 2 { 0 } else { 10 };
        assert_eq!(of, [first, first + 1, first + 2]);
    }
    assert!(all.iter().all(|queued| IpView::parse(&queued.packet).is_ok()));
}

/// A packet of this code point.
fn marked(id: u64, dscp: u8) -> Queued {
    Queued { packet: datagram((1, 1_000), Ecn::NotEct, dscp), ..queued(id, 1, 1_000) }
}

/// Packets of best effort that fill the device take nothing from those of voice, and the greatest category goes first.
#[test]
fn each_category_has_its_own_device_and_its_own_limit_of_airtime() {
    for is_divided in [false, true] {
        let mut queue = FqCodel::new(timed(true));
        if is_divided {
            queue.divide();
        }
        (0..200).for_each(|id| queue.push(Instant::ZERO, marked(id, 0)));
        let of_best_effort = queue.device_of(to(2));
        assert!((1..100).contains(&of_best_effort), "its airtime has a limit: {of_best_effort}");
        (200..205).for_each(|id| queue.push(Instant::ZERO, marked(id, 48)));
        queue.push(Instant::ZERO, marked(300, 34));
        let in_device = queue.device_of(to(2)) - of_best_effort;
        assert_eq!(in_device, if is_divided { 6 } else { 0 });
        let pop =
            |queue: &mut FqCodel, category| queue.pop_in(Instant::ZERO, category).map(|queued| queued.id);
        let first = pop(&mut queue, Category::Voice);
        assert_eq!(first, is_divided.then_some(200));
        assert_eq!(pop(&mut queue, Category::Video), is_divided.then_some(300));
        assert_eq!(pop(&mut queue, Category::Background), None);
        assert_eq!(pop(&mut queue, Category::BestEffort), Some(0));
        let next = if is_divided { 201 } else { 1 };
        assert_eq!(queue.pop(Instant::ZERO).map(|queued| queued.id), Some(next));
    }
}
