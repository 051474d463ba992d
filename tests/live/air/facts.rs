//! The facts about links that daemons on the devices of `hopwise air` are told.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use super::{Air, HOPWISE, address};
use crate::folder::Folder;
use crate::namespace::Running;
use crate::world::{until, within_patience};

/// The station of the second node.
const SECOND: &str = "02:00:00:00:00:01";

struct Daemons<'a> {
    air: &'a Air,
    folder: Folder,
    running: Vec<Running>,
}

impl Daemons<'_> {
    fn new<'a>(air: &'a Air, test: &str) -> Daemons<'a> {
        Daemons { air, folder: Folder::new(test), running: Vec::new() }
    }

    fn start(&mut self, node: usize, words: &[&str], text: &str) {
        let config = self.folder.join(format!("{node}.yaml"));
        fs::write(&config, text).expect("the folder can be written");
        let log = File::create(self.log(node)).expect("the folder can be written");
        let mut command = self.air.nodes[node].command(&[&[HOPWISE], words].concat());
        command.arg(&config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.running.push(Running(command.spawn().expect("ip netns exec runs")));
    }

    fn log(&self, node: usize) -> PathBuf {
        self.folder.join(format!("{node}.log"))
    }

    fn control(&self, node: usize) -> PathBuf {
        self.folder.join(format!("{node}.sock"))
    }

    /// A routing daemon on each of the first nodes.
    fn route(&mut self, nodes: usize) {
        for node in 0..nodes {
            let text = format!(
                "address: {}\nnetwork: 10.0.0.0/24\ninterfaces: [air0]\nuser: root\nstate: {}\ncontrol: {}\n\
                 routing: {{ protocol: aodv }}\n",
                address(node),
                self.folder.join(format!("state{node}")).display(),
                self.control(node).display()
            );
            self.start(node, &["route"], &text);
        }
    }

    /// The facts that the daemon of a node tells of the only station of its interface.
    fn told(&self, node: usize, words: &[&str]) -> Option<Value> {
        let socket = self.control(node);
        let output = std::process::Command::new(HOPWISE).args(words).arg("--control").arg(socket).output();
        let told: Value = serde_json::from_slice(&output.expect("it runs").stdout).ok()?;
        let interface = told["stations"].get(0)?;
        assert_eq!(interface["interface"], "air0", "{told}");
        interface["stations"].get(0).cloned()
    }
}

impl Drop for Daemons<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for node in 0..self.air.nodes.len() {
                println!("--- {node}\n{}", fs::read_to_string(self.log(node)).unwrap_or_default());
            }
        }
        self.running.clear();
    }
}

fn link_of<'a>(report: &'a Value, node: &str, station: &str) -> &'a Value {
    let links = report["links"].as_array().expect("links");
    let is_it = |link: &&Value| link["node"] == node && link["station"] == station;
    links.iter().find(is_it).unwrap_or_else(|| panic!("{report}"))
}

