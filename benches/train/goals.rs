//! Chains of nodes 200 m apart with goals: the least gains over the better of `dca` and `tda`.

use crate::measure::{self, Cell};
use crate::row::Row;

const PROFILES: [&str; 2] = ["dsss-2mbps", "dsss-11mbps"];
/// Our own arm, and the arms that it must beat.
const ARMS: &[&str] = &["train", "dca", "tda"];
const HOPS: [u32; 10] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 15];

/// Least gain in percent under ns-2's MAC rules. Between 4 and 8 hops the goals of 6 hold, if any do.
fn ns2_goal(profile: &str, flows: u32, hops: u32) -> Option<f64> {
    let is_slow = profile == "dsss-2mbps";
    let of = |slow: f64, fast: f64| Some(if is_slow { slow } else { fast });
    match (flows, hops) {
        (_, 1..=3) => Some(-1.0),
        (_, 5) => None,
        (1, 4) => of(1.0, 3.0),
        (1, 6) => Some(20.0),
        (1, _) => of(30.0, 35.0),
        (2, 4) => Some(2.0),
        (2, 6) => of(3.0, 8.0),
        (2, 8) => of(4.0, 10.0),
        (2, _) => Some(10.0),
        (_, 4) => Some(5.0),
        _ => Some(6.0),
    }
}

pub(crate) fn under_ns2() -> Vec<Row> {
    let mut wanted = Vec::new();
    for profile in PROFILES {
        for flows in [1, 2, 5] {
            for hops in HOPS {
                if let Some(percent) = ns2_goal(profile, flows, hops) {
                    wanted.push((Chain { rules: "ns2", profile, flows, hops, more: None }, percent));
                }
            }
        }
    }
    for (loss, percent_at_long) in [("1%", 15.0), ("5%", 10.0)] {
        for hops in [1, 2, 4, 6, 8, 12] {
            let percent = if matches!(hops, 6 | 8) { percent_at_long } else { -2.0 };
            let more = Some(("channel.loss", loss));
            wanted.push((Chain { rules: "ns2", profile: PROFILES[0], flows: 1, hops, more }, percent));
        }
    }
    rows(&wanted)
}

/// One flow: at most 1 % less up to 4 hops. At 8 and 12 hops 15 % more at 2 Mbit/s, and 10 % more at higher rates.
pub(crate) fn under_standard() -> Vec<Row> {
    let mut wanted = Vec::new();
    for profile in ["dsss-2mbps", "dsss-11mbps", "ofdm-6mbps", "ofdm-24mbps", "ofdm-54mbps"] {
        for hops in [1, 2, 3, 4, 8, 12] {
            let percent = match hops {
                1..=4 => -1.0,
                _ if profile == PROFILES[0] => 15.0,
                _ => 10.0,
            };
            wanted.push((Chain { rules: "standard", profile, flows: 1, hops, more: None }, percent));
        }
    }
    rows(&wanted)
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    pub(crate) rules: &'static str,
    pub(crate) profile: &'static str,
    pub(crate) flows: u32,
    pub(crate) hops: u32,
    /// One more setting.
    pub(crate) more: Option<(&'static str, &'static str)>,
}

impl Chain {
    pub(crate) fn sets(&self) -> Vec<String> {
        let mut sets = vec![
            format!("mac.rules={}", self.rules),
            format!("radio.profile={}", self.profile),
            format!("traffic.0.flows={}", self.flows),
            format!("topology.hops={}", self.hops),
        ];
        sets.extend(self.more.map(|(path, value)| format!("{path}={value}")));
        sets
    }

    pub(crate) fn name(&self) -> String {
        let flows = if self.flows == 1 { String::new() } else { format!(" {} flows", self.flows) };
        let more = self.more.map_or(String::new(), |(_, value)| format!(" loss {value}"));
        format!("{} {} {} hops{flows}{more}", self.rules, self.profile, self.hops)
    }
}

