//! Saturated stations of one category and of several, held to chance: a random play of the rules. One sender over one
//! hop is held to arithmetic.
//!
//! All senders stand at one point. No station then understands one of two frames that begin together, as chance has it.
//! A test also holds crowds and chance to the model of contention zones.

use hopwise_core::narrow::as_u32;
use hopwise_core::queue::Category;

use crate::certificate::monte_carlo::CategoryClass;
use crate::certificate::turn::{MOST_PACKETS, TurnSender};
use crate::certificate::{FigureProbe, about, monte_carlo, without_rts};
use hopwise_air::dcf::{Dcf, DcfNews, MacConfig, MacRules, Offered};
use hopwise_air::medium::{Position, Radio};
use hopwise_air::phy::Phy;
use hopwise_air::saturated::{PACKET, PAYLOAD, Saturated};

const BACKGROUND: Category = Category::Background;
const BEST_EFFORT: Category = Category::BestEffort;
const VIDEO: Category = Category::Video;
const VOICE: Category = Category::Voice;

/// Frames cross 100 m.
const PROPAGATION_NS: u64 = 333;

/// A number of stations of each of some categories.
type CategoryStations<'a> = (u32, &'a [Category]);

const PACKETS: [CategoryStations<'_>; 13] = [
    (5, &[BACKGROUND]),
    (20, &[BACKGROUND]),
    (5, &[BEST_EFFORT]),
    (20, &[BEST_EFFORT]),
    (5, &[VIDEO]),
    (20, &[VIDEO]),
    (2, &[VOICE]),
    (5, &[VOICE]),
    (1, &[BACKGROUND, BEST_EFFORT]),
    (10, &[BACKGROUND, BEST_EFFORT]),
    (1, &[BEST_EFFORT, VIDEO]),
    (5, &[BEST_EFFORT, VIDEO]),
    (10, &[BEST_EFFORT, VIDEO]),
];

const AGGREGATES: [CategoryStations<'_>; 6] = [
    (5, &[BEST_EFFORT]),
    (20, &[BEST_EFFORT]),
    (1, &[BACKGROUND, BEST_EFFORT]),
    (10, &[BACKGROUND, BEST_EFFORT]),
    (1, &[BEST_EFFORT, VIDEO]),
    (10, &[BEST_EFFORT, VIDEO]),
];

pub(super) fn name_of(category: Category) -> &'static str {
    match category {
        Category::Background => "background",
        Category::BestEffort => "best effort",
        Category::Video => "video",
        Category::Voice => "voice",
    }
}

/// Packets have no lifetime: in a crowd many a one would end in the second try.
fn in_aggregates(rules: MacRules) -> MacConfig {
    MacConfig { ampdu: Some(MOST_PACKETS), lifetime_ns: None, ..without_rts(rules) }
}

/// Packet by packet.
pub(super) fn packets(phy: Phy, rules: MacRules, seconds: u64, probes: &mut Vec<FigureProbe>) {
    if phy.is_ht() {
        PACKETS.iter().for_each(|cell| probe(phy, without_rts(rules), *cell, seconds, probes));
    }
}

/// In aggregates.
pub(super) fn aggregates(phy: Phy, rules: MacRules, seconds: u64, probes: &mut Vec<FigureProbe>) {
    if phy.is_ht() {
        AGGREGATES.iter().for_each(|cell| probe(phy, in_aggregates(rules), *cell, seconds, probes));
    }
}

/// The figures of chance are of a time longer by this factor.
const LONGER: u64 = 20;
/// The deviation from chance that is allowed: the scatter of a minute.
const OF_ALL_PERCENT: f64 = 1.0;
const OF_ONE_PERCENT: f64 = 4.0;
/// A category that carries a smaller part than this has few turns in a minute, and its figure scatters.
const LEAST_PART: f64 = 0.1;

