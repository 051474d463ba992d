//! A machine that is elsewhere and hands over whole frames of 802.11, as a kernel does to the driver of its radio.
//!
//! They wait here, in a queue as long as the scenario's. Their fates go to the world's
//! [`RadioSink`](crate::RadioSink): a machine is not told the signal of a packet, nor the number of tries.
//!
//! Kernels whose radios are simulated have one clock and give their beacons at one instant. On an idle medium all of
//! them would collide. In an ad hoc network a beacon therefore waits for a random time, and is not sent if another
//! station's comes first (IEEE 802.11-2016 §11.1.3.5).

use std::collections::VecDeque;
use std::time::Duration;

use hopwise_core::queue::{Beside, SpareBuffers};
use hopwise_core::{Instant, LinkEvent, LinkId, Machine, NextHop, Payload, QueueClass, Rx, Transmit};

use crate::outside::{FrameRefusal, receiver};
use crate::phy::Phy;
use crate::random::{NumberStream, Purpose};

/// Frame control, duration and two addresses (IEEE 802.11-2020, 9.3): a shorter frame does not name its sender.
const LEAST_BYTES: usize = 16;
/// The longest MSDU behind the longest header (IEEE 802.11-2020, 9.2.4.8 and 9.3.2.1).
const MOST_BYTES: usize = 2_304 + 36;

/// The bits of the first byte that tell data from management.
const KIND: u8 = 0x0c;
const DATA: u8 = 0x08;
/// The first byte of a beacon, and of its capabilities the one that an ad hoc network sets.
const BEACON: u8 = 0x80;
const CAPABILITIES: usize = 34;
const AD_HOC: u8 = 2;

/// The machine that stands for another program's radio, with the frames that wait for the air.
#[derive(Debug)]
pub struct WholeRadio {
    most: usize,
    /// With the times at which they came, and their ids.
    waiting: VecDeque<(Instant, u64, Vec<u8>)>,
    /// The frames that the radio holds after the first of an aggregate.
    beside: usize,
    /// When the frame that left last had come.
    pub queued_at: Option<Instant>,
    /// A beacon, and when it may leave.
    beacon: Option<(Instant, u64, Vec<u8>)>,
    not_sent: Vec<u64>,
    slot: Duration,
    /// The waits of beacons are less than this number of slots.
    slots: u32,
    stream: NumberStream,
    spare: SpareBuffers<8>,
}

impl WholeRadio {
    /// At most this many frames wait, a beacon not counted, with those of an aggregate that the radio prepares.
    pub fn new(most: usize, phy: &Phy, seed: u64, station: u32) -> WholeRadio {
        WholeRadio {
            most: most.max(1),
            waiting: VecDeque::new(),
            beside: 0,
            queued_at: None,
            beacon: None,
            not_sent: Vec::new(),
            slot: Duration::from_nanos(phy.slot_ns),
            slots: 2 * u32::from(phy.cw.0) + 1,
            stream: NumberStream::new(seed, station, Purpose::Beacons),
            spare: SpareBuffers::default(),
        }
    }

    /// A frame without its FCS that the radio is to send.
    pub fn put(&mut self, now: Instant, id: u64, frame: &[u8]) -> Result<(), FrameRefusal> {
        if frame.len() < LEAST_BYTES {
            return Err(FrameRefusal::TooShort);
        }
        if frame.len() > MOST_BYTES {
            return Err(FrameRefusal::TooLong);
        }
        if frame[0] != BEACON && self.waiting.len() + self.beside >= self.most {
            return Err(FrameRefusal::NoRoom);
        }
        let kept = self.spare.copy(frame);
        if frame[0] == BEACON {
            self.leave_beacon();
            self.beacon = Some((now + self.slot * self.stream.below(self.slots), id, kept));
        } else {
            self.waiting.push_back((now, id, kept));
        }
        Ok(())
    }

