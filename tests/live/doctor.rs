//! `hopwise doctor` where faults are: each is injected in a namespace, named, and mended by the command of its remedy.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use serde_json::Value;

use crate::folder::Folder;
use crate::namespace::Namespace;
use crate::world::{until, within_patience};

const HOPWISE: &str = env!("CARGO_BIN_EXE_hopwise");

/// Two machines with a wire between them.
struct Wire {
    node: Namespace,
    other: Namespace,
    folder: Folder,
}

impl Wire {
    fn new(test: &str) -> Wire {
        let folder = Folder::new(test);
        let (node, other) = (Namespace::new(), Namespace::new());
        node.join(&other, "w0", "10.1.0.1/24", "10.1.0.2/24");
        Wire { node, other, folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path(name)
    }

    /// Runs it behind these words.
    fn after(&self, before: &[&str], words: &[&str]) -> Output {
        let state = self.path("state");
        self.node.output(&[before, &[HOPWISE, "doctor", "--state", &state], words].concat())
    }

    /// The findings that are faults.
    fn faults(&self, words: &[&str]) -> Vec<Value> {
        let output = self.after(&[], &[&["--json"], words].concat());
        faults_in(&output)
    }

    fn has(&self, fault: &str, words: &[&str]) -> bool {
        self.faults(words).iter().any(|finding| finding["fault"] == fault)
    }
}

fn faults_in(output: &Output) -> Vec<Value> {
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let findings = report["findings"].as_array().cloned().unwrap_or_default();
    findings.into_iter().filter(|finding| finding["fault"].is_string()).collect()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The command at the beginning of a remedy.
fn command_of(finding: &Value) -> String {
    let fix = finding["fix"].as_str().unwrap_or_default();
    fix.split(", or").next().unwrap_or_default().to_owned()
}

#[test]
fn the_command_of_a_remedy_mends_what_was_injected() {
    needs!["ip", "ethtool", "sysctl"];
    let wire = Wire::new("mends");
    wire.node.join(&wire.other, "w1", "10.2.0.1/24", "10.2.0.2/24");
    // Its link takes packets as they came.
    let config = wire.path("node.yaml");
    fs::write(&config, "node: { name: a, address: 10.1.0.7/24 }\nlinks: [{ kind: raw, name: w0 }]\n")
        .expect("the folder can be written");
    let look = ["--interface", "w0", "--interface", "w1", "--config", &config];
    wire.node.sysctl("ipv4/conf/w1/rp_filter", "0");
    wire.node.sysctl("ipv4/conf/all/rp_filter", "0");
    wire.node.output(&["ethtool", "-K", "w0", "gro", "on", "tso", "on"]);
    wire.node.sysctl("ipv4/conf/w0/rp_filter", "1");
    wire.node.sysctl("ipv4/ip_default_ttl", "128");
    wire.node.sysctl("ipv4/ip_forward", "0");
    wire.node.ip(&["link", "set", "w1", "mtu", "1400"]);
    wire.node.ip(&["link", "set", "w1", "down"]);
    for fault in [
        "offloads-join",
        "rp-filter-strict",
        "hop-limit-other",
        "interface-down",
        "mtu-differs",
        "forwarding-off",
    ] {
        let mut times = 0;
        // One may be there at each of two interfaces.
        while let Some(found) = wire.faults(&look).into_iter().find(|finding| finding["fault"] == fault) {
            let command = command_of(&found);
            let done = wire.node.output(&["sh", "-c", &command]);
            assert!(done.status.success(), "{command}: {done:?}");
            times += 1;
            assert!(times <= 2, "{command} mends nothing: {found}");
        }
        assert!(times > 0, "{fault} is not found");
    }
    assert!(wire.has("interface-missing", &["--interface", "w7"]));
    assert!(wire.has("interface-missing", &["--interface", "10.1.0.77"]));
    assert!(!wire.has("interface-missing", &["--interface", "10.1.0.1"]));
}

#[test]
fn addresses_that_another_machine_has_as_well_are_found() {
    needs!["ip"];
    let wire = Wire::new("twice");
    let look = ["--interface", "w0"];
    assert!(!wire.has("duplicate-address", &look));
    wire.other.ip(&["addr", "add", "10.1.0.1/24", "dev", "w0"]);
    let found = text(&wire.after(&[], &look));
    assert!(found.contains("has 10.1.0.1, too [duplicate-address]"), "{found}");
    wire.other.ip(&["addr", "del", "10.1.0.1/24", "dev", "w0"]);
    assert!(!wire.has("duplicate-address", &look));
    wire.other.ip(&["addr", "add", "fd01::1/64", "dev", "w0", "nodad"]);
    wire.node.ip(&["addr", "add", "fd01::1/64", "dev", "w0"]);
    // The kernel looks for a second or two before it gives the address up.
    within_patience(until(|| text(&wire.after(&[], &look)).contains("another host has fd01::1")));
}

#[test]
fn rules_that_change_hop_limits_are_found_with_their_table() {
    needs!["ip", "nft"];
    let wire = Wire::new("ttl");
    assert!(!wire.has("hop-limit-rule", &[]));
    let rule = "table ip mangle { chain out { type filter hook output priority 0; ip ttl set 65; }; }";
    let made = wire.node.output(&["nft", rule]);
    assert!(made.status.success(), "{made:?}");
    let found = text(&wire.after(&[], &[]));
    assert!(found.contains("[hop-limit-rule]") && found.contains("remove that rule of ip mangle"), "{found}");
}

/// A driver that loses long frames alone: the neighbour's kernel drops what is longer than 1,450 bytes. In a folder of
/// links to this machine's files the wire is Wi-Fi.
#[test]
fn packets_that_vanish_by_their_length_are_found_and_a_shorter_mtu_mends_it() {
    needs!["ip", "nft", "ping"];
    let wire = Wire::new("sizes");
    let root = wire.path("root");
    for (at, to) in [
        ("proc/net/arp", "/proc/net/arp"),
        ("sys/class/net/w0/mtu", "/sys/class/net/w0/mtu"),
        ("sys/class/net/w0/operstate", "/sys/class/net/w0/operstate"),
        ("sys/class/net/w0/phy80211", "/sys/class/net/w0/queues"),
    ] {
        let at = std::path::Path::new(&root).join(at);
        fs::create_dir_all(at.parent().expect("a folder")).expect("a folder");
        std::os::unix::fs::symlink(to, at).expect("a link");
    }
    let look = ["--root", &root, "--interface", "w0"];
    let said = || text(&wire.after(&[], &look));
    assert!(!said().contains("large-packets-vanish"), "no neighbour is known yet");
    wire.node.output(&["ping", "-c", "1", "-W", "5", "10.1.0.2"]);
    let sound = said();
    assert!(sound.contains("10.1.0.2 answers packets of 64 and of 1500 bytes"), "{sound}");
    let rule =
        "table ip driver { chain in { type filter hook input priority 0; meta length > 1450 drop; }; }";
    let made = wire.other.output(&["nft", rule]);
    assert!(made.status.success(), "{made:?}");
    let faults = wire.faults(&look);
    let found = faults.iter().find(|finding| finding["fault"] == "large-packets-vanish");
    let found = found.unwrap_or_else(|| panic!("it is not found: {faults:?}"));
    assert_eq!(found["found"], "w0: 10.1.0.2 answers packets of 64 bytes, and none of 1500, expected both");
    let command = command_of(found);
    let done = wire.node.output(&["sh", "-c", &command]);
    assert!(done.status.success(), "{command}: {done:?}");
    let mended = said();
    assert!(mended.contains("10.1.0.2 answers packets of 64 and of 1400 bytes"), "{mended}");
    let rule =
        "flush ruleset; table ip deaf { chain in { type filter hook input priority 0; policy drop; }; }";
    let made = wire.other.output(&["nft", rule]);
    assert!(made.status.success(), "{made:?}");
    let deaf = said();
    assert!(deaf.contains("too few answers of 10.1.0.2") && !deaf.contains("large-packets-vanish"), "{deaf}");
}

/// A folder for programs that has no nft, and one whose nft fails.
#[test]
fn an_nft_that_is_missing_or_mute_is_found_where_a_link_needs_it() {
    needs!["ip"];
    let wire = Wire::new("nft");
    let config = wire.path("node.yaml");
    fs::write(&config, "node: { name: a, address: 10.1.0.7/24 }\nlinks: [{ kind: raw, name: w0 }]\n")
        .expect("the folder can be written");
    let place = format!("PATH={}", wire.path(""));
    let look = || text(&wire.after(&["env", &place], &["--config", &config]));
    let without = look();
    assert!(without.contains("[nft-missing]") && without.contains("[firewall-no-nft]"), "{without}");
    let nft = wire.folder.join("nft");
    fs::write(&nft, "#!/bin/sh\nexit 1\n").expect("the folder can be written");
    fs::set_permissions(&nft, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let mute = look();
    assert!(mute.contains("[nft-mute]"), "{mute}");
}

/// Root without its capabilities may look, and may not remove.
#[test]
fn what_the_kernel_does_not_let_it_remove_stays_and_is_named() {
    needs!["ip", "setpriv"];
    let wire = Wire::new("stays");
    wire.node.ip(&["route", "add", "10.77.0.9/32", "dev", "w0", "proto", "87", "src", "10.1.0.1"]);
    wire.node.ip(&["rule", "add", "iif", "w0", "lookup", "7100", "priority", "7100", "protocol", "87"]);
    let weak = ["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin"];
    let said = text(&wire.after(&weak, &["--repair"]));
    assert!(said.contains("[routes-stay]") && said.contains("[rules-stay]"), "{said}");
    let said = text(&wire.after(&[], &["--repair"]));
    assert!(
        said.contains("1 route to a host removed") && said.contains("1 rule of routing removed"),
        "{said}"
    );
}

/// Every other ACK is lost behind the device that sends it, as by a driver that merges them.
const MERGES: &str = "table netdev driver { chain in { type filter hook ingress device w0 priority 0; \
                      tcp flags & (fin | syn | rst | psh | ack) == ack ip length < 80 numgen inc mod 2 0 drop; }; }";

#[test]
fn acks_that_a_driver_merges_are_found_by_counting_them_at_both_ends() {
    needs!["ip", "nft", "ethtool"];
    let wire = Wire::new("acks");
    for one in [&wire.node, &wire.other] {
        // Otherwise one ACK answers tens of segments.
        let done = one.output(&["ethtool", "-K", "w0", "tso", "off", "gso", "off", "gro", "off"]);
        assert!(done.status.success(), "{done:?}");
    }
    let count = || {
        let _answering = wire.other.start(&[HOPWISE, "doctor", "--answer-acks", "10.1.0.2:4715"]);
        text(&wire.after(&[], &["--acks-to", "10.1.0.2:4715"]))
    };
    let sound = count();
    assert!(sound.starts_with("ok       acks"), "{sound}");
    let made = wire.node.output(&["nft", MERGES]);
    assert!(made.status.success(), "{made:?}");
    let merged = count();
    assert!(merged.contains("[acks-missing]"), "{merged}");
    // No data is lost, but a tail whose ACK is dropped is sent again.
    let (before, _) = merged.split_once(" of ").expect("segments are counted");
    let resent = before.rsplit(' ').next().and_then(|word| word.parse::<u32>().ok());
    assert!(resent < Some(10), "{merged}");
}

#[test]
fn a_disk_is_tried_out_and_what_was_written_is_removed() {
    needs!["ip"];
    let wire = Wire::new("disk");
    let disk = wire.path("disk");
    fs::create_dir(&disk).expect("the folder can be written");
    let found = text(&wire.after(&[], &["--captures", &disk, "--capture-rate", "10000000gbit"]));
    assert!(found.contains("[captures-slow]") && found.contains("[captures-full]"), "{found}");
    assert_eq!(fs::read_dir(&disk).expect("it is there").count(), 0);
    let refused = wire.after(&[], &["--captures", "/proc"]);
    assert!(text(&refused).contains("[captures-refused]") && refused.status.code() == Some(1), "{refused:?}");
    let asked = wire.after(&[], &["--captures", "/proc", "--exit-zero"]);
    assert_eq!(asked.status.code(), Some(0));
}

/// Writes a script that runs `hopwise` in a namespace; `after` follows it.
fn script(wire: &Wire, name: &str, namespace: &Namespace, after: &str) -> String {
    let enter = namespace.command(&[HOPWISE]);
    let enter: Vec<_> = enter.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    let path = wire.folder.join(name);
    fs::write(&path, format!("#!/bin/sh\nip {} \"$@\"{after}\n", enter.join(" "))).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    path.to_string_lossy().into_owned()
}

/// An inventory of both machines, the second one with another version, and of a host without the command. Hosts of
/// this machine need no ssh.
fn inventory(wire: &Wire) -> String {
    let other = " | sed 's/\"version\":\"/&x/'";
    let (n0, n1) = (script(wire, "n0", &wire.node, ""), script(wire, "n1", &wire.other, other));
    let host =
        |name: &str, command: &str| format!("  - {{ name: {name}, local: true, command: {command} }}\n");
    let hosts = [host("n0", &n0), host("n1", &n1), host("n2", "no-such-command-of-ours")].concat();
    let inventory = wire.path("hosts.yaml");
    fs::write(&inventory, format!("hosts:\n{hosts}")).expect("the folder can be written");
    inventory
}

#[test]
fn a_fleet_is_one_table_with_what_only_several_hosts_show() {
    needs!["ip"];
    let wire = Wire::new("fleet");
    for one in [&wire.node, &wire.other] {
        one.ip(&["addr", "add", "10.3.0.9/32", "dev", "w0"]);
    }
    wire.other.ip(&["link", "set", "w0", "mtu", "1300"]);
    wire.node.sysctl("ipv4/ip_default_ttl", "128");
    let inventory = inventory(&wire);
    let look = ["--fleet", inventory.as_str(), "--interface", "w0", "--acks"];
    let output = wire.after(&[], &look);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let row = |name: &str| said.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(row("n2 ").contains("no answer") && row("n0 ").contains("hop-limit-other"), "{said}");
    for fault in ["duplicate-address", "mtu-differs", "versions-differ"] {
        assert!(row("together ").contains(fault), "{fault}: {said}");
    }
    assert!(said.contains("10.3.0.9: n0 w0, n1 w0"), "{said}");
}

#[test]
fn a_part_of_a_fleet_is_one_object_with_the_acks_of_each_host() {
    needs!["ip"];
    let wire = Wire::new("part");
    let inventory = inventory(&wire);
    let words = ["--fleet", inventory.as_str(), "--interface", "w0", "--acks", "--json"];
    let output = wire.after(&[], &[&words[..], &["--limit", "n0", "--limit", "n1"]].concat());
    let all: Value = serde_json::from_slice(&output.stdout).expect("one object");
    let hosts = all["hosts"].as_array().cloned().unwrap_or_default();
    assert!(hosts.len() == 2 && hosts.iter().all(|host| host["findings"].is_array()), "{all}");
    let together = all["together"].as_array().cloned().unwrap_or_default();
    let acks: Vec<_> = together.iter().filter(|finding| finding["check"] == "acks").collect();
    let is_counted =
        |finding: &&Value| finding["found"].as_str().is_some_and(|found| found.contains("ACKs sent"));
    assert!(acks.len() == 2 && acks.iter().all(is_counted), "{all}");
}
