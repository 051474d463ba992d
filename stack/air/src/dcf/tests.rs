use super::*;
use crate::channel::Fading;
use crate::frames::{FrameEffect, FrameFate};
use crate::random::{NumberStream, Purpose};

/// Stations that always have a packet of 1,028 B for the first one, and their packets that arrived in 250 s.
struct Cell {
    dcf: Dcf,
    arrived: Vec<u64>,
    senders: std::ops::Range<u32>,
}

pub(super) const SECOND: u64 = 1_000_000_000;

impl Cell {
    fn new(profile: &str, mac: MacConfig, radio: Radio, positions: &[Option<Position>], seed: u64) -> Cell {
        let phy = Phy::named(profile).expect("a profile");
        let dcf = Dcf::new(phy, mac, radio, positions, seed);
        Cell { dcf, arrived: vec![0; positions.len()], senders: 1..positions.len() as u32 }
    }

    fn kbps_each(mut self, seconds: u64) -> Vec<f64> {
        for station in self.senders.clone() {
            self.dcf.offer(u64::from(station) * 1_000_000, station, 0, 1_028);
        }
        self.dcf.play(seconds * SECOND, |dcf, now, news| match news {
            DcfNews::Arrived { from, .. } => self.arrived[from as usize] += 1,
            DcfNews::Done { station, .. } => dcf.offer(now, station, 0, 1_028),
            DcfNews::Kept { .. } | DcfNews::HasRoom { .. } => {}
        });
        let kbps = |packets: &u64| *packets as f64 * 8.0 / seconds as f64;
        self.arrived[1..].iter().map(kbps).collect()
    }
}

fn circle(stations: u32) -> Vec<Option<Position>> {
    let on_circle = |n: u32| {
        let angle = f64::from(n) * std::f64::consts::TAU / f64::from(stations);
        Position { x: 100.0 * angle.cos(), y: 100.0 * angle.sin() }
    };
    std::iter::once(Position::default()).chain((0..stations).map(on_circle)).map(Some).collect()
}

fn ns2(rts_threshold: Option<u32>) -> MacConfig {
    MacConfig { rules: MacRules::Ns2, rts_threshold, ..MacConfig::default() }
}

/// Checks that `got` is within `percent` of `expected`, and prints it if not.
fn is_near(got: f64, expected: f64, percent: f64) -> bool {
    let near = (got / expected - 1.0).abs() * 100.0 <= percent;
    if !near {
        eprintln!("{got:.1} against {expected:.1}");
    }
    near
}

#[test]
fn saturated_cells_carry_what_ns2_measured() {
    for (profile, rows) in [
        ("dsss-2mbps", [(1, 1383.9, 1567.4), (2, 1409.1, 1558.3), (5, 1413.4, 1474.1), (20, 1386.9, 1264.7)]),
        (
            "dsss-11mbps",
            [(1, 3470.4, 4911.8), (2, 3633.9, 5177.4), (5, 3662.7, 5081.9), (10, 3596.8, 4810.4)],
        ),
    ] {
        for (stations, with_rts, without) in rows {
            for (threshold, expected) in [(Some(0), with_rts), (None, without)] {
                let cell = Cell::new(profile, ns2(threshold), Radio::default(), &circle(stations), 1);
                let total: f64 = cell.kbps_each(60).iter().sum();
                assert!(is_near(total, expected, 1.0), "{profile} {stations} {threshold:?}");
            }
        }
    }
}

fn line(to_b_m: f64, to_c_m: f64) -> [Option<Position>; 3] {
    let at = |x| Some(Position { x, y: 0.0 });
    [at(to_b_m), at(0.0), at(to_b_m + to_c_m)]
}

/// A radio that receives only frames it can decode: A and C do not receive each other.
fn deaf() -> Radio {
    Radio { sense_w: Radio::default().receive_w, ..Radio::default() }
}

#[test]
fn hidden_stations_fare_as_ns2_measured() {
    for (threshold, radio, to_b_m, expected) in [
        (Some(0), deaf(), 200.0, 1334.4),
        (Some(0), Radio::default(), 200.0, 1413.3),
        (None, deaf(), 200.0, 385.5),
        (None, Radio::default(), 200.0, 1605.4),
    ] {
        let cell = Cell::new("dsss-2mbps", ns2(threshold), radio, &line(to_b_m, 200.0), 1);
        let total: f64 = cell.kbps_each(250).iter().sum();
        assert!(is_near(total, expected, 2.0), "{threshold:?}");
    }
}

