use std::net::{Ipv4Addr, SocketAddr};

use proptest::prelude::*;

use super::*;
use crate::Seq;

fn secrets() -> Secrets {
    Secrets::new([7; 32])
}

fn syn(from: u32) -> CookieFlow {
    let remote = SocketAddr::from((Ipv4Addr::from_bits(0x0a80_0000 + from), 5000));
    CookieFlow { local: SocketAddr::from(([10, 7, 0, 1], 80)), remote, peer_isn: Seq(from) }
}

fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

#[test]
fn who_comes_again_is_answered_and_a_stranger_is_not() {
    let (mut rate, secrets) = (CookieRate::new(1), secrets());
    let mut take = |at, from| rate.take(ms(at), &secrets, &syn(from)) == Taken::Granted;
    assert!(take(0, 1), "there was a token");
    assert!(!take(1, 2), "a stranger without one");
    assert!(!take(2, 3), "another");
    assert!(take(3, 2), "who comes again");
    assert!(!take(4, 3), "those have a rate, too");
    assert!(take(1004, 4), "a second brings a token to a stranger,");
    assert!(take(1005, 3), "and one to who comes again");
}

#[test]
fn a_repetition_that_comes_after_seconds_is_known_and_after_many_is_not() {
    for (apart, is_known) in [(1_000, true), (3_999, true), (8_001, false), (100_000, false)] {
        let (mut rate, secrets) = (CookieRate::new(1), secrets());
        let mut refused = |at, from| rate.take(ms(at), &secrets, &syn(from)) == Taken::Refused;
        assert!(!refused(0, 1));
        assert!(refused(1, 2));
        assert!(!refused(apart, 3), "the token that has come");
        assert_eq!(refused(apart + 1, 2), !is_known, "{apart} ms later");
    }
}

/// Otherwise one repeated SYN would take every token of other repeaters.
#[test]
fn who_repeats_itself_at_once_is_answered_once() {
    let (mut rate, secrets) = (CookieRate::new(1_000), secrets());
    let mut take = |ms, from| rate.take(Instant::from_millis(ms), &secrets, &syn(from)) == Taken::Granted;
    while take(0, 1) {}
    let answered = (0..200).filter(|_| take(0, 1)).count();
    assert_eq!(answered, 1, "it was refused, has come again, and goes on");
    assert!(!take(0, 2) && take(0, 2), "there are tokens for others");
    while take(1_000, 3) {}
    assert!(take(1_000, 1), "a second later it may be answered again");
}

/// All repeated SYNs are answered a second later, although few of the flood's are.
#[test]
fn a_flood_hides_nobody_who_comes_again() {
    const A_SECOND: usize = 100_000;
    let (mut rate, secrets) = (CookieRate::new(25_000), secrets());
    let (mut answered, mut came_again) = (Vec::new(), 0);
    for number in 0..6 * A_SECOND {
        let now = Instant(number as u64 * 10_000);
        let mut take = |number| rate.take(now, &secrets, &syn(number as u32)) == Taken::Granted;
        answered.push(take(number));
        let before = number.checked_sub(A_SECOND).filter(|before| before % 101 == 0 && !answered[*before]);
        came_again += usize::from(before.is_some());
        assert!(before.is_none_or(take), "{number}");
    }
    assert!(came_again > 1_000, "{came_again}");
    let strangers = answered.iter().filter(|answered| **answered).count();
    assert!(strangers < answered.len() * 35 / 100, "{strangers}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn never_more_than_twice_the_rate(
        per_second in 1u32..5_000,
        syns in proptest::collection::vec((0u64..3_000, 0u32..40), 1..2_000),
    ) {
        let (mut rate, secrets) = (CookieRate::new(per_second), secrets());
        let (mut now_us, mut granted) = (0, 0);
        for (step_us, from) in syns {
            now_us += step_us;
            let now = Instant::from_micros(now_us);
            granted += u64::from(rate.take(now, &secrets, &syn(from)) == Taken::Granted);
            let one = u64::from(per_second.div_ceil(10)) + now_us * u64::from(per_second) / 1_000_000;
            prop_assert!(granted <= 2 * one);
        }
    }
}
