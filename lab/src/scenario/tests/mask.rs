//! Masks of rates, and a CTS of the sender to itself.

use super::{CHAIN, read, refused};

#[test]
fn rates_and_a_cts_that_change_nothing_are_refused_under_the_standards_rules_too() {
    for (radio, problem) in [
        (
            "{ profile: ht20-mcs7, rate: arf, rates: [6mbit] }",
            "`rates` changes nothing under `ht20-mcs7`; `mcs`",
        ),
        (
            "{ profile: ht20-mcs3, rate: minstrel, mcs: [4] }",
            "no such rate is chosen under `ht20-mcs3`; 0, 1, 2, 3",
        ),
        ("{ cts_to_self: true }", "`cts_to_self` changes nothing where an RTS precedes each packet"),
    ] {
        let said = refused(&["mac.rules=standard", &format!("radio={radio}")]);
        assert!(said.contains(problem), "{radio}: {said}");
    }
}

#[test]
fn rates_a_cts_and_joined_packets_that_no_driver_hears_of_are_refused() {
    for radio in [
        "{ rate: arf, rates: [1mbit] }",
        "{ cts_to_self: true, rts_threshold: off }",
        "{ profile: ht20-mcs7, amsdu: 3839, amsdu_in_ampdu: true }",
    ] {
        let said = refused(&["world=hwsim", "mac.rules=standard", &format!("radio={radio}")]);
        assert!(said.contains("reaches the driver in the world hwsim"), "{radio}: {said}");
    }
}

#[test]
fn the_radios_of_a_kernel_may_be_those_of_802_11n() {
    read(CHAIN, &["world=hwsim", "mac.rules=standard", "radio={ profile: ht20-mcs7 }"]);
}

#[test]
fn a_cts_to_self_is_left_out_under_ns2s_rules_where_they_vary() {
    let sets = ["matrix={ mac.rules: [ns2, standard] }", "radio={ cts_to_self: true, rts_threshold: off }"];
    let scenario = read(CHAIN, &sets);
    let cells = scenario.asked().expect("it can be asked").cells;
    let at = |cell| scenario.at(cell).and_then(|there| there.under("x")?.prepare(1)).expect("a plan").plan;
    assert_eq!(cells.iter().map(|cell| at(cell).mac.cts_to_self).collect::<Vec<_>>(), [false, true]);
}