    /// Hands out the ids of beacons that are not sent, since another station's came first.
    pub fn take_not_sent(&mut self) -> std::vec::Drain<'_, u64> {
        self.not_sent.drain(..)
    }

    /// Returns whether [`take_not_sent`](Self::take_not_sent) has ids to hand out.
    pub fn has_not_sent(&self) -> bool {
        !self.not_sent.is_empty()
    }

    /// Takes the next frame of data for a neighbour, for an aggregate.
    pub fn poll_beside(&mut self, _: Instant, _: LinkId, more: &Beside, out: &mut Vec<u8>) -> Option<u64> {
        let is_for_it =
            |frame: &[u8]| frame[0] & KIND == DATA && receiver(&frame[4..]) == NextHop::Neighbour(more.to);
        let place = self.waiting.iter().position(|(.., frame)| is_for_it(frame));
        let place = place.filter(|place| self.waiting[*place].2.len() <= more.bytes)?;
        self.beside = more.held;
        self.take(place, out).map(|taken| taken.id)
    }

    /// Appends a frame that waits to `out`.
    fn take(&mut self, place: usize, out: &mut Vec<u8>) -> Option<Transmit> {
        let (at, id, frame) = self.waiting.remove(place)?;
        self.queued_at = Some(at);
        out.extend_from_slice(&frame);
        let to = receiver(&frame[4..]);
        self.spare.keep(frame);
        Some(Transmit { to, class: QueueClass::Data, segment_bytes: None, id })
    }

    fn leave_beacon(&mut self) {
        self.not_sent.extend(self.beacon.take().map(|(_, id, _)| id));
    }
}

impl Machine for WholeRadio {
    fn handle_packet(&mut self, _now: Instant, rx: &Rx<'_>) {
        let is_ad_hoc = rx.packet.get(CAPABILITIES).is_some_and(|byte| byte & AD_HOC != 0);
        if rx.packet.first() == Some(&BEACON) && is_ad_hoc {
            self.leave_beacon();
        }
    }

    fn handle_link_event(&mut self, _now: Instant, _link: LinkId, _event: &LinkEvent<'_>) {
        self.beside = self.beside.saturating_sub(1);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some((_, id, frame)) = self.beacon.take_if(|(due, ..)| *due <= now) {
            self.waiting.push_front((now, id, frame));
        }
    }

