//! Endpoints whose packets leave by the devices of `hopwise air`: they know the facts about their links, and their
//! captures have them.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use serde_json::Value;

use super::{Air, HOPWISE, address};
use crate::folder::Folder;
use crate::namespace::Running;
use crate::world::{PATIENCE, until, within_patience};

/// The stations of the two nodes.
const STATIONS: [&str; 2] = ["02:00:00:00:00:00", "02:00:00:00:00:01"];
const FIELDS: [&str; 8] = ["to", "signal_dbm", "mbps", "packets", "retries", "lost", "airtime", "told_ms"];

/// Two namespaces on one radio hop; TUN devices behind their kernels have 10.7.0.0/24 and 10.8.0.0/24.
fn air(test: &str) -> Air {
    let air = Air::start(test, 1, &[]);
    for (node, subnet, via) in [(0, "10.8.0.0/24", 1), (1, "10.7.0.0/24", 0)] {
        air.nodes[node].ip(&["route", "add", subnet, "via", &address(via).to_string()]);
        air.nodes[node].sysctl("ipv4/ip_forward", "1");
    }
    air
}

/// A daemon at each end, as another user than root, and one connection between them that goes on.
struct Ends {
    folder: Folder,
    _daemons: [Running; 2],
    stream: TcpStream,
}

impl Ends {
    /// `links` has the lines of the links and routes of each node.
    fn start(air: &Air, test: &str, links: [&str; 2], to: &str) -> Ends {
        let folder = Folder::of_everybody(test);
        let daemon = |node: usize, forward: &str| {
            let text = format!(
                "{}forwards: [{forward}]\ncontrol: {1}/{node}.sock\ncapture: {{ file: {1}/{node}.pcapng }}\n",
                links[node],
                folder.display()
            );
            let config = folder.join(format!("{node}.yaml"));
            fs::write(&config, text).expect("the folder can be written");
            air.nodes[node].start(&[HOPWISE, "node", &config.to_string_lossy()])
        };
        let daemons = [
            daemon(0, &format!("{{ listen: 127.0.0.1:7001, to: mesh:{to}:7002 }}")),
            daemon(1, "{ listen: mesh:7002, to: 127.0.0.1:7000 }"),
        ];
        let server = air.nodes[1].run(|| TcpListener::bind(("127.0.0.1", 7_000)).expect("a free port"));
        thread::spawn(move || {
            for mut stream in server.incoming().flatten() {
                let mut bytes = [0; 2_000];
                while stream.read_exact(&mut bytes).and_then(|()| stream.write_all(&bytes)).is_ok() {}
            }
        });
        let mut stream = None;
        within_patience(until(|| {
            let connected = air.nodes[0].run(|| TcpStream::connect(("127.0.0.1", 7_001)));
            stream = connected.ok().filter(|stream| {
                stream.set_read_timeout(Some(PATIENCE)).expect("a timeout above zero");
                echo(stream)
            });
            stream.is_some()
        }));
        Ends { folder, _daemons: daemons, stream: stream.expect("it is connected") }
    }

    /// The facts in the status of the connection of a node, while it carries data.
    fn told(&self, node: usize) -> Value {
        let socket = self.folder.join(format!("{node}.sock"));
        let mut told = Value::Null;
        within_patience(until(|| {
            assert!(echo(&self.stream), "the connection stays");
            let output = Command::new(HOPWISE).args(["status", "--json", "--control"]).arg(&socket).output();
            let status: Value = serde_json::from_slice(&output.expect("it runs").stdout).unwrap_or_default();
            told = status["connections"][0]["link"].clone();
            told["tx_packets"].as_u64() > Some(10)
        }));
        let page = Command::new(HOPWISE).args(["status", "--control"]).arg(&socket).output();
        let page = String::from_utf8_lossy(&page.expect("it runs").stdout).into_owned();
        assert!(page.contains(told["station"].as_str().expect("a name")), "{page}");
        told
    }

