use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use hopwise_core::LinkId;
use hopwise_core::NextHop;
use hopwise_core::QueueClass;
use hopwise_core::Transmit;

use super::*;
use crate::arp::Arp;
use crate::channel::Channel;
use crate::dcf::{EVERYONE, FrameKind, MacConfig};
use crate::frame::MacRules;
use crate::frames::{FrameEffect, FrameEvent};
use crate::phy::Phy;
use crate::radio::Position;
use crate::radio::Radio;

const RADIO: LinkId = LinkId(0);

/// Sends its packets, and records the packets that come and the fates of its own.
#[derive(Debug, Default)]
struct Talker {
    outbox: VecDeque<(NextHop, u64)>,
    heard: Vec<(u64, Cast)>,
    returned: Vec<(u64, Instant)>,
    delivered: Vec<u64>,
}

impl Machine for Talker {
    fn handle_packet(&mut self, _now: Instant, rx: &Rx<'_>) {
        let id: [u8; 8] = rx.packet[92..].try_into().expect("the last eight of a hundred bytes");
        self.heard.push((u64::from_be_bytes(id), rx.cast));
    }

    fn handle_link_event(&mut self, now: Instant, _link: LinkId, event: &LinkEvent<'_>) {
        match event {
            LinkEvent::NotDelivered { id, .. } => self.returned.push((*id, now)),
            LinkEvent::Delivered { id, .. } => self.delivered.push(*id),
            _ => {}
        }
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(
        &mut self,
        _now: Instant,
        _link: LinkId,
        _: Payload,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let (to, id) = self.outbox.pop_front()?;
        out.resize(92, 0x45);
        out.extend_from_slice(&id.to_be_bytes());
        Some(Transmit { to, class: QueueClass::Data, segment_bytes: None, id })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

fn address(n: u32) -> IpAddr {
    IpAddr::from([10, 0, 0, n as u8 + 1])
}

fn to(n: u32) -> NextHop {
    NextHop::Neighbour(address(n))
}

fn chain(stations: u32, arp: Arp, rules: MacRules, all_ears: Option<u32>) -> RadioWorld<Talker> {
    chain_of(("dsss-2mbps", MacConfig { rules, ..MacConfig::default() }), stations, arp, all_ears)
}

fn chain_of(
    (profile, mac): (&str, MacConfig),
    stations: u32,
    arp: Arp,
    all_ears: Option<u32>,
) -> RadioWorld<Talker> {
    let station = |n: u32| StationConfig {
        position: Some(Position { x: 200.0 * f64::from(n), y: 0.0 }),
        radio: RADIO,
        address: address(n),
        hears_all: all_ears == Some(n),
        framing: Framing::Packet,
    };
    let config = WorldConfig {
        phy: Phy::named(profile).expect("a profile"),
        mac,
        radio: Radio::default(),
        channel: Channel::default(),
        stations: (0..stations).map(station).collect(),
        wires: Vec::new(),
        arp,
        seed: 1,
    };
    RadioWorld::new(config, (0..stations).map(|_| Talker::default()).collect())
}

fn say(world: &mut RadioWorld<Talker>, from: u32, packets: &[(NextHop, u64)]) {
    world.with(from, |_, talker| talker.outbox.extend(packets));
}

/// The frames on the air: kind, bytes of the packet, receiver.
fn watch(world: &mut RadioWorld<Talker>) -> Rc<RefCell<Vec<(FrameKind, u32, u32)>>> {
    let sent = Rc::new(RefCell::new(Vec::new()));
    let sink = Rc::clone(&sent);
    world.set_frames(Box::new(move |event, _| {
        if event.sees == FrameEffect::Sends {
            sink.borrow_mut().push((event.frame.kind, event.frame.bytes, event.frame.to));
        }
    }));
    sent
}

fn heard(world: &RadioWorld<Talker>, n: usize) -> Vec<u64> {
    world.machines()[n].heard.iter().map(|(id, _)| *id).collect()
}

#[test]
fn a_neighbour_is_asked_for_once_and_answers_and_the_packet_follows() {
    let mut world = chain(2, Arp::Asked, MacRules::Standard, None);
    let sent = watch(&mut world);
    say(&mut world, 0, &[(to(1), 7)]);
    world.run_until(Instant::from_secs(1));
    let (rts, cts, ack) = (FrameKind::Rts, FrameKind::Cts, FrameKind::Ack);
    let exchange =
        |from, to, bytes| [(rts, 0, to), (cts, 0, from), (FrameKind::Data, bytes, to), (ack, 0, from)];
    let mut expected = vec![(FrameKind::Data, 28, EVERYONE)];
    expected.extend(exchange(1, 0, 28));
    expected.extend(exchange(0, 1, 100));
    assert_eq!(sent.take(), expected);
    assert_eq!((heard(&world, 1), &world.machines()[0].delivered[..]), (vec![7], &[7][..]));
    assert_eq!(world.machines()[1].delivered, [0; 0], "an answer is the link's own");
    // The target of a request knows its sender.
    say(&mut world, 1, &[(to(0), 8)]);
    world.run_until(Instant::from_secs(2));
    assert_eq!(sent.take(), exchange(1, 0, 100));
    assert_eq!(heard(&world, 0), [8]);
}

#[test]
fn without_arp_packets_leave_at_once() {
    let mut world = chain(2, Arp::Known, MacRules::Standard, None);
    let sent = watch(&mut world);
    say(&mut world, 0, &[(to(1), 7)]);
    world.run_until(Instant::from_secs(1));
    assert_eq!(sent.take().len(), 4);
}

#[test]
fn packets_for_others_do_not_wait_for_a_neighbour_that_is_sought() {
    let mut world = chain(4, Arp::Asked, MacRules::Standard, None);
    // The request does not reach a node 600 m away.
    say(&mut world, 0, &[(to(3), 1), (to(1), 2), (NextHop::All, 3), (to(3), 4)]);
    world.run_until(Instant::from_millis(500));
    assert_eq!(heard(&world, 1), [3, 2]);
    world.run_until(Instant::from_secs(10));
    let returned = &world.machines()[0].returned;
    assert_eq!(returned.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [1, 4]);
    assert!(returned[0].1 >= Instant::from_secs(3), "after three questions, a second each");
    assert_eq!((world.unresolved(), heard(&world, 3).len()), (2, 0));
}

#[test]
fn ns2_lets_one_packet_wait_and_others_let_a_few() {
    for (rules, arrived, lost) in [(MacRules::Ns2, vec![3], 2), (MacRules::Standard, vec![1, 2, 3], 0)] {
        let mut world = chain(2, Arp::Asked, rules, None);
        say(&mut world, 0, &[(to(1), 1), (to(1), 2), (to(1), 3)]);
        world.run_until(Instant::from_secs(1));
        assert_eq!((heard(&world, 1), world.unresolved()), (arrived, lost), "{rules:?}");
    }
}

#[test]
fn who_asks_hears_packets_between_others_and_nobody_else_does() {
    let mut world = chain(4, Arp::Known, MacRules::Standard, Some(2));
    say(&mut world, 0, &[(to(1), 5)]);
    say(&mut world, 1, &[(to(0), 6)]);
    world.run_until(Instant::from_secs(1));
    assert_eq!(world.machines()[2].heard, [(6, Cast::Overheard)], "n0 is 400 m away");
    assert_eq!((world.machines()[1].heard.as_slice(), heard(&world, 3).len()), (&[(5, Cast::ToUs)][..], 0));
}

#[test]
fn a_wait_begins_in_the_machines_queue_and_ends_with_the_first_frame() {
    let waits = |receiver: u32, packets: u64| {
        let mut world = chain(3, Arp::Known, MacRules::Standard, None);
        world.loads = |_| AirLoad::TcpData;
        world.queued_at = |_| Some(Instant::ZERO);
        let sent: Rc<RefCell<Vec<(u32, u64)>>> = Rc::default();
        let sink = Rc::clone(&sent);
        world.set_frames(Box::new(move |event, _| {
            if event.sees == FrameEffect::Sends && event.frame.kind == FrameKind::Rts {
                sink.borrow_mut().push((event.frame.number, event.from_ns));
            }
        }));
        say(&mut world, 0, &(0..packets).map(|id| (to(receiver), id)).collect::<Vec<_>>());
        world.run_until(Instant(2_000_000_000));
        let mut first = sent.borrow().clone();
        let all = first.len();
        first.dedup_by_key(|(number, _)| *number);
        let sum: u64 = first.iter().map(|(_, at)| at).sum();
        let waits = world.waits(0);
        assert_eq!(waits.of(AirLoad::TcpData).count(), packets);
        assert_eq!(waits.of(AirLoad::TcpData).mean_ns(), Some(sum as f64 / packets as f64));
        assert_eq!((waits.of(AirLoad::TcpAck).count(), world.waits(1).of(AirLoad::TcpData).count()), (0, 0));
        (first.len() as u64, all)
    };
    assert_eq!(waits(1, 3).0, 3);
    // A station out of reach never answers: all tries but the first are no wait.
    let (packets, tries) = waits(2, 1);
    assert!(packets == 1 && tries > 3, "{tries}");
}

#[test]
fn a_machine_that_does_not_know_its_queue_has_no_waits() {
    let mut world = chain(2, Arp::Known, MacRules::Standard, None);
    say(&mut world, 0, &[(to(1), 1)]);
    world.run_until(Instant(1_000_000_000));
    assert_eq!(AirLoad::ALL.map(|load| world.waits(0).of(load).count()), [0; 6]);
}

/// A hundred packets by thirties in MPDUs of one aggregate.
#[test]
fn packets_of_an_a_msdu_come_in_their_order_and_each_has_its_fate_and_its_view() {
    let mac = MacConfig { ampdu: Some(64), amsdu: Some(3_839), rts_threshold: None, ..MacConfig::default() };
    let mut world = chain_of(("ht20-mcs7", mac), 2, Arp::Known, None);
    world.more = |talker, now, link, more, out| {
        let next = (more.bytes >= 100).then(|| talker.poll_transmit(now, link, Payload::Inline, out));
        next.flatten().map(|transmit| transmit.id)
    };
    let views = Rc::new(RefCell::new(Vec::new()));
    let sink = Rc::clone(&views);
    world.set_frames(Box::new(move |event, packet| {
        if event.frame.kind == FrameKind::Data {
            let FrameEvent { sees, packet_id, frame, .. } = *event;
            sink.borrow_mut().push((sees, packet_id, frame.bytes, packet.len(), frame.number));
        }
    }));
    let ids: Vec<u64> = (1..=100).collect();
    say(&mut world, 0, &ids.iter().map(|id| (to(1), *id)).collect::<Vec<_>>());
    world.run_until(Instant::from_secs(1));
    assert_eq!((heard(&world, 1), &world.machines()[0].delivered), (ids.clone(), &ids));
    for sees in [FrameEffect::Sends, FrameEffect::Decodes] {
        let views = views.borrow();
        let views: Vec<_> = views.iter().filter(|view| view.0 == sees).collect();
        assert!(views.iter().map(|view| view.1).eq(ids.iter().copied()), "{views:?}");
        assert!(views.iter().all(|view| (view.2, view.3) == (100, 100)), "{views:?}");
        let mut numbers: Vec<_> = views.iter().map(|view| view.4).collect();
        numbers.dedup();
        assert_eq!(numbers, [1, 2, 3, 4], "thirty to a number");
    }
    assert_eq!(world.stats(0).frames_sent.data, 1, "one aggregate");
}
