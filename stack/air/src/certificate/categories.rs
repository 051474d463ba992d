//! Saturated stations of one category and of several, beside the model of contention zones.
//!
//! All senders stand at one point. No station then understands one of two frames that begin together, as the model has
//! it. The sum of a crowd is held to the model. If two stations contend, each meets one window and not a crowd, and the
//! model is less near. They are held to chance, and so is each category beside another.

use hopwise_core::narrow::as_u32;
use hopwise_core::queue::Category;

use super::turn::{MOST_PACKETS, Sender};
use super::zones::{self, Class};
use super::{Probe, about, monte_carlo, without_rts};
use crate::dcf::{MacConfig, MacRules};
use crate::phy::Phy;
use crate::saturated::Saturated;

const BACKGROUND: Category = Category::Background;
const BEST_EFFORT: Category = Category::BestEffort;
const VIDEO: Category = Category::Video;
const VOICE: Category = Category::Voice;

/// Frames cross 100 m.
const PROPAGATION_NS: u64 = 333;

/// A number of stations of each of some categories.
type Cell<'a> = (u32, &'a [Category]);

const PACKETS: [Cell<'_>; 13] = [
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

const AGGREGATES: [Cell<'_>; 6] = [
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

fn in_packets(rules: MacRules) -> MacConfig {
    without_rts(rules)
}

/// Packets have no lifetime: in a crowd many a one would end in the second try.
fn in_aggregates(rules: MacRules) -> MacConfig {
    MacConfig { ampdu: Some(MOST_PACKETS), lifetime_ns: None, ..without_rts(rules) }
}

/// Packet by packet.
pub(super) fn packets(phy: Phy, rules: MacRules, seconds: u64, probes: &mut Vec<Probe>) {
    if phy.is_ht() {
        PACKETS.iter().for_each(|cell| probe(phy, in_packets(rules), *cell, seconds, probes));
    }
}

/// In aggregates.
pub(super) fn aggregates(phy: Phy, rules: MacRules, seconds: u64, probes: &mut Vec<Probe>) {
    if phy.is_ht() {
        AGGREGATES.iter().for_each(|cell| probe(phy, in_aggregates(rules), *cell, seconds, probes));
    }
}

/// The figures of chance are of so many times as long a time.
const LONGER: u64 = 20;
/// The model takes tries for independent of each other.
const OF_MODEL_PERCENT: f64 = 3.0;
/// Chance has no such error: the scatter of a minute is left.
const OF_CHANCE_PERCENT: f64 = 1.0;
const OF_ONE_PERCENT: f64 = 4.0;
/// A category that carries a smaller part than this has few turns in a minute, and its figure scatters.
const LEAST_PART: f64 = 0.1;

/// Returns whether the model knows all that matters: there is a crowd.
fn is_apt((stations, categories): Cell<'_>) -> bool {
    stations as usize * categories.len() > 2
}

/// All stations together beside the model, if it is apt, and each category beside chance.
fn probe(phy: Phy, mac: MacConfig, cell: Cell<'_>, seconds: u64, probes: &mut Vec<Probe>) {
    let (stations, categories) = cell;
    let classes = classes(phy, mac, cell);
    let how = if mac.ampdu.is_some() { "A-MPDU, " } else { "" };
    let names: Vec<_> = categories.iter().map(|it| format!("{stations} {}", name_of(*it))).collect();
    let measured = measured(phy, mac, cell, seconds);
    let by_chance = || monte_carlo::kbps(&phy, &classes, LONGER * seconds);
    let is_apt = is_apt(cell);
    let (expected, percent) = match is_apt {
        true => (zones::kbps(&phy, &classes), OF_MODEL_PERCENT),
        false => (by_chance(), OF_CHANCE_PERCENT),
    };
    let all: f64 = expected.iter().sum();
    let name = format!("{how}{}", names.join(" and "));
    probes.push(about(name, "kbit/s", measured.iter().sum(), all, percent));
    if categories.len() < 2 {
        return;
    }
    let expected = if is_apt { by_chance() } else { expected };
    for (nth, expected) in expected.iter().enumerate().filter(|(_, expected)| **expected > LEAST_PART * all) {
        let name = format!("{how}{} beside {}", names[nth], names[1 - nth]);
        probes.push(about(name, "kbit/s", measured[nth], *expected, OF_ONE_PERCENT));
    }
}

/// The payload that the stations of each category carry together, in kbit/s.
fn measured(phy: Phy, mac: MacConfig, (stations, categories): Cell<'_>, seconds: u64) -> Vec<f64> {
    let count = stations as usize;
    let of_stations: Vec<Category> = categories.iter().flat_map(|it| vec![*it; count]).collect();
    let crowd = Saturated::crowd(phy, mac, as_u32(of_stations.len()), 1);
    let each = crowd.kbps_each_in(&of_stations, seconds);
    each.chunks(count).map(|of_one| of_one.iter().sum()).collect()
}

fn classes(phy: Phy, mac: MacConfig, (stations, categories): Cell<'_>) -> Vec<Class> {
    let class = |category: &Category| {
        let is_aggregated = mac.ampdu.is_some() && *category != VOICE;
        let sender = Sender { phy, category: *category, is_aggregated, propagation_ns: PROPAGATION_NS };
        Class { sender, stations, tries: mac.short_retries }
    };
    categories.iter().map(class).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chance knows neither zones nor a fixed point.
    #[test]
    fn the_model_is_near_to_chance_where_it_is_apt() {
        let (packets, aggregates) = (in_packets(MacRules::Standard), in_aggregates(MacRules::Standard));
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
                let is_apt = is_apt(*cell);
                assert!(off(model.iter().sum(), all) < if is_apt { 2.0 } else { 10.0 }, "{name}");
                for (model, chance) in model.iter().zip(&chance).filter(|(_, part)| **part > LEAST_PART * all)
                {
                    assert!(off(*model, *chance) < if is_apt { 3.0 } else { 25.0 }, "{name}");
                }
            }
        }
    }
}
