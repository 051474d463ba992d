//! Stations over links that differ from frame to frame or from each other.

use super::tests::SECOND;
use super::*;
use crate::channel::LinkSentence;

fn changed(text: &str) -> Channel {
    let node = |name: &str| name.strip_prefix('n')?.parse().ok();
    match LinkSentence::parse(text, &node).expect("a sentence") {
        LinkSentence::Outage(outage) => Channel { outages: vec![outage], ..Channel::default() },
        LinkSentence::Change(change) => Channel { links: vec![change], ..Channel::default() },
    }
}

/// The packets of 1,000 B that station 1 received from station 0, second by second. Station 0 always has some.
fn carried(channel: &Channel, profile: &str, spacing_m: f64, seconds: u64) -> Vec<u32> {
    carried_with(RateControl::Fixed, channel, profile, spacing_m, seconds)
}

fn carried_with(
    rate: RateControl,
    channel: &Channel,
    profile: &str,
    spacing_m: f64,
    seconds: u64,
) -> Vec<u32> {
    let positions = [Some(Position::default()), Some(Position { x: spacing_m, y: 0.0 })];
    let mac = MacConfig { rts_threshold: None, rate, ..MacConfig::default() };
    let phy = Phy::named(profile).expect("a profile");
    let over = |noise_w| Radio::default().over_noise(noise_w, phy.basic);
    let radio = channel.noise_w.map_or(Radio::default(), over);
    let mut dcf = Dcf::with_channel(phy, mac, radio, channel, &positions, 1);
    dcf.offer(0, 0, 1, 1_000);
    let mut each = vec![0; seconds as usize];
    dcf.play(seconds * SECOND, |dcf, now, news| match news {
        DcfNews::Arrived { .. } => each[(now / SECOND) as usize] += 1,
        DcfNews::Done { station, .. } => dcf.offer(now, station, 1, 1_000),
        DcfNews::Kept { .. } | DcfNews::HasRoom { .. } => {}
    });
    each
}

#[test]
fn an_outage_lasts_as_long_as_it_says() {
    let each = carried(&changed("link n0-n1 down from 2 s to 4 s"), "dsss-2mbps", 200.0, 6);
    assert!(each[0] > 150 && each[1] > 150 && each[4] > 140 && each[5] > 150, "{each:?}");
    assert!(each[2] <= 1 && each[3] == 0, "{each:?}");
}

#[test]
fn lost_acks_bring_frames_again_and_none_is_passed_up_twice() {
    let total = |channel: &Channel| carried(channel, "dsss-2mbps", 200.0, 5).iter().sum::<u32>();
    let clean = total(&Channel::default());
    for text in ["link n0->n1 loses 30%", "link n1->n0 loses 30%"] {
        let lossy = total(&changed(text));
        assert!(lossy > clean / 2 && lossy < clean * 9 / 10, "{text}: {lossy} of {clean}");
    }
    assert_eq!(total(&changed("link n1->n2 loses 30%")), clean);
    assert_eq!(total(&changed("link n0->n1 loses 100%")), 0);
}

#[test]
fn a_link_may_be_weaker_in_one_direction() {
    let channel = changed("link n0->n1 gains -20 dB");
    let positions = [Some(Position::default()), Some(Position { x: 200.0, y: 0.0 })];
    let near = crate::medium::neighbours(&Radio::default(), &channel, &positions, 1);
    assert_eq!(near, [vec![], vec![0]]);
    assert_eq!(carried(&channel, "dsss-2mbps", 200.0, 2), [0, 0]);
}

#[test]
fn a_gain_reaches_beyond_the_usual_range() {
    assert!(carried(&changed("link n0-n1 gains 40 dB"), "dsss-2mbps", 1_500.0, 1)[0] > 150);
    assert_eq!(carried(&Channel::default(), "dsss-2mbps", 1_500.0, 1), [0]);
}

#[test]
fn curves_let_slow_rates_reach_farther_than_fast_ones() {
    let channel = Channel { noise_w: Some(4e-13), ..Channel::default() };
    let reaches = |profile: &str| {
        let carries = |spacing_m: &f64| carried(&channel, profile, *spacing_m, 1)[0] > 30;
        (1..40).map(|n| f64::from(n) * 50.0).take_while(carries).last().unwrap_or(0.0)
    };
    let [slow, middle, fast] = ["ofdm-6mbps", "ofdm-24mbps", "ofdm-54mbps"].map(reaches);
    assert!(slow > middle && middle > fast && fast > 0.0, "{slow} {middle} {fast}");
    let phy = Phy::named("ofdm-54mbps").expect("a profile");
    let radio = Radio::default().over_noise(4e-13, phy.data);
    let neighbours = |x| {
        let positions = [Some(Position::default()), Some(Position { x, y: 0.0 })];
        crate::medium::neighbours(&radio, &channel, &positions, 1)[0].len()
    };
    assert_eq!((neighbours(slow), neighbours(fast - 100.0)), (0, 1));
}

#[test]
fn a_rate_that_falls_back_reaches_as_far_as_slow_ones_and_is_as_fast_as_fast_ones() {
    let channel = Channel { noise_w: Some(4e-13), ..Channel::default() };
    let total = |rate, profile, spacing_m| -> u32 {
        carried_with(rate, &channel, profile, spacing_m, 2).iter().sum()
    };
    let fixed = |profile, spacing_m| total(RateControl::Fixed, profile, spacing_m);
    let mut saved = 0;
    for spacing_m in (1..24).map(|n| f64::from(n) * 50.0) {
        let arf = total(RateControl::Arf, "ofdm-54mbps", spacing_m);
        let best = ["ofdm-54mbps", "ofdm-36mbps", "ofdm-18mbps", "ofdm-6mbps"]
            .map(|profile| fixed(profile, spacing_m))
            .into_iter()
            .max();
        assert!(arf >= best.unwrap_or(0) * 7 / 10, "{spacing_m} m: {arf} of {best:?}");
        saved += u32::from(fixed("ofdm-54mbps", spacing_m) == 0 && arf > 100);
    }
    assert!(saved >= 3, "{saved}");
}

#[test]
fn stations_at_the_same_place_talk_to_each_other() {
    for rules in [MacRules::Ns2, MacRules::Standard] {
        let positions = [Some(Position::default()); 3];
        let mac = MacConfig { rules, ..MacConfig::default() };
        let mut dcf =
            Dcf::new(Phy::named("dsss-2mbps").expect("a profile"), mac, Radio::default(), &positions, 1);
        let mut arrived = [0; 3];
        (0..3).for_each(|n| dcf.offer(0, n, (n + 1) % 3, 500));
        dcf.play(2 * SECOND, |dcf, now, news| match news {
            DcfNews::Arrived { to, .. } => arrived[to as usize] += 1,
            DcfNews::Done { station, .. } => dcf.offer(now, station, (station + 1) % 3, 500),
            DcfNews::Kept { .. } | DcfNews::HasRoom { .. } => {}
        });
        assert!(arrived.iter().all(|n| *n > 80), "{arrived:?}");
    }
}
