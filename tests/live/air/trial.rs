//! A trial on hosts that have a radio: the nodes of `hopwise air`, each as a host of an inventory.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{Air, HOPWISE, address};
use crate::namespace::prefix;

/// The mesh's own radios and routes count, and not the file's.
const TEXT: &str = "\
world: mesh\n\
topology: { kind: chain, hops: 2 }\n\
traffic: [{ from: first, to: last, kind: bulk, segment_bytes: 1000 }]\n\
arms:\n\
\x20 delayed: { receiver: delayed }\n\
\x20 kernel: { receiver: kernel, sender: kernel:reno }\n\
run: { duration: 5s, warmup: 1s, seeds: 1, stop: all-seeds }\n";

/// The link between two hosts.
fn link<'a>(host: &'a Value, to: &str) -> &'a Value {
    let links = host["links"].as_array().expect("a list");
    links.iter().find(|link| link["to"] == to).unwrap_or_else(|| panic!("{to}: {host}"))
}

/// Writes the scenario, and the inventory of three nodes.
fn write_files(air: &Air, folder: &Path) {
    let socket = folder.join("no.sock");
    let host = |node: usize| {
        let (command, own) = (format!("ip netns exec {}-n{node} {HOPWISE}", air.prefix), address(node));
        let socket = socket.display();
        format!(
            "  - {{ name: n{node}, local: true, address: {own}, command: {command}, control: [{socket}] }}\n"
        )
    };
    let hosts: String = (0..3).map(host).collect();
    for (name, text) in [("hosts.yaml", format!("hosts:\n{hosts}")), ("line.yaml", TEXT.to_owned())] {
        fs::write(folder.join(name), text).expect("the folder can be written");
    }
}

/// Neighbours have links, and nodes out of range have none.
fn assert_links(record: &Value) {
    let goodput = record["result"]["total"]["goodput_kbps"].as_f64().expect("a figure");
    assert!((50.0..1_000.0).contains(&goodput), "two hops at 2 Mbit/s: {goodput}");
    let hosts = record["result"]["live"]["mesh"]["hosts"].as_array().expect("a list");
    for (host, to) in [(0, "n1"), (1, "n0"), (1, "n2"), (2, "n1")] {
        let link = link(&hosts[host], to);
        assert!(link["signal_dbm"].as_f64().is_some_and(|dbm| (-100.0..0.0).contains(&dbm)), "{link}");
        assert!(link["tx_packets"].as_u64() > Some(20), "{link}");
    }
    let mut far = hosts[0]["links"].as_array().expect("a list").iter();
    assert!(far.all(|link| link["to"] != "n2"), "it is out of range: {}", hosts[0]);
}

#[test]
fn a_trial_on_hosts_with_radios_records_their_links_and_goes_at_the_radios_pace() {
    needs!["ip"];
    let air = Air::start("meshair", 2, &[]);
    let folder = std::env::temp_dir().join(prefix("meshairtrial"));
    fs::create_dir_all(&folder).expect("the temporary folder can be written");
    write_files(&air, &folder);
    // The air has the routes, and so the trial sets none.
    for (node, programs, via) in [(0, 3, 2), (1, 1, 1), (1, 3, 3), (2, 1, 2)] {
        let (to, via) = (format!("10.64.0.{programs}/32"), format!("10.0.0.{via}"));
        air.nodes[node].ip(&["route", "add", &to, "via", &via]);
        air.nodes[node].sysctl("ipv4/conf/air0/forwarding", "1");
    }
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let (file, inventory, out) = (path("line.yaml"), path("hosts.yaml"), path("out"));
    let words = ["trial", &file, "--inventory", &inventory, "--out", &out, "--late", "10s"];
    let done = Command::new(HOPWISE).args(words).output().expect("it starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let text = fs::read_to_string(folder.join("out/records.jsonl")).expect("a trial has records");
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(records.len(), 2);
    records.iter().for_each(assert_links);
    let report = fs::read_to_string(folder.join("out/report.html")).expect("a report");
    assert!(report.contains("fig-mesh") && report.contains("dBm"));
    drop(air);
    let _ = fs::remove_dir_all(&folder);
}
