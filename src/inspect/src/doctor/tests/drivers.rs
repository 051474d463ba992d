//! Faults of drivers and of settings: each by facts that a driver tells, and absent without them.

use std::collections::{BTreeMap, BTreeSet};

use hopwise_core::{Instant, LinkFacts, StationAddress};
use hopwise_host::nl80211::radio::{HeardNetwork, InterfaceType, RadioState};

use super::super::fleet::{CheckedHost, together};
use super::super::radio::RadioFacts;
use super::super::stations::Looked;
use super::injected::{host, named, network, one, radio};
use super::*;

#[test]
fn settings_of_a_radio_that_cost_airtime_or_range_are_found_with_their_value() {
    let of = |facts: RadioFacts, stations| radio::examine("w0", &facts, stations);
    let country = |code: &str| of(RadioFacts { country: Some(code.to_owned()), ..radio() }, 1);
    one(&country("00"), "country-unset");
    assert_eq!(named(&country("AT")), [""; 0]);
    let coverage = |class| of(RadioFacts { coverage_class: Some(class), ..radio() }, 1);
    one(&coverage(31), "coverage-far");
    let found = coverage(20);
    let far = found.iter().find(|finding| finding.check == "coverage-class").expect("it was looked at");
    assert!(far.found.contains("is 20, expected 19 or less"), "{far:?}");
    assert_eq!(named(&coverage(19)), [""; 0]);
    let slowest = |bps| {
        let own = HeardNetwork { slowest_basic_bps: bps, ..network(1, "roof", true) };
        of(RadioFacts { networks: vec![own], ..radio() }, 1)
    };
    one(&slowest(Some(1_000_000)), "multicast-slow");
    assert_eq!(named(&slowest(Some(2_000_000))), [""; 0]);
    assert_eq!(verdict(&slowest(None), "slowest-basic-rate"), CheckVerdict::Skipped);
}

#[test]
fn a_driver_that_is_not_heard_alone_is_told_so_while_it_is_alone() {
    let of = |driver: &str, kind, stations| {
        let state = radio().state.map(|state| RadioState { kind, ..state });
        radio::examine("w0", &RadioFacts { driver: Some(driver.to_owned()), state, ..radio() }, stations)
    };
    one(&of("mt76x2u", InterfaceType::IBSS, 0), "alone-unheard");
    assert_eq!(named(&of("mt76x2u", InterfaceType::IBSS, 1)), [""; 0]);
    assert_eq!(named(&of("mt76x2u", InterfaceType::MESH, 0)), [""; 0]);
    assert_eq!(named(&of("rt2800usb", InterfaceType::IBSS, 0)), [""; 0]);
}

#[test]
fn stations_with_a_hopeless_signal_and_rates_that_stay_low_are_found() {
    let comes_at = |rx_bitrate_bps, signal_average_dbm, rates: &[u64], packets| {
        let station = StationAddress([2, 0, 0, 0, 0, 1]);
        let facts = LinkFacts {
            signal_average_dbm,
            rx_bitrate_bps,
            tx_packets: Some(packets),
            ..LinkFacts::new(station, Instant::ZERO)
        };
        let rates: BTreeSet<_> = rates.iter().copied().collect();
        let rates = BTreeMap::from([(station, rates)]);
        stations::examine("w0", &Ok(Looked { facts: vec![facts], rates, ..Looked::default() }))
    };
    let of = |dbm, rates: &[u64], packets| comes_at(None, Some(dbm), rates, packets);
    one(&of(-86, &[6_500_000], 500), "signal-hopeless");
    assert_eq!(named(&of(-85, &[6_500_000], 500)), [""; 0]);
    one(&of(-60, &[1_000_000], 100), "rate-stuck");
    assert_eq!(named(&of(-61, &[1_000_000], 100)), [""; 0], "it may be the best rate");
    assert_eq!(named(&of(-40, &[13_000_000], 100)), [""; 0]);
    assert_eq!(named(&of(-40, &[1_000_000], 99)), [""; 0], "too few packets");
    assert_eq!(named(&of(-40, &[1_000_000, 54_000_000], 500)), ["rate-roams"], "it rose");
    one(&comes_at(Some(24_000_000), Some(-75), &[1_000_000], 100), "rate-stuck");
    one(&comes_at(Some(54_000_000), None, &[6_500_000], 100), "rate-stuck");
    assert_eq!(named(&comes_at(Some(18_000_000), Some(-75), &[1_000_000], 100)), [""; 0]);
    assert_eq!(named(&comes_at(Some(24_000_000), Some(-75), &[13_000_000], 100)), [""; 0]);
    one(&comes_at(Some(150_000_000), Some(-75), &[15_000_000], 100), "rate-stuck");
}

