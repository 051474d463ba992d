//! Programs of users on bare radios: the examples, each by the command at its head.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::hwsim::{Folder, LIMIT, can_run, said};

const HOPWISE: &str = env!("CARGO_BIN_EXE_hopwise");

/// The words of the command in a script's comments, which begins with `#   hopwise`.
fn command_of(script: &str) -> Vec<String> {
    let comments = script.lines().map_while(|line| line.strip_prefix("# "));
    let lines: Vec<_> = comments.skip_while(|line| !line.trim_start().starts_with("hopwise ")).collect();
    let shell = format!("printf '%s\\n' {}", lines.join("\n").replace("\\\n", " "));
    let words = Command::new("sh").args(["-c", &shell]).output().expect("sh runs");
    String::from_utf8(words.stdout).expect("text").lines().skip(1).map(str::to_owned).collect()
}

/// Runs an example with a change to its words, and returns its standard output.
fn played(script: &str, folder: &Folder, change: impl FnOnce(&mut Vec<String>)) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("examples/wifi").join(script)).expect("an example");
    let mut words = command_of(&text);
    change(&mut words);
    let out = folder.path("out").to_string_lossy().into_owned();
    words.splice(2..2, ["--limit", LIMIT, "--junit", "--out", &out].map(str::to_owned));
    let mut command = Command::new(HOPWISE);
    let done = command.current_dir(root).args(words).env("TMPDIR", folder.path("tmp")).output();
    let done = done.expect("it starts");
    assert!(done.status.success(), "{script}: {}", said(&done));
    String::from_utf8(done.stdout).expect("text")
}

#[test]
fn every_example_runs_by_the_command_at_its_head() {
    if !can_run(name_of_test!()) {
        return;
    }
    let folder = Folder::new("programs");
    for (script, more, ends) in [
        ("wpa2.sh", None, " 0% packet loss"),
        ("wpa2.sh", Some("sae"), " 0% packet loss"),
        ("mesh.sh", None, " 0% packet loss"),
        ("babel.sh", None, " 0% packet loss"),
        ("roam.sh", None, "ok: with keys"),
    ] {
        let printed = played(script, &folder, |words| words.extend(more.map(str::to_owned)));
        assert!(printed.contains(ends), "{script} {more:?}: {printed}");
        let junit = fs::read_to_string(folder.path("out/junit.xml")).expect("a report");
        assert!(junit.contains("failures=\"0\"") && junit.contains(script), "{junit}");
    }
}

/// The receiver's share of lost datagrams is the last word in brackets of iperf3's line.
fn lost_percent(printed: &str) -> f64 {
    let of_line = |line: &str| line.split(['(', '%']).nth(1)?.parse::<f64>().ok();
    printed.lines().filter(|line| line.contains("receiver")).filter_map(of_line).fold(0.0, f64::max)
}

#[test]
fn clients_that_do_not_hear_each_other_lose_packets_and_rts_mends_it() {
    if !can_run(name_of_test!()) {
        return;
    }
    let folder = Folder::new("hidden");
    let without = lost_percent(&played("hidden.sh", &folder, |_| ()));
    let with = lost_percent(&played("hidden.sh", &folder, |words| {
        let rts = words.iter_mut().find(|word| *word == "radio.rts_threshold=off").expect("it is off");
        "radio.rts_threshold=0".clone_into(rts);
    }));
    println!("without RTS {without} % are lost, with RTS {with} %");
    assert!(without > 10.0 && with < 2.0, "{without} {with}");
}

/// What the example `certify` takes from the model for 20 stations with packets of this size, without RTS.
const BIANCHI_KBPS: f64 = 1301.7;

#[test]
fn twenty_clients_share_a_cell_as_bianchis_model_says() {
    if !can_run(name_of_test!()) {
        return;
    }
    let printed = played("cell.sh", &Folder::new("cell"), |_| ());
    let came =
        printed.lines().find_map(|line| line.strip_suffix(" came to the access point, in 1000 bytes each"));
    let kbps: f64 = came.and_then(|rate| rate.strip_suffix(" kbit/s")?.parse().ok()).expect(&printed);
    assert!((kbps / BIANCHI_KBPS - 1.0).abs() < 0.03, "{kbps} kbit/s, expected {BIANCHI_KBPS}");
}

/// Joins three stations, and says which of n1 and n2 answer n0.
const WHO_ANSWERS: &str = "
    for nth in 0 1 2; do
        ip netns exec n$nth iw dev wlan0 set type ibss
        ip -n n$nth link set wlan0 up
        ip netns exec n$nth iw dev wlan0 ibss join hop 2412 fixed-freq 02:ca:fe:00:00:01
        ip -n n$nth address add 10.1.0.$((nth + 1))/24 dev wlan0
    done
    sleep 3
    for nth in 1 2; do
        ip netns exec n0 ping -q -c 10 -i 0.2 -W 2 10.1.0.$((nth + 1)) >/dev/null && echo n$nth
    done
    ip netns exec n0 iw dev wlan0 station dump";

#[test]
fn configurations_of_wmediumd_run_as_they_are_and_bad_ones_have_an_error_with_a_line() {
    if !can_run(name_of_test!()) {
        return;
    }
    let folder = Folder::new("wmediumd");
    let ids = "ifaces : { ids = [\"02:00:00:00:00:00\", \"02:00:00:00:01:00\", \"02:00:00:00:02:00\"];";
    let file = folder.path("net.cfg");
    let run = |text: &str| {
        fs::write(&file, format!("{ids}\n{text}\n")).expect("it is written");
        let mut command = Command::new(HOPWISE);
        command.args(["air", "hwsim", "--bare", "--limit", LIMIT, "--out"]).arg(folder.path("out"));
        command.arg(&file).args(["--", "sh", "-c", WHO_ANSWERS]).env("TMPDIR", folder.path("tmp"));
        command.output().expect("it starts")
    };
    let places = "}; model : { type = \"path_loss\"; positions = ((0.0, 0.0), (20.0, 0.0), (900.0, 0.0)); \
                  tx_powers = (15.0, 15.0, 15.0); model_name = \"log_distance\"; path_loss_exp = 3.0; xg = 0.0; };";
    for (text, signal) in [
        ("links = ((0, 1, 31), (0, 2, 0), (1, 2, 25)); };", "-60 dBm"),
        ("}; model: { type = \"prob\"; default_prob = 1.0; links = ((0, 1, 0.1)); };", "-50 dBm"),
        (places, "-64 dBm"),
    ] {
        let done = run(text);
        let printed = said(&done);
        assert!(printed.starts_with("n1\nStation 02:00:00:00:01:00"), "{text}: {printed}");
        assert!(printed.contains(&format!("signal avg:\t{signal}")), "{text}: {printed}");
    }
    let bad = said(&run("}; model: { type = \"magic\"; };"));
    assert!(bad.contains("net.cfg:2: type \"magic\", expected snr, prob"), "{bad}");
}
