//! One sender over one hop: aggregates and access categories beside arithmetic. No other frames are on the air.

use hopwise_core::queue::Category;

use super::{Probe, about, without_rts};
use crate::airtime::Load;
use crate::dcf::{Dcf, MacRules, News, Offered};
use crate::phy::{BLOCK_ACK_BYTES, Phy};
use crate::position::Position;
use crate::radio::Radio;
use crate::saturated::{PACKET, PAYLOAD, Saturated};

/// The most packets that a block ACK tells of.
const MOST_PACKETS: u8 = 64;
/// The longest PPDU, and the longest A-MPDUs of 802.11n and 802.11ac.
const LONGEST_PPDU_NS: u64 = 5_484_000;
const LONGEST_HT: u32 = 65_535;
const LONGEST_VHT: u32 = 1_048_575;
/// Each of an exchange's two frames crosses 150 m.
const PROPAGATION_NS: u64 = 2 * 500;
/// Slots are drawn and not equal, but their mean over a minute is near to its expectation.
const PERCENT: f64 = 0.5;

pub(super) fn probes(phy: Phy, rules: MacRules, seconds: u64, probes: &mut Vec<Probe>) {
    if !phy.is_ht() {
        return;
    }
    let kbps = aggregates(phy, rules, seconds);
    let expected = expected_of_aggregates(&phy);
    probes.push(about("one hop, A-MPDU".into(), "kbit/s", kbps, expected, PERCENT));
    for category in Category::ALL {
        let name = format!("one hop, {}", name_of(category));
        let kbps = kbps_of(phy, rules, category, seconds);
        probes.push(about(name, "kbit/s", kbps, expected_of(&phy, category), PERCENT));
    }
}

fn name_of(category: Category) -> &'static str {
    match category {
        Category::Background => "background",
        Category::BestEffort => "best effort",
        Category::Video => "video",
        Category::Voice => "voice",
    }
}

fn positions() -> Vec<Option<Position>> {
    [0.0, 150.0].map(|x| Some(Position { x, y: 0.0 })).to_vec()
}

fn aggregates(phy: Phy, rules: MacRules, seconds: u64) -> f64 {
    let mac = crate::dcf::MacConfig { ampdu: Some(MOST_PACKETS), ..without_rts(rules) };
    let radio = Radio::default();
    Saturated { phy, mac, radio, positions: positions(), flows: vec![(0, 1)], seed: 1 }.kbps(seconds)
}

/// AIFS, half a window of slots, the longest aggregate, SIFS, the block ACK.
fn expected_of_aggregates(phy: &Phy) -> f64 {
    let mpdu = 4 + PACKET + phy.data_overhead;
    let psdu = |packets: u32| (packets - 1) * mpdu.next_multiple_of(4) + mpdu;
    let most = if phy.is_vht() { LONGEST_VHT } else { LONGEST_HT };
    let fits =
        |packets: &u32| psdu(*packets) <= most && phy.airtime_ns(psdu(*packets), phy.data) <= LONGEST_PPDU_NS;
    let packets = (2..=u32::from(MOST_PACKETS)).take_while(fits).last().unwrap_or(2);
    let answer_ns = phy.airtime_ns(BLOCK_ACK_BYTES, phy.data.answer());
    let frames = phy.airtime_ns(psdu(packets), phy.data) + phy.sifs_ns + answer_ns + PROPAGATION_NS;
    let backoff = phy.difs_ns() + u64::from(phy.cw.0) * phy.slot_ns / 2;
    f64::from(packets * PAYLOAD) * 8e6 / (backoff + frames) as f64
}

/// The payload of one sender of a category without aggregates, in kbit/s.
fn kbps_of(phy: Phy, rules: MacRules, category: Category, seconds: u64) -> f64 {
    let mut dcf = Dcf::new(phy, without_rts(rules), Radio::default(), &positions(), 1);
    let offered = Offered { to: 1, bytes: PACKET, load: Load::Other, queued_at: None, category };
    dcf.give(0, 0, offered);
    let mut came = 0_u64;
    while dcf.next() < seconds * 1_000_000_000 {
        let now = dcf.next();
        dcf.fire();
        while let Some(news) = dcf.next_news() {
            came += u64::from(matches!(news, News::Arrived { .. }));
        }
        if dcf.has_room_in(0, category) {
            dcf.give(now, 0, offered);
        }
    }
    (came * u64::from(PAYLOAD) * 8) as f64 / seconds as f64 / 1e3
}

/// AIFS, half a window of slots, and as many exchanges, SIFS apart, as the TXOP has room for.
fn expected_of(phy: &Phy, category: Category) -> f64 {
    let exchange = phy.data_ns(PACKET) + phy.sifs_ns + phy.ack_ns();
    let of = phy.contention(category);
    let frames = ((of.txop_ns + phy.sifs_ns) / (exchange + phy.sifs_ns)).max(1);
    let backoff = phy.aifs_ns(category) + u64::from(of.cw.0) * phy.slot_ns / 2;
    let all = backoff + frames * (exchange + PROPAGATION_NS) + (frames - 1) * phy.sifs_ns;
    (frames * u64::from(PAYLOAD)) as f64 * 8e6 / all as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aggregates_and_categories_carry_what_arithmetic_says() {
        for profile in ["ht20-mcs7", "ht40-mcs15", "vht20-1ss-mcs0", "vht40-1ss-mcs9", "vht80-2ss-mcs7"] {
            let mut found = Vec::new();
            probes(Phy::named(profile).expect("a profile"), MacRules::Standard, 20, &mut found);
            assert_eq!(found.len(), 5, "aggregates and four categories");
            for probe in &found {
                assert!(probe.is_passed(), "{profile}: {probe}");
            }
        }
        let mut none = Vec::new();
        probes(Phy::named("dsss-2mbps").expect("a profile"), MacRules::Standard, 1, &mut none);
        assert!(none.is_empty(), "stations without 802.11n have neither");
    }
}
