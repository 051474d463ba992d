//! Radios that are switched off or left out.

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
    assert_eq!(of("free", "0", "0").verdict, CheckVerdict::Ok);
    let wired = Machine::new("no-switch", &[("sys/class/net/eth0/operstate", "up")]);
    assert_eq!(radio::switch(&wired.0, "eth0").verdict, CheckVerdict::Skipped);
}

/// A Pi's built-in radio may be unused while the mesh uses a second radio.
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
        let (names, findings) = interfaces_of(&machine.0, &[], None);
        let named = interfaces_of(&machine.0, &["wlan0".to_owned()], None);
        assert_eq!(named, (vec!["wlan0".to_owned()], Vec::new()));
        (names.join(" "), findings)
    };
    let (names, findings) = of("one-up", ["down", "up"]);
    assert_eq!((names.as_str(), findings.len()), ("wlan1", 1));
    assert_eq!((findings[0].check.as_str(), findings[0].verdict), ("interface", CheckVerdict::Skipped));
    let (names, findings) = of("both-down", ["down", "down"]);
    assert_eq!((names.as_str(), findings.len()), ("wlan0 wlan1", 0));
}

/// A wired Pi has a radio that is down, and blocked until somebody gives its country.
#[test]
fn an_unused_radio_keeps_no_node_from_working_and_a_node_s_own_is_looked_at() {
    let node = |link: &str| format!("node: {{ name: a, address: 10.7.0.2/24 }}\nlinks: [{link}]\n");
    let (tun, raw) = (node("{ kind: tun, name: hw0 }"), node("{ kind: raw, name: wlan0 }"));
    let machine = Machine::new(
        "unused",
        &[
            ("sys/class/net/wlan0/operstate", "down"),
            ("sys/class/net/wlan0/phy80211/rfkill0/soft", "1"),
            ("sys/class/net/wlan0/phy80211/rfkill0/hard", "0"),
            ("tun.yaml", &tun),
            ("raw.yaml", &raw),
        ],
    );
    let config = |name: &str| config::load(&machine.0.path(name)).expect("it is accepted");
    assert_eq!(interfaces_of(&machine.0, &[], Some(&config("tun.yaml"))), (vec![], vec![]));
    assert_eq!(interfaces_of(&machine.0, &[], Some(&config("raw.yaml"))), (vec!["wlan0".to_owned()], vec![]));
    let (names, findings) = interfaces_of(&machine.0, &[], None);
    assert_eq!((names, findings), (vec!["wlan0".to_owned()], vec![]));
    let findings: Vec<_> = [interfaces::state(&machine.0, "wlan0"), radio::switch(&machine.0, "wlan0")]
        .into_iter()
        .map(of_unused)
        .collect();
    assert_eq!(
        findings.iter().map(|finding| finding.verdict).collect::<Vec<_>>(),
        [CheckVerdict::Warning; 2]
    );
    assert!(findings[0].fix.as_ref().is_some_and(|fix| fix.contains("hopwise mesh up")), "{findings:?}");
    one(&findings[..1], "radio-down");
    one(&findings[1..], "radio-blocked");
}
