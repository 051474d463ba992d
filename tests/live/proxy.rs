//! `hopwise proxy` on a router between two kernels: a wire, a radio that fades, and the sender's own counters.

use std::path::Path;
use std::process::Command;

use crate::world::{side_by_side, until, within_patience};

mod bridge;
mod capture;
mod fade;
mod firewall;
mod hangs;
mod iptables;
mod mishaps;
mod network;
mod router;
mod table;

pub(crate) use network::{By, Network};
use network::{MOBILE, Transfer, ways};

#[test]
fn a_router_forwards_through_the_proxy_and_as_before_when_it_ends_or_is_killed() {
    side_by_side(ways(name_of_test!()), |by| {
        let network = Network::by("proxy-ends", by);
        let mut running = network.proxy("ack-hold:mode=kick", "none");
        let transfer = network.transfer("cubic");
        transfer.wait_for(1_000_000);
        let status = network.tell("{\"tell\":\"status\"}");
        assert!(status.contains("\"flows\":1") && !status.contains("\"packets\":0"), "{by:?}: {status}");
        running.0.kill().expect("it is killed");
        running.0.wait().expect("it has ended");
        transfer.wait_for(1_000_000);
        // The leftovers of a killed proxy are in no other's way.
        let mut second = network.proxy("none", "1ms");
        transfer.wait_for(1_000_000);
        second.interrupt();
        transfer.wait_for(1_000_000);
        let left = network.left_behind();
        assert!(left.is_empty(), "also the killed proxy's: {left}");
    });
}

#[test]
fn rules_of_a_killed_proxy_are_found_and_removed_by_doctor_and_by_the_next_start() {
    for by in ways(name_of_test!()).into_iter().filter(|by| *by == By::Tun) {
        let network = Network::by("proxy-rules", by);
        let doctor = |more: &[&str]| {
            let words = [env!("CARGO_BIN_EXE_hopwise"), "doctor"].into_iter().chain(more.iter().copied());
            let said = network.router.output(&words.collect::<Vec<_>>());
            String::from_utf8_lossy(&said.stdout).into_owned()
        };
        let kill = || {
            let mut running = network.proxy("none", "none");
            assert!(doctor(&[]).contains("no killed proxy left"), "those of one that runs are none");
            running.0.kill().expect("it is killed");
            running.0.wait().expect("it has ended");
            assert!(!network.left_behind().is_empty());
        };
        kill();
        let found = doctor(&[]);
        assert!(found.contains("left 4 rules of routing (`ip rule`) [rules-left]"), "{found}");
        let repaired = doctor(&["--repair"]);
        assert!(repaired.contains("4 rules of routing removed"), "{repaired}");
        assert_eq!(network.left_behind(), "");
        kill();
        let found = doctor(&["--repair"]);
        assert!(found.contains("4 rules of routing removed"), "{found}");
        // A running proxy is not taken for a killed one, also before it has noticed that its device has no routes.
        let mut running = network.proxy("none", "none");
        let rules = network.left_behind();
        let process = rustix::process::Pid::from_child(&running.0);
        rustix::process::kill_process(process, rustix::process::Signal::STOP).expect("it is stopped");
        network.router.ip(&["link", "set", "hopf", "down"]);
        network.proxy_beside().interrupt();
        for found in [doctor(&[]), doctor(&["--repair"])] {
            assert!(found.contains("hopf is down, or was") && found.contains("[proxy-passed-by]"), "{found}");
        }
        assert_eq!(network.left_behind(), rules, "its rules stay");
        rustix::process::kill_process(process, rustix::process::Signal::CONT).expect("it goes on");
        assert!(!running.0.wait().expect("a child").success(), "{}", network.log());
        assert_eq!(network.left_behind(), "", "it has noticed, and ended in order");
        kill();
        let found = doctor(&[]);
        assert!(found.contains("a killed `hopwise proxy` left 4 rules"), "{found}");
        // Another configuration has rules of its own.
        let others = ["ip", "rule", "add", "iif", "radio", "lookup", "9000", "priority", "9000"];
        assert!(network.router.output(&others).status.success());
        let mut next = network.proxy_in_table(8_000);
        assert!(!network.left_behind().contains("lookup 710"), "{}", network.left_behind());
        next.interrupt();
        within_patience(until(|| network.left_behind().lines().count() == 1));
        assert!(network.left_behind().contains("lookup 9000"), "another's stays");
    }
}

