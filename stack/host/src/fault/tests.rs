use super::*;
use crate::testing::{Loop, Memory, numbered};

const SECOND: Instant = Instant::from_secs(1);

/// Sends `count` packets at once through a faulty link that returns them, lets all time pass, and returns what came
/// back, in order.
fn through(outgoing: Impairment, incoming: Impairment, seed: u64, count: u32) -> (Vec<Vec<u8>>, Fault) {
    let mut link = Fault::wrap(Box::new(Memory::to(Loop::default())), incoming, outgoing, seed).unwrap();
    let mut came = Vec::new();
    for number in 0..count {
        assert_eq!(
            link.transmit(SECOND, &numbered::transmit(number), &numbered::packet(number)),
            Sent::Taken
        );
    }
    link.flush(SECOND);
    let mut now = SECOND;
    let mut buffer = vec![0; crate::MAX_PACKET];
    loop {
        match link.receive(now, &mut buffer) {
            Received::Packet(arrived) => came.push(buffer[..arrived.bytes].to_vec()),
            Received::Dropped => {}
            Received::Gone => panic!("the loop does not go"),
            Received::Nothing => {
                let Some(next) = link.poll_timeout() else { return (came, link) };
                assert!(next > now, "what is due was not received");
                now = next;
                link.handle_timeout(now);
            }
        }
    }
}

#[test]
fn nothing_happens_to_packets_when_nothing_is_asked_for() {
    let (came, _) = through(Impairment::NONE, Impairment::NONE, 1, 100);
    let sent: Vec<_> = (0..100).map(numbered::packet).collect();
    assert_eq!(came, sent);
}

#[test]
fn about_as_many_are_lost_as_was_asked_for_and_all_are_counted() {
    let lossy = Impairment { loss_ppm: 100_000, queue_packets: 10_000, ..Impairment::NONE };
    let (came, link) = through(lossy, Impairment::NONE, 7, 10_000);
    assert!((8_700..=9_300).contains(&came.len()), "{} came", came.len());
    assert_eq!(link.counters().drops[&LinkDrop::FaultLost], 10_000 - came.len() as u64);
}

#[test]
fn a_seed_repeats_what_is_lost_and_another_seed_does_not() {
    let lossy = Impairment { loss_ppm: 200_000, ..Impairment::NONE };
    assert_eq!(through(lossy, Impairment::NONE, 3, 500).0, through(lossy, Impairment::NONE, 3, 500).0);
    assert_ne!(through(lossy, Impairment::NONE, 3, 500).0, through(lossy, Impairment::NONE, 4, 500).0);
}

#[test]
fn what_is_repeated_comes_twice() {
    let twice = Impairment { duplicate_ppm: 1_000_000, ..Impairment::NONE };
    for (outgoing, incoming) in [(twice, Impairment::NONE), (Impairment::NONE, twice)] {
        let (came, _) = through(outgoing, incoming, 1, 20);
        assert_eq!(came.len(), 40);
        for number in 0..20 {
            assert_eq!(came.iter().filter(|packet| **packet == numbered::packet(number)).count(), 2);
        }
    }
}

#[test]
fn what_is_spoilt_differs_in_one_bit() {
    let spoils = Impairment { corrupt_ppm: 1_000_000, ..Impairment::NONE };
    for (outgoing, incoming) in [(spoils, Impairment::NONE), (Impairment::NONE, spoils)] {
        let (came, _) = through(outgoing, incoming, 1, 20);
        for (number, packet) in (0..20).zip(&came) {
            let whole = numbered::packet(number);
            let turned: u32 = whole.iter().zip(packet).map(|(a, b)| (a ^ b).count_ones()).sum();
            assert_eq!(turned, 1);
        }
    }
}

#[test]
fn late_packets_are_overtaken_and_none_is_lost() {
    let late = Impairment { reorder_ppm: 300_000, ..Impairment::NONE };
    for (outgoing, incoming) in [(late, Impairment::NONE), (Impairment::NONE, late)] {
        let (mut came, _) = through(outgoing, incoming, 5, 100);
        let sent: Vec<_> = (0..100).map(numbered::packet).collect();
        assert_ne!(came, sent);
        came.sort_by_key(|packet| numbered::number(packet));
        assert_eq!(came, sent);
    }
}

