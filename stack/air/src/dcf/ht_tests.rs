//! Stations of 802.11n: airtime of saturated stations, and receptions among other frames.

use std::collections::BTreeMap;

use hopwise_core::queue::Category;

use super::{Dcf, DcfNews, MacConfig, Offered, PacketOutcome};
use crate::medium::{Position, Radio};
use crate::phy::{BLOCK_ACK_BYTES, Band, Phy};
use crate::saturated::{PACKET, PAYLOAD, Saturated, fill};

fn phy(name: &str) -> Phy {
    Phy::named(name).expect("a profile")
}

fn single() -> MacConfig {
    MacConfig { rts_threshold: None, ..MacConfig::default() }
}

/// AIFS, half a window of slots, the frame, SIFS, the ACK: nothing else is on the air.
#[test]
fn one_sender_carries_what_its_frames_and_gaps_leave() {
    let of_ht = |mcs| {
        [(20, Band::Ghz2), (40, Band::Ghz5)].map(|(width, band)| {
            let phy = phy(&format!("ht{width}-mcs{mcs}"));
            phy.in_band(band)
        })
    };
    let of_vht = ["vht20-1ss-mcs8", "vht40-2ss-mcs9", "vht80-1ss-mcs0", "vht80-2ss-mcs9"].map(phy);
    for phy in (0..16).flat_map(of_ht).chain(of_vht) {
        let positions = [0.0, 150.0].map(|x| Some(Position { x, y: 0.0 })).to_vec();
        let one = Saturated {
            phy,
            mac: single(),
            radio: Radio::default(),
            positions,
            flows: vec![(0, 1)],
            seed: 1,
        };
        let gaps = phy.difs_ns() + u64::from(phy.cw.0) * phy.slot_ns / 2 + phy.sifs_ns;
        // Half a microsecond through the air, once a frame.
        let each = gaps + phy.data_ns(PACKET) + phy.ack_ns() + 2 * 500;
        let expected = f64::from(PAYLOAD) * 8e6 / each as f64;
        let ratio = one.kbps(10) / expected;
        assert!((ratio - 1.0).abs() < 0.003, "{} {:?}: {ratio:.4}", phy.name, phy.coding);
    }
}

/// AIFS, half a window of slots, the aggregate, SIFS, the block ACK; with RTS before it, and without.
#[test]
fn one_sender_of_aggregates_carries_what_its_frames_and_gaps_leave() {
    for (profile, packets, psdu) in [
        ("ht20-mcs0", 4, 3 * 1_072 + 1_070),
        ("ht20-mcs3", 16, 15 * 1_072 + 1_070),
        ("ht20-mcs7", 41, 40 * 1_072 + 1_070),
        ("ht40-mcs15", 61, 60 * 1_072 + 1_070),
        // 802.11ac: 64 packets are the limit.
        ("vht20-1ss-mcs0", 4, 3 * 1_072 + 1_070),
        ("vht40-1ss-mcs9", 64, 63 * 1_072 + 1_070),
        ("vht80-2ss-mcs7", 64, 63 * 1_072 + 1_070),
    ] {
        let phy = phy(profile);
        let positions = [0.0, 150.0].map(|x| Some(Position { x, y: 0.0 })).to_vec();
        for rts_threshold in [None, Some(0)] {
            let mac = MacConfig { ampdu: Some(64), rts_threshold, ..single() };
            let (positions, flows) = (positions.clone(), vec![(0, 1)]);
            let one = Saturated { phy, mac, radio: Radio::default(), positions, flows, seed: 1 };
            let gaps = phy.difs_ns() + u64::from(phy.cw.0) * phy.slot_ns / 2 + phy.sifs_ns;
            let block_ack_ns = phy.airtime_ns(BLOCK_ACK_BYTES, phy.data.answer());
            // RTS, SIFS, CTS, SIFS, and half a microsecond through the air each.
            let announced_ns =
                rts_threshold.map_or(0, |_| phy.rts_ns() + phy.cts_ns() + 2 * phy.sifs_ns + 2 * 500);
            let each = gaps + announced_ns + phy.airtime_ns(psdu, phy.data) + block_ack_ns + 2 * 500;
            let expected = f64::from(packets * PAYLOAD) * 8e6 / each as f64;
            let ratio = one.kbps(20) / expected;
            assert!((ratio - 1.0).abs() < 0.005, "{profile} {rts_threshold:?}: {ratio:.4}");
        }
    }
}

