use proptest::prelude::*;

use super::*;

const NOW: Instant = Instant::from_secs(10_000);

fn secrets() -> Secrets {
    Secrets::new(*b"a key that only the test can see")
}

fn flow() -> CookieFlow {
    let at = |text: &str| text.parse().unwrap();
    CookieFlow { local: at("10.0.0.1:80"), remote: at("10.0.0.2:5000"), peer_isn: Seq(77) }
}

fn period(number: u64) -> Instant {
    Instant(number * PERIOD_NS)
}

#[test]
fn a_cookie_brings_back_the_greatest_mss_that_is_not_above_the_peers() {
    let cases = [(28, 28), (255, 28), (256, 256), (536, 536), (1459, 1440), (1460, 1460), (9000, 1460)];
    for (mss, class) in cases {
        let cookie = flow().encode(&secrets(), NOW, mss);
        assert_eq!(flow().decode(&secrets(), NOW, cookie), Some(class), "{mss}");
    }
    assert_eq!(flow().decode(&secrets(), NOW, flow().encode(&secrets(), NOW, 0)), Some(28));
    assert!(COOKIE_MSS.is_sorted());
}

#[test]
fn a_cookie_is_good_for_its_period_and_the_next() {
    for number in [1, 31, 32, 33, 1000] {
        let cookie = flow().encode(&secrets(), period(number), 1460);
        let decode = |now| flow().decode(&secrets(), now, cookie);
        assert_eq!(decode(period(number)), Some(1460));
        assert_eq!(decode(Instant(period(number + 2).0 - 1)), Some(1460));
        assert_eq!(decode(period(number + 2)), None);
        assert_eq!(decode(period(number + 32)), None, "not even when its five bits come again");
        assert_eq!(decode(period(number - 1)), None, "nor before it was made");
    }
}

#[test]
fn in_the_first_period_there_was_none_before() {
    let cookie = flow().encode(&secrets(), Instant::ZERO, 536);
    assert_eq!(flow().decode(&secrets(), Instant::ZERO, cookie), Some(536));
    let (top, rest) = (cookie.0 & 0xff00_0000, cookie.0 & 0x00ff_ffff);
    let previous = Seq(top.wrapping_sub(8 << 24) | rest);
    assert_eq!(flow().decode(&secrets(), Instant::ZERO, previous), None);
}

#[test]
fn a_cookie_is_good_for_its_flow_and_key_only() {
    let cookie = flow().encode(&secrets(), NOW, 1460);
    let at = |text: &str| text.parse().unwrap();
    let others = [
        CookieFlow { local: at("10.0.0.3:80"), ..flow() },
        CookieFlow { local: at("10.0.0.1:81"), ..flow() },
        CookieFlow { remote: at("10.0.0.3:5000"), ..flow() },
        CookieFlow { remote: at("10.0.0.2:5001"), ..flow() },
        CookieFlow { peer_isn: Seq(78), ..flow() },
        CookieFlow { local: flow().remote, remote: flow().local, ..flow() },
    ];
    for other in others {
        assert_eq!(other.decode(&secrets(), NOW, cookie), None, "{other:?}");
    }
    // Enough of them that some have the same mask.
    let taken = (78..4096)
        .map(Seq)
        .filter(|&peer_isn| CookieFlow { peer_isn, ..flow() }.decode(&secrets(), NOW, cookie).is_some());
    assert_eq!(taken.count(), 0);
    assert_eq!(flow().decode(&Secrets::new([1; 32]), NOW, cookie), None);
}

#[test]
fn a_cookie_with_one_bit_changed_is_none() {
    let cookie = flow().encode(&secrets(), NOW, 1460);
    for bit in 0..32 {
        assert_eq!(flow().decode(&secrets(), NOW, Seq(cookie.0 ^ 1 << bit)), None, "{bit}");
    }
}

#[test]
fn a_million_guesses_find_no_cookie() {
    // An odd step visits the number space evenly. One in 2^28 would pass.
    let secrets = secrets();
    let found = (0..1u32 << 20)
        .map(|n| Seq(n.wrapping_mul(0x9e37_79b1)))
        .filter(|&guess| flow().decode(&secrets, NOW, guess).is_some())
        .count();
    assert_eq!(found, 0);
}

#[test]
fn guesses_that_know_everything_but_the_24_bits_find_no_cookie_either() {
    let secrets = secrets();
    let cookie = flow().encode(&secrets, NOW, 1460);
    let found = (1..1u32 << 18)
        .map(|n| Seq(cookie.0 & 0xff00_0000 | cookie.0.wrapping_add(n * 61) & 0x00ff_ffff))
        .filter(|&guess| flow().decode(&secrets, NOW, guess).is_some())
        .count();
    assert_eq!(found, 0);
}

#[test]
fn age_and_mss_do_not_show_in_the_number() {
    let tops = (0..64).map(|port| {
        let remote = SocketAddr::new(flow().remote.ip(), 5000 + port);
        CookieFlow { remote, ..flow() }.encode(&secrets(), NOW, 1460).0 >> 24
    });
    let different: std::collections::BTreeSet<u32> = tops.collect();
    assert!(different.len() > 40, "{} different of 64", different.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn every_cookie_is_taken_back(
        key: [u8; 32],
        now_ns in 0u64..1 << 62,
        age_ns in 0..PERIOD_NS,
        mss: u16,
        isn: u32,
        remote: (u128, u16),
    ) {
        let secrets = Secrets::new(key);
        let remote = SocketAddr::new(std::net::IpAddr::V6(remote.0.into()), remote.1);
        let flow = CookieFlow { remote, peer_isn: Seq(isn), ..flow() };
        let cookie = flow.encode(&secrets, Instant(now_ns), mss);
        let got = flow.decode(&secrets, Instant(now_ns + age_ns), cookie);
        prop_assert!(got.is_some_and(|got| got <= mss.max(28)));
    }

    #[test]
    fn the_timestamp_keeps_the_options_and_never_runs_ahead(
        clock: u32,
        step in 0u32..1 << 20,
        shift in proptest::option::of(0u8..=14),
        sack: bool,
        ecn: bool,
    ) {
        let options = CookieOptions { wscale: shift, sack, ecn };
        let value = cookie_timestamp(clock, options);
        prop_assert_eq!(CookieOptions::decode(value), options);
        prop_assert!(clock.wrapping_sub(value) < 64);
        // Sent later, it does not go back.
        let again = cookie_timestamp(clock.wrapping_add(step), options);
        prop_assert!(again.wrapping_sub(value) <= step + 63);
    }

    #[test]
    fn no_shift_above_14_comes_back(echo: u32, offered: u8) {
        prop_assert!(CookieOptions::decode(echo).wscale.is_none_or(|shift| shift <= 14));
        let options = CookieOptions { wscale: Some(offered), sack: false, ecn: false };
        let back = CookieOptions::decode(cookie_timestamp(echo, options));
        prop_assert_eq!(back.wscale, Some(offered.min(14)));
    }
}
