//! A router whose interfaces and rules change while a proxy runs there.

use std::fs;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};

use rustix::process::{Pid, Signal, kill_process};

use super::{By, Network, ways};
use crate::namespace::Running;
use crate::world::{PATIENCE, children, side_by_side, until, within_patience};

/// Waits until it has ended, with an error that says so.
fn ends_with(running: &mut Running, network: &Network, said: &str) {
    within_patience(until(|| running.0.try_wait().expect("a child").is_some()));
    let status = running.0.wait().expect("it has ended");
    assert!(!status.success() && network.log().contains(said), "{said}: {}", network.log());
    assert_eq!(network.left_behind(), "");
}

pub(super) fn nft(network: &Network, script: &str) {
    let done = network.router.output(&["nft", script]);
    assert!(done.status.success(), "nft: {}", String::from_utf8_lossy(&done.stderr));
}

fn queues(test: &str) -> bool {
    ways(test).contains(&By::Nfqueue)
}

/// The processes that a process has started, by their names.
fn helpers(of: u32) -> Vec<(u32, String)> {
    let helper = |id: u32| {
        let name = fs::read_to_string(format!("/proc/{id}/comm")).expect("it runs");
        (id, name.trim().to_owned())
    };
    children(of).into_iter().map(helper).collect()
}

fn kill(id: u32, signal: Signal) {
    let pid = Pid::from_raw(id.cast_signed()).expect("a process");
    kill_process(pid, signal).expect("it runs");
}

/// The process that starts a proxy's watcher again, and the watcher once it runs.
fn watchers(running: &Running) -> [u32; 2] {
    let of_hopwise =
        |of: u32| helpers(of).into_iter().find(|(_, name)| !["nft", "sh"].contains(&name.as_str()));
    let (starter, _) = of_hopwise(running.0.id()).expect("it runs");
    let mut watcher = None;
    within_patience(until(|| {
        watcher = of_hopwise(starter);
        watcher.is_some()
    }));
    [starter, watcher.expect("it runs").0]
}

#[test]
fn a_watcher_that_was_killed_is_started_again_and_ends_a_proxy_that_hangs() {
    for by in ways("a_watcher_that_was_killed_is_started_again_and_ends_a_proxy_that_hangs") {
        let mut network = Network::by("proxy-rewatched", by);
        network.watchdog = "5s";
        let mut running = network.proxy("ack-hold:mode=kick", "none");
        let [starter, first] = watchers(&running);
        kill(first, Signal::KILL);
        within_patience(until(|| network.log().contains("is started again")));
        let [_, second] = watchers(&running);
        assert_ne!(first, second);
        // Without its starter the watcher goes on.
        kill(starter, Signal::KILL);
        let transfer = network.transfer("cubic");
        transfer.wait_for(1_000_000);
        kill(running.0.id(), Signal::STOP);
        within_patience(until(|| running.0.try_wait().expect("a child").is_some()));
        transfer.wait_for(1_000_000);
        within_patience(until(|| network.log().contains("the daemon hangs and is killed")));
    }
}

#[test]
fn signals_to_the_helpers_of_a_proxy_take_nothing_from_it() {
    side_by_side(ways(name_of_test!()), |by| {
        let network = Network::by("proxy-helpers", by);
        let mut running = network.proxy("ack-hold", "none");
        let transfer = network.transfer("cubic");
        transfer.wait_for(1_000_000);
        // The watcher ends by a signal, and nothing starts it again. It is the last one, and the proxy says when it has
        // gone.
        let watchers = watchers(&running);
        let (_, others): (Vec<_>, Vec<_>) =
            helpers(running.0.id()).into_iter().partition(|(id, _)| watchers.contains(id));
        assert!(!others.is_empty(), "{by:?}: {others:?}");
        for helper in others.iter().map(|(id, _)| *id).chain(watchers) {
            for signal in [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM] {
                kill(helper, signal);
            }
        }
        within_patience(until(|| {
            let ended = running.0.try_wait().expect("a child");
            assert!(ended.is_none(), "{by:?}: {}", network.log());
            network.log().contains("nothing watches any more")
        }));
        transfer.wait_for(1_000_000);
        let left = network.left_behind().to_lowercase();
        assert!(left.contains("hopwise"), "{by:?}: {left}");
        running.interrupt();
        assert_eq!(network.left_behind(), "", "{by:?}");
        transfer.wait_for(1_000_000);
    });
}

