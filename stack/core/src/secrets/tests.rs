use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasher;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn secrets(key: u8) -> Secrets {
    Secrets::new([key; 32])
}

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Flows that differ from the first in one number each.
fn flows() -> Vec<(SocketAddr, SocketAddr)> {
    vec![
        (at("10.0.0.1:80"), at("10.0.0.2:5000")),
        (at("10.0.0.3:80"), at("10.0.0.2:5000")),
        (at("10.0.0.1:81"), at("10.0.0.2:5000")),
        (at("10.0.0.1:80"), at("10.0.0.4:5000")),
        (at("10.0.0.1:80"), at("10.0.0.2:5001")),
        (at("10.0.0.2:5000"), at("10.0.0.1:80")),
        (at("[fd00::1]:80"), at("[fd00::2]:5000")),
    ]
}

// shows: MUST-8, SHLD-1
#[test]
fn initial_sequence_numbers_of_a_flow_follow_a_clock_of_4_us() {
    let secrets = secrets(1);
    let (local, remote) = flows()[0];
    let base = secrets.isn(Instant::ZERO, local, remote);
    assert_eq!(secrets.isn(Instant(3_999), local, remote), base);
    assert_eq!(secrets.isn(Instant(4_000), local, remote), base + 1);
    assert_eq!(secrets.isn(Instant::from_secs(1), local, remote), base + 250_000);
    // The cycle of RFC 9293 §3.4.1: about 4.77 hours.
    assert_eq!(secrets.isn(Instant((1 << 32) * 4_000), local, remote), base);
}

// shows: MUST-9, SHLD-1
#[test]
fn initial_sequence_numbers_differ_by_flow_and_by_key() {
    let numbers: BTreeSet<u32> = [1, 2]
        .into_iter()
        .flat_map(|key| {
            flows().into_iter().map(move |(local, remote)| secrets(key).isn(Instant::ZERO, local, remote).0)
        })
        .collect();
    assert_eq!(numbers.len(), 2 * flows().len());
}

#[test]
fn each_half_of_the_key_counts() {
    let (local, remote) = flows()[0];
    let isn = |key| Secrets::new(key).isn(Instant::ZERO, local, remote);
    let mut late = [1; 32];
    late[31] = 2;
    assert_ne!(isn([1; 32]), isn(late));
    let mut early = [1; 32];
    early[0] = 2;
    assert_ne!(isn([1; 32]), isn(early));
}

#[test]
fn timestamp_offsets_are_the_flows_own_and_no_other_secret() {
    let secrets = secrets(1);
    let offsets: BTreeSet<u32> =
        flows().into_iter().map(|(local, remote)| secrets.ts_offset(local, remote)).collect();
    assert_eq!(offsets.len(), flows().len());
    let (local, remote) = flows()[0];
    assert_eq!(secrets.ts_offset(local, remote), secrets.ts_offset(local, remote));
    assert_ne!(secrets.ts_offset(local, remote), secrets.isn(Instant::ZERO, local, remote).0);
}

#[test]
fn the_table_is_keyed_and_a_key_repeats_it() {
    let hash = |key, value: u64| secrets(key).keyed_state().hash_one(value);
    assert_eq!(hash(1, 7), hash(1, 7));
    assert_ne!(hash(1, 7), hash(2, 7));
    let mut table = HashMap::with_hasher(secrets(1).keyed_state());
    table.insert(flows()[0], 5);
    assert_eq!(table.get(&flows()[0]), Some(&5));
}

#[test]
fn logs_do_not_show_keys() {
    let secrets = secrets(0xab);
    assert_eq!(format!("{secrets:?}"), "Secrets { .. }");
    assert_eq!(format!("{:?}", secrets.keyed_state()), "KeyedState { .. }");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    // shows: MUST-8
    #[test]
    fn a_later_incarnation_begins_above_an_earlier_one(
        key: [u8; 32],
        start_ns in 0u64..1 << 60,
        // Half the number space, the limit of "above".
        later_us in 4u64..(1 << 31) * 4,
        port in 1u16..,
    ) {
        let secrets = Secrets::new(key);
        let (local, remote) = (at("10.0.0.1:80"), SocketAddr::new(at("10.0.0.2:1").ip(), port));
        let early = secrets.isn(Instant(start_ns), local, remote);
        let late = secrets.isn(Instant(start_ns) + Duration::from_micros(later_us), local, remote);
        prop_assert!(late > early, "{early} {late}");
    }
}
