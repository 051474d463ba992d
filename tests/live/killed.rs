//! Daemons that are killed cannot undo their changes of the system: the next one does.

use std::fs;
use std::net::TcpStream;
use std::process::Stdio;

use rustix::process::Signal;

use crate::field::{Daemon, Field, HOPWISE, PAGE, SOCKS5, THROUGH, text};
use crate::world::{until, within_patience};

fn fetches_a_page(field: &Field) {
    let page = field.curl(&[&THROUGH[..], &["http://10.9.0.2/"]].concat());
    assert_eq!(text(&page.stdout), PAGE, "{}{}", text(&page.stderr), field.log());
}

fn kill(mut daemon: Daemon) {
    daemon.tell(Signal::KILL);
    assert_eq!(daemon.ended(), None, "a signal ended it");
}

#[test]
fn the_rule_of_a_killed_raw_link_goes_with_it_and_the_next_has_its_own() {
    needs!["curl", "python3", "nft"];
    let field = Field::new("killed-raw");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let path = field.path("node.yaml");
    let rules = || text(&field.node.output(&["nft", "list", "ruleset"]).stdout);
    let start = |address: &str| {
        let config = format!(
            "node: {{ name: n2, address: {address}/24 }}\nlinks: [{{ kind: raw, name: wire0 }}]\n\
             control: {}\n{SOCKS5}\n",
            field.path("control.sock")
        );
        fs::write(&path, config).expect("the folder can be written");
        field.spawn(&path)
    };
    let doctor = || text(&field.node.output(&[HOPWISE, "doctor", "--config", &path]).stdout);
    let first = start("10.9.0.7");
    fetches_a_page(&field);
    assert!(
        doctor().contains("kernel-rst   wire0 belongs to the node that runs by this file"),
        "{}",
        doctor()
    );
    let another = field.path("another.yaml");
    fs::write(&another, "node: { name: n3, address: 10.9.0.9/24 }\nlinks: [{ kind: raw, name: wire0 }]\n")
        .expect("the folder can be written");
    let said = text(&field.node.output(&[HOPWISE, "doctor", "--config", &another]).stdout);
    assert!(said.contains("kernel-rst   wire0: a node has it") && said.contains("[link-in-use]"), "{said}");
    assert!(rules().contains("ip daddr 10.9.0.7 drop"), "{}", rules());
    kill(first);
    within_patience(until(|| rules().is_empty()));
    assert!(doctor().contains("kernel-rst   wire0: nft is there"), "{}", doctor());
    let mut second = start("10.9.0.8");
    fetches_a_page(&field);
    assert!(rules().contains("ip daddr 10.9.0.8 drop") && !rules().contains("10.9.0.7"), "{}", rules());
    second.tell(Signal::TERM);
    assert_eq!(second.ended(), Some(0), "{}", field.log());
    assert_eq!(rules(), "");
    assert!(doctor().contains("kernel-rst   wire0: nft is there"), "{}", doctor());
}

/// A device that was made to stay keeps the flags of its user, whichever program comes next.
#[test]
fn the_flags_of_a_killed_fast_node_do_not_starve_the_plain_one_after_it() {
    needs!["curl", "python3", "ethtool"];
    let field = Field::new("killed-fast");
    fs::write(field.path("www/big"), vec![7; 2_000_000]).expect("the folder can be written");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    field.node.ip(&["tuntap", "add", "hw0", "mode", "tun"]);
    let cuts = || {
        let shown = text(&field.node.output(&["ethtool", "-k", "hw0"]).stdout);
        shown.lines().any(|line| line.trim() == "tx-tcp-segmentation: on")
    };
    let fetches_much = || {
        let big = field.curl(&[&THROUGH[..], &["http://10.9.0.2/big"]].concat());
        assert_eq!(big.stdout.len(), 2_000_000, "{}{}", text(&big.stderr), field.log());
    };
    let fast = field.daemon_over("kind: tun-fast", SOCKS5);
    fetches_much();
    assert!(cuts());
    kill(fast);
    assert!(cuts(), "the device has kept them");
    let _plain = field.daemon(SOCKS5);
    assert!(!cuts());
    fetches_much();
}

/// A second link replays a capture that is a pipe here. The pipe holds up the node that opens it: the first link is
/// open then.
#[cfg(feature = "pcap")]
#[test]
fn a_node_that_is_told_to_end_while_it_opens_leaves_nothing_behind() {
    needs!["nft"];
    // A capture of bare IP without any packet.
    const EMPTY: [u32; 6] = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 101];
    let field = Field::new("told-early");
    let (path, pipe, socket) = (field.path("node.yaml"), field.path("old.pcap"), field.path("control.sock"));
    let links = format!("[{{ kind: raw, name: wire0 }}, {{ kind: replay, name: old, file: {pipe} }}]");
    let config = format!("node: {{ name: n2, address: 10.9.0.7/24 }}\nlinks: {links}\ncontrol: {socket}\n");
    fs::write(&path, config).expect("the folder can be written");
    assert!(
        std::process::Command::new("mkfifo").arg(&pipe).status().expect("coreutils are installed").success()
    );
    let rules = || text(&field.node.output(&["nft", "list", "ruleset"]).stdout);
    for signal in [Signal::TERM, Signal::INT] {
        let mut command = field.node.command(&[HOPWISE, "node", &path]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut daemon = Daemon(command.spawn().expect("ip netns exec runs"));
        within_patience(until(|| rules().contains("ip daddr 10.9.0.7 drop")));
        daemon.tell(signal);
        let empty: Vec<u8> = EMPTY.iter().flat_map(|word| word.to_ne_bytes()).collect();
        fs::write(&pipe, empty).expect("the daemon reads");
        assert_eq!(daemon.ended(), Some(0), "{signal:?}");
        assert_eq!(rules(), "", "{signal:?}");
    }
}

/// A service manager stops a service by SIGTERM.
#[test]
fn a_measurement_that_is_told_to_end_leaves_nothing_behind() {
    needs!["nft"];
    let field = Field::new("told-measure");
    let path = field.path("node.yaml");
    let config = "node: { name: n2, address: 10.9.0.7/24 }\nlinks: [{ kind: raw, name: wire0 }]\n";
    fs::write(&path, config).expect("the folder can be written");
    let rules = || text(&field.node.output(&["nft", "list", "ruleset"]).stdout);
    let _there = field.web.start(&[HOPWISE, "recv", "--kernel-tcp"]);
    within_patience(until(|| field.web.run(|| TcpStream::connect(("10.9.0.2", 5201)).is_ok())));
    for (words, status) in [
        (&["recv", "--config", &path][..], 0),
        (&["send", "10.9.0.2", "--config", &path, "--time", "600s"], 1),
    ] {
        for signal in [Signal::TERM, Signal::INT] {
            let mut command = field.node.command(&[&[HOPWISE], words].concat());
            command.stdout(Stdio::null()).stderr(Stdio::null());
            let mut daemon = Daemon(command.spawn().expect("ip netns exec runs"));
            within_patience(until(|| rules().contains("ip daddr 10.9.0.7 drop")));
            daemon.tell(signal);
            assert_eq!(daemon.ended(), Some(status), "{words:?} {signal:?}");
            assert_eq!(rules(), "", "{words:?} {signal:?}");
        }
    }
}