/// Packets of 1,028 bytes in MPDUs: each has 22 bytes before it, all but the last one have 2 of padding, and 30 bytes
/// are the MPDU's. Three fit 3,839 bytes. One MPDU gets an ACK, and several get a block ACK.
#[test]
fn one_sender_of_a_msdus_carries_what_its_frames_and_gaps_leave() {
    const OF_TWO: u32 = 1_052 + 1_050 + 30;
    const OF_THREE: u32 = 2 * 1_052 + 1_050 + 30;
    for (profile, ampdu, packets, psdu) in [
        ("ht20-mcs7", None, 3, OF_THREE),
        ("ht20-mcs7", Some(64), 13 * 3 + 2, 13 * (4 + OF_THREE) + 4 + OF_TWO),
        ("vht80-2ss-mcs9", Some(64), 64 * 3, 64 * (4 + OF_THREE)),
        ("vht80-1ss-mcs0", Some(64), 6 * 3, 6 * (4 + OF_THREE)),
    ] {
        let phy = phy(profile);
        let mac = MacConfig { ampdu, amsdu: Some(3_839), ..single() };
        let positions = [0.0, 150.0].map(|x| Some(Position { x, y: 0.0 }));
        let mut dcf = Dcf::new(phy, mac, Radio::default(), &positions, 1);
        fill(&mut dcf, 0, (0, 1));
        let mut came = 0;
        dcf.play(10_000_000_000, |dcf, now, news| match news {
            DcfNews::Done { packets, outcome, .. } => {
                assert_eq!(outcome, PacketOutcome::Acknowledged, "{profile}");
                came += u64::from(packets);
            }
            DcfNews::HasRoom { .. } => fill(dcf, now, (0, 1)),
            DcfNews::Arrived { .. } | DcfNews::Kept { .. } => {}
        });
        let block_ack_ns = phy.airtime_ns(BLOCK_ACK_BYTES, phy.data.answer());
        let answer_ns = if ampdu.is_some() { block_ack_ns } else { phy.ack_ns() };
        let gaps = phy.difs_ns() + u64::from(phy.cw.0) * phy.slot_ns / 2 + phy.sifs_ns;
        let each = gaps + phy.airtime_ns(psdu, phy.data) + answer_ns + 2 * 500;
        let expected = f64::from(packets) * 1e10 / each as f64;
        let ratio = came as f64 / expected;
        assert!((ratio - 1.0).abs() < 0.005, "{profile} {ampdu:?}: {ratio:.4}");
    }
}

/// Hidden stations lose whole A-MSDUs: their packets come through together, and packets of lone frames in order.
#[test]
fn packets_of_an_a_msdu_share_their_fate() {
    let positions: Vec<_> = (0..5).map(|n| Some(Position { x: 200.0 * f64::from(n), y: 0.0 })).collect();
    for ampdu in [None, Some(64)] {
        let mac = MacConfig { ampdu, amsdu: Some(3_839), ..single() };
        let mut dcf = Dcf::new(phy("ht20-mcs7"), mac, Radio::default(), &positions, 1);
        [(0, 1), (3, 4)].into_iter().for_each(|flow| fill(&mut dcf, 1_000_000, flow));
        let (mut came, mut done, mut gone, mut last) = (0, 0, 0, [0; 5]);
        dcf.play(2_000_000_000, |dcf, now, news| match news {
            DcfNews::Arrived { to, number, .. } => {
                assert!(number > last[to as usize], "{number} after {last:?}");
                (came, last[to as usize]) = (came + 1, number);
            }
            DcfNews::Done { packets, outcome, .. } => {
                assert!((1..=3).contains(&packets), "{packets}");
                let is_given_up = u32::from(outcome == PacketOutcome::GivenUp);
                (done, gone) = (done + 1 - is_given_up, gone + is_given_up);
            }
            DcfNews::HasRoom { station } => {
                fill(dcf, now, (station, station + 1));
            }
            DcfNews::Kept { .. } => {}
        });
        assert!(
            done > 500 && done.abs_diff(came) < 130,
            "{ampdu:?}: {done} done, {came} came, {gone} given up"
        );
    }
}

