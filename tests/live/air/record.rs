//! Recordings of nodes over the radio, their merge, and a simulation that plays it.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{Air, HOPWISE, bulk};
use crate::folder::Folder;
use crate::world::{until, within_patience};

const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/configs/chain.yaml");

/// A recording that is killed with its test.
struct Recording(Option<Child>);

impl Recording {
    /// Begins at a node, and waits for its first line.
    fn start(air: &Air, node: usize, file: &str, more: &[&str]) -> Recording {
        let name = format!("n{node}");
        let words = [HOPWISE, "mesh", "record", "air0", "--name", &name, "--out", file];
        let mut command = air.nodes[node].command(&[&words, more].concat());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let recording = Recording(Some(command.spawn().expect("ip netns exec runs")));
        within_patience(until(|| fs::read_to_string(file).is_ok_and(|text| text.contains("time_s"))));
        recording
    }

    fn end(mut self, signal: Signal) -> Output {
        let child = self.0.take().expect("it ends once");
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        child.wait_with_output().expect("it is our child")
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn hopwise(words: &[&str]) -> Output {
    Command::new(HOPWISE).args(words).stdin(Stdio::null()).output().expect("it runs")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn recordings_of_three_nodes_are_one_field_that_a_simulation_plays() {
    needs!["ip"];
    let (air, folder) = (Air::start("record", 2, &[]), Folder::new("record"));
    let [first, second, third] = ["n0.csv", "n1.csv", "n2.csv"].map(|name| folder.path(name));
    let (of_first, of_second) = thread::scope(|scope| {
        let traffic = scope.spawn(|| bulk(&air, 2, 500_000));
        // Every station has been heard before the recordings begin.
        within_patience(until(|| air.frames_in(0) > 20 && air.frames_in(2) > 20));
        let recordings =
            [(0, &first), (2, &third)].map(|(node, file)| Recording::start(&air, node, file, &[]));
        let json = Recording::start(&air, 1, &second, &["--json", "--every", "100ms"]);
        traffic.join().expect("it arrives");
        let [of_first, of_third] = recordings;
        of_third.end(Signal::KILL);
        (of_first.end(Signal::INT), json.end(Signal::TERM))
    });
    assert!(of_first.status.success() && err(&of_first).contains("air0 as n0: "), "{of_first:?}");
    let told = json(&of_second);
    assert_eq!((&told["node"], &told["address"]), (&"n1".into(), &"02:00:00:00:00:01".into()), "{told}");
    assert_eq!(told["neighbours"].as_array().map(Vec::len), Some(2), "{told}");
    // A loss of power may cut the last line.
    let mut cut = OpenOptions::new().append(true).open(&third).expect("it is there");
    cut.write_all(b"9999.9,n").expect("it can be written");
    let field = folder.path("field.csv");
    let length_s = merges([&first, &second, &third], &field);
    holds_the_powers_of(air, &field);
    plays(&field, &length_s);
}

/// Joins the recordings, of which the last one is cut, and returns the field's whole seconds.
fn merges([first, second, third]: [&String; 3], field: &str) -> String {
    let merged = hopwise(&["mesh", "merge", first, second, third, "--out", field, "--json"]);
    let report = json(&merged);
    let links = report["links"].as_array().expect("links");
    let ends: Vec<_> = links.iter().map(|link| [&link["from"], &link["to"]]).collect();
    assert_eq!(ends, [["n0", "n1"], ["n1", "n0"], ["n1", "n2"], ["n2", "n1"]], "{report}");
    for link in links {
        assert!(link["signals"].as_u64() > Some(5) && link["counts"].as_u64() > Some(5), "{report}");
    }
    assert!(err(&merged).contains("n2.csv:") && err(&merged).contains("is cut short"), "{merged:?}");
    report["length_s"].as_f64().expect("a time").floor().to_string()
}

/// Compares the signals with the radio's own report.
fn holds_the_powers_of(air: Air, field: &str) {
    let report = air.end();
    let text = fs::read_to_string(field).expect("it was written");
    for link in report["links"].as_array().expect("links") {
        let (to, address) = (link["node"].as_str(), link["station"].as_str().expect("an address"));
        let from = format!("n{}", &address[address.len() - 1..]);
        let of_link = format!(",{from},{},", to.expect("a name"));
        let signals = text.lines().filter_map(|line| line.split_once(&of_link)?.1.split(',').next());
        let signals: Vec<f64> = signals.filter_map(|cell| cell.parse().ok()).collect();
        let expected = link["signal_dbm"].as_f64().expect("it was heard");
        assert!(
            !signals.is_empty() && signals.iter().all(|dbm| *dbm == expected),
            "{of_link}: {report}\n{text}"
        );
    }
}

/// Compares the goodput with the chain's own. Radios that only sense each other are not in a recording, so the two are
/// near each other and not equal.
fn plays(field: &str, length_s: &str) {
    let goodput = |more: &[&str]| {
        let length = format!("run.duration={length_s}s");
        let sets = ["--set", "topology.hops=2", "--set", &length, "--set", "run.warmup=0s"];
        let done = hopwise(&[&["run", SCENARIO, "--arm", "delayed", "--json"], &sets[..], more].concat());
        assert!(done.status.success(), "{done:?}");
        json(&done)["total"]["goodput_kbps"].as_f64().unwrap_or_else(|| panic!("{done:?}"))
    };
    let (played, modelled) = (goodput(&["--set", &format!("channel.trace={field}")]), goodput(&[]));
    println!("{played} kbit/s in the recorded field, {modelled} kbit/s in the modelled one");
    assert!((0.5..2.0).contains(&(played / modelled)), "{played} of {modelled}");
}

#[test]
fn an_interface_that_cannot_be_recorded_is_refused_with_those_that_can() {
    needs!["ip"];
    let (air, folder) = (Air::start("recless", 1, &[]), Folder::new("recless"));
    let file = folder.path("n0.csv");
    let refused = |words: &[&str], problem: &str| {
        let done = air.nodes[0].output(&[&[HOPWISE, "mesh", "record", "--out", &file], words].concat());
        assert_eq!(done.status.code(), Some(2), "{done:?}");
        assert!(err(&done).contains(problem), "{problem}: {}", err(&done));
    };
    refused(&["wlan7"], "wlan7: there is no such interface; expected one of air0");
    refused(&["lo"], "lo: it has no stations, so it is no Wi-Fi interface");
    refused(&["air0", "--every", "10ms"], "expected 50ms to 1h");
    refused(&["air0", "--node", "roof"], "expected ADDRESS=NAME");
    fs::write(&file, "precious").expect("it can be written");
    refused(&["air0"], "it is there already, expected a new name after --out");
    assert_eq!(fs::read_to_string(&file).expect("it is there"), "precious");
    // Without any frame the recording ends by itself, and says that there is nothing to play.
    let done = air.nodes[0].output(&[HOPWISE, "mesh", "record", "air0", "--for", "300ms"]);
    assert!(done.status.success() && err(&done).contains("there is nothing to play"), "{done:?}");
    assert!(String::from_utf8_lossy(&done.stdout).starts_with("# hopwise field 1, every 0.1 s\n# began "));
}
