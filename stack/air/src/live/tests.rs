use std::cell::RefCell;
use std::rc::Rc;

use hopwise_core::queue::{Category, FqCodelConfig};
use hopwise_core::wire::{Ecn, IpHeader};
use hopwise_core::{LinkEvent, LinkId, NextHop, Payload};

use super::*;
use crate::arp::Arp;
use crate::channel::Channel;
use crate::dcf::MacConfig;
use crate::frames::{Framing, Mac, mac_of};
use crate::outside::{FrameRefusal, OutsideDevices, name_of};
use crate::phy::Phy;
use crate::radio::Position;
use crate::radio::Radio;
use crate::world::WireConfig;
use crate::world::{StationConfig, WorldConfig};
const RADIO: LinkId = LinkId(0);
const WIRE: LinkId = LinkId(1);

/// Stations on a line; the first two have a wire between them too.
fn line(spacing_m: f64, stations: u32) -> Live<OutsideDevices> {
    line_of("dsss-2mbps", spacing_m, stations, |n| {
        OutsideDevices::new(mac_of(n)).with_radio(RADIO, 1).with_wire(WIRE, 1)
    })
}

fn line_of(
    profile: &str,
    spacing_m: f64,
    stations: u32,
    machine: impl Fn(u32) -> OutsideDevices,
) -> Live<OutsideDevices> {
    let station = |n: u32| StationConfig {
        position: Some(Position { x: spacing_m * f64::from(n), y: 0.0 }),
        radio: RADIO,
        address: name_of(mac_of(n)),
        hears_all: false,
        framing: Framing::Ethernet,
    };
    let config = WorldConfig {
        phy: Phy::named(profile).expect("a profile"),
        mac: MacConfig::default(),
        radio: Radio::default(),
        channel: Channel::default(),
        stations: (0..stations).map(station).collect(),
        wires: vec![WireConfig {
            ends: [(0, WIRE), (1, WIRE)],
            bits_per_second: 10_000_000,
            delay: Duration::from_millis(1),
        }],
        arp: Arp::Known,
        seed: 1,
    };
    Live::new(RadioWorld::new(config, (0..stations).map(machine).collect()))
}

fn frame(to: Mac, from: Mac, bytes: usize) -> Vec<u8> {
    let mut frame = [to, from].concat();
    frame.extend_from_slice(&[0x08, 0x00]);
    frame.resize(14 + bytes, 0x45);
    frame
}

/// The frames that have come by then, with their receivers.
fn came(live: &mut Live<OutsideDevices>, until: Instant) -> Vec<(u32, LinkId, usize)> {
    while live.advance(until) == LiveProgress::MoreIsDue {}
    let mut came = Vec::new();
    for n in 0..live.machines().len() as u32 {
        live.world().with(n, |_, outside| outside.take(|link, frame| came.push((n, link, frame.len()))));
    }
    came
}

fn put(live: &mut Live<OutsideDevices>, from: u32, link: LinkId, frame: &[u8]) -> Result<(), FrameRefusal> {
    live.world().with(from, |now, outside| outside.put(now, link, frame))
}

#[test]
fn a_frame_arrives_whole_when_its_time_on_the_air_is_over() {
    let (mut live, begins) = (line(200.0, 3), Instant::from_secs(1));
    live.advance(begins);
    let sent = frame(mac_of(1), mac_of(0), 1_000);
    put(&mut live, 0, RADIO, &sent).expect("there is room");
    // The RTS, the CTS and the data at 2 Mbit/s, without the Ethernet header.
    let takes = Duration::from_micros(352 + 10 + 304 + 10 + 192 + 4 * 1_036);
    assert_eq!(came(&mut live, begins + takes), []);
    assert_eq!(came(&mut live, begins + takes + Duration::from_micros(4)), [(1, RADIO, 1_014)]);
}

