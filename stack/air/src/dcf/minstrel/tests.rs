use std::f64::consts::{PI, SQRT_2};

use super::*;
use crate::phy::GuardInterval;
use crate::random::Purpose;

const MS: u64 = 1_000_000;

fn new(profile: &str) -> Minstrel {
    let phy = Phy::named(profile).expect("a profile");
    Minstrel::new(1, &phy, 0, NumberStream::new(1, 0, Purpose::Rates))
}

/// A frame of ten packets each millisecond, whose tries end with the first that brings a packet through. `share` says
/// how many of ten come through at a rate. Returns the rates with their tries.
fn run(minstrel: &mut Minstrel, ms: std::ops::Range<u64>, share: impl Fn(Rate) -> u32) -> Vec<(Rate, u8)> {
    let mut sent = Vec::new();
    for now in ms.map(|ms| ms * MS) {
        minstrel.begin(now);
        let mut tries = 0;
        while let Some(RateChoice { rate, .. }) = minstrel.after(tries) {
            sent.push((rate, tries));
            minstrel.learn(now, rate, (10, share(rate)));
            if share(rate) > 0 {
                break;
            }
            tries += 1;
        }
    }
    sent
}

/// The part of the frames whose first try was at the rate of this name.
fn part(sent: &[(Rate, u8)], name: &str) -> f64 {
    let first = || sent.iter().filter(|(_, tries)| *tries == 0);
    first().filter(|(rate, _)| rate.to_string() == name).count() as f64 / first().count() as f64
}

fn mcs(rate: Rate) -> u32 {
    let mcs = rate.to_string();
    mcs.trim_start_matches("MCS ").split(' ').next().and_then(|mcs| mcs.parse().ok()).expect("an MCS")
}

#[test]
fn the_average_is_a_low_pass_filter_with_a_period_of_16() {
    let a = (-PI * SQRT_2 / 16.0).exp();
    let wanted = [2.0 * a * (SQRT_2 * 2.0 * PI / 16.0).cos(), -a * a];
    for (found, wanted) in [OLD, OLDER].into_iter().zip(wanted) {
        assert!((found as f64 / ONE as f64 - wanted).abs() < 0.001, "{found} and not {wanted}");
    }
    let (mut share, mut before) = (0, 0);
    filter(&mut share, &mut before, ONE);
    assert_eq!(share, ONE, "the first value is the average");
    let after: Vec<_> = (0..12)
        .map(|_| {
            filter(&mut share, &mut before, 0);
            share
        })
        .collect();
    assert!(after[0] > ONE * 6 / 10 && after[0] < ONE * 8 / 10 && after[11] < ONE / 10, "{after:?}");
}

/// 20 MHz has no MCS 9: where all of 80 MHz is lost, 40 MHz is next.
#[test]
fn rates_of_802_11ac_are_found_by_their_width_and_their_streams() {
    for (fastest_mbps, name) in [
        (1_000, "VHT-MCS 9 x 2 of 80 MHz"),
        (600, "VHT-MCS 7 x 2 of 80 MHz"),
        (380, "VHT-MCS 9 x 2 of 40 MHz"),
        (160, "VHT-MCS 8 x 2 of 20 MHz"),
    ] {
        let mut minstrel = new("vht80-2ss-mcs9");
        let comes =
            |rate: Rate| rate.bits_per_second <= fastest_mbps * 1_000_000 && !is_of_a_wider(rate, name);
        let sent = run(&mut minstrel, 0..4_000, |rate| if comes(rate) { 10 } else { 0 });
        let late = &sent[sent.len() / 2..];
        assert!(part(late, name) > 0.9, "{name}: {:?}", late.last());
    }
}

/// Returns whether a rate has more MHz than the one of this name.
fn is_of_a_wider(rate: Rate, name: &str) -> bool {
    let mhz = |name: &str| name.split(' ').rev().nth(1).and_then(|mhz| mhz.parse::<u32>().ok());
    mhz(&rate.to_string()) > mhz(name)
}

#[test]
fn it_finds_the_fastest_rate_that_comes_through() {
    for fastest in 0..8 {
        let mut minstrel = new("ht20-mcs7");
        let sent = run(&mut minstrel, 0..3_000, |rate| if mcs(rate) <= fastest { 10 } else { 0 });
        let late = &sent[sent.len() / 2..];
        assert!(part(late, &format!("MCS {fastest}")) > 0.9, "{fastest}: {late:?}");
        let tried = sent.iter().any(|(rate, _)| mcs(*rate) > fastest);
        assert!(tried || fastest == 7, "faster ones are tried");
    }
}

#[test]
fn a_slower_rate_that_carries_more_is_better() {
    let mut minstrel = new("ht20-mcs7");
    // Half of MCS 7's packets are less than all of MCS 4's.
    let sent = run(&mut minstrel, 0..3_000, |rate| match mcs(rate) {
        5.. => 5,
        _ => 10,
    });
    let late = &sent[sent.len() / 2..];
    assert!(part(late, "MCS 4") > 0.85, "{}", part(late, "MCS 4"));
}