#[test]
fn a_proxy_that_is_killed_in_the_middle_of_a_hold_ends_no_connection() {
    side_by_side(ways(name_of_test!()), |by| {
        let network = Network::by("proxy-killed", by);
        let mut running = network.proxy("ack-hold:mode=cumulative", "5ms");
        let transfer = network.transfer("cubic");
        transfer.wait_for(1_000_000);
        network.tell_down(10_000);
        network.tell_of("gone");
        within_patience(until(|| !network.tell("{\"tell\":\"status\"}").contains("\"kept_packets\":0")));
        running.0.kill().expect("it is killed");
        running.0.wait().expect("it has ended");
        transfer.wait_for(1_000_000);
        // The next proxy takes the connection up where it is.
        let _second = network.proxy("ack-hold", "none");
        transfer.wait_for(1_000_000);
        assert!(network.tell("{\"tell\":\"status\"}").contains("\"flows\":1"), "{by:?}");
    });
}

#[test]
fn a_carrier_that_goes_is_a_fade_that_nobody_has_foretold() {
    needs!["nft", "ethtool"];
    let network = Network::new("proxy-carrier");
    let _running = network.proxy("ack-hold", "5ms");
    let transfer = network.transfer("cubic");
    transfer.wait_for(1_000_000);
    network.mobile.ip(&["link", "set", "radio", "down"]);
    within_patience(until(|| !network.tell("{\"tell\":\"status\"}").contains("\"kept_packets\":0")));
    network.mobile.ip(&["link", "set", "radio", "up"]);
    network.mobile.ip(&["route", "add", "default", "via", "10.9.0.1"]);
    transfer.wait_for(1_000_000);
}

#[test]
fn what_is_told_of_nobody_twice_or_in_nonsense_stops_nothing() {
    needs!["nft", "ethtool"];
    let network = Network::new("proxy-nonsense");
    let _running = network.proxy("ack-hold:mode=cumulative", "1ms");
    let transfer = network.transfer("reno");
    let stranger = network.tell("{\"tell\":\"gone\",\"peer\":\"10.9.0.77\"}");
    let forecasts = [0, u64::MAX / 1_000].map(|ms| network.tell_down(ms));
    let others = ["up", "up", "gone", "gone", "up"].map(|news| network.tell_of(news));
    for answer in [stranger].into_iter().chain(forecasts).chain(others) {
        assert_eq!(answer, "\"done\"\n");
    }
    for line in
        ["", "{}", "{\"tell\":\"gone\"}", "{\"tell\":\"going-down\",\"peer\":\"10.9.0.2\",\"rtt_us\":-1}"]
    {
        assert!(network.tell(line).contains("refused"), "{line}");
    }
    transfer.wait_for(1_000_000);
}

#[test]
fn a_signal_that_falls_is_a_fade_that_the_proxy_foretells_itself() {
    needs!["nft", "ethtool"];
    let network = Network::new("proxy-signal");
    let _running = network.proxy("ack-hold:mode=kick", "5ms");
    let transfer = network.transfer("cubic");
    transfer.wait_for(1_000_000);
    for dbm in [-60, -70, -90, -95, -99, -99] {
        network.tell(&format!("{{\"tell\":\"signal\",\"peer\":\"{MOBILE}\",\"dbm\":{dbm}}}"));
    }
    within_patience(until(|| !network.tell("{\"tell\":\"status\"}").contains("\"kept_packets\":0")));
    for _ in 0..3 {
        network.tell(&format!("{{\"tell\":\"signal\",\"peer\":\"{MOBILE}\",\"dbm\":-50}}"));
    }
    transfer.wait_for(1_000_000);
}

/// Runs the command's own client inside the router.
fn client(network: &Network, words: &[&str]) -> std::process::Output {
    let mut command: Command = network.router.command(&[env!("CARGO_BIN_EXE_hopwise"), "proxy"]);
    let socket: &Path = &network.socket();
    command.args(words).arg("--control").arg(socket).output().expect("it runs")
}

#[test]
fn the_command_s_own_client_tells_and_asks() {
    needs!["nft", "ethtool"];
    let network = Network::new("proxy-client");
    let _running = network.proxy("ack-hold", "1ms");
    for words in [
        &["event", "going-down", MOBILE, "--outage", "10s"][..],
        &["event", "gone", MOBILE],
        &["event", "up", MOBILE],
        &["event", "signal", MOBILE, "--dbm", "-61"],
        &["status"],
    ] {
        let done = client(&network, words);
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
    for outage in ["-1s", "10", "inf", "nans"] {
        let done = client(&network, &["event", "going-down", MOBILE, &format!("--outage={outage}")]);
        assert_eq!(done.status.code(), Some(2), "{outage}");
    }
}