#[test]
fn what_is_for_all_comes_to_who_is_in_range_and_to_nobody_else() {
    let mut live = line(200.0, 4);
    put(&mut live, 1, RADIO, &frame([0xff; 6], mac_of(1), 100)).expect("there is room");
    assert_eq!(came(&mut live, Instant::from_secs(1)), [(0, RADIO, 114), (2, RADIO, 114)]);
    put(&mut live, 1, RADIO, &frame([0x01, 0, 0x5e, 0, 0, 1], mac_of(1), 100)).expect("there is room");
    assert_eq!(came(&mut live, Instant::from_secs(2)).len(), 2);
    put(&mut live, 0, RADIO, &frame(mac_of(3), mac_of(0), 100)).expect("there is room");
    assert_eq!(came(&mut live, Instant::from_secs(3)), [], "600 m");
    assert_eq!(live.machines()[0].undelivered, 1);
}

#[test]
fn wires_carry_frames_as_they_are() {
    let mut live = line(200.0, 2);
    put(&mut live, 0, WIRE, &frame(mac_of(7), mac_of(9), 1_236)).expect("there is room");
    assert_eq!(came(&mut live, Instant::from_millis(1)), []);
    assert_eq!(came(&mut live, Instant::from_millis(2)), [(1, WIRE, 1_250)]);
}

#[test]
fn a_station_speaks_for_itself_one_frame_at_a_time() {
    let mut live = line(200.0, 2);
    let good = frame(mac_of(1), mac_of(0), 1_000);
    assert_eq!(
        put(&mut live, 0, RADIO, &frame(mac_of(1), mac_of(5), 100)),
        Err(FrameRefusal::InAnothersName)
    );
    // With the protocol header (SNAP) it would be an MSDU of 2305 bytes.
    for bytes in [2_297, 60_000] {
        let long = frame(mac_of(1), mac_of(0), bytes);
        assert_eq!(put(&mut live, 0, RADIO, &long), Err(FrameRefusal::TooLong), "{bytes}");
    }
    assert_eq!(put(&mut live, 0, RADIO, &good[..14]), Err(FrameRefusal::TooShort));
    // One packet is with the radio, one waits.
    assert_eq!([0; 3].map(|_| put(&mut live, 0, RADIO, &good).is_ok()), [true, true, false]);
    assert!(!live.machines()[0].has_room(RADIO) && live.machines()[0].has_room(WIRE));
    assert_eq!(came(&mut live, Instant::from_secs(1)).len(), 2);
    assert!(live.machines()[0].has_room(RADIO));
}

#[test]
fn as_many_frames_wait_as_a_device_has_places_and_leave_in_order() {
    let machine = |n| OutsideDevices::new(mac_of(n)).with_radio(RADIO, 3);
    let mut outside = machine(0);
    let sent = |length| frame(mac_of(1), mac_of(0), length);
    let puts = [100, 200, 300, 400].map(|length| outside.put(Instant::ZERO, RADIO, &sent(length)).is_ok());
    assert_eq!((puts, outside.has_room(RADIO)), ([true, true, true, false], false));
    let mut next = || {
        let mut out = Vec::new();
        outside.poll_transmit(Instant::ZERO, RADIO, Payload::Inline, &mut out).map(|_| out.len())
    };
    assert_eq!(
        [0; 4].map(|_| next()),
        [Some(sent(100).len()), Some(sent(200).len()), Some(sent(300).len()), None]
    );
    assert!(outside.has_room(RADIO));
}

/// A frame from the first station to the second with an IP packet of that port and that code point.
fn ip((port, dscp): (u16, u8), bytes: usize) -> Vec<u8> {
    let header = IpHeader {
        src: [10, 0, 0, 1].into(),
        dst: [10, 0, 0, 2].into(),
        protocol: 17,
        hop_limit: 64,
        ecn: Ecn::NotEct,
        dscp,
        dont_fragment: true,
        id: 0,
        source_route: None,
    };
    let mut packet = frame(mac_of(1), mac_of(0), 0);
    header.emit(bytes - 20, &mut packet);
    packet.extend_from_slice(&port.to_be_bytes());
    packet.resize(14 + bytes, 0);
    packet
}

