//! Radios that are switched off, and those that are left out.

use super::injected::one;
use super::*;

#[test]
fn a_radio_that_is_switched_off_is_told_with_who_did_it() {
    let of = |test: &str, soft: &str, hard: &str| {
        let place = |name: &str| format!("sys/class/net/wlan0/phy80211/rfkill0/{name}");
        let machine = Machine::new(test, &[(&place("soft"), soft), (&place("hard"), hard)]);
        radio::switch(&machine.0, "wlan0")
    };
    let soft = of("soft", "1", "0");
    assert!(soft.found.contains("a program"), "{soft:?}");
    one(&[soft], "radio-blocked");
    assert!(of("hard", "0", "1").found.contains("a button"));
    assert_eq!(of("free", "0", "0").verdict, Verdict::Ok);
    let wired = Machine::new("no-switch", &[("sys/class/net/eth0/operstate", "up")]);
    assert_eq!(radio::switch(&wired.0, "eth0").verdict, Verdict::Skipped);
}

/// A Pi's own radio may be unused beside the one of the mesh.
#[test]
fn a_radio_that_is_down_is_left_out_beside_one_that_is_up_unless_it_is_named() {
    let of = |test: &str, states: [&str; 2]| {
        let files = ["wlan0", "wlan1"].map(|name| format!("sys/class/net/{name}"));
        let machine = Machine::new(
            test,
            &[
                (&format!("{}/operstate", files[0]), states[0]),
                (&format!("{}/operstate", files[1]), states[1]),
                (&format!("{}/phy80211/index", files[0]), "0"),
                (&format!("{}/phy80211/index", files[1]), "1"),
            ],
        );
        let (names, findings) = interfaces_of(&machine.0, &[]);
        let named = interfaces_of(&machine.0, &["wlan0".to_owned()]);
        assert_eq!(named, (vec!["wlan0".to_owned()], Vec::new()));
        (names.join(" "), findings)
    };
    let (names, findings) = of("one-up", ["down", "up"]);
    assert_eq!((names.as_str(), findings.len()), ("wlan1", 1));
    assert_eq!((findings[0].check.as_str(), findings[0].verdict), ("interface", Verdict::Skipped));
    let (names, findings) = of("both-down", ["down", "down"]);
    assert_eq!((names.as_str(), findings.len()), ("wlan0 wlan1", 0));
}
