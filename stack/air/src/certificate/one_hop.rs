//! One sender over one hop: aggregates and access categories beside arithmetic. No other frames are on the air.

use hopwise_core::queue::Category;

use super::categories::name_of;
use super::turn::{MOST_PACKETS, Sender};
use super::{Probe, about, without_rts};
use crate::airtime::Load;
use crate::dcf::{Dcf, MacRules, News, Offered};
use crate::phy::Phy;
use crate::position::Position;
use crate::radio::Radio;
use crate::saturated::{PACKET, PAYLOAD, Saturated};

/// Each frame crosses 150 m.
const PROPAGATION_NS: u64 = 500;
/// Slots are drawn and not equal, but their mean over a minute is near to its expectation.
const PERCENT: f64 = 0.5;

pub(super) fn probes(phy: Phy, rules: MacRules, seconds: u64, probes: &mut Vec<Probe>) {
    if !phy.is_ht() {
        return;
    }
    let kbps = aggregates(phy, rules, seconds);
    let expected = expected_of(phy, Category::BestEffort, true);
    probes.push(about("one hop, A-MPDU".into(), "kbit/s", kbps, expected, PERCENT));
    for category in Category::ALL {
        let name = format!("one hop, {}", name_of(category));
        let kbps = kbps_of(phy, rules, category, seconds);
        probes.push(about(name, "kbit/s", kbps, expected_of(phy, category, false), PERCENT));
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

/// AIFS, half a window of slots, and the exchanges for which the TXOP has room.
fn expected_of(phy: Phy, category: Category, is_aggregated: bool) -> f64 {
    let turn = Sender { phy, category, is_aggregated, propagation_ns: PROPAGATION_NS }.data();
    let backoff = phy.aifs_ns(category) + u64::from(phy.contention(category).cw.0) * phy.slot_ns / 2;
    f64::from(turn.packets * PAYLOAD) * 8e6 / (backoff + turn.all_ns) as f64
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