#[test]
fn it_follows_a_link_that_gets_worse_and_better() {
    let mut minstrel = new("ht20-mcs7");
    run(&mut minstrel, 0..2_000, |_| 10);
    assert_eq!(minstrel.after(0).map(|choice| mcs(choice.rate)), Some(7));
    run(&mut minstrel, 2_000..3_000, |rate| if mcs(rate) <= 2 { 10 } else { 0 });
    assert_eq!(minstrel.chain[0].candidate, 2);
    run(&mut minstrel, 3_000..5_000, |_| 10);
    assert_eq!(minstrel.chain[0].candidate, 7);
}

#[test]
fn two_streams_that_die_at_once_are_left_at_once() {
    let mut minstrel = new("ht20-mcs15");
    run(&mut minstrel, 0..2_000, |_| 10);
    assert_eq!(mcs(minstrel.candidates[minstrel.best[0]].rate), 15);
    // Ten packets in each of four frames are enough.
    minstrel.update_at = 10_000 * MS;
    let best = &mut minstrel.candidates[minstrel.best[0]];
    (best.sent, best.came) = (0, 0);
    let rate = best.rate;
    (0..4).for_each(|_| minstrel.learn(2_000 * MS, rate, (10, 0)));
    assert!(mcs(minstrel.candidates[minstrel.best[0]].rate) < 8);
}

#[test]
fn a_chain_ends_with_what_is_sure_and_later_rates_are_announced() {
    let mut minstrel = new("ht20-mcs7");
    run(&mut minstrel, 0..3_000, |rate| match mcs(rate) {
        6.. => 0,
        5 => 6,
        _ => 10,
    });
    minstrel.probe = None;
    let chain: Vec<_> = (0..).map_while(|tries| minstrel.after(tries)).collect();
    assert!(chain.len() >= 6 && chain.len() <= 3 * usize::from(MOST_TRIES), "{}", chain.len());
    let first = minstrel.chain[0].tries.into();
    assert!(chain[..first].iter().all(|choice| !choice.is_protected));
    assert!(chain[first..].iter().all(|choice| choice.is_protected));
    let last = chain.last().map(|choice| mcs(choice.rate));
    assert!(last.is_some_and(|last| last <= 4), "{last:?}");
    assert!(minstrel.after(200).is_none());
    // A try of another rate is one frame.
    minstrel.probe = Some(0);
    let probed: Vec<_> = (0..2).filter_map(|tries| minstrel.after(tries)).map(|c| mcs(c.rate)).collect();
    assert_eq!(probed[0], 0);
    assert_ne!(probed[1], 0);
}

#[test]
fn slow_frames_have_fewer_tries() {
    let mut minstrel = new("ht20-mcs7");
    run(&mut minstrel, 0..2_000, |_| 10);
    let tries: Vec<_> = [0, 3, 7].map(|index| minstrel.tries(index, false)).into();
    assert!(tries[0] == 2 && tries[0] <= tries[1] && tries[1] <= tries[2] && tries[2] >= 3, "{tries:?}");
    minstrel.candidates[7].share = 0;
    assert_eq!(minstrel.tries(7, false), 2);
}

#[test]
fn rates_are_tried_every_20_ms_and_cost_little() {
    let mut minstrel = new("ht20-mcs7");
    run(&mut minstrel, 0..2_000, |rate| if mcs(rate) <= 3 { 10 } else { 0 });
    let sent = run(&mut minstrel, 2_000..4_000, |rate| if mcs(rate) <= 3 { 10 } else { 0 });
    let others = sent.iter().filter(|(rate, _)| mcs(*rate) > 3).count();
    assert!((20..=130).contains(&others), "{others}");
}

#[test]
fn groups_are_those_of_the_profile() {
    let groups = |profile: &str, guard| {
        let phy = Phy::named(profile).expect("a profile").with_guard(guard);
        let names = |group: &Vec<Rate>| format!("{} to {}", group[0], group[group.len() - 1]);
        phy.rate_groups().iter().map(names).collect::<Vec<_>>()
    };
    assert_eq!(groups("ht20-mcs5", GuardInterval::Long), ["MCS 0 to MCS 5"]);
    assert_eq!(groups("ht20-mcs15", GuardInterval::Long), ["MCS 0 to MCS 7", "MCS 8 to MCS 15"]);
    assert_eq!(
        groups("ht40-mcs7", GuardInterval::Short),
        [
            "MCS 0 to MCS 7",
            "MCS 0, short to MCS 7, short",
            "MCS 0 of 40 MHz to MCS 7 of 40 MHz",
            "MCS 0 of 40 MHz, short to MCS 7 of 40 MHz, short",
        ]
    );
    assert_eq!(groups("dsss-11mbps", GuardInterval::Long), ["1 Mbit/s to 11 Mbit/s"]);
}