#[test]
fn with_linuxs_queue_all_frames_wait_here_and_short_flows_do_not_wait_behind_long_ones() {
    let config = FqCodelConfig { device_packets: 1, packets: 100, ..FqCodelConfig::LINUX };
    let mut outside = OutsideDevices::new(mac_of(0)).with_radio_of_linux(RADIO, config);
    for _ in 0..150 {
        assert!(outside.has_room(RADIO) && outside.put(Instant::ZERO, RADIO, &ip((1, 0), 1_000)).is_ok());
    }
    assert_eq!((outside.queue_drops(), outside.codel_drops(), outside.queue_marks()), (49, 0, Some(0)));
    outside.put(Instant::ZERO, RADIO, &ip((2, 0), 100)).expect("there is room");
    let mut ids = Vec::new();
    for wanted in [1_014, 114, 1_014] {
        let mut out = Vec::new();
        let sent =
            outside.poll_transmit(Instant::ZERO, RADIO, Payload::Inline, &mut out).expect("it has some");
        assert_eq!((sent.to, out.len()), (NextHop::Neighbour(name_of(mac_of(1))), wanted));
        outside.handle_link_event(Instant::ZERO, RADIO, &LinkEvent::Delivered { id: sent.id, by: None });
        ids.push(sent.id);
    }
    ids.dedup();
    assert_eq!(ids.len(), 3, "each frame has a name of its own");
}

/// Two stations of 802.11n whose devices take frames by access category, with drop-tail or Linux's queue.
fn by_category(is_linux: bool) -> Live<OutsideDevices> {
    let mut live = line_of("ht20-mcs7", 200.0, 2, |n| {
        let outside = OutsideDevices::new(mac_of(n)).with_wire(WIRE, 1);
        let outside = match is_linux {
            true => outside.with_radio_of_linux(RADIO, FqCodelConfig::LINUX),
            false => outside.with_radio(RADIO, 20),
        };
        outside.by_category(RADIO)
    });
    live.world().more = OutsideDevices::poll_beside;
    live.world().categories = Some(OutsideDevices::poll_in);
    live
}

/// The code points of the packets that have come to the second station by then, in order.
fn code_points(live: &mut Live<OutsideDevices>, until: Instant) -> Vec<u8> {
    while live.advance(until) == LiveProgress::MoreIsDue {}
    let mut points = Vec::new();
    live.world().with(1, |_, outside| outside.take(|_, frame| points.push(frame[15] >> 2)));
    points
}

/// EF, CS4 and CS1 are voice, video and background.
#[test]
fn frames_of_programs_wait_by_the_category_of_their_code_point() {
    for is_linux in [false, true] {
        let mut live = by_category(is_linux);
        for dscp in [0, 0, 0, 0, 8, 8, 32, 32, 46, 46] {
            put(&mut live, 0, RADIO, &ip((1, dscp), 1_000)).expect("there is room");
        }
        // All find the medium idle at one instant, and the greatest goes first. Its TXOP has room for two.
        let came = code_points(&mut live, Instant::from_millis(100));
        assert_eq!((came.len(), &came[..4]), (10, &[46, 46, 32, 32][..]), "{is_linux}: {came:?}");
    }
}

#[test]
fn categories_of_a_station_collide_within_it_and_the_greater_goes_first() {
    let mut live = by_category(false);
    for ms in 0..2_000 {
        for dscp in [32, 46].into_iter().cycle().take(10) {
            put(&mut live, 0, RADIO, &ip((1, dscp), 1_000)).expect("a radio of categories has room");
        }
        code_points(&mut live, Instant::from_millis(ms));
    }
    let stats = *live.world().stats(0);
    assert!(stats.internal_collisions > 100, "{stats:?}");
    assert_eq!((stats.retry_drops, live.machines()[0].undelivered), (0, 0), "such a collision is no try");
}

