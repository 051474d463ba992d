//! `hopwise proxy` and `hopwise route` under systemd: it learns when they are ready, and when they end.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;

use crate::field::HOPWISE;
use crate::folder::Folder;
use crate::namespace::{Namespace, Running};
use crate::node::systemd;
use crate::proxy::{By, Network};
use crate::world::{until, within_patience};

/// The first notice, and the first one after it that tells more than that the daemon lives.
fn notices(systemd: &UnixDatagram, end: impl FnOnce()) -> [String; 2] {
    let heard = || {
        let mut told = [0; 64];
        let bytes = systemd.recv(&mut told).expect("it is told");
        String::from_utf8_lossy(&told[..bytes]).trim().to_owned()
    };
    let first = heard();
    end();
    let last = std::iter::repeat_with(heard).find(|told| told != "WATCHDOG=1");
    [first, last.expect("it never ends")]
}

const WANTED: [&str; 2] = ["READY=1", "STOPPING=1"];

#[test]
fn systemd_is_told_when_a_proxy_ends() {
    needs!["nft", "ethtool"];
    let network = Network::by("proxy-notify", By::Tun);
    let systemd = systemd(network.path("notify"));
    let mut running = network.proxy("none", "none");
    assert_eq!(notices(&systemd, || running.interrupt()), WANTED);
    // It says so as well when it ends by itself.
    let _running = network.proxy("none", "none");
    assert_eq!(notices(&systemd, || network.router.ip(&["link", "del", "hopm"])), WANTED);
}

#[test]
fn systemd_is_told_when_a_routing_daemon_ends() {
    needs!["ip", "sysctl"];
    let node = Namespace::new();
    node.ip(&["link", "add", "air0", "type", "veth", "peer", "name", "air1"]);
    node.ip(&["link", "set", "air0", "up"]);
    let folder = Folder::new("stopping");
    let systemd = systemd(folder.join("notify"));
    let (config, log) = (folder.join("route.yaml"), folder.join("log"));
    let state = folder.join("state");
    let text = format!(
        "address: 10.77.0.1\nnetwork: 10.77.0.0/24\ninterfaces: [air0]\nstate: {}\n\
         routing: {{ protocol: aodv }}\n",
        state.display()
    );
    fs::write(&config, text).expect("the folder can be written");
    let mut command = node.command(&[HOPWISE, "route", &config.to_string_lossy()]);
    command.env("NOTIFY_SOCKET", folder.join("notify")).stdin(Stdio::null());
    command.stderr(fs::File::create(&log).expect("the folder can be written"));
    let mut running = Running(command.spawn().expect("ip netns exec runs"));
    within_patience(until(|| {
        let log = fs::read_to_string(&log).unwrap_or_default();
        assert!(running.0.try_wait().expect("a child").is_none(), "it ended: {log}");
        log.contains("ready address")
    }));
    assert_eq!(notices(&systemd, || running.interrupt()), WANTED);
}