    fn poll_transmit(&mut self, _: Instant, _: LinkId, _: Payload, out: &mut Vec<u8>) -> Option<Transmit> {
        self.take(0, out)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.beacon.as_ref().map(|(due, ..)| *due)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use hopwise_core::queue::Category;

    use super::*;
    use crate::arp::Arp;
    use crate::channel::Channel;
    use crate::dcf::{MacConfig, PacketOutcome};
    use crate::frames::{Framing, Mac, mac_of};
    use crate::outside::name_of;
    use crate::radio::Position;
    use crate::radio::Radio;
    use crate::world::{RadioNews, RadioWorld, StationConfig, WorldConfig};

    const ALL: Mac = [0xff; 6];

    fn line(stations: u32, mac: MacConfig) -> RadioWorld<WholeRadio> {
        line_of("dsss-2mbps", stations, mac)
    }

    fn line_of(profile: &str, stations: u32, mac: MacConfig) -> RadioWorld<WholeRadio> {
        let station = |n: u32| StationConfig {
            position: Some(Position { x: 200.0 * f64::from(n), y: 0.0 }),
            radio: LinkId(0),
            address: name_of(mac_of(n)),
            hears_all: n == 2,
            framing: Framing::Whole,
        };
        let config = WorldConfig {
            phy: Phy::named(profile).expect("a profile"),
            mac,
            radio: Radio::default(),
            channel: Channel::default(),
            stations: (0..stations).map(station).collect(),
            wires: Vec::new(),
            arp: Arp::Known,
            seed: 1,
        };
        let phy = config.phy;
        RadioWorld::new(config, (0..stations).map(|n| WholeRadio::new(3, &phy, 1, n)).collect())
    }

    fn frame(control: u8, to: Mac, from: Mac, bytes: usize) -> Vec<u8> {
        let mut frame = vec![control, 0, 0, 0];
        frame.extend([to, from, [2; 6]].concat());
        frame.resize(bytes, 0x45);
        frame
    }

    /// One line for each piece of news, with the microsecond at which it came.
    fn news_of(
        world: &mut RadioWorld<WholeRadio>,
        sent: &[(u32, u64, Vec<u8>)],
        lasts: Duration,
    ) -> Vec<String> {
        let (told, now) = (Rc::new(RefCell::new(Vec::new())), Rc::new(RefCell::new(0)));
        let (sink, at) = (Rc::clone(&told), Rc::clone(&now));
        world.radio = Some(Box::new(move |news| {
            let line = match news {
                RadioNews::Arrived { from, to, power_w, packet, .. } => {
                    let mw = power_w * 1e3;
                    format!("{from}>{to} {} B, {mw:.1e} mW", packet.len())
                }
                RadioNews::Done { station, id, outcome, tries, .. } => {
                    format!("{station}: {id} {outcome:?} {tries}")
                }
            };
            sink.borrow_mut().push(format!("{} {line}", *at.borrow()));
        }));
        for (station, id, frame) in sent {
            world.with(*station, |now, whole| whole.put(now, *id, frame)).expect("there is room");
        }
        let begins = world.now();
        for us in 0..u64::try_from(lasts.as_micros()).expect("a short time") {
            *now.borrow_mut() = us;
            world.run_until(begins + Duration::from_micros(us));
        }
        told.take()
    }

    #[test]
    fn a_frames_bits_are_counted_once_and_its_status_follows_the_acknowledgement() {
        let mut world = line(3, MacConfig { rts_threshold: None, ..MacConfig::default() });
        let sent = [(0, 7, frame(0x08, mac_of(1), mac_of(0), 1_000))];
        let told = news_of(&mut world, &sent, Duration::from_millis(9));
        // DIFS, 192 us of preamble and 1,004 B at 2 Mbit/s; then SIFS and 304 us of ACK; and propagation.
        let at = |line: &str| line.split(' ').next().and_then(|us| us.parse::<u64>().ok()).expect("a time");
        let (arrived, done) = (at(&told[0]), at(&told[1]));
        assert!(told[0].ends_with("0>1 1000 B, 8.9e-7 mW"), "{told:?}");
        assert!(told[1].ends_with("0: 7 Acknowledged 1"), "{told:?}");
        assert!((50..=52).contains(&(arrived - (192 + 1_004 * 4))), "{told:?}");
        assert!((314..=316).contains(&(done - arrived)), "{told:?}");
    }

    #[test]
    fn a_beacon_goes_to_all_in_reach_once_and_unicast_that_fails_is_tried_seven_times() {
        let mut world = line(3, MacConfig { rts_threshold: None, ..MacConfig::default() });
        let beacon = [(1, 1, frame(0x80, ALL, mac_of(1), 80))];
        let unicast = [(0, 2, frame(0x08, mac_of(2), mac_of(0), 100))];
        let mut told = news_of(&mut world, &beacon, Duration::from_millis(5));
        told.extend(news_of(&mut world, &unicast, Duration::from_millis(500)));
        let ends = |end: &str| told.iter().filter(|line| line.ends_with(end)).count();
        assert_eq!((ends("1>0 80 B, 8.9e-7 mW"), ends("1>2 80 B, 8.9e-7 mW")), (1, 1), "{told:?}");
        assert_eq!((ends("1: 1 Sent 1"), ends("0: 2 GivenUp 7")), (1, 1), "{told:?}");
        assert_eq!(told.len(), 4, "{told:?}");
    }

    #[test]
    fn a_monitor_overhears_and_a_stranger_takes_no_frames() {
        let mut world = line(3, MacConfig::default());
        let sent = [
            (0, 1, frame(0x08, mac_of(1), mac_of(0), 40)),
            (1, 2, frame(0x08, mac_of(0), mac_of(1), 50)),
            (2, 3, frame(0x08, mac_of(9), mac_of(2), 60)),
        ];
        let told = news_of(&mut world, &sent, Duration::from_millis(500));
        let has = |end: &str| told.iter().any(|line| line.contains(end));
        assert!(has("0>1 40 B") && has("1>0 50 B") && has("1>2 50 B"), "{told:?}");
        assert!(has(&format!("2: 3 {:?}", PacketOutcome::GivenUp)), "{told:?}");
    }

    #[test]
    fn frames_wait_up_to_the_queues_length_and_odd_ones_are_refused() {
        let mut whole = WholeRadio::new(2, &Phy::named("dsss-2mbps").expect("a profile"), 1, 0);
        let sound = frame(0x08, mac_of(1), mac_of(0), 30);
        assert_eq!(whole.put(Instant::ZERO, 1, &sound[..15]), Err(FrameRefusal::TooShort));
        assert_eq!(whole.put(Instant::ZERO, 1, &vec![0; MOST_BYTES + 1]), Err(FrameRefusal::TooLong));
        assert_eq!(
            (whole.put(Instant::ZERO, 1, &sound), whole.put(Instant::ZERO, 2, &sound)),
            (Ok(()), Ok(()))
        );
        assert_eq!(whole.put(Instant::ZERO, 3, &sound), Err(FrameRefusal::NoRoom));
        let mut out = Vec::new();
        let left = whole.poll_transmit(Instant::ZERO, LinkId(0), Payload::Inline, &mut out);
        assert_eq!((left.map(|transmit| transmit.id), out), (Some(1), sound.clone()));
        assert_eq!(whole.put(Instant::ZERO, 3, &sound), Ok(()));
    }

    #[test]
    fn data_for_one_neighbour_leaves_in_one_aggregate_in_which_headers_are_the_kernels() {
        let ampdu = MacConfig { rts_threshold: None, ampdu: Some(64), ..MacConfig::default() };
        let mut world = line_of("ht20-mcs7", 3, ampdu);
        world.more = WholeRadio::poll_beside;
        let data = |to, bytes| frame(0x88, mac_of(to), mac_of(1), bytes);
        // One for the other neighbour stands between those of the aggregate.
        let sent =
            [(1, 1, data(2, 1_538)), (1, 2, data(2, 1_538)), (1, 3, data(0, 60)), (1, 4, data(2, 1_538))];
        let told = news_of(&mut world, &sent, Duration::from_millis(20));
        let at = |end: &str| {
            let of = |line: &&String| line.ends_with(end);
            told.iter().find(of).and_then(|line| line.split(' ').next()?.parse::<u64>().ok())
        };
        // Four arrive, four have their fates, and the monitor overhears one.
        assert_eq!(told.len(), 9, "{told:?}");
        let [first, second, other, third] =
            [1, 2, 3, 4].map(|id| at(&format!("1: {id} Acknowledged 1")).expect("it is acknowledged"));
        assert!(first == second && second == third && third < other, "{told:?}");
        assert_eq!(told.iter().filter(|line| line.contains("1>2 1538 B")).count(), 3, "{told:?}");
    }

    #[test]
    fn the_queue_counts_what_the_radio_holds_beside_the_first_frame_of_an_aggregate() {
        let mut whole = WholeRadio::new(3, &Phy::named("ht20-mcs7").expect("a profile"), 1, 0);
        let (data, asks) = (frame(0x88, mac_of(1), mac_of(0), 30), frame(0x40, mac_of(1), mac_of(0), 30));
        for (id, sound) in [(1, &asks), (2, &data), (3, &data)] {
            assert_eq!(whole.put(Instant::ZERO, id, sound), Ok(()));
        }
        let mut out = Vec::new();
        let mut more = Beside { category: Category::BestEffort, to: name_of(mac_of(1)), bytes: 29, held: 1 };
        assert_eq!(whole.poll_beside(Instant::ZERO, LinkId(0), &more, &mut out), None, "it does not fit");
        more.bytes = 30;
        assert_eq!(whole.poll_beside(Instant::ZERO, LinkId(0), &more, &mut out), Some(2), "management waits");
        assert_eq!(whole.put(Instant::ZERO, 4, &data), Err(FrameRefusal::NoRoom));
        whole.handle_link_event(Instant::ZERO, LinkId(0), &LinkEvent::Delivered { id: 2, by: None });
        assert_eq!(whole.put(Instant::ZERO, 4, &data), Ok(()));
    }

    #[test]
    fn beacons_that_are_due_at_once_come_apart_and_one_that_was_heard_takes_the_others_place() {
        let mut world = line(4, MacConfig::default());
        let heard = Rc::new(RefCell::new(vec![[0; 4]; 4]));
        let sink = Rc::clone(&heard);
        world.radio = Some(Box::new(move |news| {
            if let RadioNews::Arrived { from, to, .. } = news {
                sink.borrow_mut()[*to as usize][*from as usize] += 1;
            }
        }));
        let (mut not_sent, mut id) = (0, 0);
        for interval in 1..=100 {
            world.run_until(Instant::ZERO + Duration::from_micros(102_400) * interval);
            for station in 0..4 {
                let mut beacon = frame(BEACON, ALL, mac_of(station), 80);
                beacon[CAPABILITIES] = AD_HOC;
                id += 1;
                world.with(station, |now, whole| whole.put(now, id, &beacon)).expect("a beacon has room");
                not_sent += world.with(station, |_, whole| whole.take_not_sent().count());
            }
        }
        let heard = heard.take();
        for (to, from) in [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)] {
            assert!(heard[to][from] > 10, "{heard:?}");
        }
        assert!((5..200).contains(&not_sent), "{not_sent} of 400 were not sent");
    }
}