/// A chain of hidden stations at MCS 7 loses packets all the time: each still arrives once, in order.
#[test]
fn packets_in_aggregates_arrive_once_and_in_order_whatever_is_lost() {
    let positions: Vec<_> = (0..5).map(|n| Some(Position { x: 200.0 * f64::from(n), y: 0.0 })).collect();
    let mac = MacConfig { ampdu: Some(64), lifetime_ns: None, reorder_ns: None, ..single() };
    let mut dcf = Dcf::new(phy("ht20-mcs7"), mac, Radio::default(), &positions, 1);
    [(0, 1), (3, 4)].into_iter().for_each(|flow| fill(&mut dcf, 1_000_000, flow));
    let (mut last, mut again, mut kept) = ([0; 5], 0, 0);
    dcf.play(3_000_000_000, |dcf, now, news| match news {
        DcfNews::Arrived { from, to, number, .. } => {
            assert_eq!(number, last[to as usize] + 1, "from {from} at {now}");
            last[to as usize] = number;
        }
        DcfNews::Kept { .. } => kept += 1,
        DcfNews::Done { station, outcome, tries, .. } => {
            assert_eq!(outcome, PacketOutcome::Acknowledged);
            again += u32::from(tries > 1);
            fill(dcf, now, (station, station + 1));
        }
        DcfNews::HasRoom { station } => fill(dcf, now, (station, station + 1)),
    });
    assert!(last[1] > 300 && last[4] > 3_000, "{last:?}");
    assert!(again > 100 && kept > 10, "{again} repeated, {kept} kept");
}

/// The same chain, whose receivers wait for 5 ms: packets behind a hole go up then, and what fills it later does not.
#[test]
fn packets_wait_for_missing_ones_no_longer_than_the_timeout() {
    const TIMEOUT: u64 = 5_000_000;
    let positions: Vec<_> = (0..5).map(|n| Some(Position { x: 200.0 * f64::from(n), y: 0.0 })).collect();
    let mac = MacConfig { ampdu: Some(64), lifetime_ns: None, reorder_ns: Some(TIMEOUT), ..single() };
    let mut dcf = Dcf::new(phy("ht20-mcs7"), mac, Radio::default(), &positions, 1);
    [(0, 1), (3, 4)].into_iter().for_each(|flow| fill(&mut dcf, 1_000_000, flow));
    let (mut last, mut missing, mut kept) = ([0; 5], 0, BTreeMap::new());
    while dcf.next() < 3_000_000_000 {
        let now = dcf.next();
        dcf.fire();
        assert!(kept.values().all(|since| now - since <= TIMEOUT), "{kept:?} at {now}");
        while let Some(news) = dcf.next_news() {
            match news {
                DcfNews::Arrived { to, number, .. } => {
                    assert!(number > last[to as usize], "{number} after {last:?}");
                    missing += u64::from(number - last[to as usize] - 1);
                    last[to as usize] = number;
                    kept.remove(&(to, number));
                }
                DcfNews::Kept { to, number, .. } => assert_eq!(kept.insert((to, number), now), None),
                DcfNews::Done { station, outcome, .. } => {
                    assert_eq!(outcome, PacketOutcome::Acknowledged);
                    fill(&mut dcf, now, (station, station + 1));
                }
                DcfNews::HasRoom { station } => fill(&mut dcf, now, (station, station + 1)),
            }
        }
    }
    let of = |n| [dcf.stats(n).reorder_timeouts, dcf.stats(n).reorder_late];
    let [timeouts, late] = [0, 1].map(|which| of(1)[which] + of(4)[which]);
    assert!(missing > 20 && last[4] > 3_000, "{missing} missing of {last:?}");
    // The last given-up packets may be in the frame at hand.
    assert!(timeouts == missing && late <= timeouts && late + 64 > timeouts, "{timeouts} {late} {missing}");
}