#[test]
fn a_delay_holds_each_packet_for_as_long_and_keeps_their_order() {
    let delay = Duration::from_millis(30);
    let mut link = Fault::wrap(
        Box::new(Memory::to(Loop::default())),
        Impairment::NONE,
        Impairment { delay, ..Impairment::NONE },
        1,
    )
    .unwrap();
    let mut buffer = vec![0; crate::MAX_PACKET];
    for (number, at) in [(0, SECOND), (1, SECOND + Duration::from_millis(10))] {
        link.transmit(at, &numbered::transmit(number), &numbered::packet(number));
    }
    let first = SECOND + delay;
    assert_eq!(link.poll_timeout(), Some(first));
    link.handle_timeout(first - Duration::from_nanos(1));
    assert_eq!(link.receive(first, &mut buffer), Received::Nothing);
    link.handle_timeout(first);
    assert!(matches!(link.receive(first, &mut buffer), Received::Packet(_)));
    assert_eq!(numbered::number(&buffer), 0);
    assert_eq!(link.poll_timeout(), Some(first + Duration::from_millis(10)));
}

#[test]
fn a_bottleneck_lets_its_bits_a_second_through_and_its_queue_overflows() {
    // 100 bytes at 80,000 bit/s: 10 ms each.
    let slow = Impairment { bits_per_second: 80_000, queue_packets: 10, ..Impairment::NONE };
    let mut link = Fault::wrap(Box::new(Memory::to(Loop::default())), Impairment::NONE, slow, 1).unwrap();
    for number in 0..15 {
        link.transmit(SECOND, &numbered::transmit(number), &numbered::packet(number));
    }
    assert_eq!(link.counters().drops[&LinkDrop::FaultRate], 5);
    let (mut buffer, mut came) = (vec![0; crate::MAX_PACKET], 0);
    while let Some(at) = link.poll_timeout() {
        came += 1;
        assert_eq!(at, SECOND + came * Duration::from_millis(10));
        link.handle_timeout(at);
        assert!(matches!(link.receive(at, &mut buffer), Received::Packet(_)));
    }
    assert_eq!(came, 10);
}

#[test]
fn a_full_link_keeps_its_packet_for_a_while() {
    let inner = Memory::to(Loop { room: 0, ..Loop::default() });
    let mut link = Fault::wrap(
        Box::new(inner),
        Impairment::NONE,
        Impairment { delay: Duration::from_millis(1), ..Impairment::NONE },
        1,
    )
    .unwrap();
    link.transmit(SECOND, &numbered::transmit(0), &numbered::packet(0));
    let due = SECOND + Duration::from_millis(1);
    link.handle_timeout(due);
    assert_eq!(link.poll_timeout(), Some(due + RETRY));
}

#[test]
fn settings_that_cannot_work_are_refused() {
    for bad in [
        Impairment { loss_ppm: 1_000_001, ..Impairment::NONE },
        Impairment { queue_packets: 0, ..Impairment::NONE },
    ] {
        assert!(Fault::wrap(Box::new(Memory::to(Loop::default())), bad, Impairment::NONE, 1).is_err());
    }
}

/// The numbers of the packets that pass a link which is full after two packets until they are read.
fn through_narrow(outgoing: Impairment, seed: u64, count: u32) -> Vec<u32> {
    let inner = Memory::to(Loop { room: 2, ..Loop::default() });
    let mut link = Fault::wrap(Box::new(inner), Impairment::NONE, outgoing, seed).unwrap();
    let (mut now, mut came, mut buffer) = (SECOND, Vec::new(), vec![0; crate::MAX_PACKET]);
    let mut later = |link: &mut Fault| {
        now += 2 * RETRY;
        link.handle_timeout(now);
        while let Received::Packet(arrived) = link.receive(now, &mut buffer) {
            came.push(numbered::number(&buffer[..arrived.bytes]));
        }
        now
    };
    let mut at = SECOND;
    for number in 0..count {
        while link.transmit(at, &numbered::transmit(number), &numbered::packet(number)) == Sent::Full {
            at = later(&mut link);
        }
    }
    while link.poll_timeout().is_some() {
        later(&mut link);
    }
    later(&mut link);
    came
}

#[test]
fn what_a_full_link_did_not_take_is_not_decided_anew() {
    let lossy = Impairment { loss_ppm: 300_000, ..Impairment::NONE };
    let (wide, _) = through(lossy, Impairment::NONE, 3, 200);
    let wide: Vec<_> = wide.iter().map(|packet| numbered::number(packet)).collect();
    assert_eq!(through_narrow(lossy, 3, 200), wide);
}

#[test]
fn what_a_full_link_did_not_take_stays_before_what_came_later() {
    let late = Impairment { delay: Duration::from_millis(1), ..Impairment::NONE };
    assert_eq!(through_narrow(late, 1, 20), (0..20).collect::<Vec<_>>());
}