#[test]
fn the_stronger_of_two_hidden_stations_takes_all_by_capture() {
    let each = Cell::new("dsss-2mbps", ns2(None), deaf(), &line(100.0, 200.0), 1).kbps_each(100);
    assert!(is_near(each[0], 1483.8, 2.0) && each[1] < 10.0, "{each:?}");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let run = |seed| Cell::new("dsss-11mbps", ns2(Some(0)), Radio::default(), &circle(5), seed).kbps_each(5);
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

#[test]
fn one_exchange_takes_the_time_of_its_frames() {
    for (profile, bytes, us) in [
        ("dsss-11mbps", 40, 1_236),
        ("dsss-11mbps", 1_040, 1_963),
        ("dsss-2mbps", 40, 1_478),
        ("dsss-2mbps", 1_040, 5_478),
    ] {
        let phy = Phy::named(profile).expect("a profile");
        let mut dcf = Dcf::new(phy, ns2(Some(0)), Radio::default(), &line(200.0, 200.0), 1);
        dcf.offer(0, 1, 0, bytes);
        let (rts_at, mut done_at) = (dcf.next(), 0);
        while dcf.next_news().is_none_or(|news| !matches!(news, DcfNews::Done { .. })) {
            done_at = dcf.next();
            dcf.fire();
        }
        // Four times 667 ns through the air.
        let spent_us = (done_at - rts_at - 4 * 667 + 500) / 1_000;
        assert_eq!(spent_us, us, "{profile} {bytes}");
    }
}

#[test]
fn a_packet_to_nobody_is_given_up_after_seven_announcements() {
    let phy = Phy::named("dsss-2mbps").expect("a profile");
    let positions = [Some(Position::default()), Some(Position { x: 300.0, y: 0.0 })];
    for rules in [MacRules::Ns2, MacRules::Standard] {
        let mac = MacConfig { rules, ..MacConfig::default() };
        let mut dcf = Dcf::new(phy, mac, Radio::default(), &positions, 1);
        dcf.offer(0, 0, 1, 1_000);
        while dcf.next() != u64::MAX {
            dcf.fire();
        }
        let given_up = DcfNews::Done {
            station: 0,
            number: 1,
            packets: 1,
            outcome: PacketOutcome::GivenUp,
            rate: phy.data,
            tries: 7,
        };
        assert_eq!(dcf.next_news(), Some(given_up));
        assert_eq!((dcf.stats(0).frames_sent.rts, dcf.stats(0).retry_drops), (7, 1));
    }
}

#[test]
fn standard_rules_let_an_idle_medium_be_used_at_once() {
    let phy = Phy::named("dsss-2mbps").expect("a profile");
    let mut dcf = Dcf::new(phy, MacConfig::default(), Radio::default(), &line(200.0, 200.0), 1);
    dcf.offer(SECOND, 1, 0, 100);
    assert_eq!(dcf.next(), SECOND);
    let mut dcf = Dcf::new(phy, ns2(Some(0)), Radio::default(), &line(200.0, 200.0), 1);
    dcf.offer(SECOND, 1, 0, 100);
    assert!(dcf.next() >= SECOND + 50_000);
}

/// FNV-1a over the frame log of two seconds of a chain whose ends send to each other.
fn digest(rules: MacRules, channel: &Channel, seed: u64) -> u64 {
    let phy = Phy::named("dsss-11mbps").expect("a profile");
    let positions: Vec<_> = (0..5).map(|n| Some(Position { x: 200.0 * f64::from(n), y: 0.0 })).collect();
    let mac = MacConfig { rules, ..MacConfig::default() };
    let mut dcf = Dcf::with_channel(phy, mac, Radio::default(), channel, &positions, seed);
    dcf.watch_frames();
    let to = |station: u32| if station < 2 { station + 1 } else { station - 1 };
    (0..5).for_each(|station| dcf.offer(0, station, to(station), 1_000));
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    while dcf.next() < 2 * SECOND {
        let now = dcf.next();
        dcf.fire();
        dcf.take_seen(&mut |event| {
            for byte in event.to_string().bytes() {
                digest = (digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
        });
        while let Some(news) = dcf.next_news() {
            if let DcfNews::Done { station, .. } = news {
                dcf.offer(now, station, to(station), 1_000);
            }
        }
    }
    digest
}

/// The same on every machine, and until a rule is changed on purpose.
#[test]
fn what_flies_is_the_same_to_the_byte_on_every_machine() {
    let fading = Fading::Rayleigh { doppler_hz: 5.0 };
    let lively = Channel { fading, shadowing_db: 3.0, loss_ppm: 10_000, ..Channel::default() };
    let drawn = [
        digest(MacRules::Ns2, &Channel::default(), 1),
        digest(MacRules::Standard, &Channel::default(), 1),
        digest(MacRules::Standard, &lively, 1),
    ];
    let pinned = [13_442_272_561_343_040_989, 18_389_971_517_650_532_069, 2_004_614_686_231_318_186];
    assert_eq!(drawn, pinned);
}

/// Any number of stations anywhere, also on one spot or out of everyone's range, under any rules and channel.
fn random_cell(seed: u64) -> Dcf {
    let mut draw = NumberStream::new(seed, 0, Purpose::Traffic);
    let profiles: Vec<_> = Phy::names().collect();
    let phy = Phy::named(profiles[draw.below(profiles.len() as u32) as usize]).expect("a profile");
    let side_m = [0.0, 150.0, 600.0, 2_000.0][draw.below(4) as usize];
    let stations = 2 + draw.below(12);
    let mut spot = |_| {
        let position = Position { x: side_m * draw.unit(), y: side_m * draw.unit() };
        Some(position).filter(|_| draw.below(12) > 0)
    };
    let positions: Vec<_> = (0..stations).map(&mut spot).collect();
    let rules = if draw.below(2) == 0 { MacRules::Ns2 } else { MacRules::Standard };
    let rts_threshold = [Some(0), Some(500), None][draw.below(3) as usize];
    let fading =
        [Fading::None, Fading::Rayleigh { doppler_hz: 20.0 }, Fading::Rician { k: 4.0, doppler_hz: 3.0 }];
    let channel = Channel {
        fading: fading[draw.below(3) as usize],
        shadowing_db: f64::from(draw.below(3) * 4),
        is_asymmetric: draw.below(2) == 0,
        loss_ppm: draw.below(3) * 100_000,
        ..Channel::default()
    };
    let mac = MacConfig { rules, rts_threshold, ..MacConfig::default() };
    Dcf::with_channel(phy, mac, Radio::default(), &channel, &positions, seed)
}

#[test]
fn every_packet_ends_and_time_goes_on_wherever_stations_stand() {
    for seed in 0..400 {
        let mut dcf = random_cell(seed);
        dcf.keep_ledgers();
        let mut draw = NumberStream::new(seed, 1, Purpose::Traffic);
        let stations = as_u32(dcf.medium.stations());
        let (mut given, mut done, mut last, mut at_once) = (0_u64, 0_u64, 0, 0);
        let mut offer = |dcf: &mut Dcf, now, station| {
            let to = if draw.below(10) == 0 { EVERYONE } else { draw.below(stations) };
            let to = if to == station { EVERYONE } else { to };
            dcf.offer(now, station, to, 28 + draw.below(1_472));
            given += 1;
        };
        (0..stations).for_each(|station| offer(&mut dcf, 0, station));
        while dcf.next() < SECOND / 5 {
            let now = dcf.next();
            at_once = if now == last { at_once + 1 } else { 0 };
            assert!(now >= last && at_once < 1_000, "seed {seed}: time stands still");
            last = now;
            dcf.fire();
            while let Some(news) = dcf.next_news() {
                if let DcfNews::Done { station, .. } = news {
                    done += 1;
                    offer(&mut dcf, now, station);
                }
            }
        }
        // A station that has a packet waits for something.
        assert_eq!(given - done, u64::from(stations), "seed {seed}");
        for station in 0..stations {
            let booked = dcf.airtime(SECOND / 5, station).map(|airtime| airtime.total_ns());
            assert_eq!(booked, Some(SECOND / 5), "seed {seed}");
        }
        assert!(done > 0, "seed {seed}: nothing was done by {stations} stations");
    }
}

/// A chain of saturated stations, each of which sends to its right neighbour, with their frames and fates.
struct Chain {
    dcf: Dcf,
    seen: Vec<FrameEvent>,
    endings: Vec<FrameEnding>,
}

impl Chain {
    fn new(mac: MacConfig) -> Chain {
        const STATIONS: u32 = 8;
        let positions: Vec<_> =
            (0..STATIONS).map(|n| Some(Position { x: 200.0 * f64::from(n), y: 0.0 })).collect();
        let phy = Phy::named("dsss-2mbps").expect("a profile");
        let mut dcf = Dcf::new(phy, mac, Radio::default(), &positions, 1);
        dcf.watch_frames();
        (0..STATIONS - 1).for_each(|n| dcf.offer(u64::from(n) * 1_000_000, n, n + 1, 1_028));
        Chain { dcf, seen: Vec::new(), endings: Vec::new() }
    }

    /// Takes one step; returns whether there are more before `seconds` are over.
    fn go_on(&mut self, seconds: u64) -> bool {
        let now = self.dcf.next();
        self.dcf.fire();
        let seen = &mut self.seen;
        self.dcf.take_seen(&mut |event| seen.push(*event));
        self.endings.extend(self.dcf.take_endings());
        while let Some(news) = self.dcf.next_news() {
            if let DcfNews::Done { station, .. } = news {
                self.dcf.offer(now, station, station + 1, 1_028);
            }
        }
        self.dcf.next() < seconds * SECOND
    }
}

fn seen_in_a_chain(mac: MacConfig, seconds: u64) -> Vec<FrameEvent> {
    let mut chain = Chain::new(mac);
    while chain.go_on(seconds) {}
    chain.seen
}

#[test]
fn a_frame_begins_with_its_own_first_bit_wherever_it_is_seen() {
    for rules in [MacRules::Standard, MacRules::Ns2] {
        let seen = seen_in_a_chain(MacConfig { rules, ..MacConfig::default() }, 20);
        let mut sends_until = [0; 8];
        for event in &seen {
            assert_eq!(event.until_ns - event.from_ns, event.frame.airtime_ns, "{rules:?}: {event}");
            match event.sees {
                FrameEffect::Sends => sends_until[event.station as usize] = event.until_ns,
                FrameEffect::Decodes => {
                    assert!(sends_until[event.station as usize] <= event.from_ns, "{rules:?}: {event}");
                }
                FrameEffect::Noise | FrameEffect::Collision => {}
            }
        }
    }
}

/// IEEE 802.11-2016 §9.2.4.1.6.
#[test]
fn the_retry_bit_is_set_on_data_that_has_been_on_the_air_and_on_nothing_else() {
    let (mut repeats, mut unanswered) = (0, 0);
    for rts_threshold in [Some(0), None] {
        let seen = seen_in_a_chain(MacConfig { rts_threshold, ..MacConfig::default() }, 20);
        let (mut has_left, mut asked) = ([0; 8], [0; 8]);
        for event in seen.iter().filter(|event| event.sees == FrameEffect::Sends) {
            let (n, frame) = (event.sender as usize, &event.frame);
            let is_again = frame.kind == FrameKind::Data && has_left[n] == frame.number;
            assert_eq!(frame.is_repeat, is_again, "{event}");
            repeats += u32::from(is_again);
            match frame.kind {
                // The first RTS with this number went unanswered.
                FrameKind::Rts => {
                    unanswered += u32::from(std::mem::replace(&mut asked[n], frame.number) == frame.number);
                }
                FrameKind::Data => has_left[n] = frame.number,
                FrameKind::Cts | FrameKind::Ack | FrameKind::BlockAck | FrameKind::BlockAckReq => {}
            }
        }
    }
    assert!(repeats > 20 && unanswered > 5, "{repeats} {unanswered}");
}

/// Every RTS and every data frame for one station has one fate. A frame that was lost to a second frame overlapped with
/// it.
#[test]
fn whoever_watches_hears_what_became_of_each_frame_and_whose_fault_it_was() {
    for (rules, rts_threshold) in
        [(MacRules::Standard, Some(0)), (MacRules::Standard, None), (MacRules::Ns2, Some(0))]
    {
        let mut chain = Chain::new(MacConfig { rules, rts_threshold, ..MacConfig::default() });
        let (mut open, mut sent, mut losses) = ([None; 8], Vec::<FrameEvent>::new(), 0);
        while chain.go_on(20) {
            for event in chain.seen.drain(..).filter(|event| event.sees == FrameEffect::Sends) {
                if let Some(access) = event.frame.access {
                    assert!(open[event.sender as usize].replace((event, access)).is_none(), "{event}");
                }
                sent.push(event);
            }
            for FrameEnding { station, fate, is_given_up } in chain.endings.drain(..) {
                let (frame, access) = open[station as usize].take().expect("a frame that was sent");
                assert_eq!(
                    is_given_up,
                    fate != FrameFate::Answered && access.attempt == access.most,
                    "{frame}"
                );
                if let FrameFate::Lost(FrameLoss::Frame { sender, kind }) = fate {
                    let overlaps = |other: &FrameEvent| {
                        let is_it = (other.sender, other.frame.kind) == (sender, kind);
                        is_it
                            && other.from_ns < frame.until_ns + 2_000
                            && frame.from_ns < other.until_ns + 2_000
                    };
                    assert!(sent.iter().rev().take(100).any(overlaps), "{frame}: {fate:?}");
                    losses += 1;
                }
            }
        }
        assert!(losses > 20, "{rules:?} {rts_threshold:?}: {losses}");
    }
}