/// Without answers packets are given up when their lifetime ends, and the station goes on.
#[test]
fn a_receiver_that_is_gone_costs_its_packets_their_lifetime() {
    let positions = [0.0, 2_000.0, 100.0].map(|x| Some(Position { x, y: 0.0 }));
    let mac = MacConfig { ampdu: Some(64), lifetime_ns: Some(100_000_000), ..single() };
    let mut dcf = Dcf::new(phy("ht20-mcs7"), mac, Radio::default(), &positions, 1);
    let offered = |to| Offered::plain(to, 1_000, Category::BestEffort);
    dcf.give(0, 0, offered(1));
    (0..9).for_each(|_| {
        dcf.give_more(0, 0, offered(1));
    });
    let mut given_up = 0;
    while !dcf.has_room(0) {
        dcf.fire();
        while let Some(news) = dcf.next_news() {
            if let DcfNews::Done { outcome, .. } = news {
                assert_eq!(outcome, PacketOutcome::GivenUp);
                assert!(dcf.next() > 100_000_000);
                given_up += 1;
            }
        }
    }
    assert_eq!(given_up, 10);
    let now = dcf.next().min(200_000_000);
    dcf.give(now, 0, offered(2));
    loop {
        dcf.fire();
        if let Some(DcfNews::Done { outcome, .. }) = dcf.next_news() {
            assert_eq!(outcome, PacketOutcome::Acknowledged);
            return;
        }
    }
}

/// The tries of a packet from the first station of a chain to the second, while the fourth sends.
fn tries_beside_a_hidden_station(profile: &str, seed: u64) -> u32 {
    let positions: Vec<_> = (0..5).map(|n| Some(Position { x: 200.0 * f64::from(n), y: 0.0 })).collect();
    let mut dcf = Dcf::new(phy(profile), single(), Radio::default(), &positions, seed);
    dcf.offer(1_000_000, 0, 1, 1_460);
    dcf.offer(1_100_000, 3, 4, 1_460);
    loop {
        dcf.fire();
        while let Some(news) = dcf.next_news() {
            if let DcfNews::Done { station: 0, outcome, tries, .. } = news {
                assert_eq!(outcome, PacketOutcome::Acknowledged);
                return tries;
            }
        }
    }
}

/// The fourth station is twice as far from the second as the first is, and so 12 dB weaker. By ns-3's tables that is
/// enough for MCS 0 and 3, and not for MCS 7.
#[test]
fn what_a_hidden_station_spoils_depends_on_the_mcs() {
    for seed in 1..20 {
        for (profile, survives) in [("ht20-mcs0", true), ("ht20-mcs3", true), ("ht20-mcs7", false)] {
            let tries = tries_beside_a_hidden_station(profile, seed);
            assert_eq!(tries == 1, survives, "{profile}: {tries} tries");
        }
    }
}

/// Two equally strong frames that begin together: no receiver finds a preamble, and no station waits for EIFS.
#[test]
fn of_two_equal_frames_that_begin_together_none_is_found() {
    let positions = [-150.0, 0.0, 150.0].map(|x| Some(Position { x, y: 0.0 }));
    for profile in ["ht20-mcs0", "ht20-mcs7"] {
        let mut dcf = Dcf::new(phy(profile), single(), Radio::default(), &positions, 1);
        dcf.offer(1_000_000, 0, 1, 1_000);
        dcf.offer(1_000_000, 2, 1, 1_000);
        let mut tries = Vec::new();
        while tries.len() < 2 {
            dcf.fire();
            while let Some(news) = dcf.next_news() {
                if let DcfNews::Done { tries: n, .. } = news {
                    tries.push(n);
                }
            }
        }
        assert!(tries.iter().all(|tries| *tries > 1), "{profile}: {tries:?}");
    }
}
