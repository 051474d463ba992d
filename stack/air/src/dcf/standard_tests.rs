//! Rules of IEEE 802.11-2016 that ns-2 does not follow.

use super::tests::SECOND;
use super::*;
use crate::channel::LinkSentence;

fn phy() -> Phy {
    Phy::named("dsss-2mbps").expect("a profile")
}

fn pair(rules: MacRules, spacing_m: f64, channel: &Channel) -> Dcf {
    pair_of(rules, spacing_m, channel, 1)
}

fn pair_of(rules: MacRules, spacing_m: f64, channel: &Channel, seed: u64) -> Dcf {
    let positions = [Some(Position::default()), Some(Position { x: spacing_m, y: 0.0 })];
    let mac = MacConfig { rules, ..MacConfig::default() };
    Dcf::with_channel(phy(), mac, Radio::default(), channel, &positions, seed)
}

fn losing(link: &str) -> Channel {
    let node = |name: &str| name.strip_prefix('n')?.parse().ok();
    match LinkSentence::parse(&format!("link {link} loses 100%"), &node) {
        Ok(LinkSentence::Change(change)) => Channel { links: vec![change], ..Channel::default() },
        other => panic!("{other:?}"),
    }
}

/// §10.3.3.
#[test]
fn backoffs_take_every_value_from_0_to_the_window_and_ns2s_never_the_last() {
    for (rules, most) in [(MacRules::Standard, 31), (MacRules::Ns2, 30)] {
        let mut station = DcfStation::new(&phy(), rules, (1, 0));
        let mut drawn: Vec<u32> = (0..4_000).map(|_| station.draw()).collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn, (0..=most).collect::<Vec<_>>(), "{rules:?}");
    }
}

/// The time from the end of station 0's broadcast to station 1's own frame, less whole slots.
fn rest_after_a_broadcast(spacing_m: f64, channel: &Channel) -> u64 {
    waited_after_a_broadcast(spacing_m, channel, 1) % phy().slot_ns
}

fn waited_after_a_broadcast(spacing_m: f64, channel: &Channel, seed: u64) -> u64 {
    let mut dcf = pair_of(MacRules::Standard, spacing_m, channel, seed);
    let is_broadcast = |event: &FrameEvent| event.sender == 0;
    dcf.watch_frames();
    dcf.offer(0, 0, EVERYONE, 1_000);
    dcf.fire();
    // The packet comes in the middle of the broadcast.
    dcf.offer(1_000_000, 1, EVERYONE, 100);
    let (mut ended, mut begun) = (None, None);
    while dcf.next() < SECOND {
        dcf.fire();
        dcf.take_seen(&mut |event| {
            match (is_broadcast(event), event.station) {
                (true, 1) => ended = Some(event.until_ns),
                (false, 1) => begun = begun.or(Some(event.from_ns)),
                _ => {}
            };
        });
    }
    begun.expect("it sends") - ended.expect("it hears the other")
}

/// §10.3.4.2: whoever finds the medium busy draws a backoff; only an idle medium is used at once.
#[test]
fn a_packet_that_finds_the_medium_busy_waits_for_a_drawn_backoff() {
    let slots = |seed| {
        let waited = waited_after_a_broadcast(200.0, &Channel::default(), seed);
        (waited - phy().difs_ns()) / phy().slot_ns
    };
    let mut drawn: Vec<u64> = (1..=64).map(slots).collect();
    drawn.sort_unstable();
    drawn.dedup();
    assert!(drawn.len() > 16 && drawn.last() <= Some(&31), "{drawn:?}");
}

/// §10.3.2.3.7: EIFS follows PHY-RXEND with an error, or a wrong FCS. Both need a frame that was understood up to its
/// header. From 250 to 550 m there is nothing but energy, and the PHY reports CCA alone.
#[test]
fn eifs_follows_frames_that_err_and_not_energy_alone() {
    let (difs, eifs) = (phy().difs_ns() % phy().slot_ns, phy().eifs_ns() % phy().slot_ns);
    assert_ne!(difs, eifs);
    assert_eq!(rest_after_a_broadcast(200.0, &Channel::default()), difs, "understood");
    assert_eq!(rest_after_a_broadcast(400.0, &Channel::default()), difs, "energy");
    assert_eq!(rest_after_a_broadcast(200.0, &losing("n0->n1")), eifs, "in error");
}