/// Frames without IP go at best effort, also if their content looks like IP.
#[test]
fn a_category_that_is_full_drops_its_own_frames_alone() {
    let mut outside = OutsideDevices::new(mac_of(0)).with_radio(RADIO, 3).by_category(RADIO);
    let mut other = frame(mac_of(1), mac_of(0), 60);
    other[12..16].copy_from_slice(&[0x43, 0x05, 0x45, 0xb8]);
    for nth in 1..=5 {
        outside.put(Instant::ZERO, RADIO, &other).expect("it is taken, or dropped here");
        assert_eq!(outside.queue_drops(), u64::saturating_sub(nth, 3));
    }
    outside.put(Instant::ZERO, RADIO, &ip((1, 46), 100)).expect("voice has its own");
    assert_eq!((outside.queue_drops(), outside.has_room(RADIO)), (2, true));
    let mut next = |category, held| {
        let mut out = Vec::new();
        outside.poll_in(Instant::ZERO, RADIO, (category, held), &mut out).map(|_| out.len())
    };
    let (voice, best) = (Category::Voice, Category::BestEffort);
    assert_eq!([next(voice, 0), next(voice, 1)], [Some(114), None]);
    assert_eq!([next(Category::Video, 1), next(best, 1)], [None, Some(other.len())]);
    // Two wait, and the radio holds two: one too many.
    outside.put(Instant::ZERO, RADIO, &other).expect("it is dropped here");
    assert_eq!(outside.queue_drops(), 3);
}

/// All frames on the air for input at fixed instants, if the clock is read at this step.
fn log(step: Duration) -> Vec<String> {
    let mut live = line(200.0, 3);
    let lines = Rc::new(RefCell::new(Vec::new()));
    let sink = Rc::clone(&lines);
    live.world().set_frames(Box::new(move |event, _| sink.borrow_mut().push(event.to_string())));
    let mut clock = Instant::ZERO;
    for nth in 0..200 {
        let put_at = Instant::ZERO + Duration::from_millis(40) * nth;
        while clock < put_at {
            clock = (clock + step).min(put_at);
            came(&mut live, clock);
        }
        for n in 0..3 {
            let _ = put(&mut live, n, RADIO, &frame(mac_of(if n == 1 { 2 } else { 1 }), mac_of(n), 500));
        }
    }
    lines.take()
}

#[test]
fn what_happens_does_not_depend_on_how_often_the_clock_is_looked_at() {
    let fine = log(Duration::from_micros(100));
    assert!(fine.len() > 5_000, "{}", fine.len());
    assert!(fine == log(Duration::from_millis(7)) && fine == log(Duration::from_millis(40)));
}

#[test]
fn a_world_that_wakes_late_says_by_how_much_and_catches_up() {
    let mut live = line(200.0, 2);
    put(&mut live, 0, RADIO, &frame(mac_of(1), mac_of(0), 1_000)).expect("there is room");
    let due = live.poll_timeout().expect("a frame is under way");
    assert_eq!(came(&mut live, due + Duration::from_millis(80)).len(), 1);
    assert_eq!((live.lateness().worst, live.lateness().times), (Duration::from_millis(80), 1));
    assert_eq!(live.lateness().left_out, Duration::ZERO);
    assert_eq!((live.take_worst(), live.take_worst()), (Some(Duration::from_millis(80)), None));
    put(&mut live, 0, RADIO, &frame(mac_of(1), mac_of(0), 1_000)).expect("there is room");
    let due = live.poll_timeout().expect("a frame is under way");
    assert_eq!(live.advance(due + Duration::from_micros(200)), LiveProgress::UpToDate);
    assert_eq!(live.lateness().times, 1, "some tenths of a millisecond are no lateness");
}

#[test]
fn what_cannot_be_made_up_for_is_left_out_and_the_world_goes_on_from_where_it_was() {
    let mut live = line(200.0, 2);
    put(&mut live, 0, RADIO, &frame(mac_of(1), mac_of(0), 1_000)).expect("there is room");
    let due = live.poll_timeout().expect("a frame is under way");
    let late = Duration::from_secs(30);
    live.advance(due + late);
    assert_eq!(live.lateness().left_out, late);
    assert!(live.world().now() <= due + SLICE, "its own clock stood still");
    assert_eq!(came(&mut live, due + late + Duration::from_millis(10)).len(), 1);
    let next = live.poll_timeout();
    assert!(next.is_none_or(|at| at > due + late), "{next:?} on the clock that it follows");
}