#[test]
fn a_radio_that_is_made_anew_ends_a_proxy_that_sends_by_the_old_one() {
    if !queues(name_of_test!()) {
        return;
    }
    let network = Network::by("proxy-anew", By::Nfqueue);
    let mut running = network.proxy("ack-hold", "none");
    network.router.ip(&["link", "del", "radio"]);
    network.router.join(&network.mobile, "radio", "10.9.0.1/24", "10.9.0.2/24");
    ends_with(&mut running, &network, "radio: the device is gone");
}

#[test]
fn rules_that_are_flushed_end_a_proxy_that_gets_nothing_without_them() {
    if !queues(name_of_test!()) {
        return;
    }
    for by in [By::Nfqueue, By::Tun] {
        let network = Network::by("proxy-flushed", by);
        let mut running = network.proxy("ack-hold", "none");
        nft(&network, "flush ruleset");
        if by == By::Nfqueue {
            ends_with(&mut running, &network, "what led its packets to the proxy");
            continue;
        }
        // A table with an owner is not flushed. It goes with the owner.
        let (owner, _) =
            helpers(running.0.id()).into_iter().find(|(_, name)| name == "nft").expect("an owner");
        kill(owner, Signal::KILL);
        ends_with(&mut running, &network, "nft has ended");
    }
}

#[test]
fn a_device_that_was_down_ends_a_proxy_that_gets_nothing_any_more() {
    needs!["nft", "ethtool"];
    for device in ["hopf", "hopm"] {
        let network = Network::new("proxy-down");
        let mut running = network.proxy("ack-hold", "none");
        let transfer = network.transfer("cubic");
        transfer.wait_for(1_000_000);
        network.router.ip(&["link", "set", device, "down"]);
        network.router.ip(&["link", "set", device, "up"]);
        ends_with(&mut running, &network, &format!("no route over {device} any more"));
        transfer.wait_for(1_000_000);
    }
}

#[test]
fn a_connection_that_the_router_refuses_is_not_made_for_the_mobile() {
    if !queues(name_of_test!()) {
        return;
    }
    let network = Network::by("proxy-refused", By::Nfqueue);
    nft(
        &network,
        "table ip firewall { chain passing { type filter hook forward priority 0; \
         iifname \"radio\" oifname \"wire\" tcp dport 7000 reject with tcp reset; }; }",
    );
    let _running = network.proxy("split", "none");
    let _listeners = [7000, 7001].map(|port| {
        let bound = network.fixed.run(|| TcpListener::bind(("10.8.0.1", port)));
        bound.expect("a port")
    });
    let connect = |port| {
        let address = ([10, 8, 0, 1], port).into();
        network.mobile.run(move || TcpStream::connect_timeout(&address, PATIENCE))
    };
    assert!(connect(7001).is_ok());
    let refused = connect(7000).expect_err("its filter refuses");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn a_carrier_is_heard_of_after_a_burst_of_news_and_when_its_interface_is_made_anew() {
    needs!["nft", "ethtool"];
    let network = Network::new("proxy-burst");
    let running = network.proxy("ack-hold", "none");
    let reports = |is_up: bool| {
        let log = network.log();
        log.lines()
            .filter(|line| line.contains("carrier") && line.contains(&format!("is_up={is_up}")))
            .count()
    };
    let goes_and_comes = |times: usize| {
        network.mobile.ip(&["link", "set", "radio", "down"]);
        within_patience(until(|| reports(false) == times));
        network.mobile.ip(&["link", "set", "radio", "up"]);
        within_patience(until(|| reports(true) == times));
    };
    goes_and_comes(1);
    // More than a socket has room for, while nobody reads.
    let process = Pid::from_child(&running.0);
    kill_process(process, Signal::STOP).expect("it is stopped");
    let batch: String = (0..2_000).map(|nth| format!("link set dev lo mtu {}\n", 60_000 + nth % 2)).collect();
    fs::write(network.path("batch"), batch).expect("a file");
    let path = network.path("batch");
    let done = network.router.output(&["ip", "-batch", path.to_str().expect("a path")]);
    kill_process(process, Signal::CONT).expect("it goes on");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    goes_and_comes(2);
    network.router.ip(&["link", "del", "radio"]);
    within_patience(until(|| reports(false) == 3));
    network.router.join(&network.mobile, "radio", "10.9.0.1/24", "10.9.0.2/24");
    within_patience(until(|| reports(true) == 3));
    goes_and_comes(4);
}