#[test]
fn a_routing_daemon_tells_what_the_radio_knows_of_its_neighbour() {
    needs!["ip"];
    let air = Air::start("facts", 1, &["routing={ protocol: aodv }"]);
    let mut daemons = Daemons::new(&air, "facts");
    daemons.route(2);
    air.echo(1);
    let socket = air.socket(0);
    let mut told = None;
    within_patience(until(|| {
        let _ = socket.send_to(&[0; 400], (address(1), super::PORT)).and_then(|_| socket.recv(&mut [0; 500]));
        told = daemons.told(0, &["status", "--json"]);
        told.as_ref()
            .is_some_and(|told| told["tx_packets"].as_u64() > Some(3) && told["neighbour"] != Value::Null)
    }));
    let told = told.expect("a station");
    assert_eq!((&told["station"], &told["neighbour"]), (&SECOND.into(), &"10.0.0.2".into()), "{told}");
    assert_eq!(told["tx_bitrate_bps"], 2_000_000, "{told}");
    for fact in ["inactive_ms", "tx_retries", "tx_failed", "rx_packets", "tx_duration_us", "rx_duration_us"] {
        assert!(told[fact].is_u64(), "{fact}: {told}");
    }
    let page = daemons.control(0);
    let page = std::process::Command::new(HOPWISE).arg("status").arg("--control").arg(page).output();
    let page = String::from_utf8_lossy(&page.expect("it runs").stdout).into_owned();
    assert!(page.contains("air0: 1 station") && page.contains(SECOND) && page.contains("10.0.0.2"), "{page}");
    drop(daemons);
    // The radio's own report has this link, from both sides.
    let report = air.end();
    let link = link_of(&report, "n0", SECOND);
    assert_eq!(
        (&link["signal_dbm"], &link["neighbour"]),
        (&told["signal_dbm"], &told["neighbour"]),
        "{report}"
    );
    assert!(link["tx_packets"].as_u64() >= told["tx_packets"].as_u64(), "{report}");
    let other = link_of(&report, "n1", "02:00:00:00:00:00");
    assert!(other["rx_packets"].as_u64() > Some(3), "{report}");
}

#[test]
fn a_neighbour_whom_no_frame_reaches_is_lost_before_it_misses_hellos() {
    needs!["ip"];
    // Frames from the first node are lost, and frames to it are not: its neighbour's hellos go on.
    let outage = "channel.outages=[{ from: n0, to: n1, begins: 15s, ends: 1h, one_way: true }]";
    let air = Air::start("deaf", 1, &["routing={ protocol: aodv }", outage]);
    let mut daemons = Daemons::new(&air, "deaf");
    daemons.route(2);
    let socket = air.socket(0);
    socket.set_read_timeout(Some(std::time::Duration::from_millis(20))).expect("a timeout above zero");
    air.echo(1);
    let log = daemons.log(0);
    within_patience(until(|| {
        let _ = socket.send_to(&[0; 100], (address(1), super::PORT)).and_then(|_| socket.recv(&mut [0; 200]));
        fs::read_to_string(&log).unwrap_or_default().contains("does not hear us")
    }));
    let told = daemons.told(0, &["status", "--json"]).expect("its hellos are heard");
    assert!(told["tx_failed"].as_u64() >= Some(2), "{told}");
}

#[test]
fn a_proxy_tells_what_the_radio_knows_of_its_mobiles() {
    needs!["ip"];
    let air = Air::start("mobile", 1, &[]);
    let mut daemons = Daemons::new(&air, "mobile");
    let text = format!(
        "fixed: {{ name: hopf }}\nmobile: {{ name: hopm }}\nuser: root\nwatchdog: off\ncontrol: {}\n\
         stations: [{{ interface: air0, mobiles: [{{ address: 10.0.0.2, station: \"{SECOND}\" }}] }}]\n",
        daemons.control(0).display()
    );
    daemons.start(0, &["proxy"], &text);
    air.echo(1);
    let socket = air.socket(0);
    let mut told = None;
    within_patience(until(|| {
        let _ = socket.send_to(&[0; 400], (address(1), super::PORT)).and_then(|_| socket.recv(&mut [0; 500]));
        told = daemons.told(0, &["proxy", "status"]);
        told.as_ref().is_some_and(|told| told["signal_dbm"].is_i64())
    }));
    let told = told.expect("a station");
    assert_eq!((&told["station"], &told["neighbour"]), (&SECOND.into(), &"10.0.0.2".into()), "{told}");
    let socket = daemons.control(0);
    let words = ["proxy", "status", "--text", "--control"];
    let page = std::process::Command::new(HOPWISE).args(words).arg(Path::new(&socket)).output();
    let page = String::from_utf8_lossy(&page.expect("it runs").stdout).into_owned();
    assert!(page.starts_with("flows 0") && page.contains(SECOND), "{page}");
}