/// The NAV makes a medium busy, too (§10.3.2.1): station 2 hears an RTS that nobody answers.
#[test]
fn a_packet_that_finds_the_medium_reserved_waits_for_a_drawn_backoff() {
    let waits = |seed| {
        let positions = [0.0, 2_000.0, 200.0].map(|x| Some(Position { x, y: 0.0 }));
        let mut dcf = Dcf::new(phy(), MacConfig::default(), Radio::default(), &positions, seed);
        dcf.watch_frames();
        dcf.offer(SECOND, 0, 1, 1_000);
        let offered_at = SECOND + phy().rts_ns() + 100_000;
        dcf.play(offered_at, |_, _, _| {});
        let reserved_until = dcf.stations[2].nav_end();
        assert!(reserved_until > offered_at && dcf.stations[2].reception.hears == station::Hears::Nothing);
        dcf.offer(offered_at, 2, EVERYONE, 100);
        let mut begun = None;
        while begun.is_none() {
            dcf.fire();
            dcf.take_seen(&mut |event| {
                let is_own = (event.sender, event.station) == (2, 2);
                begun = begun.or(is_own.then_some(event.from_ns));
            });
        }
        begun.expect("it sends") - reserved_until
    };
    let at_once = (1..=64).filter(|seed| waits(*seed) == phy().difs_ns()).count();
    assert!(at_once <= 8, "{at_once} of 64 drew nothing, and one in 32 draws 0");
}

/// §10.3.2.3.7: a frame that is understood ends an EIFS. Station 1 hears station 0's data in error, and then the ACK.
#[test]
fn an_eifs_is_over_with_the_next_frame_that_is_understood() {
    let positions = [0.0, 200.0, 100.0].map(|x| Some(Position { x, y: 0.0 }));
    let mac = MacConfig { rts_threshold: None, ..MacConfig::default() };
    let mut dcf = Dcf::with_channel(phy(), mac, Radio::default(), &losing("n0->n1"), &positions, 1);
    dcf.offer(SECOND, 0, 2, 1_000);
    let mut eifs = Vec::new();
    while dcf.next() < 2 * SECOND {
        dcf.fire();
        eifs.push(dcf.stations[1].eifs_until);
    }
    assert!(eifs.iter().any(|until| *until > 0), "the data was in error");
    assert_eq!(eifs.last(), Some(&0), "the ACK was understood");
}

/// Frames that begin together at 200 m on either side hide each other's header; where the second begins after it, the
/// first one errs.
#[test]
fn a_collision_counts_as_an_error_where_a_header_was_understood() {
    for (later_us, is_error) in [(0, false), (100, false), (300, true)] {
        let positions = [0.0, 200.0, 400.0].map(|x| Some(Position { x, y: 0.0 }));
        // The ends do not receive each other.
        let radio = Radio { sense_w: Radio::default().receive_w, ..Radio::default() };
        let mut dcf = Dcf::new(phy(), MacConfig::default(), radio, &positions, 1);
        dcf.offer(SECOND, 0, EVERYONE, 1_000);
        dcf.offer(SECOND + later_us * 1_000, 2, EVERYONE, 1_000);
        dcf.play(2 * SECOND, |_, _, _| {});
        assert_eq!(dcf.stations[1].eifs_until > 0, is_error, "{later_us} us");
    }
}

/// §10.3.2.7: a station answers an RTS if its NAV is idle. A CTS does not set its sender's own NAV.
#[test]
fn an_rts_is_answered_again_at_once_when_its_cts_was_lost() {
    for (rules, all) in [(MacRules::Standard, true), (MacRules::Ns2, false)] {
        let mut dcf = pair(rules, 200.0, &losing("n1->n0"));
        dcf.offer(0, 0, 1, 1_000);
        dcf.play(SECOND, |_, _, _| {});
        let (asked, answered) = (dcf.stats(0).frames_sent.rts, dcf.stats(1).frames_sent.cts);
        assert_eq!(asked, 7);
        assert_eq!(answered == asked, all, "{rules:?}: {answered}");
    }
}

/// §10.3.2.7: SIFS, a slot and aRxPHYStartDelay after the RTS the station knows that no answer comes.
#[test]
fn who_is_not_answered_knows_it_when_a_preamble_is_overdue() {
    let mut dcf = pair(MacRules::Standard, 1_000.0, &Channel::default());
    dcf.offer(SECOND, 0, 1, 1_000);
    dcf.fire();
    assert_eq!(dcf.next(), SECOND + phy().rts_ns(), "its end");
    dcf.fire();
    assert_eq!(dcf.next(), SECOND + phy().rts_ns() + 10_000 + 20_000 + 192_000);
}