#[test]
fn rts_that_is_off_is_a_fault_where_a_neighbour_hears_more() {
    let station = |last| format!("02:00:00:00:00:0{last}");
    let of = |name: &str, last, rts: &str, hears: &[u8]| {
        let mut host = host(name, &station(last), 1_500, &format!("10.0.0.{last}/24"));
        let facts = &mut host.report.interfaces[0];
        (facts.rts, facts.hears) = (Some(rts.to_owned()), hears.iter().copied().map(station).collect());
        host
    };
    let line = |rts: &str| -> Vec<CheckedHost> {
        vec![of("n1", 1, rts, &[2]), of("n2", 2, "off", &[1, 3]), of("n3", 3, "500", &[2])]
    };
    let found = together(&line("off"));
    one(&found, "rts-off-hidden");
    let said =
        "n1 wlan0: RTS is off, expected a size: n2 wlan0 hears 02:00:00:00:00:03, which it does not hear";
    assert!(found.iter().any(|finding| finding.found == said), "{found:?}");
    assert_eq!(named(&together(&line("500"))), [""; 0]);
    let all = [of("n1", 1, "off", &[2, 3]), of("n2", 2, "off", &[1, 3]), of("n3", 3, "off", &[1, 2])];
    assert_eq!(named(&together(&all)), [""; 0], "each hears each");
}

/// Three hosts on a line of 1200 m and 100 m; the middle host hears both.
#[test]
fn a_coverage_class_that_is_too_small_for_a_station_is_found_where_places_are_known() {
    let station = |last| format!("02:00:00:00:00:0{last}");
    let of = |last, class, hears: &[u8], place_m| {
        let host = host(&format!("n{last}"), &station(last), 1_500, &format!("10.0.0.{last}/24"));
        let mut host = CheckedHost { place_m, ..host };
        let facts = &mut host.report.interfaces[0];
        (facts.coverage_class, facts.hears) = (class, hears.iter().copied().map(station).collect());
        host
    };
    let line = |class, last: Option<[i32; 2]>| {
        together(&[
            of(1, Some(3), &[2], Some([-720, -960])),
            of(2, class, &[1, 3], Some([0, 0])),
            of(3, Some(0), &[2], last),
        ])
    };
    let found = line(Some(2), Some([100, 0]));
    one(&found, "coverage-short");
    let far = found.iter().find(|finding| finding.check == "coverage-class").expect("it was looked at");
    assert_eq!(far.found, "n2 wlan0: its coverage class is 2, expected 3: a station is 1200 m away");
    assert!(
        far.fix.as_ref().is_some_and(|fix| fix.contains("set distance 1200, or host.coverage_class: 3")),
        "{far:?}"
    );
    assert_eq!(named(&line(Some(3), Some([100, 0]))), [""; 0]);
    assert_eq!(named(&line(None, Some([100, 0]))), [""; 0], "its driver does not tell");
    assert_eq!(named(&line(Some(3), None)), [""; 0], "nobody says where n3 is");
    let unheard = [of(1, Some(0), &[], Some([0, 0])), of(2, Some(0), &[], Some([0, 9_000]))];
    assert_eq!(named(&together(&unheard)), [""; 0], "no frame goes from one to the other");
}

#[test]
fn large_packets_that_vanish_are_told_from_a_link_that_loses_all_sizes() {
    let judged = |small, large| sizes::judged("w0", "10.0.0.2", 1_500, (small, large));
    let found = judged(Some(3), Some(0));
    one(std::slice::from_ref(&found), "large-packets-vanish");
    assert!(found.found.contains("64 bytes, and none of 1500"), "{found:?}");
    assert_eq!(judged(Some(3), Some(1)).verdict, CheckVerdict::Ok);
    for (small, large) in [(None, None), (Some(0), None), (Some(1), Some(0)), (Some(3), None)] {
        assert_eq!(judged(small, large).verdict, CheckVerdict::Skipped, "{small:?} {large:?}");
    }
    let said = "--- 10.0.0.2 ping statistics ---\n3 packets transmitted, 2 received, 33.3333% packet loss, time 405ms";
    assert_eq!((sizes::received(said), sizes::received("ping: unknown host")), (Some(2), None));
    let table = "IP address HW type Flags HW address Mask Device\n10.0.0.2 0x1 0x2 02:00:00:00:00:02 * w0\n\
                 10.0.0.3 0x1 0x0 00:00:00:00:00:00 * w0\n10.0.0.4 0x1 0x2 02:00:00:00:00:04 * w1";
    let machine = Machine::new("arp-table", &[("proc/net/arp", table)]);
    assert_eq!(sizes::neighbours(&machine.0, "w0"), ["10.0.0.2"]);
}