    /// The first row of tshark's fields in which nothing is missing, with its frame before it.
    fn captured(&self, node: usize) -> Vec<String> {
        let file = self.folder.join(format!("{node}.pcapng"));
        let script = concat!("lua_script:", env!("CARGO_MANIFEST_DIR"), "/docs/wireshark/hopwise.lua");
        let mut row = Vec::new();
        within_patience(until(|| {
            assert!(echo(&self.stream), "the connection stays");
            let mut tshark = Command::new("tshark");
            tshark.args(["-X", script, "-r"]).arg(&file).args(["-Y", "hopwise.link.packets", "-T", "fields"]);
            tshark.args(["-e", "frame.number"]);
            FIELDS.iter().for_each(|field| _ = tshark.args(["-e", &format!("hopwise.link.{field}")]));
            let lines = String::from_utf8_lossy(&tshark.output().expect("it runs").stdout).into_owned();
            let rows = lines.lines().map(|line| line.split('\t').map(str::to_owned).collect::<Vec<_>>());
            row = rows.into_iter().find(|row| row.iter().all(|cell| !cell.is_empty())).unwrap_or_default();
            !row.is_empty()
        }));
        let why = Command::new(HOPWISE).args(["capture", "why"]).arg(&file).arg(&row[0]).output();
        let why = String::from_utf8_lossy(&why.expect("it runs").stdout).into_owned();
        assert!(why.contains(&format!(" The link to {}; signal ", row[1])), "{why}");
        row
    }
}

fn echo(mut stream: &TcpStream) -> bool {
    stream.write_all(&[7; 2_000]).and_then(|()| stream.read_exact(&mut [0; 2_000])).is_ok()
}

/// Both ends agree about their link: there is one distance for the signal, and one rate of the radio.
fn assert_known(air: Air, ends: &Ends) {
    let told = [0, 1].map(|node| ends.told(node));
    for (node, told) in told.iter().enumerate() {
        assert_eq!(told["station"], STATIONS[1 - node], "{told}");
        assert_eq!(told["tx_bitrate_bps"], 2_000_000, "{told}");
        for fact in ["reported_ms", "inactive_ms", "tx_retries", "tx_failed", "rx_packets", "tx_duration_us"]
        {
            assert!(told[fact].is_u64(), "{fact}: {told}");
        }
        let row = ends.captured(node);
        let signal = told["signal_dbm"].to_string();
        assert_eq!((&row[1][..], &row[2], &row[3][..]), (STATIONS[1 - node], &signal, "2"), "{row:?}");
        assert!(row[4].parse::<u32>().is_ok_and(|packets| packets < 1_000), "{row:?}");
        assert!(row[7].parse::<f64>().is_ok_and(|percent| percent > 0.0 && percent <= 100.0), "{row:?}");
    }
    let report = air.end();
    let links = report["links"].as_array().expect("links");
    let first = links.iter().find(|link| link["node"] == "n0").expect("a link");
    assert_eq!(first["signal_dbm"], told[0]["signal_dbm"], "{report}");
}

#[test]
fn a_node_on_a_tun_knows_the_link_by_which_its_kernel_sends() {
    needs!["ip", "tshark"];
    let air = air("tunlink");
    let links = [7, 8].map(|subnet| {
        format!(
            "node: {{ name: n{subnet}, address: 10.{subnet}.0.2/24 }}\n\
             links: [{{ kind: tun, name: hw0, kernel: 10.{subnet}.0.1/24 }}]\n\
             routes: [{{ to: 0.0.0.0/0, link: hw0 }}]\n"
        )
    });
    let ends = Ends::start(&air, "tunlink", links.each_ref().map(String::as_str), "10.8.0.2");
    assert_known(air, &ends);
}

#[test]
fn a_node_beside_the_kernel_knows_the_link_to_the_neighbour_that_it_found() {
    needs!["ip", "nft", "tshark"];
    let air = air("rawlink");
    let links = [0, 1].map(|node| {
        format!(
            "node: {{ name: n{node}, address: {}/24 }}\nlinks: [{{ kind: raw, name: air0 }}]\n",
            address(node)
        )
    });
    let to = address(1).to_string();
    let ends = Ends::start(&air, "rawlink", links.each_ref().map(String::as_str), &to);
    assert_known(air, &ends);
}

#[test]
fn a_measurement_reports_the_first_links_of_both_ends() {
    needs!["ip"];
    let air = air("sendlink");
    let recv = [HOPWISE, "recv", "--address", "10.8.0.2/24", "--kernel", "10.8.0.1/24"];
    let _recv = air.nodes[1].start(&recv);
    let send = [HOPWISE, "send", "10.8.0.2", "--bytes", "400kB", "--json"];
    let send = [&send[..], &["--address", "10.7.0.2/24", "--kernel", "10.7.0.1/24"]].concat();
    let mut flow = Value::Null;
    within_patience(until(|| {
        let output = air.nodes[0].output(&send);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        flow = report["flows"][0].clone();
        flow["link"].is_object() && flow["link_back"].is_object()
    }));
    for (link, station) in [("link", STATIONS[1]), ("link_back", STATIONS[0])] {
        assert_eq!(flow[link]["station"], station, "{flow}");
        assert_eq!(flow[link]["tx_bitrate_bps"], 2_000_000, "{flow}");
    }
}
