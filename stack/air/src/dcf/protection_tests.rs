//! A CTS of a sender to itself.

use hopwise_core::queue::Category;

use super::txop_tests::{Sent, take_sent};
use super::*;

const BYTES: u32 = 1_000;
/// A station that hears nobody.
const FAR: u32 = 3;

/// The frames of station 0 and the answers.
fn played(mac: MacConfig, to: u32, packets: u32) -> (Phy, Vec<Sent>) {
    let phy = Phy::named("ht20-mcs7").expect("a profile");
    let positions = [0.0, 100.0, 200.0, 9_000.0].map(|x| Some(Position { x, y: 0.0 }));
    let mut dcf = Dcf::new(phy, mac, Radio::default(), &positions, 1);
    dcf.watch_frames();
    let category = Category::Video;
    let offered = Offered::plain(to, BYTES, category);
    let (mut all, mut given) = (Vec::new(), 1);
    dcf.give(1_000_000, 0, offered);
    while dcf.next() < 200_000_000 {
        let now = dcf.next();
        dcf.fire();
        while dcf.next_news().is_some() {}
        if given < packets && dcf.has_room_in(0, category) {
            dcf.give(now, 0, offered);
            given += 1;
        }
        take_sent(&mut dcf, &mut all);
    }
    (phy, all)
}

fn protected() -> MacConfig {
    MacConfig { rts_threshold: None, cts_to_self: true, ..MacConfig::default() }
}

#[test]
fn a_cts_to_itself_keeps_others_quiet_until_the_answer_has_come() {
    let (phy, all) = played(protected(), 1, 3);
    let kinds: Vec<_> = all.iter().map(|sent| (sent.kind, sent.to)).collect();
    let exchange = [(FrameKind::Cts, 0), (FrameKind::Data, 1), (FrameKind::Ack, 0)];
    assert_eq!(kinds, exchange.repeat(3), "each frame of the TXOP has its own");
    for frames in all.chunks(3) {
        let (cts, data, ack) = (frames[0], frames[1], frames[2]);
        assert_eq!(data.from_ns - cts.until_ns, phy.sifs_ns);
        assert!(cts.nav_ns.abs_diff(ack.until_ns) < 2_000, "{cts:?} and not {ack:?}");
    }
    assert!((all[3].from_ns - all[2].until_ns).abs_diff(phy.sifs_ns) < 1_000, "the TXOP goes on: {all:?}");
    assert!(all[8].until_ns - all[0].from_ns < phy.contention(Category::Video).txop_ns);
}

#[test]
fn each_try_has_its_own_and_the_packet_is_given_up_as_without_it() {
    let mac = MacConfig { short_retries: 3, ..protected() };
    let (_, all) = played(mac, FAR, 1);
    let kinds: Vec<_> = all.iter().map(|sent| (sent.kind, sent.to)).collect();
    assert_eq!(kinds, [(FrameKind::Cts, 0), (FrameKind::Data, FAR)].repeat(3));
}

/// The medium has two stations.
fn pair(mac: MacConfig) -> Dcf {
    let phy = Phy::named("ht20-mcs7").expect("a profile");
    let positions = [0.0, 100.0].map(|x| Some(Position { x, y: 0.0 }));
    Dcf::new(phy, mac, Radio::default(), &positions, 1)
}

#[test]
fn an_aggregate_takes_no_packet_once_its_cts_is_on_the_air() {
    let mut dcf = pair(MacConfig { ampdu: Some(64), ..protected() });
    let category = Category::BestEffort;
    let offered = Offered::plain(1, BYTES, category);
    dcf.give(0, 0, offered);
    dcf.give_more(0, 0, offered);
    assert!(dcf.room_for_more_in(0, category).is_some());
    while dcf.stats(0).frames_sent.cts == 0 {
        dcf.fire();
    }
    assert!(dcf.room_for_more_in(0, category).is_none());
    let mut arrived = 0;
    dcf.play(1_000_000_000, |_, _, news| {
        arrived += u32::from(matches!(news, DcfNews::Arrived { .. }));
    });
    let sent = dcf.stats(0).frames_sent;
    assert_eq!((arrived, sent.cts, sent.data), (2, 1, 1));
}

#[test]
fn its_airtime_is_the_links_to_the_receiver() {
    let mut dcf = pair(protected());
    dcf.keep_facts();
    let category = Category::BestEffort;
    dcf.give(0, 0, Offered::plain(1, BYTES, category));
    dcf.play(1_000_000_000, |_, _, _| {});
    let facts = dcf.facts(1_000_000_000, 0);
    let airtime = facts.first().and_then(|link| link.tx_duration).map(|time| time.as_nanos() as u64);
    assert_eq!((facts.len(), airtime), (1, Some(dcf.stats(0).airtime_ns)), "{facts:?}");
}

#[test]
fn what_an_rts_announces_has_none() {
    let (_, all) = played(MacConfig { rts_threshold: Some(500), ..protected() }, 1, 1);
    let kinds: Vec<_> = all.iter().map(|sent| sent.kind).collect();
    assert_eq!(kinds, [FrameKind::Rts, FrameKind::Cts, FrameKind::Data, FrameKind::Ack]);
}