/// All stations together, and each of two categories, held to chance.
fn probe(phy: Phy, mac: MacConfig, cell: CategoryStations<'_>, seconds: u64, probes: &mut Vec<FigureProbe>) {
    let (stations, categories) = cell;
    let classes = classes(phy, mac, cell);
    let how = if mac.ampdu.is_some() { "A-MPDU, " } else { "" };
    let names: Vec<_> = categories.iter().map(|it| format!("{stations} {}", name_of(*it))).collect();
    let measured = measured(phy, mac, cell, seconds);
    let expected = monte_carlo::kbps(&phy, &classes, LONGER * seconds);
    let all: f64 = expected.iter().sum();
    let name = format!("{how}{}", names.join(" and "));
    probes.push(about(name, "kbit/s", measured.iter().sum(), all, OF_ALL_PERCENT));
    if categories.len() < 2 {
        return;
    }
    for (nth, expected) in expected.iter().enumerate().filter(|(_, expected)| **expected > LEAST_PART * all) {
        let name = format!("{how}{} beside {}", names[nth], names[1 - nth]);
        probes.push(about(name, "kbit/s", measured[nth], *expected, OF_ONE_PERCENT));
    }
}

/// The payload that the stations of each category carry together, in kbit/s.
fn measured(
    phy: Phy,
    mac: MacConfig,
    (stations, categories): CategoryStations<'_>,
    seconds: u64,
) -> Vec<f64> {
    let count = stations as usize;
    let of_stations: Vec<Category> = categories.iter().flat_map(|it| vec![*it; count]).collect();
    let crowd = Saturated::crowd(phy, mac, as_u32(of_stations.len()), 1);
    let each = crowd.kbps_each_in(&of_stations, seconds);
    each.chunks(count).map(|of_one| of_one.iter().sum()).collect()
}

fn classes(phy: Phy, mac: MacConfig, (stations, categories): CategoryStations<'_>) -> Vec<CategoryClass> {
    let class = |category: &Category| {
        let is_aggregated = mac.ampdu.is_some() && *category != VOICE;
        let sender = TurnSender { phy, category: *category, is_aggregated, propagation_ns: PROPAGATION_NS };
        CategoryClass { sender, stations, tries: mac.short_retries }
    };
    categories.iter().map(class).collect()
}

/// Each frame crosses 150 m.
const HOP_NS: u64 = 500;
/// Slots are drawn and not equal, but their mean over a minute is near to its expectation.
const OF_ARITHMETIC_PERCENT: f64 = 0.5;

/// One sender over one hop: aggregates and access categories, held to arithmetic. No other frames are on the air.
pub(super) fn one_hop(phy: Phy, rules: MacRules, seconds: u64, probes: &mut Vec<FigureProbe>) {
    if !phy.is_ht() {
        return;
    }
    let kbps = kbps_of_aggregates(phy, rules, seconds);
    let expected = by_arithmetic(phy, Category::BestEffort, true);
    probes.push(about("one hop, A-MPDU".into(), "kbit/s", kbps, expected, OF_ARITHMETIC_PERCENT));
    for category in Category::ALL {
        let name = format!("one hop, {}", name_of(category));
        let kbps = kbps_of(phy, rules, category, seconds);
        probes.push(about(name, "kbit/s", kbps, by_arithmetic(phy, category, false), OF_ARITHMETIC_PERCENT));
    }
}

fn positions() -> Vec<Option<Position>> {
    [0.0, 150.0].map(|x| Some(Position { x, y: 0.0 })).to_vec()
}

fn kbps_of_aggregates(phy: Phy, rules: MacRules, seconds: u64) -> f64 {
    let mac = MacConfig { ampdu: Some(MOST_PACKETS), ..without_rts(rules) };
    let radio = Radio::default();
    Saturated { phy, mac, radio, positions: positions(), flows: vec![(0, 1)], seed: 1 }.kbps(seconds)
}