/// The rows of chains, each with the least gain in percent.
fn rows(wanted: &[(Chain, f64)]) -> Vec<Row> {
    let cells: Vec<_> = wanted.iter().map(|(chain, _)| Cell { sets: chain.sets(), arms: ARMS }).collect();
    let measured = measure::all(&cells);
    let row = |((chain, percent), means): (&(Chain, f64), &Vec<measure::Mean>)| {
        let (peer, theirs) = measure::best(&ARMS[1..], &means[1..]);
        Row {
            name: chain.name(),
            unit: "kbit/s",
            ours: means[0].kbps,
            peer,
            theirs: theirs.kbps,
            goal: Some(1.0 + percent / 100.0),
            jain: (chain.flows > 1).then_some(means[0].jain),
        }
        .printed()
    };
    wanted.iter().zip(&measured).map(row).collect()
}

/// The goodput of datagrams at the best of these intervals, in microseconds: `train` must come near it.
pub(crate) fn beside_datagrams() -> Vec<Row> {
    let mut rows = Vec::new();
    for (profile, intervals) in [
        ("dsss-2mbps", [5_900, 6_100, 11_800, 12_200, 17_600, 18_000, 23_400, 24_000, 24_600, 25_200]),
        ("dsss-11mbps", [2_310, 2_400, 4_620, 4_800, 6_950, 7_200, 9_500, 9_800, 10_100, 10_400]),
    ] {
        for hops in HOPS {
            let sets = |more: &[String]| {
                let mut sets = vec![
                    "mac.rules=ns2".to_owned(),
                    format!("radio.profile={profile}"),
                    format!("topology.hops={hops}"),
                ];
                sets.extend_from_slice(more);
                sets
            };
            // The program of datagrams uses no agent.
            let paced = |every: &u32| Cell {
                sets: sets(&["traffic.0.kind=cbr".to_owned(), format!("traffic.0.every={every}us")]),
                arms: &["train"],
            };
            let mut cells: Vec<_> = intervals.iter().map(paced).collect();
            cells.push(Cell { sets: sets(&[]), arms: &["train"] });
            let goal = Some(if hops <= 3 { 0.97 } else { 0.83 });
            rows.push(of_the_best(&format!("ns2 {profile} {hops} hops, of the best gap"), &cells, goal));
        }
    }
    rows
}

/// The goodput of datagrams without pauses at the best of these intervals, in microseconds. A small datagram comes back
/// as often as TCP has to acknowledge. Above 1 the pause pays.
pub(crate) fn beside_no_pauses() -> Vec<Row> {
    let mut rows = Vec::new();
    for (rules, profile, intervals) in [
        ("standard", "dsss-2mbps", [17_500, 18_700, 19_800, 21_000, 22_200, 23_300, 24_500]),
        ("standard", "dsss-11mbps", [7_400, 7_900, 8_300, 8_800, 9_200, 9_700, 10_200]),
        ("standard", "ofdm-6mbps", [5_900, 6_200, 6_600, 7_000, 7_400, 7_800, 8_200]),
        ("ns2", "dsss-2mbps", [23_900, 24_500, 25_700, 27_400, 29_200, 32_000, 35_000]),
    ] {
        for hops in [8, 12, 15] {
            let chain = Chain { rules, profile, flows: 1, hops, more: None };
            let paced = |every: &u32| {
                let mut sets = chain.sets();
                sets.push(format!(
                    "traffic=[{{ from: first, to: last, kind: cbr, segment_bytes: 1000, every: {every}us }}, \
                     {{ from: last, to: first, kind: cbr, segment_bytes: 12, every: 485ms, background: true }}]"
                ));
                Cell { sets, arms: &["train"] }
            };
            let mut cells: Vec<_> = intervals.iter().map(paced).collect();
            cells.push(Cell { sets: chain.sets(), arms: &["train"] });
            rows.push(of_the_best(&format!("{}, of no pauses", chain.name()), &cells, None));
        }
    }
    rows
}

/// Compares our cell, the last one, with the best of the cells that carry datagrams.
fn of_the_best(name: &str, cells: &[Cell], goal: Option<f64>) -> Row {
    let carried: Vec<f64> = measure::all(cells).iter().map(|means| means[0].kbps).collect();
    let (ours, datagrams) = carried.split_last().expect("a cell of our own");
    let theirs = datagrams.iter().copied().fold(0.0, f64::max);
    let name = name.to_owned();
    Row { name, unit: "kbit/s", ours: *ours, peer: "datagrams", theirs, goal, jain: None }.printed()
}