/// The payload of one sender of a category without aggregates, in kbit/s.
fn kbps_of(phy: Phy, rules: MacRules, category: Category, seconds: u64) -> f64 {
    let mut dcf = Dcf::new(phy, without_rts(rules), Radio::default(), &positions(), 1);
    let offered = Offered::plain(1, PACKET, category);
    dcf.give(0, 0, offered);
    let mut came = 0_u64;
    while dcf.next() < seconds * 1_000_000_000 {
        let now = dcf.next();
        dcf.fire();
        while let Some(news) = dcf.next_news() {
            came += u64::from(matches!(news, DcfNews::Arrived { .. }));
        }
        if dcf.has_room_in(0, category) {
            dcf.give(now, 0, offered);
        }
    }
    (came * u64::from(PAYLOAD) * 8) as f64 / seconds as f64 / 1e3
}

/// AIFS, half a window of slots, and the exchanges for which the TXOP has room.
fn by_arithmetic(phy: Phy, category: Category, is_aggregated: bool) -> f64 {
    let turn = TurnSender { phy, category, is_aggregated, propagation_ns: HOP_NS }.data();
    let backoff = phy.aifs_ns(category) + u64::from(phy.contention(category).cw.0) * phy.slot_ns / 2;
    f64::from(turn.packets * PAYLOAD) * 8e6 / (backoff + turn.all_ns) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::zones;

    /// The model takes tries for independent of each other.
    const OF_MODEL_PERCENT: f64 = 3.0;

    /// Chance knows neither zones nor a fixed point.
    #[test]
    fn the_model_is_near_to_chance_where_it_is_apt() {
        let (packets, aggregates) = (without_rts(MacRules::Standard), in_aggregates(MacRules::Standard));
        let of_packets = PACKETS.iter().map(|cell| (packets, *cell, "packets", 200));
        // Aggregates are long: a second has few turns.
        let all: Vec<_> =
            of_packets.chain(AGGREGATES.iter().map(|cell| (aggregates, *cell, "A-MPDU", 1_000))).collect();
        for profile in ["ht20-mcs7", "vht80-2ss-mcs7"] {
            let phy = Phy::named(profile).expect("a profile");
            for (mac, cell, how, seconds) in &all {
                let (classes, radio) = (classes(phy, *mac, *cell), measured(phy, *mac, *cell, 20));
                let (model, chance) =
                    (zones::kbps(&phy, &classes), monte_carlo::kbps(&phy, &classes, *seconds));
                let name = format!("{profile}, {how}, {} of {:?}", cell.0, cell.1);
                println!("{name}: radio {radio:.0?}, model {model:.0?}, chance {chance:.0?} kbit/s");
                let off = |ours: f64, theirs: f64| ((ours / theirs - 1.0) * 100.0).abs();
                let all: f64 = chance.iter().sum();
                // If two stations contend, each meets one window and not a crowd: the model is less near.
                let is_apt = cell.0 as usize * cell.1.len() > 2;
                let [radio, by_model]: [f64; 2] = [radio.iter().sum(), model.iter().sum()];
                assert!(!is_apt || off(radio, by_model) < OF_MODEL_PERCENT, "{name}");
                assert!(off(by_model, all) < if is_apt { 2.0 } else { 10.0 }, "{name}");
                for (model, chance) in model.iter().zip(&chance).filter(|(_, part)| **part > LEAST_PART * all)
                {
                    assert!(off(*model, *chance) < if is_apt { 3.0 } else { 25.0 }, "{name}");
                }
            }
        }
    }

    #[test]
    fn aggregates_and_categories_carry_what_arithmetic_says() {
        for profile in ["ht20-mcs7", "ht40-mcs15", "vht20-1ss-mcs0", "vht40-1ss-mcs9", "vht80-2ss-mcs7"] {
            let mut found = Vec::new();
            one_hop(Phy::named(profile).expect("a profile"), MacRules::Standard, 20, &mut found);
            assert_eq!(found.len(), 5, "aggregates and four categories");
            for probe in &found {
                assert!(probe.is_passed(), "{profile}: {probe}");
            }
        }
        let mut none = Vec::new();
        one_hop(Phy::named("dsss-2mbps").expect("a profile"), MacRules::Standard, 1, &mut none);
        assert!(none.is_empty(), "stations without 802.11n have neither");
    }
}
